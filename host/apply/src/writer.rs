//! How the objects of a proposal are written: by the server, or tried only. Everything that reads or writes an object of a
//! proposal goes through here, so that a run and a dry run take one path.

use orangery_proposal::deployer::ApiResource;
use serde_json::Value;

use crate::{Error, cluster::Deletion, dry_run::Trials, site::Spot, watch::Observed};

/// Who writes.
pub(crate) enum ObjectWriter {
    /// The server.
    Server,
    /// Nobody: writes are tried and remembered.
    DryRun(Trials),
}

impl Spot<'_> {
    /// The object; `None` where it does not exist.
    pub(crate) async fn get(&self) -> Result<Option<Value>, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.get(&self.resource, &self.key).await,
            ObjectWriter::DryRun(trials) => trials.get(self).await,
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
            ObjectWriter::DryRun(trials) => trials.create(self, object).await,
        }
    }

    /// Server-side apply, in the name of another tool where a manager is named.
    pub(crate) async fn apply(&self, manager: Option<&str>, object: &Value) -> Result<Value, Error> {
        match (self.writer, manager) {
            (ObjectWriter::Server, None) => self.cluster.apply(&self.resource, &self.key, object).await,
            (ObjectWriter::Server, Some(manager)) => {
                self.cluster.apply_as(manager, &self.resource, &self.key, object).await
            }
            (ObjectWriter::DryRun(trials), manager) => trials.apply(self, manager, object).await,
        }
    }

    /// A PUT; the object carries the resource version that was read.
    pub(crate) async fn replace(&self, object: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.replace(&self.resource, &self.key, object).await,
            ObjectWriter::DryRun(trials) => trials.replace(self, object).await,
        }
    }

    /// A JSON merge patch.
    pub(crate) async fn patch(&self, patch: &Value) -> Result<Value, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.patch(&self.resource, &self.key, patch).await,
            ObjectWriter::DryRun(trials) => trials.patch(self, patch).await,
        }
    }

    pub(crate) async fn delete(&self) -> Result<Deletion, Error> {
        match self.writer {
            ObjectWriter::Server => self.cluster.delete(&self.resource, &self.key).await,
            ObjectWriter::DryRun(trials) => trials.delete(self).await,
        }
    }

    /// Whether the cluster serves the kind: a dry run goes on where a definition may still come.
    pub(crate) fn is_served(&self) -> bool {
        !self.resource.plural.is_empty()
    }
}

/// A kind that the cluster does not serve yet.
pub(crate) fn unserved(api_version: &str, kind: &str, namespaced: bool) -> ApiResource {
    ApiResource { api_version: api_version.to_owned(), kind: kind.to_owned(), plural: String::new(), namespaced }
}
