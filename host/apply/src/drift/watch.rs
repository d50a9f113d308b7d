//! A manifest is held against the feeds of its clusters; what differs is asked about, and written again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, future::ready, stream};
use orangery_cluster::{Cluster, Error, NamespacedName, Observe};
use orangery_core::{
    name::{ApiVersion, Kind, Namespace},
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{ClusterRef, ObjectWrite, Proposal, deployer::ApiResource, inventory::LocatedObject};

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
    let mut unlisted: Vec<LocatedObject> = Vec::new();
    for (number, ((on, api_version, kind, namespace), objects)) in by_kind(tracked.objects()).into_iter().enumerate() {
        let cluster = job.clusters.cluster(&on).await?;
        let resource = served(&cluster, &api_version, &kind).await?;
        let places: BTreeSet<NamespacedName> = objects.iter().map(|located| place(located, &resource)).collect();
        let of = FedKind { number, on, api_version, kind, namespace: namespace.clone() };
        let what = (&*resource, namespace);
        let (feed, is_listed) = job.clusters.follow(&cluster, what, places, observer(tracked, of))?;
        tracked.keep_feed(feed);
        if !is_listed {
            unlisted.extend(objects);
        }
    }
    let reading = unlisted.into_iter().map(|located| async move {
        let before = tracked.version(&located);
        let live = read(job, &located).await?;
        tracked.read(&located, before, live.as_ref().map(|live| &live.object));
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
        let Some(written) = tracked.written(&located) else { return Ok(()) };
        match read(job, &located).await? {
            None => tracked.read(&located, before, None),
            Some(live) => {
                let baseline = asked_baseline(job, &located, &written.write, &live.object).await?;
                tracked.asked(&located, (written, before), baseline, &live.object);
            }
        }
        Ok(())
    });
    all(stream::iter(asking).buffer_unordered(AT_ONCE).collect().await)
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
        let Some(written) = tracked.written(located) else { return Ok(None) };
        check(part(vec![ObjectWrite::clone(&written.write)])).await?;
        let ignored = tracked.ignored(located);
        write_again(job, located, (&written.write, written.uid.as_deref()), &ignored).await
    };
    match written.await {
        Ok(Some(live)) => {
            tracked.corrected(located, &live, job.clock.now());
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
fn observer(tracked: &Arc<TrackedManifest>, of: FedKind) -> Observe {
    let tracked = Arc::downgrade(tracked);
    Arc::new(move |event| {
        if let Some(tracked) = tracked.upgrade() {
            tracked.observe(&of, event);
        }
    })
}
