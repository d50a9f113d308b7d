//! Roots under `reconcilePolicy: OnChange`: what is imported starts jobs, each change one (C-05, ORC-33). Roots under
//! `importPolicy: Wait`: what is imported is waited for (C-10).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use http::StatusCode;
use orangery_tests::{
    external_deployer::ExternalDeployer,
    history::{History, Seen},
    objects::Objects,
    proxy::{Fate, Fates, ProxyRequest},
    tree::{API, any, asks, blueprint, in_phase, installation, items, wait_until_idle},
    world::World,
};
use serde_json::{Value, json};

/// A root with one item of its name, which says what is imported as `v` and `w`. Nobody asks for its jobs.
fn root(name: &str, imports: Value) -> Value {
    let define = |of: &Value, fields: Value| {
        let mut definition = fields;
        definition["name"] = of["name"].clone();
        definition
    };
    let of = |field: &str| imports[field].as_array().cloned().unwrap_or_default();
    let data =
        of("data").iter().map(|import| define(import, json!({"type": "data", "schema": {}}))).collect::<Vec<_>>();
    let targets = of("targets")
        .iter()
        .map(|import| define(import, json!({"type": "target", "targetType": "example.com/place"})))
        .collect::<Vec<_>>();
    let content =
        if targets.is_empty() { "{{ imports.v }}{{ imports.w | default('') }}" } else { "{{ imports.v.spec.config }}" };
    let definitions = [data, targets].concat();
    let mut root = installation(
        name,
        &blueprint(json!({
            "imports": definitions,
            "deployExecutions": items(&[(name, &[])], content),
        })),
    );
    root["metadata"]["annotations"] = json!({});
    root["spec"]["imports"] = imports;
    root["spec"]["reconcilePolicy"] = json!("OnChange");
    root
}

/// The same, which exports what it has imported as `v` under its own name.
fn exporting(mut root: Value) -> Value {
    let name = root["metadata"]["name"].clone();
    let blueprint = &mut root["spec"]["blueprint"]["inline"]["filesystem"]["blueprint.yaml"];
    let mut fields: Value =
        serde_json::from_str(blueprint.as_str().unwrap_or_default()).expect("the blueprint is JSON");
    fields["exports"] = json!([{"name": "out", "type": "data", "schema": {}}]);
    let answer = r#"{"exports": {"out": {{ values.dataobjects.v | tojson }}}}"#;
    fields["exportExecutions"] = json!([{"name": "e", "type": "Jinja", "template": answer}]);
    *blueprint = json!(fields.to_string());
    root["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": name}]});
    root
}

fn data_object(name: &str, data: Value) -> Value {
    json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": name}, "data": data})
}

fn data_import(name: &str, of: &str) -> Value {
    json!({"name": name, "dataRef": of})
}

/// The jobs that an installation was asked for, in order.
fn jobs(seen: &Seen, name: &str) -> Vec<String> {
    let mut jobs: Vec<String> = seen.of("Installation", name).map(|version| version.jobs().0.to_owned()).collect();
    jobs.dedup();
    jobs.retain(|job| !job.is_empty());
    jobs
}

/// Waits until a root has ended another job than this one in this phase; the job.
async fn ended_after(cluster: &Objects, name: &str, phase: &str, job: &Value) -> Value {
    let has_ended = |object: &Value| {
        let status = &object["status"];
        let is_over = status["phase"] == phase && status["jobIDFinished"] == status["jobID"];
        object["metadata"]["name"] == name && is_over && status["jobID"] != *job
    };
    let ended = cluster.expect_that(&any("Installation", name), "has not ended another job", has_ended).await;
    ended["status"]["jobID"].clone()
}

async fn succeeded_after(cluster: &Objects, name: &str, job: &Value) -> Value {
    ended_after(cluster, name, "Succeeded", job).await
}

