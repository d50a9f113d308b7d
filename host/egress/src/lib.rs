//! Connections to addresses that others chose: clusters of targets, registries, what components fetch. Each address is
//! held against a list after it was resolved, and the connection goes to the very address that was.

use std::{
    error::Error,
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::Service;

/// Networks that no client of the host connects to: address, length of the prefix, what it is.
const DENIED_V4: [(Ipv4Addr, u32, &str); 6] = [
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address, where clouds have their metadata service"),
    (Ipv4Addr::new(100, 100, 100, 200), 32, "the metadata service of a cloud"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "the metadata service of a cloud"),
    (Ipv4Addr::new(192, 0, 0, 192), 32, "the metadata service of a cloud"),
    (Ipv4Addr::new(0, 0, 0, 0), 8, "no address of a server"),
    (Ipv4Addr::new(224, 0, 0, 0), 3, "no address of a server"),
];
const DENIED_V6: [(Ipv6Addr, u32, &str); 7] = [
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "a link-local address"),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32, "the metadata service of a cloud"),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, "the metadata service of a cloud"),
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128, "the metadata service of a cloud"),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, "the metadata service of a cloud"),
    (Ipv6Addr::UNSPECIFIED, 128, "no address of a server"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "no address of a server"),
];

/// Why no client of the host connects to this address, as the end of a sentence that says what it is; `None` where one
/// may. An IPv4 address in the clothes of IPv6 (mapped, compatible, NAT64 of everybody and of one network, 6to4) counts as
/// what it is.
pub fn denied(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => denied_v4(address),
        IpAddr::V6(address) => {
            let listed = DENIED_V6.iter().find(|(network, length, _)| {
                let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
                address.to_bits() & mask == network.to_bits() & mask
            });
            listed.map(|(_, _, what)| *what).or_else(|| embedded(address).and_then(denied_v4))
        }
    }
}

fn denied_v4(address: Ipv4Addr) -> Option<&'static str> {
    let listed = DENIED_V4.iter().find(|(network, length, _)| {
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        address.to_bits() & mask == network.to_bits() & mask
    });
    listed.map(|(_, _, what)| *what)
}

/// The IPv4 address that an IPv6 address stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d] = {
        let low = u32::try_from(address.to_bits() & u128::from(u32::MAX)).unwrap_or_default();
        low.to_be_bytes()
    };
    let low = Ipv4Addr::new(a, b, c, d);
    match address.segments() {
        // ::1 is loopback, which is what it is.
        [0, 0, 0, 0, 0, 0, 0, 1] => None,
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

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectRefusal {
    /// The address is on the list.
    #[error("{host} leads to {address}, {what}; no client of this host connects there: name another address")]
    Denied {
        /// What was asked for: a name, or the address itself.
        host: String,
        /// The address.
        address: IpAddr,
        /// What it is.
        what: &'static str,
    },
    /// The connection failed.
    #[error("{0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// Connects by TCP to what may be connected to.
#[derive(Clone, Debug)]
pub struct EgressConnector {
    connector: HttpConnector<CheckedResolver>,
}

impl EgressConnector {
    /// A connector for `http` and, below TLS, for `https`. `within` is the time for a connection by TCP; `None` is what
    /// the system takes.
    pub fn new(within: Option<Duration>) -> Self {
        let mut connector = HttpConnector::new_with_resolver(CheckedResolver);
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(within);
        Self { connector }
    }
}

impl Service<Uri> for EgressConnector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectRefusal;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectRefusal>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectRefusal>> {
        self.connector.poll_ready(context).map_err(refusal)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // What is written as an address never reaches the resolver.
        let host = uri.host().unwrap_or_default();
        let written = host.trim_start_matches('[').trim_end_matches(']').parse();
        if let Ok(address) = written
            && let Err(refused) = check(host, address)
        {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let connecting = self.connector.call(uri);
        Box::pin(async move { connecting.await.map_err(refusal) })
    }
}

fn check(host: &str, address: IpAddr) -> Result<(), ConnectRefusal> {
    match denied(address) {
        Some(what) => Err(ConnectRefusal::Denied { host: host.to_owned(), address, what }),
        None => Ok(()),
    }
}

/// A refusal that lies below the error of the connector comes up as itself.
fn refusal<E: Error + Send + Sync + 'static>(error: E) -> ConnectRefusal {
    match denial(&error) {
        Some(ConnectRefusal::Denied { host, address, what }) => {
            ConnectRefusal::Denied { host: host.clone(), address: *address, what }
        }
        Some(ConnectRefusal::Failed(_)) | None => ConnectRefusal::Failed(Box::new(error)),
    }
}

/// The denial that lies below the error of a client; `None` where it failed otherwise. To try again does not help.
pub fn denial<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ConnectRefusal> {
    let mut below = Some(error);
    while let Some(error) = below {
        if let Some(denied @ ConnectRefusal::Denied { .. }) = inner(error) {
            return Some(denied);
        }
        below = error.source();
    }
    None
}

/// Errors of the resolver travel inside of [`io::Error`], which does not name them as its source.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a ConnectRefusal> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.and_then(|error| error.downcast_ref()).or_else(|| error.downcast_ref())
}

