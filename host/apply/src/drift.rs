//! Drift: whether live objects are still as an item has written them, and writing those again that are not (C-55 to C-60).
//! What is compared is the manifest: what the last proposal of a job wrote, kept with the item.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use futures::{StreamExt, stream};
use orangery_cluster::{Error, is_being_deleted};
use orangery_core::step::{Halt, Step, Until};
use orangery_proposal::{
    Gate, Next, ObjectWrite, Ownership, Proposal, Stage, Write,
    check::key_of,
    drift_rules::DriftRules,
    executor::writes,
    inventory::{Inventory, LocatedObject},
    overlay::{Drift, Ignored, baseline, drift, fill, overlay, spared, three_way},
};
use orangery_turns::off_the_executor;
use serde_json::{Value, json};

use crate::{
    Job, Owner,
    apply_error::ApplyError,
    executor::AT_ONCE,
    job_objects::JobObjects,
    owner::{Claim, OWNER_ANNOTATION, OWNER_CLUSTER, claim, item},
    write::{created, is_the_checked, labelled, place_all, under_version_of},
    writer::{ObjectHandle, ObjectWriter},
};

mod changed_by;
mod known;
mod packed;
mod tracked;
mod versions;
mod watch;

pub use self::{
    known::DriftedSince,
    tracked::TrackedManifest,
    watch::{ask, correct, watch},
};

/// The annotation of hooks of Helm, which run and end.
const HOOK: &str = "helm.sh/hook";

/// The type of the Secrets in which Helm keeps its releases: its own tools change them.
const RELEASE: &str = "helm.sh/release.v1";

/// How often an object is written again that others change at the same time.
const ATTEMPTS: usize = 5;

/// How a live object differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftFinding {
    /// It does not.
    AsWritten,
    /// It does not exist.
    Missing,
    /// It is being deleted.
    BeingDeleted,
    /// It is not the item's any more, in words: it is told, and never written.
    TakenOver(String),
    /// These fields do.
    Different(Vec<Drift>),
}

/// The manifest of a job: what its proposals wrote and drift is looked for in, of each object all that its writes have made of
/// it. `before` is the manifest of those that came before this one. Hooks and records of Helm are left out, and what goes with the
/// job; how an object is written stays as far as it counts for one that is there.
pub fn manifest(before: Option<&Proposal>, proposal: &Proposal, inventory: &Inventory) -> Proposal {
    let mut written: BTreeMap<LocatedObject, ObjectWrite> = BTreeMap::new();
    for (located, write) in before.into_iter().flat_map(writes).chain(writes(proposal)) {
        let write = match written.remove(&located) {
            Some(earlier) if is_part(write) => laid_over(earlier, write),
            Some(_) | None => write.clone(),
        };
        written.insert(located, write);
    }
    let kept = written.into_iter().filter(|(located, write)| {
        inventory.0.contains_key(located) && write.owned != Ownership::Ephemeral && !is_of_helm(&write.object)
    });
    let writes: Vec<ObjectWrite> = kept
        .map(|(_, write)| {
            let how = match &write.how {
                how @ (Write::Apply | Write::ApplyAs(_) | Write::Create | Write::Fill) => how.clone(),
                Write::Replace | Write::Patch | Write::Merge(_) | Write::Overlay => Write::Overlay,
            };
            ObjectWrite { how, ..write }
        })
        .collect();
    part(writes)
}

/// Whether a write leaves what it does not name as an earlier one has made it.
fn is_part(write: &ObjectWrite) -> bool {
    match write.how {
        Write::Overlay | Write::Merge(_) | Write::Fill => true,
        Write::Replace | Write::Patch | Write::Apply | Write::ApplyAs(_) | Write::Create => false,
    }
}

/// What a write and one of a part of the same object after it have made of it, as one write: where it is gone, all of it is made
/// anew.
fn laid_over(mut earlier: ObjectWrite, later: &ObjectWrite) -> ObjectWrite {
    let gives_way = matches!(earlier.how, Write::Fill | Write::Create) && earlier.inject.is_empty();
    if gives_way && later.how != Write::Fill {
        // Of what gave way to others only the part is looked at.
        let mut whole = earlier.object;
        for above in [earlier.at_creation.as_ref(), Some(&later.object)].into_iter().flatten() {
            overlay(&mut whole, above);
        }
        return ObjectWrite { how: Write::Overlay, at_creation: Some(whole), ..later.clone() };
    }
    match &later.how {
        Write::Merge(from) => earlier.object = three_way(from, &earlier.object, &later.object),
        Write::Fill => fill(&mut earlier.object, &later.object),
        Write::Overlay | Write::Replace | Write::Patch | Write::Apply | Write::ApplyAs(_) | Write::Create => {
            overlay(&mut earlier.object, &later.object);
        }
    }
    if let Some(extra) = earlier.at_creation.as_mut().filter(|_| later.how != Write::Fill) {
        overlay(extra, &later.object);
    }
    earlier.inject.retain(|injection| later.object.pointer(&injection.at).is_none());
    earlier.inject.extend(later.inject.iter().cloned());
    ObjectWrite { owned: later.owned, before_deletion: later.before_deletion.clone(), ..earlier }
}

