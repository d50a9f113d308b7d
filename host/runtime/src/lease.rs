//! One active operator: a Lease on the cluster, and the fence that every write passes (C-24, C-34).
//!
//! The holder renews the Lease. Whoever waits for it watches it, and takes it when it was not renewed for its whole
//! duration, as seen from here: clocks of different machines are never compared. The holder stops writing after two thirds of
//! the duration without a renewal, also when it was frozen and does not know yet that another has begun.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use orangery_api::annotation::OPERATOR_LEASE;
use orangery_core::{
    name::{Namespace, ObjectName},
    port::Clock,
};
use orangery_reconcile::LeaseDeadline;
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};

mod fence;

pub use fence::{Fence, Fenced};

/// Which Lease, and who asks for it.
#[derive(Clone)]
pub struct LeaseConfig {
    /// The cluster, by a client without a [`Fence`]: a renewal is a write.
    pub client: Client,
    /// The operator's own namespace.
    pub namespace: Namespace,
    /// The name of the Lease.
    pub name: ObjectName,
    /// The name of this process; no two processes have the same.
    pub holder: String,
    /// What the names of those begin with whose place this process has taken, and which have ended: those of its container before
    /// it was started again (C-233).
    pub before: Option<String>,
    /// How long a Lease lasts that nobody renews. Whole seconds.
    pub duration: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Why there is no Lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It cannot be read or written.
    #[error(
        "Lease {namespace}/{name}, by which one operator at a time is active, cannot be used: {why}; let the operator get, \
         list, watch, create and update Leases in its namespace"
    )]
    Unusable {
        /// The operator's namespace.
        namespace: Namespace,
        /// The name of the Lease.
        name: ObjectName,
        /// What the server says.
        why: String,
    },
    /// The server does not answer.
    #[error(
        "Lease {namespace}/{name}, by which one operator at a time is active, cannot be read or written: the API server does not \
         answer: {why}; this operator stops, and is to be started again"
    )]
    Unanswered {
        /// The operator's namespace.
        namespace: Namespace,
        /// The name of the Lease.
        name: ObjectName,
        /// What went wrong.
        why: String,
    },
    /// Another has it.
    #[error("Lease {name} is held by {by} now; this operator stops, what it has begun is done by the other")]
    Taken {
        /// The name of the Lease.
        name: String,
        /// The holder.
        by: String,
    },
    /// It was not renewed in time.
    #[error("Lease {name} could not be renewed for {limit:?}, so another operator may begin; this one stops: {why}")]
    Expired {
        /// The name of the Lease.
        name: String,
        /// How long the server was tried.
        limit: Duration,
        /// What went wrong at last.
        why: String,
    },
}

/// A Lease that this process holds and renews, until it is lost, released, or dropped.
pub struct HeldLease {
    lease: Arc<LeaseRequest>,
    since: Option<Timestamp>,
    renewal: JoinHandle<LeaseError>,
}

/// A Lease that was got.
#[derive(Clone, Debug)]
pub struct NamedLease {
    /// The operator's own namespace.
    pub namespace: Namespace,
    /// The name of the Lease.
    pub name: ObjectName,
    /// When it was got, by the clock of the API server; `None` where that does not say so.
    pub since: Option<Timestamp>,
}

/// What to do about a Lease that is seen.
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    /// It is free.
    Take,
    /// Somebody has it, and keeps it for so long unless it is renewed.
    Wait(Duration),
}

/// What is known of a Lease by whoever waits for it.
#[derive(Debug)]
struct SeenLease {
    /// As it is now; `None` where there is none.
    now: Option<Lease>,
    /// As somebody held it last, and since when it was so; `None` where nobody did, or he gave it back.
    held: Option<(Lease, Instant)>,
}

impl SeenLease {
    fn new(now: Option<Lease>) -> Self {
        let held = now.clone().filter(is_held).map(|lease| (lease, Instant::now()));
        Self { now, held }
    }

    /// Takes in how it is from now on. A Lease that vanishes, or is free as it was before somebody held it, as after a restore of the
    /// cluster's storage, is not given back: its holder may write as long as it lasts (C-124).
    fn see(&mut self, now: Option<Lease>) {
        let gives_back = match (&now, &self.held) {
            (Some(now), Some((held, _))) => now.metadata.uid == held.metadata.uid && renewed(now) >= renewed(held),
            (Some(_) | None, None) => true,
            (None, Some(_)) => false,
        };
        if now.as_ref().is_some_and(is_held) {
            self.held = now.clone().map(|lease| (lease, Instant::now()));
        } else if gives_back {
            self.held = None;
        }
        self.now = now;
    }

