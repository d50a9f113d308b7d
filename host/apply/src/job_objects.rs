//! Where a job's objects are found: their cluster, how it serves their kind, and their newest known version.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::{
    jsonpath::StepBudget,
    name::{ApiVersion, Kind},
    step::{Halt, Until},
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Proposal,
    deployer::ApiResource,
    inventory::{Inventory, LocatedObject},
};
use serde_json::Value;

use crate::{
    Job,
    apply_error::ApplyError,
    defined::{KindOn, defined_scopes},
    writer::{ObjectHandle, ObjectWriter},
};
use orangery_cluster::{Cluster, Error, HeldObject, NamespacedName, Observed, unobserved};

/// What is known of an object that is watched.
pub(crate) enum SeenObject {
    /// It is there.
    There(Arc<Value>),
    /// It went while it was waited for: its last version.
    Gone(Arc<Value>),
    /// It is not there.
    Absent,
}

/// A job's objects.
pub(crate) struct JobObjects<'a> {
    pub(crate) job: &'a Job<'a>,
    writer: &'a ObjectWriter,
    /// Whether the kinds have namespaces that the proposal itself defines.
    pub(crate) defined: BTreeMap<KindOn, bool>,
    /// What writes have answered since the controller was called, in the versions of the writes, as far as there is room for it.
    answers: BTreeMap<LocatedObject, HeldObject>,
    /// What readiness checks and exports may cost since the controller was called (C-297).
    pub(crate) steps: StepBudget,
}

impl<'a> JobObjects<'a> {
    pub(crate) fn new(job: &'a Job<'a>, writer: &'a ObjectWriter, proposal: Option<&Proposal>) -> Self {
        let defined = proposal.map(defined_scopes).unwrap_or_default();
        Self { job, writer, defined, answers: BTreeMap::new(), steps: StepBudget::default() }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        matches!(self.writer, ObjectWriter::DryRun(_))
    }

    /// How the kind of an object is served, as discovery has it: no definition of the proposal decides a path (C-167).
    pub(crate) async fn resource(
        &self,
        on: &ClusterRef,
        api_version: &ApiVersion,
        kind: &Kind,
    ) -> Result<(Arc<Cluster>, Arc<ApiResource>), ApplyError> {
        let cluster = self.job.clusters.cluster(on).await?;
        let resource = cluster.served(api_version, kind).await?;
        Ok((cluster, resource))
    }

    /// Whether an object can be where it is said to be. Of a kind that its cluster does not serve yet the proposal's definition
    /// says that; without one, it cannot be anywhere.
    pub(crate) async fn is_placed(&self, located: &LocatedObject) -> Result<(), ApplyError> {
        let unserved = match self.handle(located).await {
            Ok(handle) if handle.is_served => return Ok(()),
            Err(error) if !error.is_not_served() => return Err(error),
            unserved => unserved.map(drop),
        };
        let LocatedObject { on, key } = located;
        match self.defined.get(&(on.clone(), key.api_version.clone(), key.kind.clone())) {
            Some(true) if key.namespace.is_none() => Err(Error::Unlocated { key: Box::new(key.clone()) }.into()),
            Some(_) => Ok(()),
            None => unserved,
        }
    }

