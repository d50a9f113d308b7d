//! Chains from an object to where the reason lies.

use orangery_api::waiting::WaitingFor;
use orangery_core::{
    name::ObjectName,
    step::{Until, Wait, Waiting},
};
use orangery_proposal::ObjectKey;

use super::*;
use crate::tree::NodeKind;

#[track_caller]
fn check(given: Given, kind: NodeKind, name: &str, expected: &str) {
    let tree = given.tree();
    let why = tree.why(kind, &"default".into(), &name.into()).unwrap();
    assert_eq!(format!("\n{}\n", why.lines().join("\n")), expected);
}

fn sub(title: &str) -> Value {
    json!({
        "annotations": {"landscaper.gardener.cloud/subinstallation-name": title},
        "labels": {"landscaper.gardener.cloud/encompassed-by": "app"},
    })
}

/// The status of what waits for these, in the form that the operator writes.
fn waiting(phase: &str, on: impl IntoIterator<Item = Waiting>) -> Value {
    let wait = Wait::each(on).unwrap().in_namespace(&"default".into());
    let (listed, more) = wait.listed();
    let named: Vec<WaitingFor> = listed.iter().map(WaitingFor::new).collect();
    let data = json!({"waitingFor": named, "waitingForMore": more});
    status(phase, false, merged(condition(&wait.reason(), &wait.to_string()), data))
}

/// Until a job has finished.
fn finished(kind: &str, name: &str) -> Waiting {
    Waiting::beside(kind, name, Until::Finished)
}

/// Until a gate expression is met.
fn met(name: &str) -> Waiting {
    Waiting::nowhere("GateExpression", name, Until::Met)
}

/// An app whose second sub-installation waits for the first, whose item fares as given.
fn app(item: Value) -> Given {
    Given::default()
        .installation(
            "app",
            json!({}),
            waiting("Progressing", [finished("Installation", "b-1"), finished("Installation", "c-1")]),
        )
        .installation("b-1", sub("b"), waiting("Progressing", [finished("Execution", "b-1")]))
        .installation("c-1", sub("c"), waiting("Init", [finished("Installation", "b-1")]))
        .execution("b-1", &["x"], waiting("Progressing", [finished("DeployItem", "b-1-x-x7f")]))
        .item("b-1", "x", json!({}), item)
}

#[test]
fn what_waits_leads_to_the_item_that_nobody_takes() {
    check(
        app(status("", false, json!({}))),
        NodeKind::Installation,
        "c-1",
        "
installation c-1 is at work in phase Init: waiting for Installation b-1 to finish (since 2026-11-21T08:00:00Z)
  because installation b-1 is at work in phase Progressing: waiting for Execution b-1 to finish (since 2026-11-21T08:00:00Z)
    because execution b-1 is at work in phase Progressing: waiting for DeployItem b-1-x-x7f to finish (since 2026-11-21T08:00:00Z)
      because deploy item x (b-1-x-x7f) has not begun: nobody has taken it, neither a component for landscaper.gardener.cloud/kubernetes-manifest nor another deployer
        fix:    register a component for the type (orangery run --plugins), start the deployer that takes it, or correct the type in the blueprint; to delete it without its deployer, and leave what it deployed, annotate it with landscaper.gardener.cloud/delete-without-uninstall: \"true\"
",
    );
}

#[test]
fn an_item_whose_deployer_has_gone_since_its_last_job_is_taken_by_nobody() {
    let deployer = json!({"deployer": {"identity": "one", "name": "mock", "version": "0.1.0"}});
    let tree = app(status("Succeeded", false, deployer)).tree();
    let why = tree.why(NodeKind::DeployItem, &"default".into(), &"b-1-x-x7f".into()).unwrap();
    let lines = why.lines().join("\n");
    assert!(lines.starts_with("deploy item x (b-1-x-x7f) has not begun: nobody has taken it, "), "{lines}");
}

