//! A manifest is held against the feeds of its clusters; what differs is asked about, and written again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, stream};
use orangery_cluster::{Error, NamespacedName, Observe};
use orangery_core::{
    name::{ApiVersion, Kind, Namespace},
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{ClusterRef, ObjectWrite, Proposal, deployer::ApiResource, inventory::LocatedObject};

use super::{DriftFinding, asked_baseline, part, read, tracked::TrackedManifest, write_again};
use crate::{Job, executor::AT_ONCE};

/// Objects of a kind in a namespace of a cluster.
type KindIn = (ClusterRef, ApiVersion, Kind, Option<Namespace>);

/// Names the objects of a manifest to the feeds of their clusters. What no list tells any more is read once.
///
/// # Errors
/// A cluster cannot be asked.
pub async fn watch(job: &Job<'_>, tracked: &Arc<TrackedManifest>) -> Step<()> {
    tracked.check_clusters(job).await?;
    let mut unlisted: Vec<LocatedObject> = Vec::new();
    for ((on, api_version, kind, namespace), objects) in by_kind(tracked.objects()) {
        let cluster = job.clusters.cluster(&on).await?;
        let resource = match cluster.served(&api_version, &kind).await {
            Ok(resource) => resource,
            // Its objects went with their definition.
            Err(Error::NotServed { .. }) => {
                objects.iter().for_each(|located| tracked.take(located, None));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let places: BTreeSet<NamespacedName> = objects.iter().map(|located| place(located, &resource)).collect();
        let observe = observer(tracked, &on, &resource);
        let (feed, is_listed) = cluster.feeds().follow(cluster.client(), &resource, namespace, places, observe);
        tracked.keep_feed(feed);
        if !is_listed {
            unlisted.extend(objects);
        }
    }
    let reading = unlisted.into_iter().map(|located| async move {
        let live = read(job, &located).await?;
        tracked.take(&located, live.as_ref());
        Ok(())
    });
    all(stream::iter(reading).buffer_unordered(AT_ONCE).collect().await)
}

/// What differs from what was written is held against what the server makes of that, once for each object (C-55).
///
/// # Errors
/// A cluster cannot be asked.
pub async fn ask(job: &Job<'_>, tracked: &TrackedManifest) -> Step<()> {
    let asking = tracked.unasked().into_iter().map(|located| async move {
        let Some(written) = tracked.written(&located) else { return Ok(()) };
        match read(job, &located).await? {
            None => tracked.take(&located, None),
            Some(live) => {
                let baseline = asked_baseline(job, &located, &written.write, &live).await?;
                tracked.asked(&located, written, baseline, &live);
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
        let writing = group.into_iter().map(|located| async move {
            let result = async {
                let Some(written) = tracked.written(&located) else { return Ok(None) };
                check(part(vec![ObjectWrite::clone(&written.write)])).await?;
                let ignored = tracked.ignored(&located);
                write_again(job, &located, (&written.write, written.uid.as_deref()), &ignored).await
            };
            (result.await, located)
        });
        let results: Vec<_> = stream::iter(writing).buffer_unordered(AT_ONCE).collect().await;
        let now = job.clock.now();
        for (result, located) in results {
            match result {
                Ok(Some(live)) => {
                    tracked.corrected(&located, &live, now);
                    corrected.extend(drifted.get(&located).map(|before| (located, before.finding.clone())));
                }
                // The feed tells of a new owner, and of the end of what is being deleted.
                Ok(None) | Err(Halt::Wait(_)) => {
                    drifted.get(&located).iter().for_each(|before| tracked.pause(&located, &before.finding));
                }
                Err(Halt::Retry(failure) | Halt::Stall(failure)) => {
                    tracked.refused(&located, masked(&failure.message), now);
                }
            }
        }
    }
    corrected.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(corrected)
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
fn observer(tracked: &Arc<TrackedManifest>, on: &ClusterRef, resource: &ApiResource) -> Observe {
    let (tracked, on) = (Arc::downgrade(tracked), on.clone());
    let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
    Arc::new(move |event| {
        if let Some(tracked) = tracked.upgrade() {
            tracked.observe(&on, (&api_version, &kind), event);
        }
    })
}