/// Whether a proposal alone says what was written of all these objects.
pub fn writes_all(proposal: &Proposal, planned: &BTreeSet<LocatedObject>) -> bool {
    let whole = writes(proposal).filter(|(_, write)| !is_part(write));
    let written: BTreeSet<LocatedObject> = whole.map(|(located, _)| located).collect();
    planned.is_subset(&written)
}

/// The objects of a manifest that are in the inventory, each with the uid that was written.
pub fn manifest_objects(
    manifest: Proposal,
    inventory: &Inventory,
) -> Vec<(LocatedObject, ObjectWrite, Option<String>)> {
    let afterwards = match manifest.next {
        Next::Finish(completion) => completion.afterwards,
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => Vec::new(),
    };
    let writes = manifest.stages.into_iter().chain(afterwards).flat_map(|stage| stage.writes);
    let known = writes.filter_map(|write| {
        let located = LocatedObject { on: write.on.clone(), key: key_of(&write.object).ok()? };
        let uid = inventory.0.get(&located)?.uid.clone();
        Some((located, write, uid))
    });
    known.collect()
}

/// A proposal of some objects of a manifest, as checks want it.
pub fn part(writes: Vec<ObjectWrite>) -> Proposal {
    let stage =
        Stage { name: "manifest".to_owned(), removals: Vec::new(), writes, gate: Gate::Accepted, timeout: None };
    Proposal {
        stages: vec![stage],
        next: Next::Finish(orangery_proposal::Completion::default()),
        recover: None,
        status: None,
        deletion_order: Vec::new(),
        pruning_order: Vec::new(),
    }
}

fn is_of_helm(object: &Value) -> bool {
    let is_record = object.get("type").and_then(Value::as_str) == Some(RELEASE);
    is_record || object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(HOOK)).is_some()
}

/// What a write wants of its object, with the mark of the item, but for content that the host places.
fn wanted(write: &ObjectWrite, owner: &Owner, labels: &[String]) -> Value {
    let mut object = labelled(write, owner, labels);
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
    if let Some(texts) = object.get_mut("stringData").filter(|_| is_secret).map(Value::take) {
        let texts = texts.as_object().cloned().unwrap_or_else(serde_json::Map::new);
        let kept = texts
            .iter()
            .filter_map(|(name, text)| Some((name.clone(), json!(BASE64.encode(text.as_str()?.as_bytes())))));
        overlay(&mut object, &json!({"data": kept.collect::<serde_json::Map<_, _>>()}));
        if let Some(fields) = object.as_object_mut() {
            fields.remove("stringData");
        }
    }
    object
}

/// What a live object is held against as long as the server was not asked: what the write wants.
fn unasked_baseline(write: &ObjectWrite, owner: &Owner, labels: &[String]) -> Value {
    let wanted = wanted(write, owner, labels);
    baseline(&wanted, &wanted)
}

/// What is found of a live object. `uid` is that of the object that was written; `kept` its [`baseline`].
fn compare(
    (write, uid, kept): (&ObjectWrite, Option<&str>, &Value),
    live: Option<&Value>,
    (owner, labels): (&Owner, &[String]),
    ignored: &Ignored,
) -> DriftFinding {
    let Some(live) = live else {
        return if is_cleared_away(write) { DriftFinding::AsWritten } else { DriftFinding::Missing };
    };
    let is_another = uid.is_some_and(|uid| live.pointer("/metadata/uid").and_then(Value::as_str) != Some(uid));
    match claim(live, owner, labels) {
        Claim::Other(mark) => return DriftFinding::TakenOver(format!("belongs to {} now", item(mark))),
        Claim::Nobody | Claim::OwnByLabel if is_another => {
            return DriftFinding::TakenOver("is another object, which somebody else has made".to_owned());
        }
        // Every job writes the mark: somebody has taken it away.
        Claim::Nobody | Claim::OwnByLabel => {
            return DriftFinding::TakenOver(format!("has lost the annotation {OWNER_ANNOTATION}"));
        }
        // As of what is deleted, a uid that differs is no proof: it was written again, and that was not stored.
        Claim::Own => {}
    }
    if is_being_deleted(live) {
        return DriftFinding::BeingDeleted;
    }
    let mut ignored = ignored.clone();
    ignored.pointers.extend(write.inject.iter().map(|injection| injection.at.clone()));
    // An earlier build has not written it: the next job does.
    ignored.pointers.insert(OWNER_CLUSTER.to_owned());
    let found = match write.how {
        Write::Create => Vec::new(),
        // Fields of another version are not those that were written.
        _ if is_of_another_version(write, live) => Vec::new(),
        // It gives way to whatever others put there.
        Write::Fill => drift(kept, live, &ignored).into_iter().filter(|one| matches!(one, Drift::Missing(_))).collect(),
        Write::Apply | Write::ApplyAs(_) | Write::Replace | Write::Patch | Write::Merge(_) | Write::Overlay => {
            drift(kept, live, &ignored)
        }
    };
    if found.is_empty() { DriftFinding::AsWritten } else { DriftFinding::Different(found) }
}