#[test]
fn of_several_that_are_waited_for_the_failed_one_is_followed_and_told_in_full() {
    let failed = status(
        "Failed",
        true,
        error("TargetNotFound", "Target nowhere does not exist", &["ERR_CONFIGURATION_PROBLEM"]),
    );
    check(
        app(failed),
        NodeKind::Installation,
        "app",
        "
installation app is at work in phase Progressing: waiting for Installation b-1 to finish, Installation c-1 to finish, and for 1 more (since 2026-11-21T08:00:00Z)
  because installation b-1 is at work in phase Progressing: waiting for Execution b-1 to finish (since 2026-11-21T08:00:00Z)
    because execution b-1 is at work in phase Progressing: waiting for DeployItem b-1-x-x7f to finish (since 2026-11-21T08:00:00Z)
      because deploy item x (b-1-x-x7f) failed (since 2026-11-21T08:00:00Z)
        error:  Target nowhere does not exist
        reason: TargetNotFound (in Deploy)
        code:   ERR_CONFIGURATION_PROBLEM
        fix:    correct the blueprint or the installation, apply it, then: orangery reconcile NAME
",
    );
}

#[test]
fn what_failed_leads_to_the_leaf_that_failed() {
    check(
        failing(),
        NodeKind::Installation,
        "hello",
        "
installation hello failed (since 2026-11-21T08:00:00Z)
  because execution hello failed (since 2026-11-21T08:00:00Z)
    because deploy item b (hello-b-x7f) failed (since 2026-11-21T08:00:00Z)
      error:  could not apply ConfigMap x
              admission said no
      reason: ApplyFailed (in Deploy)
      code:   ERR_CONFIGURATION_PROBLEM
      fix:    correct the blueprint or the installation, apply it, then: orangery reconcile NAME
",
    );
}

#[test]
fn a_failed_predecessor_is_followed_beside_the_tree() {
    let behind = "an installation whose exports are imported here has not succeeded: installation first failed: boom";
    let given = Given::default()
        .installation("first", json!({}), status("Failed", true, error("TemplateFailed", "boom", &[])))
        .installation("second", json!({}), status("Failed", true, error("PredecessorNotSucceeded", behind, &[])));
    check(
        given,
        NodeKind::Installation,
        "second",
        "
installation second failed (since 2026-11-21T08:00:00Z)
  because installation first failed (since 2026-11-21T08:00:00Z)
    error:  boom
    reason: TemplateFailed (in Deploy)
",
    );
}

#[test]
fn an_item_that_has_not_begun_leads_to_its_predecessor() {
    let after = json!({"execution.landscaper.gardener.cloud/dependsOn": "first"});
    let given = Given::default()
        .installation("app", json!({}), waiting("Progressing", [finished("Execution", "app")]))
        .execution("app", &["first", "second"], waiting("Progressing", [finished("DeployItem", "app-first-x7f")]))
        .item("app", "first", json!({}), status("Progressing", false, condition("TransientError", "no answer")))
        .item("app", "second", after, json!({}));
    check(
        given,
        NodeKind::DeployItem,
        "app-second-x7f",
        "
deploy item second (app-second-x7f) has not begun: it comes after first
  because deploy item first (app-first-x7f) is at work in phase Progressing: tries again: no answer (since 2026-11-21T08:00:00Z)
",
    );
}

#[test]
fn what_is_missing_is_to_be_made_and_what_is_idle_to_be_triggered() {
    let given = Given::default().installation(
        "app",
        json!({}),
        waiting("Init", [Waiting::beside("Context", "other", Until::Exists)]),
    );
    check(
        given,
        NodeKind::Installation,
        "app",
        "
installation app is at work in phase Init: waiting for Context other to exist (since 2026-11-21T08:00:00Z)
  fix:    create Context other in namespace default, or correct what names it
",
    );
    check(
        Given::default().installation("new", json!({}), json!({})),
        NodeKind::Installation,
        "new",
        "
installation new awaits a trigger: orangery reconcile new -n default
",
    );
    let suspended =
        json!({"annotations": {"orangery.dev/suspend": "true", "landscaper.gardener.cloud/operation": "reconcile"}});
    check(
        Given::default().installation("new", suspended.clone(), json!({})),
        NodeKind::Installation,
        "new",
        "
installation new is suspended, and no job begins until it is resumed: orangery resume new -n default
",
    );
    check(hello(), NodeKind::Execution, "hello", "\nexecution hello waits for nothing: its last job succeeded\n");
    assert_eq!(hello().tree().why(NodeKind::Execution, &"default".into(), &ObjectName::from_static("absent")), None);
}

