//! The operator: stores, watches and controllers, made and joined.

use std::{
    collections::BTreeSet,
    future::Future,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use kube::Client;
use orangery_api::{annotation::GUARD, context::Context, target::Target};
use orangery_blueprint::plugins::Plugins;
use orangery_cluster::{ClusterFigures, ClusterPool};
use orangery_controllers::{
    ActingAccounts, CacheMemory, CallRecords, ConfigMapMeta, ControllerContext, GuardController, Guarded, HostKey,
    HostKeyError, JobHistories, NamespaceCalls, NamespacePolicies, OwnAddress, PICK_UP_TIMEOUT, Queues, Recordings,
    SecretMeta, Stores, clusters,
    context::{keep_default_contexts, keep_default_contexts_of},
    deploy_item::{DeployItemController, DriftController},
    execution::ExecutionController,
    installation::InstallationController,
    keep_plugins, stores,
    target_sync::TargetSyncController,
    tell_authors, tell_unreadable, watch_namespace_policies, watch_plans, wire,
};
use orangery_core::{
    name::Namespace,
    port::{Clock, Rng},
};
use orangery_ocm::{ComponentVersions, Unavailable};
use orangery_plugin::MemoryShares;
use orangery_policy::Profile;
use orangery_reconcile::{
    Controller, ControllerOptions, LeaseDeadline, Panicked, Queue, StatusAuthors, Store, UnfinishedCalls, Watched, run,
    watch_labelled,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    crashes::Crashes,
    definitions::{Definitions, DefinitionsError},
    health_check::{self, HealthCheckConfig, keep_health_check},
    journal,
    lease::NamedLease,
    logging,
    machine::{self, OsChance, SystemClock},
};

/// What an operator is made of.
pub struct OperatorConfig {
    /// The cluster that holds our objects.
    pub client: Client,
    /// The components.
    pub plugins: Arc<dyn Plugins>,
    /// Component versions.
    pub components: Arc<dyn ComponentVersions>,
    /// The namespaces looked into; none means all.
    pub namespaces: BTreeSet<Namespace>,
    /// Whether it brings the definitions of its kinds.
    pub definitions: Definitions,
    /// Objects of each kind that are worked on at the same time. Most of the work is waiting for answers.
    pub concurrency: usize,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The randomness.
    pub rng: Arc<dyn Rng>,
    /// How long an item waits for a deployer elsewhere to begin; `None` for ever.
    pub pick_up_timeout: Option<Duration>,
    /// How the cluster is reached, for targets that mean it; `None` where only this process can.
    pub own_address: Option<OwnAddress>,
    /// As whom it acts for a namespace.
    pub accounts: ActingAccounts,
    /// Until when the operator may write, on any cluster; `None` where there cannot be another one.
    pub term: Option<LeaseDeadline>,
    /// The Lease that makes it the only one; `None` where there cannot be another one.
    pub lease: Option<NamedLease>,
    /// Whether what is in use is guarded against deletion.
    pub guards: bool,
    /// What objects may do in namespaces that no policy selects.
    pub default_policy: Profile,
    /// How many deploy items of components may be under way at once; `None` for any number.
    pub max_parallel: Option<NonZeroU32>,
    /// How many jobs of each deploy item are kept on record; `None` where none is (C-331).
    pub job_records: Option<NonZeroUsize>,
    /// Where calls of deployers are kept; `None` where they are not.
    pub records: Option<Arc<dyn CallRecords>>,
    /// What its caches may take.
    pub memory: CacheMemory,
    /// Whose panics it writes down: the name of its pod or machine.
    pub pod: String,
    /// What it writes of its own health; `None` where nobody reads it.
    pub health_check: Option<HealthCheckConfig>,
    /// How long running reconciles may take to end once it is told to stop.
    pub grace: Duration,
    /// The folder that outlives the process, for calls that are under way when it is killed; `None` where nothing does.
    pub journal: Option<PathBuf>,
}

impl OperatorConfig {
    /// The usual one: all namespaces, definitions installed, the machine's clock and randomness.
    pub fn new(client: Client, plugins: Arc<dyn Plugins>) -> Self {
        Self {
            client,
            plugins,
            components: Arc::new(Unavailable),
            namespaces: BTreeSet::new(),
            definitions: Definitions::Install,
            concurrency: 32,
            clock: Arc::new(SystemClock),
            rng: Arc::new(OsChance),
            pick_up_timeout: Some(PICK_UP_TIMEOUT),
            own_address: None,
            accounts: ActingAccounts::default(),
            term: None,
            lease: None,
            guards: true,
            default_policy: Profile::Compatible,
            max_parallel: None,
            job_records: None,
            records: None,
            memory: cache_memory(&MemoryShares::of_machine()),
            pod: machine::name(),
            health_check: None,
            grace: GRACE,
            journal: None,
        }
    }
}

/// What the caches of controllers get of the memory of a machine (C-88).
fn cache_memory(shares: &MemoryShares) -> CacheMemory {
    CacheMemory {
        objects: shares.caches.objects,
        manifests: shares.caches.manifests,
        proposals: shares.caches.proposals,
        secret_values: shares.caches.secret_values,
    }
}

/// Why an operator does not start.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The definitions of our kinds.
    #[error(transparent)]
    Definitions(#[from] DefinitionsError),
    /// The key for the randomness of templates.
    #[error(transparent)]
    Key(#[from] HostKeyError),
}

/// How long running reconciles may take to end once an operator is told to stop for which nobody waits.
const GRACE: Duration = Duration::from_secs(5);

/// A running operator. Dropping it ends everything at once; [`stop`](Self::stop) lets running reconciles end.
pub struct Operator {
    stores: Stores,
    host: Arc<ControllerContext>,
    authors: Option<Arc<StatusAuthors>>,
    queues: Vec<(&'static str, Queue)>,
    /// The clusters that it has connected to.
    clusters: Option<Arc<ClusterPool>>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// How long running reconciles may take to end once it is told to stop.
    grace: Duration,
    /// Where calls are written down.
    unfinished: Option<Arc<UnfinishedCalls>>,
}

impl Operator {
    /// Starts an operator: the definitions first, then watches and controllers, which begin when the first lists are
    /// in.
    ///
    /// # Errors
    /// The definitions of our kinds cannot be installed, or are not there; or the operator cannot keep its key.
    pub async fn start(config: OperatorConfig) -> Result<Self, OperatorError> {
        config.definitions.ensure(&config.client).await?;
        let namespace = Namespace::from(config.client.default_namespace());
        let key = HostKey::ensure(&config.client, &namespace, config.rng.as_ref()).await?;
        let (plugins, components, rng) = (config.plugins, config.components, Arc::clone(&config.rng));
        let (crashes, written) = Crashes::new(config.client.clone(), &config.pod, Arc::clone(&config.clock));
        let mut host = ControllerContext::new((config.client, stores()), plugins, components, config.clock, rng, key);
        host.pick_up_timeout = config.pick_up_timeout;
        host.own_address = config.own_address;
        host.accounts = config.accounts;
        host.term = config.term;
        host.guards = config.guards;
        host.policies = NamespacePolicies::new(config.default_policy);
        host.plugins.limit_calls(NamespaceCalls::new(&host.policies));
        host.max_parallel = config.max_parallel;
        host.job_histories = JobHistories::keeping(config.job_records);
        host.recordings = config.records.map(Recordings::kept_in);
        host.memory = config.memory;
        host.secrets.keep_at_most(config.memory.secret_values);
        logging::hide(&host.secrets);
        let (secrets, host) = (host.secrets.clone(), Arc::new(host));
        let authors = config.lease.map(|lease| tell_authors(&host, (&lease.namespace, &lease.name), lease.since));
        let mut operator = Self {
            stores: host.stores.clone(),
            host: Arc::clone(&host),
            authors,
            queues: Vec::new(),
            clusters: None,
            tasks: JoinSet::new(),
            stop: CancellationToken::new(),
            grace: config.grace,
            unfinished: None,
        };
        let namespaces: Vec<Namespace> = config.namespaces.into_iter().collect();
        operator.watch_all(&host, &namespaces);
        operator.keep_health(config.health_check);
        if namespaces.is_empty() {
            operator.spawn(keep_plugins(Arc::clone(&host)));
        } else {
            // Plugins are of no namespace, and of several operators each would take the guards of the others away.
            host.without_plugins();
        }
        // Ends when the controllers have ended, so the panics of their last calls are written as well.
        operator.tasks.spawn(written);
        let panicked = Arc::new(move |panicked: &Panicked| {
            let message = secrets.masker(&panicked.key.namespace).mask(&panicked.message).into_owned();
            crashes.tell(&Panicked { message, ..panicked.clone() });
        });
        let (concurrency, unfinished) = (config.concurrency, config.journal.as_deref().and_then(journal::open));
        operator.unfinished.clone_from(&unfinished);
        operator.control_all(
            &host,
            &namespaces,
            &ControllerOptions { concurrency, rng: config.rng, panicked, unfinished },
        );
        operator.spawn(async move {
            if namespaces.is_empty() {
                keep_default_contexts(host, BTreeSet::new()).await;
            } else {
                keep_default_contexts_of(host, namespaces).await;
            }
        });
        Ok(operator)
    }

    /// What the operator knows of our kinds.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// How often other operators have written the status of objects beside this one.
    pub fn writes_of_others(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let authors = self.authors.clone();
        move || authors.as_ref().map_or(0, |authors| authors.writes())
    }

    /// Others serve these types from now on: whoever waits for a component of one is called.
    pub fn tell_served(&self, types: &BTreeSet<String>) {
        self.host.tell_served(types);
    }

    /// The figures of the controllers, by name.
    pub fn queues(&self) -> &[(&'static str, Queue)] {
        &self.queues
    }

    /// What there is of clusters, and what was counted of requests to them.
    pub fn cluster_figures(&self) -> impl Fn() -> ClusterFigures + Send + Sync + 'static {
        let clusters = self.clusters.clone();
        move || clusters.as_ref().map(|clusters| clusters.figures()).unwrap_or_default()
    }

    /// Until when it may write; `None` for ever.
    pub fn lease_deadline(&self) -> Option<LeaseDeadline> {
        self.host.term.clone()
    }

    /// What objects of clusters may take of memory, in bytes.
    pub fn object_memory(&self) -> u64 {
        self.host.memory.objects
    }

    /// Bytes of memory that answers of executions of blueprints take, and may take.
    pub fn rendered(&self) -> impl Fn() -> (u64, u64) + Send + Sync + 'static {
        let rendered = Arc::clone(&self.host.rendered);
        move || (rendered.taken(), 2 * rendered.most_of_one())
    }

    /// Waits until the first lists are in: from now on everything that changes is worked on.
    pub async fn ready(&self) {
        tokio::join!(synced(&self.stores), self.host.policies.synced(), self.host.plugins_known());
    }

    /// Starts nothing more, and gives running reconciles some time to end; what is not done by then is done by the next
    /// operator.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let grace = self.grace;
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::warn!("some reconciles did not end in time and are cut off; the next start goes on with them");
        }
    }

    fn watch_all(&mut self, host: &Arc<ControllerContext>, namespaces: &[Namespace]) {
        let Stores {
            installations,
            executions,
            deploy_items,
            targets,
            data_objects,
            contexts,
            secrets,
            config_maps,
            target_syncs,
        } = self.stores.clone();
        self.watch(host, namespaces, installations);
        self.watch(host, namespaces, executions);
        self.watch(host, namespaces, deploy_items);
        self.watch(host, namespaces, targets);
        self.watch(host, namespaces, data_objects);
        self.watch(host, namespaces, contexts);
        self.watch(host, namespaces, target_syncs);
        // Of these two kinds nothing else is of interest.
        self.watch_labelled(host, namespaces, Some(GUARD), secrets);
        self.watch_labelled(host, namespaces, Some(GUARD), config_maps);
        self.spawn(watch_namespace_policies(Arc::clone(host)));
    }

    fn watch<K: Watched>(&mut self, host: &Arc<ControllerContext>, namespaces: &[Namespace], store: Store<K>) {
        self.watch_labelled(host, namespaces, None, store);
    }

    fn watch_labelled<K: Watched>(
        &mut self,
        host: &Arc<ControllerContext>,
        namespaces: &[Namespace],
        label: Option<&'static str>,
        store: Store<K>,
    ) {
        tell_unreadable(host, &store);
        let (client, namespaces, stop) = (host.client.clone(), namespaces.to_vec(), self.stop.clone());
        self.tasks.spawn(async move { watch_labelled(client, &namespaces, label, store, stop).await });
    }

    fn control_all(&mut self, host: &Arc<ControllerContext>, namespaces: &[Namespace], options: &ControllerOptions) {
        let queues = Queues::default();
        let stores = self.stores.clone();
        wire(&stores, &queues);
        let pool = clusters(&queues, host.memory.objects);
        self.clusters = Some(Arc::clone(&pool));
        let controller = InstallationController::new(Arc::clone(host), Arc::clone(&pool), queues.installations.clone());
        self.control(controller, stores.installations, queues.installations.clone(), options);
        let controller = ExecutionController::new(
            Arc::clone(host),
            Arc::clone(&pool),
            queues.executions.clone(),
            queues.installations,
        );
        self.control(controller, stores.executions, queues.executions, options);
        let (of_plans, items) = (namespaces.iter().cloned().collect(), queues.deploy_items.clone());
        let (known, watcher) = (self.stores.clone(), Arc::clone(host));
        self.spawn(async move {
            // Plans are of items that are known.
            synced(&known).await;
            watch_plans(watcher, items, of_plans).await;
        });
        let controller = TargetSyncController::new(Arc::clone(host), Arc::clone(&pool));
        self.control(controller, stores.target_syncs.clone(), queues.target_syncs.clone(), options);
        let controller = DeployItemController::new(Arc::clone(host), Arc::clone(&pool), queues.deploy_items.clone());
        self.control(controller, stores.deploy_items.clone(), queues.deploy_items, options);
        let queue = Queue::default();
        let controller = DriftController::new(Arc::clone(host), pool, queue.clone());
        self.control(controller, stores.deploy_items, queue, options);
        self.guard::<Target>(host, queues.target_guards, options);
        self.guard::<SecretMeta>(host, queues.secret_guards, options);
        self.guard::<Context>(host, queues.context_guards, options);
        self.guard::<ConfigMapMeta>(host, queues.config_map_guards, options);
    }

    fn guard<K: Guarded>(&mut self, host: &Arc<ControllerContext>, queue: Queue, options: &ControllerOptions) {
        let store = K::store(&self.stores).clone();
        self.control(GuardController::<K>::new(Arc::clone(host)), store, queue, options);
    }

    fn control<C: Controller>(
        &mut self,
        controller: C,
        store: Store<C::Object>,
        queue: Queue,
        options: &ControllerOptions,
    ) {
        self.queues.push((C::NAME, queue.clone()));
        let (stop, stores, host) = (self.stop.clone(), self.stores.clone(), Arc::clone(&self.host));
        let running = run(Arc::new(controller), store, queue, options.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            // Before the lists of the other kinds are in, children that are not known yet would pass for gone, and all would be
            // allowed that a policy refuses, and items of Plugins for those of external deployers.
            let known = async { tokio::join!(synced(&stores), host.policies.synced(), host.plugins_known()) };
            if stop.run_until_cancelled(known).await.is_some() {
                running.await;
            }
        });
    }

    fn keep_health(&mut self, config: Option<HealthCheckConfig>) {
        let (client, clock) = (self.host.client.clone(), Arc::clone(&self.host.clock));
        config.into_iter().for_each(|config| {
            self.spawn(keep_health_check(client.clone(), Arc::clone(&clock), config, health_check::EVERY));
        });
    }

    /// Runs something that may be cut off anywhere, until the operator stops.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }
}

impl Drop for Operator {
    /// What is cut off is no reason for the end of the process, however the operator ends: also as its Lease is lost (C-283).
    fn drop(&mut self) {
        self.stop.cancel();
        self.unfinished.iter().for_each(|unfinished| unfinished.stop());
    }
}

/// Waits until the first list of every kind is in.
async fn synced(stores: &Stores) {
    // Only the guards and TargetSyncs need the others.
    let Stores { installations, executions, deploy_items, targets, data_objects, contexts, .. } = stores;
    tokio::join!(
        installations.synced(),
        executions.synced(),
        deploy_items.synced(),
        targets.synced(),
        data_objects.synced(),
        contexts.synced()
    );
}

#[cfg(test)]
mod tests;
