//! Pods of the operator that end while it is at work.

use orangery_tests::{
    node::{IMAGE, tagged},
    tree::API,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    installed::{Installed, RELEASE},
    objects::{TEAM, config_map, deployment, installation, manifest, release},
};

/// A release of the chart with a hook that takes its time, and counts how often it ran.
const SLOW: &str = "
apiVersion: batch/v1
kind: Job
metadata:
  name: slow
  annotations: {helm.sh/hook: pre-install}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: 'local/busybox:1', command: [sleep, '15']}]
";

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_233_an_operator_whose_container_is_killed_goes_on_without_waiting_for_its_own_lease() {
    let installed = Installed::with(&[]).await;
    let before = installed.holder_after("").await;
    let container = installed.container(&before).await;
    let killed = Instant::now();
    installed.node.signal(&container, "SIGKILL").await;
    let after = installed.holder_after(&before).await;
    let took = killed.elapsed();
    // Before the Lease of 15 seconds has ended; a build for tests is slow to start.
    let most = if installed.node.is_of_release() { 2 } else { 10 };
    assert!(took.as_secs() < most, "{took:?}");
    let pod = |holder: &str| holder.rsplit_once('_').map(|(pod, _)| pod.to_owned());
    assert_eq!(pod(&before), pod(&after), "it is the same pod");
    eprintln!("a killed container is active again after {took:?}");
    installed.succeeds(&installation("after", &[("Jinja", manifest("of-jinja", config_map("after"), "1m"))])).await;
    installed.deletes("after").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_34_of_two_replicas_the_other_one_goes_on_at_once_when_the_active_pod_is_deleted() {
    let installed = Installed::with(&["replicas=2"]).await;
    let before = installed.holder_after("").await;
    let name = before.split('_').next().expect("the name of the pod");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": RELEASE}});
    let deleted = Instant::now();
    installed.admin.delete(&pod).await;
    let after = installed.holder_after(&before).await;
    let took = deleted.elapsed();
    assert!(took.as_secs() < 5, "{took:?}");
    assert!(!after.starts_with(name), "{after}");
    eprintln!("another replica is active {took:?} after the deletion of the pod");
    installed.succeeds(&installation("after", &[("Jinja", manifest("of-jinja", config_map("after"), "1m"))])).await;
    installed.deletes("after").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_34_of_two_replicas_the_other_one_goes_on_after_fifteen_seconds_when_the_active_pod_answers_no_more() {
    let installed = Installed::with(&["replicas=2"]).await;
    let before = installed.holder_after("").await;
    let container = installed.container(&before).await;
    let stopped = Instant::now();
    installed.node.signal(&container, "SIGSTOP").await;
    let after = installed.holder_after(&before).await;
    let took = stopped.elapsed();
    assert!(took.as_secs() < 20, "{took:?}");
    eprintln!("another replica is active {took:?} after the active one has stopped to answer");
    installed.node.signal(&container, "SIGCONT").await;
    installed.succeeds(&installation("after", &[("Jinja", manifest("of-jinja", config_map("after"), "1m"))])).await;
    assert_eq!(installed.holder_after("").await, after, "the one that was stopped has taken the Lease back");
    installed.deletes("after").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_242_an_upgrade_in_the_middle_of_a_job_ends_it_as_if_there_had_been_none() {
    let installed = Installed::with(&[]).await;
    let before = installed.holder_after("").await;
    let slow = json!({"image": "local/busybox:1", "command": ["sleep", "3600"], "readinessProbe": {
        "exec": {"command": ["true"]}, "initialDelaySeconds": 15,
    }});
    let items =
        [("GoTemplate", release("slow", SLOW)), ("Jinja", manifest("of-jinja", deployment("slow", slow), "3m"))];
    installed.admin.apply(&installation("long", &items)).await;
    let of_kind =
        |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": TEAM}});
    let running = |pod: &Value| pod["status"]["phase"] == "Running" && pod["metadata"]["labels"]["job-name"] == "slow";
    let hook = installed.admin.expect_that(&of_kind("v1", "Pod"), "is the hook at work", running).await;
    let job = |object: &Value| object["status"]["jobID"].clone();
    let installations = of_kind(API, "Installation");
    let at_work = installed.admin.expect_that(&installations, "is at work", |object| job(object).is_string()).await;
    installed.helm_with("upgrade", &[&tagged(IMAGE.2), "cache.inImage=true"], &[], &["--wait"]).await;
    let after = installed.holder_after(&before).await;
    assert_ne!(before.split('_').next(), after.split('_').next(), "it is the same pod");
    let ended = installed.has_succeeded("long").await;
    assert_eq!(job(&ended), job(&at_work), "another job has begun");
    // Nothing began again, neither the hook nor the release.
    let jobs = installed.admin.list(&of_kind("batch/v1", "Job")).await;
    let hooks: Vec<&Value> = jobs.iter().map(|job| &job["metadata"]["uid"]).collect();
    assert_eq!(hooks, [&hook["metadata"]["ownerReferences"][0]["uid"]]);
    assert_eq!(installed.helm.history("slow", TEAM).await, [(1, "deployed".to_owned())]);
    installed.deletes("long").await;
    installed.ends().await;
}
