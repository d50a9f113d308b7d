mod exhaustive;
mod gates;

use proptest::prelude::*;

use super::*;

const NEW: &JobId = &JobId::from_static("new");

/// `a=succeeded b(a)=running c(a,b)=old d=missing`: items of job `new`.
fn items(text: &str) -> Vec<(String, Vec<String>, String)> {
    text.split_whitespace()
        .map(|word| {
            let (head, state) = word.split_once('=').unwrap();
            let (name, depends) = head.split_once('(').unwrap_or((head, ""));
            let depends = depends.trim_end_matches(')').split(',').filter(|name| !name.is_empty()).map(str::to_owned);
            (name.to_owned(), depends.collect(), state.to_owned())
        })
        .collect()
}

fn object(name: &str, state: &str) -> Option<ObjectState> {
    let finished = |phase| (JobIds::new("new", "new"), Some(phase));
    let (ids, phase) = match state {
        "missing" | "gone" => return None,
        "succeeded" => finished(ItemPhase::Succeeded),
        "failed" => finished(ItemPhase::Failed),
        "delete-failed" => finished(ItemPhase::DeleteFailed),
        "running" => (JobIds::new("new", "old"), Some(ItemPhase::Progressing)),
        "old" => (JobIds::new("old", "old"), Some(ItemPhase::Succeeded)),
        "old-failed" => (JobIds::new("old", "old"), Some(ItemPhase::Failed)),
        "fresh" => (JobIds::default(), None),
        other => panic!("{other}"),
    };
    let failure = (state == "failed").then(|| Failure::new("Op", "R", "boom").with_code(Code::Timeout));
    Some(ObjectState { object_name: format!("x-{name}").into(), ids, phase, failure })
}

fn states(items: &[(String, Vec<String>, String)]) -> Vec<ItemState<'_>> {
    items
        .iter()
        .map(|(name, depends_on, state)| {
            ItemState::new(name, depends_on.iter().map(String::as_str).collect(), object(name, state))
        })
        .collect()
}

fn show(plan: &ExecutionPlan) -> String {
    let outcome = match &plan.outcome {
        Ok(Verdict::Done) => "done".to_owned(),
        Ok(Verdict::Failed(failure)) => format!("failed: {}", failure.message),
        Err(Halt::Wait(wait)) => wait.to_string(),
        Err(other) => format!("{other:?}"),
    };
    format!("trigger [{}]; {outcome}", plan.trigger.join(" "))
}

#[test]
fn ins_08_an_item_that_the_spec_lost_counts_while_it_works_for_the_job() {
    let running = |state: &str| states(&items(&format!("a={state}"))).iter().any(|item| item.is_running(NEW));
    let all = ["missing", "fresh", "old", "running", "succeeded", "failed"];
    assert_eq!(all.map(running), [false, false, false, true, false, false]);
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(show(&progressing(&states(&items(text)), NEW, WorkflowPolicy::default())), expected, "{text}");
}

#[track_caller]
fn check_deleting(text: &str, expected: &str) {
    assert_eq!(show(&deleting(&states(&items(text)), NEW, WorkflowPolicy::default())), expected, "{text}");
}

#[test]
fn exe_17_an_item_waits_for_all_its_predecessors() {
    check("a=old b(a)=old", "trigger [a]; waiting for DeployItem x-a to finish");
    check("a=running b(a)=old", "trigger []; waiting for DeployItem x-a to finish");
    check("a=succeeded b(a)=old", "trigger [b]; waiting for DeployItem x-b to finish");
    check("a=succeeded c=running b(a,c)=fresh", "trigger []; waiting for DeployItem x-c to finish");
}

#[test]
fn exe_18_a_success_of_an_older_job_satisfies_nobody() {
    check(
        "a=old b(a)=fresh c=old-failed",
        "trigger [a c]; waiting for DeployItem x-a to finish, DeployItem x-c to finish",
    );
}

#[test]
fn exe_24_all_succeeded_is_done() {
    check("a=succeeded b(a)=succeeded", "trigger []; done");
}

#[test]
fn c_31_no_items_at_all_are_done() {
    check("", "trigger []; done");
}

#[test]
fn exe_25_no_new_triggers_after_failure() {
    check("a=failed b=old", "trigger []; failed: deploy item a failed: boom");
}

#[test]
fn exe_26_running_items_are_waited_for_after_a_failure() {
    check("a=failed b=running c=old", "trigger []; waiting for DeployItem x-b to finish");
}

#[test]
fn exe_27_a_failure_with_nothing_running_fails_with_every_cause_and_code() {
    let text = items("a=failed b=missing c=succeeded");
    let Ok(Verdict::Failed(failure)) = progressing(&states(&text), NEW, WorkflowPolicy::default()).outcome else {
        panic!()
    };
    assert_eq!(
        failure,
        Failure::new(
            "Progressing",
            "DeployItemsFailed",
            "deploy item a failed: boom; deploy item b is missing: its object was deleted during the job; \
             reconcile the root installation again"
        )
        .with_code(Code::Timeout)
    );
}

