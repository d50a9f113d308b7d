//! `Completing`: nothing may have changed; then the exports are rendered, checked and written (INS-36 … INS-42).

use orangery_blueprint::{export, rendering::ExecutionKind};
use orangery_core::{
    memory,
    plan::installation as plan,
    step::{Step, Verdict},
};

use super::super::{
    apply::records::export_failed,
    gather::{inputs::RenderInputs, rendering::halt as rendering_halt},
    reconciliation::InstallationReconciliation,
};

impl InstallationReconciliation<'_> {
    /// `Completing`.
    pub(super) async fn completing(&mut self) -> Step<Verdict> {
        self.delete_stale_objects().await?;
        // Gather.
        let inputs = self.gather_inputs().await?;
        let RenderInputs { loaded, imported, names, .. } = &inputs;
        // Decide.
        self.check_unchanged(&inputs.imports_hash())?;
        if loaded.blueprint.export_executions.is_empty() && self.draft.spec.exports.is_empty() {
            return Ok(Verdict::Done);
        }
        let (states, mut secrets) = self.read_states(&loaded.blueprint, &[ExecutionKind::Export]).await?;
        let mut rendering = self.rendering(&inputs, states);
        let bound = rendering.imports(imported, &self.draft.spec.import_data_mappings).await;
        let imports = self.rendered(&mut rendering, &mut secrets, bound).await?;
        let values = self.exported_values(|value| {
            let reserved =
                rendering.reserve("what sub-installations and deploy items have exported", memory::of(value));
            reserved.map_err(|error| rendering_halt(&error))
        })?;
        let exports = rendering.exports(&imports, values, &self.draft.spec.export_data_mappings).await;
        let exports = self.rendered(&mut rendering, &mut secrets, exports).await?;
        let wanted = (&self.draft.spec.exports).into();
        let records = export::records(&wanted, &exports, &names.scope())
            .map_err(|error| export_failed("CreateExports", &error))?;
        self.check_owners(&records)?;
        // Apply.
        self.write_exports(imported, &records).await?;
        Ok(Verdict::Done)
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
