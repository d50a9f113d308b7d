//! What a cluster supplies besides: volumes for claims, and addresses for Services that ask for a load balancer.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::course::{Course, Scene, sparse};
use crate::object;

/// A claim is bound; there is no volume. One that fails stays as it is.
pub(super) fn claim(scene: &Scene<'_>) -> Course {
    if scene.status("phase").and_then(Value::as_str) == Some("Bound") {
        return Course::Rest;
    }
    let bound = || {
        sparse(json!({
            "phase": "Bound",
            "accessModes": scene.spec("accessModes"),
            "capacity": object::at(scene.object, &["spec", "resources", "requests"]),
        }))
    };
    work(scene, bound)
}

/// A Service of the type LoadBalancer has an address, unless it names somebody who cares for it.
pub(super) fn service(scene: &Scene<'_>) -> Course {
    let has_address = !object::items(scene.object, &["status", "loadBalancer", "ingress"]).is_empty();
    let asks = scene.spec("type").and_then(Value::as_str) == Some("LoadBalancer");
    match (asks, has_address) {
        _ if scene.spec("loadBalancerClass").is_some_and(|class| !class.is_null()) => Course::Rest,
        (false, true) => Course::Now(json!({"loadBalancer": {}})),
        (false, false) | (true, true) => Course::Rest,
        (true, false) => {
            work(scene, || json!({"loadBalancer": {"ingress": [{"ip": address(scene), "ipMode": "VIP"}]}}))
        }
    }
}

fn work(scene: &Scene<'_>, done: impl FnOnce() -> Value) -> Course {
    let done = match scene.simulation.failure {
        Some(_) => scene.object.get("status").cloned().unwrap_or_else(|| json!({})),
        None => done(),
    };
    Course::Work { begun: None, done, simulation: scene.simulation.clone() }
}

/// The address that the Service asks for, else one out of 198.18.0.0/15 that follows from its cluster address. Those are
/// routed nowhere.
fn address(scene: &Scene<'_>) -> String {
    let text = |field: &str| scene.spec(field).and_then(Value::as_str).unwrap_or_default();
    if !text("loadBalancerIP").is_empty() {
        return text("loadBalancerIP").to_owned();
    }
    let cluster = text("clusterIP").parse::<Ipv4Addr>().map_or(0, u32::from);
    Ipv4Addr::from(198 << 24 | 18 << 16 | cluster & 0x1_ffff).to_string()
}
