//! A manifest is held against the feeds of its clusters; what differs is asked about, and written again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};

use futures::{StreamExt, future::ready, stream};
use orangery_cluster::{Cluster, Error, FeedEvent, KeptObjects, NamespacedName, Observer, SMALL_COMPARISON};
use orangery_core::{
    error::{Code, Failure},
    name::{ApiVersion, Kind, Namespace},
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{ClusterRef, ObjectWrite, Proposal, deployer::ApiResource, inventory::LocatedObject};
use orangery_turns::off_the_executor;

use super::{
    DriftFinding, asked_baseline, part, read,
    tracked::{FedKind, TrackedManifest},
    write_again,
};
use crate::{Job, executor::AT_ONCE};

/// Objects of a kind in a namespace of a cluster.
type KindIn = (ClusterRef, ApiVersion, Kind, Option<Namespace>);

/// Names the objects of a manifest to the feeds of their clusters. What no list tells any more is read once. A kind is watched in
/// the version that is served of it, where that is another one than its objects were written in.
///
/// # Errors
/// A cluster cannot be asked, or does not serve a kind in any version.
pub async fn watch(job: &Job<'_>, tracked: &Arc<TrackedManifest>) -> Step<()> {
    tracked.check_clusters(job).await?;
    check_sizes(job, tracked).await?;
    let mut unlisted: Vec<LocatedObject> = Vec::new();
    for (number, ((on, api_version, kind, namespace), objects)) in by_kind(tracked.objects()).into_iter().enumerate() {
        let cluster = job.clusters.cluster(&on).await?;
        let resource = served(&cluster, &api_version, &kind).await?;
        let places: BTreeSet<NamespacedName> = objects.iter().map(|located| place(located, &resource)).collect();
        let of = FedKind { number, on, api_version, kind, namespace: namespace.clone() };
        let (what, tracked_by) = ((&*resource, namespace), Arc::downgrade(tracked));
        let observe = Arc::new(ManifestObserver { tracked: tracked_by, of });
        let (feed, is_listed) = job.clusters.follow(&cluster, what, places, observe)?;
        tracked.keep_feed(feed);
        if !is_listed {
            unlisted.extend(objects);
        }
    }
    let reading = unlisted.into_iter().map(|located| async move {
        let before = tracked.version(&located);
        let _room = hold_for_comparison(job, tracked, &located).await?;
        let live = read(job, &located).await?;
        off_the_executor(|| tracked.read(&located, before, live.as_ref().map(|live| &live.object)));
        Ok(())
    });
    all(stream::iter(reading).buffer_unordered(AT_ONCE).collect().await)
}

/// How a kind is served, in another version where that is not.
async fn served(cluster: &Cluster, api_version: &ApiVersion, kind: &Kind) -> Result<Arc<ApiResource>, Error> {
    let unserved = match cluster.served(api_version, kind).await {
        Err(unserved @ Error::NotServed { .. }) => unserved,
        found => return found,
    };
    cluster.served_in_group(api_version.group(), kind).await?.ok_or(unserved)
}

/// What differs from what was written is held against what the server makes of that, once for each object (C-55).
///
/// # Errors
/// A cluster cannot be asked.
pub async fn ask(job: &Job<'_>, tracked: &TrackedManifest) -> Step<()> {
    let asking = tracked.unasked().into_iter().map(|located| async move {
        let before = tracked.version(&located);
        let _room = hold_for_comparison(job, tracked, &located).await?;
        let Some(written) = off_the_executor(|| tracked.written(&located)) else { return Ok(()) };
        match read(job, &located).await? {
            None => tracked.read(&located, before, None),
            Some(live) => {
                let baseline = asked_baseline(job, &located, &written.write, &live.object).await?;
                off_the_executor(|| tracked.asked(&located, (written, before), baseline, &live.object));
            }
        }
        Ok(())
    });
    all(stream::iter(asking).buffer_unordered(AT_ONCE).collect().await)
}

/// What takes more memory to be compared than a namespace gets is not: whoever can change it would have it compared as often.
///
/// # Errors
/// An object does.
async fn check_sizes(job: &Job<'_>, tracked: &TrackedManifest) -> Step<()> {
    for located in tracked.objects() {
        let bytes = tracked.bytes_to_compare(&located);
        if bytes <= SMALL_COMPARISON {
            continue;
        }
        let most = job.clusters.cluster(&located.on).await?.most_objects_of_one();
        if bytes > most {
            let message = format!(
                "what was written of {} takes {bytes} bytes of memory to be compared, and a namespace has {most}; make the object smaller, \
                 or look for no drift of the item",
                located.key
            );
            return Err(Halt::Stall(Failure::new("Drift", "TooLarge", message).with_code(Code::LimitExceeded)));
        }
    }
    Ok(())
}

/// What it takes to compare an object, held of what the objects of all clusters share as long as this lives (C-295).
///
/// # Errors
/// There is no room now.
async fn hold_for_comparison(job: &Job<'_>, tracked: &TrackedManifest, located: &LocatedObject) -> Step<KeptObjects> {
    let (mut room, bytes) = (KeptObjects::default(), tracked.bytes_to_compare(located));
    if bytes > SMALL_COMPARISON {
        let cluster = job.clusters.cluster(&located.on).await?;
        cluster.reserve(&mut room, bytes, &located.key).map_err(|_| {
            let message = format!(
                "what was written of {} takes {bytes} bytes of memory to be compared, for which there is no room beside the objects that \
                 others work with; it is tried again",
                located.key
            );
            Halt::Retry(Failure::new("Drift", "NoRoom", message))
        })?;
    }
    Ok(room)
}

fn all(results: Vec<Step<()>>) -> Step<()> {
    results.into_iter().collect()
}

/// Writes these objects again, those first that have no namespace; `check` is asked for each, with the manifest of it alone.
/// Answers those that were written, each with how it differed. `masked` hides what is secret in refusals.
///
/// # Errors
/// A cluster is another one than the job wrote to, or cannot be asked: nothing is written.
pub async fn correct<'c>(
    job: &Job<'_>,
    tracked: &TrackedManifest,
    due: Vec<LocatedObject>,
    check: &'c (dyn Fn(Proposal) -> BoxFuture<'c, Step<()>> + Send + Sync),
    masked: &(dyn Fn(&str) -> String + Send + Sync),
) -> Step<Vec<(LocatedObject, DriftFinding)>> {
    tracked.check_clusters(job).await?;
    let drifted = tracked.drifted();
    let (cluster_scoped, namespaced): (Vec<_>, Vec<_>) =
        due.into_iter().partition(|located| located.key.namespace.is_none());
    let mut corrected = Vec::new();
    for group in [cluster_scoped, namespaced] {
        let writing = group.into_iter().map(|located| {
            let before = drifted.get(&located).map(|drifted| drifted.finding.clone());
            async move {
                // Each answer is taken in at once: feeds tell more meanwhile.
                let before = before?;
                correct_one(job, tracked, (&located, &before), check, masked).await.then_some((located, before))
            }
        });
        corrected.extend(stream::iter(writing).buffer_unordered(AT_ONCE).filter_map(ready).collect::<Vec<_>>().await);
    }
    corrected.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(corrected)
}