/// Whether an object goes by itself when it is done. Once it is gone nobody knows whether it was: it is not missed, and never
/// made again, for it would run again.
fn is_cleared_away(write: &ObjectWrite) -> bool {
    let text = |name: &str| write.object.get(name).and_then(Value::as_str).unwrap_or_default();
    let forms = [Some(&write.object), write.at_creation.as_ref()];
    text("kind") == "Job"
        && text("apiVersion").starts_with("batch/")
        && forms
            .into_iter()
            .flatten()
            .filter_map(|form| form.pointer("/spec/ttlSecondsAfterFinished"))
            .any(|time| !time.is_null())
}

fn is_of_another_version(write: &ObjectWrite, live: &Value) -> bool {
    let version = |object: &Value| object.get("apiVersion").and_then(Value::as_str).map(str::to_owned);
    version(live).is_some_and(|served| version(&write.object) != Some(served))
}

/// An object as the server has it, with the handle that holds what it takes (C-201).
pub(crate) struct LiveObject<'a> {
    pub(crate) object: Value,
    _handle: ObjectHandle<'a>,
}

/// An object as the server has it; `None` where it does not exist, or its kind is not served any more.
///
/// # Errors
/// The cluster cannot be asked.
pub(crate) async fn read<'a>(job: &'a Job<'a>, located: &LocatedObject) -> Step<Option<LiveObject<'a>>> {
    let objects = JobObjects::new(job, &ObjectWriter::Server, None);
    let read = async {
        let Some(handle) = objects.handle_in_any_version(located).await? else { return Ok(None) };
        Ok(handle.get().await?.map(|object| LiveObject { object, _handle: handle }))
    };
    read.await.map_err(|error: ApplyError| error.halt)
}

/// The baseline of a write as the server has it: it is asked what it would make of the write, without doing it, so that a
/// notation that it changes is no drift (C-55). What takes part in no tries is held against what was written.
///
/// # Errors
/// The cluster cannot be asked, or the object changed meanwhile.
async fn asked_baseline(job: &Job<'_>, located: &LocatedObject, write: &ObjectWrite, live: &Value) -> Step<Value> {
    let objects = JobObjects::new(job, &ObjectWriter::Server, None);
    let wanted = wanted(write, job.owner, job.labels);
    let ask = async {
        let handle = objects.handle(located).await?;
        let body = three_way(&wanted, live, &wanted);
        match handle.cluster.try_replace(&handle.resource, &handle.key, &body).await {
            Ok(answer) => Ok(baseline(&wanted, &answer)),
            // Whoever may only read what was written is told how that differs in its own notation.
            Err(
                Error::Invalid { .. } | Error::Forbidden { .. } | Error::Unauthorized { .. } | Error::Missing { .. },
            ) => Ok(baseline(&wanted, &wanted)),
            Err(error) => Err(ApplyError::from(error)),
        }
    };
    ask.await.map_err(|error| error.halt)
}

/// How the objects of a manifest differ now, each read once: those that were written, with their uids.
///
/// # Errors
/// A cluster cannot be asked.
pub async fn find(
    job: &Job<'_>,
    written: Vec<(LocatedObject, ObjectWrite, Option<String>)>,
    rules: &DriftRules,
) -> Step<BTreeMap<LocatedObject, DriftFinding>> {
    let finding = written.into_iter().map(|(located, write, uid)| async move {
        let ignored = rules.ignored(&located.key);
        let finding = find_one(job, &located, (&write, uid.as_deref()), &ignored).await?;
        Ok((located, finding))
    });
    let found: Vec<Step<_>> = stream::iter(finding).buffer_unordered(AT_ONCE).collect().await;
    found.into_iter().collect()
}

