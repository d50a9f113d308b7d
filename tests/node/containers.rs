//! Container items, whose programs run in pods of the node.

use orangery_tests::{containers::left_of_items, tree::API};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    installed::Installed,
    objects::{TEAM, installation, namespace},
};

pub(crate) const GROUP: &str = "container.deployer.landscaper.gardener.cloud";

/// Counts its runs, and exports what it finds. The first deletion fails.
const PROGRAM: &str = r#"
set -e
n=$(cat $STATE_PATH/count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $STATE_PATH/count
if [ "$OPERATION" = DELETE ]; then
  [ $n -gt 3 ] || { echo not yet > /dev/termination-log; exit 4; }
  exit 0
fi
touch $STATE_PATH/../of-the-program
cat > $EXPORTS_PATH <<END
count: $n
operation: $OPERATION
user: "$(id -u):$(id -g)"
imports: $(cat $IMPORTS_PATH)
target: $(cat $TARGET_PATH)
content: "$(cd $CONTENT_PATH; find . -type f | sort | tr '\n' ' ')"
owner: "$(stat -c %u:%g $CONTENT_PATH/blueprint.yaml)"
secrets: "$(ls -d /var/run/secrets 2>/dev/null || echo none)"
variables: "$(env | cut -d= -f1 | grep -v KUBERNETES | sort | tr '\n' ' ')"
END
"#;

/// An item that runs a script.
pub(crate) fn item(script: &str, fields: &Value) -> Value {
    let mut config = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProviderConfiguration", "image": "local/busybox:1",
        "command": ["sh", "-c", script],
        "importValues": {"a": [1, "x"]},
        "blueprint": {"inline": {"filesystem": {"blueprint.yaml": "a: 1\n", "docs": {"a.md": "x"}}}},
    });
    if let (Some(config), Some(fields)) = (config.as_object_mut(), fields["config"].as_object()) {
        config.extend(fields.clone());
    }
    json!({"name": "task", "type": "landscaper.gardener.cloud/container", "target": {"import": "cluster"},
        "timeout": fields["timeout"].as_str().unwrap_or("3m"), "config": config})
}

/// An operator that runs containers, in a namespace whose service account may.
pub(crate) async fn installed() -> Installed {
    installed_with(&[]).await
}

/// The same with these values beside.
pub(crate) async fn installed_with(values: &[&str]) -> Installed {
    let installed = Installed::with(&[&["containers.enabled=true", "defaultPolicy=compatible"], values].concat()).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "containers", "namespace": TEAM},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "orangery-containers"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TEAM}],
    });
    installed.admin.apply(&binding).await;
    installed
}

pub(crate) fn kind(kind: &str) -> Value {
    json!({"apiVersion": API, "kind": kind, "metadata": {"namespace": TEAM}})
}

/// Waits until the item has ended a job other than this one in a phase, and answers it.
pub(crate) async fn ended(installed: &Installed, phase: &str, before: &Value) -> Value {
    let is_it = |item: &Value| {
        let status = &item["status"];
        status["phase"] == phase && status["jobID"] == status["jobIDFinished"] && status["jobID"] != *before
    };
    installed.admin.expect_that(&kind("DeployItem"), "has ended its job", is_it).await
}

pub(crate) async fn asks_again(installed: &Installed, name: &str) {
    let object = json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": name, "namespace": TEAM}});
    installed.admin.annotate(&object, json!({"landscaper.gardener.cloud/operation": "reconcile"})).await;
}

/// What an item has exported.
pub(crate) async fn exported(installed: &Installed, item: &Value) -> Value {
    let name = item["status"]["exportRef"]["name"].clone();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": TEAM}});
    let secret = installed.admin.expect(&secret).await;
    let text = data_encoding::BASE64.decode(secret["data"]["config"].as_str().expect("exports").as_bytes());
    serde_json::from_slice(&text.expect("base64")).expect("JSON")
}

/// A pod of an item that does this, once it does.
pub(crate) async fn pod_that(installed: &Installed, what: &str, does: impl Fn(&Value) -> bool) -> Value {
    let of_kind = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": TEAM}});
    let label = format!("deployitem.{GROUP}/name");
    let is_ours = |pod: &Value| pod["metadata"]["labels"].get(&label).is_some();
    installed.admin.expect_that(&of_kind, what, |pod| is_ours(pod) && does(pod)).await
}

