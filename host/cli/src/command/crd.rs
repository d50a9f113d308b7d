//! `orangery crd`: the custom resource definitions, and the policies for their objects.

use clap::Args;
use orangery_api::Admission;

use crate::{command_error::CommandError, exit::Exit, form::yaml, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  orangery crd | kubectl apply --server-side -f -";

/// Prints the custom resource definitions, and the admission policies for their objects, as YAML.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Crd {}

impl Crd {
    /// Prints them.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        for definition in orangery_api::crds() {
            terminal.text(&format!("---\n{}", yaml(&definition)?))?;
        }
        for Admission { policy, binding } in orangery_api::admission() {
            terminal.text(&format!("---\n{}---\n{}", yaml(&policy)?, yaml(&binding)?))?;
        }
        Ok(Exit::Ok)
    }
}
