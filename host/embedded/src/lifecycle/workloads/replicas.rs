//! Kinds that keep replicas: Deployments, StatefulSets, DaemonSets, ReplicaSets and ReplicationControllers. No child
//! objects are made.

use serde_json::{Value, json};

use super::course::{Course, Scene, hash, sparse};
use crate::object;

/// How many replicas there are, of what form.
struct Counts {
    all: i64,
    updated: i64,
    ready: i64,
}

impl Counts {
    /// While a new form is rolled out: what was ready stays so, the new one is not ready yet.
    fn rolling(wanted: i64, before: i64, ready: i64) -> Self {
        if ready == 0 { Self { all: wanted, updated: wanted, ready } } else { Self { all: before, updated: 0, ready } }
    }

    fn full(wanted: i64) -> Self {
        Self { all: wanted, updated: wanted, ready: wanted }
    }
}

/// As the deployment controller leaves it.
pub(super) fn deployment(scene: &Scene<'_>) -> Course {
    let wanted = scene.wanted("replicas").unwrap_or(1);
    if scene.spec("paused") == Some(&Value::Bool(true)) {
        return Course::Now(paused(scene));
    }
    let rolling = || Counts::rolling(wanted, scene.counted("replicas"), scene.counted("readyReplicas"));
    let begun = || {
        let (generation, counts) = (scene.generation(), rolling());
        let message = format!("The roll-out of generation {generation} is simulated.");
        rolled_out(scene, &counts, ("True", "ReplicaSetUpdated", &message))
    };
    let done = match &scene.simulation.failure {
        Some(failure) => rolled_out(scene, &rolling(), ("False", "ProgressDeadlineExceeded", failure)),
        None => {
            let message = "The roll-out was simulated; no container runs.";
            rolled_out(scene, &Counts::full(wanted), ("True", "NewReplicaSetAvailable", message))
        }
    };
    Course::Work { begun: (!scene.is_observed()).then(begun), done, simulation: scene.simulation.clone() }
}

fn rolled_out(scene: &Scene<'_>, counts: &Counts, progressing: (&str, &str, &str)) -> Value {
    let lacks = counts.all > 0 && counts.ready == 0;
    let available = match lacks {
        true => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
        false => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
    };
    sparse(json!({
        "observedGeneration": scene.generation(),
        "replicas": counts.all,
        "updatedReplicas": counts.updated,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.ready,
        "unavailableReplicas": counts.all.saturating_sub(counts.ready),
        "conditions": [updated_condition(scene, "Available", available), updated_condition(scene, "Progressing", progressing)],
    }))
}

/// Nothing is rolled out; the replicas of before stay.
fn paused(scene: &Scene<'_>) -> Value {
    let mut status = object::at(scene.object, &["status"]).cloned().unwrap_or_default();
    let paused = updated_condition(scene, "Progressing", ("Unknown", "DeploymentPaused", "Deployment is paused"));
    let available = scene.present("Available").cloned();
    object::set(&mut status, &["observedGeneration"], scene.generation());
    object::set(&mut status, &["conditions"], available.into_iter().chain([paused]).collect());
    status
}

/// A condition of a Deployment, which has one time more than others.
fn updated_condition(scene: &Scene<'_>, kind: &str, (status, reason, message): (&str, &str, &str)) -> Value {
    let mut condition = json!({
        "type": kind, "status": status, "lastUpdateTime": scene.now, "lastTransitionTime": scene.now,
        "reason": reason, "message": message,
    });
    let Some(present) = scene.present(kind) else { return condition };
    let same = |field: &str| present.get(field) == condition.get(field);
    let (status, words) = (same("status"), same("reason") && same("message"));
    if status {
        object::carry(present, &mut condition, &["lastTransitionTime"]);
    }
    if status && words {
        object::carry(present, &mut condition, &["lastUpdateTime"]);
    }
    condition
}

/// As their controllers leave ReplicaSets and ReplicationControllers.
pub(super) fn replica_set(scene: &Scene<'_>) -> Course {
    let wanted = scene.wanted("replicas").unwrap_or(1);
    let status = |ready: i64, failure: Option<&str>| {
        let failed = failure.map(|failure| scene.condition("ReplicaFailure", true, "FailedCreate", failure));
        let mut status = sparse(json!({
            "observedGeneration": scene.generation(),
            "fullyLabeledReplicas": wanted,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": failed.into_iter().collect::<Vec<_>>(),
        }));
        object::set(&mut status, &["replicas"], json!(wanted));
        status
    };
    let before = scene.counted("readyReplicas").min(wanted);
    let begun = (!scene.is_observed()).then(|| status(before, None));
    let done = match &scene.simulation.failure {
        Some(failure) => status(before, Some(failure)),
        None => status(wanted, None),
    };
    Course::Work { begun, done, simulation: scene.simulation.clone() }
}

/// As the controller of StatefulSets leaves it. It has no word for failure: the set does not become ready.
pub(super) fn stateful_set(scene: &Scene<'_>) -> Course {
    let wanted = scene.wanted("replicas").unwrap_or(1);
    let template = scene.spec("template").cloned().unwrap_or_default();
    let name = object::meta(scene.object, "name");
    let update = format!("{name}-{}", hash(&template));
    let status = |counts: &Counts, current: &str| {
        let mut status = sparse(json!({
            "observedGeneration": scene.generation(),
            "readyReplicas": counts.ready,
            "currentReplicas": if current == update { counts.all } else { counts.all.saturating_sub(counts.updated) },
            "updatedReplicas": counts.updated,
            "currentRevision": current,
            "updateRevision": update,
        }));
        object::set(&mut status, &["replicas"], json!(counts.all));
        object::set(&mut status, &["availableReplicas"], json!(counts.ready));
        object::set(&mut status, &["collisionCount"], json!(0));
        status
    };
    let before = scene.status("currentRevision").and_then(Value::as_str).unwrap_or(&update);
    let mut rolling = Counts::rolling(wanted, scene.counted("replicas"), scene.counted("readyReplicas"));
    if before == update {
        rolling.updated = rolling.all;
    }
    let begun = || status(&rolling, before);
    let done = match &scene.simulation.failure {
        Some(_) => begun(),
        None => status(&Counts::full(wanted), &update),
    };
    Course::Work { begun: (!scene.is_observed()).then(begun), done, simulation: scene.simulation.clone() }
}

/// As the controller of DaemonSets leaves it where there is one node. It has no word for failure either.
pub(super) fn daemon_set(scene: &Scene<'_>) -> Course {
    let status = |counts: &Counts| {
        let mut status = sparse(json!({
            "observedGeneration": scene.generation(),
            "updatedNumberScheduled": counts.updated,
            "numberAvailable": counts.ready,
            "numberUnavailable": counts.all.saturating_sub(counts.ready),
        }));
        for (field, count) in [
            ("desiredNumberScheduled", counts.all),
            ("currentNumberScheduled", counts.all),
            ("numberReady", counts.ready),
            ("numberMisscheduled", 0),
        ] {
            object::set(&mut status, &[field], json!(count));
        }
        status
    };
    let begun = || status(&Counts::rolling(1, 1, scene.counted("numberReady")));
    let done = if scene.simulation.failure.is_some() { begun() } else { status(&Counts::full(1)) };
    Course::Work { begun: (!scene.is_observed()).then(begun), done, simulation: scene.simulation.clone() }
}
