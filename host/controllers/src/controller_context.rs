//! What every controller is given: the client, the stores, the components, the clock and the randomness.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use orangery_api::deploy_item::DeployItem;
use orangery_blueprint::plugins::Plugins;
use orangery_cluster::Waiter;
use orangery_core::{
    name::Namespace,
    port::{Clock, Rng},
};
use orangery_ocm::ComponentVersions;
use orangery_policy::Profile;
use orangery_proposal::deployer::{Deployer, PluginIdentity};
use orangery_reconcile::{EventRecorder, Key, LeaseDeadline, Store, Watched, Writer};
use orangery_render::MOST_ANSWERED_BYTES;
use orangery_turns::{Computations, SharedBytes, Turns};

use crate::{
    account_tokens::{OwnAddress, Tokens},
    acting_account::ActingAccounts,
    cache_memory::CacheMemory,
    call_records::{AskedRecordings, CallRecords, ReadNamespaces, Recordings},
    candidates::Candidates,
    changed_answers::ChangedAnswers,
    corrected_items::CorrectedItems,
    host_cluster::HostCluster,
    job_deployers::JobDeployers,
    job_histories::JobHistories,
    job_writes::JobWrites,
    kept_credentials::KnownCredentials,
    namespace_policy::NamespacePolicies,
    planned_ahead::PlannedAhead,
    seal::NewestSeals,
    secret_values::SecretValues,
    seed::HostKey,
    served_types::ServedTypes,
    stores::{StoredKind, Stores},
};

/// What every controller is given.
pub struct ControllerContext {
    /// The cluster that holds our objects.
    pub client: Client,
    /// What is known of it.
    pub stores: Stores,
    /// The components.
    pub plugins: Arc<dyn Plugins>,
    /// Component versions.
    pub components: Arc<dyn ComponentVersions>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The randomness.
    pub rng: Arc<dyn Rng>,
    /// What the randomness of templates and the seals of the host's state are derived from.
    pub key: HostKey,
    /// Publishes events.
    pub recorder: EventRecorder,
    /// How long an item waits for an external deployer to begin; `None` for ever.
    pub pick_up_timeout: Option<Duration>,
    /// How many deploy items of components may be under way at once; `None` for any number (WF-15).
    pub max_parallel: Option<NonZeroU32>,
    /// What the objects of a namespace may do.
    pub policies: NamespacePolicies,
    /// Whether what is in use is guarded against deletion.
    pub guards: bool,
    /// How the cluster of the client is reached; `None` where only this process can.
    pub own_address: Option<OwnAddress>,
    /// As whom the operator acts on the cluster of the client for a namespace.
    pub accounts: ActingAccounts,
    /// Until when anything may be written, on any cluster; `None` for ever (C-34).
    pub term: Option<LeaseDeadline>,
    /// Where what others wrote is decoded, checked and evaluated: it holds up nobody but its namespace (C-45).
    pub computations: Computations,
    /// Whose turn it is to keep imports in memory that take much of it (C-99).
    pub large_imports: Arc<Turns>,
    /// Whose turn it is to read objects that others name from the cluster of the client, of which there may be thousands (C-293).
    pub(crate) named_reads: Arc<Turns>,
    /// The memory of what executions of blueprints answer (C-324).
    pub rendered: Arc<SharedBytes>,
    /// The memory of credentials that were issued for running jobs (C-286).
    pub(crate) issued: Arc<SharedBytes>,
    /// What is secret, and shown nowhere.
    pub secrets: SecretValues,
    /// Where calls of deployers are kept; `None` where they are not (C-340).
    pub recordings: Option<Recordings>,
    /// What asks for that, beside the flags.
    pub(crate) asked_recordings: AskedRecordings,
    /// The memory of what is noted of calls that are recorded or compared (C-340).
    pub(crate) noted: Arc<SharedBytes>,
    /// The namespaces whose Secrets were read for what is recorded or compared.
    pub(crate) read_namespaces: ReadNamespaces,
    /// Components that are called beside those in use (C-344).
    pub(crate) candidates: Candidates,
    /// Which jobs are on record (C-331).
    pub job_histories: JobHistories,
    /// What its caches may take.
    pub memory: CacheMemory,
    /// Tokens for targets that name a service account.
    pub(crate) tokens: Tokens,
    /// What gate expressions answer otherwise than in the last job.
    pub(crate) changed_answers: ChangedAnswers,
    /// Which credentials of clusters are kept.
    pub(crate) kept_credentials: KnownCredentials,
    /// Which state of an item is the newest that this process has seen.
    pub(crate) newest_seals: NewestSeals,
    /// Of which items drift is being written.
    pub(crate) corrected_items: CorrectedItems,
    /// Which items have Plans that were made before it was their turn.
    pub(crate) planned_ahead: PlannedAhead,
    /// What jobs write with all their items, where rules are over that.
    pub(crate) job_writes: JobWrites,
    /// Which cluster that of the client is.
    pub(crate) host_cluster: HostCluster,
    /// With which component the jobs of items began.
    pub(crate) job_deployers: JobDeployers,
    /// Which types are served by another component than before.
    pub(crate) served_types: ServedTypes,
}

