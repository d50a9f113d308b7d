//! `Completing`: nothing may have changed; then the exports are rendered, checked and written (INS-36 … INS-42).

use orangery_core::{
    blueprint, export, import,
    plan::installation as plan,
    schema::Schemas,
    step::{Step, Verdict},
    template::ExecutionKind,
};
use serde_json::{Map, Value};

use super::{Run, blueprints::Loaded, init::stall, objects::export_failed};

impl Run<'_> {
    /// `Completing`.
    pub(super) async fn completing(&mut self) -> Step<Verdict> {
        self.delete_stale_objects().await?;
        let loaded = self.blueprints.load(&self.draft)?;
        let imported = self.read_imports().await?;
        let generation = self.draft.metadata.generation.unwrap_or_default();
        let status = self.draft.status.clone().unwrap_or_default();
        let hash = import::imports_hash(&imported);
        plan::unchanged((status.job_generation.unwrap_or_default(), generation), (&status.imports_hash, &hash))?;
        if loaded.blueprint.export_executions.is_empty() && self.draft.spec.exports.is_empty() {
            return Ok(Verdict::Done);
        }
        let values = self.bind_imports(&loaded, &imported).await?;
        let exports = self.render_exports(&loaded, &values).await?;
        let names = self.names();
        let wanted = (&self.draft.spec.exports).into();
        let records = export::records(&wanted, &exports, &names.scope())
            .map_err(|error| export_failed("CreateExports", &error))?;
        self.check_owners(&records)?;
        self.write_records(&records).await?;
        Ok(Verdict::Done)
    }

    /// The exports of the blueprint, with the results of the export mappings over them.
    async fn render_exports(&self, loaded: &Loaded, values: &Map<String, Value>) -> Step<Map<String, Value>> {
        let (data_objects, targets) = self.context_values();
        let mut inputs = self.inputs(values);
        inputs.extend(export::inputs(self.item_exports(), data_objects, targets));
        let mut exports = Map::new();
        for execution in &loaded.blueprint.export_executions {
            let output = self.render(loaded, ExecutionKind::Export, execution, Value::Object(inputs.clone())).await?;
            let answered = blueprint::decode_exports(&output).map_err(|error| {
                stall(
                    "RenderTemplate",
                    "InvalidTemplateOutput",
                    format!("export execution {:?}: {error}", execution.name),
                )
            })?;
            blueprint::merge_exports(&mut exports, answered);
        }
        let schemas = Schemas { local_types: &loaded.blueprint.local_types, files: loaded.files.as_ref() };
        let names = self.names();
        let dropped = export::check(&loaded.blueprint.exports, &mut exports, &schemas, &names.scope())
            .map_err(|error| export_failed("ValidateExport", &error))?;
        if !dropped.is_empty() {
            tracing::warn!(installation = %names.scope().installation, exports = %dropped.join(", "), "exports that the blueprint does not define are dropped");
        }
        if !self.draft.spec.export_data_mappings.is_empty() {
            let mut scope = exports.clone();
            scope.insert("exports".to_owned(), Value::Object(exports.clone()));
            for (name, template) in &self.draft.spec.export_data_mappings {
                let value =
                    self.render_mapping(loaded, ExecutionKind::ExportMapping, (name, template), scope.clone()).await?;
                exports.insert(name.clone(), value);
            }
        }
        Ok(exports)
    }
}