async fn find_one(
    job: &Job<'_>,
    located: &LocatedObject,
    (write, uid): (&ObjectWrite, Option<&str>),
    ignored: &Ignored,
) -> Step<DriftFinding> {
    let owner = (job.owner, job.labels);
    let live = read(job, located).await?;
    let live = live.as_ref().map(|live| &live.object);
    let found = |kept: &Value| off_the_executor(|| compare((write, uid, kept), live, owner, ignored));
    match (found(&unasked_baseline(write, job.owner, job.labels)), live) {
        (DriftFinding::Different(_), Some(live)) => {
            let kept = asked_baseline(job, located, write, live).await?;
            Ok(found(&kept))
        }
        (finding, _) => Ok(finding),
    }
}

/// Writes an object again, as it is kept: what is ignored stays as it is. Answers the object as it is afterwards; `None`
/// where it belongs to somebody else. Every write carries the version whose owner was looked at.
///
/// # Errors
/// A wait for one that is being deleted; what the server refuses, or that it cannot be asked.
pub(crate) async fn write_again(
    job: &Job<'_>,
    located: &LocatedObject,
    (write, uid): (&ObjectWrite, Option<&str>),
    ignored: &Ignored,
) -> Step<Option<Value>> {
    let objects = JobObjects::new(job, &ObjectWriter::Server, None);
    let write_again = async {
        let handle = objects.handle(located).await?;
        for _ in 1..ATTEMPTS {
            match write_once(&objects, &handle, (located, write, uid), ignored).await {
                // Somebody else was at work on it at the same time.
                Err(error) if error.is_overtaken() => {}
                written => return written,
            }
        }
        write_once(&objects, &handle, (located, write, uid), ignored).await
    };
    write_again.await.map_err(|error: ApplyError| error.halt)
}

async fn write_once(
    objects: &JobObjects<'_>,
    handle: &ObjectHandle<'_>,
    (located, write, uid): (&LocatedObject, &ObjectWrite, Option<&str>),
    ignored: &Ignored,
) -> Result<Option<Value>, ApplyError> {
    let job = objects.job;
    let live = handle.get().await?;
    let owners = (job.owner, job.labels);
    let (wanted, finding) = off_the_executor(|| {
        let wanted = wanted(write, job.owner, job.labels);
        let finding = compare((write, uid, &baseline(&wanted, &wanted)), live.as_ref(), owners, ignored);
        (wanted, finding)
    });
    match finding {
        DriftFinding::TakenOver(_) => return Ok(None),
        DriftFinding::AsWritten if live.is_none() => return Ok(None),
        DriftFinding::BeingDeleted => return Err(Halt::from(handle.key.waiting(Until::Gone)).into()),
        DriftFinding::AsWritten | DriftFinding::Missing | DriftFinding::Different(_) => {}
    }
    let placed = place_all(objects, &handle.key, wanted, write).await?;
    let created = created(&placed, write, job.owner, job.labels);
    for object in [&placed, &created] {
        is_the_checked(object, located)?;
    }
    job.fence()?;
    put(handle, write, (placed, created), live, ignored).await.map(Some)
}

async fn put(
    handle: &ObjectHandle<'_>,
    write: &ObjectWrite,
    (wanted, created): (Value, Value),
    live: Option<Value>,
    ignored: &Ignored,
) -> Result<Value, ApplyError> {
    let Some(live) = live else {
        return Ok(match &write.how {
            Write::Apply => handle.apply(None, None, &created).await?,
            Write::ApplyAs(manager) => handle.apply(Some(manager), None, &created).await?,
            Write::Create | Write::Fill | Write::Replace | Write::Patch | Write::Merge(_) | Write::Overlay => {
                handle.create(&created).await?
            }
        });
    };
    let mut wanted = off_the_executor(|| spared(&wanted, &live, ignored));
    let version = live.pointer("/metadata/resourceVersion").cloned();
    let versioned = json!({"metadata": {"resourceVersion": version}});
    Ok(match &write.how {
        Write::Create => live,
        Write::Apply => {
            overlay(&mut wanted, &versioned);
            handle.apply(None, Some(&live), &wanted).await?
        }
        Write::ApplyAs(manager) => {
            overlay(&mut wanted, &versioned);
            handle.apply(Some(manager), Some(&live), &wanted).await?
        }
        Write::Fill => {
            let mut body = live.clone();
            orangery_proposal::overlay::fill(&mut body, &wanted);
            handle.replace(&live, &body).await?
        }
        Write::Replace | Write::Patch | Write::Merge(_) | Write::Overlay => {
            handle.replace(&live, &under_version_of(&live, three_way(&wanted, &live, &wanted))).await?
        }
    })
}

#[cfg(test)]
mod tests;
