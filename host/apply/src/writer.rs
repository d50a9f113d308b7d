//! How the objects of a proposal are written: by the server, or tried only. Everything that reads or writes an object of a
//! proposal goes through here, so that a run and a dry run take one path.

use std::sync::Arc;

use orangery_proposal::{ClusterRef, ObjectKey, deployer::ApiResource, inventory::LocatedObject};
use serde_json::Value;

use crate::trials::{Trials, Tried};
use orangery_cluster::{Cluster, Deletion, Error, Observed, Place, Precondition};

/// What carries writes out.
pub(crate) enum ObjectWriter {
    /// The server.
    Server,
    /// Nobody: writes are tried and remembered.
    DryRun(Trials),
}

/// An object with its cluster, the way it is served and who writes it.
pub(crate) struct Spot<'a> {
    pub(crate) writer: &'a ObjectWriter,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) resource: Arc<ApiResource>,
    pub(crate) on: ClusterRef,
    pub(crate) key: ObjectKey,
    /// Whether the cluster serves the kind: a dry run goes on where a definition may still come.
    pub(crate) is_served: bool,
}

impl<'a> Spot<'a> {
    /// An object of a kind that the cluster does not serve yet.
    pub(crate) fn unserved(writer: &'a ObjectWriter, cluster: Arc<Cluster>, located: &LocatedObject) -> Self {
        let LocatedObject { on, key } = located.clone();
        let resource = ApiResource {
            api_version: key.api_version.clone(),
            kind: key.kind.clone(),
            plural: String::new(),
            namespaced: key.namespace.is_some(),
        };
        Self { writer, cluster, resource: Arc::new(resource), on, key, is_served: false }
    }

    pub(crate) fn place(&self) -> Place {
        Place { namespace: self.key.namespace.clone(), name: self.key.name.clone() }
    }
}

impl Spot<'_> {
    /// The object; `None` where it does not exist.
    pub(crate) async fn get(&self) -> Result<Option<Value>, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.get(&self.resource, &self.key).await,
            ObjectWriter::DryRun(trials) => trials.get(&self.tried()).await,
        }
    }

    /// What a watch that lives knows of the object; nothing in a dry run, which goes by its own trials.
    pub(crate) fn observed(&self) -> Option<Observed> {
        match self.writer {
            ObjectWriter::Server => self.cluster.watches().observed(&self.resource, &self.place()),
            ObjectWriter::DryRun(_) => None,
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.create(&self.resource, &self.key, object).await,
            ObjectWriter::DryRun(trials) => trials.create(&self.tried(), object).await,
        }
    }

    /// Server-side apply, in the name of another tool where a manager is named.
    pub(crate) async fn apply(&self, manager: Option<&str>, object: &Value) -> Result<Value, Error> {
        match (self.writer, manager) {
            (ObjectWriter::Server, None) => self.cluster.apply(&self.resource, &self.key, object).await,
            (ObjectWriter::Server, Some(manager)) => {
                self.cluster.apply_as(manager, &self.resource, &self.key, object).await
            }
            (ObjectWriter::DryRun(trials), manager) => trials.apply(&self.tried(), manager, object).await,
        }
    }

    /// A PUT; the object carries the resource version that was read.
    pub(crate) async fn replace(&self, object: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.replace(&self.resource, &self.key, object).await,
            ObjectWriter::DryRun(trials) => trials.replace(&self.tried(), object).await,
        }
    }

    /// A JSON merge patch.
    pub(crate) async fn patch(&self, patch: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.patch(&self.resource, &self.key, patch).await,
            ObjectWriter::DryRun(trials) => trials.patch(&self.tried(), patch).await,
        }
    }

    /// Deletes the object as it was read.
    pub(crate) async fn delete(&self, read: &Value) -> Result<Deletion, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.delete(&self.resource, &self.key, &Precondition::of(read)).await,
            ObjectWriter::DryRun(trials) => trials.delete(&self.tried()).await,
        }
    }

    fn tried(&self) -> Tried<'_> {
        let resource = self.is_served.then_some(self.resource.as_ref());
        Tried {
            cluster: &self.cluster,
            resource,
            located: LocatedObject { on: self.on.clone(), key: self.key.clone() },
        }
    }
}
