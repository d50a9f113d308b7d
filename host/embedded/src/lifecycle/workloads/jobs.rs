//! Jobs: they run for as long as is wished, and end. No pods are made.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    course::{Course, Scene, sparse},
    simulation_spec::{Delay, SimulationSpec},
};
use crate::object;

const SUSPENDED: &str = "Suspended";
/// The manager of a Job that names none.
const OWN: &str = "kubernetes.io/job-controller";

/// The longest deadline that is waited for.
const LONGEST_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a Job ends.
enum JobEnd<'a> {
    Well,
    /// A reason in one word, and a sentence.
    Badly(&'a str, &'a str),
}

/// As the job controller leaves it. What has ended stays, also where it wishes to be removed after a time.
pub(super) fn job(scene: &Scene<'_>) -> Course {
    let elsewhere = scene.spec("managedBy").and_then(Value::as_str).is_some_and(|by| by != OWN);
    if elsewhere || scene.holds("Complete") || scene.holds("Failed") {
        return Course::Rest;
    }
    if scene.spec("suspend") == Some(&Value::Bool(true)) {
        let suspended = scene.condition(SUSPENDED, true, "JobSuspended", "Job suspended");
        return Course::Now(json!({"conditions": [suspended], "uncountedTerminatedPods": {}}));
    }
    let runs = scene.status("startTime").is_some() && !scene.holds(SUSPENDED);
    let begun = (!runs).then(|| running(scene));
    let mut simulation = scene.simulation.clone();
    // Without pods nothing is ever completed.
    if scene.wanted("parallelism") == Some(0) && scene.wanted("completions") != Some(0) {
        simulation.delay = Delay::Forever;
    }
    let done = match exceeded(scene, &simulation) {
        Some(deadline) => {
            let (reason, message) = ("DeadlineExceeded", "Job was active longer than specified deadline");
            simulation = SimulationSpec { delay: Delay::For(deadline), failure: Some(message.to_owned()) };
            ended(scene, &JobEnd::Badly(reason, message))
        }
        None => match &simulation.failure {
            Some(failure) => ended(scene, &JobEnd::Badly("BackoffLimitExceeded", failure)),
            None => ended(scene, &JobEnd::Well),
        },
    };
    Course::Work { begun, done, simulation }
}

/// The deadline of the Job, where its work would take longer and which is near enough for a timer.
fn exceeded(scene: &Scene<'_>, simulation: &SimulationSpec) -> Option<Duration> {
    let deadline = Duration::from_secs(u64::try_from(scene.wanted("activeDeadlineSeconds")?).ok()?);
    match simulation.delay {
        _ if deadline > LONGEST_DEADLINE => None,
        Delay::For(delay) if delay <= deadline => None,
        Delay::For(_) | Delay::Forever => Some(deadline),
    }
}

fn completions(scene: &Scene<'_>) -> i64 {
    scene.wanted("completions").unwrap_or(1)
}

/// A Job that was suspended says that it is no more.
fn resumed(scene: &Scene<'_>) -> Option<Value> {
    scene.present(SUSPENDED).map(|_| scene.condition(SUSPENDED, false, "JobResumed", "Job resumed"))
}

fn running(scene: &Scene<'_>) -> Value {
    let active = scene.wanted("parallelism").unwrap_or(1).min(completions(scene));
    sparse(json!({
        "startTime": scene.now,
        "active": active,
        "ready": active,
        "conditions": resumed(scene).into_iter().collect::<Vec<_>>(),
        "uncountedTerminatedPods": {},
    }))
}

fn ended(scene: &Scene<'_>, end: &JobEnd<'_>) -> Value {
    let started = scene.status("startTime").and_then(Value::as_str).unwrap_or(scene.now);
    let verdict = |kinds: [&str; 2], reason: &str, message: &str| {
        let verdict = kinds.map(|kind| scene.condition(kind, true, reason, message));
        resumed(scene).into_iter().chain(verdict).collect::<Vec<_>>()
    };
    let mut status = match end {
        JobEnd::Well => {
            let count = completions(scene);
            let indexed = scene.spec("completionMode").and_then(Value::as_str) == Some("Indexed");
            let indexes = match count {
                _ if !indexed => String::new(),
                0 => String::new(),
                1 => "0".to_owned(),
                count => format!("0-{}", count.saturating_sub(1)),
            };
            let reached = ("CompletionsReached", "Reached expected number of succeeded pods");
            json!({
                "succeeded": count, "completedIndexes": indexes, "completionTime": scene.now,
                "conditions": verdict(["SuccessCriteriaMet", "Complete"], reached.0, reached.1),
            })
        }
        JobEnd::Badly(reason, message) => json!({
            "failed": if *reason == "DeadlineExceeded" { 1 } else { scene.wanted("backoffLimit").unwrap_or(6).saturating_add(1) },
            "conditions": verdict(["FailureTarget", "Failed"], reason, message),
        }),
    };
    object::set(&mut status, &["startTime"], json!(started));
    object::set(&mut status, &["uncountedTerminatedPods"], json!({}));
    let mut status = sparse(status);
    for field in ["ready", "terminating"] {
        object::set(&mut status, &[field], json!(0));
    }
    status
}