#[test]
fn exe_28_all_runnable_items_are_triggered_in_one_pass() {
    check(
        "a=succeeded b(a)=old c(a)=fresh d(b)=old",
        "trigger [b c]; waiting for DeployItem x-b to finish, DeployItem x-c to finish",
    );
}

#[test]
fn exe_29_items_that_nothing_can_start_fail() {
    check(
        "a=succeeded b(x)=old",
        "trigger []; failed: deploy items b cannot be started: b depends on x, which does not exist; known are: a, b",
    );
}

#[test]
fn exe_30_a_cycle_fails_with_its_members() {
    check(
        "a(b)=old b(a)=old",
        "trigger []; failed: deploy items a, b cannot be started: a -> b -> a depend on each other in a circle; \
         remove one of these dependencies",
    );
}

#[test]
fn exe_45_an_item_is_deleted_after_all_that_depends_on_it() {
    check_deleting("a=old b(a)=old c(b)=old", "trigger [c]; waiting for DeployItem x-c to be gone");
    check_deleting("a=old b(a)=old c(b)=running", "trigger []; waiting for DeployItem x-c to be gone");
    check_deleting("a=old b(a)=old c(b)=gone", "trigger [b]; waiting for DeployItem x-b to be gone");
    check_deleting("a=gone b(a)=gone", "trigger []; done");
}

#[test]
fn exe_46_c_22_wf_46_wf_47_success_of_a_deletion_is_absence() {
    check_deleting("a=gone", "trigger []; done");
    // It was deployed in this very job before it was to go.
    check_deleting("a=succeeded", "trigger [a]; waiting for DeployItem x-a to be gone");
}

#[test]
fn exe_49_a_failed_deletion_stops_further_ones() {
    check_deleting("a=old b=delete-failed c=running", "trigger []; waiting for DeployItem x-c to be gone");
    check_deleting("a=old b=delete-failed", "trigger []; failed: deploy item b failed; see DeployItem x-b");
}

#[test]
fn exe_51_a_cycle_fails_the_deletion_too() {
    check_deleting(
        "a(b)=old b(a)=old",
        "trigger []; failed: deploy items a, b cannot be started: a -> b -> a depend on each other in a circle; \
         remove one of these dependencies",
    );
}

#[test]
fn exe_13_objects_without_a_counterpart_are_orphans() {
    let existing = BTreeMap::from([
        ("x-a-1".to_owned(), "a".to_owned()),
        ("x-a-2".to_owned(), "a".to_owned()),
        ("x-z-1".to_owned(), "z".to_owned()),
    ]);
    assert_eq!(
        reconcile(["b", "a"], &existing),
        Reconciliation {
            create: vec!["b".to_owned()],
            update: BTreeMap::from([("a".to_owned(), "x-a-1".to_owned())]),
            orphans: vec!["x-a-2".to_owned(), "x-z-1".to_owned()],
        }
    );
}

const STATES: [&str; 8] = ["missing", "succeeded", "failed", "delete-failed", "running", "old", "old-failed", "fresh"];

fn graphs() -> impl Strategy<Value = String> {
    let node = (prop::sample::select(&STATES[..]), prop::collection::vec(0..5usize, 0..4));
    prop::collection::vec(node, 0..6).prop_map(|nodes| {
        nodes
            .iter()
            .enumerate()
            .map(|(n, (state, depends))| {
                let depends: Vec<String> = depends.iter().map(|d| format!("n{d}")).collect();
                format!("n{n}({})={state}", depends.join(","))
            })
            .collect::<Vec<_>>()
            .join(" ")
    })
}

proptest! {
    /// EXE-23 and what must hold of every plan whatever the graph: nothing is triggered twice, nothing before what it
    /// depends on, nothing beside a failure, and the phase neither ends with running items nor waits for nothing.
    #[test]
    fn exe_23_every_item_is_in_one_class_and_no_plan_hangs(text in graphs(), forward in any::<bool>()) {
        let parsed = items(&text);
        let states = states(&parsed);
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let classes: BTreeMap<&str, Class> = classify(&states, NEW, direction, WorkflowPolicy::default()).into_iter().collect();
        prop_assert_eq!(classes.len(), states.len());
        let plan = decide(&states, NEW, direction, WorkflowPolicy::default());
        let has = |class| classes.values().any(|c| *c == class);
        for name in &plan.trigger {
            prop_assert_eq!(classes.get(name.as_str()), Some(&Class::Runnable));
            for item in &states {
                let before = if forward { item.name == name } else { item.depends_on.contains(&name.as_str()) };
                let needed: Vec<&str> = if forward { item.depends_on.clone() } else { vec![item.name] };
                for other in needed.into_iter().filter(|_| before) {
                    prop_assert_eq!(classes.get(other), Some(&Class::Succeeded), "{} before {}", other, name);
                }
            }
        }
        prop_assert!(plan.trigger.is_empty() || !has(Class::Failed));
        match &plan.outcome {
            Ok(_) => prop_assert!(!has(Class::Running) && plan.trigger.is_empty()),
            Err(_) => prop_assert!(has(Class::Running) || !plan.trigger.is_empty()),
        }
    }
}
