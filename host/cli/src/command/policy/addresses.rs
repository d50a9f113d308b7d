//! Servers that objects name by their address, held against the networks of a policy. Names are not resolved.

use std::net::IpAddr;

use orangery_core::network::{AllowedNetworks, RefusedAddress};

/// The line that refuses a server which is named by its address: `https://10.0.0.5:6443`, `10.0.0.5:5000/components`. `None` for
/// a name, and for what may be connected to.
pub(super) fn refused(server: &str, networks: &AllowedNetworks) -> Option<RefusedAddress> {
    let (scheme, rest) = server.split_once("://").unwrap_or(("https", server));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let usual = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        Some(_) | None => (authority, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: IpAddr = host.parse().ok()?;
    networks.check_written(host, address, port).err()
}

#[cfg(test)]
mod tests {
    use orangery_core::network::{NamedServer, NetworkRule};

    use super::*;

    #[test]
    fn c_101_an_address_is_found_in_what_names_a_server() {
        let named = |address: &str, port| NamedServer { address: address.parse().unwrap(), ports: vec![port] };
        let servers = vec![named("10.0.0.1", 443), named("10.0.0.2", 80)];
        let rule = NetworkRule { networks: Vec::new(), servers, line: "l".to_owned() };
        let networks = AllowedNetworks { rules: vec![rule] };
        for (server, refused_at) in [
            ("https://10.0.0.5:6443", Some("10.0.0.5")),
            ("10.0.0.5:5000/a", Some("10.0.0.5")),
            ("oci://10.0.0.5/a", Some("10.0.0.5")),
            ("https://user@[::1]:1/x", Some("::1")),
            ("[fd00::1]", Some("fd00::1")),
            ("https://10.0.0.1/x", None),
            ("10.0.0.1", None),
            ("http://10.0.0.1", Some("10.0.0.1")),
            ("http://10.0.0.2", None),
            ("https://1.1.1.1", None),
            ("https://inside.example:443", None),
            ("", None),
        ] {
            let found = refused(server, &networks).map(|refused| refused.address.to_string());
            assert_eq!(found.as_deref(), refused_at, "{server}");
        }
    }
}
