//! Connections to addresses that others chose: clusters of targets, registries, what components fetch. Each address is
//! held against two lists after it was resolved, and the connection goes to the very address that was: nobody connects to
//! what is denied (C-95), and of networks that never are on the internet to those alone that are allowed (C-101).

mod certificate;

use std::{
    error::Error,
    future::Future,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll},
    time::Duration,
};

use http::{Uri, uri::Scheme};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use orangery_core::network::{AllowedNetworks, RefusedAddress, denied};
use orangery_turns::{SharedBytes, Tenant};
use tokio::{net::TcpStream, task::JoinError};
use tower::Service;

pub use self::certificate::{RefusedCertificate, TlsRefusal, deepest, tls_refusal};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectRefusal {
    /// Nobody connects to the address.
    #[error("{host} leads to {address}, {what}; no client of this host connects there: name another address")]
    Denied {
        /// What was asked for: a name, or the address itself.
        host: String,
        /// The address.
        address: IpAddr,
        /// What it is.
        what: &'static str,
    },
    /// Whoever asks may not connect to the address, as a policy says.
    #[error(transparent)]
    NotAllowed(RefusedAddress),
    /// The connection failed.
    #[error("{0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// Connects by TCP to what may be connected to.
#[derive(Clone, Debug)]
pub struct EgressConnector<R = SystemResolver> {
    connector: HttpConnector<CheckedResolver<R>>,
    allowed: Arc<AllowedNetworks>,
}

impl EgressConnector {
    /// A connector for `http` and, below TLS, for `https`. `within` is the time for a connection by TCP; `None` is what
    /// the system takes. `allowed` are the networks of whoever asks: its connections are for nobody else. Names are looked up for
    /// `tenant`, or for nobody in particular.
    pub fn new(within: Option<Duration>, allowed: &Arc<AllowedNetworks>, tenant: &Tenant) -> Self {
        Self::resolving(SystemResolver, within, allowed, tenant)
    }
}

impl<R: Resolve> EgressConnector<R> {
    fn resolving(resolver: R, within: Option<Duration>, allowed: &Arc<AllowedNetworks>, tenant: &Tenant) -> Self {
        let resolver = CheckedResolver { resolver, allowed: Arc::clone(allowed), tenant: tenant.clone() };
        let mut connector = HttpConnector::new_with_resolver(resolver);
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(within);
        Self { connector, allowed: Arc::clone(allowed) }
    }
}

impl<R: Resolve> Service<Uri> for EgressConnector<R> {
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
            && let Err(refused) = check(host, address, || self.allowed.check_written(host, address, port(&uri)))
        {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let connecting = self.connector.call(uri);
        Box::pin(async move { connecting.await.map_err(refusal) })
    }
}

/// The port that is asked for.
fn port(uri: &Uri) -> u16 {
    let usual = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    uri.port_u16().unwrap_or(usual)
}

/// Nobody's list comes first: no policy opens what is on it.
fn check(
    host: &str,
    address: IpAddr,
    is_allowed: impl FnOnce() -> Result<(), RefusedAddress>,
) -> Result<(), ConnectRefusal> {
    match denied(address) {
        Some(what) => Err(ConnectRefusal::Denied { host: host.to_owned(), address, what }),
        None => is_allowed().map_err(ConnectRefusal::NotAllowed),
    }
}

/// A refusal that lies below the error of the connector comes up as itself.
fn refusal<E: Error + Send + Sync + 'static>(error: E) -> ConnectRefusal {
    match denial(&error) {
        Some(ConnectRefusal::Denied { host, address, what }) => {
            ConnectRefusal::Denied { host: host.clone(), address: *address, what }
        }
        Some(ConnectRefusal::NotAllowed(refused)) => ConnectRefusal::NotAllowed(refused.clone()),
        Some(ConnectRefusal::Failed(_)) | None => ConnectRefusal::Failed(Box::new(error)),
    }
}

