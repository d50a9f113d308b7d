//! Deleting: objects of an inventory by groups, and removals of a stage. Gone means gone: whatever goes slowly is
//! waited for by a watch (C-22).

use std::sync::Arc;

use futures::{StreamExt, stream};
use orangery_core::step::{Halt, Step, Until, Waiting};
use orangery_proposal::{
    ClusterRef, ObjectRemoval, Selection,
    check::key_of,
    inventory::{Group, InventoryEntry, LocatedObject, groups},
    overlay::{is_unchanged, overlay},
};
use serde_json::{Value, json};

use crate::{
    ItemState, Job, Owner,
    apply_error::{ApplyError, all},
    executor::AT_ONCE,
    job_objects::JobObjects,
    owner::{Deleted, marked_by, places_of_marks},
    scope::clusters_of,
    write::put_marks,
    writer::{ObjectHandle, ObjectWriter},
};
use orangery_cluster::{Deletion, Error, Observed, Precondition, is_being_deleted};

/// Deletes the inventory of an item by its deletion order, as far as it goes without waiting. What is gone leaves the
/// inventory of the state; what is kept, ignored, in no group, or not the item's (C-36) stays in the cluster. Needs
/// neither component nor a configuration that can be read (C-28). What lies in clusters that the targets do not name any more stays in the state.
///
/// # Errors
/// A wait for what goes slowly, or why something cannot be deleted.
pub async fn delete(job: &Job<'_>, state: &mut ItemState) -> Step<()> {
    delete_by(&ObjectWriter::Server, job, state).await
}

/// The one path of a deletion and of a dry run of it: the writer of the objects tells them apart.
pub(crate) async fn delete_by(writer: &ObjectWriter, job: &Job<'_>, state: &mut ItemState) -> Step<()> {
    if state.inventory.0.is_empty() {
        return Ok(());
    }
    let objects = JobObjects::new(job, writer, None);
    let ending = state.inventory.ending();
    objects.check_clusters(clusters_of(&ending), state).await.map_err(|error| error.halt)?;
    let mut ending = state.inventory.ending();
    // What is ignored by now stays, also where no job has come to prune since that was said (C-162).
    let ignored = job.items.ignored(&ending);
    ending.retain(|located| !ignored.contains(located));
    let groups = groups(&state.deletion_order, &ending);
    objects.delete_groups(groups, state).await.map_err(|error| error.halt)
}

/// Gives another item the marks of objects of this one, which it goes on with (C-271). What has no mark of this item stays as it is.
///
/// # Errors
/// A cluster does not answer, or refuses.
pub async fn hand_over(job: &Job<'_>, objects: impl IntoIterator<Item = &LocatedObject>, to: &Owner) -> Step<()> {
    let writer = ObjectWriter::Server;
    let of_job = JobObjects::new(job, &writer, None);
    let granted = objects.into_iter().filter(|located| job.grants.write(&located.on, &located.key).is_ok());
    let handed: Vec<_> = granted.map(|located| of_job.hand_over(located, to)).collect();
    let results = stream::iter(handed).buffered(AT_ONCE).collect::<Vec<_>>().await;
    all(results).map(drop).map_err(|error| error.halt)
}

/// Why an object stays where it is, in words.
pub(crate) type StaysBecause = String;

/// The same with the object.
pub(crate) fn stays(located: &LocatedObject, why: &str) -> String {
    format!("{} of {} stays: {why}", located.key, located.on)
}

/// An object with a last change laid over it. It stays the one that was looked at, in that version, and whose it is (C-119).
fn laid_over(live: &Value, patch: &Value, labels: &[String]) -> Value {
    let mut body = live.clone();
    overlay(&mut body, patch);
    for field in ["apiVersion", "kind"] {
        overlay(&mut body, &json!({field: live.get(field)}));
    }
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if let Some(value) = live.pointer("/metadata").and_then(|metadata| metadata.get(field)) {
            overlay(&mut body, &json!({"metadata": {field: value}}));
        }
    }
    for (field, name) in places_of_marks(labels) {
        let place = format!("/metadata/{field}");
        if let Some(mark) = live.pointer(&place).and_then(|marks| marks.get(name)) {
            overlay(&mut body, &json!({"metadata": {field: {name: mark}}}));
        } else if let Some(marks) = body.pointer_mut(&place).and_then(Value::as_object_mut) {
            marks.remove(name);
        }
    }
    body
}

/// Why nobody waits for a namespace that is being deleted with the item in it.
const HOLDS_THE_ITEM: &str = "it is being deleted, and goes when this item is gone, which is in it";

