//! Blueprints: their files, what they import and export, and what they render (`docs/wire.md` §4).
//!
//! A blueprint is read once for a job. Whether an engine exists is asked when it is needed, not here.

pub mod binding;
mod bundled;
mod choice;
mod definition;
pub mod export;
mod fault;
mod file_system;
pub mod gate;
pub mod import;
mod item;
mod output;
pub mod plan;
pub mod plugins;
mod read;
pub mod record;
pub mod recorded;
pub mod removed;
pub mod rendering;
pub mod review;
pub mod schema;
pub mod sibling;
mod template;
pub mod template_engine;

use std::{collections::BTreeMap, num::NonZeroU32};

use serde_json::Value;

pub use self::{
    bundled::{BUNDLED_ENGINE, ComponentFile, OwnComponent},
    choice::{ChoiceError, TargetChoice, check_gate_expression},
    definition::{ExportDefinition, ExportKind, ImportDefinition, ImportKind},
    fault::BlueprintFault,
    file_system::{FileSystem, FileSystemError},
    item::{ItemError, ItemTemplate, check_items, decode_items},
    output::{
        ImportOutput, OutputError, decode_exports, decode_imports, decode_subinstallations, merge_exports, state,
    },
    read::{BlueprintError, BlueprintReading},
    template::{
        InstallationTemplate, Optimization, TemplateBlueprint, TemplateError, check_templates, edges_of_templates,
        faults_of_gate_expressions, faults_of_templates, without_unsatisfied,
    },
};

use orangery_core::{memory, workflow::FailurePolicy};

/// The file that every blueprint has at its root.
pub const FILE: &str = "blueprint.yaml";

/// The most Installations that stand in each other: more are made by a blueprint that contains itself (C-155).
pub const DEEPEST_MADE: usize = 16;

/// The most Installations of a tree (C-155).
pub const MOST_OF_A_TREE: usize = 2_000;

/// A parsed blueprint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blueprint {
    /// Annotations; `ocmSchemaVersion` is the only interpreted one.
    pub annotations: BTreeMap<String, String>,
    /// JSON schemas that `local://<name>` refers to.
    pub local_types: BTreeMap<String, Value>,
    /// What it imports.
    pub imports: Vec<ImportDefinition>,
    /// What it exports.
    pub exports: Vec<ExportDefinition>,
    /// Rendered first; their bindings join the imports.
    pub import_executions: Vec<TemplateExecution>,
    /// They render deploy items.
    pub deploy_executions: Vec<TemplateExecution>,
    /// They render exports.
    pub export_executions: Vec<TemplateExecution>,
    /// They render sub-installations.
    pub subinstallation_executions: Vec<TemplateExecution>,
    /// The sub-installations that need no rendering.
    pub subinstallations: Vec<InstallationTemplate>,
    /// What a failed deploy item does to the others, where the installation does not say it (C-01).
    pub failure_policy: Option<FailurePolicy>,
    /// How many deploy items may be under way at once, where the installation does not say it (WF-15).
    pub max_parallel: Option<NonZeroU32>,
}

/// One template of a blueprint (`TemplateExecutor` in the original).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateExecution {
    /// Unique in its list.
    pub name: String,
    /// The engine, such as `Jinja`, or [`BUNDLED_ENGINE`].
    pub engine: String,
    /// The file with the template, or with the engine itself; `None` where it is written in the blueprint.
    pub file: Option<String>,
    /// The template, where it is written in the blueprint; a structure stands here as JSON text. For [`BUNDLED_ENGINE`] the
    /// reference of the engine.
    pub template: String,
}

impl Blueprint {
    /// Whether it deploys nothing at all: no deploy items and no sub-installations, rendered or static.
    pub fn deploys_nothing(&self) -> bool {
        self.deploy_executions.is_empty()
            && self.subinstallation_executions.is_empty()
            && self.subinstallations.is_empty()
    }

    /// Bytes of memory of the values that its authors wrote in it.
    pub fn memory(&self) -> u64 {
        let sum = |values: &BTreeMap<String, Value>| values.values().map(memory::of).sum::<u64>();
        let of_template = |template: &InstallationTemplate| {
            let inline = match &template.blueprint {
                TemplateBlueprint::Inline(files) => memory::of(files),
                TemplateBlueprint::Reference(_) => 0,
            };
            inline + sum(&template.import_data_mappings) + sum(&template.export_data_mappings)
        };
        let of_export = |export: &ExportDefinition| match &export.kind {
            ExportKind::Data { schema } => memory::of(schema),
            ExportKind::Target { .. } => 0,
        };
        sum(&self.local_types)
            + self.imports.iter().map(ImportDefinition::memory).sum::<u64>()
            + self.exports.iter().map(of_export).sum::<u64>()
            + self.subinstallations.iter().map(of_template).sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