/// A root that imports `source` has one job, has none as the source becomes `same`, which is no other import, and has one more
/// as it becomes `other`, which says `content`.
async fn one_job_for_each_change(imports: Value, source: Value, same: Value, other: Value, content: &str) {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&source).await;
    cluster.apply(&root("r", imports)).await;
    deployer.succeed("r").await;
    let first = succeeded_after(&cluster, "r", &Value::Null).await;
    cluster.apply(&same).await;
    wait_until_idle(&cluster).await;
    let resting = cluster.expect(&in_phase("Installation", "r", "Succeeded")).await;
    assert_eq!(resting["status"]["jobID"], first, "nothing has changed for it: {resting}");

    cluster.apply(&other).await;
    let message = deployer.triggered("r").await["spec"]["config"]["content"].clone();
    assert_eq!(message, content, "the job takes the change into account");
    deployer.succeed("r").await;
    succeeded_after(&cluster, "r", &first).await;
    wait_until_idle(&cluster).await;
    let seen = history.until_now().await;
    assert_eq!(jobs(&seen, "r").len(), 2, "one at first, and one for the change: {:#?}", seen.message_of());
}

#[tokio::test]
async fn c_05_orc_33_a_data_object_that_changes_starts_a_job() {
    let mut same = data_object("d", json!("one"));
    same["metadata"]["labels"] = json!({"read-by": "nobody"});
    let (one, two) = (data_object("d", json!("one")), data_object("d", json!("two")));
    one_job_for_each_change(json!({"data": [data_import("v", "d")]}), one, same, two, "two").await;
}

#[tokio::test]
async fn c_05_orc_33_a_target_that_changes_starts_a_job() {
    let target = |labels: Value, config: &str| {
        let metadata = json!({"name": "t", "labels": labels});
        json!({"apiVersion": API, "kind": "Target", "metadata": metadata, "spec": {"type": "example.com/place", "config": config}})
    };
    let imports = json!({"targets": [{"name": "v", "target": "t"}]});
    let same = target(json!({"read-by": "nobody"}), "one");
    one_job_for_each_change(imports, target(json!({}), "one"), same, target(json!({}), "two"), "two").await;
}

#[tokio::test]
async fn c_05_orc_33_a_secret_that_changes_starts_a_job() {
    let secret = |v: &str, rest: &str| {
        let content = json!({"v": v, "rest": rest});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": content})
    };
    let imports = json!({"data": [{"name": "v", "secretRef": {"name": "s", "key": "v"}}]});
    one_job_for_each_change(imports, secret("one", "1"), secret("one", "2"), secret("two", "2"), "two").await;
}

#[tokio::test]
async fn c_05_orc_33_a_config_map_that_changes_starts_a_job() {
    let map = |v: &str, rest: &str| {
        let content = json!({"v": v, "rest": rest});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": content})
    };
    let imports = json!({"data": [{"name": "v", "configMapRef": {"name": "m", "key": "v"}}]});
    one_job_for_each_change(imports, map("one", "1"), map("one", "2"), map("two", "2"), "two").await;
}

#[tokio::test]
async fn orc_33_a_target_that_is_made_anew_with_other_content_starts_a_job() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let target = |config: &str| {
        let spec = json!({"type": "example.com/place", "config": config});
        json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "t"}, "spec": spec})
    };
    cluster.apply(&target("one")).await;
    cluster.apply(&root("r", json!({"targets": [{"name": "v", "target": "t"}]}))).await;
    deployer.succeed("r").await;
    let first = succeeded_after(&cluster, "r", &Value::Null).await;
    // Its generation is 1 again.
    cluster.delete(&target("one")).await;
    cluster.apply(&target("two")).await;
    assert_eq!(deployer.triggered("r").await["spec"]["config"]["content"], "two");
    deployer.succeed("r").await;
    succeeded_after(&cluster, "r", &first).await;
}

#[tokio::test]
async fn orc_33_a_root_starts_once_all_that_it_lacks_is_there() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let secret = json!({"name": "w", "secretRef": {"name": "s", "key": "w"}});
    cluster.apply(&root("r", json!({"data": [data_import("v", "d"), secret]}))).await;
    let failed = cluster.expect(&in_phase("Installation", "r", "Failed")).await;
    assert_eq!(failed["status"]["lastError"]["reason"], "ImportNotFound", "{failed}");
    cluster.apply(&data_object("d", json!("one"))).await;
    wait_until_idle(&cluster).await;
    let waiting = cluster.expect(&in_phase("Installation", "r", "Failed")).await;
    assert_eq!(waiting["status"]["jobID"], failed["status"]["jobID"], "the Secret is still missing: {waiting}");

    let content = json!({"w": "more"});
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": content}))
        .await;
    assert_eq!(ExternalDeployer(&cluster).triggered("r").await["spec"]["config"]["content"], "onemore");
    ExternalDeployer(&cluster).succeed("r").await;
    succeeded_after(&cluster, "r", &failed["status"]["jobID"]).await;
    let seen = history.until_now().await;
    assert_eq!(jobs(&seen, "r").len(), 2, "{:#?}", seen.message_of());
}

