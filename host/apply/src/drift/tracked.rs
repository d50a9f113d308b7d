//! The manifest of one item that is watched: for each object of it what was written, packed, and whether the cluster still has it
//! so. Feeds of clusters tell what changes; nothing here asks anybody.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use orangery_cluster::{FeedEvent, FeedHandle, NamespacedName};
use orangery_core::{
    automatic::Schedule,
    error::{Code, Failure},
    name::{ApiVersion, Kind, Namespace},
    port::Clock,
    step::{Halt, Step},
};
use orangery_proposal::{
    ClusterRef, ObjectKey, ObjectWrite, drift_rules::DriftRules, inventory::LocatedObject, overlay::Ignored,
};
use serde_json::Value;

use super::{
    DriftFinding,
    known::{DriftComparison, DriftedSince, KnownDrift},
    packed::WrittenObject,
    versions::Told,
};
use crate::{ClusterIdentity, Job, Owner, ReachedCluster, Sameness};

/// The manifest of one item that is watched.
pub struct TrackedManifest {
    rules: DriftRules,
    owner: Owner,
    labels: Vec<String>,
    /// The clusters that were written to.
    clusters: BTreeMap<ClusterRef, ClusterIdentity>,
    clock: Arc<dyn Clock>,
    /// Called when there is something to tell or to do.
    wake: Arc<dyn Fn() + Send + Sync>,
    /// The memory that the packed objects took at first, in bytes.
    bytes: u64,
    /// Protects what is known. Held for one look or one change, and not while an object is compared.
    known: Mutex<KnownDrift>,
    /// Protects the feeds that are held. Held to add one.
    feeds: Mutex<Vec<FeedHandle>>,
}

/// The objects that one feed tells of.
pub(super) struct FedKind {
    /// Of the feed, within the manifest.
    pub(super) number: usize,
    pub(super) on: ClusterRef,
    /// As the manifest names it.
    pub(super) api_version: ApiVersion,
    pub(super) kind: Kind,
    pub(super) namespace: Option<Namespace>,
}

impl FedKind {
    pub(super) fn located(&self, NamespacedName { namespace, name }: &NamespacedName) -> LocatedObject {
        let (api_version, kind) = (self.api_version.clone(), self.kind.clone());
        let key = ObjectKey { api_version, kind, namespace: namespace.clone(), name: name.clone() };
        LocatedObject { on: self.on.clone(), key }
    }

    fn has(&self, LocatedObject { on, key }: &LocatedObject) -> bool {
        *on == self.on
            && key.kind == self.kind
            && key.group() == self.api_version.group()
            && (self.namespace.is_none() || key.namespace == self.namespace)
    }
}

impl TrackedManifest {
    /// For the objects of a manifest, of which nothing is known yet, each with the uid of what was written. `clusters` are
    /// those that were written to; `wake` must not block.
    pub fn new(
        rules: DriftRules,
        (owner, labels): (&Owner, &[String]),
        (clock, wake): (&Arc<dyn Clock>, Arc<dyn Fn() + Send + Sync>),
        clusters: BTreeMap<ClusterRef, ClusterIdentity>,
        objects: Vec<(LocatedObject, ObjectWrite, Option<String>)>,
    ) -> Self {
        let packed = objects
            .into_iter()
            .map(|(located, write, uid)| (located, WrittenObject { write, uid, baseline: None }.pack()));
        let known = KnownDrift::of(packed);
        let bytes = known.bytes();
        Self {
            rules,
            owner: owner.clone(),
            labels: labels.to_vec(),
            clusters,
            clock: Arc::clone(clock),
            wake,
            bytes,
            known: Mutex::new(known),
            feeds: Mutex::default(),
        }
    }

