//! Renders one blueprint for one job: imports are bound, sub-installations, deploy items and exports rendered
//! (`docs/wire.md` §4.3, §5.3, §5.5).
//!
//! The controller and the command line call the very same code: what comes in and goes out are values of the core, and
//! engines, files, component versions and credentials are reached through its ports. Nothing is read or written here.
//!
//! One [`Rendering`] serves one job. Its steps are called in the order of the phases, with the writes between them
//! that the caller wants; after each of them, failed or not, [`Rendering::states`] has what executions want kept.

mod display;
mod error;
mod execution;
mod inputs;
mod loaded;
mod rendering;
mod state;

pub use self::{
    display::RenderedPlace,
    error::{ExecutionError, ExecutionFault, RenderError},
    inputs::{ExportValues, InputDefinitions},
    loaded::{BlueprintSource, LoadError, LoadedBlueprint, OpenedComponent, TemplateAccess, files},
    rendering::{DeployItem, HoldMemory, RenderedSubject, Rendering, Subinstallation, Warning},
    state::{MOST_ANSWERED_BYTES, StateFault, StateKey, States},
};

#[cfg(test)]
mod tests;
