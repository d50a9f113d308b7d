//! `orangery plugin`: components, looked into and compiled beforehand.

use clap::{Args, Subcommand};

use crate::command::plugin::{compile::Compile, inspect::PluginInspect};

pub mod compile;
pub mod inspect;

/// Looks into components, and compiles them beforehand.
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct PluginArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// What is done with components.
#[derive(Clone, Debug, Subcommand)]
pub enum PluginCommand {
    /// Show what a component is, what it needs, and what it is granted
    Inspect(PluginInspect),
    /// Compile the components that ship with the host into the cache
    Compile(Compile),
    /// Compile a component from stdin to stdout. The host runs this in a process of its own
    #[command(hide = true)]
    CompileWorker,
    /// Call a component for the host at the other end of stdin. The host runs this in a process of its own
    #[command(hide = true)]
    CallWorker,
}
