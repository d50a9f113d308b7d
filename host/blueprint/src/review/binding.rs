//! How an installation or a sub-installation binds a blueprint (`docs/wire.md` §5.3, §5.5).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FilePosition, Review, Severity, Text, templates};
use crate::{
    Blueprint, ExportKind, ImportDefinition, ImportKind,
    binding::{self, ExportBindings, ImportBindings, TargetImport, TargetSource},
    rendering::ExecutionKind,
};
use orangery_core::{listing, yaml::SourcePositions};

/// Where imports come from and exports go.
pub(super) struct BoundNames<'a> {
    pub(super) imports: &'a ImportBindings,
    pub(super) import_mappings: &'a BTreeMap<String, Value>,
    pub(super) exports: &'a ExportBindings,
    pub(super) export_mappings: &'a BTreeMap<String, Value>,
}

const DATA: &str = "data";
const TARGET: &str = "a target";
const TARGET_LIST: &str = "a target list";
const TARGET_MAP: &str = "a target map";

fn asked(kind: &ImportKind) -> &'static str {
    match kind {
        ImportKind::Data { .. } => DATA,
        ImportKind::Target { .. } => TARGET,
        ImportKind::TargetList { .. } => TARGET_LIST,
        ImportKind::TargetMap { .. } => TARGET_MAP,
    }
}

fn given(import: &TargetImport) -> Option<&'static str> {
    import.source().map(|source| match source {
        TargetSource::Target(_) => TARGET,
        TargetSource::List(_) | TargetSource::ListOf(_) => TARGET_LIST,
        TargetSource::Map(_) | TargetSource::MapOf(_) => TARGET_MAP,
    })
}

fn find<'a>(definitions: &'a [ImportDefinition], name: &str) -> Option<&'a ImportDefinition> {
    definitions.iter().find_map(|of| if of.name == name { Some(of) } else { find(&of.conditional, name) })
}

impl BoundNames<'_> {
    /// Holds it against a blueprint. `position` answers where a field such as `imports.data[0].name` stands.
    pub(super) fn review(
        &self,
        review: &mut Review,
        blueprint: &Blueprint,
        mut position: impl FnMut(&str) -> FilePosition,
    ) {
        let data = self.imports.data.iter().map(|import| (import.name.as_str(), Some(DATA)));
        let targets = self.imports.targets.iter().map(|import| (import.name.as_str(), given(import)));
        let data = data.enumerate().map(|(index, import)| (format!("imports.data[{index}].name"), import));
        let targets = targets.enumerate().map(|(index, import)| (format!("imports.targets[{index}].name"), import));
        for (field, (name, given)) in data.chain(targets) {
            match (find(&blueprint.imports, name), given) {
                (Some(definition), Some(given)) if asked(&definition.kind) != given => {
                    let asked = asked(&definition.kind);
                    let message = format!(
                        "the blueprint asks for {asked} as import {name:?}, and {given} is given; correct one of them"
                    );
                    review.say(Severity::Error, position(&field), message);
                }
                // It may be there for the mappings.
                (None, _) if self.import_mappings.is_empty() => {
                    let known = listing::listed(blueprint.imports.iter().map(|import| import.name.as_str()));
                    let message = format!(
                        "the blueprint has no import {name:?}, so it is ignored; correct the name, or remove it; known are: {known}"
                    );
                    review.say(Severity::Warning, position(&field), message);
                }
                (Some(_) | None, _) => {}
            }
        }
        let is_given = |name: &str| {
            self.import_mappings.contains_key(name)
                || self.imports.data.iter().any(|import| import.name == name)
                || self.imports.targets.iter().any(|import| import.name == name)
        };
        for definition in blueprint.imports.iter().filter(|of| of.required && !is_given(&of.name)) {
            let message = format!(
                "the blueprint asks for {} as import {:?}, and nothing is given; add it to the imports, or make it optional by required: false",
                asked(&definition.kind),
                definition.name
            );
            review.say(Severity::Error, position("imports"), message);
        }
        self.exports(review, blueprint, position);
    }

    fn exports(&self, review: &mut Review, blueprint: &Blueprint, mut position: impl FnMut(&str) -> FilePosition) {
        let is_data = |kind: &ExportKind| matches!(kind, ExportKind::Data { .. });
        let names = |data: bool| blueprint.exports.iter().filter(move |export| is_data(&export.kind) == data);
        let data = self.exports.data.iter().map(|export| (export.name.as_str(), true));
        let targets = self.exports.targets.iter().map(|export| (export.name.as_str(), false));
        let data = data.enumerate().map(|(index, export)| (format!("exports.data[{index}].name"), export));
        let targets = targets.enumerate().map(|(index, export)| (format!("exports.targets[{index}].name"), export));
        for (field, (name, data)) in data.chain(targets) {
            if names(data).any(|export| export.name == name) || self.export_mappings.contains_key(name) {
                continue;
            }
            let sort = if data { "data" } else { "target" };
            let known = listing::listed(names(data).map(|export| export.name.as_str()));
            let message = format!(
                "the blueprint has no {sort} export {name:?}; correct the name, or define it in the blueprint; known are: {known}"
            );
            review.say(Severity::Error, position(&field), message);
        }
    }

    /// Has its data mappings looked at. `field` is where a field such as `importDataMappings` stands in the document.
    pub(super) fn mappings(&self, review: &mut Review, of: (&Text, &SourcePositions), field: impl Fn(&str) -> String) {
        let imports = (ExecutionKind::ImportMapping, self.import_mappings);
        let exports = (ExecutionKind::ExportMapping, self.export_mappings);
        review.templates.extend(templates::of_mappings(of, [imports, exports], field));
    }

    /// Whether its own rules hold (`docs/wire.md` §3.8).
    pub(super) fn rules(&self, review: &mut Review, mut position: impl FnMut(&str) -> FilePosition) {
        if let Err(error) = binding::check(self.imports, self.exports) {
            review.say(Severity::Error, position(&error.path), error.to_string());
        }
    }
}
