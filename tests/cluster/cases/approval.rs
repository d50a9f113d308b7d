//! Where an approval is required, a deploy item writes exactly what somebody has approved, and nothing else (C-311 … C-316).

use std::fs;

use orangery_tests::{
    chart::{deploy, item, packed},
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{
        any, ask, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
        wait_until_idle,
    },
};
use serde_json::{Value, json};

use super::policies::{policy, put, refused};

/// An Installation with one item of its name, whose jobs need an approval.
fn root(name: &str, content: &str) -> Value {
    of_item(name, deploys(name, &[], content))
}

fn of_item(name: &str, item: Value) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])}));
    let mut root = on_cluster(installation(name, &blueprint));
    root["spec"]["approval"] = json!("Required");
    root
}

fn config_map(name: &str, content: Option<&str>) -> Value {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    match content {
        None => map,
        Some(content) => {
            let mut map = map;
            map["data"] = json!({"content": content});
            map
        }
    }
}

fn any_plan() -> Value {
    json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plan", "metadata": {"namespace": NAMESPACE}})
}

/// Waits until the item of an Installation waits for a Plan of which nobody has said anything, and answers that.
async fn awaited(cluster: &Cluster, root: &str) -> Value {
    let is_open = |plan: &Value| plan["status"]["phase"] == "Ready" && plan["spec"]["installation"] == root;
    let plan = cluster.expect_that(&any_plan(), "is not open", is_open).await;
    let awaits = |item: &Value| {
        let awaited = &item["status"]["waitingFor"][0];
        awaited["until"] == "Approved" && awaited["name"] == plan["metadata"]["name"]
    };
    cluster.expect_that(&any("DeployItem", ""), "did not wait for an approval", awaits).await;
    plan
}

/// Says something of a Plan.
async fn decide(cluster: &Cluster, plan: &Value, decision: &str) {
    let approval =
        json!({"decision": decision, "planHash": plan["spec"]["planHash"], "by": "anna", "reason": "as agreed"});
    cluster.patch_status(plan, json!({"approval": approval})).await;
}

async fn plan_in_phase(cluster: &Cluster, plan: &Value, phase: &str) -> Value {
    let is_it =
        |found: &Value| found["metadata"]["name"] == plan["metadata"]["name"] && found["status"]["phase"] == phase;
    cluster.expect_that(&any_plan(), &format!("is not {phase}"), is_it).await
}

/// Approves what an Installation waits for.
async fn approve(cluster: &Cluster, root: &str) -> Value {
    let plan = awaited(cluster, root).await;
    decide(cluster, &plan, "Approve").await;
    plan
}

#[tokio::test]
async fn c_311_c_315_nothing_is_written_or_deleted_before_somebody_has_approved_it() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("web", "1")).await;
    let plan = awaited(&cluster, "web").await;
    assert_eq!(plan["spec"]["summary"], "1 to create");
    cluster.expect_absent(&config_map("web", None)).await;
    decide(&cluster, &plan, "Approve").await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("web", Some("1"))).await;
    plan_in_phase(&cluster, &plan, "Applied").await;
    // A job that writes nothing asks nobody.
    ask(&cluster, "web").await;
    let job = plan["spec"]["job"].clone();
    let is_next = |root: &Value| {
        let status = &root["status"];
        status["jobID"] != job && status["jobID"] == status["jobIDFinished"] && status["phase"] == "Succeeded"
    };
    cluster.expect_that(&any("Installation", "web"), "did not end another job", is_next).await;
    // Nor is anything taken away.
    cluster.delete(&any("Installation", "web")).await;
    let plan = awaited(&cluster, "web").await;
    assert_eq!(plan["spec"]["summary"], "1 to delete");
    cluster.expect(&config_map("web", Some("1"))).await;
    decide(&cluster, &plan, "Approve").await;
    cluster.expect_absent(&any("Installation", "web")).await;
    cluster.expect_absent(&config_map("web", None)).await;
    // Plans go with their item.
    cluster.expect_absent(&any_plan()).await;
}