/// The chain follows the data: what the message says is never read.
#[test]
fn the_chain_follows_the_data_and_not_the_message() {
    let mut deceptive = waiting("Progressing", [finished("Execution", "app")]);
    deceptive["conditions"][0]["message"] = json!("waiting for Installation other to finish");
    let given = |deceptive: &Value| {
        Given::default()
            .installation("app", json!({}), deceptive.clone())
            .installation("other", json!({}), status("Succeeded", true, json!({})))
            .execution("app", &[], status("Progressing", false, json!({})))
    };
    let names = |given: Given| {
        let tree = given.tree();
        let why = tree.why(NodeKind::Installation, &"default".into(), &ObjectName::from_static("app")).unwrap();
        why.chain.iter().map(|link| (link.kind, link.name.to_owned(), link.others)).collect::<Vec<_>>()
    };
    let chain = [(NodeKind::Installation, "app".into(), 0), (NodeKind::Execution, "app".into(), 0)];
    assert_eq!(names(given(&deceptive)), chain);
    deceptive["waitingFor"][0]["namespace"] = json!("elsewhere");
    assert_eq!(names(given(&deceptive)), chain[..1]);
}

#[test]
fn what_the_status_only_counts_is_counted() {
    let items = (0..20).map(|n| finished("DeployItem", &format!("app-i{n:02}-x7f")));
    let names: Vec<String> = (0..20).map(|n| format!("i{n:02}")).collect();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut given = Given::default().execution("app", &listed, waiting("Progressing", items));
    for name in &names {
        given = given.item("app", name, json!({}), status("Progressing", false, json!({})));
    }
    let tree = given.tree();
    let why = tree.why(NodeKind::Execution, &"default".into(), &ObjectName::from_static("app")).unwrap();
    let others: Vec<(&str, usize)> = why.chain.iter().map(|link| (link.name.as_str(), link.others)).collect();
    assert_eq!(others, [("app", 19), ("app-i00-x7f", 0)]);
}

/// A deploy item that waits for an object of its cluster, and one that waits for room in the operator.
#[test]
fn what_a_deploy_item_waits_for_is_on_another_cluster() {
    let key = ObjectKey {
        api_version: "landscaper.gardener.cloud/v1alpha1".into(),
        kind: "Installation".into(),
        namespace: Some("default".into()),
        name: "app".into(),
    };
    let given = Given::default()
        .installation("app", json!({}), status("Succeeded", true, json!({})))
        .execution("e", &["x", "y"], status("Progressing", false, json!({})))
        .item("e", "x", json!({}), waiting("Progressing", [key.waiting(Until::Exists)]))
        .item("e", "y", json!({}), waiting("", [Waiting::nowhere("Host", "maxParallel=1", Until::Room)]));
    let tree = given.tree();
    let lines = |name: &str| tree.why(NodeKind::DeployItem, &"default".into(), &name.into()).unwrap().lines();
    assert_eq!(
        lines("e-x-x7f"),
        [
            "deploy item x (e-x-x7f) is at work in phase Progressing: waiting for Installation default/app to exist (since 2026-11-21T08:00:00Z)",
            "  fix:    create Installation app in namespace default, or correct what names it",
        ]
    );
    assert_eq!(
        lines("e-y-x7f"),
        [
            "deploy item y (e-y-x7f) has not begun: waiting for Host maxParallel=1 to have room (since 2026-11-21T08:00:00Z)"
        ]
    );
}

