//! `orangery plan` of Installations (C-265): before the first job, before another one, of what is not known yet, of a deletion.

use std::collections::BTreeMap;

use orangery_tests::{
    objects::NAMESPACE,
    tree::{
        any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks, on_cluster,
        subinstallation,
    },
};
use serde_json::{Value, json};

use super::{
    offline::{document, write},
    plans::Stage,
};

/// Each Installation of a plan with its items and their objects, as what becomes of them.
async fn lines(stage: &Stage, arguments: &[&str]) -> Vec<String> {
    let plan = document(&stage.plan(&[arguments, &["-o", "json"]].concat()).await);
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let list = |of: &Value, field: &str| of[field].as_array().cloned().unwrap_or_default();
    let becomes = |of: &Value, name: &str| format!("{} {}", text(of, "action"), text(of, name));
    let item = |item: &Value| {
        let objects: Vec<String> = list(item, "objects").iter().map(|object| becomes(object, "name")).collect();
        format!("; {} [{}]", becomes(item, "name"), objects.join(", "))
    };
    let line = |of: &Value| {
        let later = of["decidedLater"].as_str().map(|why| format!(", later: {why}")).unwrap_or_default();
        format!("{}{later}{}", becomes(of, "path"), list(of, "items").iter().map(item).collect::<String>())
    };
    list(&plan, "installations").iter().map(line).collect()
}

/// The same in the order of the text: siblings come in any order.
async fn sorted_lines(stage: &Stage, arguments: &[&str]) -> Vec<String> {
    let mut lines = lines(stage, arguments).await;
    lines.sort();
    lines
}

/// The content of the ConfigMaps that items of these tests have deployed.
async fn deployed(stage: &Stage) -> BTreeMap<String, String> {
    let maps = stage.cluster.list(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    let content =
        |map: &Value| Some((map["metadata"]["name"].as_str()?.to_owned(), map["data"]["content"].as_str()?.to_owned()));
    maps.iter().filter_map(content).collect()
}

fn tree(items: &[Value], subinstallations: &[Value]) -> Value {
    let fields = json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(items),
        "subinstallations": subinstallations,
    });
    on_cluster(installation("tree", &blueprint(fields)))
}

fn leaf(name: &str, item: &str, content: &str) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys(item, &[], content)])});
    on_cluster(subinstallation(name, &blueprint(fields)))
}

#[tokio::test]
async fn c_265_what_a_job_writes_is_what_its_plan_has_shown() {
    let stage = Stage::start().await;
    let first = tree(
        &[deploys("top", &["base"], "1"), deploys("base", &[], "1"), deploys("old", &[], "1")],
        &[leaf("sub", "leaf", "1"), leaf("gone", "gone", "1")],
    );
    write(&stage.binary, "tree.yaml", first.to_string());
    let created = [
        "create tree/gone; create gone [create gone]",
        "create tree/sub; create leaf [create leaf]",
        "create tree; create base [create base]; create top [create top]; create old [create old]",
    ];
    assert_eq!(sorted_lines(&stage, &["-f", "tree.yaml"]).await, created);
    assert_eq!(deployed(&stage).await, BTreeMap::new(), "nothing is written");
    stage.cluster.expect_absent(&any("Installation", "tree")).await;

    stage.cluster.apply(&first).await;
    stage.cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let ended = stage.plan(&["tree", "--brief"]).await;
    assert_eq!(ended.stdout.lines().last(), Some("installation default/tree: 5 as they should be"), "{ended:?}");

    let second = tree(
        &[deploys("base", &[], "2"), deploys("top", &["base"], "1"), deploys("new", &["top"], "1")],
        &[leaf("sub", "leaf", "2"), leaf("more", "more", "1")],
    );
    write(&stage.binary, "tree.yaml", second.to_string());
    let before = deployed(&stage).await;
    let changed = [
        "create tree/more; create more [create more]",
        "delete tree/gone; delete gone [delete gone]",
        "run tree/sub; run leaf [change leaf]",
        "run tree; run base [change base]; run top [none top]; create new [create new]; delete old [delete old]",
    ];
    assert_eq!(sorted_lines(&stage, &["-f", "tree.yaml"]).await, changed);
    assert_eq!(deployed(&stage).await, before, "nothing is written");

    stage.cluster.apply(&second).await;
    ask(&stage.cluster, "tree").await;
    let content = |name: &str, content: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"content": content}});
    stage.cluster.expect(&content("more", "1")).await;
    stage.cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone"}})).await;
    stage.cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let after = [("base", "2"), ("leaf", "2"), ("more", "1"), ("new", "1"), ("top", "1")];
    assert_eq!(deployed(&stage).await, after.map(|(name, content)| (name.to_owned(), content.to_owned())).into());

    let mut deleted = lines(&stage, &["tree", "--delete"]).await;
    let root = "delete tree; delete base [delete base]; delete new [delete new]; delete top [delete top]";
    assert_eq!(deleted.pop().as_deref(), Some(root), "what is below goes first");
    deleted.sort();
    assert_eq!(deleted, ["delete tree/more; delete more [delete more]", "delete tree/sub; delete leaf [delete leaf]"]);
}

