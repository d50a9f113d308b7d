//! `Init`: everything is read, rendered and created; nothing works yet (INS-19 … INS-26).

use std::collections::BTreeMap;

use orangery_api::condition;
use orangery_blueprint::plan::import::failed;
use orangery_blueprint::{
    import::{self, Imported},
    rendering::ExecutionKind,
};
use orangery_core::{
    error::Failure,
    plan::beginning,
    step::{Halt, Step, Verdict},
};
use orangery_render::LoadedBlueprint;

use super::super::{
    dependencies::GUARDED_CONFIG_MAPS, gather::inputs::RenderInputs, reconciliation::InstallationReconciliation,
};
use crate::{
    job_definitions,
    object::owner_reference,
    record::{self, RecordOwner},
};

impl InstallationReconciliation<'_> {
    /// `Init`.
    pub(super) async fn init(&mut self) -> Step<Verdict> {
        // Each look at the spec is of the spec as it is: a job that waits here takes up what is corrected meanwhile (C-06).
        self.draft.status.get_or_insert_default().job_generation = Some(self.generation);
        self.begin().await?;
        // Gather.
        let inputs = self.gather_inputs().await?;
        let RenderInputs { loaded, imported, names, .. } = &inputs;
        let lists = [ExecutionKind::Subinstallation, ExecutionKind::Deploy];
        let (states, mut secrets) = self.read_states(&loaded.blueprint, &lists).await?;
        let mut rendering = self.rendering(&inputs, states);
        let bound = rendering.imports(imported, &self.draft.spec.import_data_mappings).await;
        let values = self.rendered(&mut rendering, &mut secrets, bound).await?;
        // Decide.
        let records = import::copies(&loaded.blueprint.imports, &values, imported, &names.scope())
            .map_err(|error| failed("CreateImports", &error))?;
        // Apply.
        self.keep_definition(imported).await;
        let namespace = self.key.namespace.clone();
        let owner = RecordOwner { namespace: &namespace, reference: owner_reference(&self.draft), imported };
        // No subobject works before it has the job, so nobody reads a copy yet: they are written beside the subobjects.
        let copies = record::write(self.host, &owner, &records);
        let subobjects = async {
            let templates = rendering.subinstallations(&values, imported).await;
            let templates = self.rendered(&mut rendering, &mut secrets, templates).await?;
            self.rename_subinstallations(&templates).await?;
            self.begin_workflow(&loaded.blueprint, &templates, (&values, imported)).await?;
            self.ensure_subinstallations(&templates).await?;
            let items = rendering.items(&values, imported).await;
            let items = self.rendered(&mut rendering, &mut secrets, items).await?;
            self.ensure_execution(&loaded.blueprint, &items, (&values, imported)).await
        };
        let (copied, made) = tokio::join!(copies, subobjects);
        copied.and(made)?;
        self.check_again(imported).await?;
        self.draft.status.get_or_insert_default().imports_hash = inputs.imports_hash();
        Ok(Verdict::Done)
    }

    /// Whether the job may begin; what the one before exported goes then, and what this one imports is marked and guarded.
    async fn begin(&mut self) -> Step<()> {
        beginning::context(self.context().await?, &self.key.namespace, &self.draft.spec.context)?;
        let loaded = self.load_blueprint().await?;
        self.report_overwrite(&loaded);
        beginning::siblings(self.siblings(), &self.workflow.job)?;
        self.delete_old_exports().await?;
        let mark = self.shared.imports.mark(self.host, &self.draft, &self.imports_turn).await;
        mark.put(self.draft.status.get_or_insert_default());
        GUARDED_CONFIG_MAPS.guard(self.host, &self.draft).await
    }

    /// Keeps what the job of a root is made from, and says where, before anything that works for the job can tell of it (C-358).
    async fn keep_definition(&mut self, imported: &BTreeMap<String, Imported>) {
        let place = job_definitions::keep(self.host, &self.draft, imported).await;
        let status = self.draft.status.get_or_insert_default();
        status.job_definition = place;
    }

    /// The condition `ComponentReferenceOverwrite`, for the write where the walk rests.
    fn report_overwrite(&mut self, loaded: &LoadedBlueprint) {
        let (generation, now) = (self.generation, self.host.now());
        let report = loaded.overwritten.as_ref().map(|report| report.as_deref().map_err(String::as_str));
        let status = self.draft.status.get_or_insert_default();
        status.conditions = condition::with_overwrite(report, generation, &status.conditions, &now);
    }

    /// What changed while this phase worked sends it back to its begin.
    async fn check_again(&self, imported: &BTreeMap<String, Imported>) -> Step<()> {
        beginning::siblings(self.siblings(), &self.workflow.job)?;
        let now = self.read_imports().await?;
        if import::imports_hash(&now) == import::imports_hash(imported) {
            return Ok(());
        }
        Err(Halt::Retry(Failure::new(
            "CheckImportsHash",
            "ImportsChanged",
            "an import changed while the blueprint was rendered; it is rendered again",
        )))
    }
}
