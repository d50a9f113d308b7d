//! Servers that say that it is too much for them, or that what is asked of them is too old (C-182).

use std::sync::Arc;

use orangery_tests::{
    effects::{self, Effects},
    external_deployer::{ExternalDeployer, TYPE},
    history::History,
    invariants,
    road::{Passage, Road},
    tree::{any, blueprint, config, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
    world::World,
};
use serde_json::{Value, json};

use super::away_targets::{behind_a_road, deploying};

/// Requests that are answered so.
const IN_VAIN: usize = 12;

/// A ConfigMap, an item of an external deployer, and another ConfigMap, one after the other.
fn tree() -> Value {
    let external = json!({"name": "elsewhere", "type": TYPE, "dependsOn": ["first"], "config": config("1")});
    let items = [deploys("first", &[], "1"), external, deploys("last", &["elsewhere"], "1")];
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
    on_cluster(installation("tree", &blueprint(fields)))
}

/// An operator at work, a road to its server, which is the target too, and what is seen there from now on.
async fn behind_its_road() -> (Arc<Road>, World, History, Effects) {
    let road = Arc::new(Road::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, road.clone()).await;
    world.start();
    world.ready().await;
    let history = History::begin(world.objects.client()).await;
    let effects = Effects::begin(world.objects.client()).await;
    (road, world, history, effects)
}

/// Nothing failed on the way, no rule was broken, and each ConfigMap was made once and deleted once.
async fn ended_as_if_nothing_had_been(world: World, history: &History, effects: &Effects) {
    let (seen, effects) = (history.until_now().await, effects.until_now(&world.objects).await);
    let broken = invariants::broken(seen.versions());
    assert!(broken.is_empty(), "{}\n{:#?}", broken.join("\n"), seen.message_of());
    let failed: Vec<_> = seen.versions().iter().filter(|version| version.phase().ends_with("Failed")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for (name, contents) in effects::by_name(&effects) {
        assert_eq!(contents, [Some("1".to_owned()), None], "{name}");
    }
    world.end().await;
}

/// The tree is at its item of an external deployer when the server changes; it ends and goes as if nothing had been.
async fn survives(passage: Passage) {
    let (road, world, history, effects) = behind_its_road().await;
    world.objects.apply(&tree()).await;
    ExternalDeployer(&world.objects).triggered("elsewhere").await;
    road.switch(passage.clone());
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    road.asked_in_vain(IN_VAIN).await;
    road.switch(Passage::Open);
    world.objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    road.switch(passage);
    world.objects.delete(&any("Installation", "tree")).await;
    road.asked_in_vain(IN_VAIN).await;
    road.switch(Passage::Open);
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    world.objects.expect_absent(&any("Installation", "tree")).await;
    ended_as_if_nothing_had_been(world, &history, &effects).await;
}

#[tokio::test]
async fn c_182_each_write_that_is_answered_429_the_first_time_is_made_again_and_fails_no_job() {
    let (road, world, history, effects) = behind_its_road().await;
    road.switch(Passage::BusyAtFirst(1));
    world.objects.apply(&tree()).await;
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    world.objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let refused = road.in_vain();
    for kind in ["executions", "deployitems", "configmaps"] {
        let is_made = |asked: &&String| !asked.starts_with("WATCH") && asked.contains(&format!("/{kind}"));
        assert!(refused.keys().any(|asked| is_made(&asked)), "no {kind} were refused: {refused:#?}");
    }
    road.switch(Passage::BusyAtFirst(1));
    world.objects.delete(&any("Installation", "tree")).await;
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    world.objects.expect_absent(&any("Installation", "tree")).await;
    ended_as_if_nothing_had_been(world, &history, &effects).await;
}

#[tokio::test]
async fn c_182_a_server_that_answers_429_with_retry_after_fails_no_job() {
    survives(Passage::Busy(1)).await;
}

/// It is asked again within a request for a while, and by the item after that.
#[tokio::test]
async fn c_182_a_target_that_answers_429_for_long_delays_its_items_and_fails_no_job() {
    let cluster = crate::cluster().await;
    let (road, _proxy) = behind_a_road(&cluster).await;
    road.switch(Passage::Busy(1));
    cluster.apply(&deploying("away", "root", &[deploys("first", &[], "1")])).await;
    road.asked_in_vain(IN_VAIN).await;
    let root = cluster.expect(&any("Installation", "root")).await;
    assert_eq!(root["status"]["phase"], "Progressing", "{root:#}");
    road.switch(Passage::Open);
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

#[tokio::test]
async fn c_182_watches_that_are_answered_with_410_are_begun_anew_and_fail_no_job() {
    survives(Passage::Expired).await;
}
