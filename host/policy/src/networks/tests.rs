//! Which networks policies open, and which servers they name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::{
    Profile,
    egress::{LONGEST_NETWORK, MOST_NETWORKS},
    set::PolicySet,
};

fn effective(default: Profile, specs: &[Value]) -> EffectivePolicy {
    let policies = specs.iter().enumerate().map(|(number, spec)| {
        let mut spec = spec.clone();
        spec["namespaces"] = json!({"names": ["a"]});
        Policy::read(format!("p{number}"), &spec)
    });
    PolicySet::new(default, policies).of(&"a".into(), &BTreeMap::new())
}

fn egress(networks: &[&str]) -> Value {
    json!({"egress": {"networks": networks}})
}

/// The rules for Targets: line and networks.
fn rules(default: Profile, specs: &[Value]) -> Vec<(String, Vec<String>)> {
    let shown = |networks: &[Network]| networks.iter().map(ToString::to_string).collect();
    let rules = effective(default, specs).target_networks().rules;
    rules.into_iter().map(|rule| (rule.line, shown(&rule.networks))).collect()
}

fn named(address: &str, ports: &[u16]) -> NamedServer {
    NamedServer { address: address.parse().unwrap(), ports: ports.to_vec() }
}

#[test]
fn c_101_the_compatible_profile_allows_all_networks_and_the_restricted_one_none() {
    assert_eq!(rules(Profile::Compatible, &[]), []);
    assert_eq!(rules(Profile::Restricted, &[json!({"profile": "compatible"})]), []);
    let none = Vec::<String>::new();
    let default = "the default policy, line spec.egress.networks".to_owned();
    assert_eq!(rules(Profile::Restricted, &[]), [(default, none.clone())]);
    let profile = "NamespacePolicy p0, line spec.egress.networks of its profile restricted".to_owned();
    assert_eq!(rules(Profile::Compatible, &[json!({})]), [(profile, none)]);
}

#[test]
fn c_101_a_policy_says_its_own_networks_and_of_several_each_has_to_allow_an_address() {
    let line = |number: usize| format!("NamespacePolicy p{number}, line spec.egress.networks");
    let ten = vec!["10.0.0.0/8".to_owned()];
    let all = egress(&["10.0.0.0/8", "0.0.0.0/0", "::/0"]);
    let both = [all, egress(&["10.0.0.0/8"]), egress(&["0.0.0.0/0"])];
    let expected = [(line(1), ten), (line(2), vec!["0.0.0.0/0".to_owned()])];
    assert_eq!(rules(Profile::Restricted, &both), expected);
    let strict = json!({"profile": "compatible", "egress": {"networks": []}});
    assert_eq!(rules(Profile::Compatible, &[strict]), [(line(0), vec![])]);
    let unusable = ("NamespacePolicy p0, line spec (it cannot be used)".to_owned(), vec![]);
    assert_eq!(rules(Profile::Compatible, &[json!({"quotas": 5})]), [unusable]);
}

#[test]
fn c_101_servers_that_a_policy_names_by_their_address_may_be_connected_to_in_their_role_alone() {
    let spec = json!({
        "targets": {"servers": ["https://10.0.0.5:6443", "https://*.example.org:443"]},
        "sources": {"registries": ["10.0.0.6:5000/acme/*"], "hosts": ["10.0.0.7"], "redirects": ["10.0.0.8"]},
        "items": {"types": [{"type": "x/helm", "registries": ["10.1.0.6/*"], "hosts": ["10.1.0.7"]}, {"type": "*"}]},
    });
    let policy = effective(Profile::Compatible, &[spec]);
    let servers = |networks: &AllowedNetworks| networks.rules[0].servers.clone();
    assert_eq!(servers(&policy.target_networks()), [named("10.0.0.5", &[6443])]);
    let plain = policy.source_networks(PolicySubject::Item("x/manifest"));
    assert_eq!(servers(&plain.registries), [named("10.0.0.6", &[5000])]);
    assert_eq!(servers(&plain.hosts), [named("10.0.0.7", &[])]);
    assert_eq!(servers(&plain.redirects), [named("10.0.0.7", &[]), named("10.0.0.8", &[])]);
    assert_eq!(policy.source_networks(PolicySubject::Installation), plain);
    let helm = policy.source_networks(PolicySubject::Item("x/helm"));
    assert_eq!(servers(&helm.registries), [named("10.0.0.6", &[5000]), named("10.1.0.6", &USUAL_PORTS)]);
    assert_eq!(servers(&helm.hosts), [named("10.0.0.7", &[]), named("10.1.0.7", &[])]);
}

