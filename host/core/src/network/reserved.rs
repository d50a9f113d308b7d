//! Addresses of special networks: those that nobody connects to through the host, and those that never are on the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prefix::Network;

/// Networks that no client of the host connects to, and what they are.
const DENIED: [(Network, &str); 13] = [
    (Network::v4([169, 254, 0, 0], 16), "a link-local address, where clouds have their metadata service"),
    (Network::v4([100, 100, 100, 200], 32), "the metadata service of a cloud"),
    (Network::v4([168, 63, 129, 16], 32), "the metadata service of a cloud"),
    (Network::v4([192, 0, 0, 192], 32), "the metadata service of a cloud"),
    (Network::v4([0, 0, 0, 0], 8), "no address of a server"),
    (Network::v4([224, 0, 0, 0], 3), "no address of a server"),
    (Network::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (Network::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32), "the metadata service of a cloud"),
    (Network::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), "the metadata service of a cloud"),
    (Network::v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), "the metadata service of a cloud"),
    (Network::v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128), "the metadata service of a cloud"),
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "no address of a server"),
    (Network::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "no address of a server"),
];

const RESERVED: &str = "an address that is reserved";

/// Networks that never are on the internet, and what they are.
const INNER: [(Network, &str); 21] = [
    (Network::v4([127, 0, 0, 0], 8), "a loopback address"),
    (Network::v4([10, 0, 0, 0], 8), "a private address"),
    (Network::v4([172, 16, 0, 0], 12), "a private address"),
    (Network::v4([192, 168, 0, 0], 16), "a private address"),
    (Network::v4([100, 64, 0, 0], 10), "an address of a shared network"),
    (Network::v4([198, 18, 0, 0], 15), "an address for benchmarks"),
    (Network::v4([192, 0, 0, 0], 24), RESERVED),
    (Network::v4([192, 0, 2, 0], 24), RESERVED),
    (Network::v4([192, 88, 99, 0], 24), RESERVED),
    (Network::v4([198, 51, 100, 0], 24), RESERVED),
    (Network::v4([203, 0, 113, 0], 24), RESERVED),
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (Network::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (Network::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a private address"),
    // A translation of one network: what is behind it is its affair.
    (Network::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a private address"),
    // Tunnels such as Teredo, and networks for benchmarks.
    (Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), RESERVED),
    (Network::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), RESERVED),
    (Network::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), RESERVED),
    // All but 2000::/3, with what stands for IPv4 taken out.
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 0], 3), RESERVED),
    (Network::v6([0x4000, 0, 0, 0, 0, 0, 0, 0], 2), RESERVED),
    (Network::v6([0x8000, 0, 0, 0, 0, 0, 0, 0], 1), RESERVED),
];

/// Translations of all of IPv4: an address of them is what it stands for, and nothing beside that.
const TRANSLATED: [Network; 3] = [
    Network::v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    Network::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
    Network::v6([0, 0, 0, 0, 0, 0, 0, 0], 96),
];

/// Why no client of the host connects to this address, as the end of a sentence that says what it is; `None` where one
/// may. An IPv4 address in the clothes of IPv6 (mapped, compatible, NAT64 of everybody and of one network, 6to4) counts as
/// what it is (C-95).
pub fn denied(address: IpAddr) -> Option<&'static str> {
    readings(address).find_map(|reading| found(&DENIED, reading))
}

/// What an address is that never is on the internet: the address that it stands for, and what that is, as the end of a
/// sentence. Of an IPv4 address in the clothes of IPv6 both may be of such networks. Empty for an address of the internet.
pub fn reserved(address: IpAddr) -> impl Iterator<Item = (IpAddr, &'static str)> {
    let is_translated = move |reading: &IpAddr| {
        *reading == address && embedded(address).is_some() && TRANSLATED.iter().any(|network| network.contains(address))
    };
    let readings = readings(address).filter(move |reading| !is_translated(reading));
    readings.filter_map(|reading| found(&INNER, reading).map(|what| (reading, what)))
}

