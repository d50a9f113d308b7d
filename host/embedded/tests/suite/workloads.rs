//! Simulated workloads: the status that controllers and a kubelet would write, without them.

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, WatchEvent, WatchParams},
};
use orangery_embedded::{Server, Storage};
use serde_json::{Value, json};

use crate::scaffold::*;

/// What the clock of the scaffold says.
const NOW: &str = "2027-01-15T08:00:00Z";
const DELAY: &str = "simulate.orangery.dev/delay";
const FAIL: &str = "simulate.orangery.dev/fail";
/// Long enough to be seen before it is over.
const SHORTLY: &str = "200ms";

async fn serve_simulated() -> (Server, Client) {
    serve_simulated_from(Storage::Memory).await
}

async fn serve_simulated_from(storage: Storage) -> (Server, Client) {
    let (mut server, client) = serve_from(storage).await.unwrap();
    server.simulate_workloads();
    (server, client)
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
        Some(named) => named,
        None => ("", object["apiVersion"].as_str().unwrap()),
    };
    dynamic(client, group, version, object["kind"].as_str().unwrap(), Some("default"))
}

fn workload(api_version: &str, kind: &str, annotations: Value, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", "annotations": annotations}, "spec": spec})
}

fn set(kind: &str, annotations: Value, mut spec: Value) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": "w"}});
    let template = json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    spec["template"] = template;
    workload("apps/v1", kind, annotations, spec)
}

fn job(annotations: Value, mut spec: Value) -> Value {
    spec["template"] = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    workload("batch/v1", "Job", annotations, spec)
}

fn pod(annotations: Value, restart_policy: &str) -> Value {
    let containers = json!([{"name": "c", "image": "i"}]);
    workload("v1", "Pod", annotations, json!({"restartPolicy": restart_policy, "containers": containers}))
}

/// Creates an object, and answers its status as soon as that holds what is asked.
async fn status_of(client: &Client, object: Value, holds: impl Fn(&Value) -> bool) -> Value {
    let api = api(client, &object);
    create(&api, object).await.unwrap();
    becomes(&api, "w", |object| holds(&object["status"])).await["status"].take()
}

/// The statuses that a watch tells from a version on, up to one that holds what is asked.
async fn statuses(api: &Api<DynamicObject>, from: &DynamicObject, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
    let from = from.metadata.resource_version.as_deref().unwrap();
    let mut events = api.watch(&WatchParams::default(), from).await.unwrap().boxed();
    let mut message = Vec::new();
    while let Some(event) = tokio::time::timeout(PATIENCE, events.try_next()).await.expect("no event came").unwrap() {
        let WatchEvent::Modified(object) = event else { panic!("a change was expected: {event:?}") };
        let status = object.data["status"].clone();
        let last = holds(&status);
        message.push(status);
        if last {
            break;
        }
    }
    message
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW})
}

/// Whether a workload's controller has looked at it.
fn observed(status: &Value) -> bool {
    status["observedGeneration"].is_number()
}

/// A condition of a kind whose conditions also have a time that nobody sets.
fn probed(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut condition = condition(kind, status, reason, message);
    condition["lastProbeTime"] = Value::Null;
    condition
}

