//! One blueprint with the sub-installations that are written out in it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{BlueprintOrigin, Review, Severity, binding::BoundNames, origin::BlueprintFiles, schemas, templates};
use crate::{
    Blueprint, BlueprintError, BlueprintFault, BlueprintReading, FILE, FileSystem, InstallationTemplate,
    TemplateBlueprint, faults_of_gate_expressions, faults_of_templates, gate,
};
use orangery_core::yaml::SourcePosition;
use orangery_ocm::Files;

impl Review {
    /// Looks at a blueprint; what could be read of it.
    pub(super) fn blueprint(&mut self, files: &Arc<dyn Files>, origin: &BlueprintOrigin) -> Blueprint {
        let reading = BlueprintReading::of(files.as_ref());
        let BlueprintReading { faults, unknown, names, subinstallations, .. } = &reading;
        let mut source = BlueprintFiles::new(files.as_ref(), origin);
        for fault in faults {
            let position = match fault {
                BlueprintError::Yaml { path, source: error } => {
                    source.text(path).position(SourcePosition { line: error.line, column: error.column })
                }
                fault => source.position(fault.file(), &fault.field()),
            };
            self.say(Severity::Error, position, fault.message_of());
        }
        for (file, field) in unknown {
            let position = source.position(file, field);
            self.say(
                Severity::Warning,
                position,
                format!("nobody knows the field {field}, so it is ignored; correct its name or remove it"),
            );
        }
        for (field, fault) in names {
            let message = match fault {
                BlueprintFault::Duplicate(name) => format!(
                    "two executions of this list are named {name:?}, so what keeps state and errors apart is their index; rename one"
                ),
                _ => format!(
                    "{field} has no name, so its state is kept by its index and is lost when the list changes; give it one"
                ),
            };
            self.say(Severity::Warning, source.position(FILE, field), message);
        }
        let mut documents = vec![FILE];
        documents.extend(subinstallations.iter().map(|(file, _)| file.as_str()).filter(|file| *file != FILE));
        for file in documents {
            self.duplicates(&mut source, file);
        }
        schemas::review(self, &mut source, files.as_ref(), &reading);
        self.templates.extend(templates::of(&mut source, files, &reading));
        if reading.blueprint.export_executions.is_empty() {
            for (name, field) in &reading.exports {
                let message = format!(
                    "nothing in the blueprint gives the export {name:?}; add an exportExecution that does, or remove it"
                );
                self.say(Severity::Warning, source.position(FILE, field), message);
            }
        }
        self.subinstallations(&mut source, &reading.blueprint, subinstallations);
        reading.blueprint
    }

    fn duplicates(&mut self, source: &mut BlueprintFiles<'_>, file: &str) {
        for (field, place) in source.positions(file).duplicates() {
            let position = source.text(file).position(*place);
            self.say(
                Severity::Warning,
                position,
                format!("{field} stands twice in its object, and only the last one counts; remove the other"),
            );
        }
    }

    fn subinstallations(&mut self, source: &mut BlueprintFiles<'_>, blueprint: &Blueprint, sites: &[(String, String)]) {
        let templates = &blueprint.subinstallations;
        // Those that are rendered may export what is missing here.
        if blueprint.subinstallation_executions.is_empty() {
            // Import executions may add some.
            let types = blueprint.import_executions.is_empty();
            let types = types.then(|| Arc::new(gate::import_types(&blueprint.imports, &Map::new())));
            let faults = faults_of_templates(templates, &blueprint.imports);
            for fault in faults.into_iter().chain(faults_of_gate_expressions(templates, types.as_ref())) {
                let index = fault.template().and_then(|name| templates.iter().rposition(|of| of.name == name));
                let (file, field) = match index.and_then(|index| sites.get(index)) {
                    Some((file, field)) => (file.as_str(), field.as_str()),
                    None => (FILE, "subinstallations"),
                };
                let position = source.position(file, &fault.field(field));
                self.say(Severity::Error, position, fault.to_string());
            }
        }
        for (template, (file, field)) in templates.iter().zip(sites) {
            self.subinstallation(source, template, (file, field));
        }
    }

    /// The data mappings of a sub-installation, and its blueprint where that is written out.
    fn subinstallation(
        &mut self,
        source: &mut BlueprintFiles<'_>,
        template: &InstallationTemplate,
        (file, field): (&str, &str),
    ) {
        let below = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        let bound = BoundNames {
            imports: &template.imports,
            import_mappings: &template.import_data_mappings,
            exports: &template.exports,
            export_mappings: &template.export_data_mappings,
        };
        bound.mappings(self, (&source.text(file), &source.positions(file)), below);
        let TemplateBlueprint::Inline(tree) = &template.blueprint else { return };
        let origin = BlueprintOrigin::Inline {
            document: source.text(file),
            positions: source.positions(file),
            field: below("blueprint.filesystem"),
        };
        let Some(of) = self.inline_blueprint(tree, &origin) else { return };
        bound.review(self, &of, |name| source.position(file, &below(name)));
    }

    /// A blueprint whose files are a map in a document; what could be read of it.
    pub(super) fn inline_blueprint(&mut self, tree: &Value, origin: &BlueprintOrigin) -> Option<Blueprint> {
        match FileSystem::parse(tree) {
            Ok(files) => {
                let files: Arc<dyn Files> = Arc::new(files);
                Some(self.blueprint(&files, origin))
            }
            Err(error) => {
                let BlueprintOrigin::Inline { document, positions, field } = origin else { return None };
                self.say(Severity::Error, document.position(positions.find(field)), error.to_string());
                None
            }
        }
    }
}

/// Looks at the blueprint of a folder or an archive.
pub fn review(files: &Arc<dyn Files>, origin: &BlueprintOrigin) -> Review {
    let mut review = Review::default();
    review.blueprint(files, origin);
    review
}
