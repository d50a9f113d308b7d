//! What can be done with objects: the rules of Kubernetes between a request and the store.
//!
//! Every write reads the latest form, makes the new one, and hands it to the store under the condition that nothing
//! changed meanwhile; a patch starts anew when something did.

mod admit;
mod create;
mod delete;
mod list;
mod patching;
mod prepare;
mod scale;
mod typed;
mod update;
mod watch;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::{
    delete::{DeletionOptions, FOREGROUND, ORPHAN, Propagation},
    list::{ListQuery, listing},
    patching::PatchCall,
    watch::{WatchQuery, watch},
};
use crate::{
    identity::User,
    patch::{Shape, managed::Author},
    refusal::{Refusal, RefusalReason},
    resource::Served,
    store::{DiskError, ObjectVersion, StoreWriteError},
};

/// What happens to fields that a schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectPart {
    Main,
    Status,
    Scale,
    /// The finalizers of a namespace itself.
    Finalizers,
}

impl ObjectPart {
    /// What paths, managed fields and policies call it; empty for the object itself.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalizers => "finalize",
        }
    }
}

/// One write request, but for its body.
#[derive(Clone, Debug)]
pub(crate) struct WriteRequest {
    pub(crate) served: Served,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    pub(crate) part: ObjectPart,
    /// Everything is judged, nothing is written.
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    /// The user that it is of; `None` for the server itself.
    pub(crate) user: Option<User>,
    pub(crate) validation: FieldValidation,
    /// The paths of fields that the body has twice.
    pub(crate) doubled: Vec<String>,
}

/// What a write led to.
#[derive(Debug)]
pub(crate) struct WriteOutcome {
    pub(crate) entry: Arc<ObjectVersion>,
    pub(crate) created: bool,
    /// For the `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl WriteRequest {
    /// The shape of the kind, for merges.
    pub(crate) fn shape(&self) -> Shape<'_> {
        shape(&self.served)
    }

    fn author(&self, now: String) -> Author {
        Author {
            manager: self.manager.clone(),
            api_version: self.served.api_version(),
            subresource: self.part.subresource(),
            status_apart: self.served.version().status,
            now,
        }
    }

    /// Whether a write of the status also writes labels, annotations, finalizers and owners: so it is with most built-in kinds,
    /// and not with custom ones.
    fn status_brings_metadata(&self) -> bool {
        let alone =
            ["APIService", "FlowSchema", "PriorityLevelConfiguration", "ValidatingAdmissionPolicy", "VolumeAttachment"];
        !self.served.is_custom() && !alone.contains(&self.served.kind())
    }

    /// What the store's refusal means for this request.
    pub(crate) fn refused(&self, error: &StoreWriteError, name: &str) -> Refusal {
        let label = self.served.label();
        match error {
            StoreWriteError::Exists => Refusal::already_exists(label, name),
            StoreWriteError::Stale => Refusal::stale(label, name),
            StoreWriteError::NoNamespace => Refusal::not_found("namespaces", &self.namespace),
            StoreWriteError::Terminating => Refusal::terminating(label, name, &self.namespace),
            StoreWriteError::Disk(DiskError { is_full: true, .. }) => {
                Refusal::new(RefusalReason::InsufficientStorage, error.to_string())
            }
            StoreWriteError::Disk(_) => Refusal::new(RefusalReason::Unwritten, error.to_string()),
            StoreWriteError::Closed => Refusal::new(RefusalReason::InternalError, error.to_string()),
        }
    }
}

/// The shape of a kind, for merges.
pub(crate) fn shape(served: &Served) -> Shape<'_> {
    if served.is_custom() {
        Shape::Custom(served.version().schema.as_deref().map(crate::schema::OpenApiSchema::root))
    } else {
        Shape::BUILTIN
    }
}

/// An object that is about to be written, with what its author should know.
#[derive(Debug)]
struct Draft {
    object: Value,
    warnings: Vec<String>,
}
