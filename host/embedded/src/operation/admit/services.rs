//! Addresses and ports of services.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    cluster::EmbeddedCluster,
    object::{self, at, text},
    refusal::StatusCause,
};

/// Whether a service is of a type that exists.
pub(super) fn service_type(service: &Value) -> Option<StatusCause> {
    const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let given = text(service, &["spec", "type"]).filter(|given| !TYPES.contains(given))?;
    Some(StatusCause::unsupported("spec.type", given, &TYPES))
}

/// Gives a service its addresses and ports.
pub(super) fn service(cluster: &EmbeddedCluster, old: Option<&Value>, service: &mut Value) {
    if text(service, &["spec", "type"]) == Some("ExternalName") {
        return;
    }
    let before = old.and_then(|old| text(old, &["spec", "clusterIP"])).unwrap_or_default();
    let asked = text(service, &["spec", "clusterIP"]).unwrap_or_default();
    let address = match (asked, before) {
        ("", "") => free_address(cluster),
        ("", before) => before.to_owned(),
        (asked, _) => asked.to_owned(),
    };
    object::set(service, &["spec", "clusterIP"], json!(address));
    object::set(service, &["spec", "clusterIPs"], json!([address]));
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    let spec = object::fields(object::fields(service).entry("spec").or_insert(Value::Null));
    // Whoever gives a service its endpoints by hand may give both kinds.
    let by_hand = address == "None" && !spec.contains_key("selector");
    let (families, policy) = match by_hand && !spec.contains_key("ipFamilyPolicy") {
        true => (json!(["IPv4", "IPv6"]), "RequireDualStack"),
        false => (json!([family]), "SingleStack"),
    };
    spec.entry("ipFamilies").or_insert(families);
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
    node_ports(cluster, old, service);
}

/// Ports on the nodes, for what is reached from outside: those that it had, else free ones.
fn node_ports(cluster: &EmbeddedCluster, old: Option<&Value>, service: &mut Value) {
    let of = text(service, &["spec", "type"]).unwrap_or_default();
    let asked = at(service, &["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false));
    if !(of == "NodePort" || (of == "LoadBalancer" && asked)) {
        return;
    }
    let before = old.map(|old| object::items(old, &["spec", "ports"])).unwrap_or_default();
    let mut ports = object::items(service, &["spec", "ports"]).to_vec();
    let mut taken: Option<BTreeSet<u64>> = None;
    for place in 0..ports.len() {
        let Some(port) = ports.get(place).filter(|port| node_port(port).is_none()) else { continue };
        let same = |old: &&Value| ["port", "protocol"].iter().all(|field| old.get(field) == port.get(field));
        let number = before.iter().find(same).and_then(node_port).or_else(|| {
            let taken = taken.get_or_insert_with(|| taken_node_ports(cluster, &ports));
            let free = (30000..32768).find(|number| !taken.contains(number))?;
            taken.insert(free);
            Some(free)
        });
        if let (Some(number), Some(port)) = (number, ports.get_mut(place)) {
            object::set(port, &["nodePort"], json!(number));
        }
    }
    object::set(service, &["spec", "ports"], json!(ports));
}

fn node_port(port: &Value) -> Option<u64> {
    port.get("nodePort").and_then(Value::as_u64).filter(|number| *number > 0)
}

fn taken_node_ports(cluster: &EmbeddedCluster, own: &[Value]) -> BTreeSet<u64> {
    let services = cluster.store.list("services", None, None).entries;
    let others = services.iter().flat_map(|(_, entry)| {
        let service = entry.value();
        object::items(&service, &["spec", "ports"]).iter().filter_map(node_port).collect::<Vec<_>>()
    });
    others.chain(own.iter().filter_map(node_port)).collect()
}

/// A cluster address out of 10.96.0.0/12 that no service has.
fn free_address(cluster: &EmbeddedCluster) -> String {
    let taken: BTreeSet<String> = cluster
        .store
        .list("services", None, None)
        .entries
        .iter()
        .filter_map(|(_, entry)| text(&entry.value(), &["spec", "clusterIP"]).map(str::to_owned))
        .collect();
    let free = (10_u32..1 << 20).map(|host| std::net::Ipv4Addr::from((10 << 24 | 96 << 16) + host).to_string());
    free.into_iter().find(|address| !taken.contains(address)).unwrap_or_else(|| "None".to_owned())
}
