//! Jobs that an operator of an earlier build began (ORC-06). Each folder of `tests/upgrades` is of one version; before a release
//! its own is recorded, what is there already stays as it is:
//!
//! ```text
//! RECORD=0.2.0 cargo test --workspace --test cluster -- upgrades
//! ```
//!
//! Two builds beside each other are played by `-- freezes` with `OLDER`, the path of an older binary: its operator freezes, and
//! the one under test goes on. With `RECORD` that binary is recorded.

use std::{env, fs, path::PathBuf};

use orangery_tests::{
    chart::{item, packed},
    crash_points::{Deed, Scenario},
    former_cluster::{FormerCluster, MOVING},
    objects::NAMESPACE,
    repository,
    tree::{
        becomes_ready, blueprint, deploys, executions, imports_cluster, installation, mocks, on_cluster,
        subinstallation,
    },
    upgrades,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// An Installation `tree` of items, with a sub-installation of one item. Nothing of it has a deadline: it lies still for years.
fn tree(mut items: Vec<Value>, content: &str) -> Value {
    let mut leaf = deploys("leaf", &[], content);
    for item in items.iter_mut().chain([&mut leaf]) {
        item["timeout"] = json!("none");
    }
    let leaf = json!({"imports": imports_cluster(), "deployExecutions": executions(&[leaf])});
    let sub = on_cluster(subinstallation("sub", &blueprint(leaf)));
    let fields = json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(&items),
        "subinstallations": [sub],
    });
    on_cluster(installation("tree", &blueprint(fields)))
}

fn whole(content: &str) -> Value {
    let items = [deploys("base", &[], content), mocks("middle", &["base"], "Succeeded", content)];
    tree([&items[..], &[deploys("top", &["middle"], content)]].concat(), content)
}

/// What is recorded, and the name of it.
fn scenarios() -> [(&'static str, Scenario); 3] {
    let less = tree(vec![mocks("middle", &[], "Succeeded", "2"), deploys("new", &["middle"], "2")], "2");
    [
        ("first-job", Scenario { given: vec![], before: None, deed: Deed::Apply(whole("1")) }),
        ("update", Scenario { given: vec![], before: Some(whole("1")), deed: Deed::Apply(less) }),
        ("deletion", Scenario { given: vec![], before: Some(whole("1")), deed: Deed::Delete }),
    ]
}

/// A tree of two items, whose Target leads to another cluster in the job that is recorded: what they had deployed in the former one
/// goes, with the credentials that were kept for it (C-35).
fn moving_scenario() -> [(&'static str, Scenario); 1] {
    let tree = |content: &str| {
        let mut items = [deploys("base", &[], content), deploys("top", &["base"], content)];
        items.iter_mut().for_each(|item| item["timeout"] = json!("none"));
        let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
        let mut tree = on_cluster(installation("tree", &blueprint(fields)));
        tree["spec"]["imports"]["targets"][0]["target"] = json!(MOVING);
        tree
    };
    let given = vec![FormerCluster::target()];
    [("moved", Scenario { given, before: Some(tree("1")), deed: Deed::Move(tree("2")) })]
}

/// An Installation `tree` with what has a state of its own in mid-job: exports, a check that another item fulfils, a release of
/// Helm with a hook, and sub-installations of which one exports to the other.
fn rich(content: &str) -> Value {
    let exports = json!({"exports": [{
        "key": "out", "jsonPath": ".data.content",
        "fromResource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "base", "namespace": NAMESPACE},
    }]});
    let mut base = deploys("base", &[], content);
    base["config"]["exports"] = exports;
    let mut checked = becomes_ready("checked", &["base"]);
    let check = &mut checked["config"]["readinessChecks"]["custom"][0];
    check["resourceSelector"]["name"] = json!("switch");
    check["requirements"] = json!([{"jsonPath": ".data.content", "operator": "==", "values": [{"value": content}]}]);
    let hook = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {\"helm.sh/hook\": \"pre-install,pre-upgrade\"}}\n";
    let config_map =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: released}}\ndata: {{content: '{content}'}}\n");
    let packed = packed("1.0.0", &[("hook.yaml", hook), ("released.yaml", &config_map)]);
    let release = item(&packed, &json!({}));
    let release = json!({
        "name": "release", "type": release["spec"]["type"], "target": {"import": "cluster"}, "dependsOn": ["base"],
        "config": release["spec"]["config"],
    });
    let mut items = vec![base, deploys("switch", &["base"], content), checked, release];
    let mut leaf = deploys("leaf", &[], "{{ imports.made }}");
    for item in items.iter_mut().chain([&mut leaf]) {
        item["timeout"] = json!("none");
    }
    let made = json!([{"name": "made", "type": "data", "schema": {"type": "string"}}]);
    let template = format!(r#"{{"exports": {{"made": "{content}"}}}}"#);
    let maker =
        blueprint(json!({"exports": made, "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}]}));
    let mut imports = imports_cluster();
    imports.as_array_mut().unwrap().extend(made.as_array().unwrap().clone());
    let taker = blueprint(json!({"imports": imports, "deployExecutions": executions(&[leaf])}));
    let (mut maker, mut taker) = (subinstallation("maker", &maker), on_cluster(subinstallation("taker", &taker)));
    let bound = json!([{"name": "made", "dataRef": "made"}]);
    maker["exports"] = json!({"data": bound});
    taker["imports"]["data"] = bound;
    let template = r#"{"exports": {"out": {{ values.deployitems.base.out | tojson }}}}"#;
    let mut tree = on_cluster(installation(
        "tree",
        &blueprint(json!({
            "imports": imports_cluster(),
            "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": executions(&items),
            "subinstallations": [maker, taker],
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
        })),
    ));
    tree["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": "out"}]});
    tree
}

/// What is recorded with components that are written in Go, and the name of it. An administrator's policy counts.
fn rich_scenarios() -> [(&'static str, Scenario); 3] {
    let spec = json!({"namespaces": {"names": [NAMESPACE]}, "profile": "compatible", "quotas": {"items": 3}});
    let policy = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "team"}, "spec": spec});
    let scenario =
        |before: Option<&str>, deed| Scenario { given: vec![policy.clone()], before: before.map(rich), deed };
    [
        ("rich-first-job", scenario(None, Deed::Apply(rich("1")))),
        ("rich-update", scenario(Some("1"), Deed::Apply(rich("2")))),
        ("rich-deletion", scenario(Some("1"), Deed::Delete)),
    ]
}