/// Why an object stays that a stage removes for which nobody vouches.
const NOT_ITS_OWN: &str = "it has not the mark of this item, and nobody vouches for what its release says, by a signature, as the \
                           policy of the namespace requires them";

/// Why nobody deletes an object that can only be created (C-199).
const ONLY_CREATED: &str =
    "the API server does not read or delete objects of its kind, so nothing of it can be taken away";

/// Begins the deletion of what lives for a job alone where the job has ended otherwise than well (C-277). What goes slowly is not
/// waited for; what is gone leaves the inventory.
///
/// # Errors
/// Something of it could not be deleted, and may be the next time.
pub async fn end_ephemeral(job: &Job<'_>, state: &mut ItemState) -> Step<()> {
    let ephemeral = groups(&[], &state.inventory.ephemeral());
    if ephemeral.is_empty() {
        return Ok(());
    }
    let writer = ObjectWriter::Server;
    match JobObjects::new(job, &writer, None).delete_groups(ephemeral, state).await {
        Ok(()) | Err(ApplyError { halt: Halt::Wait(_), .. }) => Ok(()),
        Err(ApplyError { halt, .. }) => Err(halt),
    }
}

/// How often a deletion is tried that meets changes of others.
const ATTEMPTS: usize = 5;

/// Where the deletion of one object stands.
enum DeletionState {
    Gone,
    /// It goes, the object of this uid; until when is the watch's to tell.
    Pending(String),
    /// It stays, and why.
    Left(String),
}

/// What was to be deleted is not there. Of what the item has had, a call that was cut off may have taken it away.
fn found_gone(handle: &ObjectHandle<'_>, what: Deleted<'_>) -> DeletionState {
    if matches!(what, Deleted::Member(_)) {
        handle.found_gone();
    }
    DeletionState::Gone
}