/// Sub-installations that import what another one will export, a text and a number: each has one item, of this template.
fn takers() -> Vec<Value> {
    let made = json!([
        {"name": "made", "type": "data", "schema": {"type": "string"}},
        {"name": "number", "type": "data", "schema": {"type": "integer"}},
    ]);
    let template = r#"{"exports": {"made": {{ values.deployitems.mock.content | tojson }}, "number": 7}}"#;
    let fields = json!({
        "exports": made,
        "deployExecutions": executions(&[mocks("mock", &[], "Succeeded", "one")]),
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
    });
    let mut maker = subinstallation("maker", &blueprint(fields));
    let bound = |name: &str| json!({"name": name, "dataRef": name});
    maker["exports"] = json!({"data": [bound("made"), bound("number")]});
    let taker = |name: &str, import: usize, executions: Value| {
        let mut imports = imports_cluster();
        imports.as_array_mut().unwrap().push(made[import].clone());
        let fields = json!({"imports": imports, "deployExecutions": executions});
        let mut taker = on_cluster(subinstallation(name, &blueprint(fields)));
        taker["imports"]["data"] = json!([bound(made[import]["name"].as_str().unwrap())]);
        taker
    };
    let one = |name: &str, content: &str| executions(&[deploys(name, &[], content)]);
    let many = json!({"deployItems": [deploys("many-{{ imports.made | length }}", &[], "1")]}).to_string();
    vec![
        maker,
        taker("taker", 0, one("taker", "https://{{ imports.made }}:80")),
        taker("counter", 1, one("counter", "{{ imports.number }}")),
        taker("picky", 0, one("picky", "{{ imports.made | length }}")),
        taker("many", 0, json!([{"name": "d", "type": "Jinja", "template": many}])),
    ]
}

#[tokio::test]
async fn c_265_c_369_what_can_be_said_before_an_export_is_made_is_said_and_the_rest_is_decided_later() {
    let stage = Stage::start().await;
    let tree = tree(&[], &takers());
    write(&stage.binary, "tree.yaml", tree.to_string());
    let depends = "exports that come in the job: which items and sub-installations it has depends on them";
    let expected = [
        "create tree".to_owned(),
        "create tree/counter, later: the exports of maker, which come in the job".to_owned(),
        "create tree/maker; create mock []".to_owned(),
        format!("create tree/many, later: {depends}"),
        "create tree/picky; create picky [create picky]".to_owned(),
        "create tree/taker; create taker [create taker]".to_owned(),
    ];
    let found = sorted_lines(&stage, &["-f", "tree.yaml"]).await;
    assert_eq!(found, expected);
    let told = stage.plan(&["-f", "tree.yaml"]).await;
    for line in [
        "content: 'https://(known after apply: tree/maker.made):80'",
        "  ? some of its imports are known after apply: where its templates decide by them, the job may do otherwise",
        "      ! what becomes of ConfigMap default/picky is known after apply",
    ] {
        assert!(told.stdout.contains(line), "{told:?}");
    }
    assert!(!told.stdout.contains("known-after-apply") && told.code == Some(0), "{told:?}");

    stage.cluster.apply(&tree).await;
    stage.cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let expected = [
        "run tree",
        "run tree/counter; run counter [none counter]",
        "run tree/maker; run mock []",
        "run tree/many; run many-3 [none many-3]",
        "run tree/picky; run picky [none picky]",
        "run tree/taker; run taker [none taker]",
    ];
    assert_eq!(sorted_lines(&stage, &["installation/tree"]).await, expected);
}