fn found(table: &[(Network, &'static str)], address: IpAddr) -> Option<&'static str> {
    table.iter().find(|(network, _)| network.contains(address)).map(|(_, what)| *what)
}

/// The address, and the one that it stands for.
fn readings(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    [address].into_iter().chain(embedded(address).map(IpAddr::V4))
}

/// The IPv4 address that an IPv6 address stands for.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let [a, b, c, d] = {
        let low = u32::try_from(address.to_bits() & u128::from(u32::MAX)).unwrap_or_default();
        low.to_be_bytes()
    };
    let low = Ipv4Addr::new(a, b, c, d);
    match address.segments() {
        // ::1 is loopback, which is what it is.
        _ if address == Ipv6Addr::LOCALHOST => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(low),
        // A network may take a /96 of this for itself, whose last bits are the address.
        [0x64, 0xff9b, 1, ..] => Some(low),
        [0x2002, high, middle, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), middle.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_denied(address: &str) -> bool {
        denied(address.parse().unwrap()).is_some()
    }

    #[test]
    fn c_95_metadata_services_and_link_local_networks_are_denied_in_all_their_clothes() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:2:3:4:169.254.169.254",
            "::",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(is_denied(address), "{address}");
        }
    }

    #[test]
    fn c_95_other_networks_are_not() {
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "169.253.255.255",
            "169.255.0.0",
            "100.100.100.201",
            "223.255.255.255",
            "::1",
            "fec0::1",
            "fd00:ec3::254",
            "fd20:ce::255",
            "fd00:42::43",
            "64:ff9b:1::10.0.0.1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:0a00:0001::1",
        ] {
            assert!(!is_denied(address), "{address}");
        }
    }

    /// The NetworkPolicy of the chart refuses what of the list is one address or network of a cloud.
    #[test]
    fn c_95_the_chart_refuses_the_same_once_more() {
        let chart = include_str!("../../../../charts/orangery/templates/networkpolicy.yaml");
        let lists = chart.lines().filter_map(|line| line.trim().strip_prefix("except: [")?.strip_suffix(']'));
        let mut written: Vec<String> = lists.flat_map(|list| list.split(", ")).map(str::to_owned).collect();
        written.sort();
        let of_servers = DENIED.iter().filter(|(_, what)| *what != "no address of a server");
        let denied = of_servers.map(|(network, _)| network.to_string());
        // The chart writes what NAT64 makes of the link-local network as well.
        let translated = ["64:ff9b::a9fe:0/112", "64:ff9b:1::a9fe:0/112"].map(str::to_owned);
        let mut expected: Vec<String> = denied.chain(translated).collect();
        expected.sort();
        assert_eq!(written, expected);
        for network in written {
            assert!(is_denied(network.split('/').next().unwrap()), "{network}");
        }
    }

    /// What an address is, each with the address that it stands for.
    fn what(address: &str) -> Vec<(String, &'static str)> {
        reserved(address.parse().unwrap()).map(|(address, what)| (address.to_string(), what)).collect()
    }

    #[test]
    fn c_101_addresses_that_never_are_on_the_internet_are_told_by_what_they_are() {
        let (loopback, private) = ("a loopback address", "a private address");
        let table = [
            ("127.0.0.1", loopback),
            ("127.255.255.255", loopback),
            ("::1", loopback),
            ("10.0.0.0", private),
            ("10.255.255.255", private),
            ("172.16.0.0", private),
            ("172.31.255.255", private),
            ("192.168.0.0", private),
            ("192.168.255.255", private),
            ("fc00::", private),
            ("fdff:ffff::1", private),
            ("fec0::1", private),
            ("100.64.0.0", "an address of a shared network"),
            ("100.127.255.255", "an address of a shared network"),
            ("198.18.0.0", "an address for benchmarks"),
            ("198.19.255.255", "an address for benchmarks"),
            ("192.0.0.1", RESERVED),
            ("192.0.2.1", RESERVED),
            ("192.88.99.1", RESERVED),
            ("198.51.100.1", RESERVED),
            ("203.0.113.1", RESERVED),
            ("2001::1", RESERVED),
            ("2001:2::1", RESERVED),
            ("2001:1ff::1", RESERVED),
            ("2001:db8::1", RESERVED),
            ("3fff:fff::1", RESERVED),
            ("100::1", RESERVED),
            ("1fff::1", RESERVED),
            ("4000::1", RESERVED),
            ("5f00::1", RESERVED),
            ("f000::1", RESERVED),
        ];
        for (address, expected) in table {
            assert_eq!(what(address), [(address.to_owned(), expected)], "{address}");
        }
    }

    #[test]
    fn c_101_an_ipv4_address_in_the_clothes_of_ipv6_is_what_it_stands_for() {
        for (of, is) in [("10.0.0.1", "a private address"), ("127.0.0.1", "a loopback address")] {
            let (high, low) = if of == "10.0.0.1" { ("0a00", "0001") } else { ("7f00", "0001") };
            for dressed in
                [format!("::ffff:{of}"), format!("::{of}"), format!("64:ff9b::{of}"), format!("2002:{high}:{low}::1")]
            {
                assert_eq!(what(&dressed), [(of.to_owned(), is)], "{dressed}");
            }
            // The translation of one network is of that network, and what it leads to is what it is.
            let own = format!("64:ff9b:1::{of}");
            let address: IpAddr = own.parse().unwrap();
            assert_eq!(what(&own), [(address.to_string(), "a private address"), (of.to_owned(), is)]);
        }
    }

    #[test]
    fn c_101_addresses_of_the_internet_are_none_of_these() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "2000::1",
            "2001:200::1",
            "2001:db7::1",
            "2600:1f18::1",
            "2a00:1450::1",
            "3ffe::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:0101:0101::1",
        ] {
            assert_eq!(what(address), [], "{address}");
        }
    }
}
