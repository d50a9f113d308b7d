//! An Installation of a manifest whose blueprint is written out in it.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::Value;

use super::{BlueprintOrigin, Review, Severity, Text, binding::BoundNames};
use crate::binding::{ExportBindings, ImportBindings};
use orangery_core::{lenient, yaml::LocatedDocument};

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstallationFields {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    imports: ImportBindings,
    import_data_mappings: BTreeMap<String, Value>,
    exports: ExportBindings,
    export_data_mappings: BTreeMap<String, Value>,
    blueprint: InstallationBlueprintFields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstallationBlueprintFields {
    inline: Inline,
    #[serde(rename = "ref")]
    reference: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inline {
    filesystem: Option<Value>,
}

/// Whether a document is an Installation of the field's API group.
pub fn is_installation(document: &Value) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    text("kind") == "Installation" && text("apiVersion").starts_with("landscaper.gardener.cloud/")
}

/// Looks at an Installation and at the blueprint in it. A blueprint of a component version is left to who has that.
pub fn review_installation(located: &LocatedDocument, text: &Text) -> Review {
    let mut review = Review::default();
    let positions = Arc::new(located.positions.clone());
    let position = |field: &str| text.position(positions.find(field));
    let (form, unknown) = lenient::decode_noting::<InstallationFields>(&located.value);
    for field in unknown.iter().filter(|field| field.starts_with("spec.imports.") || field.starts_with("spec.exports."))
    {
        let message = format!("nobody knows the field {field}, so it is ignored; correct its name or remove it");
        review.say(Severity::Warning, position(field), message);
    }
    for (field, place) in positions.duplicates() {
        let message = format!("{field} stands twice in its object, and only the last one counts; remove the other");
        review.say(Severity::Warning, text.position(*place), message);
    }
    let spec = match form {
        Ok(form) => form.spec,
        Err(error) => {
            review.say(Severity::Error, position(&error.path), error.to_string());
            return review;
        }
    };
    let bound = BoundNames {
        imports: &spec.imports,
        import_mappings: &spec.import_data_mappings,
        exports: &spec.exports,
        export_mappings: &spec.export_data_mappings,
    };
    bound.rules(&mut review, |field| position(&format!("spec.{field}")));
    bound.mappings(&mut review, (text, &positions), |field| format!("spec.{field}"));
    let Some(tree) = &spec.blueprint.inline.filesystem else {
        let (severity, message) = match spec.blueprint.reference {
            Some(_) => (
                Severity::Note,
                "the blueprint comes from a component version, so it is not checked; check its own folder",
            ),
            None => (
                Severity::Error,
                "the installation has no blueprint; set spec.blueprint.ref or spec.blueprint.inline.filesystem",
            ),
        };
        review.say(severity, position("spec.blueprint"), message);
        return review;
    };
    let field = "spec.blueprint.inline.filesystem".to_owned();
    let origin = BlueprintOrigin::Inline { document: text.clone(), positions: Arc::clone(&positions), field };
    if let Some(blueprint) = review.inline_blueprint(tree, &origin) {
        bound.review(&mut review, &blueprint, |field| position(&format!("spec.{field}")));
    }
    review
}