#[tokio::test]
async fn c_313_what_has_changed_since_is_not_written_and_a_new_plan_says_why() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("web", "1")).await;
    approve(&cluster, "web").await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.apply(&root("web", "2")).await;
    let first = awaited(&cluster, "web").await;
    assert_eq!(first["spec"]["summary"], "1 to change");
    // The object that was looked at is another one by the time of the approval.
    cluster.merge(&config_map("web", Some("theirs"))).await;
    decide(&cluster, &first, "Approve").await;
    let stale = plan_in_phase(&cluster, &first, "Stale").await;
    let said = stale["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
    let why = format!("what would become of ConfigMap {NAMESPACE}/web is not the same any more; Plan ");
    assert!(said.starts_with(&why), "{said}");
    let second = awaited(&cluster, "web").await;
    assert_ne!(second["metadata"]["name"], first["metadata"]["name"]);
    cluster.expect(&config_map("web", Some("theirs"))).await;
    decide(&cluster, &second, "Approve").await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("web", Some("2"))).await;
}

#[tokio::test]
async fn c_314_a_rejected_plan_fails_its_item_with_the_reason() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("web", "1")).await;
    let plan = awaited(&cluster, "web").await;
    decide(&cluster, &plan, "Reject").await;
    let failed = cluster.expect(&in_phase("Installation", "web", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    let name = plan["metadata"]["name"].as_str().unwrap_or_default();
    let said = format!("Plan {name} was rejected by anna: as agreed; nothing of it is written");
    assert!(message.contains(&said), "{message}");
    plan_in_phase(&cluster, &plan, "Rejected").await;
    cluster.expect_absent(&config_map("web", None)).await;
}

#[tokio::test]
async fn c_311_an_interrupt_ends_the_wait_and_no_external_deployer_is_given_what_needs_an_approval() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("web", "1")).await;
    let plan = awaited(&cluster, "web").await;
    let interrupt = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    cluster.annotate(&any("Installation", "web"), interrupt).await;
    cluster.expect(&in_phase("Installation", "web", "Failed")).await;
    plan_in_phase(&cluster, &plan, "Stale").await;
    decide(&cluster, &plan, "Approve").await;
    let external =
        json!({"name": "theirs", "type": "example.org/external", "config": orangery_tests::tree::config("1")});
    cluster.apply(&of_item("external", external)).await;
    let failed = cluster.expect(&in_phase("Installation", "external", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    assert!(
        message.contains("what that writes nobody can approve, as spec.approval of Installation external requires"),
        "{message}"
    );
    cluster.expect_absent(&config_map("web", None)).await;
}

/// A tenant who may write Plans, and approve his own, has nothing written.
#[tokio::test]
async fn c_312_a_plan_that_somebody_else_has_made_or_changed_does_not_count() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("web", "1")).await;
    let plan = awaited(&cluster, "web").await;
    // One of the next name, with what the operator has sealed for another content.
    let mut forged = plan.clone();
    let name = plan["metadata"]["name"].as_str().unwrap_or_default();
    let next = format!("{}2", name.strip_suffix('1').unwrap_or_default());
    forged["metadata"] = json!({"name": next, "namespace": NAMESPACE, "labels": plan["metadata"]["labels"]});
    forged["spec"]["number"] = json!(2);
    forged["spec"]["summary"] = json!("1 to change");
    let forged = cluster.create(&forged).await;
    decide(&cluster, &forged, "Approve").await;
    // And the operator's own with another summary.
    let mut changed = plan.clone();
    changed["spec"]["summary"] = json!("nothing to speak of");
    changed["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    changed["status"] = Value::Null;
    cluster.merge(&changed).await;
    decide(&cluster, &plan, "Approve").await;
    // Neither counts: there is a third one, and what is said of that happens.
    let third = cluster.expect_that(&any_plan(), "is not the third", |found| found["spec"]["number"] == 3).await;
    cluster.expect_absent(&config_map("web", None)).await;
    decide(&cluster, &third, "Reject").await;
    cluster.expect(&in_phase("Installation", "web", "Failed")).await;
    cluster.expect_absent(&config_map("web", None)).await;
}