    /// # Errors
    /// A stall where a cluster is another one than the job wrote to (C-35), or that it cannot be asked.
    pub(super) async fn check_clusters(&self, job: &Job<'_>) -> Step<()> {
        let stall = |message: String| {
            Halt::Stall(Failure::new("Drift", "OtherCluster", message).with_code(Code::ConfigurationProblem))
        };
        for (on, before) in &self.clusters {
            let now = ReachedCluster::of(&*job.clusters.cluster(on).await?).await?;
            let why = match (before.against(&now), before) {
                (Sameness::Same, _) => continue,
                (Sameness::Other(_), _) => format!("{on} is another cluster than the one that the last job wrote to"),
                (Sameness::Unknown, ClusterIdentity::Uid(_)) => format!(
                    "whether {on} is the cluster that the last job wrote to cannot be told: its credentials may not get the \
                     Namespace kube-system any more; let them"
                ),
                (Sameness::Unknown, ClusterIdentity::Address(server)) => {
                    format!("{on} is {} now, and the last job wrote to {server}; the next job looks at it", now.address)
                }
            };
            return Err(stall(why));
        }
        Ok(())
    }

    /// All objects.
    pub(super) fn objects(&self) -> Vec<LocatedObject> {
        self.known().objects().cloned().collect()
    }

