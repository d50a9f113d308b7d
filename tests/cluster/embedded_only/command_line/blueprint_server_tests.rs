//! `orangery blueprint test --server` (C-248, C-249): cases that the operator of a cluster carries out.

use std::fs;

use orangery_tests::{
    binary::{Binary, Ended, signal},
    cluster::Cluster,
    tree::{API, becomes_ready, blueprint, deploys, executions, imports_cluster, installation, mocks, subinstallation},
};
use serde_json::{Value, json};

use super::offline::write;

struct Stage {
    binary: Binary,
    cluster: Cluster,
}

impl Stage {
    async fn start() -> Self {
        let binary = crate::binary().await;
        let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
        write(&binary, "kubeconfig", cluster.kubeconfig());
        Self { binary, cluster }
    }

    /// A folder with a blueprint and its cases.
    fn folder(&self, folder: &str, blueprint: &Value, cases: &[(&str, &str)]) {
        write(&self.binary, &format!("{folder}/blueprint.yaml"), blueprint.to_string());
        for (name, text) in cases {
            write(&self.binary, &format!("{folder}/tests/{name}.yaml"), text);
        }
    }

    async fn test(&self, folder: &str, more: &[&str]) -> Ended {
        self.binary.run(&[&arguments(folder)[..], more].concat()).await
    }

    /// Waits until nothing of any case is there.
    async fn expect_clean(&self) {
        for kind in ["Installation", "Execution", "DeployItem", "DataObject"] {
            self.cluster.expect_absent(&json!({"apiVersion": API, "kind": kind})).await;
        }
        let targets = self.cluster.list(&json!({"apiVersion": API, "kind": "Target"})).await;
        let names: Vec<&Value> = targets.iter().map(|target| &target["metadata"]["name"]).collect();
        assert_eq!(names, ["cluster"], "that of the suite");
    }
}

