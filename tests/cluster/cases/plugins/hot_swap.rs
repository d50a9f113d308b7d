//! A component is replaced again and again while jobs of many items run with it (C-263).

use std::{collections::BTreeMap, env, time::Duration};

use futures::{StreamExt as _, stream};
use orangery_tests::history::{History, Version};
use serde_json::json;

use super::{component, config_map, in_use, install, item, renewed};

/// `SWAPPED_ITEMS` names another number.
const ITEMS: usize = 60;
/// Items that are written at once.
const AT_ONCE: usize = 8;
/// For as many as anybody measures.
const PATIENCE: Duration = Duration::from_secs(600);

/// The items whose jobs have ended.
fn ended(seen: &[Version]) -> usize {
    let mut last = BTreeMap::new();
    for version in seen.iter().filter(|version| version.kind == "DeployItem") {
        last.insert(&version.name, version);
    }
    last.values().filter(|version| !version.is_running() && !version.phase().is_empty()).count()
}

#[tokio::test]
async fn c_263_under_load_no_job_fails_or_is_done_twice_while_its_component_is_replaced() {
    let items = env::var("SWAPPED_ITEMS").ok().and_then(|number| number.parse().ok()).unwrap_or(ITEMS);
    let cluster = crate::cluster().await;
    let versions = [renewed(component("mock")), component("mock")];
    install(&cluster, "mine", &versions[1], json!({})).await;
    let history = History::begin(cluster.client()).await;
    let deploy = stream::iter(0..items).for_each_concurrent(AT_ONCE, async |number| {
        cluster.apply(&item(&format!("item-{number}"), "Succeeded")).await;
    });
    let swaps = async {
        let mut swaps = 0;
        while history.with_seen(|seen| ended(seen) < items) {
            let next = &versions[swaps % 2];
            cluster.apply(&config_map("mine", next)).await;
            in_use(&cluster, "mine", next).await;
            swaps += 1;
        }
        swaps
    };
    let (_, swaps) = tokio::time::timeout(PATIENCE, async { tokio::join!(deploy, swaps) }).await.expect("all end");
    println!("{items} items, {swaps} times another component");
    assert!(swaps > 1, "nothing was replaced while {items} items were deployed");

    let seen = history.until_now().await;
    for number in 0..items {
        let name = format!("item-{number}");
        let mut jobs: Vec<String> = seen.of("DeployItem", &name).map(|version| version.jobs().0.to_owned()).collect();
        jobs.retain(|job| !job.is_empty());
        jobs.dedup();
        let phases = seen.phases("DeployItem", &name);
        let ends = phases.iter().filter(|phase| *phase == "Succeeded").count();
        let fails = phases.iter().any(|phase| phase.contains("Fail"));
        assert_eq!((jobs.len(), ends, fails), (1, 1, false), "{name}: {jobs:?} {phases:?}");
    }
}
