//! Golden texts of trees: every form of node that a user can meet.

mod why;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use orangery_core::name::{Namespace, ObjectName};
use serde_json::{Value, json};

use crate::{
    terminal::{Appearance, Ink, Size, tests::display},
    tree::{
        Objects, Tree,
        draw::{self, TreeView, lines},
        live::Live,
    },
};

const JOB: &str = "job-1";

/// A job's status: `phase`, whether it has ended, and what is merged in.
fn status(phase: &str, ended: bool, more: Value) -> Value {
    let mut status = json!({"phase": phase, "jobID": JOB, "jobIDFinished": if ended { JOB } else { "job-0" }, "observedGeneration": 1});
    let (Value::Object(fields), Value::Object(more)) = (&mut status, more) else { unreachable!() };
    fields.extend(more);
    status
}

fn condition(reason: &str, message: &str) -> Value {
    let now = "2026-11-21T08:00:00Z";
    json!({"conditions": [{"type": "Progressing", "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": now, "lastUpdateTime": now}]})
}

fn error(reason: &str, message: &str, codes: &[&str]) -> Value {
    let now = "2026-11-21T08:00:00Z";
    json!({"lastError": {"operation": "Deploy", "reason": reason, "message": message, "codes": codes,
        "lastTransitionTime": now, "lastUpdateTime": now}})
}

#[derive(Default)]
struct Given(Objects);

impl Given {
    fn installation(mut self, name: &str, metadata: Value, status: Value) -> Self {
        let metadata = merged(json!({"namespace": "default", "name": name}), metadata);
        let object = json!({"metadata": metadata, "spec": {"blueprint": {}}, "status": status});
        self.0.installations.push(Arc::new(serde_json::from_value(object).unwrap()));
        self
    }

    fn execution(mut self, name: &str, items: &[&str], status: Value) -> Self {
        let items: Vec<Value> = items.iter().map(|name| json!({"name": name, "type": "t", "config": {}})).collect();
        let object = json!({"metadata": {"namespace": "default", "name": name}, "spec": {"deployItems": items}, "status": status});
        self.0.executions.push(Arc::new(serde_json::from_value(object).unwrap()));
        self
    }