/// Whether the program of a pod runs.
pub(crate) fn runs(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].as_array();
    let mut statuses = statuses.into_iter().flatten();
    statuses.any(|status| status["name"] == "main" && status["state"].get("running").is_some())
}

/// The Secrets with states: UUID and number of each piece.
pub(crate) async fn pieces(installed: &Installed) -> Vec<(String, String)> {
    let of_kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": TEAM}});
    let secrets = installed.admin.list(&of_kind).await;
    let is_state = |secret: &&Value| secret["metadata"]["labels"][format!("{GROUP}/type")] == "state";
    let annotation = |secret: &Value, name: &str| {
        secret["metadata"]["annotations"][format!("{GROUP}/{name}")].as_str().unwrap_or_default().to_owned()
    };
    let mut found: Vec<(String, String)> =
        secrets.iter().filter(is_state).map(|secret| (annotation(secret, "uuid"), annotation(secret, "num"))).collect();
    found.sort();
    found
}

/// What is left of an item's objects: kind and name of each.
pub(crate) async fn left(installed: &Installed) -> Vec<String> {
    left_of_items(&installed.admin, TEAM).await
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_19_a_program_gets_what_it_was_promised_and_nothing_else_and_its_state_comes_back() {
    let installed = installed().await;
    let bare = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": TEAM},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "local/busybox:1", "command": ["true"]}]},
    });
    let begun = Instant::now();
    installed.admin.apply(&bare).await;
    let mut ended_pod = bare.clone();
    ended_pod["status"] = json!({"phase": "Succeeded"});
    installed.admin.expect(&ended_pod).await;
    eprintln!("a bare pod took {:?}", begun.elapsed());
    installed.admin.delete(&bare).await;
    let begun = Instant::now();
    installed.succeeds(&installation("task", &[("Jinja", item(PROGRAM, &json!({})))])).await;
    eprintln!("an Installation of one container item took {:?}", begun.elapsed());
    let first = ended(&installed, "Succeeded", &Value::Null).await;
    let exports = exported(&installed, &first).await;
    let told = |name: &str| exports[name].as_str().unwrap_or_default().trim().to_owned();
    assert_eq!((&exports["count"], &exports["imports"]), (&json!(1), &json!({"a": [1, "x"]})), "{exports:#}");
    assert_eq!(
        exports["target"]["target"]["metadata"]["name"].as_str().map(|name| name.contains("cluster")),
        Some(true)
    );
    let words = ["operation", "user", "content", "owner", "secrets"].map(told);
    assert_eq!(words, ["RECONCILE", "1000:3000", "./blueprint.yaml ./docs/a.md", "1000:2000", "none"]);
    let told = told("variables");
    let variables: Vec<&str> =
        told.split(' ').filter(|name| !["HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "_"].contains(name)).collect();
    let promised = [
        "COMPONENT_DESCRIPTOR_PATH",
        "CONTENT_PATH",
        "EXPORTS_PATH",
        "IMPORTS_PATH",
        "OPERATION",
        "POD_NAME",
        "POD_NAMESPACE",
        "STATE_PATH",
        "TARGET_PATH",
    ];
    assert_eq!(variables, promised);
    let left_first = left(&installed).await;
    assert!(left_first.len() == 1 && left_first[0].starts_with("Secret state-"), "{left_first:?}");
    asks_again(&installed, "task").await;
    let second = ended(&installed, "Succeeded", &first["status"]["jobID"]).await;
    assert_eq!(exported(&installed, &second).await["count"], json!(2));
    let left_second = left(&installed).await;
    assert!(left_second.len() == 1 && left_second != left_first, "{left_second:?}");

    // The deletion runs with the last state, and fails once.
    let object = json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": "task", "namespace": TEAM}});
    installed.admin.delete(&object).await;
    let failed = ended(&installed, "DeleteFailed", &Value::Null).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the container main ended with exit code 4: not yet"), "{message}");
    asks_again(&installed, "task").await;
    installed.admin.expect_absent(&object).await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_20_what_ends_a_run_is_told_and_nothing_of_it_stays() {
    let installed = installed().await;
    let fails = async |name: &str, script: &str, fields: Value, words: &str| {
        installed.admin.apply(&installation(name, &[("Jinja", item(script, &fields))])).await;
        let failed = ended(&installed, "Failed", &Value::Null).await;
        let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{name}: {message}");
        installed.deletes(name).await;
        assert_eq!(left(&installed).await, Vec::<String>::new(), "{name}");
        failed
    };
    let no_exports = "echo 'a: 1' > $EXPORTS_PATH; echo gone; echo no disk > /dev/termination-log; exit 3";
    let failed = fails("code", no_exports, json!({}), "the container main ended with exit code 3: no disk").await;
    assert_eq!(failed["status"].get("exportRef"), None);
    assert_eq!(failed["status"]["providerStatus"]["podStatus"]["containerStatus"]["exitCode"], json!(3));
    let link = "ln -s /var/run/secrets/kubernetes.io/serviceaccount/token $EXPORTS_PATH";
    fails(
        "link",
        link,
        json!({}),
        "the container wait ended with exit code 1: /data/ls/shared/exports/values leads out of",
    )
    .await;
    let stops = "trap 'exit 0' TERM; sleep 3600 & wait";
    fails("time", stops, json!({"timeout": "20s"}), "the item did not finish within its timeout of 20s").await;
    fails("image", "", json!({"config": {"image": "127.0.0.1:1/absent:1"}}), "the container main cannot begin, ").await;
    installed.ends().await;
}

/// Keeps more than a Secret holds, and exports what it finds of it and what it leaves.
pub(crate) const LARGE: &str = r#"
set -e
found=none; [ ! -f $STATE_PATH/blob ] || found=$(sha256sum < $STATE_PATH/blob | cut -d' ' -f1)
[ -f $STATE_PATH/blob ] || head -c 1500000 /dev/urandom > $STATE_PATH/blob
printf 'found: %s\nleft: %s\n' "$found" "$(sha256sum < $STATE_PATH/blob | cut -d' ' -f1)" > $EXPORTS_PATH
"#;

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_12_con_27_a_state_of_more_than_a_mebibyte_comes_back_byte_for_byte_and_hides_no_message() {
    let installed = installed().await;
    installed.succeeds(&installation("task", &[("Jinja", item(LARGE, &json!({})))])).await;
    let first = ended(&installed, "Succeeded", &Value::Null).await;
    let left = exported(&installed, &first).await["left"].clone();
    let (mut job, mut before) = (first["status"]["jobID"].clone(), Vec::new());
    for _ in 0..2 {
        let now = pieces(&installed).await;
        let uuids = now.iter().map(|(uuid, _)| uuid.as_str());
        assert!(uuids.clone().all(|uuid| uuid == now[0].0 && !uuid.is_empty()), "{now:?}");
        assert_eq!(now.iter().map(|(_, number)| number.as_str()).collect::<Vec<_>>(), ["0", "1"]);
        assert_ne!(now, before);
        before = now;
        asks_again(&installed, "task").await;
        let again = ended(&installed, "Succeeded", &job).await;
        assert_eq!(exported(&installed, &again).await, json!({"found": left, "left": left}));
        job = again["status"]["jobID"].clone();
    }
    // What was read of the state hides nothing of what a run says.
    let fails = "echo no disk > /dev/termination-log; exit 3";
    installed.admin.apply(&installation("task", &[("Jinja", item(fails, &json!({})))])).await;
    let failed = ended(&installed, "Failed", &job).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the container main ended with exit code 3: no disk"), "{message}");
    installed.admin.annotate(&failed, json!({format!("{GROUP}/force-cleanup"): "true"})).await;
    installed.deletes("task").await;
    assert_eq!(pieces(&installed).await, Vec::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_31_many_exports_hide_no_message_of_their_namespace() {
    let installed = installed().await;
    let many = "printf 'blob: %s\\n' \"$(head -c 500000 /dev/urandom | base64 -w0)\" > $EXPORTS_PATH";
    installed.succeeds(&installation("task", &[("Jinja", item(many, &json!({})))])).await;
    let first = ended(&installed, "Succeeded", &Value::Null).await;
    let blob = exported(&installed, &first).await["blob"].as_str().map_or(0, str::len);
    assert!(blob > 600_000, "{blob}");
    let fails = "echo no disk > /dev/termination-log; exit 3";
    installed.admin.apply(&installation("other", &[("Jinja", item(fails, &json!({})))])).await;
    let failed = ended(&installed, "Failed", &Value::Null).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the container main ended with exit code 3: no disk"), "{message}");
    for name in ["task", "other"] {
        installed.deletes(name).await;
    }
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

/// Runs until it is told to end.
pub(crate) const ENDLESS: &str = "trap 'exit 0' TERM; sleep 3600 & wait";

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_277_an_interrupt_ends_the_pod_and_the_next_job_has_one_of_its_own() {
    let installed = installed().await;
    let endless = installation("task", &[("Jinja", item(ENDLESS, &json!({})))]);
    installed.admin.apply(&endless).await;
    let first = pod_that(&installed, "runs", runs).await;
    let interrupted = installed.admin.list(&kind("DeployItem")).await[0]["status"]["jobID"].clone();
    installed.admin.annotate(&endless, json!({"landscaper.gardener.cloud/operation": "interrupt"})).await;
    let failed = ended(&installed, "Failed", &Value::Null).await;
    assert_eq!(
        (&failed["status"]["jobID"], &failed["status"]["lastError"]["reason"]),
        (&interrupted, &json!("InterruptOperation"))
    );
    let name = first["metadata"]["name"].clone();
    installed
        .admin
        .expect_absent(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": TEAM, "name": name}}))
        .await;
    let ends = "echo 'job: two' > $EXPORTS_PATH";
    installed.admin.apply(&installation("task", &[("Jinja", item(ends, &json!({})))])).await;
    let second = ended(&installed, "Succeeded", &interrupted).await;
    assert_eq!(exported(&installed, &second).await, json!({"job": "two"}));
    assert_ne!(second["status"]["providerStatus"]["podStatus"]["podName"], name);
    installed.deletes("task").await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_20_a_pod_that_is_deleted_or_killed_ends_its_item_and_one_whose_operator_goes_is_gone_on_with() {
    let installed = installed().await;
    let begins = async |script: &str| {
        installed.admin.apply(&installation("task", &[("Jinja", item(script, &json!({})))])).await;
        pod_that(&installed, "runs", runs).await
    };
    let fails = async |words: &str| {
        let failed = ended(&installed, "Failed", &Value::Null).await;
        let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(words), "{message}");
        installed.deletes("task").await;
        assert_eq!(left(&installed).await, Vec::<String>::new());
    };
    let pod = begins(ENDLESS).await;
    let at_once = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    installed.admin.delete_with(&pod, &at_once).await;
    fails("was deleted by somebody else while this job waited for it").await;
    let pod = begins(ENDLESS).await;
    let statuses = pod["status"]["containerStatuses"].as_array().expect("it runs");
    let main = statuses.iter().find(|status| status["name"] == "main").expect("it is there");
    installed.node.signal(main["containerID"].as_str().expect("its id"), "SIGKILL").await;
    fails("the container main ended with exit code 137").await;
    let pod = begins("sleep 8; echo 'a: 1' > $EXPORTS_PATH").await;
    let operator = installed.pods().await;
    installed.admin.delete_with(&operator[0], &at_once).await;
    let gone_on = ended(&installed, "Succeeded", &Value::Null).await;
    assert_eq!(exported(&installed, &gone_on).await, json!({"a": 1}));
    assert_eq!(gone_on["status"]["providerStatus"]["podStatus"]["podName"], pod["metadata"]["name"]);
    installed.deletes("task").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_22_a_pod_runs_on_the_cluster_of_the_target_and_nothing_of_it_stays() {
    let installed = installed().await;
    let elsewhere = "tasks";
    installed.admin.apply(&namespace(elsewhere, json!({}))).await;
    let fields = json!({"config": {"pod": {"cluster": "target", "namespace": elsewhere}}});
    let script = "echo \"in: $POD_NAMESPACE\" > $EXPORTS_PATH; echo kept > $STATE_PATH/a";
    installed.succeeds(&installation("task", &[("Jinja", item(script, &fields))])).await;
    let done = ended(&installed, "Succeeded", &Value::Null).await;
    assert_eq!(exported(&installed, &done).await, json!({"in": elsewhere}));
    installed.deletes("task").await;
    let label = format!("deployitem.{GROUP}/name");
    for kind in ["Pod", "Secret", "ServiceAccount"] {
        let of_kind = json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": elsewhere}});
        let all = installed.admin.list(&of_kind).await;
        assert!(all.iter().all(|object| object["metadata"]["labels"].get(&label).is_none()), "{kind}");
    }
    installed.admin.delete(&namespace(elsewhere, json!({}))).await;
    installed.ends().await;
}
