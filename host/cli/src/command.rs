//! The commands, one file each, and how those of this crate are carried out. `up`, `run`, `plan`, `rollback`, `explain`, `drift` and `container` are described here
//! and carried out by `runtime`, which alone may wire everything.

use std::{io, process::ExitCode};

use clap::Subcommand;

use self::{
    approve::{Approve, Reject},
    blueprint::{BlueprintArguments, BlueprintCommand},
    bundle::SupportBundle,
    completion::CompletionArguments,
    crd::Crd,
    diff::Diff,
    force_delete::ForceDelete,
    history::History,
    inspect::Inspect,
    interrupt::Interrupt,
    logs::Logs,
    plugin::{PluginArguments, PluginCommand},
    policy::PolicyArguments,
    reconcile::Reconcile,
    release_tests::Test,
    render::Render,
    show::Show,
    suspend::{Resume, Suspend},
    targets::{TargetType, TargetsArguments, TargetsCommand},
    top::Top,
    uninstall::Uninstall,
    why::Why,
    wit::Wit,
};
use crate::{command_error::CommandError, exit::Exit, terminal::Terminal};

pub mod approve;
pub mod blueprint;
pub mod bundle;
pub mod completion;
pub mod container;
pub mod crd;
pub mod diff;
pub mod drift;
pub mod explain;
pub mod force_delete;
pub mod history;
pub mod inspect;
pub mod interrupt;
pub mod logging;
pub mod logs;
pub mod plan;
pub mod plugin;
pub mod policy;
pub mod reconcile;
pub mod release_tests;
pub mod render;
pub mod rollback;
pub mod run;
pub mod show;
pub mod suspend;
pub mod targets;
#[cfg(test)]
pub(crate) mod tests;
pub mod top;
pub mod uninstall;
pub mod up;
pub mod why;
pub mod wit;

/// The commands that this crate carries out.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Show installations as trees, with phases, waits and errors
    Inspect(Inspect),
    /// Show what an object waits for, or why it failed
    Why(Why),
    /// Show what happened in a job, in the order of time
    Logs(Logs),
    /// Show what costs most of deploy items, components and clusters
    Top(Top),
    /// Write an archive for support, without what is secret
    Bundle(SupportBundle),
    /// Start a job at a root installation
    Reconcile(Reconcile),
    /// End the running job of an installation
    Interrupt(Interrupt),
    /// Show what deploy items are about to write, and approve it
    Approve(Approve),
    /// Reject what deploy items are about to write
    Reject(Reject),
    /// Show which jobs of an installation are on record
    History(History),
    /// Show what a job did, as it is on record
    Show(Show),
    /// Show what differs between two jobs on record
    Diff(Diff),
    /// Have no job of a root installation begin
    Suspend(Suspend),
    /// Have jobs of a root installation begin again
    Resume(Resume),
    /// Run the tests of a release of Helm
    Test(Test),
    /// Delete what no operator can, and tell what it leaves behind
    ForceDelete(ForceDelete),
    /// Make Targets
    Targets(TargetsArguments),
    /// Tell what would hang without the operator, and take guards off
    Uninstall(Uninstall),
    /// Render installations without a cluster
    Render(Box<Render>),
    /// Work on blueprints before they are deployed
    Blueprint(BlueprintArguments),
    /// Make, build, test, publish and look into components, and compile them beforehand
    Plugin(PluginArguments),
    /// Look at what the objects of namespaces may do
    Policy(PolicyArguments),
    /// Print the custom resource definitions, or apply them
    Crd(Crd),
    /// Print the contracts between host and components
    Wit(Wit),
    /// Print a completion script for a shell
    Completion(CompletionArguments),
}

