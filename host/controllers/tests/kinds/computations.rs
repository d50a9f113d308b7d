//! Calls of the controllers take their turn with what computes.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use orangery_core::name::Namespace;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    deploy_item::items::{Items, proposal},
    objects::{installation, object, of_items, with},
};

/// How long a test waits for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// Computes in as many namespaces as there are places, each on a thread of its own, until the sender is dropped.
fn take_all_places(host: &Arc<orangery_controllers::ControllerContext>) -> mpsc::Sender<()> {
    let places = 2 * thread::available_parallelism().unwrap().get();
    let (end, ended) = mpsc::channel::<()>();
    let ended = Arc::new(std::sync::Mutex::new(ended));
    let (begins, begun) = mpsc::channel();
    for number in 0..places {
        let (host, ended, begins) = (Arc::clone(host), Arc::clone(&ended), begins.clone());
        thread::spawn(move || {
            let tenant = Some(Namespace::from(format!("other-{number}")));
            let work = async {
                begins.send(()).unwrap();
                let _dropped = ended.lock().unwrap().recv();
            };
            futures::executor::block_on(host.computations.run(&tenant, work));
        });
    }
    (0..places).for_each(|_| begun.recv_timeout(DEADLINE).unwrap());
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_45_what_others_wrote_is_evaluated_in_turns_by_installations_executions_and_deploy_items() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    let objects = world.objects();
    objects.apply(&object("Execution", "tree", &json!({"context": "default"}))).await;
    objects.expect("Execution", "tree", |_| true).await;
    let places = take_all_places(world.host.as_ref().unwrap());
    objects.apply(&installation("root", &json!({}))).await;
    objects.patch_status("Execution", "tree", &json!({"jobID": "one"})).await;
    world.trigger("item", "one").await;
    let all_wait = async {
        while objects.running() != [1; 3] {
            objects.list("Installation").await;
        }
    };
    timeout(DEADLINE, all_wait).await.expect("all three kinds are worked on");
    // Whatever had no turn to wait for would have ended by now.
    for _ in 0..50 {
        objects.list("Installation").await;
    }
    assert_eq!(objects.running(), [1; 3]);
    drop(places);
    for (kind, name) in [("Installation", "root"), ("Execution", "tree"), ("DeployItem", "item")] {
        objects.ended(kind, name, "Succeeded").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_99_large_imports_are_in_memory_in_turns_and_small_ones_do_not_wait() {
    let world = Items::new().await;
    let (objects, host) = (world.objects(), Arc::clone(world.host.as_ref().unwrap()));
    // 42 KB that take over 5 MiB.
    let large = format!("[{}0]", "{\"\":0},".repeat(6_000));
    for (name, text) in [("large", large.as_str()), ("small", "[1]")] {
        objects
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": text}}))
            .await;
    }
    let mut turns = Vec::new();
    for other in ["x", "y"] {
        turns.push(host.large_imports.acquire(&Some(Namespace::from(other.to_owned()))).await);
    }
    for name in ["large", "small"] {
        let imports = json!({"data": [{"name": "a", "configMapRef": {"name": name, "key": "k"}}]});
        objects.apply(&with(installation(name, &json!({})), &json!({"imports": imports}))).await;
    }
    objects.ended("Installation", "small", "Succeeded").await;
    // Whatever had no turn to wait for would have ended by now.
    for _ in 0..50 {
        objects.list("Installation").await;
    }
    objects
        .expect("Installation", "large", |large| large["status"]["jobIDFinished"].as_str().unwrap_or("").is_empty())
        .await;
    drop(turns);
    objects.ended("Installation", "large", "Succeeded").await;
}

#[tokio::test]
async fn c_324_limits_what_executions_answer_is_shared_by_namespaces() {
    let world = Items::new().await;
    let (objects, host) = (world.objects(), Arc::clone(world.host.as_ref().unwrap()));
    let most = host.rendered.most_of_one();
    let mut held: Vec<_> = ["x", "y"].map(|other| host.rendered.none_of(&Some(other.into()))).into();
    held.iter_mut().for_each(|held| held.put(most));
    objects.apply(&installation("waits", &of_items(&[]))).await;
    let told = |waits: &Value| waits["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned();
    let waits = objects.expect("Installation", "waits", |waits| !told(waits).is_empty()).await;
    let message = told(&waits);
    assert!(message.ends_with(", and others have what is left; it is tried again"), "{message}");
    drop(held);
    objects.ended("Installation", "waits", "Succeeded").await;
    assert_eq!(host.rendered.taken(), 0);
}

#[tokio::test]
async fn c_325_a_proposal_without_room_is_dropped_and_asked_for_again_when_there_is_some() {
    let world = Items::new().await;
    let objects = world.objects();
    let large = json!({"stages": [{"name": "all", "gate": "accepted", "writes": [{"how": "replace", "object": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large", "namespace": "default"},
        "data": {"k": "x".repeat(600_000)},
    }}]}]});
    let memory = orangery_reconcile::reading_memory();
    let mut held: Vec<_> = ["x", "y"].map(|other| memory.none_of(&Some(other.into()))).into();
    held.iter_mut().for_each(|held| held.put(memory.most_of_one()));
    world.create("large", &[proposal("large", large)], json!({})).await;
    world.create("small", &[proposal("small", json!({}))], json!({})).await;
    world.trigger("large", "one").await;
    let asked = async {
        while world.calls() == 0 {
            objects.list("DeployItem").await;
        }
    };
    timeout(DEADLINE, asked).await.expect("the component is asked");
    world.trigger("small", "one").await;
    objects.ended("DeployItem", "small", "Succeeded").await;
    assert!(objects.find("ConfigMap", "large").await.is_none(), "nothing of it is carried out");
    assert_eq!(world.calls(), 2);
    drop(held);
    objects.ended("DeployItem", "large", "Succeeded").await;
    assert_eq!((world.calls(), objects.find("ConfigMap", "large").await.is_some()), (3, true));
}