/// The denial that lies below the error of a client, of the list or of a policy; `None` where it failed otherwise. To try again
/// does not help.
pub fn denial<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ConnectRefusal> {
    let mut below = Some(error);
    while let Some(error) = below {
        if let Some(denied @ (ConnectRefusal::Denied { .. } | ConnectRefusal::NotAllowed(_))) = inner(error) {
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

/// The most names that are looked up at once. Each takes a thread until the resolver of the system has answered, which may be long
/// after nobody waits for it (C-193).
pub const MOST_LOOKUPS: u64 = 64;

/// Names that are looked up, which tenants share: one has half of them at most.
static LOOKUPS: LazyLock<Arc<SharedBytes>> = LazyLock::new(|| SharedBytes::new(MOST_LOOKUPS));

/// Tells the addresses of a name. Blocks.
pub trait Resolve: Clone + Send + Sync + 'static {
    /// The addresses, asked for anew.
    ///
    /// # Errors
    /// There are none, or nobody can be asked.
    fn resolve(&self, name: &str) -> io::Result<Vec<SocketAddr>>;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        (name, 0).to_socket_addrs().map(Iterator::collect)
    }
}

/// A resolver whose answers are held against the lists. What was held against them is connected to: nobody asks twice.
#[derive(Clone, Debug)]
struct CheckedResolver<R> {
    resolver: R,
    allowed: Arc<AllowedNetworks>,
    tenant: Tenant,
}

impl<R: Resolve> Service<Name> for CheckedResolver<R> {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (allowed, tenant, resolver) = (Arc::clone(&self.allowed), self.tenant.clone(), self.resolver.clone());
        Box::pin(async move {
            let asked = name.clone();
            let resolve = move || resolver.resolve(asked.as_str());
            let addresses = look_up(&LOOKUPS, &tenant, resolve).await.map_err(io::Error::other)??;
            checked(name.as_str(), addresses, &allowed).map(Vec::into_iter)
        })
    }
}

/// What the system's resolver answers, which blocks, and keeps its thread and its place when nobody waits for it any more.
async fn look_up<T: Send + 'static>(
    places: &Arc<SharedBytes>,
    tenant: &Tenant,
    resolve: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let place = places.acquire(tenant, 1).await;
    let resolve = move || {
        let resolved = resolve();
        drop(place);
        resolved
    };
    // By a task of the executor: a thread that is started here may have a lower priority, and keeps it.
    tokio::spawn(async { tokio::task::spawn_blocking(resolve).await }).await.flatten()
}

/// The addresses of a name, where all of them may be connected to.
fn checked(name: &str, addresses: Vec<SocketAddr>, allowed: &AllowedNetworks) -> Result<Vec<SocketAddr>, io::Error> {
    let refused = addresses
        .iter()
        .map(SocketAddr::ip)
        .find_map(|address| check(name, address, || allowed.check_resolved(name, address)).err());
    refused.map_or(Ok(addresses), |refused| Err(io::Error::other(refused)))
}

#[cfg(test)]
mod tests {
    use orangery_core::network::{NamedServer, NetworkRule};

    use super::*;

    /// A policy that allows these networks, and names these addresses with their ports.
    fn allowing(networks: &[&str], servers: &[(&str, u16)]) -> Arc<AllowedNetworks> {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        let named =
            |(address, port): &(&str, u16)| NamedServer { address: address.parse().unwrap(), ports: vec![*port] };
        let (servers, line) = (servers.iter().map(named).collect(), "NamespacePolicy team, line l".to_owned());
        Arc::new(AllowedNetworks { rules: vec![NetworkRule { networks, servers, line }] })
    }

    async fn connect(uri: &str, allowed: &Arc<AllowedNetworks>) -> Result<(), String> {
        let mut connector = EgressConnector::new(Some(Duration::from_secs(5)), allowed, &None);
        connector.call(uri.parse().unwrap()).await.map(|_| ()).map_err(|error| error.to_string())
    }

    /// What is denied stays so, whatever a policy lists.
    #[tokio::test]
    async fn c_95_a_denied_address_is_refused_as_written() {
        let what = "a link-local address, where clouds have their metadata service; no client of this host connects there: \
                    name another address";
        let refused = |host: &str, address: &str| Err(format!("{host} leads to {address}, {what}"));
        let within = allowing(&["169.254.169.254/32"], &[("169.254.169.254", 80)]);
        let around = allowing(&["0.0.0.0/0", "::/0"], &[]);
        for allowed in [Arc::default(), within, around] {
            let answer = connect("http://169.254.169.254/latest", &allowed).await;
            assert_eq!(answer, refused("169.254.169.254", "169.254.169.254"));
            let answer = connect("https://169.254.169.254:8443", &allowed).await;
            assert_eq!(answer, refused("169.254.169.254", "169.254.169.254"));
            let mapped = refused("[::ffff:169.254.169.254]", "::ffff:169.254.169.254");
            assert_eq!(connect("http://[::ffff:169.254.169.254]/", &allowed).await, mapped);
        }
    }