    fn item(mut self, execution: &str, name: &str, annotations: Value, status: Value) -> Self {
        let object = json!({
            "metadata": {"namespace": "default", "name": format!("{execution}-{name}-x7f"), "annotations": annotations, "labels": {
                "execution.landscaper.gardener.cloud/managed-by": execution, "execution.landscaper.gardener.cloud/name": name,
            }},
            "spec": {"type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"name": "cluster"}},
            "status": status,
        });
        self.0.deploy_items.push(Arc::new(serde_json::from_value(object).unwrap()));
        self
    }

    fn tree(self) -> Tree {
        Tree::of(&self.0)
    }
}

fn merged(mut left: Value, right: Value) -> Value {
    let (Value::Object(fields), Value::Object(more)) = (&mut left, right) else { unreachable!() };
    fields.extend(more);
    left
}

fn plain(tree: &Tree) -> String {
    text(tree, TreeView { ink: Ink::Plain, is_wide: false, home: &"default".into(), columns: None })
}

fn text(tree: &Tree, view: TreeView<'_>) -> String {
    lines(tree, view).into_iter().fold(String::from("\n"), |text, line| text + &line + "\n")
}

fn causes(tree: &Tree) -> Vec<String> {
    tree.causes().iter().map(|cause| cause.text()).collect()
}

fn hello() -> Given {
    let times = |to: &str| json!({"transitionTimes": {"triggerTime": "2026-11-21T08:00:00Z", "finishedTime": to}});
    Given::default()
        .installation("hello", json!({}), status("Succeeded", true, times("2026-11-21T08:00:03Z")))
        .execution("hello", &["item"], status("Succeeded", true, times("2026-11-21T08:00:02Z")))
        .item("hello", "item", json!({}), status("Succeeded", true, times("2026-11-21T08:00:00Z")))
}

fn failing() -> Given {
    let message = "could not apply ConfigMap x\nadmission said no";
    Given::default()
        .installation(
            "hello",
            json!({}),
            status("Failed", true, error("ChildrenFailed", "execution hello failed", &[])),
        )
        .execution(
            "hello",
            &["b", "a"],
            status("Failed", true, error("DeployItemsFailed", "deploy item b failed", &[])),
        )
        .item("hello", "a", json!({}), status("Succeeded", true, json!({})))
        .item(
            "hello",
            "b",
            json!({}),
            status("Failed", true, error("ApplyFailed", message, &["ERR_CONFIGURATION_PROBLEM"])),
        )
        .installation("quiet", json!({}), status("Succeeded", true, json!({})))
}

#[test]
fn a_tree_that_succeeded() {
    assert_eq!(
        plain(&hello().tree()),
        "
hello                                       Installation  Succeeded  3s
└─ hello                                    Execution     Succeeded  1/1
   └─ item (kubernetes-manifest → cluster)  DeployItem    Succeeded
"
    );
}

#[test]
fn running_items_say_what_they_wait_for_and_pending_ones_what_they_come_after() {
    let tree = Given::default()
        .installation(
            "app",
            json!({}),
            status("Progressing", false, condition("WaitingForExecution", "waiting for Execution app to finish")),
        )
        .execution("app", &["first", "second", "third"], status("Progressing", false, json!({})))
        .item("app", "third", json!({"execution.landscaper.gardener.cloud/dependsOn": "first,second"}), json!({}))
        .item(
            "app",
            "second",
            json!({}),
            status("Progressing", false, condition("TransientError", "the cluster does not answer\nreally")),
        )
        .item("app", "first", json!({}), status("Succeeded", true, json!({})))
        .tree();
    assert_eq!(
        plain(&tree),
        "
app                                           Installation  Progressing  waiting for Execution app to finish
└─ app                                        Execution     Progressing  1/3
   ├─ first (kubernetes-manifest → cluster)   DeployItem    Succeeded
   ├─ second (kubernetes-manifest → cluster)  DeployItem    Progressing  tries again: the cluster does not answer
   └─ third (kubernetes-manifest → cluster)   DeployItem    Pending      after second
"
    );
    assert!(!tree.is_final());
}

#[test]
fn only_what_failed_by_itself_is_a_cause_and_it_is_told_in_full() {
    let tree = failing().tree();
    assert_eq!(
        causes(&tree),
        ["deploy item b of installation default/hello failed: could not apply ConfigMap x
  admission said no
  reason: ApplyFailed (in Deploy)
  code:   ERR_CONFIGURATION_PROBLEM
  hint:   correct the blueprint or the installation, apply it, then: orangery reconcile NAME"]
    );
    assert!(tree.has_failed() && tree.is_final());
}

#[test]
fn failed_only_keeps_what_failed_and_what_it_belongs_to() {
    assert_eq!(
        plain(&failing().tree().failed_only()),
        "
hello                                    Installation  Failed  ChildrenFailed
└─ hello                                 Execution     Failed  1/2  DeployItemsFailed
   └─ b (kubernetes-manifest → cluster)  DeployItem    Failed  ApplyFailed
"
    );
}

#[test]
fn subinstallations_stand_below_their_parent_by_the_name_of_the_blueprint() {
    let sub = |title: &str, parent: &str| {
        json!({
            "annotations": {"landscaper.gardener.cloud/subinstallation-name": title},
            "labels": {"landscaper.gardener.cloud/encompassed-by": parent},
        })
    };
    let failed = status("Failed", true, error("ImportNotFound", "import x does not exist", &[]));
    let tree = Given::default()
        .installation("top-z9", sub("database", "top"), status("Succeeded", true, json!({})))
        .installation("top-a1", sub("server", "top"), failed)
        .installation("top", json!({}), status("Failed", true, error("ChildrenFailed", "server failed", &[])))
        .tree();
    assert_eq!(
        plain(&tree),
        "
top          Installation  Failed     ChildrenFailed
├─ database  Installation  Succeeded
└─ server    Installation  Failed     ImportNotFound
"
    );
    assert_eq!(
        causes(&tree),
        ["installation default/top/server failed: import x does not exist\n  reason: ImportNotFound (in Deploy)"]
    );
    let one = tree.of_installation(&"default".into(), &ObjectName::from_static("top-a1")).unwrap();
    assert_eq!(plain(&one), "\nserver  Installation  Failed  ImportNotFound\n");
    assert_eq!(tree.of_installation(&"other".into(), &ObjectName::from_static("top-a1")), None);
}

#[test]
fn c_05_what_nobody_triggered_says_how_to() {
    let stale = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "AwaitingTrigger", "message": "…",
        "lastTransitionTime": "2026-11-21T08:00:00Z", "lastUpdateTime": "2026-11-21T08:00:00Z"}]});
    let asked = json!({"annotations": {"landscaper.gardener.cloud/operation": "reconcile"}});
    let tree = Given::default()
        .installation("asked", asked, status("Succeeded", true, json!({})))
        .installation("changed", json!({}), status("Succeeded", true, stale))
        .installation("new", json!({}), json!({}))
        .tree();
    assert_eq!(
        plain(&tree),
        "
asked    Installation  Requested
changed  Installation  Succeeded  awaits a trigger: orangery reconcile changed -n default
new      Installation  Idle       awaits a trigger: orangery reconcile new -n default
"
    );
    assert!(!tree.is_final(), "a request that stands is work to come");
    let more = status("Succeeded", true, json!({"dependentsToTrigger": [{"name": "next"}]}));
    assert!(
        !Given::default().installation("first", json!({}), more).tree().is_final(),
        "others are about to be triggered"
    );
}