/// The quarters of its writes after which each scenario is left.
const SHARES: [usize; 3] = [1, 2, 3];

fn file(version: &str, name: &str, share: usize) -> PathBuf {
    repository().join("tests/upgrades").join(version).join(format!("{name}-{share}.tar.gz"))
}

/// Protects the address that the server of what was kept has; held by the test that has it.
static ADDRESS: Mutex<()> = Mutex::const_new(());

async fn go_on(scenarios: &[(&'static str, Scenario)]) {
    let _held = ADDRESS.lock().await;
    if let Ok(version) = env::var("RECORD") {
        for (name, scenario) in scenarios {
            for (share, file) in SHARES.map(|share| (share, file(&version, name, share))) {
                if !file.exists() {
                    upgrades::record(scenario, share, &file, crate::binary).await;
                }
            }
        }
    }
    let versions = fs::read_dir(repository().join("tests/upgrades")).expect("there are recordings");
    let mut played = 0;
    for version in versions.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_dir()) {
        let version = version.file_name().to_string_lossy().into_owned();
        for (name, scenario) in scenarios {
            let files = SHARES.map(|share| file(&version, name, share));
            upgrades::go_on(scenario, &files, crate::binary).await;
            played += files.len();
        }
    }
    assert!(played > 0, "nothing was recorded");
    println!("{played} recordings");
}

#[tokio::test]
async fn orc_06_jobs_of_earlier_builds_come_to_their_end() {
    go_on(&scenarios()).await;
}

#[tokio::test]
async fn orc_06_c_35_items_that_earlier_builds_were_moving_leave_their_former_cluster() {
    go_on(&moving_scenario()).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn orc_06_releases_checks_exports_and_policies_of_earlier_builds_come_to_their_end() {
    go_on(&rich_scenarios()).await;
}
