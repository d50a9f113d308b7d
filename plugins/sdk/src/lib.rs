//! What the author of a deployer, a template engine or a gate expression needs: one trait, one macro.
//!
//! A deployer never writes: it reads what it was granted, and answers a [`Proposal`]; the host carries it out. Its logic is
//! plain Rust, tested natively against [`cases`]; [`export_deployer!`] makes a component of it on `wasm32-wasip2`.
//!
//! ```
//! use orangery_sdk::{Completion, Deployer, Fault, Gate, Host, Item, ObjectWrite, Proposal, Stage};
//!
//! struct Hello;
//!
//! impl Deployer for Hello {
//!     fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
//!         let config_map = serde_json::json!({
//!             "apiVersion": "v1",
//!             "kind": "ConfigMap",
//!             "metadata": {"name": item.name, "namespace": "default"},
//!         });
//!         let stage = Stage::new("objects", vec![ObjectWrite::apply(&config_map)], Gate::Accepted);
//!         Ok(Proposal::finish(vec![stage], Completion::default()))
//!     }
//! }
//!
//! orangery_sdk::export_deployer!(Hello);
//! ```

pub mod bindings;
#[cfg(not(target_family = "wasm"))]
pub mod cases;
mod deployer;
mod gate;
mod json;
pub mod lenient;
mod proposal;
#[cfg(not(target_family = "wasm"))]
pub mod recorded;
mod template;

pub use bindings::{
    deployer::{
        exports::orangery::deployer::deploy::{Failure as StageFailure, Item},
        orangery::deployer::{
            cluster::ApiResource,
            log::Level,
            plan::{
                Completion, DeletionGroup, DeletionScope, ExportRule, ExportSource, Follow, Gate, Injection, Next,
                ObjectRemoval, ObjectWrite, Ownership, PathSource, Proposal, Readiness, ReadinessRule, Requirement,
                Scope, SecretContent, Stage, Write,
            },
            types::{ClusterRef, Fault, ObjectKey, Problem, Selection},
        },
    },
    gate::exports::orangery::gate::gate::{Answer, GateKind, GateQuestion, Verdict},
    template::exports::orangery::template::{
        check::{Findings, Reference as InputReference},
        template::{
            Execution, Failure as RenderFailure, InputPath, InputStep, Output, Rendered, Request as RenderRequest,
        },
    },
};
pub use deployer::{Artifact, Artifacts, Cluster, Deployer, DeployerWithUninstall, Host, Imports, Log};
pub use gate::GateEngine;
pub use proposal::{CONFIGURATION_PROBLEM, INTERNAL_PROBLEM};
pub use template::{Components, Engine, Files, Kubeconfigs, Rng, TemplateHost};

/// Makes a component of a [`Deployer`]: `export_deployer!(Mine);` once per crate, whose type is `cdylib`.
///
/// On the build machine it expands to nothing, so that the crate links and tests like any other.
#[macro_export]
macro_rules! export_deployer {
    ($deployer:ident) => {
        $crate::contract_level!();
        #[cfg(target_family = "wasm")]
        $crate::bindings::deployer::export_deploy!($deployer with_types_in $crate::bindings::deployer);
    };
}

/// Makes a component of a [`GateEngine`]: `export_gate!(Mine);` once per crate, whose type is `cdylib`.
///
/// On the build machine it expands to nothing, so that the crate links and tests like any other.
#[macro_export]
macro_rules! export_gate {
    ($evaluator:ident) => {
        $crate::contract_level!();
        #[cfg(target_family = "wasm")]
        $crate::bindings::gate::export_evaluate!($evaluator with_types_in $crate::bindings::gate);
    };
}

/// Makes a component of an [`Engine`]: `export_template!(Mine);` once per crate, whose type is `cdylib`.
///
/// On the build machine it expands to nothing, so that the crate links and tests like any other.
#[macro_export]
macro_rules! export_template {
    ($engine:ident) => {
        $crate::contract_level!();
        #[cfg(target_family = "wasm")]
        $crate::bindings::template::export_render!($engine with_types_in $crate::bindings::template);
    };
}

/// Writes the contract level into the component: the custom section `orangery:contract` holds the decimal digits of a
/// number, now `1`. The host reads it before it compiles anything, so that a mismatch is one sentence.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_level {
    () => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[used]
            #[unsafe(link_section = "orangery:contract")]
            static CONTRACT_LEVEL: [u8; 1] = *b"1";
        };
    };
}

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
