//! `Init`: everything is read, rendered and created; nothing works yet (INS-19 … INS-26).

use std::collections::BTreeMap;

use orangery_api::{condition, context::DEFAULT_CONTEXT};
use orangery_blueprint::plan::import::failed;
use orangery_blueprint::{
    import::{self, Imported},
    rendering::ExecutionKind,
    sibling::circle,
};
use orangery_core::{
    error::{Code, Failure},
    plan::installation as plan,
    step::{Halt, Step, Until, Verdict},
};
use orangery_reconcile::Key;
use orangery_render::LoadedBlueprint;

use super::super::{
    dependencies::{CONTEXT, GUARDED_CONFIG_MAPS},
    gather::{peers::peers, siblings},
    reconciliation::InstallationReconciliation,
};
use crate::{object::owner_reference, record};

fn stall(operation: &str, reason: &str, message: impl Into<String>) -> Halt {
    Halt::Stall(Failure::new(operation, reason, message).with_code(Code::ConfigurationProblem))
}

impl InstallationReconciliation<'_> {
    /// `Init`.
    pub(super) async fn init(&mut self) -> Step<Verdict> {
        // Each look at the spec is of the spec as it is: a job that waits here takes up what is corrected meanwhile (C-06).
        self.draft.status.get_or_insert_default().job_generation = Some(self.generation);
        // Gather.
        self.check_context().await?;
        let loaded = self.shared.blueprints.load(self.host, &self.draft, &self.workflow.job).await?;
        self.report_overwrite(&loaded);
        self.check_predecessors()?;
        self.delete_old_exports().await?;
        let mark = self.shared.imports.mark(self.host, &self.draft).await;
        mark.put(self.draft.status.get_or_insert_default());
        GUARDED_CONFIG_MAPS.guard(self.host, &self.draft).await?;
        let imported = self.read_imports().await?;
        let names = self.names();
        let lists = [ExecutionKind::Subinstallation, ExecutionKind::Deploy];
        let (states, mut secrets) = self.read_states(&loaded.blueprint, &lists).await?;
        let mut rendering = self.rendering(&loaded, &names, states);
        let bound = rendering.imports(&imported, &self.draft.spec.import_data_mappings).await;
        let values = self.rendered(&mut rendering, &mut secrets, bound).await?;
        // Decide.
        let records = import::copies(&loaded.blueprint.imports, &values, &names.scope())
            .map_err(|error| failed("CreateImports", &error))?;
        // Apply.
        let (host, namespace, owner) = (self.host, self.key.namespace.clone(), owner_reference(&self.draft));
        // No subobject works before it has the job, so nobody reads a copy yet: they are written beside the subobjects.
        let copies = record::write(host, &namespace, &owner, &records);
        let subobjects = async {
            let templates = rendering.subinstallations(&values, &imported).await;
            let templates = self.rendered(&mut rendering, &mut secrets, templates).await?;
            self.begin_workflow(&loaded.blueprint, &templates, &values).await?;
            self.ensure_subinstallations(&templates).await?;
            let items = rendering.items(&values, &imported).await;
            let items = self.rendered(&mut rendering, &mut secrets, items).await?;
            self.ensure_execution(&loaded.blueprint, &items, &values).await
        };
        let (copied, made) = tokio::join!(copies, subobjects);
        copied.and(made)?;
        self.recheck(&imported).await?;
        self.draft.status.get_or_insert_default().imports_hash = import::imports_hash(&imported);
        Ok(Verdict::Done)
    }

    /// The condition `ComponentReferenceOverwrite`, for the write where the walk rests.
    fn report_overwrite(&mut self, loaded: &LoadedBlueprint) {
        let (generation, now) = (self.generation, self.host.now());
        let report = loaded.overwritten.as_ref().map(|report| report.as_deref().map_err(String::as_str));
        let status = self.draft.status.get_or_insert_default();
        status.conditions = condition::with_overwrite(report, generation, &status.conditions, &now);
    }

    async fn check_context(&self) -> Step<()> {
        let name = &self.draft.spec.context;
        let key = Key { namespace: self.key.namespace.clone(), name: name.clone() };
        if name == DEFAULT_CONTEXT && self.host.stores.contexts.get(&key).is_none() {
            // Made for every namespace; it is on its way.
            return Err(CONTEXT.wait(name, Until::Exists));
        }
        if CONTEXT.find(self.host, &key).await?.is_some() {
            return Ok(());
        }
        Err(stall(
            "ReadContext",
            "ContextNotFound",
            format!(
                "Context {}/{name} does not exist; create it or correct spec.context, then reconcile again",
                key.namespace
            ),
        ))
    }

    fn check_predecessors(&self) -> Step<()> {
        if self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_imports) {
            return Ok(());
        }
        if self.draft.is_root() {
            let ancestors = siblings::ancestors(&self.host.stores, &self.draft);
            plan::no_circle(circle(&self.key.name, &ancestors))?;
        }
        let predecessors = siblings::predecessors(&self.host.stores, &self.draft);
        plan::predecessors(&peers(&predecessors), self.draft.is_root(), &self.workflow.job)
    }

    /// The second look: what changed while this phase worked sends it back to its begin.
    async fn recheck(&self, imported: &BTreeMap<String, Imported>) -> Step<()> {
        self.check_predecessors()?;
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