#[test]
fn the_json_form_of_what_is_waited_for_is_stable() {
    let on = (0..17).map(|n| finished("Execution", &format!("e{n:02}")));
    let tree = Given::default().installation("app", json!({}), waiting("Progressing", on)).tree();
    let node = serde_json::to_value(&tree.roots).unwrap()[0].clone();
    assert_eq!(
        (&node["waitingFor"][0], node["waitingFor"].as_array().unwrap().len(), &node["waitingForMore"]),
        (&json!({"kind": "Execution", "namespace": "default", "name": "e00", "until": "Finished"}), 16, &json!(1))
    );
    // What is left over from before the job ended is no news.
    let mut ended = waiting("Succeeded", [finished("Execution", "e")]);
    ended["jobIDFinished"] = ended["jobID"].clone();
    let tree = Given::default().installation("app", json!({}), ended).tree();
    let node = serde_json::to_value(&tree.roots).unwrap()[0].clone();
    assert_eq!((node.get("waitingFor"), node.get("waitingForMore")), (None, None));
}

/// Two that wait for each other end the chain; whoever reads it sees the ring.
#[test]
fn a_ring_ends() {
    let given = Given::default()
        .installation("a", json!({}), waiting("Init", [finished("Installation", "b")]))
        .installation("b", json!({}), waiting("Init", [finished("Installation", "a")]));
    let tree = given.tree();
    let why = tree.why(NodeKind::Installation, &"default".into(), &ObjectName::from_static("a")).unwrap();
    assert_eq!(why.chain.iter().map(|link| link.name).collect::<Vec<_>>(), ["a", "b"]);
    let fix = "Installation a and Installation b wait for each other in a ring: end the job of their root with orangery interrupt NAME";
    assert_eq!(why.fix.as_deref(), Some(fix));
}

#[test]
fn c_161_what_is_deleted_by_itself_says_which_job_uninstalls_it() {
    let mut left = sub("b");
    left["deletionTimestamp"] = json!("2026-11-21T08:00:00Z");
    let message = "is being deleted; the next job of root app uninstalls it";
    let given = Given::default().installation("app", json!({}), status("Succeeded", true, json!({}))).installation(
        "b-1",
        left,
        status("Succeeded", true, condition("AwaitingTrigger", message)),
    );
    let tree = given.tree();
    let why = tree.why(NodeKind::Installation, &"default".into(), &ObjectName::from_static("b-1")).unwrap();
    assert_eq!(why.chain.iter().map(|link| link.says.as_str()).collect::<Vec<_>>(), [message]);
}

#[test]
fn the_json_form_of_a_chain_is_stable() {
    let tree = failing().tree();
    let why = tree.why(NodeKind::DeployItem, &"default".into(), &ObjectName::from_static("hello-b-x7f")).unwrap();
    assert_eq!(
        serde_json::to_value(&why).unwrap(),
        json!({
            "chain": [{
                "kind": "DeployItem", "namespace": "default", "name": "hello-b-x7f", "title": "b", "phase": "Failed",
                "standing": "failed", "since": "2026-11-21T08:00:00Z", "says": "failed", "others": 0,
            }],
            "error": {
                "operation": "Deploy", "reason": "ApplyFailed",
                "message": "could not apply ConfigMap x\nadmission said no", "codes": ["ERR_CONFIGURATION_PROBLEM"],
                "hint": "correct the blueprint or the installation, apply it, then: orangery reconcile NAME",
            },
            "fix": "correct the blueprint or the installation, apply it, then: orangery reconcile NAME",
        })
    );
}

#[test]
fn an_item_that_a_failure_kept_from_starting_says_so() {
    let failed = error("DeployItemsFailed", "deploy item a failed: boom; not started for that reason: b", &[]);
    let given = Given::default()
        .execution("app", &["a", "b"], status("Failed", true, failed))
        .item("app", "a", json!({}), status("Failed", true, error("ApplyFailed", "boom", &[])))
        .item("app", "b", json!({}), json!({}));
    check(
        given,
        NodeKind::DeployItem,
        "app-b-x7f",
        "
deploy item b (app-b-x7f) not started: another one failed
",
    );
}