#[test]
fn objects_without_a_family_and_rings_of_labels_are_shown_all_the_same() {
    let within = |parent: &str| json!({"labels": {"landscaper.gardener.cloud/encompassed-by": parent}});
    let tree = Given::default()
        .installation("a", within("b"), status("Succeeded", true, json!({})))
        .installation("b", within("a"), status("Succeeded", true, json!({})))
        .execution("lost", &[], status("Succeeded", true, json!({})))
        .item("gone", "item", json!({}), status("Succeeded", true, json!({})))
        .tree();
    assert_eq!(
        plain(&tree),
        "
a                                     Installation  Succeeded
└─ b                                  Installation  Succeeded
lost                                  Execution     Succeeded  0/0
item (kubernetes-manifest → cluster)  DeployItem    Succeeded
"
    );
}

#[test]
fn an_item_of_an_earlier_job_never_passes_for_this_one() {
    let earlier = json!({"phase": "Succeeded", "jobID": "job-0", "jobIDFinished": "job-0"});
    let running = Given::default()
        .installation("app", json!({}), status("Progressing", false, json!({})))
        .execution("app", &["item"], status("Progressing", false, json!({})))
        .item("app", "item", json!({}), earlier.clone())
        .tree();
    assert!(plain(&running).contains("DeployItem    Pending"), "{}", plain(&running));
    assert!(plain(&running).contains("Progressing  0/1"), "{}", plain(&running));
}

#[test]
fn a_wide_view_has_object_names_jobs_and_plugins() {
    let deployer = json!({"deployer": {"identity": "i", "name": "manifest", "version": "0.1.0"}});
    let tree = Given::default()
        .installation("app", json!({}), status("Succeeded", true, json!({})))
        .execution("app", &["item"], status("Succeeded", true, json!({})))
        .item("app", "item", json!({}), status("Succeeded", true, deployer))
        .tree();
    assert_eq!(
        text(&tree, TreeView { ink: Ink::Plain, is_wide: true, home: Namespace::EMPTY, columns: None }),
        "
default/app                                 Installation  Succeeded       app           job-1
└─ app                                      Execution     Succeeded  1/1  app           job-1
   └─ item (kubernetes-manifest → cluster)  DeployItem    Succeeded       app-item-x7f  job-1  manifest 0.1.0
"
    );
}

