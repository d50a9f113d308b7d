//! Pods: one that is restarted runs and is ready, another one runs to its end.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::course::{Course, Scene, sparse};
use crate::object;

/// How the containers of a pod are.
#[derive(Clone, Copy)]
enum Containers<'a> {
    Running { ready: bool },
    Ended { failure: Option<&'a str> },
}

/// As a kubelet leaves it.
pub(super) fn pod(scene: &Scene<'_>) -> Course {
    if matches!(scene.status("phase").and_then(Value::as_str), Some("Succeeded" | "Failed")) {
        return Course::Rest;
    }
    if scene.spec("schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        let gated = scene.condition("PodScheduled", false, "SchedulingGated", message);
        return Course::Now(json!({"phase": "Pending", "conditions": [gated]}));
    }
    let ends = matches!(scene.spec("restartPolicy").and_then(Value::as_str), Some("Never" | "OnFailure"));
    let begun = || status(scene, Containers::Running { ready: ends });
    let done = match &scene.simulation.failure {
        None if !ends => status(scene, Containers::Running { ready: true }),
        failure => status(scene, Containers::Ended { failure: failure.as_deref() }),
    };
    let begun = scene.status("startTime").is_none().then(begun);
    Course::Work { begun, done, simulation: scene.simulation.clone() }
}

fn status(scene: &Scene<'_>, containers: Containers<'_>) -> Value {
    let started = scene.status("startTime").and_then(Value::as_str).unwrap_or(scene.now);
    let (phase, ready, reason) = match containers {
        Containers::Running { ready: true } => ("Running", true, ""),
        Containers::Running { ready: false } => ("Running", false, "ContainersNotReady"),
        Containers::Ended { failure: None } => ("Succeeded", false, "PodCompleted"),
        Containers::Ended { failure: Some(_) } => ("Failed", false, "PodFailed"),
    };
    let conditions = [
        scene.condition("Initialized", true, if reason == "PodCompleted" { reason } else { "" }, ""),
        scene.condition("Ready", ready, reason, ""),
        scene.condition("ContainersReady", ready, reason, ""),
        scene.condition("PodScheduled", true, "", ""),
    ];
    let failure = match containers {
        Containers::Ended { failure } => failure,
        Containers::Running { .. } => None,
    };
    let address = address(scene);
    sparse(json!({
        "phase": phase,
        "message": failure,
        "conditions": conditions,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": started,
        "initContainerStatuses": init_containers(scene, containers, started),
        "containerStatuses": main_containers(scene, containers, started),
    }))
}

/// An address out of 10.128.0.0/9 that follows from the pod's uid. Nobody answers there.
fn address(scene: &Scene<'_>) -> String {
    let digest = Sha256::digest(object::meta(scene.object, "uid").as_bytes());
    let number = digest.iter().take(3).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    std::net::Ipv4Addr::from(10 << 24 | 128 << 16 | number & 0x7f_ffff).to_string()
}

fn main_containers(scene: &Scene<'_>, containers: Containers<'_>, started: &str) -> Vec<Value> {
    let of = object::items(scene.object, &["spec", "containers"]);
    of.iter().map(|container| one(scene, container, containers, started)).collect()
}

/// Those that are restarted stay beside the others, the others have run before them.
fn init_containers(scene: &Scene<'_>, containers: Containers<'_>, started: &str) -> Vec<Value> {
    let of = object::items(scene.object, &["spec", "initContainers"]);
    let one = |container: &Value| match object::text(container, &["restartPolicy"]) {
        Some("Always") => one(scene, container, containers, started),
        _ => {
            let mut ended = ended(container, "Completed", 0, started, started);
            object::set(&mut ended, &["ready"], json!(true));
            ended
        }
    };
    of.iter().map(one).collect()
}

fn one(scene: &Scene<'_>, container: &Value, containers: Containers<'_>, started: &str) -> Value {
    match containers {
        Containers::Running { ready } => {
            let mut running = container_status(container, &json!({"running": {"startedAt": started}}));
            object::set(&mut running, &["ready"], json!(ready));
            object::set(&mut running, &["started"], json!(true));
            running
        }
        Containers::Ended { failure: None } => ended(container, "Completed", 0, started, scene.now),
        Containers::Ended { failure: Some(failure) } => {
            let mut ended = ended(container, "Error", 1, started, scene.now);
            object::set(&mut ended, &["state", "terminated", "message"], json!(failure));
            ended
        }
    }
}

fn ended(container: &Value, reason: &str, code: i64, started: &str, finished: &str) -> Value {
    let terminated = json!({"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished});
    container_status(container, &json!({"terminated": terminated}))
}

fn container_status(container: &Value, state: &Value) -> Value {
    json!({
        "name": container.get("name"), "image": container.get("image"), "imageID": "", "state": state, "lastState": {},
        "ready": false, "started": false, "restartCount": 0,
    })
}