#[tokio::test]
async fn c_49_a_policy_requires_approvals_whatever_an_installation_says_and_gives_way_when_it_changes() {
    let cluster = crate::cluster().await;
    let mut team = policy("team", json!({"approval": "Required"}));
    team["spec"]["profile"] = json!("compatible");
    put(&cluster, &team).await;
    let mut web = root("web", "1");
    web["spec"]["approval"] = json!("None");
    cluster.apply(&web).await;
    let plan = awaited(&cluster, "web").await;
    // What external deployers write nobody could hold back.
    let item = json!({"name": "theirs", "type": "example.org/external", "config": orangery_tests::tree::config("1")});
    let blueprint = blueprint(json!({"deployExecutions": executions(&[item])}));
    cluster.apply(&installation("external", &blueprint)).await;
    refused(&cluster, &any("Installation", "external"), "Failed", "spec.approval").await;
    cluster.expect_absent(&config_map("web", None)).await;
    team["spec"]["approval"] = json!("None");
    put(&cluster, &team).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("web", Some("1"))).await;
    plan_in_phase(&cluster, &plan, "Stale").await;
}

/// An Installation with three items that come one after another.
fn chain(content: &str) -> Value {
    let items = [deploys("a", &[], content), deploys("b", &["a"], content), deploys("c", &["b"], content)];
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&items)}));
    let mut root = on_cluster(installation("web", &blueprint));
    root["spec"]["approval"] = json!("Required");
    root
}

/// Waits until so many Plans are open, and answers them.
async fn open_plans(cluster: &Cluster, number: usize) -> Vec<Value> {
    let mut open: Vec<Value> = Vec::new();
    while open.len() < number {
        let is_other = |plan: &Value| {
            let is_known = open.iter().any(|known| known["metadata"]["name"] == plan["metadata"]["name"]);
            !is_known && plan["status"]["phase"] != "Stale" && plan["status"]["phase"] != "Applied"
        };
        let plan = cluster.expect_that(&any_plan(), &format!("is not one of {number}"), is_other).await;
        open.push(plan);
    }
    open
}

#[tokio::test]
async fn c_366_what_all_items_write_is_there_to_be_approved_at_once_and_nobody_is_asked_again() {
    let cluster = crate::cluster().await;
    cluster.apply(&chain("1")).await;
    let plans = open_plans(&cluster, 3).await;
    awaited(&cluster, "web").await;
    for name in ["a", "b", "c"] {
        cluster.expect_absent(&config_map(name, None)).await;
    }
    for plan in &plans {
        assert_eq!(plan["spec"]["summary"], "1 to create");
        decide(&cluster, plan, "Approve").await;
    }
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    for plan in &plans {
        plan_in_phase(&cluster, plan, "Applied").await;
    }
    assert_eq!(cluster.list(&any_plan()).await.len(), 3, "nobody was asked again");
    // The same where all is taken away, which begins with the last one.
    cluster.delete(&any("Installation", "web")).await;
    let deletions = open_plans(&cluster, 3).await;
    for plan in &deletions {
        assert_eq!(plan["spec"]["summary"], "1 to delete");
        cluster.expect(&config_map("a", Some("1"))).await;
    }
    for plan in &deletions {
        decide(&cluster, plan, "Approve").await;
    }
    cluster.expect_absent(&any("Installation", "web")).await;
    for name in ["a", "b", "c"] {
        cluster.expect_absent(&config_map(name, None)).await;
    }
}

#[tokio::test]
async fn c_366_what_was_planned_ahead_is_tried_out_anew_and_does_not_outlive_its_job() {
    let cluster = crate::cluster().await;
    cluster.apply(&chain("1")).await;
    let plans = open_plans(&cluster, 3).await;
    let of = |name: &str| {
        let summary = |plan: &&Value| plan["spec"]["item"]["name"].to_string().contains(&format!("web-{name}-"));
        plans.iter().find(summary).cloned().expect("there is one of each")
    };
    // Somebody makes the object of b before it is the turn of b, whose Plan says that it is created.
    cluster.create(&config_map("b", Some("theirs"))).await;
    decide(&cluster, &of("b"), "Approve").await;
    decide(&cluster, &of("a"), "Approve").await;
    plan_in_phase(&cluster, &of("b"), "Stale").await;
    cluster.expect(&config_map("b", Some("theirs"))).await;
    // A rejected Plan fails its item when it is its turn, and what comes after it is not asked for any more.
    let second = awaited(&cluster, "web").await;
    assert_eq!(second["spec"]["item"], of("b")["spec"]["item"]);
    decide(&cluster, &second, "Reject").await;
    cluster.expect(&in_phase("Installation", "web", "Failed")).await;
    plan_in_phase(&cluster, &of("c"), "Stale").await;
    cluster.expect(&config_map("b", Some("theirs"))).await;
    cluster.expect_absent(&config_map("c", None)).await;
}