#[test]
fn colours_tell_phases_apart_and_long_lines_are_cut() {
    let view = TreeView { ink: Ink::Colours, is_wide: false, home: &"default".into(), columns: Some(24) };
    let tree = Given::default().installation("hello", json!({}), status("Succeeded", true, json!({}))).tree();
    assert_eq!(lines(&tree, view), ["hello  \u{1b}[2mInstallation\u{1b}[0m  \u{1b}[32mSu…\u{1b}[0m"]);
}

#[test]
fn the_json_form_is_stable() {
    let tree = failing().tree().failed_only();
    let item = json!({
        "kind": "DeployItem", "namespace": "default", "name": "hello-b-x7f", "title": "b", "phase": "Failed",
        "standing": "failed", "job": "job-1", "since": "2026-11-21T08:00:00Z",
        "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": "cluster",
        "error": {
            "operation": "Deploy", "reason": "ApplyFailed",
            "message": "could not apply ConfigMap x\nadmission said no", "codes": ["ERR_CONFIGURATION_PROBLEM"],
            "hint": "correct the blueprint or the installation, apply it, then: orangery reconcile NAME",
        },
        "children": [],
    });
    assert_eq!(
        serde_json::to_value(&tree.roots).unwrap(),
        json!([{
            "kind": "Installation", "namespace": "default", "name": "hello", "title": "hello", "phase": "Failed",
            "standing": "failed", "job": "job-1", "since": "2026-11-21T08:00:00Z",
            "error": {"operation": "Deploy", "reason": "ChildrenFailed", "message": "execution hello failed", "codes": []},
            "children": [{
                "kind": "Execution", "namespace": "default", "name": "hello", "title": "hello", "phase": "Failed",
                "standing": "failed", "job": "job-1", "since": "2026-11-21T08:00:00Z", "items": {"done": 1, "total": 2},
                "error": {"operation": "Deploy", "reason": "DeployItemsFailed", "message": "deploy item b failed", "codes": []},
                "children": [item],
            }],
        }])
    );
    assert_eq!(
        serde_json::to_value(tree.causes()).unwrap(),
        json!([{
            "path": "default/hello/b", "kind": "DeployItem", "namespace": "default", "name": "hello-b-x7f",
            "operation": "Deploy", "reason": "ApplyFailed", "message": "could not apply ConfigMap x\nadmission said no",
            "codes": ["ERR_CONFIGURATION_PROBLEM"],
            "hint": "correct the blueprint or the installation, apply it, then: orangery reconcile NAME",
        }])
    );
}

#[test]
fn what_is_handed_down_is_named_as_in_the_blueprint() {
    let sub = json!({
        "annotations": {"landscaper.gardener.cloud/subinstallation-name": "database"},
        "labels": {"landscaper.gardener.cloud/encompassed-by": "top"},
    });
    let mut given = Given::default()
        .installation("top", json!({}), status("Succeeded", true, json!({})))
        .installation("database-z9", sub, status("Succeeded", true, json!({})))
        .execution("database-z9", &["item"], status("Succeeded", true, json!({})))
        .item("database-z9", "item", json!({}), status("Succeeded", true, json!({})));
    for item in &mut given.0.deploy_items {
        Arc::make_mut(item).spec.target.as_mut().unwrap().name = "7ziogpow4xbchhkm45r7f6twabhsgmhc".into();
    }
    assert_eq!(
        plain(&given.tree()),
        "
top                                              Installation  Succeeded
└─ database                                      Installation  Succeeded
   └─ database                                   Execution     Succeeded  1/1
      └─ item (kubernetes-manifest → 7ziogpow…)  DeployItem    Succeeded
"
    );
}

