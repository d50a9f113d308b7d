//! How results are written for programs, the same in every command.

use clap::ValueEnum;
use serde::Serialize;

use crate::{command_error::CommandError, terminal::Terminal};

/// A form that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One JSON document
    Json,
    /// The same as YAML
    Yaml,
}

impl OutputFormat {
    /// Writes a document in this form.
    ///
    /// # Errors
    /// [`CommandError::Form`] and [`CommandError::Output`]
    pub fn write(self, document: &impl Serialize, terminal: &mut Terminal) -> Result<(), CommandError> {
        match self {
            OutputFormat::Json => terminal.line(json(document)?)?,
            OutputFormat::Yaml => terminal.text(&yaml(document)?)?,
        }
        Ok(())
    }
}

fn json(document: &impl Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(document)
        .map_err(|error| CommandError::Form { form: "JSON", cause: error.to_string() })
}

pub(crate) fn yaml(document: &impl Serialize) -> Result<String, CommandError> {
    yaml_serde::to_string(document).map_err(|error| CommandError::Form { form: "YAML", cause: error.to_string() })
}