#[tokio::test]
async fn c_370_what_a_policy_exempts_is_written_without_an_approval_and_nothing_else() {
    let cluster = crate::cluster().await;
    let mut team = policy("team", json!({"approval": "Required"}));
    team["spec"]["profile"] = json!("compatible");
    let exempt = json!({"name": "new", "expression": "object.action == 'create' && object.name == 'web'"});
    team["spec"]["plans"] = json!({"withoutApproval": [exempt]});
    put(&cluster, &team).await;
    cluster.apply(&root("web", "1")).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("web", Some("1"))).await;
    cluster.expect_absent(&any_plan()).await;
    // A change is not what it exempts.
    cluster.apply(&root("web", "2")).await;
    let plan = awaited(&cluster, "web").await;
    assert_eq!(plan["spec"]["summary"], "1 to change");
    cluster.expect(&config_map("web", Some("1"))).await;
    decide(&cluster, &plan, "Approve").await;
    cluster.expect(&config_map("web", Some("2"))).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
}

/// The item may take a second, and waits longer than that: until another one has come to the end of two.
#[tokio::test]
async fn c_316_the_time_of_an_item_begins_when_somebody_has_approved_what_it_writes() {
    let cluster = crate::cluster().await;
    let mut item = deploys("web", &[], "1");
    item["timeout"] = json!("1s");
    cluster.apply(&of_item("web", item)).await;
    let plan = awaited(&cluster, "web").await;
    let mut slow = becomes_ready("slow", &[]);
    slow["timeout"] = json!("2s");
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[slow])}));
    cluster.apply(&on_cluster(installation("slow", &blueprint))).await;
    cluster.expect(&in_phase("Installation", "slow", "Failed")).await;
    decide(&cluster, &plan, "Approve").await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("web", Some("1"))).await;
}

