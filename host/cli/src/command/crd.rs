//! `orangery crd`: the custom resource definitions.

use clap::Args;

use crate::{command::CommandError, exit::Exit, form::yaml, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  orangery crd | kubectl apply --server-side -f -";

/// Prints the custom resource definitions as YAML.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Crd {}

impl Crd {
    /// Prints them.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        for definition in orangery_api::crds() {
            terminal.text(&format!("---\n{}", yaml(&definition)?))?;
        }
        Ok(Exit::Ok)
    }
}