#[test]
fn lengths_of_time_are_as_long_as_they_tell() {
    let display = [0, 4, 50, 2_500, 12_000, 12_340, 187_000, 3_723_000]
        .map(|milliseconds| draw::length(Duration::from_millis(milliseconds)));
    let expected =
        [None, Some("4ms"), Some("0.05s"), Some("2.50s"), Some("12s"), Some("12.3s"), Some("3m07s"), Some("1h02m")];
    assert_eq!(display, expected.map(|text| text.map(str::to_owned)));
}

fn running() -> Tree {
    Given::default().installation("hello", json!({}), status("Progressing", false, json!({}))).tree()
}

fn succeeded() -> Tree {
    Given::default().installation("hello", json!({}), status("Succeeded", true, json!({}))).tree()
}

#[test]
fn where_nothing_can_be_redrawn_each_change_is_one_line() {
    let (mut terminal, out, _) = display(Appearance::PLAIN);
    Live::new("").show(&mut terminal, hello().tree(), Duration::ZERO).unwrap();
    assert_eq!(
        out.text(),
        "   0.000s  Installation  default/hello  Succeeded  3s
   0.000s  Execution     default/hello  Succeeded  1/1
   0.000s  DeployItem    default/hello/item  Succeeded
"
    );
    let (mut terminal, out, _) = display(Appearance::PLAIN);
    let mut live = Live::new("default");
    live.show(&mut terminal, running(), Duration::from_millis(10)).unwrap();
    live.show(&mut terminal, running(), Duration::from_millis(20)).unwrap();
    live.show(&mut terminal, succeeded(), Duration::from_millis(60)).unwrap();
    live.finish(&mut terminal, Tree::default(), Duration::from_millis(70)).unwrap();
    assert_eq!(
        out.text(),
        "   0.010s  Installation  hello  Progressing
   0.060s  Installation  hello  Succeeded  0.05s
   0.070s  Installation  hello  gone
"
    );
}

fn size(columns: usize, rows: usize) -> Option<Size> {
    Some(Size { columns: NonZeroUsize::new(columns)?, rows: NonZeroUsize::new(rows)? })
}

#[test]
fn on_a_terminal_the_drawing_is_replaced() {
    let (mut terminal, out, _) = display(Appearance { size: || size(80, 24), ..Appearance::PLAIN });
    let mut live = Live::new("default");
    live.show(&mut terminal, running(), Duration::ZERO).unwrap();
    live.show(&mut terminal, succeeded(), Duration::from_millis(50)).unwrap();
    assert_eq!(
        out.text(),
        "hello  Installation  Progressing\n\u{1b}[1A\u{1b}[Jhello  Installation  Succeeded  0.05s\n"
    );
}

#[test]
fn a_tree_higher_than_the_terminal_counts_what_succeeded_and_is_cut() {
    let (mut terminal, out, _) = display(Appearance { size: || size(80, 4), ..Appearance::PLAIN });
    let mut given = Given::default();
    for name in ["a", "b", "c", "d"] {
        given = given.installation(name, json!({}), status("Progressing", false, json!({})));
    }
    given = given.installation("e", json!({}), status("Succeeded", true, json!({})));
    Live::new("default").show(&mut terminal, given.tree(), Duration::ZERO).unwrap();
    assert_eq!(out.text(), "1 of 5 succeeded\na  Installation  Progressing\n… and 3 lines more\n");
}

#[test]
fn limits_inspect_installations_are_shown_so_deep() {
    let name = |number: usize| format!("i{number:05}");
    let chain = (0..10_000).fold(Given::default(), |given, number| {
        let parent = json!({"labels": {"landscaper.gardener.cloud/encompassed-by": name(number.max(1) - 1)}});
        let metadata = if number == 0 { json!({}) } else { parent };
        given.installation(&name(number), metadata, status("Succeeded", true, json!({})))
    });
    let tree = plain(&chain.tree());
    let deepest = tree.lines().filter_map(|line| line.find(['i', 'I'])).max();
    assert!(deepest.is_some_and(|column| column < 400), "{deepest:?}");
    assert!((0..10_000).all(|number| tree.contains(&name(number))), "all of them are shown");
}
