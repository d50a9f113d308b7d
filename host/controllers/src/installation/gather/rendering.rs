//! Rendering: `orangery_render` is given what this Installation has, and what comes of it is written (INS-24).

use orangery_core::step::{Halt, Step};
use orangery_policy::Violation;
use orangery_render::{RenderError, Rendering, States};

use super::{
    super::{apply::states::StateSecrets, reconciliation::InstallationReconciliation},
    inputs::RenderInputs,
};

/// How a failed rendering ends the walk.
pub(in crate::installation) fn halt(error: &RenderError) -> Halt {
    let failure = error.failure();
    if error.is_transient() { Halt::Retry(failure) } else { Halt::Stall(failure) }
}

impl<'a> InstallationReconciliation<'a> {
    /// A rendering of this Installation's blueprint in its job.
    pub(in crate::installation) fn rendering<'r>(&self, inputs: &'r RenderInputs, states: States) -> Rendering<'r>
    where
        'a: 'r,
    {
        let mut held = self.host.rendered.none_of(&Some(self.key.namespace.clone()));
        Rendering::new(inputs.loaded.subject(inputs.names.scope(), &inputs.plugins), states)
            .sharing(Box::new(move |bytes| held.set(bytes)))
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
        answer.map_err(|error| match halt(&error) {
            // Engines tell in words of their own why a template fails, and lose the code (C-143).
            Halt::Stall(failure) if self.shared.blueprints.has_refused_credentials(&self.draft) => {
                Halt::Stall(failure.with_code(Violation::CODE))
            }
            halt => halt,
        })
    }
}
