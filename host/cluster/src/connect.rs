//! Which clusters there are: pooled by the digest of their kubeconfig and the networks that it may be in, so that all items of a
//! target share connections, discovery and watches, and no namespace those of one that may connect elsewhere (C-102).
//! Kubeconfigs of one server share its limit of requests and what is known of its silence, and nothing that credentials have
//! shown.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use http::header::InvalidHeaderValue;
use orangery_core::{digest::sha256, name::Namespace, network::AllowedNetworks};
use orangery_turns::Tenant;

use crate::{
    Cluster, ClusterSet, KubeconfigError, MOST_OBJECT_BYTES,
    cluster::ServerGate,
    connections::{Connections, WatchHandles},
    impersonation::in_the_name_of,
    kubeconfig,
    object_watcher::ObjectWatcher,
    request_figures::RequestCounts,
    shares::ClusterShares,
    watch::{Waiter, Wake},
};

/// Clusters that the pool keeps; the one that was not asked for longest leaves first.
const KEPT: usize = 256;

/// All clusters in use.
pub struct ClusterPool {
    wake: Wake,
    /// Protects the clusters by key. Held for one lookup or one change, never across an await.
    clusters: Mutex<Clusters>,
    handles: Arc<WatchHandles>,
    shares: ClusterShares,
}

/// The figures of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// Clusters that are kept, by credentials.
    pub kept: usize,
    /// API servers that they are on.
    pub servers: usize,
    /// Those of them that did not answer somebody lately.
    pub silent: usize,
    /// Watches that are open, those of feeds among them.
    pub watches: u64,
    /// Bytes of memory that objects take.
    pub object_bytes: u64,
    /// The requests, by method.
    pub requests: Vec<RequestCounts>,
}

#[derive(Default)]
struct Clusters {
    /// Counts the look-ups, for the order of use.
    tick: u64,
    by_key: BTreeMap<ClusterKey, (u64, Arc<Cluster>)>,
    /// By how their servers are reached.
    servers: BTreeMap<String, Weak<ServerGate>>,
}

/// What a cluster is found by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ClusterKey {
    /// Of the kubeconfig; of a client of the host its name.
    digest: String,
    /// Which networks its connections go to.
    networks: Arc<AllowedNetworks>,
}

impl ClusterKey {
    /// Of a client that the host has already.
    fn adopted(name: impl Into<String>) -> Self {
        Self { digest: name.into(), networks: Arc::default() }
    }
}

impl Clusters {
    /// What all share who reach a server in this way.
    fn server(&mut self, reached: &str) -> Arc<ServerGate> {
        if let Some(server) = self.servers.get(reached).and_then(Weak::upgrade) {
            return server;
        }
        self.servers.retain(|_, server| server.strong_count() > 0);
        let server = Arc::default();
        self.servers.insert(reached.to_owned(), Arc::downgrade(&server));
        server
    }
}

impl ClusterPool {
    /// An empty pool. `wake` is called for an item when something that it waits for has changed; it must not block.
    pub fn new(wake: impl Fn(&Waiter) + Send + Sync + 'static) -> Self {
        Self::with_memory(MOST_OBJECT_BYTES, wake)
    }

    /// The same where the objects of all watches and lists have so many bytes of memory.
    pub fn with_memory(objects: u64, wake: impl Fn(&Waiter) + Send + Sync + 'static) -> Self {
        let shares = ClusterShares::new(objects);
        Self { wake: Arc::new(wake), clusters: Mutex::default(), handles: Arc::default(), shares }
    }

    /// Bytes of memory that objects of all clusters take now: those of watches, of lists under way and of what is worked with.
    pub fn object_bytes(&self) -> u64 {
        self.shares.objects.taken()
    }

    /// What there is and what was counted, for metrics.
    pub fn figures(&self) -> ClusterFigures {
        let (kept, servers) = {
            let clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
            let servers: Vec<_> = clusters.servers.values().filter_map(Weak::upgrade).collect();
            (clusters.by_key.len(), servers)
        };
        ClusterFigures {
            kept,
            servers: servers.len(),
            silent: servers.iter().filter(|server| server.is_silent()).count(),
            watches: self.shares.watches.taken(),
            object_bytes: self.shares.objects.taken(),
            requests: self.shares.requests.counts(),
        }
    }

