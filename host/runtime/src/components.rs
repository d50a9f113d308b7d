//! The components of an operator: compiled ahead of their first call.

use std::{path::Path, sync::Arc};

use orangery_cli::components;
pub use orangery_cli::components::{Bundled, CallProcesses, ComponentsError, ContainerItems};
use orangery_plugin::{MemoryShares, PluginSet};

/// Registers components that ship with the host and those of `folder`, and begins to compile, in the background,
/// what the cache of this user lacks: calls wait for their own component only. Large ones wait for their first call. Needs a running event loop.
///
/// # Errors
/// [`ComponentsError`]
pub fn load(
    folder: Option<&Path>,
    bundled: Bundled,
    containers: ContainerItems,
    processes: CallProcesses,
) -> Result<Arc<PluginSet>, ComponentsError> {
    if let Some(sentence) = MemoryShares::of_machine().shortage() {
        tracing::warn!("{sentence}");
    }
    let plugins = components::load(folder, bundled, containers, processes, |sentence| tracing::warn!("{sentence}"))?;
    tokio::spawn(Arc::clone(&plugins).prepare());
    Ok(plugins)
}