#[tokio::test]
async fn c_318_a_rule_that_does_not_hold_fails_an_item_before_it_writes_anything() {
    let cluster = crate::cluster().await;
    let mut team = policy("team", json!({}));
    team["spec"]["profile"] = json!("compatible");
    team["spec"]["plans"] = json!({"rules": [
        {"name": "content", "expression": "objects.all(o, o.after.data.content != 'bad')", "message": "nothing is bad here"},
        {"name": "few", "expression": "counts.create == 0", "action": "Warn"},
    ]});
    put(&cluster, &team).await;
    let mut web = root("web", "bad");
    web["spec"]["approval"] = json!("None");
    cluster.apply(&web).await;
    let failed = cluster.expect(&in_phase("Installation", "web", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    let said = "nothing is written: rule content of NamespacePolicy team, line spec.plans.rules: nothing is bad here; correct the item";
    assert!(message.contains(said), "{message}");
    cluster.expect_absent(&config_map("web", None)).await;
    let mut good = root("web", "good");
    good["spec"]["approval"] = json!("None");
    cluster.apply(&good).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("web", Some("good"))).await;
    let warned = |event: &Value| {
        event["reason"] == "PlanWarning"
            && event["note"].to_string().contains("rule few of NamespacePolicy team, line spec.plans.rules: ")
    };
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": NAMESPACE}});
    cluster.expect_that(&event, "did not warn", warned).await;
    team["spec"]["plans"] = json!({"rules": [{"name": "stays", "expression": "counts.delete == 0"}]});
    put(&cluster, &team).await;
    cluster.delete(&any("Installation", "web")).await;
    let failed = cluster.expect(&in_phase("Installation", "web", "DeleteFailed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    assert!(message.contains("rule stays of NamespacePolicy team, line spec.plans.rules: "), "{message}");
    cluster.expect(&config_map("web", Some("good"))).await;
    cluster.delete(&team).await;
    cluster.expect_absent(&any("Installation", "web")).await;
    cluster.expect_absent(&config_map("web", None)).await;
}

#[tokio::test]
async fn c_311_c_405_the_command_line_shows_what_waits_and_says_yes_or_no() {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, &[]).await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("the file can be written");
    let run = async |arguments: &[&str]| binary.run(&[arguments, &["--kubeconfig", "kubeconfig"]].concat()).await;
    let none = run(&["approve"]).await;
    assert_eq!(none.stdout, "no Plan in namespace default waits to be approved\n");
    cluster.apply(&root("web", "1")).await;
    let plan = awaited(&cluster, "web").await;
    let name = plan["metadata"]["name"].as_str().unwrap_or_default();
    let item = plan["spec"]["item"]["name"].as_str().unwrap_or_default();
    assert_eq!(run(&["approve"]).await.stdout, format!("{name}  deploy item {item} of web: 1 to create\n"));
    let title = format!(
        "plan {name}, of deploy item {item} by manifest 0.1.0: 1 to create\n  + ConfigMap default/web  (manifests)\n"
    );
    let shown = run(&["approve", "web", "--dry-run", "--brief"]).await;
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), title.as_str()));
    let unsaid = awaited(&cluster, "web").await;
    assert_eq!(unsaid["status"], json!({"phase": "Ready"}), "nothing was said");
    let whole = run(&["approve", name, "--dry-run"]).await.stdout;
    assert!(whole.contains("      content: '1'\n") || whole.contains("content: \"1\"\n"), "{whole}");
    let said = run(&["approve", "web", "--brief", "--wait"]).await;
    let ended = format!("{title}plan default/{name}: approved\ninstallation default/web: Succeeded\n");
    assert_eq!((said.code, said.stdout), (Some(0), ended));
    plan_in_phase(&cluster, &plan, "Applied").await;
    let again = run(&["approve", name]).await;
    let ended =
        format!("error: plan {name} is Applied: its job has ended; there is nothing to approve or to reject in it\n");
    assert_eq!((again.code, again.stderr), (Some(1), ended));
    let nobody = run(&["approve", "nobody"]).await;
    let none = "error: in namespace default is no Plan nobody, and none below an Installation of this name waits to be approved; orangery \
                approve -n default lists those that do\n";
    assert_eq!((nobody.code, nobody.stderr.as_str()), (Some(1), none));
    cluster.apply(&root("web", "2")).await;
    let next = awaited(&cluster, "web").await;
    let next = next["metadata"]["name"].as_str().unwrap_or_default();
    let no = run(&["reject", next, "--brief", "--reason", "not today"]).await;
    assert!(no.code == Some(0) && no.stdout.ends_with(&format!("plan default/{next}: rejected\n")), "{no:?}");
    let failed = cluster.expect(&in_phase("Installation", "web", "Failed")).await;
    assert!(failed["status"]["lastError"]["message"].to_string().contains(": not today; nothing of it is written"));
}

/// A release is written in two stages, and its time is that of the job: it is approved once, however late.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_311_c_313_a_release_of_helm_is_approved_as_a_whole() {
    let cluster = crate::cluster().await;
    let mut team = policy("team", json!({"approval": "Required"}));
    team["spec"]["profile"] = json!("compatible");
    put(&cluster, &team).await;
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {text: one}\n";
    deploy(&cluster, &item(&packed("1.0.0", &[("config.yaml", config)]), &json!({}))).await;
    let open = |plan: &Value| plan["status"]["phase"] == "Ready";
    let plan = cluster.expect_that(&any_plan(), "is not open", open).await;
    assert_eq!(plan["spec"]["summary"], "2 to create", "the release and the ConfigMap");
    // Until another tree has come and gone, some time has passed.
    wait_until_idle(&cluster).await;
    decide(&cluster, &plan, "Approve").await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.expect(&config_map("config", None)).await;
    assert_eq!(cluster.list(&any_plan()).await.len(), 1, "nobody was asked twice");
}
