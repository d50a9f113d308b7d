//! Rendering: the room `render` is given what this Installation has, and what comes of it is written (INS-24).

use std::collections::BTreeMap;

use orangery_blueprint::import::Imported;
use orangery_core::step::{Halt, Step};
use orangery_render::{LoadedBlueprint, RenderError, Rendering, States};

use super::{
    super::{apply::states::StateSecrets, reconciliation::InstallationReconciliation},
    imports::{ImportNames, read_imports},
};

/// How a failed rendering ends the walk.
pub(in crate::installation) fn halt(error: &RenderError) -> Halt {
    let failure = error.failure();
    if error.is_transient() { Halt::Retry(failure) } else { Halt::Stall(failure) }
}

impl<'a> InstallationReconciliation<'a> {
    /// Every import, by its name in the Installation. What may be waited for is watched before it is read.
    pub(in crate::installation) async fn read_imports(&self) -> Step<BTreeMap<String, Imported>> {
        self.shared.imports.watch(self.host, &self.draft);
        read_imports(self.host, &self.draft, &self.workflow.job).await
    }

    /// The names that a rendering borrows.
    pub(in crate::installation) fn names(&self) -> ImportNames {
        ImportNames::of(&self.draft, &self.workflow.job)
    }

    /// A rendering of this Installation's blueprint in its job.
    pub(in crate::installation) fn rendering<'r>(
        &self,
        loaded: &'r LoadedBlueprint,
        names: &'r ImportNames,
        states: States,
    ) -> Rendering<'r>
    where
        'a: 'r,
    {
        Rendering::new(loaded.subject(names.scope(), self.host.plugins.as_ref()), states)
    }

    /// What came of one step of a rendering. The states are stored whatever came of it.
    pub(in crate::installation) async fn rendered<T>(
        &self,
        rendering: &mut Rendering<'_>,
        secrets: &mut StateSecrets,
        answer: Result<T, RenderError>,
    ) -> Step<T> {
        for warning in rendering.take_warnings() {
            tracing::warn!(installation = %self.key.name, about = %warning.place, warning = %warning.text);
        }
        self.store_states(rendering.states().take_changed(), secrets).await?;
        answer.map_err(|error| halt(&error))
    }
}
