//! How the objects of a proposal are written: by the server, or in a dry run only. Everything that reads or writes an object of a
//! proposal goes through here, so that a run and a dry run take one path.

use std::{sync::Arc, time::Duration};

use orangery_proposal::{ClusterRef, ObjectKey, deployer::ApiResource, health::has_stopped, inventory::LocatedObject};
use serde_json::Value;

use crate::{
    apply_error::ApplyError,
    dry_run_objects::{DryRunObjects, DryRunRequest},
    recorder::{Recorded, WriteAnswer, WriteVerb},
};
use orangery_cluster::{Cluster, Deletion, Error, NamespacedName, Observed, Precondition};

/// What carries writes out.
pub(crate) enum ObjectWriter {
    /// The server.
    Server,
    /// Nobody: writes are dry runs, and remembered.
    DryRun(DryRunObjects),
}

/// An object with its cluster, the way it is served and who writes it.
pub(crate) struct ObjectHandle<'a> {
    pub(crate) writer: &'a ObjectWriter,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) resource: Arc<ApiResource>,
    pub(crate) on: ClusterRef,
    pub(crate) key: ObjectKey,
    /// Whether the cluster serves the kind: a dry run goes on where a definition may still come.
    pub(crate) is_served: bool,
    /// Where writes that are sent are noted.
    pub(crate) recorded: Option<Recorded<'a>>,
}

impl<'a> ObjectHandle<'a> {
    /// An object of a kind that the cluster does not serve yet.
    pub(crate) fn unserved(writer: &'a ObjectWriter, cluster: Arc<Cluster>, located: &LocatedObject) -> Self {
        let LocatedObject { on, key } = located.clone();
        let resource = ApiResource {
            api_version: key.api_version.clone(),
            kind: key.kind.clone(),
            plural: String::new(),
            namespaced: key.namespace.is_some(),
        };
        Self { writer, cluster, resource: Arc::new(resource), on, key, is_served: false, recorded: None }
    }

    /// What was checked as an object of a namespace is not changed as one of none: a kind that was not served when it was checked
    /// may be of either sort (C-78).
    pub(crate) fn is_as_checked(&self, located: &LocatedObject) -> Result<(), ApplyError> {
        let has_moved = located.key.namespace.is_some() && !self.resource.namespaced;
        if has_moved { Err(ApplyError::without_namespace(&located.key)) } else { Ok(()) }
    }

    /// Whether the server deletes single objects of the kind; one that it does not serve yet has none (C-199).
    pub(crate) async fn is_deletable(&self) -> Result<bool, Error> {
        if self.is_served { self.cluster.is_deletable(&self.resource).await } else { Ok(true) }
    }

    pub(crate) fn place(&self) -> NamespacedName {
        NamespacedName { namespace: self.key.namespace.clone(), name: self.key.name.clone() }
    }
}

impl ObjectHandle<'_> {
    /// The object; `None` where it does not exist.
    pub(crate) async fn get(&self) -> Result<Option<Value>, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.get(&self.resource, &self.key).await,
            ObjectWriter::DryRun(objects) => objects.get(&self.request()).await,
        }
    }

    /// What a watch that lives knows of the object; nothing in a dry run, which goes by its own objects.
    pub(crate) fn observed(&self) -> Option<Observed> {
        match self.writer {
            ObjectWriter::Server => self.cluster.watches().observed(&self.resource, &self.place()),
            ObjectWriter::DryRun(_) => None,
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => {
                let request = self.cluster.create(&self.resource, &self.key, object);
                self.noted(WriteVerb::Create, None, request).await
            }
            ObjectWriter::DryRun(objects) => objects.create(&self.request(), object).await,
        }
    }

    /// Server-side apply, in the name of another tool where a manager is named. `read` is the object, where it was read.
    pub(crate) async fn apply(
        &self,
        manager: Option<&str>,
        read: Option<&Value>,
        object: &Value,
    ) -> Result<Value, Error> {
        match (self.writer, manager) {
            (ObjectWriter::Server, None) => {
                let request = self.cluster.apply(&self.resource, &self.key, object);
                self.noted(WriteVerb::Apply, read, request).await
            }
            (ObjectWriter::Server, Some(manager)) => {
                let request = self.cluster.apply_as(manager, &self.resource, &self.key, object);
                self.noted(WriteVerb::Apply, read, request).await
            }
            (ObjectWriter::DryRun(objects), manager) => objects.apply(&self.request(), manager, object).await,
        }
    }

    /// A PUT; the object carries the resource version that was read.
    pub(crate) async fn replace(&self, read: &Value, object: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => {
                let request = self.cluster.replace(&self.resource, &self.key, object);
                self.noted(WriteVerb::Replace, Some(read), request).await
            }
            ObjectWriter::DryRun(objects) => objects.replace(&self.request(), object).await,
        }
    }

    /// A JSON merge patch.
    pub(crate) async fn patch(&self, read: &Value, patch: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => {
                let request = self.cluster.patch(&self.resource, &self.key, patch);
                self.noted(WriteVerb::Patch, Some(read), request).await
            }
            ObjectWriter::DryRun(objects) => objects.patch(&self.request(), patch).await,
        }
    }

    /// Deletes the object as it was read.
    pub(crate) async fn delete(&self, read: &Value) -> Result<Deletion, Error> {
        match self.writer {
            ObjectWriter::Server => {
                let precondition = Precondition::of(read);
                // A pod in which nothing runs needs no time to end in.
                let grace = has_stopped(read).then_some(Duration::ZERO);
                let request = self.cluster.delete(&self.resource, &self.key, &precondition, grace);
                self.noted(WriteVerb::Delete, Some(read), request).await
            }
            ObjectWriter::DryRun(objects) => objects.delete(&self.request()).await,
        }
    }

    /// The object was to be deleted, and is not there.
    pub(crate) fn found_gone(&self) {
        if let (ObjectWriter::Server, Some(recorded)) = (self.writer, self.recorded) {
            recorded.found_gone((&self.on, &self.key));
        }
    }

    /// Sends a write that is noted, where writes are on record.
    async fn noted<T: WriteAnswer>(
        &self,
        verb: WriteVerb,
        read: Option<&Value>,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(recorded) = self.recorded else { return request.await };
        let noted = recorded.note((&self.on, &self.key), verb, read);
        let answer = request.await;
        recorded.answered(noted, &answer);
        answer
    }

    fn request(&self) -> DryRunRequest<'_> {
        let resource = self.is_served.then_some(self.resource.as_ref());
        DryRunRequest {
            cluster: &self.cluster,
            resource,
            located: LocatedObject { on: self.on.clone(), key: self.key.clone() },
        }
    }
}