/// An app with a sub-installation that succeeded and is not ready, one that waits and one that is not wanted.
#[test]
fn wf_09_a_condition_of_a_sub_installation_is_where_the_reason_lies() {
    let time = "2026-11-21T08:00:00Z";
    let says = |name: &str, field: &str, status: &str, message: &str| {
        json!({"name": name, "conditions": [{
            "type": field, "status": status, "reason": "R", "message": message, "lastTransitionTime": time, "askedTime": time,
        }]})
    };
    let mut waits = waiting("Progressing", [met("db/readyWhen")]);
    waits["workflow"] = json!({"subinstallations": [
        says("db", "readyWhen", "False", "`objects.metric != null` does not hold"),
        says("extra", "when", "False", "`imports.extra` does not hold"),
        {"name": "front"},
    ]});
    let given = || {
        Given::default().installation("app", json!({}), waits.clone()).installation(
            "db-1",
            sub("db"),
            status("Succeeded", true, json!({})),
        )
    };
    check(given(), NodeKind::Installation, "app", "
installation app is at work in phase Progressing: waiting for GateExpression db/readyWhen to be met (since 2026-11-21T08:00:00Z)
  because installation db-1 succeeded, but readyWhen is not met: `objects.metric != null` does not hold
");
    assert_eq!(
        plain(&given().tree()),
        "
app       Installation  Progressing  waiting for GateExpression db/readyWhen to be met
├─ db     Installation  Succeeded    readyWhen is not met: `objects.metric != null` does not hold
└─ extra  Installation  Idle         not wanted: `imports.extra` does not hold
"
    );
}

/// An execution whose canary succeeded and is not ready, and one item each that waits, is not wanted and takes no part.
fn canary() -> Given {
    let time = "2026-11-21T08:00:00Z";
    let says = |name: &str, field: &str, status: &str, message: &str| {
        json!({"name": name, "conditions": [{
            "type": field, "status": status, "reason": "R", "message": message, "lastTransitionTime": time, "askedTime": time,
        }]})
    };
    let mut waits = waiting("Progressing", [met("canary/readyWhen")]);
    waits["items"] = json!([
        says("canary", "readyWhen", "False", "`objects.metric != null` does not hold"),
        says("db", "when", "False", "`imports.db` does not hold"),
        says("late", "when", "Unknown", "ConfigMap default/late is not known yet"),
    ]);
    Given::default()
        .installation("app", json!({}), waiting("Progressing", [finished("Execution", "app")]))
        .execution("app", &["canary", "late", "db"], waits)
        .item("app", "canary", json!({}), status("Succeeded", true, json!({})))
}

#[test]
fn wf_09_a_condition_that_holds_an_item_up_is_where_the_reason_lies() {
    check(
        canary(),
        NodeKind::Installation,
        "app",
        "
installation app is at work in phase Progressing: waiting for Execution app to finish (since 2026-11-21T08:00:00Z)
  because execution app is at work in phase Progressing: waiting for GateExpression canary/readyWhen to be met (since 2026-11-21T08:00:00Z)
    because deploy item canary (app-canary-x7f) succeeded, but readyWhen is not met: `objects.metric != null` does not hold
",
    );
    assert_eq!(
        plain(&canary().tree()),
        "
app                                           Installation  Progressing  waiting for Execution app to finish
└─ app                                        Execution     Progressing  1/2  waiting for GateExpression canary/readyWhen to be met
   ├─ canary (kubernetes-manifest → cluster)  DeployItem    Succeeded    readyWhen is not met: `objects.metric != null` does not hold
   ├─ late                                    DeployItem    Pending      when cannot be told: ConfigMap default/late is not known yet
   └─ db                                      DeployItem    Idle         not wanted: `imports.db` does not hold
"
    );
}

#[test]
fn c_212_a_deletion_that_waits_for_the_end_of_a_job_says_so_and_how_it_begins() {
    let wait = Wait::each([finished("Execution", "app")]).unwrap().in_namespace(&"default".into()).before_deletion();
    let named: Vec<WaitingFor> = wait.listed().0.iter().map(WaitingFor::new).collect();
    let data = merged(condition(&wait.reason(), &wait.to_string()), json!({"waitingFor": named}));
    let job = status("Progressing", false, data);
    let item = status("Progressing", false, condition("WaitingForPod", "waiting for Pod x to be ready"));
    let given = Given::default()
        .installation("app", json!({}), job)
        .execution("app", &["x"], waiting("Progressing", [finished("DeployItem", "app-x-x7f")]))
        .item("app", "x", json!({}), item);
    check(
        given,
        NodeKind::Installation,
        "app",
        "
installation app is at work in phase Progressing: waiting for Execution app to finish; it is being deleted, which begins when this job has ended (since 2026-11-21T08:00:00Z)
  because execution app is at work in phase Progressing: waiting for DeployItem app-x-x7f to finish (since 2026-11-21T08:00:00Z)
    because deploy item x (app-x-x7f) is at work in phase Progressing: waiting for Pod x to be ready (since 2026-11-21T08:00:00Z)
      fix:    to have the deletion begin at once, end the job: orangery interrupt app -n default
",
    );
}

#[test]
fn c_212_a_deletion_that_failed_leads_to_the_item_the_object_and_the_reason() {
    let message = "ConfigMap default/x of the target is still there: it has the finalizer example.org/hold";
    let given = Given::default()
        .installation(
            "app",
            json!({}),
            status("DeleteFailed", true, error("ExecutionFailed", "an execution failed", &[])),
        )
        .execution("app", &["x"], status("DeleteFailed", true, error("DeployItemsFailed", "an item failed", &[])))
        .item("app", "x", json!({}), status("DeleteFailed", true, error("Timeout", message, &["ERR_CLEANUP"])));
    check(
        given,
        NodeKind::Installation,
        "app",
        "
installation app failed (since 2026-11-21T08:00:00Z)
  because execution app failed (since 2026-11-21T08:00:00Z)
    because deploy item x (app-x-x7f) failed (since 2026-11-21T08:00:00Z)
      error:  ConfigMap default/x of the target is still there: it has the finalizer example.org/hold
      reason: Timeout (in Deploy)
      code:   ERR_CLEANUP
      fix:    look at what holds the objects (finalizers), then: orangery reconcile NAME
",
    );
}

/// A root that is being deleted, and one that imports what it exports and that nobody deletes.
#[test]
fn ins_61_a_deletion_that_waits_for_an_importer_says_how_it_goes_on() {
    let gone = Waiting::beside("Installation", "importer", Until::Gone);
    let given = |importer: Value| {
        let exporter = waiting("InitDelete", [gone.clone()]);
        Given::default().installation("exporter", json!({}), exporter).installation("importer", json!({}), importer)
    };
    check(
        given(status("Succeeded", true, json!({}))),
        NodeKind::Installation,
        "exporter",
        "
installation exporter is at work in phase InitDelete: waiting for Installation importer to be gone (since 2026-11-21T08:00:00Z)
  because installation importer waits for nothing: its last job succeeded
    fix:    installation importer imports what installation exporter exports, and nobody deletes it: delete it, too, or annotate installation exporter with landscaper.gardener.cloud/delete-ignore-successors: \"true\"
",
    );
    let failed = status("DeleteFailed", true, error("Forbidden", "it may not go", &[]));
    let tree = given(failed).tree();
    let why = tree.why(NodeKind::Installation, &"default".into(), &"exporter".into()).unwrap();
    assert!(!why.lines().join("\n").contains("delete-ignore-successors"), "{:?}", why.lines());
}
