//! Which networks may be connected to: those that never are on the internet are refused where no line has them (C-101).

use std::{net::IpAddr, sync::Arc};

use orangery_core::network::{AllowedNetworks, NamedServer, Network, NetworkRule};
use orangery_ocm::SourceNetworks;

use crate::{
    effective::EffectivePolicy,
    egress::{Cidr, NETWORKS},
    pattern::Pattern,
    read::Policy,
    request::PolicySubject,
    spec::{ItemTypeRule, PolicySpec},
};

/// Ports that an address without one stands for.
const USUAL_PORTS: [u16; 2] = [80, 443];

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
    let networks: Vec<Network> = listed.iter().filter_map(Cidr::network).collect();
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