fn arguments(folder: &str) -> [&str; 8] {
    ["blueprint", "test", folder, "--server", "--kubeconfig", "kubeconfig", "--target", "cluster=cluster"]
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// A blueprint with an item that deploys, one that exports, one that is wanted for many, and a sub-installation that exports.
fn garden() -> Value {
    let mut imports = imports_cluster();
    let data = |name: &str, of: &str| json!({"name": name, "type": "data", "schema": {"type": of}});
    let made = json!([data("made", "string")]);
    imports.as_array_mut().expect("a list").extend([data("name", "string"), data("size", "integer")]);
    let mut config = deploys("config", &[], "{{ imports.size }}");
    config["config"]["manifests"][0]["manifest"]["metadata"]["name"] = json!("{{ imports.name }}");
    let mut many = mocks("many", &[], "Succeeded", "m");
    many["when"] = json!({"expression": "imports.size > 5"});
    let gate = r#"{"exports": {"gate": {{ values.deployitems.mock.content | tojson }}}}"#;
    let below = r#"{"exports": {"made": {{ values.deployitems.leaf.content | tojson }}}}"#;
    let mut sub = subinstallation(
        "sub",
        &blueprint(json!({
            "exports": made,
            "deployExecutions": executions(&[mocks("leaf", &[], "Succeeded", "below")]),
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": below}],
        })),
    );
    sub["exports"] = json!({"data": [{"name": "made", "dataRef": "made"}]});
    blueprint(json!({
        "imports": imports,
        "exports": [data("gate", "string")],
        "deployExecutions": executions(&[config, mocks("mock", &[], "Succeeded", "open"), many]),
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": gate}],
        "subinstallations": [sub],
    }))
}

const TOLD: &str = r#"
assertions:
- assert: "exports == {'gate': 'open'} && imports.size == 1"
- assert: items.config.config.manifests[0].manifest.data.content == '1' && size(items) == 3
- assert: "subinstallations.sub.exports == {'made': 'below'} && 'leaf' in subinstallations.sub.items"
- assert: notWanted == ['many'] && notWantedSubinstallations == [] && error == null && waitsFor == null
"#;

#[tokio::test]
async fn c_248_c_249_cases_are_carried_out_by_an_operator_and_nothing_is_left_of_them() {
    let stage = Stage::start().await;
    let told = format!("imports: {{name: told, size: 1}}\n{TOLD}");
    let given = "imports: {name: given, size: 6}\ndeployItems: {mock: {content: shut}}\nserver: true\nassertions:\n\
                 - {assert: \"exports.gate == 'open' && notWanted == []\"}\n- {assert: state == null}\n";
    let cases = [
        ("a-told", told.as_str()),
        (
            "b-other",
            "imports: {name: other, size: 1}\nassertions:\n- {assert: exports.gate == 'shut', message: the gate}\n",
        ),
        (
            "c-wrong",
            "imports: {name: wrong, size: one}\nfails: integer\nassertions:\n- {assert: \"error != '' && items == {}\"}\n",
        ),
        ("d-right", "imports: {name: right, size: 1}\nfails: integer\n"),
        ("e-given", given),
        ("f-now", "imports: {name: now, size: 1}\nnow: 2001-01-01T00:00:00Z\nseed: a\n"),
        ("g-never", "server: false\n"),
        ("h-none", "import: {}\n"),
    ];
    stage.folder("garden", &garden(), &cases);
    let ended = stage.test("garden", &["--junit", "junit.xml"]).await;
    let expected = "\
passed   a-told
failed   b-other
         the gate: `exports.gate == 'shut'` does not hold
passed   c-wrong
failed   d-right
         it succeeds, and is expected to fail with \"integer\"
failed   e-given
         `state == null` cannot be told: there is no state; known are: error, exports, imports, items, notWanted, \
         notWantedSubinstallations, subinstallations, waitsFor
skipped  f-now
         it gives now, seed, which a server has itself; to have it carried out without, write server: true
skipped  g-never
         it says server: false
failed   h-none
         there is no field \"import\"; fields are: imports, name, namespace, now, seed, fails, assertions, snapshot, server, \
         deployItems, state, subinstallations; docs/blueprint-tests.md has the form
2 passed, 4 failed, 2 skipped
";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), expected), "{}", ended.stderr);
    let junit = fs::read_to_string(stage.binary.folder().join("junit.xml")).expect("it is written");
    assert!(junit.contains("<testsuite name=\"garden\" tests=\"8\" failures=\"4\" skipped=\"2\">"), "{junit}");
    stage.expect_clean().await;
    for name in ["told", "other", "right", "given"] {
        stage.cluster.expect_absent(&config_map(name)).await;
    }
    let usage = stage.binary.run(&["blueprint", "test", "garden", "-n", "default"]).await;
    assert_eq!(usage.code, Some(2), "a namespace is that of a server: {}", usage.stderr);
}

#[tokio::test]
async fn c_248_what_a_case_waits_for_is_told_and_what_is_left_of_it_is_named() {
    let stage = Stage::start().await;
    let of = |items: &[Value]| blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(items)}));
    stage.folder("waits", &of(&[becomes_ready("never", &[])]), &[("case", "{}")]);
    let mut held = deploys("held", &[], "1");
    held["config"]["manifests"][0]["manifest"]["metadata"]["finalizers"] = json!(["example.org/held"]);
    stage.folder("stays", &of(&[held]), &[("case", "name: stays")]);
    let brief = ["--timeout", "6s"];
    let (waits, stays) = tokio::join!(stage.test("waits", &brief), stage.test("stays", &brief));
    let lines: Vec<&str> = waits.stdout.lines().map(str::trim).collect();
    assert_eq!(lines[..2], ["failed   case", "its job did not end within 6s:"], "{waits:?}");
    assert!(lines.iter().any(|line| line.starts_with("because deploy item never")), "{waits:?}");
    assert_eq!((waits.code, lines.last()), (Some(1), Some(&"0 passed, 1 failed")), "{waits:?}");

    let left = stays.stdout.lines().map(str::trim).find(|line| line.starts_with("not all of")).unwrap_or_default();
    let (start, end) = (
        "not all of Installation default/stays-",
        "is deleted: it is not gone within 6s; then: kubectl -n default delete",
    );
    assert!(left.starts_with(start) && left.contains(end), "{stays:?}");
    let release = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": "default", "finalizers": null}});
    stage.cluster.merge(&release).await;
    stage.expect_clean().await;
}

