//! The components of an operator: compiled ahead of their first call.

use std::{path::Path, sync::Arc};

use orangery_cli::components;
pub use orangery_cli::components::{Bundled, ComponentsError};
use orangery_plugin::PluginSet;

/// Registers components that ship with the host and those of `folder`, and begins to compile, in the background,
/// what the cache of this user lacks: calls wait for their own component only. Large ones wait for their first call. Needs a running event loop.
///
/// # Errors
/// [`ComponentsError`]
pub fn load(folder: Option<&Path>, bundled: Bundled) -> Result<Arc<PluginSet>, ComponentsError> {
    let plugins = components::load(folder, bundled, |sentence| tracing::warn!("{sentence}"))?;
    tokio::spawn(Arc::clone(&plugins).prepare());
    Ok(plugins)
}
