//! `Completing`: nothing may have changed; then the exports are rendered, checked and written (INS-36 … INS-42).

use orangery_blueprint::{export, rendering::ExecutionKind};
use orangery_core::{
    plan::installation as plan,
    step::{Step, Verdict},
};
use orangery_render::ExportValues;

use super::super::{
    apply::records::export_failed, gather::inputs::RenderInputs, reconciliation::InstallationReconciliation,
};

impl InstallationReconciliation<'_> {
    /// `Completing`.
    pub(super) async fn completing(&mut self) -> Step<Verdict> {
        self.delete_stale_objects().await?;
        // Gather.
        let inputs = self.gather_inputs().await?;
        let RenderInputs { loaded, imported, names } = &inputs;
        // Decide.
        self.check_unchanged(&inputs.imports_hash())?;
        if loaded.blueprint.export_executions.is_empty() && self.draft.spec.exports.is_empty() {
            return Ok(Verdict::Done);
        }
        let (states, mut secrets) = self.read_states(&loaded.blueprint, &[ExecutionKind::Export]).await?;
        let mut rendering = self.rendering(&inputs, states);
        let bound = rendering.imports(imported, &self.draft.spec.import_data_mappings).await;
        let imports = self.rendered(&mut rendering, &mut secrets, bound).await?;
        let exports = rendering.exports(&imports, self.export_values()?, &self.draft.spec.export_data_mappings).await;
        let exports = self.rendered(&mut rendering, &mut secrets, exports).await?;
        let wanted = (&self.draft.spec.exports).into();
        let records = export::records(&wanted, &exports, &names.scope())
            .map_err(|error| export_failed("CreateExports", &error))?;
        self.check_owners(&records)?;
        // Apply.
        self.write_exports(imported, &records).await?;
        Ok(Verdict::Done)
    }

    /// What the templates of exports see beside the imports.
    fn export_values(&self) -> Step<ExportValues> {
        let (data_objects, targets) = (self.context_data()?, self.context_targets());
        Ok(ExportValues { deploy_items: self.item_exports()?, data_objects, targets })
    }

    /// Nothing that `Init` saw may have changed: the spec, or an import. Of a job that Landscaper began its `Init` has noted the
    /// generation as observed (C-178).
    pub(super) fn check_unchanged(&self, imports_hash: &str) -> Step<()> {
        let (job_generation, at_init) = match &self.draft.status {
            Some(status) => (status.job_generation.unwrap_or(status.observed_generation), status.imports_hash.as_str()),
            None => (0, ""),
        };
        plan::unchanged((job_generation, self.generation), (at_init, imports_hash))
    }
}
