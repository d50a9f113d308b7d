//! The JSON schemas of a blueprint, and the defaults that have to follow them.

use std::collections::BTreeMap;

use super::{Review, Severity, origin::BlueprintFiles};
use crate::{
    BlueprintReading, ExportKind, FILE, ImportDefinition, ImportKind,
    schema::{SchemaError, Schemas},
};
use orangery_ocm::Files;

pub(super) fn review(
    review: &mut Review,
    source: &mut BlueprintFiles<'_>,
    files: &dyn Files,
    reading: &BlueprintReading,
) {
    let blueprint = &reading.blueprint;
    // Those of the component version are not here.
    let resources = BTreeMap::new();
    let schemas = Schemas { local_types: &blueprint.local_types, files, resources: &resources };
    let mut look = SchemaReview { review, source, schemas, reading };
    for (name, schema) in &blueprint.local_types {
        look.schema(schema, &format!("localTypes.{name}"));
    }
    look.imports(&blueprint.imports);
    for export in &blueprint.exports {
        if let (ExportKind::Data { schema }, Some(field)) = (&export.kind, reading.exports.get(&export.name)) {
            look.schema(schema, &format!("{field}.schema"));
        }
    }
}

struct SchemaReview<'a, 's> {
    review: &'a mut Review,
    source: &'a mut BlueprintFiles<'s>,
    schemas: Schemas<'a>,
    reading: &'a BlueprintReading,
}

impl SchemaReview<'_, '_> {
    fn imports(&mut self, imports: &[ImportDefinition]) {
        for import in imports {
            let path = self.reading.imports.get(&import.name).map_or("imports", String::as_str);
            if let ImportKind::Data { schema } = &import.kind {
                let is_sound = self.schema(schema, &format!("{path}.schema"));
                if let (true, Some(default)) = (is_sound, &import.default)
                    && let Err(error) = self.schemas.check(schema, default)
                {
                    let position = self.source.position(FILE, &format!("{path}.default.value"));
                    let message = format!(
                        "the default of the import {:?}: {error}; correct the default or the schema",
                        import.name
                    );
                    self.review.say(Severity::Error, position, message);
                }
            }
            self.imports(&import.conditional);
        }
    }

    /// Whether a schema can be used here.
    fn schema(&mut self, schema: &serde_json::Value, field: &str) -> bool {
        let error = match self.schemas.check_schema(schema) {
            Ok(()) => return true,
            Err(error) => error,
        };
        let position = self.source.position(FILE, field);
        match &error {
            SchemaError::NotFetched { reference, .. } => self.review.say(
                Severity::Note,
                position,
                format!("{field} refers to {reference}, which only the component version has, so it is not checked"),
            ),
            error => self.review.say(Severity::Error, position, format!("{field}: {error}")),
        }
        false
    }
}