    /// What only a resolver understands is held against the list by what it resolves to.
    #[tokio::test]
    async fn c_95_a_name_that_leads_to_a_denied_address_is_refused() {
        // The C library takes numbers of other bases, and of fewer parts, for addresses.
        for uri in ["http://2852039166/", "http://0xa9fea9fe/", "http://169.16689662/", "http://0251.0376.0251.0376/"] {
            for allowed in [Arc::default(), allowing(&["0.0.0.0/0"], &[("169.254.169.254", 80)])] {
                let refused = connect(uri, &allowed).await.unwrap_err();
                assert!(refused.contains("leads to 169.254.169.254, a link-local address"), "{uri}: {refused}");
            }
        }
    }

    #[test]
    fn one_denied_address_refuses_the_name() {
        let at = |addresses: &[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
        let all = AllowedNetworks::default();
        let fine = at(&["10.0.0.1:0", "127.0.0.1:0"]);
        assert_eq!(checked("registry", fine.clone(), &all).unwrap(), fine);
        let refused = checked("registry", at(&["10.0.0.1:0", "169.254.169.254:0"]), &all).unwrap_err().to_string();
        assert!(refused.starts_with("registry leads to 169.254.169.254, "), "{refused}");
        let ten = allowing(&["10.0.0.0/8"], &[]);
        assert_eq!(checked("registry", at(&["10.0.0.1:0", "1.1.1.1:0"]), &ten).unwrap().len(), 2);
        let refused = checked("registry", fine, &ten).unwrap_err().to_string();
        assert!(
            refused.starts_with("registry leads to 127.0.0.1, a loopback address, which is refused by "),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn an_allowed_address_is_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        let mut connector = EgressConnector::new(None, &Arc::default(), &None);
        let accepted = tokio::spawn(async move { listener.accept().await.map(|_| ()) });
        connector.call(uri.parse().unwrap()).await.unwrap();
        accepted.await.unwrap().unwrap();
    }

    /// A name, numbers that only the resolver understands, and the address itself lead to one server.
    #[tokio::test]
    async fn c_101_no_name_leads_to_a_network_that_is_not_allowed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (nothing, loopback) = (allowing(&[], &[]), allowing(&["127.0.0.0/8", "::1/128"], &[]));
        for host in ["127.0.0.1", "localhost", "2130706433", "127.1", "[::1]", "[::ffff:127.0.0.1]"] {
            let refused = connect(&format!("http://{host}:{port}/"), &nothing).await.unwrap_err();
            assert!(
                refused.contains(", a loopback address, which is refused by NamespacePolicy team, line l; "),
                "{refused}"
            );
        }
        for host in ["127.0.0.1", "localhost", "2130706433", "127.1"] {
            assert_eq!(connect(&format!("http://{host}:{port}/"), &loopback).await, Ok(()), "{host}");
        }
        let elsewhere = allowing(&["10.0.0.0/8"], &[]);
        assert!(connect(&format!("http://localhost:{port}/"), &elsewhere).await.is_err());
    }

    #[tokio::test]
    async fn c_101_a_server_that_a_policy_names_is_connected_to_by_its_address_alone() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let named = allowing(&[], &[("127.0.0.1", port)]);
        assert_eq!(connect(&format!("http://127.0.0.1:{port}/"), &named).await, Ok(()));
        for host in ["localhost", "2130706433", "[::ffff:127.0.0.1]"] {
            assert!(connect(&format!("http://{host}:{port}/"), &named).await.is_err(), "{host}");
        }
        let refused = connect("https://127.0.0.1/", &named).await.unwrap_err();
        assert!(
            refused.starts_with("127.0.0.1 leads to 127.0.0.1, a loopback address, which is refused by "),
            "{refused}"
        );
        assert_eq!([port_of("http://a/"), port_of("https://a/"), port_of("https://a:1/")], [80, 443, 1]);
    }

