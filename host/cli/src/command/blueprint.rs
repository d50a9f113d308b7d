//! `orangery blueprint`: what authors of blueprints do before they deploy.

use clap::{Args, Subcommand};

pub mod check;

/// Work on blueprints without a cluster.
#[derive(Clone, Debug, Args)]
pub struct BlueprintArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: BlueprintCommand,
}

/// What to do with blueprints.
#[derive(Clone, Debug, Subcommand)]
pub enum BlueprintCommand {
    /// Look for mistakes without rendering
    Check(check::Check),
}
