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
    delete::{Deletion, FOREGROUND, ORPHAN, Propagation},
    list::{ListQuery, listing},
    patching::PatchCall,
    watch::{WatchQuery, watch},
};
use crate::{
    patch::{Shape, managed::Author},
    refusal::Refusal,
    resource::Served,
    store::{Entry, WriteError},
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
pub(crate) enum Part {
    Main,
    Status,
    Scale,
}

impl Part {
    /// What paths, managed fields and policies call it; empty for the object itself.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Scale => "scale",
        }
    }
}

/// One write request, but for its body.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) served: Served,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    pub(crate) part: Part,
    /// Everything is judged, nothing is written.
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
}

/// What a write led to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) entry: Arc<Entry>,
    pub(crate) created: bool,
    /// For the `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl Call {
    /// The shape of the kind, for merges.
    pub(crate) fn shape(&self) -> Shape<'_> {
        shape(&self.served)
    }

    fn author(&self, now: String) -> Author {
        Author {
            manager: self.manager.clone(),
            api_version: self.served.api_version(),
            subresource: self.part.subresource(),
            now,
        }
    }

    /// What the store's refusal means for this request.
    pub(crate) fn refused(&self, error: &WriteError, name: &str) -> Refusal {
        let label = self.served.label();
        match error {
            WriteError::Exists => Refusal::already_exists(label, name),
            WriteError::Stale => Refusal::stale(label, name),
            WriteError::NoNamespace => Refusal::not_found("namespaces", &self.namespace),
            WriteError::Terminating => Refusal::terminating(label, name, &self.namespace),
            WriteError::Disk(_) => Refusal::new(crate::refusal::Reason::InternalError, error.to_string()),
        }
    }
}

/// The shape of a kind, for merges.
pub(crate) fn shape(served: &Served) -> Shape<'_> {
    if served.is_custom() {
        Shape::Custom(served.version().schema.as_deref().map(crate::crd::Schema::root))
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
