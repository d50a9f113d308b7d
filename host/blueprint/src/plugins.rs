//! The components that serve the types of deploy items, templates and gate expressions. Implemented by `plugin`.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{gate::GateResult, template_engine::TemplateEngine};
use orangery_core::{error::Fault, name::Namespace, plan::plugin::ClaimRank, port::BoxFuture, workflow::GateKind};
use orangery_ocm::Artifact;
use orangery_proposal::deployer::{Deployer, PluginIdentity};

/// What a component that evaluates gate expressions is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateSubject {
    /// A gate expression of an item.
    Expression(GateKind),
    /// A rule of a policy over what an item is about to write (C-363).
    ItemPlan,
    /// The same over what a whole job is about to write.
    JobPlan,
}

impl GateSubject {
    /// Its word in cases and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expression(kind) => kind.name(),
            Self::ItemPlan => "itemPlan",
            Self::JobPlan => "jobPlan",
        }
    }
}

/// What a gate expression, or a rule, asks of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct GateQuestion {
    /// For which namespace is asked; `None` outside of a cluster. Namespaces take turns (C-43).
    pub namespace: Option<Namespace>,
    /// The deploy item; empty where a whole job is asked about.
    pub item: String,
    /// Which of its gate expressions, or which rule.
    pub gate: GateSubject,
    /// What the gate expression, or the rule, tells the component.
    pub config: Value,
    /// The values that an expression would have as variables: imports, items, item and objects; of a rule those of rules.
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
    /// The deployer of an item type in a namespace; `None` where no component claims it: such items belong to external deployers.
    fn deployer(&self, item_type: &str, namespace: &Namespace) -> Option<Arc<dyn Deployer>>;
    /// The engine of a template type, such as `Jinja`, in a namespace; `None` stands for outside of a cluster.
    fn template_engine(&self, template_type: &str, namespace: Option<&Namespace>) -> Option<Arc<dyn TemplateEngine>>;
    /// The engine that an execution of type `Wasm` brings along. `name` is where the component comes from: a file of the
    /// blueprint, or a reference. It is read when the engine is called; whether it is one is found out then.
    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine>;
    /// The memory that one call of such an engine may take, in MiB.
    fn bundled_memory_mib(&self) -> u64 {
        0
    }
    /// Calls wait for a place under these quotas from now on.
    fn limit_calls(&self, _quotas: Arc<dyn CallQuotas>) {}
    /// The template types served, sorted, for messages.
    fn template_types(&self) -> Vec<String>;
    /// The component of a gate type in a namespace.
    fn gate_engine(&self, _condition_type: &str, _namespace: &Namespace) -> Option<Arc<dyn GateEngine>> {
        None
    }
    /// What installs components while the host runs; `None` where none can be.
    fn installer(&self) -> Option<&dyn PluginInstaller> {
        None
    }
    /// The condition types served, sorted, for messages.
    fn gate_types(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A component that is to be installed.
#[derive(Clone, Debug)]
pub struct PluginInstallation {
    /// Its name among those that are installed.
    pub plugin: String,
    /// What a registration says of it: `version`, one of `deployer`, `template` and `gate`, `grants`, `limits`.
    pub registration: Value,
    /// The component's bytes.
    pub content: Vec<u8>,
    /// Whether its owner has named these bytes, by their digest or by who signed them (C-77).
    pub is_pinned: bool,
}

/// For whom an installed component is, and how it stands among others that claim its types (C-261).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// Patterns of the namespaces that it is for; none stands for all.
    pub patterns: Vec<String>,
    /// How it stands.
    pub rank: ClaimRank,
}

/// What a component is that was installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledInterfaces {
    /// `sha256:…` of its bytes.
    pub digest: String,
    /// What it exports.
    pub exports: Vec<String>,
    /// What it imports.
    pub imports: Vec<ImportOffer>,
}

/// One import of a component, against what it is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOffer {
    /// The interface.
    pub interface: String,
    /// `harmless`, `granted`, `notGranted`, `unserved` or `unknown`.
    pub offer: &'static str,
    /// The field of the grants that is missing.
    pub grant: Option<&'static str>,
}

/// A component that is tried beside another one of its kind.
#[derive(Clone)]
pub enum CandidateComponent {
    /// It plans deploy items.
    Deployer(Arc<dyn Deployer>),
    /// It renders templates.
    TemplateEngine(Arc<dyn TemplateEngine>),
    /// It answers gate expressions.
    GateEngine(Arc<dyn GateEngine>),
}

impl CandidateComponent {
    /// Its identity.
    pub fn identity(&self) -> &PluginIdentity {
        match self {
            Self::Deployer(deployer) => deployer.identity(),
            Self::TemplateEngine(engine) => engine.identity(),
            Self::GateEngine(engine) => engine.identity(),
        }
    }
}

/// A type that a component claims, and who serves it instead everywhere.
pub type ClaimedType = (String, Option<String>);

/// Installs components while the host runs. Calls under way end with the component that they began with.
pub trait PluginInstaller: Send + Sync {
    /// Compiles a component and has it serve its types from now on. On an error everything stays as it was.
    fn install(
        &self,
        installation: PluginInstallation,
        terms: ClaimTerms,
    ) -> BoxFuture<'_, Result<InstalledInterfaces, Fault>>;
    /// Compiles a component that is tried beside the one of its name. It serves nothing.
    fn beside(&self, installation: PluginInstallation) -> BoxFuture<'_, Result<CandidateComponent, Fault>>;
    /// Claims the types of a component that is not there yet: whoever calls it is told why, until it is. Nothing where a version of
    /// it is there.
    ///
    /// # Errors
    /// The registration cannot be used.
    fn announce(&self, name: &str, registration: &Value, why: Fault, terms: ClaimTerms) -> Result<(), Fault>;
    /// Has other terms count for one that is there or announced.
    fn arrange(&self, name: &str, terms: ClaimTerms);
    /// Takes it away.
    fn remove(&self, name: &str);
    /// Whether it, and nobody else, serves an item type in a namespace.
    fn serves(&self, plugin: &str, item_type: &str, namespace: &Namespace) -> bool;
    /// The types that it claims; empty where it is not there.
    fn claimed(&self, name: &str) -> Vec<ClaimedType>;
}
