//! The Jinja template engine: `type: Jinja` in any of a blueprint's lists of executions.
//!
//! Standard Jinja by minijinja 3, with what a template of YAML wants:
//!
//! - The inputs of the execution are the variables: `imports`, `cd`, `components`, `blueprint`, `values`, …, and `state`,
//!   which is empty at first. A variable or field that does not exist is an error unless it has a `default`.
//! - `include`, `import` and `extends` read the blueprint's files, from its root.
//! - Values print as YAML reads them: `null`, `true`, lists and objects as JSON. Nothing is escaped.
//! - Filters besides Jinja's own: `toyaml`, `fromjson`, `b64encode`, `b64decode`, `quote`, `squote`, `nindent`.
//!   Functions: `read_file(path)`, `list_files(folder)`, `fail(message)`.
//! - An error has file, line, column and a snippet of the template, no text of the inputs. A template that does not end is stopped.
//!
//! The output is text, which the host decodes. Same request, same files, same output.

mod check;
mod engine;
mod filters;
mod format;
mod place;
mod reads;
mod tags;
mod yaml;

use orangery_sdk::{Engine, Files, Findings, Output, RenderFailure, RenderRequest, Rendered};

/// The component.
pub struct Jinja;

impl Engine for Jinja {
    fn render(request: RenderRequest, files: impl Files) -> Result<Rendered, RenderFailure> {
        let text = engine::render(&request, files)?;
        Ok(Rendered { output: Output::Text(text), state: None, warnings: Vec::new() })
    }

    fn check(request: RenderRequest, files: impl Files) -> Option<Findings> {
        Some(check::check(&request, files))
    }
}

orangery_sdk::export_template!(Jinja);
