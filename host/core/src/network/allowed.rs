//! Which addresses may be connected to that never are on the internet.

use std::net::IpAddr;

use super::{prefix::Network, reserved::reserved};

/// Which addresses may be connected to that never are on the internet (C-101): each rule has to allow an address. Without rules
/// all of them may. What is denied (C-95) no rule allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllowedNetworks {
    /// What the policies say, one rule for each.
    pub rules: Vec<NetworkRule>,
}

/// What one policy allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkRule {
    /// Networks, one of which has to have the address.
    pub networks: Vec<Network>,
    /// Servers that the policy itself names by their address. One that it names otherwise is none of these, for whoever answers
    /// for a name may have it lead anywhere.
    pub servers: Vec<NamedServer>,
    /// What refuses everything else, such as `NamespacePolicy team, line spec.egress.networks`.
    pub line: String,
}

/// A server that is named by its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedServer {
    /// The address.
    pub address: IpAddr,
    /// Its ports; where there are none, all of them.
    pub ports: Vec<u16>,
}

/// An address that may not be connected to, and which line says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} leads to {address}, {what}, which is refused by {line}; name another address, or have an administrator add \
     {network} to that line"
)]
pub struct RefusedAddress {
    /// What was asked for: a name, or the address itself.
    pub host: String,
    /// The address; of one in the clothes of IPv6 the one that it stands for.
    pub address: IpAddr,
    /// What it is.
    pub what: &'static str,
    /// Where that is refused.
    pub line: String,
    /// The network that has this address alone.
    pub network: Network,
}

impl AllowedNetworks {
    /// Whether a name may be connected to that leads to an address.
    ///
    /// # Errors
    /// The line that refuses it.
    pub fn check_resolved(&self, name: &str, address: IpAddr) -> Result<(), RefusedAddress> {
        self.check(name, address, None)
    }

    /// The same of an address that was written instead of a name, at this port.
    ///
    /// # Errors
    /// The line that refuses it.
    pub fn check_written(&self, written: &str, address: IpAddr, port: u16) -> Result<(), RefusedAddress> {
        self.check(written, address, Some(port))
    }

    /// What the rules allow, without where they stand: the same text exactly where the same addresses may be connected to by the
    /// same rules. Empty where all may.
    pub fn extent(&self) -> String {
        self.rules.iter().map(|rule| format!("{:?} {:?};", rule.networks, rule.servers)).collect()
    }

    fn check(&self, host: &str, address: IpAddr, written_at: Option<u16>) -> Result<(), RefusedAddress> {
        for rule in self.rules.iter().filter(|rule| !rule.names(address, written_at)) {
            let refused =
                reserved(address).find(|(reading, _)| !rule.networks.iter().any(|one| one.contains(*reading)));
            if let Some((address, what)) = refused {
                let (host, line, network) = (host.to_owned(), rule.line.clone(), Network::of_one(address));
                return Err(RefusedAddress { host, address, what, line, network });
            }
        }
        Ok(())
    }
}

