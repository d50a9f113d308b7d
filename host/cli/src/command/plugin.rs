//! `orangery plugin`: components, made, built, tested, looked into and compiled beforehand.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::command::plugin::{
    bench::PluginBench, build::PluginBuild, compile::Compile, conform::PluginConform, diff::PluginDiff,
    inspect::PluginInspect, new::PluginNew, pull::PluginPull, push::PluginPush, replay::PluginReplay, sign::PluginSign,
    test::PluginTest, verify::PluginVerify, watch::PluginWatch,
};

pub mod bench;
pub mod build;
pub mod compile;
pub mod conform;
pub mod diff;
pub mod inspect;
pub mod new;
pub mod pull;
pub mod push;
pub mod replay;
pub mod sign;
pub mod test;
pub mod verify;
pub mod watch;

/// Makes, builds, tests, publishes and looks into components, and compiles them beforehand.
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
    /// Write a project for a component of one's own
    New(PluginNew),
    /// Build the component of a project with the tools of its language
    Build(PluginBuild),
    /// Build a project whenever a file of it is saved
    Watch(PluginWatch),
    /// Run the recorded cases of a component
    Test(PluginTest),
    /// Measure what the recorded cases of a component cost
    Bench(PluginBench),
    /// Ask a deployer what every deployer has to be able to do
    Conform(PluginConform),
    /// Make recorded calls again with another component
    Replay(PluginReplay),
    /// Say what changes where one component takes the place of another
    Diff(PluginDiff),
    /// Show what a component is, what it needs, and what it is granted
    Inspect(PluginInspect),
    /// Push a component to a registry
    Push(PluginPush),
    /// Pull a component from a registry
    Pull(PluginPull),
    /// Sign a component in a registry
    Sign(PluginSign),
    /// Check who has signed a component in a registry
    Verify(PluginVerify),
    /// Compile the components that ship with the host into the cache
    Compile(Compile),
    /// Compile a component from stdin to stdout. The host runs this in a process of its own
    #[command(hide = true)]
    CompileWorker,
    /// The same to code that counts its steps, for benchmarks
    #[command(hide = true)]
    CompileCountingWorker,
    /// Call a component for the host at the other end of stdin. The host runs this in a process of its own
    #[command(hide = true)]
    CallWorker,
}

/// The folder that something lies in; of a bare name the current one.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_path_buf(),
        Some(_) | None => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("cases")), PathBuf::from("."));
        assert_eq!(folder_of(Path::new("a/cases")), PathBuf::from("a"));
    }
}
