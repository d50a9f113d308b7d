//! Makes everything and joins it. Nobody but `main` and the tests imports this crate.
//!
//! - [`execute`]: what the binary does with its command line.
//! - [`Operator`]: stores, watches and controllers over one cluster.
//! - [`machine`]: the clock, the randomness and the name, read nowhere else.
//! - [`up`], [`run`], [`plan`] with `rollback`, [`explain`] and [`drift`]: the commands that need all rooms at once; all others are `orangery-cli`'s.

use std::{io, process::ExitCode, time::Duration};

use orangery_cli::{Cli, Command, Exit, Terminal};

mod caller;
mod container;
mod crashes;
#[cfg(test)]
mod fixture;
mod health_check;
mod journal;
mod logging;
mod recordings;
mod stop;

pub mod components;
pub mod definitions;
pub mod drift;
pub mod explain;
pub mod lease;
pub mod machine;
pub mod metrics;
pub mod operator;
pub mod plan;
pub mod requests;
pub mod run;
pub mod up;

pub use crate::{
    definitions::Definitions,
    operator::{Operator, OperatorConfig},
};

/// Carries a command line out, and tells on stderr why something could not be done.
pub fn execute(cli: Cli) -> ExitCode {
    let mut terminal = Terminal::of_process(cli.colouring());
    let ended = match cli.command {
        Command::Tool(tool) => return tool.execute(&mut terminal),
        Command::Up(arguments) => on_event_loop(up::execute(arguments, &mut terminal)),
        Command::Run(arguments) if arguments.observe => on_event_loop(plan::observe(&arguments, &mut terminal)),
        Command::Run(arguments) => on_event_loop(run::execute(arguments)),
        Command::Plan(arguments) => on_event_loop(plan::execute(*arguments, &mut terminal)),
        Command::Rollback(arguments) => on_event_loop(plan::roll_back(*arguments, &mut terminal)),
        Command::Explain(arguments) => on_event_loop(explain::execute(*arguments, &mut terminal)),
        Command::Drift(arguments) => on_event_loop(drift::execute(*arguments, &mut terminal)),
        Command::Container(arguments) => {
            on_event_loop(async { Ok::<_, run::RunError>(container::execute(arguments.command, &mut terminal).await) })
        }
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            terminal.error(&error);
            error.exit().into()
        }
    }
}

/// Why a command ends.
#[derive(Debug, thiserror::Error)]
enum RuntimeError {
    #[error(transparent)]
    Up(#[from] up::UpError),
    #[error(transparent)]
    Run(#[from] run::RunError),
    #[error(transparent)]
    Plan(#[from] plan::PlanError),
    #[error(transparent)]
    Explain(#[from] explain::ExplainError),
    #[error(transparent)]
    Drift(#[from] drift::DriftError),
    #[error("the process cannot start its event loop: {0}; it may have reached its limit of threads or open files")]
    EventLoop(#[source] io::Error),
}

impl RuntimeError {
    fn exit(&self) -> Exit {
        match self {
            RuntimeError::Up(error) => error.exit(),
            RuntimeError::Run(error) => error.exit(),
            RuntimeError::Plan(error) => error.exit(),
            RuntimeError::Explain(error) => error.exit(),
            RuntimeError::Drift(_) | RuntimeError::EventLoop(_) => Exit::Failed,
        }
    }
}

/// How long a thread is kept that has nothing to compute: with it goes the memory that the allocator kept for what it computed.
const IDLE_THREAD: Duration = Duration::from_millis(10);

/// Bytes of the stack of a thread, of which those count that are used: a call is polled on one, with all that waits in it, and one that
/// has no room ends the process.
const STACK: usize = 4 << 20;

/// How long a process that has ended its work waits for threads that still compute.
const LAST_THREADS: Duration = Duration::from_secs(1);

fn on_event_loop<E>(command: impl Future<Output = Result<Exit, E>>) -> Result<Exit, RuntimeError>
where
    RuntimeError: From<E>,
{
    let event_loop = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(IDLE_THREAD)
        .thread_stack_size(STACK)
        .build();
    let event_loop = event_loop.map_err(RuntimeError::EventLoop)?;
    let ended = event_loop.block_on(command);
    // What still computes is cut off, as the process ends.
    event_loop.shutdown_timeout(LAST_THREADS);
    Ok(ended?)
}