/// How long an item waits for an external deployer unless told otherwise, as in the code of Landscaper.
pub const PICK_UP_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Installations that keep large imports in memory at once, of two namespaces: what is rendered from imports takes a few times
/// as much as they do.
const MOST_LARGE_IMPORTS: usize = 2;

/// So many calls at once read what others name from the cluster of the client, one object after another: a namespace may have hundreds of
/// calls under way that each name thousands.
const MOST_NAMED_READS: usize = 16;

/// The most bytes of memory that credentials take which were issued for running jobs and are kept; a namespace has half of it. Those
/// beyond are issued again when they are asked for (C-286).
const MOST_ISSUED_BYTES: u64 = 16 << 20;

/// The most bytes of memory that is taken by what calls have read that are recorded or compared; a namespace has half of it.
const MOST_NOTED_BYTES: u64 = 64 << 20;

/// The most bytes of memory that what executions of blueprints answer takes; a namespace has half of it.
const MOST_RENDERED_BYTES: u64 = 2 * MOST_ANSWERED_BYTES;

impl ControllerContext {
    /// Where the call of a component for a namespace that begins now is kept; `None` where nobody wants it.
    pub(crate) fn call_records(
        &self,
        component: &PluginIdentity,
        namespace: &Namespace,
    ) -> Option<Arc<dyn CallRecords>> {
        let records = &self.recordings.as_ref()?.records;
        let one_in = self.policies.of(namespace).ok().and_then(|policy| policy.recorded_one_in());
        let is_asked = self.asked_recordings.samples(component, namespace, one_in);
        // Both count it.
        (records.samples() || is_asked).then(|| Arc::clone(records))
    }

    /// A context over a client and its stores, which have the indexes of all kinds.
    pub fn new(
        (client, stores): (Client, Stores),
        plugins: Arc<dyn Plugins>,
        components: Arc<dyn ComponentVersions>,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        key: HostKey,
    ) -> Self {
        let recorder = EventRecorder::new(client.clone(), "orangery");
        let secrets = SecretValues::default();
        secrets.follow(&stores, key.encryption());
        let (served_types, job_deployers) = (ServedTypes::of(&stores), JobDeployers::of(&stores));
        Self {
            client,
            stores,
            plugins,
            components,
            clock,
            rng,
            key,
            recorder,
            pick_up_timeout: Some(PICK_UP_TIMEOUT),
            max_parallel: None,
            policies: NamespacePolicies::new(Profile::Compatible),
            guards: true,
            own_address: None,
            accounts: ActingAccounts::default(),
            term: None,
            computations: Computations::default(),
            large_imports: Turns::new(MOST_LARGE_IMPORTS),
            named_reads: Turns::new(MOST_NAMED_READS),
            rendered: SharedBytes::new(MOST_RENDERED_BYTES),
            issued: SharedBytes::new(MOST_ISSUED_BYTES),
            secrets,
            recordings: None,
            asked_recordings: AskedRecordings::default(),
            noted: SharedBytes::new(MOST_NOTED_BYTES),
            read_namespaces: ReadNamespaces::default(),
            candidates: Candidates::default(),
            job_histories: JobHistories::default(),
            memory: CacheMemory::default(),
            tokens: Tokens::default(),
            changed_answers: ChangedAnswers::default(),
            kept_credentials: KnownCredentials::default(),
            newest_seals: NewestSeals::default(),
            corrected_items: CorrectedItems::default(),
            planned_ahead: PlannedAhead::default(),
            job_writes: JobWrites::default(),
            host_cluster: HostCluster::default(),
            job_deployers,
            served_types,
        }
    }

    /// Writes objects of one kind and keeps its store in step.
    pub(crate) fn writer<K: Watched>(&self, store: &Store<K>) -> Writer<K> {
        Writer::new(self.client.clone(), store.clone())
    }

    /// The item of this uid is gone.
    pub(crate) fn forget_item(&self, uid: &str) {
        self.newest_seals.forget(uid);
        self.job_histories.forget(uid);
    }

    /// Whether this process may still write; its client refuses writes by itself, those of targets ask here (C-24).
    pub(crate) fn may_write(&self) -> bool {
        self.term.as_ref().is_none_or(LeaseDeadline::lasts)
    }

    /// The component that claims an item now; `None` where it belongs to an external deployer.
    pub fn deployer_of(&self, item: &DeployItem) -> Option<Arc<dyn Deployer>> {
        self.plugins.deployer(&item.spec.type_, &Key::of(item).namespace)
    }

    /// Others serve these types from now on: whoever waits for a component of one is called.
    pub fn tell_served(&self, types: &BTreeSet<String>) {
        self.served_types.tell(types);
    }

    /// Plugins are for another operator.
    pub fn without_plugins(&self) {
        self.served_types.mark_known();
    }

    /// Waits until the types of all Plugins are claimed. Needs [`keep_plugins`](crate::keep_plugins).
    pub async fn plugins_known(&self) {
        self.served_types.known().await;
    }

    /// Now, with the precision that objects keep.
    pub(crate) fn now(&self) -> Time {
        let now = self.clock.now();
        Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now))
    }
}

/// An object that waits on clusters or by the names of objects.
pub(crate) fn waiter(kind: StoredKind, key: &Key) -> Waiter {
    Waiter { kind: kind.name().into(), namespace: key.namespace.clone(), name: key.name.clone() }
}

#[cfg(test)]
pub(crate) mod tests;