/// The conditions Available and Progressing of a Deployment.
fn rollout(available: bool, progressing: &str, reason: &str, message: &str) -> Value {
    let available = match available {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    let mut conditions = [
        condition("Available", available.0, available.1, available.2),
        condition("Progressing", progressing, reason, message),
    ];
    for condition in &mut conditions {
        condition["lastUpdateTime"] = json!(NOW);
    }
    json!(conditions)
}

fn rolled_out() -> Value {
    rollout(true, "True", "NewReplicaSetAvailable", "The roll-out was simulated; no container runs.")
}

async fn failure_event(client: &Client, kind: &str) -> Value {
    let events = dynamic(client, "", "v1", "Event", Some("default"));
    let watch = events.watch(&WatchParams::default(), "0").await.unwrap();
    let of_kind = watch.try_filter_map(async |event| match event {
        WatchEvent::Added(event) if event.data["involvedObject"]["kind"] == json!(kind) => Ok(Some(event.data)),
        _ => Ok(None),
    });
    let event = tokio::time::timeout(PATIENCE, std::pin::pin!(of_kind).try_next()).await.expect("no event came");
    event.unwrap().unwrap()
}

#[tokio::test]
async fn a_deployment_is_rolled_out() {
    let (server, client) = serve_simulated().await;
    let status = status_of(&client, set("Deployment", json!({}), json!({"replicas": 3})), observed).await;
    let expected = json!({
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": rolled_out(),
    });
    assert_eq!(status, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_stateful_set_has_its_replicas_in_one_revision() {
    let (server, client) = serve_simulated().await;
    let status = status_of(&client, set("StatefulSet", json!({}), json!({"replicas": 2})), observed).await;
    let revision = status["updateRevision"].as_str().unwrap();
    assert!(revision.starts_with("w-"), "{revision}");
    let expected = json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "currentReplicas": 2, "currentRevision": revision, "updateRevision": revision, "collisionCount": 0,
    });
    assert_eq!(status, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_daemon_set_runs_on_one_node() {
    let (server, client) = serve_simulated().await;
    let status = status_of(&client, set("DaemonSet", json!({}), json!({})), observed).await;
    let expected = json!({
        "observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1,
        "numberReady": 1, "numberAvailable": 1, "numberMisscheduled": 0,
    });
    assert_eq!(status, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_replica_set_has_its_replicas() {
    let (server, client) = serve_simulated().await;
    let status = status_of(&client, set("ReplicaSet", json!({}), json!({"replicas": 2})), observed).await;
    let expected = json!({
        "observedGeneration": 1, "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    });
    assert_eq!(status, expected);
    let template = json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let controller = workload("v1", "ReplicationController", json!({}), json!({"replicas": 2, "template": template}));
    assert_eq!(status_of(&client, controller, observed).await, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_pod_that_is_restarted_runs_and_is_ready() {
    let (server, client) = serve_simulated().await;
    let mut pod = pod(json!({}), "Always");
    pod["spec"]["initContainers"] =
        json!([{"name": "first", "image": "i"}, {"name": "beside", "image": "i", "restartPolicy": "Always"}]);
    let mut status = status_of(&client, pod, |status| status["phase"] == "Running").await;
    let address = status["podIP"].take();
    assert!(address.as_str().unwrap().starts_with("10."), "{address}");
    let running = |name: &str| {
        json!({"name": name, "image": "i", "imageID": "", "state": {"running": {"startedAt": NOW}}, "lastState": {},
            "ready": true, "started": true, "restartCount": 0})
    };
    let ended = json!({"exitCode": 0, "reason": "Completed", "startedAt": NOW, "finishedAt": NOW});
    let holds = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": NOW});
    let expected = json!({
        "phase": "Running", "qosClass": "BestEffort", "podIP": null, "podIPs": [{"ip": address}], "startTime": NOW,
        "conditions": [holds("Initialized"), holds("Ready"), holds("ContainersReady"), holds("PodScheduled")],
        "initContainerStatuses": [
            {"name": "first", "image": "i", "imageID": "", "state": {"terminated": ended}, "lastState": {},
                "ready": true, "started": false, "restartCount": 0},
            running("beside"),
        ],
        "containerStatuses": [running("c")],
    });
    assert_eq!(status, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_pod_that_is_not_restarted_runs_to_its_end() {
    let (server, client) = serve_simulated().await;
    let status = status_of(&client, pod(json!({}), "Never"), |status| status["phase"] == "Succeeded").await;
    let ended = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "PodCompleted", "lastProbeTime": null, "lastTransitionTime": NOW});
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": NOW});
    let conditions =
        json!([ended("Initialized", "True"), ended("Ready", "False"), ended("ContainersReady", "False"), scheduled]);
    assert_eq!(status["conditions"], conditions);
    let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": NOW, "finishedAt": NOW}});
    assert_eq!(status["containerStatuses"][0]["state"], state);
    server.stop().await;
}

#[tokio::test]
async fn a_pod_that_fails_says_why() {
    let (server, client) = serve_simulated().await;
    let status = status_of(&client, pod(json!({FAIL: "no disk"}), "Never"), |status| status["phase"] == "Failed").await;
    let state = json!({"terminated":
        {"exitCode": 1, "reason": "Error", "message": "no disk", "startedAt": NOW, "finishedAt": NOW}});
    assert_eq!((&status["message"], &status["containerStatuses"][0]["state"]), (&json!("no disk"), &state));
    assert_eq!(failure_event(&client, "Pod").await["message"], json!("no disk"));
    server.stop().await;
}

#[tokio::test]
async fn a_pod_behind_a_scheduling_gate_waits() {
    let (server, client) = serve_simulated().await;
    let mut gated = pod(json!({}), "Always");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    let status = status_of(&client, gated.clone(), |status| status["conditions"].is_array()).await;
    let message = "Scheduling is blocked due to non-empty scheduling gates";
    let scheduled = probed("PodScheduled", "False", "SchedulingGated", message);
    assert_eq!(status, json!({"phase": "Pending", "qosClass": "BestEffort", "conditions": [scheduled]}));
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    let pods = api(&client, &gated);
    pods.patch("w", &PatchParams::default(), &open).await.unwrap();
    becomes(&pods, "w", |pod| pod["status"]["phase"] == "Running").await;
    server.stop().await;
}

#[tokio::test]
async fn a_job_completes() {
    let (server, client) = serve_simulated().await;
    let spec = json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed"});
    let status = status_of(&client, job(json!({}), spec), |status| status["succeeded"] == 3).await;
    let reached = |kind| probed(kind, "True", "CompletionsReached", "Reached expected number of succeeded pods");
    let expected = json!({
        "startTime": NOW, "completionTime": NOW, "succeeded": 3, "completedIndexes": "0-2", "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}, "conditions": [reached("SuccessCriteriaMet"), reached("Complete")],
    });
    assert_eq!(status, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_job_fails_after_its_delay() {
    let (server, client) = serve_simulated().await;
    let job = job(json!({DELAY: SHORTLY, FAIL: "no disk"}), json!({"backoffLimit": 2}));
    let jobs = api(&client, &job);
    let made = create(&jobs, job).await.unwrap();
    let message = statuses(&jobs, &made, |status| status["failed"].is_number()).await;
    let failed = |kind| probed(kind, "True", "BackoffLimitExceeded", "no disk");
    let running = json!({"startTime": NOW, "active": 1, "ready": 1, "uncountedTerminatedPods": {}});
    let ended = json!({
        "startTime": NOW, "failed": 3, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "conditions": [failed("FailureTarget"), failed("Failed")],
    });
    assert_eq!(message, [running, ended]);
    server.stop().await;
}

#[tokio::test]
async fn a_job_that_never_ends_meets_its_deadline() {
    let (server, client) = serve_simulated().await;
    let endless = job(json!({DELAY: "forever"}), json!({"activeDeadlineSeconds": 1}));
    let status = status_of(&client, endless, |status| status["conditions"].is_array()).await;
    let message = "Job was active longer than specified deadline";
    let failed = |kind| probed(kind, "True", "DeadlineExceeded", message);
    assert_eq!(status["conditions"], json!([failed("FailureTarget"), failed("Failed")]));
    server.stop().await;
}

#[tokio::test]
async fn numbers_that_are_too_large_stop_no_simulation() {
    let (server, client) = serve_simulated().await;
    let far = job(json!({DELAY: "forever"}), json!({"activeDeadlineSeconds": i64::MAX}));
    let status = status_of(&client, far.clone(), |status| status["active"] == 1).await;
    assert_eq!(status["conditions"], Value::Null);
    // The Jobs of the others go on.
    let mut other = job(json!({}), json!({}));
    other["metadata"]["name"] = json!("other");
    let jobs = api(&client, &far);
    create(&jobs, other).await.unwrap();
    becomes(&jobs, "other", |job| job["status"]["succeeded"] == 1).await;
    server.stop().await;
}

#[tokio::test]
async fn a_suspended_job_begins_when_it_is_resumed() {
    let (server, client) = serve_simulated().await;
    let suspended = job(json!({}), json!({"suspend": true}));
    let status = status_of(&client, suspended.clone(), |status| status["conditions"].is_array()).await;
    let expected = json!({"conditions": [probed("Suspended", "True", "JobSuspended", "Job suspended")], "uncountedTerminatedPods": {}});
    assert_eq!(status, expected);
    let jobs = api(&client, &suspended);
    let resume = Patch::Merge(json!({"spec": {"suspend": false}}));
    jobs.patch("w", &PatchParams::default(), &resume).await.unwrap();
    let done = becomes(&jobs, "w", |job| job["status"]["succeeded"] == 1).await;
    let resumed = probed("Suspended", "False", "JobResumed", "Job resumed");
    assert_eq!(done["status"]["conditions"][0], resumed);
    server.stop().await;
}

#[tokio::test]
async fn a_claim_is_bound() {
    let (server, client) = serve_simulated().await;
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = workload("v1", "PersistentVolumeClaim", json!({}), spec);
    let status = status_of(&client, claim, |status| status["phase"] != "Pending").await;
    assert_eq!(status, json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}));
    server.stop().await;
}

#[tokio::test]
async fn a_load_balancer_has_an_address_for_as_long_as_it_is_one() {
    let (server, client) = serve_simulated().await;
    let spec = json!({"type": "LoadBalancer", "clusterIP": "10.96.3.4", "ports": [{"port": 80}]});
    let service = workload("v1", "Service", json!({}), spec);
    let status = status_of(&client, service.clone(), |status| status != &json!({"loadBalancer": {}})).await;
    assert_eq!(status, json!({"loadBalancer": {"ingress": [{"ip": "198.18.3.4", "ipMode": "VIP"}]}}));
    let services = api(&client, &service);
    let plain = Patch::Merge(json!({"spec": {"type": "ClusterIP"}}));
    services.patch("w", &PatchParams::default(), &plain).await.unwrap();
    becomes(&services, "w", |service| service["status"] == json!({"loadBalancer": {}})).await;
    server.stop().await;
}

#[tokio::test]
async fn a_delay_is_waited_for_and_begins_anew_with_a_change() {
    let (server, client) = serve_simulated().await;
    let deployment = set("Deployment", json!({DELAY: SHORTLY}), json!({"replicas": 2}));
    let deployments = api(&client, &deployment);
    let made = create(&deployments, deployment).await.unwrap();
    let is_done = |generation: i64| {
        move |status: &Value| {
            status["observedGeneration"] == generation && status["updatedReplicas"] == status["readyReplicas"]
        }
    };
    let message = statuses(&deployments, &made, is_done(1)).await;
    let first = json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2,
        "conditions": rollout(false, "True", "ReplicaSetUpdated", "The roll-out of generation 1 is simulated."),
    });
    let full = |generation: i64, replicas: i64| {
        json!({
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas, "conditions": rolled_out(),
        })
    };
    assert_eq!(message, [first, full(1, 2)]);
    let more = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let changed = deployments.patch("w", &PatchParams::default(), &more).await.unwrap();
    let message = statuses(&deployments, &changed, is_done(2)).await;
    let rolling = json!({
        "observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "conditions": rollout(true, "True", "ReplicaSetUpdated", "The roll-out of generation 2 is simulated."),
    });
    assert_eq!(message, [rolling, full(2, 3)]);
    server.stop().await;
}

#[tokio::test]
async fn a_delay_that_is_taken_back_is_not_waited_for() {
    let (server, client) = serve_simulated().await;
    let deployment = set("Deployment", json!({DELAY: "168h"}), json!({}));
    let deployments = api(&client, &deployment);
    create(&deployments, deployment).await.unwrap();
    becomes(&deployments, "w", |object| object["status"]["unavailableReplicas"] == 1).await;
    let at_once = Patch::Merge(json!({"metadata": {"annotations": {DELAY: null}}}));
    deployments.patch("w", &PatchParams::default(), &at_once).await.unwrap();
    becomes(&deployments, "w", |object| object["status"]["readyReplicas"] == 1).await;
    server.stop().await;
}

#[tokio::test]
async fn what_takes_forever_is_left_to_others() {
    let (server, client) = serve_simulated().await;
    let deployment = set("Deployment", json!({DELAY: "forever"}), json!({}));
    let deployments = api(&client, &deployment);
    create(&deployments, deployment).await.unwrap();
    becomes(&deployments, "w", |object| object["status"]["unavailableReplicas"] == 1).await;
    let theirs = json!({"observedGeneration": 1, "replicas": 1, "readyReplicas": 1});
    let status = Patch::Merge(json!({"status": {"readyReplicas": 1, "unavailableReplicas": null}}));
    let patched = deployments.patch_status("w", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(patched.data["status"]["readyReplicas"], theirs["readyReplicas"]);
    // Changes of a kind are looked at in their order, so what is made later is settled later.
    let mut last = set("Deployment", json!({}), json!({}));
    last["metadata"]["name"] = json!("last");
    create(&deployments, last).await.unwrap();
    becomes(&deployments, "last", |object| object["status"]["readyReplicas"] == 1).await;
    let left = deployments.get("w").await.unwrap();
    assert_eq!(left.metadata.resource_version, patched.metadata.resource_version);
    server.stop().await;
}

#[tokio::test]
async fn a_deployment_that_fails_says_why_and_recovers() {
    let (server, client) = serve_simulated().await;
    let deployment = set("Deployment", json!({FAIL: "no disk"}), json!({}));
    let status = status_of(&client, deployment.clone(), observed).await;
    let expected = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
        "conditions": rollout(false, "False", "ProgressDeadlineExceeded", "no disk"),
    });
    assert_eq!(status, expected);
    let deployments = api(&client, &deployment);
    let well = Patch::Merge(json!({"metadata": {"annotations": {FAIL: null}}}));
    deployments.patch("w", &PatchParams::default(), &well).await.unwrap();
    becomes(&deployments, "w", |object| object["status"]["conditions"] == rolled_out()).await;
    server.stop().await;
}

#[tokio::test]
async fn a_kind_without_a_word_for_failure_stays_unready_and_has_an_event() {
    let (server, client) = serve_simulated().await;
    for kind in ["StatefulSet", "DaemonSet"] {
        let of_kind = set(kind, json!({DELAY: "5 parsecs"}), json!({}));
        let sets = api(&client, &of_kind);
        let made = create(&sets, of_kind).await.unwrap();
        let event = failure_event(&client, kind).await;
        let message = "the annotation simulate.orangery.dev/delay is \"5 parsecs\"; write a duration up to 168h, such as 500ms, 5s or 1m30s, or forever";
        let expected = json!({
            "involvedObject": {"apiVersion": "apps/v1", "kind": kind, "name": "w", "namespace": "default", "uid": made.metadata.uid},
            "type": "Warning", "reason": "SimulatedFailure", "message": message,
            "source": {"component": "workload-simulation"}, "firstTimestamp": NOW, "lastTimestamp": NOW, "count": 1, "eventTime": null,
            "reportingComponent": "workload-simulation", "reportingInstance": "",
        });
        assert_eq!(event, expected);
        let ready = if kind == "DaemonSet" { "numberReady" } else { "availableReplicas" };
        assert_eq!(sets.get("w").await.unwrap().data["status"][ready], json!(0));
    }
    let claim =
        workload("v1", "PersistentVolumeClaim", json!({FAIL: "no disk"}), json!({"accessModes": ["ReadWriteOnce"]}));
    let status = status_of(&client, claim, |_| true).await;
    assert_eq!(failure_event(&client, "PersistentVolumeClaim").await["message"], json!("no disk"));
    assert_eq!(status, json!({"phase": "Pending"}));
    server.stop().await;
}

#[tokio::test]
async fn what_lay_there_before_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = serve_folder(folder.path()).await;
    let deployment = set("Deployment", json!({DELAY: "1ms"}), json!({}));
    let deployments = api(&client, &deployment);
    let made = create(&deployments, deployment.clone()).await.unwrap();
    assert_eq!(made.data["status"], json!({}), "without being told to the server simulates nothing");
    server.stop().await;
    let (server, client) = serve_simulated_from(Storage::Folder(folder.path().to_owned())).await;
    becomes(&api(&client, &deployment), "w", |object| object["status"]["readyReplicas"] == 1).await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_settled_is_written_once() {
    let (server, client) = serve_simulated().await;
    let deployment = set("Deployment", json!({}), json!({}));
    let deployments = api(&client, &deployment);
    let made = create(&deployments, deployment).await.unwrap();
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    becomes(&deployments, "w", |object| object["status"]["readyReplicas"] == 1).await;
    deployments.patch("w", &PatchParams::default(), &label).await.unwrap();
    let mut last = set("Deployment", json!({}), json!({}));
    last["metadata"]["name"] = json!("last");
    create(&deployments, last).await.unwrap();
    becomes(&deployments, "last", |object| object["status"]["readyReplicas"] == 1).await;
    let from = made.metadata.resource_version.unwrap();
    let params = WatchParams::default().fields("metadata.name=w");
    let events = deployments.watch(&params, &from).await.unwrap();
    let changes: Vec<_> = events.take(2).try_collect().await.unwrap();
    let versions = changes.iter().map(|event| match event {
        WatchEvent::Modified(object) => {
            (object.metadata.labels.is_some(), object.data["status"]["readyReplicas"].clone())
        }
        other => panic!("a change was expected: {other:?}"),
    });
    assert_eq!(versions.collect::<Vec<_>>(), [(false, json!(1)), (true, json!(1))]);
    let now = deployments.get("w").await.unwrap().metadata.resource_version;
    let last = match changes.last() {
        Some(WatchEvent::Modified(object)) => object.metadata.resource_version.clone(),
        other => panic!("a change was expected: {other:?}"),
    };
    assert_eq!(now, last);
    server.stop().await;
}