    /// The cluster of a kubeconfig, for those who may connect to these networks. `tenant` is who asks: the name of the server is
    /// looked up for it, where nobody has asked for the cluster before.
    ///
    /// # Errors
    /// [`KubeconfigError`]
    pub async fn connect(
        &self,
        kubeconfig: &str,
        networks: &Arc<AllowedNetworks>,
        tenant: &Tenant,
    ) -> Result<Arc<Cluster>, KubeconfigError> {
        let key = ClusterKey { digest: sha256(kubeconfig.as_bytes()), networks: Arc::clone(networks) };
        if let Some(cluster) = self.lookup(&key) {
            return Ok(cluster);
        }
        let kubeconfig::KubeconfigClient { client, address, reached } =
            kubeconfig::client(kubeconfig, networks, tenant).await?;
        Ok(self.insert(key, client, address, &reached))
    }

    /// The cluster of a client that the host has already, under a name of its own.
    pub fn adopt(&self, name: &str, client: &kube::Client) -> Arc<Cluster> {
        let key = ClusterKey::adopted(name);
        self.lookup(&key).unwrap_or_else(|| self.insert(key, client.clone(), name.to_owned(), name))
    }

    /// The same in the name of another user (C-38): each user has watches and knowledge of its own.
    ///
    /// # Errors
    /// The name of the user cannot stand in a header.
    pub fn adopt_for(&self, user: &str, name: &str, client: &kube::Client) -> Result<Arc<Cluster>, InvalidHeaderValue> {
        let key = ClusterKey::adopted(format!("{name} as {user}"));
        if let Some(cluster) = self.lookup(&key) {
            return Ok(cluster);
        }
        Ok(self.insert(key, in_the_name_of(user, client)?, name.to_owned(), name))
    }

    /// Watches on single objects of the cluster of a client, which have their parts of what the pool shares. `wake` is called for whoever
    /// depends on an object when it has changed, when it is known for the first time, or when it cannot be watched; it must not
    /// block.
    pub fn object_watcher(
        &self,
        client: kube::Client,
        wake: impl Fn(&Waiter) + Send + Sync + 'static,
    ) -> ObjectWatcher {
        ObjectWatcher::new(client, Arc::new(wake), self.shares.clone())
    }

    /// The clusters of one item.
    pub fn set(&self, connections: Arc<dyn Connections>, waiter: Waiter) -> ClusterSet {
        ClusterSet::new(connections, waiter, Arc::clone(&self.handles))
    }

    /// An item waits for nothing any more: watches that nobody else holds end.
    pub fn release(&self, waiter: &Waiter) {
        self.handles.replace(waiter, Vec::new());
    }

    /// Wakes the waiters of a namespace that hold watches: called again, they watch as they may by then.
    pub fn wake_all(&self, namespace: &Namespace) {
        self.handles.waiters(namespace).iter().for_each(|waiter| (self.wake)(waiter));
    }

    /// Has the watches that an item holds list anew, for one that heard nothing for long: each watch at most every 15
    /// seconds, whoever asks. What changed wakes those whom it concerns.
    pub fn renew(&self, waiter: &Waiter) {
        self.handles.renew(waiter);
    }

