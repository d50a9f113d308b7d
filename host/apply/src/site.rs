//! Where a job's objects are found: their cluster, how it serves their kind, and their newest known version.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::step::Halt;
use orangery_proposal::{
    ClusterRef, ObjectKey, Proposal,
    deployer::ApiResource,
    inventory::{Located, is_definition},
    item::writes,
};
use serde_json::Value;

use crate::{
    Cluster, Error, Job,
    error::Setback,
    set::unseen,
    watch::{Place, Sight},
};

/// Group and version, and kind, on a cluster.
type KindOn = (ClusterRef, String, String);

/// A job's objects.
pub(crate) struct Site<'a> {
    pub(crate) job: &'a Job<'a>,
    /// Kinds that the proposal itself defines: known before discovery is.
    defined: BTreeMap<KindOn, Arc<ApiResource>>,
    /// What writes of this look have answered.
    pub(crate) answers: BTreeMap<Located, Arc<Value>>,
}

/// An object with its cluster and the way it is served.
pub(crate) struct Spot {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) resource: Arc<ApiResource>,
    pub(crate) key: ObjectKey,
}

impl Spot {
    pub(crate) fn place(&self) -> Place {
        Place { namespace: self.key.namespace.clone(), name: self.key.name.clone() }
    }

    /// The object's name for messages, with its namespace.
    pub(crate) fn name(&self) -> String {
        shown(&self.key)
    }

    pub(crate) async fn get(&self) -> Result<Option<Value>, Error> {
        self.cluster.get(&self.resource, &self.key).await
    }
}

/// The name of an object for messages, with its namespace.
pub(crate) fn shown(key: &ObjectKey) -> String {
    match &key.namespace {
        Some(namespace) => format!("{namespace}/{}", key.name),
        None => key.name.clone(),
    }
}

impl<'a> Site<'a> {
    pub(crate) fn new(job: &'a Job<'a>, proposal: Option<&Proposal>) -> Self {
        let definitions = proposal.into_iter().flat_map(writes).filter(|(located, _)| is_definition(&located.key));
        let defined = definitions.flat_map(|(located, write)| kinds_of(&located.on, &write.object)).collect();
        Self { job, defined, answers: BTreeMap::new() }
    }

    /// How the kind of an object is served.
    pub(crate) async fn resource(
        &self,
        on: &ClusterRef,
        api_version: &str,
        kind: &str,
    ) -> Result<(Arc<Cluster>, Arc<ApiResource>), Setback> {
        let cluster = self.job.clusters.cluster(on).await?;
        let named = (on.clone(), api_version.to_owned(), kind.to_owned());
        let resource = match self.defined.get(&named) {
            Some(resource) => Arc::clone(resource),
            None => cluster.served(api_version, kind).await?,
        };
        Ok((cluster, resource))
    }

    /// The object with its cluster; an object that is not where its kind lives is refused.
    pub(crate) async fn spot(&self, located: &Located) -> Result<Spot, Setback> {
        let Located { on, key } = located;
        let (cluster, resource) = self.resource(on, &key.api_version, &key.kind).await?;
        Place::of(&resource, key)?;
        Ok(Spot { cluster, resource, key: key.clone() })
    }

    /// Whether an object that was seen is still there, as far as is known; watches it from now on.
    pub(crate) fn is_still_there(&self, spot: &Spot) -> Result<bool, Setback> {
        match self.watch(spot) {
            Ok(object) => Ok(object.is_some()),
            // The first list calls again.
            Err(Setback { halt: Halt::Wait(_), .. }) => Ok(true),
            Err(setback) => Err(setback),
        }
    }

    /// Watches an object from now on; `None` where it does not exist, a wait where that is not known yet.
    pub(crate) fn watch(&self, spot: &Spot) -> Result<Option<Arc<Value>>, Setback> {
        match self.job.clusters.watch(&spot.cluster, &spot.resource, &spot.place()) {
            Sight::Present(object) => Ok(Some(object)),
            Sight::Absent => Ok(None),
            sight @ (Sight::Unknown | Sight::Blind(_)) => {
                Err(unseen(&spot.cluster, &spot.resource, sight, &spot.name()))
            }
        }
    }
}

/// What is known of a watched object where `otherwise` is what was known before the watch: as long as the first list is
/// not in, that still holds, and whoever waits is told the same as afterwards.
pub(crate) fn or_before(
    seen: Result<Option<Arc<Value>>, Setback>,
    otherwise: impl FnOnce() -> Setback,
) -> Result<Option<Arc<Value>>, Setback> {
    match seen {
        Err(Setback { halt: Halt::Wait(_), .. }) => Err(otherwise()),
        other => other,
    }
}

/// The kinds that a CustomResourceDefinition defines.
fn kinds_of(on: &ClusterRef, definition: &Value) -> Vec<(KindOn, Arc<ApiResource>)> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version.get("served") != Some(&Value::Bool(false)));
    served
        .filter_map(|version| version.get("name").and_then(Value::as_str))
        .map(|version| {
            let api_version = format!("{group}/{version}");
            let resource = ApiResource {
                api_version: api_version.clone(),
                kind: kind.to_owned(),
                plural: text("/spec/names/plural").to_owned(),
                namespaced: text("/spec/scope") == "Namespaced",
            };
            ((on.clone(), api_version, kind.to_owned()), Arc::new(resource))
        })
        .collect()
}
