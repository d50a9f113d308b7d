//! The components that serve the types of deploy items, templates and gate expressions. Implemented by `plugin`.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{gate::GateResult, template_engine::TemplateEngine};
use orangery_core::{error::Fault, name::Namespace, port::BoxFuture, workflow::GateKind};
use orangery_proposal::deployer::{Deployer, PluginIdentity};

/// What a gate expression asks of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct GateQuestion {
    /// For which namespace is asked; `None` outside of a cluster. Namespaces take turns (C-43).
    pub namespace: Option<Namespace>,
    /// The deploy item.
    pub item: String,
    /// Which of its gate expressions.
    pub gate: GateKind,
    /// What the condition tells the component.
    pub config: Value,
    /// The values that an expression would have as variables: imports, items, item and objects.
    pub inputs: Map<String, Value>,
    /// When it is asked.
    pub now: jiff::Timestamp,
}

/// A component that answers gate expressions.
pub trait GateEngine: Send + Sync {
    /// Its identity.
    fn identity(&self) -> &PluginIdentity;
    /// The memory that one call may take, in MiB.
    fn memory_mib(&self) -> u64 {
        0
    }
    /// Whether the gate expression holds. A trap, a limit met and an unusable component are faults.
    fn evaluate<'a>(&'a self, question: &'a GateQuestion) -> BoxFuture<'a, Result<GateResult, Fault>>;
}

/// How many calls of components a namespace may have under way at once (C-53). Implemented by `controllers`, which knows the
/// policies.
pub trait CallQuotas: Send + Sync {
    /// A place for a call that may take so much memory, when there is one; it is free again when the answer is dropped. The
    /// fault says which quota has none for long.
    fn enter<'a>(
        &'a self,
        namespace: &'a Namespace,
        by: &'a PluginIdentity,
        memory_mib: u64,
    ) -> BoxFuture<'a, Result<Box<dyn Send + Sync>, Fault>>;
}

/// Which component serves a deploy item type, a template type or a gate type.
pub trait Plugins: Send + Sync {
    /// The deployer of an item type; `None` where no component claims it: such items belong to external deployers.
    fn deployer(&self, item_type: &str) -> Option<Arc<dyn Deployer>>;
    /// The engine of a template type, such as `Jinja`.
    fn template_engine(&self, template_type: &str) -> Option<Arc<dyn TemplateEngine>>;
    /// The engine that an execution of type `Wasm` brings along. `name` is where the component comes from: a file of the
    /// blueprint, or a reference. Whether the bytes are an engine is found out when it is called.
    fn bundled_engine(&self, name: &str, bytes: Vec<u8>) -> Arc<dyn TemplateEngine>;
    /// The memory that one call of such an engine may take, in MiB.
    fn bundled_memory_mib(&self) -> u64 {
        0
    }
    /// Calls wait for a place under these quotas from now on.
    fn limit_calls(&self, _quotas: Arc<dyn CallQuotas>) {}
    /// The template types served, sorted, for messages.
    fn template_types(&self) -> Vec<String>;
    /// The component of a gate type.
    fn gate_engine(&self, _condition_type: &str) -> Option<Arc<dyn GateEngine>> {
        None
    }
    /// The condition types served, sorted, for messages.
    fn gate_types(&self) -> Vec<String> {
        Vec::new()
    }
}
