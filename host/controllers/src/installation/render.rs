//! Rendering: the room `render` is given what this Installation has, and what comes of it is written (INS-24).

use kube::ResourceExt;
use orangery_core::step::{Halt, Step};
use orangery_render::{Loaded, RenderError, Rendering, States};

use super::{Run, objects::Names, state::StateSecrets};

/// How a failed rendering ends the walk.
pub(super) fn halt(error: &RenderError) -> Halt {
    let failure = error.failure();
    if error.is_transient() { Halt::Retry(failure) } else { Halt::Stall(failure) }
}

impl<'a> Run<'a> {
    /// A rendering of this Installation's blueprint in its job.
    pub(super) fn rendering<'r>(&self, loaded: &'r Loaded, names: &'r Names, states: States) -> Rendering<'r>
    where
        'a: 'r,
    {
        Rendering::new(loaded.subject(names.scope(), self.host.plugins.as_ref()), states)
    }

    /// What came of one step of a rendering. The states are stored whatever came of it.
    pub(super) async fn rendered<T>(
        &self,
        rendering: &mut Rendering<'_>,
        secrets: &mut StateSecrets,
        answer: Result<T, RenderError>,
    ) -> Step<T> {
        for warning in rendering.take_warnings() {
            tracing::warn!(installation = %self.draft.name_any(), about = %warning.place, warning = %warning.text);
        }
        self.store_states(rendering.states().take_changed(), secrets).await?;
        answer.map_err(|error| halt(&error))
    }
}
