//! What a hostile guest costs those beside it: nothing.

use std::sync::Arc;

use orangery_blueprint::plugins::Plugins;
use orangery_core::name::Namespace;
use orangery_plugin::{Occupancy, PluginSet};
use orangery_proposal::{Item, deployer::Reads};
use serde_json::json;

use super::fixtures::{bytes, cache, deployer_of, item, plan, registered, sandbox_of, sandbox_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_of_hostile_guests_notice_nothing() {
    let sandbox = sandbox_with(cache());
    let victim = deployer_of(sandbox.clone(), "answers", bytes("answers"), json!({"wallMilliseconds": 5000}));
    let expected = plan(&victim).await.unwrap().unwrap();
    let limits = json!({"cpuMilliseconds": 100, "wallMilliseconds": 1000, "memoryMiB": 16});
    let hostile = ["loops", "loops", "loops", "loops", "allocates", "recurses", "panics", "hoards", "waits", "prints"];
    let attacks: Vec<_> = hostile
        .into_iter()
        .map(|guest| {
            let plugin = deployer_of(sandbox.clone(), guest, bytes(guest), limits.clone());
            tokio::spawn(async move { plan(&plugin).await.map(|answer| answer.is_ok()) })
        })
        .collect();
    let mut calls = 0;
    while attacks.iter().any(|attack| !attack.is_finished()) || calls < 100 {
        assert_eq!(plan(&victim).await.unwrap().unwrap(), expected);
        calls += 1;
        tokio::task::yield_now().await;
    }
    for (guest, attack) in hostile.into_iter().zip(attacks) {
        assert!(attack.await.unwrap().is_err(), "{guest} was not stopped");
    }
    assert_eq!(sandbox.occupancy(), Occupancy::default());
    assert_eq!(plan(&victim).await.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_nothing_behind() {
    let sandbox = sandbox_with(cache());
    let waits = deployer_of(sandbox.clone(), "waits", bytes("waits"), json!({}));
    waits.component().await.unwrap();
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(30), plan(&waits)).await;
    assert!(given_up.is_err());
    assert_eq!(sandbox.occupancy(), Occupancy::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_may_take_much_memory_wait_for_each_other_and_for_nobody_else() {
    let sandbox = sandbox_of(4);
    let of = |guest: &str, memory: u64| {
        deployer_of(sandbox.clone(), guest, bytes(guest), json!({"memoryMiB": memory, "wallMilliseconds": 60_000}))
    };
    let (waits, large, small) = (of("waits", 128), of("answers", 128), of("answers", 127));
    for plugin in [&waits, &large, &small] {
        plugin.component().await.unwrap();
    }
    let first = tokio::spawn(async move { plan(&waits).await.map(drop) });
    while sandbox.occupancy().calls < 1 {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn(async move { plan(&large).await.map(drop) });
    for _ in 0..50 {
        plan(&small).await.unwrap().unwrap();
    }
    assert!(!second.is_finished(), "only one of four rooms is for large calls");
    first.abort();
    second.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_43_a_namespace_that_sleeps_in_all_it_gets_does_not_hold_the_call_of_another() {
    for memory in [64, 128] {
        let sandbox = sandbox_of(16);
        let limits = json!({"memoryMiB": memory, "wallMilliseconds": 60_000});
        let waits = Arc::new(deployer_of(sandbox.clone(), "waits", bytes("waits"), limits.clone()));
        let answers = deployer_of(sandbox.clone(), "answers", bytes("answers"), limits);
        waits.component().await.unwrap();
        answers.component().await.unwrap();
        let sleepers: Vec<_> = (0..32)
            .map(|_| {
                tokio::spawn({
                    let waits = waits.clone();
                    async move { plan(&waits).await.map(drop) }
                })
            })
            .collect();
        let most = if memory == 64 { 7 } else { 1 };
        while sandbox.occupancy().calls < most {
            tokio::task::yield_now().await;
        }
        let neighbour = Item { namespace: Namespace::from_static("neighbour"), ..item() };
        for _ in 0..20 {
            let reads = Reads::of_clusters(Arc::new(orangery_tests::empty::Empty));
            answers.plan(&neighbour, reads).await.unwrap().unwrap();
        }
        assert_eq!(sandbox.occupancy().calls, most);
        sleepers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test]
async fn a_broken_plugin_stalls_its_own_types_only() {
    let claim = |item_type: &str| json!({"deployer": {"itemTypes": [item_type]}, "template": null});
    let good = registered("good", bytes("answers"), claim("example.org/good"), json!({}));
    let broken = registered("broken", b"not a component".to_vec(), claim("example.org/broken"), json!({}));
    let set = Arc::new(PluginSet::load(vec![broken, good], &sandbox_with(cache())).unwrap());
    set.clone().prepare().await;
    let item = super::fixtures::item();
    let plan = async |item_type: &str| {
        let deployer = set.deployer(item_type, &Namespace::from_static("n")).unwrap();
        deployer.plan(&item, Reads::of_clusters(Arc::new(orangery_tests::empty::Empty))).await
    };
    assert!(plan("example.org/good").await.is_ok());
    assert_eq!(
        plan("example.org/broken").await.unwrap_err().to_string(),
        "broken 1.0.0: the file is not a WebAssembly component: it does not begin as one; build it for the target wasm32-wasip2"
    );
    assert!(set.deployer("example.org/other", &Namespace::from_static("n")).is_none());
}

#[test]
fn two_plugins_cannot_claim_one_type_or_one_name() {
    let sandbox = sandbox_with(cache());
    let one = |name: &str, item_type: &str| {
        let claim = json!({"deployer": {"itemTypes": [item_type]}, "template": null});
        registered(name, vec![], claim, json!({}))
    };
    let error = |registered| PluginSet::load(registered, &sandbox).err().unwrap().to_string();
    assert_eq!(
        error(vec![one("a", "example.org/x"), one("b", "example.org/x")]),
        "the type example.org/x is claimed by two plugins, a and b; remove it from one of them"
    );
    assert_eq!(
        error(vec![one("a", "example.org/x"), one("a", "example.org/y")]),
        "the plugin a is registered twice, by test and by test; give one of them another name"
    );
}
