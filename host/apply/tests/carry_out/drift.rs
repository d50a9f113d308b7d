//! Drift against an API server: with the rights that there are, and in the versions that are served.

use std::sync::Arc;

use jiff::Timestamp;
use orangery_apply::{DriftFinding, ItemState, Job, Purpose, TrackedManifest, find, manifest, manifest_objects, watch};
use orangery_core::{
    port::Clock,
    step::{Halt, Step},
};
use orangery_proposal::{Proposal, drift_rules::DriftRules, overlay::Drift};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    identity::{DEFINITION, THING, definition, unserved, why},
    world::{LABEL, World, proposal, stage, write},
};

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// What is done with the job of the item and what it has written.
async fn with_job<T>(world: &World, work: impl AsyncFnOnce(&Job<'_>, &ItemState) -> T) -> T {
    let (clusters, labels) = (world.clusters(), [LABEL.to_owned()]);
    let job = Job {
        id: &"drift".into(),
        purpose: Purpose::Install,
        owner: &world.owner,
        labels: &labels,
        grants: &world.grants,
        clusters: &clusters,
        items: &world.items,
        clock: &Still,
        removes_its_own_alone: false,
        is_current: &|| true,
        recorded: None,
    };
    work(&job, &world.status.state).await
}

/// What is found on demand.
async fn found(world: &World, written: &Proposal) -> Vec<DriftFinding> {
    let find = async |job: &Job<'_>, state: &ItemState| {
        let written = manifest_objects(manifest(None, written, &state.inventory), &state.inventory);
        find(job, written, &DriftRules::default()).await
    };
    with_job(world, find).await.unwrap().into_values().collect()
}

/// What feeds tell, when all is known.
async fn watched(world: &World, written: &Proposal) -> Step<Vec<DriftFinding>> {
    let woken = Arc::new(Notify::new());
    let wake = Arc::clone(&woken);
    let follow = async |job: &Job<'_>, state: &ItemState| {
        let written = manifest_objects(manifest(None, written, &state.inventory), &state.inventory);
        let (clock, wake): (Arc<dyn Clock>, _) = (Arc::new(Still), Arc::new(move || wake.notify_one()));
        let owner = (job.owner, job.labels);
        let clusters = state.clusters.clone();
        let tracked = TrackedManifest::new(DriftRules::default(), owner, (&clock, wake), clusters, written);
        let tracked = Arc::new(tracked);
        watch(job, &tracked).await?;
        while !tracked.is_complete() {
            woken.notified().await;
        }
        Ok(tracked.drifted().into_values().map(|drifted| drifted.finding).collect())
    };
    with_job(world, follow).await
}

#[tokio::test]
async fn c_55_credentials_that_may_not_update_what_was_written_are_enough_to_find_drift() {
    let mut world = World::new().await;
    let written = proposal(json!({"stages": [stage(&[write("x", "v")])]}));
    world.run("j", &written).await;
    world.send("PATCH", "/api/v1/namespaces/default/configmaps/x", &json!({"data": {"k": "theirs"}})).await;
    let different = [DriftFinding::Different(vec![Drift::Different("/data/k".to_owned())])];
    assert_eq!(found(&world, &written).await, different);
    world.traffic.forbid_updates();
    assert_eq!(found(&world, &written).await, different);
}

#[tokio::test]
async fn c_35_c_321_drift_is_looked_for_in_the_cluster_that_was_written_to_and_in_no_other() {
    let written = proposal(json!({"stages": [stage(&[write("x", "v")])]}));
    let mut world = World::new().await;
    world.run("j", &written).await;
    assert_eq!(watched(&world, &written).await, Ok(vec![]));
    world.traffic.hide_identity(true);
    world.restart();
    let told = "whether the target cluster is the cluster that the last job wrote to cannot be told: its credentials may not get the \
                Namespace kube-system any more; let them";
    assert_eq!(why(watched(&world, &written).await), told);
    world.traffic.hide_identity(false);
    world.swap_cluster().await;
    let told = "the target cluster is another cluster than the one that the last job wrote to";
    assert_eq!(why(watched(&world, &written).await), told);

    let mut world = World::new().await;
    world.traffic.hide_identity(true);
    world.run("j", &written).await;
    assert_eq!(watched(&world, &written).await, Ok(vec![]));
    world.traffic.hide_identity(false);
    world.restart();
    assert_eq!(watched(&world, &written).await, Ok(vec![]), "the address is the same");
    world.swap_cluster().await;
    let told = "the target cluster is the cluster of the test, second now, and the last job wrote to the cluster of the test, first; \
                the next job looks at it";
    assert_eq!(why(watched(&world, &written).await), told);
}

#[tokio::test]
async fn c_295_what_takes_more_memory_to_be_compared_than_a_namespace_has_is_told_and_not_watched() {
    let written = proposal(json!({"stages": [stage(&[write("x", &"v".repeat(200_000))])]}));
    let mut world = World::new().await;
    world.run("j", &written).await;
    world.restart_with(4 << 20);
    assert_eq!(watched(&world, &written).await, Ok(vec![]));
    world.restart_with(1 << 20);
    let told = why(watched(&world, &written).await);
    assert!(told.starts_with("what was written of ConfigMap default/x takes "), "{told}");
    let how = "bytes of memory to be compared, and a namespace has 524288; make the object smaller, or look for no drift of the item";
    assert!(told.ends_with(how), "{told}");
}

fn thing() -> Proposal {
    let thing =
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}});
    proposal(json!({"stages": [stage(&[json!({"object": thing, "how": "replace"})])]}))
}

#[tokio::test]
async fn c_55_an_object_whose_version_is_not_served_any_more_is_watched_in_one_that_is() {
    let world = unserved(false).await;
    assert_eq!(
        (watched(&world, &thing()).await, found(&world, &thing()).await),
        (Ok(vec![]), vec![DriftFinding::AsWritten])
    );
    world.send("DELETE", THING, &Value::Null).await;
    assert_eq!(watched(&world, &thing()).await, Ok(vec![DriftFinding::Missing]));
    // Whether it is there is not known where no version is served.
    let mut none = definition([false, true]);
    none["spec"]["versions"][1]["served"] = json!(false);
    world.send("PATCH", DEFINITION, &json!({"spec": none["spec"]})).await;
    let Err(Halt::Retry(failure)) = watched(&world, &thing()).await else { panic!("it is not known") };
    assert!(failure.message.contains("Thing"), "{failure:?}");
}
