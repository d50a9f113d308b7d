//! Carries out the commands of this crate.

use std::{io, process::ExitCode};

use crate::{
    arguments::{Cli, Tool},
    command::{blueprint::BlueprintCommand, plugin::PluginCommand},
    command_error::CommandError,
    exit::Exit,
    terminal::Terminal,
};

impl Tool {
    /// Carries the command out, and tells of its errors on stderr.
    pub fn execute(self, terminal: &mut Terminal) -> ExitCode {
        let outcome = match self {
            Tool::Inspect(inspect) => wait_for(inspect.execute(terminal)),
            Tool::Why(why) => wait_for(why.execute(terminal)),
            Tool::Reconcile(reconcile) => wait_for(reconcile.execute(terminal)),
            Tool::Interrupt(interrupt) => wait_for(interrupt.execute(terminal)),
            Tool::Test(test) => wait_for(test.execute(terminal)),
            Tool::Render(render) => wait_for(render.execute(terminal)),
            Tool::Blueprint(blueprint) => match blueprint.command {
                BlueprintCommand::Check(check) => wait_for(check.execute(terminal)),
            },
            Tool::Plugin(plugin) => match plugin.command {
                PluginCommand::Inspect(inspect) => inspect.execute(terminal),
                PluginCommand::Compile(compile) => wait_for(compile.execute(terminal)),
                PluginCommand::CompileWorker => return orangery_plugin::compile_worker_main(),
            },
            Tool::Wit(wit) => wit.execute(terminal),
            Tool::Crd(crd) => crd.execute(terminal),
            Tool::Completion(completion) => {
                completion.execute(&mut Cli::description(), terminal).map(|()| Exit::Ok).map_err(CommandError::from)
            }
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
