//! Networks by their prefix, as administrators write them.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A network: an address, and how many bits of it all addresses of the network begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    first: IpAddr,
    length: u32,
}

/// Why a text is no network, as the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFault {
    /// It is something else.
    #[error("is no network; write an address and the length of its prefix, such as 10.0.0.0/8 or fd00::/8")]
    Unreadable,
    /// The address has bits beyond the prefix, so it may be another network that is meant.
    #[error("has bits beyond its prefix; write {0} for the network, or the whole length for the one address")]
    BeyondPrefix(Network),
    /// IPv4 in the clothes of IPv6, which counts as IPv4.
    #[error("is a network of IPv4 in the notation of IPv6; write it as IPv4")]
    Mapped,
}

impl Network {
    /// All addresses of IPv4.
    pub const ALL_V4: Self = Self::v4([0, 0, 0, 0], 0);
    /// All addresses of IPv6.
    pub const ALL_V6: Self = Self::v6([0, 0, 0, 0, 0, 0, 0, 0], 0);

    pub(super) const fn v4([a, b, c, d]: [u8; 4], length: u32) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length }
    }

    pub(super) const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], length: u32) -> Self {
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), length }
    }

    /// The network that has this address alone.
    pub fn of_one(address: IpAddr) -> Self {
        Self { first: address, length: longest(address) }
    }

    /// Whether an address is one of the network. An address of the other version of IP is none of it, whatever it stands for.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                within(address, self.length) == self.first
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// How many bits an address has.
fn longest(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => u32::BITS,
        IpAddr::V6(_) => u128::BITS,
    }
}

/// The first bits of an address, and no others.
fn within(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(u32::BITS - length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(u128::BITS - length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

impl FromStr for Network {
    type Err = NetworkFault;

    fn from_str(text: &str) -> Result<Self, NetworkFault> {
        let (address, length) = text.split_once('/').ok_or(NetworkFault::Unreadable)?;
        let address: IpAddr = address.parse().map_err(|_| NetworkFault::Unreadable)?;
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = length.parse().ok().filter(|_| is_number).ok_or(NetworkFault::Unreadable)?;
        if length > longest(address) {
            return Err(NetworkFault::Unreadable);
        }
        let mapped = Self::v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96);
        if length >= mapped.length && mapped.contains(address) {
            return Err(NetworkFault::Mapped);
        }
        let network = Self { first: within(address, length), length };
        if network.first == address { Ok(network) } else { Err(NetworkFault::BeyondPrefix(network)) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<Network>().map(|network| network.to_string()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn c_101_a_network_is_read_as_it_is_written_and_nothing_else_is() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "10.1.2.3/32", "::/0", "fd00::/8", "::1/128", "2001:db8::/33"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        let unreadable = NetworkFault::Unreadable.to_string();
        for text in [
            "",
            "10.0.0.0",
            "10.0.0/8",
            "010.0.0.0/8",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "10.0.0.0/8/8",
            " 10.0.0.0/8",
            "fd00::/129",
            "[fd00::]/8",
            "localhost/8",
            "*",
        ] {
            assert_eq!(read(text), Err(unreadable.clone()), "{text}");
        }
        let beyond = |network: &str| {
            Err(format!(
                "has bits beyond its prefix; write {network} for the network, or the whole length for the one address"
            ))
        };
        assert_eq!(read("10.0.0.1/8"), beyond("10.0.0.0/8"));
        assert_eq!(read("fd00::1/64"), beyond("fd00::/64"));
        for text in ["::ffff:10.0.0.0/104", "::ffff:0:0/96"] {
            assert_eq!(read(text), Err(NetworkFault::Mapped.to_string()), "{text}");
        }
    }

    #[test]
    fn c_101_a_network_has_the_addresses_of_its_prefix_and_of_its_version_of_ip() {
        let contains =
            |network: &str, address: &str| network.parse::<Network>().unwrap().contains(address.parse().unwrap());
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("10.0.0.0/8", "10.0.0.0", "9.255.255.255"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
            ("172.16.0.0/12", "172.31.255.255", "172.32.0.0"),
            ("0.0.0.0/0", "255.255.255.255", "::"),
            ("::/0", "ffff::", "10.0.0.1"),
            ("fc00::/7", "fdff::1", "fe00::"),
            ("::1/128", "::1", "::2"),
        ] {
            assert!(contains(network, inside) && !contains(network, outside), "{network}");
        }
        assert!(!contains("10.0.0.0/8", "::ffff:10.0.0.1"), "what it stands for is asked elsewhere");
        assert_eq!(Network::of_one("10.0.0.1".parse().unwrap()).to_string(), "10.0.0.1/32");
        assert_eq!(Network::of_one("fd00::1".parse().unwrap()).to_string(), "fd00::1/128");
        assert_eq!(Network::ALL_V4.to_string(), "0.0.0.0/0");
        assert_eq!(Network::ALL_V6.to_string(), "::/0");
    }
}
