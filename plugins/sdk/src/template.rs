//! What the author of a template engine writes, and what an engine may read while it renders.

use crate::bindings::template::{
    exports::orangery::template::template::{Failure, Guest, Rendered, Request},
    orangery::template::files,
};

/// A template engine: one function from a template and its inputs to the rendered output.
///
/// Exported with [`export_template!`](crate::export_template). Same request, same files, same output.
pub trait Engine {
    /// Renders one execution.
    ///
    /// # Errors
    ///
    /// A [`Failure`] with its place in the template.
    fn render(request: Request, files: impl Files) -> Result<Rendered, Failure>;
}

/// The blueprint's own files, by slash-separated path without a leading slash. It can be kept in an engine's closures.
pub trait Files: Send + Sync + 'static {
    /// A file's content.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// The names in a folder, sorted.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn list(&self, path: &str) -> Result<Vec<String>, String>;
}

/// The host behind the component's imports.
struct Imports;

impl Files for Imports {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        files::read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        files::list(path)
    }
}

impl<T: Engine> Guest for T {
    fn render(of: Request) -> Result<Rendered, Failure> {
        <T as Engine>::render(of, Imports)
    }
}