    /// What may be done now; what was held by one whose name begins with `before` is free, as that one has ended.
    fn claim(&self, before: Option<&str>) -> Claim {
        match &self.held {
            Some((held, _)) if before.is_some_and(|before| holder(held).is_some_and(|by| by.starts_with(before))) => {
                Claim::Take
            }
            Some((held, since)) => claim(held.spec.as_ref(), since.elapsed()),
            None => Claim::Take,
        }
    }

    fn holder(&self) -> Option<&str> {
        holder(&self.held.as_ref()?.0)
    }
}

/// The holder of a Lease.
fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn is_held(lease: &Lease) -> bool {
    holder(lease).is_some()
}

/// When it was written last, by the clock of the API server.
fn written(lease: &Lease) -> Option<Timestamp> {
    let fields = lease.metadata.managed_fields.iter().flatten();
    fields.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

fn renewed(lease: &Lease) -> Option<&MicroTime> {
    lease.spec.as_ref()?.renew_time.as_ref()
}

/// The share of the duration after which a holder that could not renew stops writing.
const WRITING: (u32, u32) = (2, 3);

/// A Lease as it was seen, unchanged for some time.
fn claim(spec: Option<&LeaseSpec>, unchanged: Duration) -> Claim {
    let held = spec.filter(|spec| spec.holder_identity.as_deref().is_some_and(|holder| !holder.is_empty()));
    let Some(held) = held else { return Claim::Take };
    let seconds = held.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
    match Duration::from_secs(seconds).checked_sub(unchanged) {
        Some(left) if !left.is_zero() => Claim::Wait(left),
        Some(_) | None => Claim::Take,
    }
}

/// The Lease of a new holder, or of the same one, renewed.
fn claimed(before: Option<&Lease>, config: &LeaseConfig, now: Timestamp) -> Lease {
    let spec = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
    let is_same = spec.holder_identity.as_deref() == Some(&config.holder);
    let mut metadata = before.map_or_else(
        || ObjectMeta { name: Some(config.name.to_string()), ..ObjectMeta::default() },
        |lease| lease.metadata.clone(),
    );
    metadata.labels.get_or_insert_default().insert(OPERATOR_LEASE.to_owned(), "true".to_owned());
    let another = i32::from(before.is_some() && !is_same);
    let transitions = spec.lease_transitions.unwrap_or_default().saturating_add(another);
    let seconds = i32::try_from(config.duration.as_secs()).unwrap_or(i32::MAX);
    Lease {
        metadata,
        spec: Some(LeaseSpec {
            acquire_time: if is_same { spec.acquire_time } else { Some(MicroTime(now)) },
            holder_identity: Some(config.holder.clone()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(transitions),
            renew_time: Some(MicroTime(now)),
            ..spec
        }),
    }
}

struct LeaseRequest {
    config: LeaseConfig,
    api: Api<Lease>,
    deadline: LeaseDeadline,
}

/// Waits until the Lease is free, and takes it; `wait` is told who has it, each time that this changes.
///
/// # Errors
/// [`LeaseError::Unusable`]
pub async fn acquire(config: LeaseConfig, mut wait: impl FnMut(&str)) -> Result<HeldLease, LeaseError> {
    let api = Api::namespaced(config.client.clone(), &config.namespace);
    let deadline = LeaseDeadline::new(Arc::clone(&config.clock));
    let lease = Arc::new(LeaseRequest { config, api, deadline });
    // A watch tries for ever where reading is not allowed; this says so.
    let mut seen = SeenLease::new(lease.api.get_opt(&lease.config.name).await.map_err(|error| lease.unusable(&error))?);
    let mut events = watcher::watch_object(lease.api.clone(), &lease.config.name).default_backoff().boxed();
    let mut message = String::new();
    loop {
        let until = match seen.claim(lease.config.before.as_deref()) {
            Claim::Take => match lease.take(seen.now.as_ref()).await? {
                Some(held) => {
                    drop(events);
                    let since = written(&held);
                    let renewal = tokio::spawn(Arc::clone(&lease).renew(held));
                    return Ok(HeldLease { lease, since, renewal });
                }
                // Another was faster; the watch tells who.
                None => Instant::now() + lease.config.duration,
            },
            Claim::Wait(left) => Instant::now() + left,
        };
        if let Some(holder) = seen.holder().filter(|holder| *holder != message) {
            wait(holder);
            message = holder.to_owned();
        }
        match timeout_at(until, events.try_next()).await {
            Ok(Ok(Some(now))) if now != seen.now => seen.see(now),
            // The same once more, a watch that begins anew, or time that has passed.
            Ok(_) | Err(_) => {}
        }
    }
}

impl LeaseRequest {
    fn unusable(&self, error: &kube::Error) -> LeaseError {
        let (namespace, name) = (self.config.namespace.clone(), self.config.name.clone());
        let why = error.to_string();
        match error {
            kube::Error::Api(status) if (400..500).contains(&status.code) && !matches!(status.code, 408 | 429) => {
                LeaseError::Unusable { namespace, name, why }
            }
            _ => LeaseError::Unanswered { namespace, name, why },
        }
    }

    /// `None` where another was faster.
    async fn take(&self, seen: Option<&Lease>) -> Result<Option<Lease>, LeaseError> {
        let began = self.deadline.now();
        let mine = claimed(seen, &self.config, self.config.clock.now());
        let parameters = PostParams::default();
        let taken = match seen {
            None => self.api.create(&parameters, &mine).await,
            Some(_) => self.api.replace(&self.config.name, &parameters, &mine).await,
        };
        match taken {
            Ok(lease) => {
                self.deadline.extend(began, self.writing());
                Ok(Some(lease))
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    fn writing(&self) -> Duration {
        self.config.duration * WRITING.0 / WRITING.1
    }

    /// Renews the Lease until it is lost.
    async fn renew(self: Arc<Self>, mut held: Lease) -> LeaseError {
        let (name, duration) = (self.config.name.clone(), self.config.duration);
        let mut ticks = interval(duration / 3);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            while let Err(why) = self.renew_once(&mut held).await {
                if let Some(by) = self.other(&held) {
                    self.deadline.end();
                    return LeaseError::Taken { name: name.into(), by };
                }
                if !self.deadline.lasts() {
                    return LeaseError::Expired { name: name.into(), limit: self.writing(), why };
                }
                sleep(duration / 15).await;
            }
        }
    }

    async fn renew_once(&self, held: &mut Lease) -> Result<(), String> {
        let began = self.deadline.now();
        let mine = claimed(Some(held), &self.config, self.config.clock.now());
        let parameters = PostParams::default();
        let patience = self.config.duration / 6;
        match timeout(patience, self.api.replace(&self.config.name, &parameters, &mine)).await {
            Ok(Ok(lease)) => {
                *held = lease;
                self.deadline.extend(began, self.writing());
                Ok(())
            }
            Ok(Err(error)) => {
                match timeout(patience, self.api.get_opt(&self.config.name)).await {
                    // Somebody wrote to it: who holds it is what counts.
                    Ok(Ok(Some(lease))) => *held = lease,
                    // Somebody deleted it, or the cluster is as it was before there was one.
                    Ok(Ok(None)) => return self.make_anew(held).await,
                    Ok(Err(_)) | Err(_) => {}
                }
                Err(error.to_string())
            }
            Err(_) => Err(format!("no answer within {patience:?}")),
        }
    }

    /// Makes a Lease anew that has vanished, unless another is faster: those who wait for it wait as long as it would have lasted.
    async fn make_anew(&self, held: &mut Lease) -> Result<(), String> {
        let began = self.deadline.now();
        if !self.deadline.lasts() {
            return Err("it has vanished".to_owned());
        }
        let mine = claimed(None, &self.config, self.config.clock.now());
        let patience = self.config.duration / 6;
        match timeout(patience, self.api.create(&PostParams::default(), &mine)).await {
            Ok(Ok(lease)) => {
                *held = lease;
                self.deadline.extend(began, self.writing());
                Ok(())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {patience:?}")),
        }
    }

    /// The holder, if that is another process.
    fn other(&self, lease: &Lease) -> Option<String> {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
        (holder != self.config.holder).then(|| if holder.is_empty() { "nobody".to_owned() } else { holder })
    }
}

impl HeldLease {
    /// Until when this process may write.
    pub fn deadline(&self) -> &LeaseDeadline {
        &self.lease.deadline
    }

    /// Which one it is.
    pub fn named(&self) -> NamedLease {
        let LeaseConfig { namespace, name, .. } = &self.lease.config;
        NamedLease { namespace: namespace.clone(), name: name.clone(), since: self.since }
    }

    /// Waits until it is lost.
    pub async fn lost(&mut self) -> LeaseError {
        match (&mut self.renewal).await {
            Ok(why) => why,
            Err(error) => {
                self.lease.deadline.end();
                let (name, limit) = (self.lease.config.name.clone(), self.lease.writing());
                LeaseError::Expired { name: name.into(), limit, why: error.to_string() }
            }
        }
    }

    /// Gives it back, so that the next operator can begin at once. Where that fails, the next one waits.
    pub async fn release(self) {
        self.renewal.abort();
        self.lease.deadline.end();
        let config = &self.lease.config;
        let given_back = async {
            let mut lease = self.lease.api.get(&config.name).await?;
            if self.lease.other(&lease).is_none() {
                if let Some(spec) = &mut lease.spec {
                    spec.holder_identity = None;
                }
                self.lease.api.replace(&config.name, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        if let Ok(Err(error)) = timeout(config.duration / 3, given_back).await {
            tracing::warn!(%error, "the lease is not given back; the next operator waits until it ends");
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

#[cfg(test)]
mod tests;