    /// The object with its cluster; one of a namespaced kind without a namespace is refused. For a dry run an object of a
    /// kind that is not served does not exist.
    pub(crate) async fn handle(&self, located: &LocatedObject) -> Result<ObjectHandle<'a>, ApplyError> {
        let LocatedObject { on, key } = located;
        let (cluster, resource) = match self.resource(on, &key.api_version, &key.kind).await {
            Err(error) if self.is_dry_run() && error.is_not_served() => {
                return Ok(ObjectHandle::unserved(self.writer, self.job.clusters.cluster(on).await?, located));
            }
            found => found?,
        };
        let namespace = NamespacedName::of(&resource, key)?.namespace;
        Ok(self.handle_of(on, ObjectKey { namespace, ..key.clone() }, cluster, resource))
    }

    /// The same for what is about to be written ([`ObjectHandle::is_as_checked`]).
    pub(crate) async fn handle_to_change(&self, located: &LocatedObject) -> Result<ObjectHandle<'a>, ApplyError> {
        let handle = self.handle(located).await?;
        handle.is_as_checked(located)?;
        Ok(handle)
    }

    /// The object in the version that it is named in or, where that is not served any more, in one that is (C-35). `None`
    /// where the cluster does not serve the kind in any version, or an object without a namespace cannot be of it: a definition
    /// that was made anew may give its kind namespaces (C-191).
    pub(crate) async fn handle_in_any_version(
        &self,
        located: &LocatedObject,
    ) -> Result<Option<ObjectHandle<'a>>, ApplyError> {
        let found = match self.handle(located).await {
            Err(error) if error.is_not_served() => self.handle_in_group(located).await,
            Ok(handle) if !handle.is_served => self.handle_in_group(located).await,
            found => found.map(Some),
        };
        match found {
            Err(error) if error.is_unlocated() => Ok(None),
            found => found,
        }
    }

    async fn handle_in_group(
        &self,
        LocatedObject { on, key }: &LocatedObject,
    ) -> Result<Option<ObjectHandle<'a>>, ApplyError> {
        let cluster = self.job.clusters.cluster(on).await?;
        let Some(resource) = cluster.served_in_group(key.group(), &key.kind).await? else { return Ok(None) };
        let namespace = NamespacedName::of(&resource, key)?.namespace;
        let key = ObjectKey { api_version: resource.api_version.clone(), namespace, ..key.clone() };
        Ok(Some(self.handle_of(on, key, cluster, resource)))
    }

    /// What a write has answered since the controller was called, in the version that is asked for.
    pub(crate) fn answer(&self, located: &LocatedObject) -> Option<&Arc<Value>> {
        let answer = self.answers.get(located)?.object();
        let version = answer.get("apiVersion").and_then(Value::as_str);
        version.is_none_or(|version| located.key.api_version == version).then_some(answer)
    }

    /// Whether an answer of a write of this object is kept.
    pub(crate) fn has_answer(&self, located: &LocatedObject) -> bool {
        self.answers.contains_key(located)
    }

    /// Keeps what a write has answered. Where there is no room for it, a watch or the server is asked instead (C-201).
    ///
    /// # Errors
    /// The cluster cannot be connected to.
    pub(crate) async fn keep(&mut self, located: LocatedObject, object: Arc<Value>) -> Result<(), ApplyError> {
        let cluster = self.job.clusters.cluster(&located.on).await?;
        self.answers.remove(&located);
        let others = self.answers.values().map(HeldObject::bytes).sum();
        self.answers.extend(cluster.keep(object, others).map(|held| (located, held)));
        Ok(())
    }

    /// Says that an object was looked at whose content may be shown.
    pub(crate) fn has_read(&self, LocatedObject { on, key }: &LocatedObject, object: &Value) {
        self.job.clusters.has_read(on, (&key.api_version, &key.kind), object);
    }

    /// The uid of an object that this job has written.
    pub(crate) fn written_uid(&self, located: &LocatedObject, inventory: &Inventory) -> Option<String> {
        let answered = self.answers.get(located).and_then(|answer| answer.object().pointer("/metadata/uid")?.as_str());
        let recorded = inventory.0.get(located).and_then(|entry| entry.uid.as_deref());
        answered.or(recorded).map(str::to_owned)
    }

    /// What it means that an object is not there: what the job has written is waited for in vain (C-107).
    pub(crate) fn missing(&self, located: &LocatedObject, inventory: &Inventory) -> ApplyError {
        match self.written_uid(located, inventory) {
            Some(_) => ApplyError::vanished(&located.key),
            None => Halt::from(located.key.waiting(Until::Exists)).into(),
        }
    }

    /// An object that was found in its cluster.
    pub(crate) fn handle_of(
        &self,
        on: &ClusterRef,
        key: ObjectKey,
        cluster: Arc<Cluster>,
        resource: Arc<ApiResource>,
    ) -> ObjectHandle<'a> {
        let cluster = Arc::new(cluster.of_object());
        let recorded = self.job.recorded;
        ObjectHandle { writer: self.writer, cluster, resource, on: on.clone(), key, is_served: true, recorded }
    }

    /// Whether an object that was seen is still there, as far as is known; watches it from now on.
    pub(crate) fn is_still_there(&self, handle: &ObjectHandle<'_>) -> Result<bool, ApplyError> {
        match self.watch(handle) {
            Ok(object) => Ok(object.is_some()),
            // The first list calls again.
            Err(ApplyError { halt: Halt::Wait(_), .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Watches an object from now on; `None` where it does not exist, a wait where that is not known yet.
    pub(crate) fn watch(&self, handle: &ObjectHandle<'_>) -> Result<Option<Arc<Value>>, ApplyError> {
        self.seen(handle).map(|seen| match seen {
            SeenObject::There(object) => Some(object),
            SeenObject::Gone(_) | SeenObject::Absent => None,
        })
    }

    /// The same, with the last version of an object that went while it was waited for.
    pub(crate) fn seen(&self, handle: &ObjectHandle<'_>) -> Result<SeenObject, ApplyError> {
        match self.job.clusters.watch(&handle.cluster, &handle.resource, &handle.place()) {
            Observed::Present(object) => Ok(SeenObject::There(object)),
            Observed::Gone(last) => Ok(SeenObject::Gone(last)),
            Observed::Absent => Ok(SeenObject::Absent),
            observed @ (Observed::Unknown | Observed::Forbidden(_) | Observed::Unwatched(_)) => {
                Err(unobserved(&handle.cluster, &handle.resource, observed, handle.key.waiting(Until::Exists)).into())
            }
        }
    }
}

/// What is known of a watched object where `otherwise` is what was known before the watch: as long as the first list is
/// not in, that still holds, and the wait is reported as it will be afterwards.
pub(crate) fn or_before<T>(
    seen: Result<T, ApplyError>,
    otherwise: impl FnOnce() -> ApplyError,
) -> Result<T, ApplyError> {
    match seen {
        Err(ApplyError { halt: Halt::Wait(_), .. }) => Err(otherwise()),
        other => other,
    }
}