#[tokio::test]
async fn orc_33_a_failure_before_and_after_the_imports_are_read_starts_nothing() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let imports = json!({"data": [data_import("v", "d"), {"name": "w", "configMapRef": {"name": "m", "key": "w"}}]});
    let map = |content: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"w": content}});
    cluster.apply(&data_object("d", json!("one"))).await;
    let mut unreadable = root("unreadable", imports.clone());
    unreadable["spec"]["blueprint"]["inline"]["filesystem"]["blueprint.yaml"] = json!("imports: 1");
    let broken = |name: &str| {
        let text = root(name, imports.clone()).to_string();
        serde_json::from_str::<Value>(&text.replace("imports.w ", "imports.w.x.y ")).expect("it is still JSON")
    };
    let broken = broken("broken");
    let mut last = [Value::Null, Value::Null];
    for content in ["one", "two"] {
        cluster.apply(&map(content)).await;
        cluster.apply(&unreadable).await;
        cluster.apply(&broken).await;
        for (name, last) in ["unreadable", "broken"].into_iter().zip(&mut last) {
            *last = ended_after(&cluster, name, "Failed", last).await;
        }
        wait_until_idle(&cluster).await;
    }
    let seen = history.until_now().await;
    for name in ["unreadable", "broken"] {
        assert_eq!(jobs(&seen, name).len(), 2, "one at first, and one for the change: {:#?}", seen.message_of());
    }
}

#[tokio::test]
async fn orc_33_ins_43_a_chain_has_one_job_each_for_a_change() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let deployer = ExternalDeployer(&cluster);
    let mut last = [Value::Null, Value::Null];
    for content in ["one", "two"] {
        cluster.apply(&data_object("d", json!(content))).await;
        cluster.apply(&exporting(root("a", json!({"data": [data_import("v", "d")]})))).await;
        cluster.apply(&root("b", json!({"data": [data_import("v", "a"), data_import("w", "d")]}))).await;
        deployer.succeed("a").await;
        last[0] = succeeded_after(&cluster, "a", &last[0]).await;
        assert_eq!(deployer.triggered("b").await["spec"]["config"]["content"], format!("{content}{content}"));
        deployer.succeed("b").await;
        last[1] = succeeded_after(&cluster, "b", &last[1]).await;
        wait_until_idle(&cluster).await;
    }
    let seen = history.until_now().await;
    for name in ["a", "b"] {
        assert_eq!(jobs(&seen, name).len(), 2, "one at first, and one for the change: {:#?}", seen.message_of());
    }
}

#[tokio::test]
async fn orc_33_ins_21_nothing_starts_before_those_that_are_imported_from_have_succeeded() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let deployer = ExternalDeployer(&cluster);
    let own = |content: &str| data_object("own", json!(content));
    let before = exporting(root("a", json!({"data": [data_import("v", "d")]})));
    cluster.apply(&data_object("d", json!("1"))).await;
    cluster.apply(&own("one")).await;
    cluster.apply(&before).await;
    cluster.apply(&root("b", json!({"data": [data_import("v", "a"), data_import("w", "own")]}))).await;
    deployer.succeed("a").await;
    deployer.succeed("b").await;
    let first = succeeded_after(&cluster, "b", &Value::Null).await;
    let is_settled = async |since: &Value, why: &str| {
        wait_until_idle(&cluster).await;
        let resting = cluster.expect(&in_phase("Installation", "b", "Succeeded")).await;
        assert_eq!(resting["status"]["jobID"], *since, "{why}: {resting}");
    };

    cluster.annotate(&any("Installation", "a"), asks()).await;
    deployer.begin("a").await;
    cluster.apply(&own("two")).await;
    is_settled(&first, "a works").await;
    deployer.succeed("a").await;
    assert_eq!(deployer.triggered("b").await["spec"]["config"]["content"], "1two");
    deployer.succeed("b").await;
    let second = succeeded_after(&cluster, "b", &first).await;

    // It fails before it touches its exports: all that is imported is there.
    let mut unreadable = before.clone();
    unreadable["spec"]["blueprint"]["inline"]["filesystem"]["blueprint.yaml"] = json!("imports: 1");
    cluster.apply(&unreadable).await;
    cluster.expect(&in_phase("Installation", "a", "Failed")).await;
    cluster.apply(&own("three")).await;
    is_settled(&second, "a has failed").await;
    cluster.apply(&before).await;
    deployer.succeed("a").await;
    assert_eq!(deployer.triggered("b").await["spec"]["config"]["content"], "1three");
    deployer.succeed("b").await;
    succeeded_after(&cluster, "b", &second).await;
    wait_until_idle(&cluster).await;
    let seen = history.until_now().await;
    assert_eq!(jobs(&seen, "b").len(), 3, "one for each success of a: {:#?}", seen.message_of());
}