    fn port_of(uri: &str) -> u16 {
        port(&uri.parse().unwrap())
    }

    /// A name whose server answers each time with the next of its addresses.
    #[derive(Clone)]
    struct ChangingResolver(Arc<std::sync::Mutex<Vec<&'static str>>>);

    impl Resolve for ChangingResolver {
        fn resolve(&self, _: &str) -> io::Result<Vec<SocketAddr>> {
            let address = self.0.lock().unwrap().pop().ok_or_else(|| io::Error::other("it was asked too often"))?;
            Ok(vec![SocketAddr::new(address.parse().unwrap(), 0)])
        }
    }

    /// A name that leads to an allowed address first and to another one afterwards.
    #[tokio::test]
    async fn c_101_a_name_that_changes_its_address_leads_nowhere_else_than_was_checked() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://rebound.example:{}/", listener.local_addr().unwrap().port()).parse().unwrap();
        let allowed = allowing(&["127.0.0.1/32"], &[]);
        let answers = Arc::new(std::sync::Mutex::new(vec!["169.254.169.254", "127.0.0.2", "127.0.0.1"]));
        let within = Some(Duration::from_secs(5));
        let mut connector = EgressConnector::resolving(ChangingResolver(Arc::clone(&answers)), within, &allowed, &None);
        // It is asked once for a connection, which goes to the address that was checked.
        let connected = connector.call(uri.clone()).await.unwrap();
        assert_eq!(connected.inner().peer_addr().unwrap().ip().to_string(), "127.0.0.1");
        assert_eq!(answers.lock().unwrap().len(), 2);
        let refused = connector.call(uri.clone()).await.map(|_| ()).unwrap_err().to_string();
        assert!(refused.starts_with("rebound.example leads to 127.0.0.2, a loopback address, "), "{refused}");
        let denied = connector.call(uri).await.map(|_| ()).unwrap_err().to_string();
        assert!(denied.starts_with("rebound.example leads to 169.254.169.254, a link-local address, "), "{denied}");
    }

    #[test]
    fn a_denial_is_found_below_the_errors_that_carry_it() {
        let refused = allowing(&[], &[]).check_resolved("a", "10.0.0.1".parse().unwrap()).unwrap_err();
        let error = io::Error::other(ConnectRefusal::NotAllowed(refused.clone()));
        let found = denial(&error).map(ToString::to_string);
        assert_eq!(found, Some(refused.to_string()));
        assert!(matches!(refusal(error), ConnectRefusal::NotAllowed(same) if same == refused));
        assert!(denial(&ConnectRefusal::Failed("no".into())).is_none());
    }

    /// Resolvers that take their time hold places of their own tenant alone, also when nobody waits for them any more.
    #[tokio::test]
    async fn c_193_limits_lookups_a_tenant_has_half_of_the_places_until_its_lookups_end() {
        let places = SharedBytes::new(4);
        let (one, other) = (Some("one".into()), Some("other".into()));
        let (answer, answers) = std::sync::mpsc::channel::<()>();
        let answers = Arc::new(std::sync::Mutex::new(answers));
        let slow = || {
            let answers = Arc::clone(&answers);
            move || answers.lock().unwrap().recv()
        };
        let begun: Vec<_> = (0..2).map(|_| Box::pin(look_up(&places, &one, slow()))).collect();
        // Each is asked, and given up.
        for mut lookup in begun {
            assert!(futures_poll(lookup.as_mut()).await.is_pending());
        }
        assert_eq!(places.taken(), 2);
        let mut third = Box::pin(look_up(&places, &one, || ()));
        assert!(futures_poll(third.as_mut()).await.is_pending());
        look_up(&places, &other, || ()).await.unwrap();
        answer.send(()).unwrap();
        third.await.unwrap();
        answer.send(()).unwrap();
        while places.taken() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// A look at a future.
    async fn futures_poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        let mut future = Some(future);
        std::future::poll_fn(|context| Poll::Ready(future.take().map_or(Poll::Pending, |future| future.poll(context))))
            .await
    }
}
