//! What a job is rendered from, gathered for `Init`, for `Completing`, and for what is made when it starts (INS-22, INS-24,
//! INS-36).

use std::{collections::BTreeMap, sync::Arc};

use orangery_blueprint::import::{self, Imported};
use orangery_core::step::Step;
use orangery_render::LoadedBlueprint;

use super::{
    super::reconciliation::InstallationReconciliation,
    imports::{ImportNames, read_imports},
};
use crate::watched_engines::WatchedPlugins;

/// What a job is rendered from.
pub(in crate::installation) struct RenderInputs {
    pub(in crate::installation) loaded: Arc<LoadedBlueprint>,
    /// Every import, by its name in the Installation.
    pub(in crate::installation) imported: BTreeMap<String, Imported>,
    /// The names that records are made under.
    pub(in crate::installation) names: ImportNames,
    /// The components: some of their calls are recorded or compared.
    pub(in crate::installation) plugins: WatchedPlugins,
}

impl RenderInputs {
    /// The hash of the imports.
    pub(in crate::installation) fn imports_hash(&self) -> String {
        import::imports_hash(&self.imported)
    }
}

impl InstallationReconciliation<'_> {
    /// Reads what the job is rendered from.
    pub(in crate::installation) async fn gather_inputs(&self) -> Step<RenderInputs> {
        let loaded = self.load_blueprint().await?;
        let imported = self.read_imports().await?;
        let names = ImportNames::of(&self.draft, &self.workflow.job);
        let plugins = WatchedPlugins::new(self.host, &self.before, &imported);
        Ok(RenderInputs { loaded, imported, names, plugins })
    }

    /// The blueprint of the job.
    pub(in crate::installation) async fn load_blueprint(&self) -> Step<Arc<LoadedBlueprint>> {
        self.shared.blueprints.load(self.host, &self.draft, &self.workflow.job).await
    }

    /// Every import, by its name in the Installation. What may be waited for is watched before it is read.
    pub(in crate::installation) async fn read_imports(&self) -> Step<BTreeMap<String, Imported>> {
        self.shared.imports.watch(self.host, &self.draft);
        read_imports(self.host, &self.draft, &self.workflow.job, &self.imports_turn).await
    }
}
