//! How results are written for programs, the same in every command.

use clap::ValueEnum;
use orangery_core::error::escaped;
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
            OutputFormat::Json => terminal.text(&(json(document)? + "\n"))?,
            OutputFormat::Yaml => terminal.text(&yaml(document)?)?,
        }
        Ok(())
    }
}

fn json(document: &impl Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| CommandError::Form { form: "JSON", cause: error.to_string() })?;
    // What moves text stands in its strings alone, where it may be escaped.
    Ok(escaped(&text, '\n'))
}

pub(crate) fn yaml(document: &impl Serialize) -> Result<String, CommandError> {
    yaml_serde::to_string(document).map_err(|error| CommandError::Form { form: "YAML", cause: error.to_string() })
}

#[cfg(test)]
mod tests {
    use orangery_core::error::moves_text;
    use serde_json::{Value, json};

    use super::*;
    use crate::terminal::{
        Appearance,
        tests::{HOSTILE, display},
    };

    #[test]
    fn c_74_documents_move_nothing_and_json_has_every_character() {
        let document = json!({"context": HOSTILE});
        for form in [OutputFormat::Json, OutputFormat::Yaml] {
            let (mut terminal, out, _) = display(Appearance::PLAIN);
            form.write(&document, &mut terminal).unwrap();
            assert!(!out.text().chars().any(|c| c != '\n' && moves_text(c)), "{:?}", out.text());
            if form == OutputFormat::Json {
                assert_eq!(serde_json::from_str::<Value>(&out.text()).unwrap(), document);
            }
        }
    }
}