#[test]
fn c_101_a_pattern_names_a_server_where_its_host_is_an_address_and_nothing_else() {
    for (pattern, expected) in [
        ("https://10.0.0.5:6443", Some(named("10.0.0.5", &[6443]))),
        ("*://10.0.0.5:*", Some(named("10.0.0.5", &[]))),
        ("https://[fd00::5]:443", Some(named("fd00::5", &[443]))),
        ("https://10.0.0.*:6443", None),
        ("https://10.0.0.5*:6443", None),
        ("https://10.0.0.5:64*", None),
        ("https://10.0.0.5", None),
        ("https://fd00::5:443", None),
        ("https://a.example:443", None),
        ("https://*", None),
        ("*", None),
    ] {
        assert_eq!(server(pattern), expected, "{pattern}");
    }
    for (pattern, expected) in [
        ("10.0.0.5:5000/acme/*", Some(named("10.0.0.5", &[5000]))),
        ("10.0.0.5:*/acme", Some(named("10.0.0.5", &[]))),
        ("10.0.0.5/*", Some(named("10.0.0.5", &USUAL_PORTS))),
        ("[fd00::5]/*", Some(named("fd00::5", &USUAL_PORTS))),
        ("[fd00::5]:5000/*", Some(named("fd00::5", &[5000]))),
        ("10.0.0.5*", None),
        ("*10.0.0.5/x", None),
        ("ghcr.io/acme/*", None),
        ("*", None),
    ] {
        assert_eq!(repository(pattern), expected, "{pattern}");
    }
    assert_eq!([host("10.0.0.5"), host("[fd00::5]")], [Some(named("10.0.0.5", &[])), Some(named("fd00::5", &[]))]);
    assert_eq!([host("10.0.0.*"), host("a.example"), host("fd00::5"), host("2130706433")], [None, None, None, None]);
}

fn fault(networks: &Value) -> Result<(), String> {
    let policy = Policy::read("p", &json!({"egress": {"networks": networks}}));
    policy.lines().map(drop).map_err(str::to_owned)
}

#[test]
fn c_101_what_is_no_network_makes_the_policy_unusable() {
    assert_eq!(fault(&json!(["10.0.0.0/8", "fd00::/8"])), Ok(()));
    let place = "spec.egress.networks[1]";
    for (network, why) in [
        ("10.0.0.0", "is no network; write an address and the length of its prefix, such as 10.0.0.0/8 or fd00::/8"),
        (
            "10.0.0.1/8",
            "has bits beyond its prefix; write 10.0.0.0/8 for the network, or the whole length for the one address",
        ),
        ("::ffff:10.0.0.0/104", "is a network of IPv4 in the notation of IPv6; write it as IPv4"),
    ] {
        assert_eq!(fault(&json!(["10.0.0.0/8", network])), Err(format!("{place} {why}")));
    }
}

#[test]
fn c_101_limits_policy_networks_have_a_number_and_a_length() {
    let networks = |count: usize| json!((0..count).map(|number| format!("10.{number}.0.0/16")).collect::<Vec<_>>());
    assert_eq!(fault(&networks(MOST_NETWORKS)), Ok(()));
    assert_eq!(fault(&networks(65)), Err("spec.egress.networks has 65 networks; it may have 64".to_owned()));
    let long = |zeros: usize| json!([format!("{}fd00::/8", "0".repeat(zeros))]);
    let told = "spec.egress.networks[0] has 50 letters; it may have 49".to_owned();
    assert_eq!(fault(&long(LONGEST_NETWORK + 1 - "fd00::/8".len())), Err(told));
    assert!(fault(&long(LONGEST_NETWORK - "fd00::/8".len())).unwrap_err().contains("is no network"));
}