    /// Holds a feed as long as the item is watched.
    pub(super) fn keep_feed(&self, feed: FeedHandle) {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner).push(feed);
    }

    /// Takes in what a feed tells.
    pub(super) fn observe(&self, of: &FedKind, event: FeedEvent<'_>) {
        match event {
            FeedEvent::ListBegins => self.known().written.retain(|located| !of.has(located)),
            FeedEvent::Listed(place, live) => self.take(&of.located(place), Told::Listed(live)),
            FeedEvent::Is(place, live) => self.take(&of.located(place), Told::Is(live)),
            FeedEvent::Gone(place, version) => self.take(&of.located(place), Told::Gone(version)),
            FeedEvent::Unlisted(place) => self.take(&of.located(place), Told::Unlisted),
            FeedEvent::ListEnds => {
                if self.known().troubles.remove(&of.number).is_some() {
                    (self.wake)();
                }
            }
            FeedEvent::Failed(why) => {
                let trouble = format!("{} objects of {} cannot be watched: {why}", of.kind, of.on);
                self.known().troubles.insert(of.number, trouble);
                (self.wake)();
            }
        }
    }

    /// Takes in what is told of an object.
    pub(super) fn take(&self, located: &LocatedObject, told: Told<'_>) {
        let begun = self.begin(located, told);
        if begun.is_some_and(|begun| self.end(located, &begun)) {
            (self.wake)();
        }
    }

    /// What has to be compared, where what is told of an object is news.
    pub(super) fn begin<'t>(&self, located: &LocatedObject, told: Told<'t>) -> Option<DriftComparison<'t>> {
        self.known().begin(located, told)
    }

    /// Compares, while nobody waits for it, and takes in what is found, unless something newer was told meanwhile. Whether there is
    /// something new to tell or to do.
    pub(super) fn end(&self, located: &LocatedObject, begun: &DriftComparison<'_>) -> bool {
        let found = begun.find((&self.owner, &self.labels), &self.ignored(located));
        found.is_some_and(|found| self.known().put(located, begun, found, &*self.clock))
    }

    /// Bytes of memory that it takes at most to compare an object, beside the live one.
    pub(super) fn bytes_to_compare(&self, located: &LocatedObject) -> u64 {
        self.known().packed(located).map_or(0, |packed| packed.bytes_to_compare)
    }

    /// The version of an object that is known, for [`Self::read`].
    pub(super) fn version(&self, located: &LocatedObject) -> u64 {
        self.known().version(located)
    }

    /// The object was read, which began when the version `before` was known: where a feed has told of it meanwhile, that there
    /// was none is old.
    pub(super) fn read(&self, located: &LocatedObject, before: u64, live: Option<&Value>) {
        if live.is_some() || self.version(located) == before {
            self.take(located, Told::Read(live));
        } else {
            (self.wake)();
        }
    }

    /// What was written of an object.
    pub(super) fn written(&self, located: &LocatedObject) -> Option<WrittenObject> {
        let packed = self.known().packed(located).cloned();
        packed.and_then(|packed| packed.unpack())
    }

    /// The server was asked what it makes of a write, which began when the version `before` was known. Where a feed has told of
    /// the object meanwhile, it is asked once more: what it answered is of an older one.
    pub(super) fn asked(
        &self,
        located: &LocatedObject,
        (written, before): (WrittenObject, u64),
        baseline: Value,
        live: &Value,
    ) {
        let packed = WrittenObject { baseline: Some(baseline), ..written }.pack();
        let begun = self.known().asked(located, (packed, before), live);
        match begun {
            Some(begun) => _ = self.end(located, &begun),
            None => (self.wake)(),
        }
    }

    /// The object was written again, and is this now.
    pub(super) fn corrected(&self, located: &LocatedObject, live: &Value, now: Timestamp) {
        let begun = self.known().corrected(located, live, now);
        // Whoever has written it looks at what is known then.
        begun.iter().for_each(|begun| _ = self.end(located, begun));
    }

    /// The object was not written again, until something is told of it; it differed like this.
    pub(super) fn pause(&self, located: &LocatedObject, before: &DriftFinding) {
        let mut known = self.known();
        if known.drifted.get(located).is_some_and(|drifted| drifted.finding == *before) {
            known.paused.insert(located.clone());
        }
    }

    /// The object was not written again, and why.
    pub(super) fn refused(&self, located: &LocatedObject, why: String, now: Timestamp) {
        let mut known = self.known();
        known.count(located, now);
        if let Some(drifted) = known.drifted.get_mut(located) {
            drifted.refused = Some(why);
        }
    }

    /// What differs while the server was not asked yet.
    pub(super) fn unasked(&self) -> Vec<LocatedObject> {
        self.known().unasked.iter().cloned().collect()
    }

    /// Whether something differs while the server was not asked yet.
    pub fn is_unasked(&self) -> bool {
        !self.known().unasked.is_empty()
    }

    /// Whether something is known of every object.
    pub fn is_complete(&self) -> bool {
        let known = self.known();
        known.unseen == 0 && known.unasked.is_empty()
    }

    /// Whether what was known may not hold any more, for a cluster cannot be watched: it is watched anew then, with the
    /// credentials that count by now.
    pub fn is_broken(&self) -> bool {
        let known = self.known();
        !known.troubles.is_empty() && known.unseen == 0
    }

    /// Why a cluster cannot be watched, where something is not known for that.
    pub fn trouble(&self) -> Option<String> {
        let known = self.known();
        known.troubles.values().next().cloned().filter(|_| known.unseen > 0)
    }

    /// What is not as it was written.
    pub fn drifted(&self) -> BTreeMap<LocatedObject, DriftedSince> {
        let known = self.known();
        let with_count = |(located, drifted): (&LocatedObject, &DriftedSince)| {
            let corrected = known.corrections.get(located).map_or(0, |corrections| corrections.count);
            (located.clone(), DriftedSince { corrected, ..drifted.clone() })
        };
        known.drifted.iter().map(with_count).collect()
    }

    /// The memory that the packed objects took at first, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is to be written again now, and when the next of the others is: what is missing or different, at the times of
    /// the schedule where there is one, whose intervals follow each other from a begin on, and not too often.
    pub fn due(
        &self,
        schedule: Option<(&Schedule, Timestamp)>,
        now: Timestamp,
    ) -> (Vec<LocatedObject>, Option<Timestamp>) {
        let mut known = self.known();
        known.pause_compared();
        let (mut due, mut next) = (Vec::new(), None);
        for (located, drifted) in &known.drifted {
            let is_ours = matches!(drifted.finding, DriftFinding::Missing | DriftFinding::Different(_));
            if !is_ours || known.paused.contains(located) {
                continue;
            }
            let scheduled = match schedule {
                Some((schedule, begin)) => schedule.after_begin(begin, drifted.since),
                None => Some(drifted.since),
            };
            let Some(scheduled) = scheduled else { continue };
            let paced = known.corrections.get(located).map(|corrections| corrections.next());
            let at = paced.map_or(scheduled, |paced| paced.max(scheduled));
            if at <= now {
                due.push(located.clone());
            } else {
                next = Some(next.map_or(at, |next: Timestamp| next.min(at)));
            }
        }
        (due, next)
    }

    /// What is no drift of an object.
    pub(super) fn ignored(&self, located: &LocatedObject) -> Ignored {
        self.rules.ignored(&located.key)
    }

    fn known(&self) -> MutexGuard<'_, KnownDrift> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
