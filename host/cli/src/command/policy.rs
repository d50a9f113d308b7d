//! `orangery policy`: what the objects of a namespace may do, and what a policy would refuse.

use clap::{Args, Subcommand};

use self::{check::PolicyCheck, explain::PolicyExplain};
use crate::{command_error::CommandError, exit::Exit, terminal::Terminal};

mod addresses;
mod charts;
pub mod check;
pub mod explain;
mod known;

/// Looks at the policies of namespaces.
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct PolicyArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

impl PolicyArguments {
    /// Carries it out.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        match self.command {
            PolicyCommand::Explain(explain) => explain.execute(terminal).await,
            PolicyCommand::Check(check) => check.execute(terminal).await,
        }
    }
}

/// What is done with policies.
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show what counts for a namespace, line by line, and where each line comes from
    Explain(PolicyExplain),
    /// Tell which existing objects a policy would refuse, before it is applied
    Check(PolicyCheck),
}