    fn lookup(&self, key: &ClusterKey) -> Option<Arc<Cluster>> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        clusters.tick += 1;
        let tick = clusters.tick;
        let (used, cluster) = clusters.by_key.get_mut(key)?;
        *used = tick;
        Some(Arc::clone(cluster))
    }

    fn insert(&self, key: ClusterKey, client: kube::Client, address: String, reached: &str) -> Arc<Cluster> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let server = clusters.server(reached);
        let cluster = Arc::new(Cluster::beside((client, address), Arc::clone(&self.wake), &server, &self.shares));
        clusters.tick += 1;
        let tick = clusters.tick;
        // Two that connect at once agree on the first.
        let kept = Arc::clone(&clusters.by_key.entry(key).or_insert((tick, cluster)).1);
        while clusters.by_key.len() > KEPT {
            let oldest = clusters.by_key.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            clusters.by_key.remove(&oldest);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};
    use orangery_core::{network::NetworkRule, port::BoxFuture, step::Step};
    use orangery_proposal::{ClusterRef, SecretContent, deployer::ApiResource};

    use super::*;
    use crate::watch::NamespacedName;

    fn pool() -> ClusterPool {
        ClusterPool::new(|_| {})
    }

    fn client() -> Client {
        Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
    }

    fn kubeconfig(server: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        )
    }

    #[tokio::test]
    async fn orc_26_one_kubeconfig_is_one_cluster_and_another_is_another() {
        let pool = pool();
        let all = Arc::default();
        let first = pool.connect(&kubeconfig("http://127.0.0.1:1"), &all, &None).await.unwrap();
        let again = pool.connect(&kubeconfig("http://127.0.0.1:1"), &all, &None).await.unwrap();
        let other = pool.connect(&kubeconfig("http://127.0.0.1:2"), &all, &None).await.unwrap();
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
    }

    #[tokio::test]
    async fn figures_tell_what_there_is_and_name_no_cluster() {
        let pool = pool();
        let all = Arc::default();
        for port in [1, 1, 2] {
            pool.connect(&kubeconfig(&format!("http://127.0.0.1:{port}")), &all, &None).await.unwrap();
        }
        assert_eq!(pool.figures(), ClusterFigures { kept: 2, servers: 2, ..ClusterFigures::default() });
    }

    #[tokio::test]
    async fn c_102_one_kubeconfig_is_another_cluster_under_another_allowance() {
        let (pool, kubeconfig) = (pool(), kubeconfig("http://127.0.0.1:1"));
        let rule = |line: &str| NetworkRule { networks: Vec::new(), servers: Vec::new(), line: line.to_owned() };
        let networks = |line: &str| Arc::new(AllowedNetworks { rules: vec![rule(line)] });
        let all = pool.connect(&kubeconfig, &Arc::default(), &None).await.unwrap();
        let first = pool.connect(&kubeconfig, &networks("line a"), &None).await.unwrap();
        let again = pool.connect(&kubeconfig, &networks("line a"), &None).await.unwrap();
        let other = pool.connect(&kubeconfig, &networks("line b"), &None).await.unwrap();
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&all, &first) && !Arc::ptr_eq(&first, &other));
        assert!(!first.is_same(&all) && !first.is_same(&other));
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_refused_makes_no_cluster() {
        assert_eq!(
            pool().connect("no kubeconfig", &Arc::default(), &None).await.err(),
            Some(KubeconfigError::Unreadable)
        );
    }

    #[tokio::test]
    async fn a_client_is_adopted_once_under_its_name() {
        let pool = pool();
        let (first, again, other) =
            (pool.adopt("host", &client()), pool.adopt("host", &client()), pool.adopt("b", &client()));
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
        assert_eq!((first.address(), other.address()), ("host", "b"));
    }

    /// Nothing is connected to.
    struct Nowhere;

    impl Connections for Nowhere {
        fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
            unreachable!("no cluster is asked for")
        }

        fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
            unreachable!("no content is asked for")
        }
    }

    #[tokio::test]
    async fn c_102_watching_waiters_of_a_namespace_are_woken() {
        let woken = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&woken);
        let pool = ClusterPool::new(move |waiter: &Waiter| seen.lock().unwrap().push(waiter.name.to_string()));
        let (cluster, api_version) = (pool.adopt("host", &client()), "v1".into());
        let resource = ApiResource { api_version, kind: "K".into(), plural: "ks".to_owned(), namespaced: true };
        let waiter = |namespace: &str, name: &str| Waiter {
            kind: "DeployItem".into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        for (namespace, name) in [("a", "waits"), ("a", "released"), ("b", "elsewhere")] {
            let set = pool.set(Arc::new(Nowhere), waiter(namespace, name));
            set.watch(&cluster, &resource, &NamespacedName { namespace: Some("n".into()), name: "x".into() });
            set.keep_waiting();
        }
        pool.release(&waiter("a", "released"));
        pool.wake_all(&"a".into());
        assert_eq!(*woken.lock().unwrap(), ["waits"]);
    }

    #[tokio::test]
    async fn the_cluster_that_was_not_asked_for_longest_leaves_a_full_pool() {
        let (pool, client) = (pool(), client());
        let first = pool.adopt("0", &client);
        let second = pool.adopt("1", &client);
        for number in 2..KEPT {
            pool.adopt(&number.to_string(), &client);
        }
        assert!(Arc::ptr_eq(&first, &pool.adopt("0", &client)), "it is asked for again");
        pool.adopt("one more", &client);
        assert!(Arc::ptr_eq(&first, &pool.adopt("0", &client)));
        assert!(!Arc::ptr_eq(&second, &pool.adopt("1", &client)), "it has left");
    }
}
