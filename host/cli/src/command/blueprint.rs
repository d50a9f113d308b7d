//! `orangery blueprint`: what authors of blueprints do before they deploy.

use clap::{Args, Subcommand};

pub mod check;
pub mod test;

/// Work on blueprints, before they are deployed.
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
    /// Render the cases beside a blueprint, and hold them against what they expect
    Test(Box<test::BlueprintTest>),
}
