//! A job that is gone back to leaves what it left then, but for what is named (C-358 … C-361).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::StatusCode;
use orangery_tests::{
    dice::Dice,
    objects::NAMESPACE,
    proxy::{Fate, Fates, ProxyRequest, Sound},
    tree::{
        another_job_ended, any, asks, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase,
        installation, on_cluster,
    },
    world::{MOCK, World},
};
use serde_json::{Value, json};

const ON_RECORD: &str = "--job-records=9";

/// An Installation `tree` of items that each write a ConfigMap of their name, with the imported colour. It exports that.
fn tree(items: &[(&str, &str)]) -> Value {
    let schema = json!({"type": "string"});
    let mut imports = imports_cluster();
    imports.as_array_mut().unwrap().push(json!({"name": "color", "type": "data", "schema": schema}));
    let items: Vec<Value> =
        items.iter().map(|(name, content)| deploys(name, &[], &format!("{content} {{{{ imports.color }}}}"))).collect();
    let answer = r#"{"exports": {"out": {{ values.dataobjects.color | tojson }}}}"#;
    let mut tree = on_cluster(installation(
        "tree",
        &blueprint(json!({
            "imports": imports,
            "deployExecutions": executions(&items),
            "exports": [{"name": "out", "type": "data", "schema": schema}],
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": answer}],
        })),
    ));
    tree["spec"]["imports"]["data"] = json!([{"name": "color", "dataRef": "color"}]);
    tree["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": "out"}]});
    tree
}

fn color(value: &str) -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DataObject", "metadata": {"name": "color"}, "data": value})
}

/// Waits until a job other than this one has ended well, and answers its id.
async fn ended(world: &World, before: &str) -> String {
    let found = another_job_ended(&world.objects, before).await;
    assert_eq!(found["status"]["phase"], "Succeeded", "{found:#}");
    found["status"]["jobID"].as_str().unwrap_or_default().to_owned()
}

/// The spec of the tree, what it has deployed, and what it exports and imports.
async fn deployed(world: &World) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut take = |kind: &str, objects: Vec<Value>, field: &str| {
        for object in objects {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            all.insert(format!("{kind} {name}"), object[field].clone());
        }
    };
    let mut maps = world.objects.list(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    maps.retain(|map| map["data"]["content"].is_string());
    take("ConfigMap", maps, "data");
    take("Installation", world.objects.list(&any("Installation", "tree")).await, "spec");
    let mut data = world.objects.list(&color("")).await;
    data.retain(|of| of["metadata"]["name"] == "color" || of["metadata"]["name"] == "out");
    take("DataObject", data, "data");
    all
}

async fn go_back(world: &World, job: &str, more: &[&str]) -> String {
    let begin = ["rollback", "tree", "--to", job, "-n", NAMESPACE, "--default-policy=compatible"];
    world.run(&[&begin[..], more].concat()).await
}

/// The Secret that a job names on record.
async fn definition(world: &World, job: &str) -> Value {
    let shown = world.run(&["show", job, "-n", NAMESPACE, "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    let name = shown["items"][0]["inputs"]["definition"]["secret"].as_str().unwrap_or_default().to_owned();
    world.objects.expect(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})).await
}

#[tokio::test]
async fn c_358_c_360_c_361_a_rollback_shows_what_it_does_and_leaves_what_the_job_has_left() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK, ON_RECORD]);
    world.objects.apply(&color("blue")).await;
    world.objects.apply(&tree(&[("a", "1"), ("b", "1")])).await;
    let first = ended(&world, "").await;
    let then = deployed(&world).await;
    world.objects.apply(&color("red")).await;
    world.objects.apply(&tree(&[("a", "2"), ("c", "2")])).await;
    let second = ended(&world, &first).await;
    let now = deployed(&world).await;
    assert_eq!(then["ConfigMap b"]["content"], "1 blue");
    assert_eq!((&now["ConfigMap a"]["content"], &now["DataObject out"]), (&json!("2 red"), &json!("red")));
    // It is shown, and nothing is done.
    let shown = go_back(&world, &first, &[]).await;
    for line in [
        format!("~ ConfigMap {NAMESPACE}/a"),
        format!("+ ConfigMap {NAMESPACE}/b"),
        format!("- ConfigMap {NAMESPACE}/c"),
        "~ spec.blueprint of the installation".to_owned(),
        "~ DataObject color".to_owned(),
        "nothing was changed; look at these, and say --yes to do it".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line}: {shown}");
    }
    assert!(!shown.contains("not as it was"), "{shown}");
    assert_eq!(deployed(&world).await, now);
    let written = go_back(&world, &first, &["-o", "json", "--yes"]).await;
    let written: Value = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(written["dataObjects"], json!(["color"]));
    assert_eq!((&written["fields"], &written["isWritten"]), (&json!(["spec.blueprint"]), &json!(true)));
    let third = ended(&world, &second).await;
    assert_eq!(deployed(&world).await, then);
    let shown = world.run(&["show", &third, "-n", NAMESPACE, "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    let trigger = json!({"cause": "Request", "manager": "orangery-rollback"});
    assert!(shown["items"].as_array().into_iter().flatten().all(|item| item["trigger"] == trigger), "{shown:#}");
    let root = world.objects.expect(&any("Installation", "tree")).await;
    assert_eq!(root["metadata"]["annotations"]["orangery.dev/suspend"], Value::Null);
    // With the imports of now.
    let written = go_back(&world, &second, &["--imports", "now", "--yes", "--wait"]).await;
    assert!(
        written.contains("import color (DataObject color): it is another one than in that job, and stays so"),
        "{written}"
    );
    assert!(written.contains(&format!("installation {NAMESPACE}/tree: Succeeded")), "{written}");
    let found = deployed(&world).await;
    assert_eq!((&found["ConfigMap a"]["content"], &found["DataObject color"]), (&json!("2 blue"), &json!("blue")));
    assert_eq!(found["Installation tree"], now["Installation tree"]);
    world.end().await;
}

/// Refuses writes to some objects.
#[derive(Default)]
struct Guarded(AtomicBool);

impl Fates for Guarded {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        let is_guarded = self.0.load(Ordering::SeqCst) && asked.is_write() && asked.path.contains("/dataobjects");
        if is_guarded { Fate::Refuse(StatusCode::FORBIDDEN) } else { Fate::Pass }
    }
}