/// Whether the object was written.
async fn correct_one<'c>(
    job: &Job<'_>,
    tracked: &TrackedManifest,
    (located, before): (&LocatedObject, &DriftFinding),
    check: &'c (dyn Fn(Proposal) -> BoxFuture<'c, Step<()>> + Send + Sync),
    masked: &(dyn Fn(&str) -> String + Send + Sync),
) -> bool {
    let written = async {
        let _room = hold_for_comparison(job, tracked, located).await?;
        let Some(written) = off_the_executor(|| tracked.written(located)) else { return Ok(None) };
        check(part(vec![ObjectWrite::clone(&written.write)])).await?;
        let ignored = tracked.ignored(located);
        write_again(job, located, (&written.write, written.uid.as_deref()), &ignored).await
    };
    match written.await {
        Ok(Some(live)) => {
            off_the_executor(|| tracked.corrected(located, &live, job.clock.now()));
            return true;
        }
        // The feed tells of a new owner, and of the end of what is being deleted.
        Ok(None) | Err(Halt::Wait(_)) => tracked.pause(located, before),
        Err(Halt::Retry(failure) | Halt::Stall(failure)) => {
            tracked.refused(located, masked(&failure.message), job.clock.now());
        }
    }
    false
}

fn by_kind(objects: Vec<LocatedObject>) -> BTreeMap<KindIn, Vec<LocatedObject>> {
    let mut by_kind: BTreeMap<KindIn, Vec<LocatedObject>> = BTreeMap::new();
    for located in objects {
        let key = &located.key;
        let kind = (located.on.clone(), key.api_version.clone(), key.kind.clone(), key.namespace.clone());
        by_kind.entry(kind).or_default().push(located);
    }
    by_kind
}

fn place(located: &LocatedObject, resource: &ApiResource) -> NamespacedName {
    let namespace = located.key.namespace.clone().filter(|_| resource.namespaced);
    NamespacedName { namespace, name: located.key.name.clone() }
}

/// Tells a manifest as long as it is there.
struct ManifestObserver {
    tracked: Weak<TrackedManifest>,
    of: FedKind,
}

impl Observer for ManifestObserver {
    fn bytes(&self, place: &NamespacedName) -> u64 {
        self.tracked.upgrade().map_or(0, |tracked| tracked.bytes_to_compare(&self.of.located(place)))
    }

    fn observe(&self, event: FeedEvent<'_>) {
        if let Some(tracked) = self.tracked.upgrade() {
            tracked.observe(&self.of, event);
        }
    }
}