/// The resolver of the system, whose answers are held against the list.
#[derive(Clone, Debug)]
struct CheckedResolver;

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move {
            let asked = name.clone();
            // The system's resolver blocks.
            let resolve = move || (asked.as_str(), 0).to_socket_addrs();
            // By a task of the executor: a thread that is started here may have a lower priority, and keeps it.
            let resolved = tokio::spawn(async { tokio::task::spawn_blocking(resolve).await }).await.flatten();
            let addresses: Vec<SocketAddr> = resolved.map_err(io::Error::other)??.collect();
            checked(name.as_str(), addresses).map(Vec::into_iter)
        })
    }
}

/// The addresses of a name, where none of them is denied.
fn checked(name: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, io::Error> {
    let refused = addresses.iter().find_map(|address| check(name, address.ip()).err());
    refused.map_or(Ok(addresses), |refused| Err(io::Error::other(refused)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_denied(address: &str) -> bool {
        denied(address.parse().unwrap()).is_some()
    }

    #[test]
    fn metadata_services_and_link_local_networks_are_denied_in_all_their_clothes() {
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
    fn other_networks_are_not() {
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
        let chart = include_str!("../../../charts/orangery/templates/networkpolicy.yaml");
        let lists = chart.lines().filter_map(|line| line.trim().strip_prefix("except: [")?.strip_suffix(']'));
        let mut written: Vec<String> = lists.flat_map(|list| list.split(", ")).map(str::to_owned).collect();
        written.sort();
        let is_of_a_server = |what: &&str| *what != "no address of a server";
        let v4 =
            DENIED_V4.iter().filter(|(.., what)| is_of_a_server(what)).map(|(at, length, _)| format!("{at}/{length}"));
        let v6 =
            DENIED_V6.iter().filter(|(.., what)| is_of_a_server(what)).map(|(at, length, _)| format!("{at}/{length}"));
        // The chart writes what NAT64 makes of the link-local network as well.
        let translated = ["64:ff9b::a9fe:0/112", "64:ff9b:1::a9fe:0/112"].map(str::to_owned);
        let mut expected: Vec<String> = v4.chain(v6).chain(translated).collect();
        expected.sort();
        assert_eq!(written, expected);
        for network in written {
            assert!(is_denied(network.split('/').next().unwrap()), "{network}");
        }
    }

    async fn connect(uri: &'static str) -> Result<(), String> {
        let mut connector = EgressConnector::new(Some(Duration::from_secs(5)));
        connector.call(Uri::from_static(uri)).await.map(|_| ()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_denied_address_is_refused_as_written() {
        let what = "a link-local address, where clouds have their metadata service; no client of this host connects there: \
                    name another address";
        let refused = |host: &str, address: &str| Err(format!("{host} leads to {address}, {what}"));
        assert_eq!(connect("http://169.254.169.254/latest").await, refused("169.254.169.254", "169.254.169.254"));
        assert_eq!(connect("https://169.254.169.254:8443").await, refused("169.254.169.254", "169.254.169.254"));
        let mapped = refused("[::ffff:169.254.169.254]", "::ffff:169.254.169.254");
        assert_eq!(connect("http://[::ffff:169.254.169.254]/").await, mapped);
    }

    /// What only a resolver understands is held against the list by what it resolves to.
    #[tokio::test]
    async fn a_name_that_leads_to_a_denied_address_is_refused() {
        // The C library takes numbers of other bases, and of fewer parts, for addresses.
        for uri in ["http://2852039166/", "http://0xa9fea9fe/", "http://169.16689662/", "http://0251.0376.0251.0376/"] {
            let refused = connect(uri).await.unwrap_err();
            assert!(refused.contains("leads to 169.254.169.254, a link-local address"), "{uri}: {refused}");
        }
    }

    #[test]
    fn one_denied_address_refuses_the_name() {
        let at = |addresses: &[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
        let fine = at(&["10.0.0.1:0", "127.0.0.1:0"]);
        assert_eq!(checked("registry", fine.clone()).unwrap(), fine);
        let refused = checked("registry", at(&["10.0.0.1:0", "169.254.169.254:0"])).unwrap_err().to_string();
        assert!(refused.starts_with("registry leads to 169.254.169.254, "), "{refused}");
    }

    #[tokio::test]
    async fn an_allowed_address_is_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        let mut connector = EgressConnector::new(None);
        let accepted = tokio::spawn(async move { listener.accept().await.map(|_| ()) });
        connector.call(uri.parse().unwrap()).await.unwrap();
        accepted.await.unwrap().unwrap();
    }
}
