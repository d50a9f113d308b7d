//! Which networks may be connected to: those that never are on the internet are refused where no line has them (C-101).

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use orangery_core::network::{AllowedNetworks, NamedServer, Network, NetworkRule};
use orangery_ocm::SourceNetworks;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    effective::EffectivePolicy,
    pattern::Pattern,
    read::Policy,
    request::PolicySubject,
    spec::{ItemTypeRule, PolicySpec},
};

/// The most networks of a policy.
pub(crate) const MOST_NETWORKS: usize = 64;

/// The most letters of a network.
const LONGEST_NETWORK: usize = 49;

/// The line, for messages.
pub(crate) const NETWORKS: &str = "spec.egress.networks";

/// Ports that an address without one stands for.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// What may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressRules {
    /// Networks that may be connected to though they never are on the internet, such as `10.20.0.0/16`: loopback, private, shared
    /// and reserved ones. A server that the policy itself names by its address, in `targets.servers` or in lists of sources, may
    /// be connected to as well. Addresses of the internet are for the other lines; link-local addresses and metadata services
    /// are refused whatever stands here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MOST_NETWORKS))]
    pub networks: Option<Vec<Cidr>>,
}

/// A network in the notation of CIDR, such as `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cidr(String);

impl From<Network> for Cidr {
    fn from(network: Network) -> Self {
        Self(network.to_string())
    }
}

impl JsonSchema for Cidr {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Cidr".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": LONGEST_NETWORK, "pattern": "^[0-9A-Fa-f:.]+/[0-9]{1,3}$"})
    }
}

impl EgressRules {
    /// Why it cannot be used: one sentence with the place.
    pub(crate) fn fault(&self) -> Option<String> {
        let networks = self.networks.as_deref().unwrap_or_default();
        if networks.len() > MOST_NETWORKS {
            return Some(format!("{NETWORKS} has {} networks; it may have {MOST_NETWORKS}", networks.len()));
        }
        networks.iter().enumerate().find_map(|(number, Cidr(text))| {
            let long = text.len() > LONGEST_NETWORK;
            let why = match text.parse::<Network>() {
                _ if long => format!("has {} letters; it may have {LONGEST_NETWORK}", text.len()),
                Err(fault) => fault.to_string(),
                Ok(_) => return None,
            };
            Some(format!("{NETWORKS}[{number}] {why}"))
        })
    }
}

impl EffectivePolicy {
    /// Which networks clusters of Targets may be in.
    pub fn target_networks(&self) -> AllowedNetworks {
        self.networks(|lines| of_patterns(&lines.targets.servers, server))
    }

    /// Which networks content may come from: for registries, for hosts, and for those whom these lead to.
    pub(crate) fn source_networks(&self, subject: PolicySubject<'_>) -> SourceNetworks {
        let of_rule = |lines: &PolicySpec, get: fn(&ItemTypeRule) -> &Option<Vec<Pattern>>, read: ReadNamed| {
            let PolicySubject::Item(of) = subject else { return Vec::new() };
            let rule = lines.items.types.iter().flatten().find(|rule| rule.item_type.matches(of));
            rule.map_or_else(Vec::new, |rule| of_patterns(get(rule), read))
        };
        let hosts = |lines: &PolicySpec| {
            let of_rule = of_rule(lines, |rule| &rule.hosts, host);
            [of_patterns(&lines.sources.hosts, host), of_rule].concat()
        };
        let registries = self.networks(|lines| {
            let of_rule = of_rule(lines, |rule| &rule.registries, repository);
            [of_patterns(&lines.sources.registries, repository), of_rule].concat()
        });
        let redirects = self.networks(|lines| [hosts(lines), of_patterns(&lines.sources.redirects, host)].concat());
        SourceNetworks {
            registries: Arc::new(registries),
            hosts: Arc::new(self.networks(hosts)),
            redirects: Arc::new(redirects),
        }
    }

    /// One rule for each policy that does not allow all networks. `named` are the servers that it names by their address.
    fn networks(&self, named: impl Fn(&PolicySpec) -> Vec<NamedServer>) -> AllowedNetworks {
        AllowedNetworks { rules: self.policies().filter_map(|policy| rule(policy, &named)).collect() }
    }
}

fn rule(policy: &Policy, named: impl Fn(&PolicySpec) -> Vec<NamedServer>) -> Option<NetworkRule> {
    let origin = policy.origin();
    let Ok(lines) = policy.lines() else {
        let line = format!("{origin}, line spec (it cannot be used)");
        return Some(NetworkRule { networks: Vec::new(), servers: Vec::new(), line });
    };
    let line = format!("{origin}, line {NETWORKS}");
    let (listed, line) = match &lines.egress.networks {
        Some(own) => (own, line),
        None => {
            let of_profile = lines.profile.spec().egress.networks.as_ref()?;
            (of_profile, format!("{line} of its profile {}", lines.profile))
        }
    };
    let networks: Vec<Network> = listed.iter().filter_map(|Cidr(text)| text.parse().ok()).collect();
    if [Network::ALL_V4, Network::ALL_V6].iter().all(|all| networks.contains(all)) {
        return None;
    }
    Some(NetworkRule { networks, servers: named(lines), line })
}

/// Reads the server that a pattern names by its address; `None` where it names none, or one of several.
type ReadNamed = fn(&str) -> Option<NamedServer>;

fn of_patterns(patterns: &Option<Vec<Pattern>>, read: ReadNamed) -> Vec<NamedServer> {
    patterns.iter().flatten().filter_map(|pattern| read(pattern.as_str())).collect()
}

/// Of `targets.servers`: scheme, address and port, such as `https://10.0.0.5:6443`.
fn server(pattern: &str) -> Option<NamedServer> {
    let (_, authority) = pattern.split_once("://")?;
    let (host, port) = authority.rsplit_once(':')?;
    named(host, Some(port))
}

/// Of `sources.registries`: address, port and path, such as `10.0.0.5:5000/acme/*`.
fn repository(pattern: &str) -> Option<NamedServer> {
    let authority = pattern.split('/').next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => named(host, Some(port)),
        Some(_) | None => {
            let server = named(authority, None)?;
            Some(NamedServer { ports: USUAL_PORTS.to_vec(), ..server })
        }
    }
}

/// Of `sources.hosts` and `sources.redirects`: an address, at any port.
fn host(pattern: &str) -> Option<NamedServer> {
    named(pattern, None)
}

/// A host that is an address; a pattern of addresses names none of them.
fn named(host: &str, port: Option<&str>) -> Option<NamedServer> {
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let address: IpAddr = match bracketed {
        Some(host) => IpAddr::V6(host.parse().ok()?),
        None => IpAddr::V4(host.parse().ok()?),
    };
    let ports = match port {
        None | Some("*") => Vec::new(),
        Some(port) => vec![port.parse().ok()?],
    };
    Some(NamedServer { address, ports })
}

#[cfg(test)]
mod tests;
