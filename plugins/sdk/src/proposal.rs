//! Shorthands for the values that most proposals are made of.

use std::fmt;

use serde_json::Value;

use crate::{
    ClusterRef, Completion, Fault, Gate, Item, Next, ObjectKey, ObjectWrite, Ownership, Problem, Proposal, Stage, Write,
};

/// The code of a configuration that does not decode or is not valid (`docs/wire.md` §3.3).
pub const CONFIGURATION_PROBLEM: &str = "ERR_CONFIGURATION_PROBLEM";

/// The code of what should not be.
pub const INTERNAL_PROBLEM: &str = "ERR_INTERNAL_PROBLEM";

impl Problem {
    /// A problem of the configuration, with the place as a JSON pointer; empty for the whole of it.
    pub fn configuration(at: impl Into<String>, message: impl Into<String>) -> Self {
        let at = Some(at.into()).filter(|at| !at.is_empty());
        Problem { code: CONFIGURATION_PROBLEM.to_owned(), message: message.into(), at }
    }
}

impl From<Problem> for Fault {
    /// Only another configuration helps.
    fn from(problem: Problem) -> Self {
        Fault::Invalid(problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{} (at {at})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Item {
    /// The provider configuration as a document.
    ///
    /// # Errors
    ///
    /// [`Fault::Invalid`] where the host sent something else than JSON.
    pub fn config(&self) -> Result<Value, Fault> {
        serde_json::from_str(&self.config)
            .map_err(|error| Problem::configuration("", format!("the configuration is not JSON: {error}")).into())
    }
}

impl ObjectWrite {
    /// An object of the target cluster that belongs to the item.
    pub fn new(object: &Value, how: Write) -> Self {
        ObjectWrite {
            object: object.to_string(),
            inject: Vec::new(),
            on: ClusterRef::Target,
            how,
            owned: Ownership::Managed,
            at_creation: None,
            before_deletion: None,
        }
    }

    /// An object of the target cluster that belongs to the item, written by server-side apply.
    pub fn apply(object: &Value) -> Self {
        ObjectWrite::new(object, Write::Apply)
    }
}

impl Stage {
    /// Writes, then a gate, within what is left of the item's deadline.
    pub fn new(name: impl Into<String>, writes: Vec<ObjectWrite>, gate: Gate) -> Self {
        Stage { name: name.into(), removals: Vec::new(), writes, gate, timeout: None }
    }
}

impl Proposal {
    /// Stages and what follows them; nothing to recover, no status, the default orders.
    pub fn new(stages: Vec<Stage>, next: Next) -> Self {
        Proposal { stages, next, recover: None, status: None, deletion_order: Vec::new(), pruning_order: Vec::new() }
    }

    /// Stages after which the item succeeds.
    pub fn finish(stages: Vec<Stage>, completion: Completion) -> Self {
        Proposal::new(stages, Next::Finish(completion))
    }
}

impl ObjectKey {
    /// The identity of an object; `None` where `apiVersion`, `kind` or `metadata.name` is no text or empty.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        Some(ObjectKey {
            api_version: text("/apiVersion")?.to_owned(),
            kind: text("/kind")?.to_owned(),
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: text("/metadata/name")?.to_owned(),
        })
    }
}