#[tokio::test]
async fn c_265_templates_go_on_with_the_state_of_the_last_job() {
    let stage = Stage::start().await;
    let count = "{{ (state.count | default(0)) + 1 }}";
    let template = json!({"deployItems": [deploys("counted", &[], count)], "state": {"count": "COUNT"}}).to_string();
    let template = template.replace("\"COUNT\"", count);
    let fields = json!({"imports": imports_cluster(), "deployExecutions": [{"name": "d", "type": "Jinja", "template": template}]});
    stage.cluster.apply(&on_cluster(installation("tree", &blueprint(fields)))).await;
    stage.cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let ended = stage.plan(&["tree"]).await;
    assert!(ended.stdout.contains("data.content: \"1\" → \"2\""), "{ended:?}");
}

#[tokio::test]
async fn c_41_c_265_a_plan_that_fails_shows_no_value_of_a_secret() {
    let stage = Stage::start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"key": "hunter2-of-all"}});
    stage.cluster.apply(&secret).await;
    let fields = json!({"imports": [{"name": "login", "type": "data", "schema": {"type": "integer"}}]});
    let mut tree = installation("tree", &blueprint(fields));
    tree["spec"]["imports"] = json!({"data": [{"name": "login", "secretRef": {"name": "login", "key": "key"}}]});
    write(&stage.binary, "tree.yaml", tree.to_string());
    let ended = stage.plan(&["-f", "tree.yaml"]).await;
    assert!(ended.code == Some(1) && ended.stderr.contains("login"), "{ended:?}");
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
}

#[tokio::test]
async fn c_265_what_cannot_be_planned_is_told_and_the_rest_is_planned() {
    let stage = Stage::start().await;
    let mut nobodys = deploys("nobodys", &[], "1");
    nobodys["type"] = json!("example.com/nobody");
    write(&stage.binary, "tree.yaml", tree(&[nobodys, deploys("base", &[], "1")], &[]).to_string());
    let ended = stage.plan(&["-f", "tree.yaml", "--brief"]).await;
    let expected = "installation default/tree: 1 to create; failing: 1 of 2 items";
    assert_eq!((ended.code, ended.stdout.lines().last()), (Some(1), Some(expected)), "{ended:?}");
    let fails = ": fails: no component of this host claims the type \"example.com/nobody\"";
    assert!(ended.stdout.contains(fails), "{ended:?}");

    let error = async |arguments: &[&str]| {
        let ended = stage.plan(arguments).await;
        (ended.code, ended.stderr.lines().last().unwrap_or_default().to_owned())
    };
    let mut missing = tree(&[], &[]);
    missing["spec"]["imports"]["targets"][0]["target"] = json!("nowhere");
    write(&stage.binary, "missing.yaml", missing.to_string());
    let (code, message) = error(&["-f", "missing.yaml"]).await;
    assert_eq!(code, Some(1));
    assert!(message.starts_with("error: Installation tree: ") && message.contains("nowhere"), "{message}");
    assert!(!message.contains("--imports") && !message.contains("manifests"), "{message}");
    let none = "error: there is no installation nobody in namespace default; orangery inspect -A shows all there are";
    assert_eq!(error(&["installation/nobody"]).await, (Some(1), none.to_owned()));
    let (code, message) = error(&["pod/x"]).await;
    assert_eq!(code, Some(2));
    assert!(message.contains("write installation/x or deployitem/x") || message.contains("--help"), "{message}");
    assert_eq!(deployed(&stage).await, BTreeMap::new());
    assert!(stage.cluster.list(&any("Installation", "tree")).await.is_empty(), "in {NAMESPACE}");
}