impl JobObjects<'_> {
    /// Deletes group after group; the next waits until this one is gone. What stays is noted, and forgotten as well.
    pub(crate) async fn delete_groups(&self, groups: Vec<Group>, state: &mut ItemState) -> Result<(), ApplyError> {
        for Group { on, members, matching, force } in groups {
            let entry = |located: &LocatedObject| state.inventory.0.get(located).cloned().unwrap_or_default();
            let members: Vec<_> = members.into_iter().map(|located| (entry(&located), located)).collect();
            let deletions: Vec<_> = members
                .into_iter()
                .map(|(entry, located)| async move {
                    let result = self.delete_member(&located, Deleted::Member(&entry), force).await;
                    (located, result)
                })
                .collect();
            let results: Vec<_> = stream::iter(deletions).buffered(AT_ONCE).collect().await;
            let mut outcomes = Vec::new();
            for (located, result) in results {
                match result {
                    Ok(why) => {
                        state.inventory.0.remove(&located);
                        state.notes.extend(why.map(|why| stays(&located, &why)));
                    }
                    Err(error) => outcomes.push(Err(error)),
                }
            }
            for selection in matching {
                match self.job.grants.delete_unmanaged(&on, &selection) {
                    Ok(()) => outcomes.push(self.delete_matching(&on, &selection, force).await),
                    Err(refusal) => state.notes.push(format!("objects of {on} stay: {refusal}")),
                }
            }
            all(outcomes)?;
        }
        Ok(())
    }

    /// Removes the objects of a stage and waits until they are gone. Answers what stays, and why.
    pub(crate) async fn remove(
        &self,
        removals: &[ObjectRemoval],
    ) -> Result<Vec<(LocatedObject, StaysBecause)>, ApplyError> {
        let deletions: Vec<_> = removals
            .iter()
            .map(|removal| {
                let located = LocatedObject { on: removal.on.clone(), key: removal.key.clone() };
                async move {
                    let why = self.delete_member(&located, Deleted::Removal, removal.force).await?;
                    Ok(why.map(|why| (located, why)))
                }
            })
            .collect();
        let results = all(stream::iter(deletions).buffered(AT_ONCE).collect::<Vec<_>>().await)?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Deletes one object. Answers why it stays, where it does.
    async fn delete_member(
        &self,
        located: &LocatedObject,
        what: Deleted<'_>,
        force: bool,
    ) -> Result<Option<StaysBecause>, ApplyError> {
        if let Err(refusal) = self.job.grants.write(&located.on, &located.key) {
            return Ok(Some(refusal.to_string()));
        }
        if let Some(successor) = self.job.items.successor(located) {
            self.hand_over(located, &successor).await?;
            return Ok(Some(format!("DeployItem {} names it as well, and goes on with it", successor.name)));
        }
        let Some(mut handle) = self.handle_in_any_version(located).await? else { return self.unserved(located).await };
        if matches!(what, Deleted::Removal) {
            handle.is_as_checked(located)?;
        }
        let state = match self.begin(&handle, what).await {
            // What was known of the versions has changed.
            Err(error) if error.is_not_served() => match self.handle_in_any_version(located).await? {
                None => return self.unserved(located).await,
                Some(served) => {
                    handle = served;
                    self.begin(&handle, what).await?
                }
            },
            state => state?,
        };
        match state {
            DeletionState::Gone => Ok(None),
            DeletionState::Left(why) => Ok(Some(why)),
            DeletionState::Pending(_) if self.holds_the_item(&handle).await? => Ok(Some(HOLDS_THE_ITEM.to_owned())),
            DeletionState::Pending(uid) => self.until_gone(&handle, &uid, force).await.map(|()| None),
        }
    }

    /// An object of a kind that is not served is gone with the definition of the kind. As long as that is there the object may be,
    /// too: it is waited for (C-191).
    async fn unserved(&self, LocatedObject { on, key }: &LocatedObject) -> Result<Option<StaysBecause>, ApplyError> {
        if self.is_dry_run() || !key.group().contains('.') {
            return Ok(None);
        }
        let defines = |definition: &Arc<Value>| {
            let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
            text("/spec/group") == Some(key.group()) && text("/spec/names/kind") == Some(key.kind.as_str())
        };
        let is_namespaced = |definition: &Value| definition.pointer("/spec/scope") == Some(&json!("Namespaced"));
        let waiting = |name: &str, why: String| Waiting {
            detail: Some(why),
            ..Waiting::target(&"CustomResourceDefinition".into(), None, &name.into(), Until::Ready)
        };
        match self.job.clusters.definitions(on).await? {
            Ok(definitions) => match definitions.iter().find(|definition| defines(definition)) {
                // Made anew, after the one with which the object went.
                Some(definition) if key.namespace.is_none() && is_namespaced(definition) => Ok(None),
                Some(definition) => {
                    let name = definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                    let why = format!("it serves no version of {} {}, which may still be there", key.kind, key.name);
                    Err(Halt::from(waiting(name, why)).into())
                }
                None => Ok(None),
            },
            Err(Observed::Forbidden(_)) => Ok(Some(format!(
                "the cluster does not serve {} {}, and its definitions may not be read: where there is one, look for the object \
                 once it is served",
                key.api_version, key.kind
            ))),
            // The first list calls again.
            Err(_) => Err(Halt::from(key.waiting(Until::Gone)).into()),
        }
    }

    /// What another item goes on with gets its marks, before that writes it or where it does not (C-271).
    async fn hand_over(&self, located: &LocatedObject, to: &Owner) -> Result<(), ApplyError> {
        let Some(handle) = self.handle_in_any_version(located).await? else { return Ok(()) };
        if !handle.is_deletable().await? {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let live = handle.get().await?.filter(|live| self.job.owns(live) && !is_being_deleted(live));
            let Some(live) = live else { return Ok(()) };
            let mut body = live.clone();
            put_marks(&mut body, to, self.job.labels);
            self.job.fence()?;
            match handle.replace(&live, &body).await {
                Ok(_) | Err(Error::Missing { .. }) => return Ok(()),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Conflict { key: Box::new(handle.key.clone()) }.into())
    }

    /// Whether an object is the namespace that the item itself is in: it cannot be gone before the item is (C-176).
    async fn holds_the_item(&self, handle: &ObjectHandle<'_>) -> Result<bool, ApplyError> {
        let (key, owner) = (&handle.key, self.job.owner);
        let is_named = key.group().is_empty() && key.kind == "Namespace" && *key.name == *owner.namespace;
        Ok(is_named && owner.cluster.is_some() && handle.cluster.uid().await? == owner.cluster)
    }

    /// Begins the deletion of the object as it is known, and reads it again where it has changed since: whose it is, is
    /// looked at in the very version that is deleted.
    async fn begin(&self, handle: &ObjectHandle<'_>, what: Deleted<'_>) -> Result<DeletionState, ApplyError> {
        if !handle.is_deletable().await? {
            return Ok(DeletionState::Left(ONLY_CREATED.to_owned()));
        }
        let mut known = match handle.observed() {
            // The server may still carry out a write that it never answered: it is asked itself (C-213).
            Some(Observed::Absent | Observed::Gone(_)) if what.is_answered() => return Ok(found_gone(handle, what)),
            Some(Observed::Present(live)) => Some(live),
            Some(
                Observed::Absent
                | Observed::Gone(_)
                | Observed::Unknown
                | Observed::Forbidden(_)
                | Observed::Unwatched(_),
            )
            | None => None,
        };
        for _ in 0..ATTEMPTS {
            let live = match known.take() {
                Some(live) => live,
                None => match handle.get().await {
                    Ok(Some(live)) => Arc::new(live),
                    Ok(None) => return Ok(found_gone(handle, what)),
                    Err(error) => return Err(error.into()),
                },
            };
            if matches!(what, Deleted::Removal) && self.job.removes_its_own_alone && !self.job.owns(&live) {
                return Ok(DeletionState::Left(NOT_ITS_OWN.to_owned()));
            }
            if let Some(why) = what.stays(&live, self.job.owner, self.job.labels)
                && !(matches!(what, Deleted::Removal) && self.is_left_over(&live).await?)
            {
                return Ok(DeletionState::Left(why));
            }
            if is_being_deleted(&live) {
                return Ok(DeletionState::Pending(Precondition::of(&live).uid));
            }
            let read = match what {
                Deleted::Member(InventoryEntry { before_deletion: Some(patch), .. }) => {
                    match self.change_before(handle, &live, patch).await {
                        Ok(Some(changed)) => Arc::new(changed),
                        Ok(None) => live,
                        Err(Error::Missing { .. }) => return Ok(DeletionState::Gone),
                        Err(Error::Conflict { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                Deleted::Member(_) | Deleted::Removal | Deleted::Selected => live,
            };
            self.job.fence()?;
            match handle.delete(&read).await {
                Ok(Deletion::Gone) => return Ok(DeletionState::Gone),
                Ok(Deletion::Pending(_)) => return Ok(DeletionState::Pending(Precondition::of(&read).uid)),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Conflict { key: Box::new(handle.key.clone()) }.into())
    }

    /// Whether the item whose mark an object has does not exist any more: then nobody holds it against a stage. Of one of another
    /// cluster nobody here can say that (C-137).
    async fn is_left_over(&self, live: &Value) -> Result<bool, ApplyError> {
        match marked_by(live, self.job.owner, self.job.labels) {
            Some(item) if item.is_elsewhere(self.job.owner) => Ok(false),
            Some(item) => Ok(self.job.items.is_gone(&item).await?),
            None => Ok(false),
        }
    }

    /// Lays a last change over an object; `None` where it has it already.
    async fn change_before(
        &self,
        handle: &ObjectHandle<'_>,
        live: &Value,
        patch: &Value,
    ) -> Result<Option<Value>, Error> {
        let body = laid_over(live, patch, self.job.labels);
        if is_unchanged(live, &body) || self.job.fence().is_err() {
            return Ok(None);
        }
        handle.replace(live, &body).await.map(Some)
    }

    /// A wait, unless the object of this uid is gone by now.
    async fn until_gone(&self, handle: &ObjectHandle<'_>, uid: &str, force: bool) -> Result<(), ApplyError> {
        let waiting = || Err(Halt::from(handle.key.waiting(Until::Gone)).into());
        // A watch that is not synced yet cannot say that the object is gone, and calls again once it is.
        let live = match self.watch(handle) {
            Ok(None) => return Ok(()),
            Ok(Some(live)) => live,
            Err(ApplyError { halt: Halt::Wait(_), .. }) => return waiting(),
            Err(error) => return Err(error),
        };
        if Precondition::of(&live).uid != uid {
            return Ok(());
        }
        if force && live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty())
        {
            self.job.fence()?;
            match handle.patch(&live, &json!({"metadata": {"uid": uid, "finalizers": null}})).await {
                Ok(_) | Err(Error::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        waiting()
    }

    /// Deletes whatever matches, managed or not.
    async fn delete_matching(&self, on: &ClusterRef, selection: &Selection, force: bool) -> Result<(), ApplyError> {
        let (cluster, resource) = match self.resource(on, &selection.api_version, &selection.kind).await {
            Ok(found) => found,
            Err(error) if error.is_not_served() => return Ok(()),
            Err(error) => return Err(error),
        };
        let objects = cluster.list(&resource, selection).await?;
        let keys = objects.iter().filter_map(|object| key_of(object).ok());
        let handles = keys.map(|key| self.handle_of(on, key, Arc::clone(&cluster), Arc::clone(&resource)));
        let deletions: Vec<_> = handles
            .map(|handle| async move {
                match self.begin(&handle, Deleted::Selected).await? {
                    DeletionState::Gone | DeletionState::Left(_) => Ok(()),
                    DeletionState::Pending(uid) => self.until_gone(&handle, &uid, force).await,
                }
            })
            .collect();
        all(stream::iter(deletions).buffered(AT_ONCE).collect::<Vec<_>>().await).map(drop)
    }
}