#[tokio::test]
async fn c_360_c_361_what_is_not_the_operators_is_refused_and_so_is_what_cannot_be_done_before_anything_is_written() {
    let guarded = Arc::new(Guarded::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::clone(&guarded) as Arc<dyn Fates>).await;
    world.start_with(&[MOCK, ON_RECORD]);
    world.objects.apply(&color("blue")).await;
    world.objects.apply(&tree(&[("a", "1")])).await;
    let first = ended(&world, "").await;
    world.objects.apply(&color("red")).await;
    world.objects.apply(&tree(&[("a", "2")])).await;
    let second = ended(&world, &first).await;
    let now = deployed(&world).await;
    let refused = async |job: &str, words: &str| {
        let said = go_back(&world, job, &["--yes"]).await;
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(deployed(&world).await, now);
    };
    // Whoever may not write DataObjects has written nothing.
    guarded.0.store(true, Ordering::SeqCst);
    refused(&first, "ask for that permission").await;
    guarded.0.store(false, Ordering::SeqCst);
    let root = world.objects.expect(&any("Installation", "tree")).await;
    assert_eq!(root["metadata"]["annotations"]["orangery.dev/suspend"], Value::Null);
    refused("zzz", "is not on record").await;
    let (one, other) = (definition(&world, &first).await, definition(&world, &second).await);
    assert_eq!((&one["type"], &one["immutable"]), (&json!("orangery.dev/job-definition"), &json!(true)));
    let place = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": one["metadata"]["name"]}});
    let plant = async |content: &Value, annotations: &Value| {
        world.objects.delete(&place).await;
        world.objects.expect_absent(&place).await;
        let metadata = json!({"name": one["metadata"]["name"], "annotations": annotations});
        let planted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": one["type"], "data": {"definition": content}});
        world.objects.apply(&planted).await;
    };
    let (content, seal) = (&one["data"]["definition"], &one["metadata"]["annotations"]);
    let not_kept = "is not what the operator has kept of job";
    // Of another job, with its seal and with that of this one; made up; a bomb.
    plant(&other["data"]["definition"], &other["metadata"]["annotations"]).await;
    refused(&first, not_kept).await;
    plant(&other["data"]["definition"], seal).await;
    refused(&first, not_kept).await;
    plant(&json!("e30="), seal).await;
    refused(&first, not_kept).await;
    plant(content, &json!({})).await;
    refused(&first, not_kept).await;
    plant(content, seal).await;
    assert!(go_back(&world, &first, &[]).await.contains("~ DataObject color"), "as the operator has written it");
    world.objects.delete(&place).await;
    world.objects.expect_absent(&place).await;
    refused(&first, "is gone; the operator keeps the last ones").await;
    // A job is under way.
    let waits =
        blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[becomes_ready("w", &[])])}));
    world.objects.apply(&on_cluster(installation("tree", &waits))).await;
    world.objects.expect(&in_phase("Installation", "tree", "Progressing")).await;
    let said = go_back(&world, &second, &["--yes"]).await;
    assert!(said.contains("has a job under way; go back when it has ended"), "{said}");
    world.end().await;
}

/// Jobs by chance, and jobs by chance that are gone back to.
#[tokio::test]
async fn c_361_whatever_jobs_there_were_what_one_has_left_is_there_again() {
    let mut dice = Dice::of(361);
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK, ON_RECORD]);
    let (mut jobs, mut job) = (Vec::new(), String::new());
    for _ in 0..4 {
        if dice.permille(700) || jobs.is_empty() {
            world.objects.apply(&color(dice.pick(&["blue", "red", "green"]))).await;
        }
        let mut items: Vec<(&str, &str)> = Vec::new();
        for name in ["a", "b", "c", "d"] {
            if dice.permille(600) {
                items.push((name, dice.pick(&["1", "2", "3"])));
            }
        }
        // One is always there: its record tells of the job.
        items.push(("e", "1"));
        let mut tree = tree(&items);
        tree["metadata"]["annotations"] = asks();
        world.objects.apply(&tree).await;
        job = ended(&world, &job).await;
        jobs.push((job.clone(), deployed(&world).await));
    }
    for _ in 0..3 {
        let (to, then) = &jobs[dice.below(jobs.len())];
        let said = go_back(&world, to, &["--yes", "--wait", "--brief"]).await;
        assert!(said.contains(&format!("installation {NAMESPACE}/tree: Succeeded")), "{said}");
        assert_eq!(&deployed(&world).await, then, "{said}");
    }
    world.end().await;
}
