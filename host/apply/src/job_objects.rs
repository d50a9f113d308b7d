//! Where a job's objects are found: their cluster, how it serves their kind, and their newest known version.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::{
    name::{ApiVersion, Kind, LABEL_LENGTH, is_label},
    step::{Halt, Until},
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Proposal,
    deployer::ApiResource,
    executor::writes,
    inventory::{Inventory, LocatedObject, is_definition},
};
use serde_json::Value;

use crate::{
    Job,
    apply_error::ApplyError,
    writer::{ObjectHandle, ObjectWriter},
};
use orangery_cluster::{Cluster, NamespacedName, Observed, unobserved};

/// Group and version, and kind, on a cluster.
pub(crate) type KindOn = (ClusterRef, ApiVersion, Kind);

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
    /// Kinds that the proposal itself defines: known before discovery is.
    defined: BTreeMap<KindOn, Arc<ApiResource>>,
    /// What writes have answered since the controller was called, in the versions of the writes.
    pub(crate) answers: BTreeMap<LocatedObject, Arc<Value>>,
}

impl<'a> JobObjects<'a> {
    pub(crate) fn new(job: &'a Job<'a>, writer: &'a ObjectWriter, proposal: Option<&Proposal>) -> Self {
        let definitions = proposal.into_iter().flat_map(writes).filter(|(located, _)| is_definition(&located.key));
        let defined = definitions.flat_map(|(located, write)| kinds_of(&located.on, &write.object)).collect();
        Self { job, writer, defined, answers: BTreeMap::new() }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        matches!(self.writer, ObjectWriter::DryRun(_))
    }

    /// How the kind of an object is served.
    pub(crate) async fn resource(
        &self,
        on: &ClusterRef,
        api_version: &ApiVersion,
        kind: &Kind,
    ) -> Result<(Arc<Cluster>, Arc<ApiResource>), ApplyError> {
        let cluster = self.job.clusters.cluster(on).await?;
        let named = (on.clone(), api_version.clone(), kind.clone());
        let resource = match self.defined.get(&named) {
            Some(resource) => Arc::clone(resource),
            None => cluster.served(api_version, kind).await?,
        };
        Ok((cluster, resource))
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
    /// where the cluster does not serve the kind in any version: then there is no such object.
    pub(crate) async fn handle_in_any_version(
        &self,
        located: &LocatedObject,
    ) -> Result<Option<ObjectHandle<'a>>, ApplyError> {
        match self.handle(located).await {
            Err(error) if error.is_not_served() => self.handle_in_group(located).await,
            Ok(handle) if !handle.is_served => self.handle_in_group(located).await,
            found => found.map(Some),
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
        let answer = self.answers.get(located)?;
        let version = answer.get("apiVersion").and_then(Value::as_str);
        version.is_none_or(|version| located.key.api_version == version).then_some(answer)
    }

    /// Says that an object was looked at whose content may be shown.
    pub(crate) fn has_read(&self, LocatedObject { on, key }: &LocatedObject, object: &Value) {
        self.job.clusters.has_read(on, (&key.api_version, &key.kind), object);
    }

    /// The uid of an object that this job has written.
    pub(crate) fn written_uid(&self, located: &LocatedObject, inventory: &Inventory) -> Option<String> {
        let answered = self.answers.get(located).and_then(|answer| answer.pointer("/metadata/uid")?.as_str());
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
        ObjectHandle { writer: self.writer, cluster, resource, on: on.clone(), key, is_served: true }
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
            observed @ (Observed::Unknown | Observed::Forbidden(_)) => {
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

/// The kinds that a CustomResourceDefinition defines, which no server has looked at yet. One that none would take defines nothing: it
/// could lead a kind that is granted to the path of another (C-167).
pub(crate) fn kinds_of(on: &ClusterRef, definition: &Value) -> Vec<(KindOn, Arc<ApiResource>)> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind, plural) = (text("/spec/group"), Kind::from(text("/spec/names/kind")), text("/spec/names/plural"));
    if text("/metadata/name") != format!("{plural}.{group}") || !is_label(plural, LABEL_LENGTH) || !is_group(group) {
        return Vec::new();
    }
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version.get("served") != Some(&Value::Bool(false)));
    served
        .filter_map(|version| version.get("name").and_then(Value::as_str))
        .filter(|version| is_label(version, LABEL_LENGTH))
        .map(|version| {
            let api_version = ApiVersion::from(format!("{group}/{version}"));
            let resource = ApiResource {
                api_version: api_version.clone(),
                kind: kind.clone(),
                plural: plural.to_owned(),
                namespaced: text("/spec/scope") == "Namespaced",
            };
            ((on.clone(), api_version, kind.clone()), Arc::new(resource))
        })
        .collect()
}

/// Groups of the API server itself that have a dot in their names; a definition is of another one.
const OF_THE_SERVER: [&str; 16] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Whether a definition may be of this group.
fn is_group(group: &str) -> bool {
    group.contains('.') && group.split('.').all(|part| is_label(part, LABEL_LENGTH)) && !OF_THE_SERVER.contains(&group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_167_a_definition_that_no_server_would_take_defines_no_path() {
        let defined = |name: &str, group: &str, plural: &str, version: &str| {
            let definition = json!({"metadata": {"name": name}, "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": "X", "plural": plural}, "versions": [{"name": version}, {"name": "v2", "served": false}]}});
            let kinds = kinds_of(&ClusterRef::Target, &definition).into_iter();
            kinds.map(|(_, resource)| (resource.api_version.to_string(), resource.plural.clone())).collect::<Vec<_>>()
        };
        let sound = [("example.com/v1".to_owned(), "xs".to_owned())];
        assert_eq!(defined("xs.example.com", "example.com", "xs", "v1"), sound);
        for (name, group, plural, version) in [
            ("other.example.com", "example.com", "xs", "v1"),
            ("../secrets.example.com", "example.com", "../secrets", "v1"),
            ("xs.example.com/..", "example.com/..", "xs", "v1"),
            ("xs.example.com", "example.com", "xs", "v1/../v2"),
            ("xs.", "", "xs", "v1"),
            ("deployments.apps", "apps", "deployments", "v1"),
            ("clusterrolebindings.rbac.authorization.k8s.io", "rbac.authorization.k8s.io", "clusterrolebindings", "v1"),
        ] {
            assert_eq!(defined(name, group, plural, version), [], "{name}");
        }
    }
}