impl Tool {
    /// Carries the command out, and reports its errors on stderr.
    pub fn execute(self, terminal: &mut Terminal) -> ExitCode {
        let outcome = match self {
            Tool::Inspect(inspect) => wait_for(inspect.execute(terminal)),
            Tool::Why(why) => wait_for(why.execute(terminal)),
            Tool::Logs(logs) => wait_for(logs.execute(terminal)),
            Tool::Top(top) => wait_for(top.execute(terminal)),
            Tool::Bundle(bundle) => wait_for(bundle.execute(terminal)),
            Tool::Reconcile(reconcile) => wait_for(reconcile.execute(terminal)),
            Tool::Interrupt(interrupt) => wait_for(interrupt.execute(terminal)),
            Tool::Approve(approve) => wait_for(approve.execute(terminal)),
            Tool::Reject(reject) => wait_for(reject.execute(terminal)),
            Tool::History(history) => wait_for(history.execute(terminal)),
            Tool::Show(show) => wait_for(show.execute(terminal)),
            Tool::Diff(diff) => wait_for(diff.execute(terminal)),
            Tool::Suspend(suspend) => wait_for(suspend.execute(terminal)),
            Tool::Resume(resume) => wait_for(resume.execute(terminal)),
            Tool::Test(test) => wait_for(test.execute(terminal)),
            Tool::ForceDelete(delete) => wait_for(delete.execute(terminal)),
            Tool::Targets(targets) => match targets.command {
                TargetsCommand::Create(TargetType::KubernetesCluster(cluster)) => cluster.execute(terminal),
            },
            Tool::Uninstall(uninstall) => wait_for(uninstall.execute(terminal)),
            Tool::Render(render) => wait_for(render.execute(terminal)),
            Tool::Blueprint(blueprint) => match blueprint.command {
                BlueprintCommand::Check(check) => wait_for(check.execute(terminal)),
                BlueprintCommand::Test(test) => wait_for(test.execute(terminal)),
            },
            Tool::Plugin(plugin) => match plugin.command {
                PluginCommand::New(new) => new.execute(terminal),
                PluginCommand::Build(build) => build.execute(terminal),
                PluginCommand::Watch(watch) => wait_for(watch.execute(terminal)),
                PluginCommand::Bench(bench) => wait_for(bench.execute(terminal)),
                PluginCommand::Test(test) => wait_for(test.execute(terminal)),
                PluginCommand::Conform(conform) => wait_for(conform.execute(terminal)),
                PluginCommand::Replay(replay) => wait_for(replay.execute(terminal)),
                PluginCommand::Diff(diff) => wait_for(diff.execute(terminal)),
                PluginCommand::Inspect(inspect) => inspect.execute(terminal),
                PluginCommand::Push(push) => wait_for(push.execute(terminal)),
                PluginCommand::Pull(pull) => wait_for(pull.execute(terminal)),
                PluginCommand::Sign(sign) => wait_for(sign.execute(terminal)),
                PluginCommand::Verify(verify) => wait_for(verify.execute(terminal)),
                PluginCommand::Compile(compile) => wait_for(compile.execute(terminal)),
                PluginCommand::CompileWorker => return orangery_plugin::compile_worker_main(),
                PluginCommand::CompileCountingWorker => return orangery_plugin::compile_counting_worker_main(),
                PluginCommand::CallWorker => return orangery_plugin::call_worker_main(),
            },
            Tool::Policy(policy) => wait_for(policy.execute(terminal)),
            Tool::Wit(wit) => wait_for(wit.execute(terminal)),
            Tool::Crd(crd) => wait_for(crd.execute(terminal)),
            Tool::Completion(completion) => completion.execute(terminal),
        };
        match outcome {
            Ok(exit) => exit.into(),
            // Whoever read the output has seen enough, as in `orangery wit | head`.
            Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok.into(),
            Err(error) => {
                terminal.error(&error);
                error.exit().into()
            }
        }
    }
}

/// Runs what talks to a cluster on an event loop of its own: one thread is enough for a handful of calls.
fn wait_for(command: impl Future<Output = Result<Exit, CommandError>>) -> Result<Exit, CommandError> {
    let event_loop =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::EventLoop)?;
    event_loop.block_on(command)
}