#[tokio::test]
async fn c_248_a_command_that_is_stopped_deletes_what_its_cases_have_made() {
    let stage = Stage::start().await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[becomes_ready("never", &[])])});
    stage.folder("waits", &blueprint(fields), &[("a", "{}"), ("b", "{}")]);
    let more = ["--parallel", "1"];
    let running = stage.binary.start(&[&arguments("waits")[..], &more].concat());
    stage.cluster.expect(&config_map("never")).await;
    signal(running.id(), "-INT");
    let ended = running.finished().await;
    let expected = "\
failed   a
         the command was stopped before its job ended
failed   b
         it is not begun: the command was stopped
0 passed, 2 failed
";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), expected), "{}", ended.stderr);
    assert!(ended.stderr.contains("what the cases have made is deleted now"), "{}", ended.stderr);
    stage.expect_clean().await;
    stage.cluster.expect_absent(&config_map("never")).await;
}

#[tokio::test]
async fn c_249_targets_of_a_case_are_there_for_its_job_and_one_that_is_exported_is_told() {
    let stage = Stage::start().await;
    let import = |name: &str, of: &str| json!({"name": name, "type": of, "targetType": "example.org/x"});
    let next = "exports: {next: {type: example.org/x, config: {all: {{ imports.named.b.spec.config.of + imports.list[1].spec.config.of }}}}}";
    let fields = json!({
        "imports": [import("one", "target"), import("list", "targetList"), import("named", "targetMap")],
        "exports": [{"name": "next", "type": "target", "targetType": "example.org/x"}],
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": next}],
    });
    let target = |of: u8| {
        json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "same"},
        "spec": {"type": "example.org/x", "config": {"of": of}}})
    };
    let case = json!({
        "imports": {"list": [target(1), target(2)], "named": {"a": target(4), "b": target(8)}},
        "assertions": [{"assert": "exports.next.spec.config.all == 10"}],
    });
    stage.cluster.apply(&target(16)).await;
    stage.folder("targets", &blueprint(fields), &[("case", &case.to_string())]);
    let line = ["blueprint", "test", "targets", "--server", "--kubeconfig", "kubeconfig", "--target", "one=same"];
    let ended = stage.binary.run(&line).await;
    assert_eq!(ended.stdout, "passed   case\n1 passed, 0 failed\n", "{}", ended.stderr);
    let targets = stage.cluster.list(&json!({"apiVersion": API, "kind": "Target"})).await;
    let left: Vec<&Value> = targets.iter().map(|target| &target["metadata"]["name"]).collect();
    assert_eq!(left, ["cluster", "same"]);
}

#[tokio::test]
async fn c_249_a_blueprint_that_no_installation_can_hold_and_an_unknown_target_are_told() {
    let stage = Stage::start().await;
    stage.folder("b", &blueprint(json!({"imports": imports_cluster()})), &[("case", "{}")]);
    let line = ["blueprint", "test", "b", "--server", "--kubeconfig", "kubeconfig", "--target", "cluster=nowhere"];
    let unknown = stage.binary.run(&line).await;
    assert!(unknown.stdout.contains("nowhere") && unknown.stdout.starts_with("failed   case\n"), "{unknown:?}");
    // What is not the command's stays.
    let other = installation("other", &blueprint(json!({})));
    stage.cluster.apply(&other).await;
    write(&stage.binary, "b/large.bin", "x".repeat((1 << 20) + 1));
    let large = stage.binary.run(&line).await;
    assert_eq!(large.code, Some(2), "{large:?}");
    assert!(large.stderr.starts_with("error: no Installation can hold the files of the blueprint"), "{large:?}");
    stage.cluster.expect(&json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": "other"}})).await;
}
