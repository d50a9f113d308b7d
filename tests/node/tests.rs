use orangery_tests::tree::API;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    installed::{Installed, RELEASE},
    objects::{TEAM, config_map, deployment, installation, manifest, release},
};

/// A release of the chart with a hook that runs, and with a workload that becomes ready.
const HOOKED: &str = "
apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {helm.sh/hook: pre-install}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: 'local/busybox:1', command: ['true']}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: 'local/busybox:1', command: [sleep, '3600']}]
";

/// An Installation for each component that ships, and one thing that it deploys.
fn of_all() -> [(&'static str, Value); 3] {
    [
        ("Jinja", manifest("of-jinja", config_map("of-jinja"), "1m")),
        ("GoTemplate", release("web", HOOKED)),
        ("Spiff", manifest("of-spiff", config_map("of-spiff"), "1m")),
    ]
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_238_on_512_mebibytes_every_component_that_ships_works_in_the_image_that_brings_them_compiled() {
    let installed = Installed::with(&["resources.limits.memory=512Mi"]).await;
    installed.succeeds(&installation("all", &of_all())).await;
    let releases = installed.helm.tells(&["list", "--namespace", TEAM]).await;
    assert_eq!(releases[0]["status"], "deployed", "{releases:#}");
    let tested = installed.helm.does(&["test", RELEASE, "--namespace", RELEASE]).await;
    assert!(tested.contains("Phase:          Succeeded"), "{tested}");
    assert_eq!(installed.restarts().await, [json!(0)], "the operator was killed");
    installed.deletes("all").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_238_on_the_defaults_of_the_chart_every_component_that_ships_works() {
    let installed = Installed::with(&[]).await;
    let container = installed.container("").await;
    let said = |what: &str| eprintln!("{what}: {} MiB resident", installed.node.resident(&container));
    said("until it is ready");
    for (number, item) in of_all().into_iter().enumerate() {
        let name = format!("one-{number}");
        let began = Instant::now();
        installed.succeeds(&installation(&name, std::slice::from_ref(&item))).await;
        eprintln!("{} with its deployer: {:?}", item.0, began.elapsed());
        said(item.0);
    }
    assert_eq!(installed.restarts().await, [json!(0)], "the operator was killed");
    for number in 0..of_all().len() {
        installed.deletes(&format!("one-{number}")).await;
    }
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_241_a_fresh_pod_deploys_a_chart_at_once() {
    let installed = Installed::with(&[]).await;
    let pods = installed.pods().await;
    let before = pods[0]["metadata"]["name"].clone();
    installed.admin.delete(&pods[0]).await;
    let (began, of_kind) =
        (Instant::now(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": RELEASE}}));
    let template = config_map("of-chart").to_string();
    installed.admin.apply(&installation("first", &[("GoTemplate", release("chart", &template))])).await;
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let mut conditions = conditions.map(|condition| (&condition["type"], &condition["status"]));
        pod["metadata"]["name"] != before && conditions.any(|condition| condition == (&json!("Ready"), &json!("True")))
    };
    installed.admin.expect_that(&of_kind, "is another one and ready", ready).await;
    let until_ready = began.elapsed();
    installed.has_succeeded("first").await;
    let took = began.elapsed();
    eprintln!(
        "a pod that replaces another one is ready after {until_ready:?}, and has deployed a chart after {took:?}"
    );
    // Nothing was compiled, which takes half a minute.
    assert!(took.as_secs() < 15, "{took:?}");
    installed.deletes("first").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_46_where_memory_does_not_do_to_compile_the_item_says_so_and_the_operator_goes_on() {
    let installed = Installed::with(&["resources.limits.memory=1Gi", "cache.inImage=false"]).await;
    installed.admin.apply(&installation("chart", &[("Jinja", release("web", HOOKED))])).await;
    let kind = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"namespace": TEAM}});
    let sentence = "the compiler's share of a limit of 1024 MiB (give 2048 MiB, or compile it elsewhere";
    let says = |item: &Value| item["status"]["lastError"].to_string().contains(sentence);
    installed.admin.expect_that(&kind, "fails with what there is too little of", says).await;
    assert_eq!(installed.restarts().await, [json!(0)], "the operator was killed");
    installed.succeeds(&installation("small", &[("Jinja", manifest("small", config_map("small"), "1m"))])).await;
    installed.deletes("small").await;
    // Nothing of it was made.
    installed.deletes("chart").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_236_after_an_uninstall_in_order_nothing_hangs_and_the_operator_can_be_installed_again() {
    let installed = Installed::with(&[]).await;
    let app = installation("app", &[("Jinja", manifest("of-jinja", config_map("app"), "1m"))]);
    installed.succeeds(&app).await;
    let (code, told) = installed.tells(&["uninstall", "--check"]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("namespace team: 1 × DeployItem, 1 × Execution, 1 × Installation"), "{told}");
    installed.deletes("app").await;
    installed.helm.does(&["uninstall", RELEASE, "--namespace", RELEASE, "--wait"]).await;
    // Guards stay until somebody deletes what has them.
    let (code, told) = installed.tells(&["uninstall", "--release-guards", "--yes"]).await;
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = installed.tells(&["uninstall", "--check"]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("nothing would hang") && told.contains("Lease orangery/orangery would be left"), "{told}");
    installed.install(&[]).await;
    installed.succeeds(&app).await;
    installed.deletes("app").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_239_what_keeps_pods_is_told_while_they_are_waited_for_and_when_the_time_is_up() {
    let installed = Installed::with(&[]).await;
    let crash = json!(["sh", "-c", "echo no such table >/dev/termination-log; exit 3"]);
    // Without a probe each start would count as ready, for a moment.
    let probe = json!({"exec": {"command": ["true"]}, "initialDelaySeconds": 5});
    let kept = [
        ("Jinja", "absent", json!({"image": "127.0.0.1:1/absent:1"}), "ImagePull"),
        (
            "GoTemplate",
            "crashing",
            json!({"image": "local/busybox:1", "command": crash, "readinessProbe": probe}),
            "CrashLoopBackOff, it ended with exit code 3: no such table",
        ),
        (
            "Spiff",
            "large",
            json!({"image": "local/busybox:1", "resources": {"requests": {"cpu": "1000"}}}),
            "is Unschedulable: 0/1 nodes are available",
        ),
        (
            "Jinja",
            "hungry",
            json!({
                "image": "local/busybox:1", "command": ["tail", "/dev/zero"], "readinessProbe": probe,
                "resources": {"limits": {"memory": "24Mi"}},
            }),
            "CrashLoopBackOff, it ended with exit code 137 (OOMKilled)",
        ),
    ];
    let items =
        kept.clone().map(|(engine, name, container, _)| (engine, manifest(name, deployment(name, container), "40s")));
    installed.admin.apply(&installation("kept", &items)).await;
    let kind = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"namespace": TEAM}});
    let says = |object: &Value, word: &str, conditions: &str| {
        object.pointer(conditions).is_some_and(|of| of.to_string().contains(word))
    };
    for (_, _, _, word) in &kept {
        installed
            .admin
            .expect_that(&kind, &format!("tells {word}"), |item| says(item, word, "/status/conditions"))
            .await;
    }
    let (_, why) = installed.tells(&["why", "installation/kept", "--namespace", TEAM]).await;
    assert!(kept.iter().any(|(_, _, _, word)| why.contains(word)), "{why}");
    for (_, _, _, word) in &kept {
        installed
            .admin
            .expect_that(&kind, &format!("fails with {word}"), |item| says(item, word, "/status/lastError"))
            .await;
    }
    installed.deletes("kept").await;
    installed.ends().await;
}