#[tokio::test]
async fn orc_33_a_root_without_the_policy_or_being_deleted_starts_nothing() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let secret = |content: &str| {
        let content = json!({"w": content});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": content})
    };
    let imports = json!({"data": [data_import("v", "d"), {"name": "w", "secretRef": {"name": "s", "key": "w"}}]});
    let both = async |content: &str| {
        cluster.apply(&data_object("d", json!(content))).await;
        cluster.apply(&secret(content)).await;
    };
    both("one").await;
    cluster.apply(&root("r", imports.clone())).await;
    deployer.succeed("r").await;
    let first = succeeded_after(&cluster, "r", &Value::Null).await;
    let mut manual = root("r", imports);
    manual["spec"]["reconcilePolicy"] = json!("Manual");
    cluster.apply(&manual).await;
    both("two").await;
    wait_until_idle(&cluster).await;
    let resting = cluster.expect(&in_phase("Installation", "r", "Succeeded")).await;
    assert_eq!(resting["status"]["jobID"], first, "{resting}");

    // Under the policy again, and deleted: its deletion fails, and what changes then does not try again.
    manual["spec"]["reconcilePolicy"] = json!("OnChange");
    cluster.apply(&manual).await;
    deployer.succeed("r").await;
    succeeded_after(&cluster, "r", &first).await;
    cluster.delete(&any("Installation", "r")).await;
    deployer.fail("r", "the disk is full").await;
    let failed = cluster.expect(&in_phase("Installation", "r", "DeleteFailed")).await;
    both("three").await;
    wait_until_idle(&cluster).await;
    let resting = cluster.expect(&in_phase("Installation", "r", "DeleteFailed")).await;
    assert_eq!(resting["status"]["jobID"], failed["status"]["jobID"], "{resting}");
    cluster.annotate(&any("Installation", "r"), asks()).await;
    deployer.succeed("r").await;
    cluster.expect_absent(&any("Installation", "r")).await;
}

/// Nothing goes wrong, and what is written is noted.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Fates for Noted {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if asked.is_write() {
            self.0.lock().expect("nobody panics with it").push(format!("{} {}", asked.method, asked.path));
        }
        Fate::Pass
    }
}

/// The server fails this many times to write the status of the Installation `a`.
#[derive(Default)]
struct Failing(AtomicUsize);

impl Fates for Failing {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        let left = |left: usize| left.checked_sub(1);
        let is_that = asked.is_write() && asked.path.contains("/installations/a/status");
        if is_that && self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok() {
            return Fate::Refuse(StatusCode::INTERNAL_SERVER_ERROR);
        }
        Fate::Pass
    }
}