impl NetworkRule {
    fn names(&self, address: IpAddr, written_at: Option<u16>) -> bool {
        let Some(port) = written_at else { return false };
        let is_named = |server: &NamedServer| {
            server.address == address && (server.ports.is_empty() || server.ports.contains(&port))
        };
        self.servers.iter().any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(networks: &[&str], line: &str) -> NetworkRule {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        NetworkRule { networks, servers: Vec::new(), line: line.to_owned() }
    }

    fn named(address: &str, ports: &[u16]) -> NamedServer {
        NamedServer { address: address.parse().unwrap(), ports: ports.to_vec() }
    }

    /// The address and the line that refuse a name which leads to an address.
    fn refused(allowed: &AllowedNetworks, address: &str) -> Option<(String, String)> {
        let refused = allowed.check_resolved("a.example", address.parse().unwrap()).err()?;
        Some((refused.address.to_string(), refused.line))
    }

    #[test]
    fn c_101_without_rules_all_addresses_are_allowed_and_with_one_those_of_its_networks() {
        let inner = ["127.0.0.1", "10.0.0.1", "100.64.0.1", "fd00::1", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"];
        for address in inner {
            assert_eq!(refused(&AllowedNetworks::default(), address), None);
            let nothing = AllowedNetworks { rules: vec![rule(&[], "line a")] };
            assert_eq!(refused(&nothing, address).map(|(_, line)| line).as_deref(), Some("line a"), "{address}");
            let all = AllowedNetworks { rules: vec![rule(&["0.0.0.0/0", "::/0"], "line a")] };
            assert_eq!(refused(&all, address), None, "{address}");
        }
        let ten = AllowedNetworks { rules: vec![rule(&["10.0.0.0/8"], "line a")] };
        for address in ["10.255.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "1.1.1.1", "2600::1"] {
            assert_eq!(refused(&ten, address), None, "{address}");
        }
        for (address, is) in
            [("11.0.0.1", None), ("192.168.0.1", Some("192.168.0.1")), ("::ffff:127.0.0.1", Some("127.0.0.1"))]
        {
            assert_eq!(refused(&ten, address).map(|(address, _)| address).as_deref(), is, "{address}");
        }
    }

    /// All of IPv6 has no IPv4 in it, whatever its clothes; and what a network translates for itself has to be allowed as both.
    #[test]
    fn c_101_a_network_of_ipv6_opens_nothing_of_ipv4() {
        let six = AllowedNetworks { rules: vec![rule(&["::/0"], "line a")] };
        for address in ["127.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::127.0.0.1"] {
            assert_eq!(refused(&six, address), Some(("127.0.0.1".to_owned(), "line a".to_owned())), "{address}");
        }
        assert_eq!(refused(&six, "fd00::1"), None);
        let translated = AllowedNetworks { rules: vec![rule(&["64:ff9b:1::/48", "10.0.0.0/8"], "line a")] };
        assert_eq!(refused(&translated, "64:ff9b:1::10.0.0.1"), None);
        assert!(refused(&translated, "64:ff9b:1::127.0.0.1").is_some());
        let four = AllowedNetworks { rules: vec![rule(&["10.0.0.0/8"], "line a")] };
        assert!(refused(&four, "64:ff9b:1::10.0.0.1").is_some());
    }

    #[test]
    fn c_101_every_rule_has_to_allow_an_address() {
        let allowed =
            AllowedNetworks { rules: vec![rule(&["10.0.0.0/8"], "line a"), rule(&["10.1.0.0/16"], "line b")] };
        assert_eq!(refused(&allowed, "10.1.0.1"), None);
        assert_eq!(refused(&allowed, "10.2.0.1"), Some(("10.2.0.1".to_owned(), "line b".to_owned())));
        assert_eq!(refused(&allowed, "fd00::1"), Some(("fd00::1".to_owned(), "line a".to_owned())));
    }

    #[test]
    fn c_101_a_server_that_the_policy_names_by_its_address_is_allowed_as_it_is_written_and_by_no_name() {
        let of =
            |servers: Vec<NamedServer>| AllowedNetworks { rules: vec![NetworkRule { servers, ..rule(&[], "line a") }] };
        let written = |allowed: &AllowedNetworks, address: &str, port: u16| {
            allowed.check_written(address, address.parse().unwrap(), port).is_ok()
        };
        let one = of(vec![named("10.0.0.5", &[6443])]);
        assert!(written(&one, "10.0.0.5", 6443));
        for (address, port) in [("10.0.0.5", 443), ("10.0.0.6", 6443), ("::ffff:10.0.0.5", 6443)] {
            assert!(!written(&one, address, port), "{address} {port}");
        }
        assert!(one.check_resolved("a.example", "10.0.0.5".parse().unwrap()).is_err(), "a name may lead there today");
        assert!(written(&of(vec![named("fd00::5", &[])]), "fd00::5", 1), "no port is said");
        let other = NetworkRule { servers: vec![named("10.0.0.5", &[])], ..rule(&[], "line a") };
        let both = AllowedNetworks { rules: vec![other, rule(&[], "line b")] };
        assert!(!written(&both, "10.0.0.5", 6443), "another policy does not name it");
    }

    #[test]
    fn c_101_a_refusal_names_the_address_what_it_is_the_line_and_how_to_mend_it() {
        let allowed = AllowedNetworks { rules: vec![rule(&[], "NamespacePolicy team, line spec.egress.networks")] };
        let refused = allowed.check_resolved("a.example", "::ffff:10.0.0.5".parse().unwrap()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a.example leads to 10.0.0.5, a private address, which is refused by NamespacePolicy team, line \
             spec.egress.networks; name another address, or have an administrator add 10.0.0.5/32 to that line"
        );
    }

    #[test]
    fn c_102_the_extent_is_the_same_where_the_same_is_allowed_wherever_it_stands() {
        let extent = |networks: &[&str], line: &str| AllowedNetworks { rules: vec![rule(networks, line)] }.extent();
        assert_eq!(AllowedNetworks::default().extent(), "");
        assert_eq!(extent(&["10.0.0.0/8"], "line a"), extent(&["10.0.0.0/8"], "line b"));
        assert_ne!(extent(&["10.0.0.0/8"], "line a"), extent(&["10.0.0.0/16"], "line a"));
        assert_ne!(extent(&[], "line a"), "");
    }
}
