//! Connections along which nothing comes any more, and which do not end: what is under way ends well once they go on (C-180).

use std::sync::Arc;

use orangery_tests::{
    effects::{self, Effects},
    history::History,
    invariants,
    road::{Passage, Road},
    tree::{
        any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
        wait_until_idle,
    },
    world::World,
};
use serde_json::{Value, json};

use super::away_targets::{behind_a_road, config_map, deploying, waits_for_its_check};

/// Trees that are under way when the network freezes.
const UNDER_WAY: usize = 12;

fn tree(number: usize) -> Value {
    let [first, second] = ["first", "second"].map(|item| format!("{item}-{number}"));
    let items = [deploys(&first, &[], "1"), deploys(&second, &[&first], "1")];
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
    on_cluster(installation(&format!("tree-{number}"), &blueprint(fields)))
}

#[tokio::test]
async fn c_180_jobs_end_once_after_the_api_of_the_host_was_frozen_for_longer_than_an_answer_may_take() {
    let road = Arc::new(Road::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, road.clone()).await;
    world.start();
    world.ready().await;
    let history = History::begin(world.objects.client()).await;
    let effects = Effects::begin(world.objects.client()).await;
    for number in 0..UNDER_WAY {
        world.objects.apply(&tree(number)).await;
    }
    world.objects.expect(&config_map("first-0")).await;
    road.switch(Passage::Frozen);
    // The operator has given up what it asked before.
    road.asked_again("PATCH").await;
    road.switch(Passage::Open);
    for number in 0..UNDER_WAY {
        world.objects.expect(&in_phase("Installation", &format!("tree-{number}"), "Succeeded")).await;
    }
    wait_until_idle(&world.objects).await;
    let (seen, effects) = (history.until_now().await, effects.until_now(&world.objects).await);
    let mut broken = invariants::broken(seen.versions());
    broken.extend(invariants::effects_at_rest(seen.versions(), &effects, &road.logged()));
    assert!(broken.is_empty(), "{}\n{:#?}", broken.join("\n"), seen.message_of());
    let failed: Vec<_> = seen.versions().iter().filter(|version| version.phase() == "Failed").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for (name, contents) in effects::by_name(&effects) {
        assert_eq!(contents, [Some("1".to_owned())], "{name}");
    }
    world.end().await;
}

#[tokio::test]
async fn c_180_a_check_and_an_uninstall_on_a_target_that_froze_go_on_when_it_thaws() {
    let cluster = crate::cluster().await;
    let (road, _proxy) = behind_a_road(&cluster).await;
    cluster.apply(&deploying("away", "root", &[becomes_ready("slow", &[])])).await;
    waits_for_its_check(&cluster, "slow").await;

    road.switch(Passage::Frozen);
    let ready =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": {"ready": "yes"}});
    cluster.merge(&ready).await;
    cluster.apply(&deploying("cluster", "well", &[deploys("fast", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "well", "Succeeded")).await;
    let waits = cluster.expect(&any("Installation", "root")).await;
    assert_eq!(waits["status"]["phase"], "Progressing", "{waits:#}");
    road.switch(Passage::Open);
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    road.switch(Passage::Frozen);
    cluster.delete(&any("Installation", "root")).await;
    road.asked_again("GET").await;
    cluster.delete(&any("Installation", "well")).await;
    cluster.expect_absent(&any("Installation", "well")).await;
    cluster.expect(&config_map("slow")).await;
    road.switch(Passage::Open);
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("slow")).await;
}