#[tokio::test]
async fn orc_33_ins_43_a_root_waits_for_the_job_that_its_predecessor_is_about_to_start() {
    let failing = Arc::new(Failing::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::<Failing>::clone(&failing)).await;
    world.start();
    world.ready().await;
    let history = History::begin(world.objects.client()).await;
    let deployer = ExternalDeployer(&world.objects);
    world.objects.apply(&data_object("d", json!("one"))).await;
    world.objects.apply(&exporting(root("a", json!({"data": [data_import("v", "d")]})))).await;
    world.objects.apply(&root("b", json!({"data": [data_import("v", "a"), data_import("w", "d")]}))).await;
    let mut last = [Value::Null, Value::Null];
    for content in ["one", "two"] {
        deployer.succeed("a").await;
        last[0] = succeeded_after(&world.objects, "a", &last[0]).await;
        assert_eq!(deployer.triggered("b").await["spec"]["config"]["content"], format!("{content}{content}"));
        deployer.succeed("b").await;
        last[1] = succeeded_after(&world.objects, "b", &last[1]).await;
        if content == "one" {
            wait_until_idle(&world.objects).await;
            // Both are woken by the change, and the start of the first one's job is late.
            failing.0.store(2, Ordering::Relaxed);
            world.objects.apply(&data_object("d", json!("two"))).await;
        }
    }
    wait_until_idle(&world.objects).await;
    assert_eq!(failing.0.load(Ordering::Relaxed), 0, "the job of the first one started late");
    let seen = history.until_now().await;
    for name in ["a", "b"] {
        assert_eq!(jobs(&seen, name).len(), 2, "one at first, and one for the change: {:#?}", seen.message_of());
    }
    world.end().await;
}

#[tokio::test]
async fn orc_33_orc_04_a_restart_starts_nothing_and_finds_what_changed_meanwhile() {
    let noted = Arc::new(Noted::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::<Noted>::clone(&noted)).await;
    world.start();
    world.ready().await;
    let map = |content: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"w": content}});
    let imports = json!({"data": [data_import("v", "d"), {"name": "w", "configMapRef": {"name": "m", "key": "w"}}]});
    world.objects.apply(&data_object("d", json!("one"))).await;
    world.objects.apply(&map("one")).await;
    world.objects.apply(&root("r", imports)).await;
    ExternalDeployer(&world.objects).succeed("r").await;
    let first = succeeded_after(&world.objects, "r", &Value::Null).await;
    wait_until_idle(&world.objects).await;

    world.kill().await;
    noted.0.lock().expect("nobody panics with it").clear();
    world.start();
    wait_until_idle(&world.objects).await;
    let written = noted.0.lock().expect("nobody panics with it").clone();
    let of_root: Vec<_> = written.iter().filter(|request| request.contains("installations/r")).collect();
    assert!(of_root.is_empty(), "nothing has changed for it: {written:#?}");
    let resting = world.objects.expect(&in_phase("Installation", "r", "Succeeded")).await;
    assert_eq!(resting["status"]["jobID"], first, "{resting}");

    world.kill().await;
    world.objects.apply(&map("two")).await;
    world.start();
    assert_eq!(ExternalDeployer(&world.objects).triggered("r").await["spec"]["config"]["content"], "onetwo");
    ExternalDeployer(&world.objects).succeed("r").await;
    succeeded_after(&world.objects, "r", &first).await;
    world.end().await;
}

/// Waits until a root says what it waits for.
async fn says(cluster: &Objects, name: &str, message: &str) {
    let has_said = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        object["metadata"]["name"] == name
            && object["status"]["phase"] == "Init"
            && conditions.iter().any(|condition| condition["type"] == "Progressing" && condition["message"] == message)
    };
    cluster.expect_that(&any("Installation", name), &format!("does not say: {message}"), has_said).await;
}

#[tokio::test]
async fn c_10_under_the_import_policy_wait_one_job_waits_for_each_import_by_name() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let secret = json!({"name": "w", "secretRef": {"name": "hidden", "key": "k"}});
    let mut waiting = root("r", json!({"data": [data_import("v", "late"), secret]}));
    waiting["spec"]["reconcilePolicy"] = json!("Manual");
    waiting["spec"]["importPolicy"] = json!("Wait");
    waiting["metadata"]["annotations"] = asks();
    cluster.apply(&waiting).await;
    says(&cluster, "r", "waiting for DataObject late to exist").await;
    cluster.apply(&data_object("late", json!("at "))).await;
    says(&cluster, "r", "waiting for Secret hidden to exist").await;
    let metadata = json!({"name": "hidden"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"k": "last"}});
    cluster.apply(&secret).await;
    let deployer = ExternalDeployer(&cluster);
    assert_eq!(deployer.triggered("r").await["spec"]["config"]["content"], "at last");
    deployer.succeed("r").await;
    cluster.expect(&in_phase("Installation", "r", "Succeeded")).await;
    assert_eq!(jobs(&history.until_now().await, "r").len(), 1);
}
