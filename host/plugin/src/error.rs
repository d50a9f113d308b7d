//! Why there is no answer of a component, and what that means for its item.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use orangery_core::error::{Code, Fault};
use orangery_proposal::deployer::PluginIdentity;
use serde::{Deserialize, Serialize};

use crate::{
    budget::{Budget, BudgetLimit},
    contract::LEVEL,
};

/// Why a component gave no answer. One variant per thing that can fail; the message does not name the component.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call met one of its limits.
    #[error("the call was stopped: it needs more than {allowed} {unit}; have an administrator raise `limits.{limit}` of its registration, or of its Plugin, if that is meant to be{}", report("had last logged", .logged), unit = limit.unit())]
    Limit {
        /// Which.
        limit: BudgetLimit,
        /// How much the budget allows, in the limit's unit.
        allowed: u64,
        /// The message of its last line of log, which tells what it was at; escaped and cut.
        logged: Option<String>,
    },
    /// The host has no room for the call at the moment.
    #[error("the host has no {what} left for another call; it is made again when there is")]
    Busy {
        /// What is exhausted.
        what: &'static str,
    },
    /// The component is to be installed, and is not there yet.
    #[error("{}", .0.problem())]
    NotInstalled(Fault),
    /// The component could not be read from where it is.
    #[error("{}", .0.problem())]
    NotRead(Fault),
    /// The namespace has no place for the call under its quotas, for long.
    #[error("{}", .0.problem())]
    NoPlace(Fault),
    /// The component trapped.
    #[error("the component crashed: {reason}{}{}", report("wrote", .wrote), report("had last logged", .logged))]
    Trap {
        /// The trap, such as `wasm trap: integer divide by zero`.
        reason: String,
        /// The end of what it wrote to its standard error, such as a panic message; escaped.
        wrote: Option<String>,
        /// The message of its last line of log; escaped and cut.
        logged: Option<String>,
    },
    /// The component called itself too deep.
    #[error("the component crashed: its calls are nested deeper than the stack of 2 MiB{}{}", report("wrote", .wrote), report("had last logged", .logged))]
    StackOverflow {
        /// The end of what it wrote to its standard error; escaped.
        wrote: Option<String>,
        /// The message of its last line of log; escaped and cut.
        logged: Option<String>,
    },
    /// The component ended itself instead of answering.
    #[error("the component ended itself with status {status} instead of answering{}{}", report("wrote", .wrote), report("had last logged", .logged))]
    Exit {
        /// The exit status.
        status: i32,
        /// The end of what it wrote to its standard error; escaped.
        wrote: Option<String>,
        /// The message of its last line of log; escaped and cut.
        logged: Option<String>,
    },
    /// The answer makes no sense.
    #[error("the component's answer makes no sense: {at} {why}")]
    Nonsense {
        /// Where in the answer, such as `stages[0].writes[1].object`.
        at: String,
        /// What is wrong with it.
        why: String,
    },
    /// The answer has more structure than is read (C-328).
    #[error(
        "the component says more at once than the {most} parts that are read: each object that it writes, each field of it and each \
         entry of a list is one or more; have it answer with fewer objects, as in several items"
    )]
    TooManyParts {
        /// How many.
        most: usize,
    },
    /// The component imports what is not offered.
    #[error(
        "the component imports {interface}, which is not offered to components; build it against the contracts that `orangery wit` prints"
    )]
    Import {
        /// The import's name.
        interface: String,
    },
    /// The component was built against another version of the contract.
    #[error(
        "the component uses {interface}, but this host serves version {served}; build it against the contracts that `orangery wit` prints"
    )]
    Version {
        /// The name with the version that the component wants.
        interface: String,
        /// The version line served.
        served: String,
    },
    /// The component says that it was built against another level of the contract.
    #[error(
        "the component was built for contract level {found}, but this host serves level {}; build it again with the SDK of this host",
        LEVEL
    )]
    Level {
        /// The content of the custom section, escaped.
        found: String,
    },
    /// The component exports nothing that this host could call, or not what it is registered for.
    #[error("the component does not export {interface}; build it against the world of `orangery wit` that has it")]
    Export {
        /// What is missing.
        interface: &'static str,
    },
    /// The component's functions do not have the types of the contract.
    #[error(
        "the component does not fit the contract: {why}; build it against the contracts that `orangery wit` prints"
    )]
    Link {
        /// What does not fit.
        why: String,
    },
    /// These bytes are no component.
    #[error("the file is not a WebAssembly component: {why}; build it for the target wasm32-wasip2")]
    NotAComponent {
        /// What it is instead.
        why: String,
    },
    /// The component is larger than this host compiles.
    #[error("the component has {found} {what}, and at most {allowed} are compiled; make it smaller")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        allowed: u64,
    },
    /// The component does not compile.
    #[error("the component does not compile: {why}")]
    Compile {
        /// The compiler's own words.
        why: String,
    },
    /// The compiler met a limit of its process.
    #[error("compiling the component was stopped: it needs more than {limit}; make it smaller")]
    CompileLimit {
        /// The limit, with its unit.
        limit: String,
    },
    /// The compiler took too long by the clock, as it does where others compute.
    #[error("compiling the component took longer than {seconds} s, of which the compiler computed {computed} s")]
    CompileTime {
        /// The seconds that it may take.
        seconds: u64,
        /// The seconds of processor time that it had taken by then.
        computed: u64,
    },
    /// The compiler's process was killed.
    #[error("the compiler of the component was killed, as by the system where memory ends")]
    CompileKilled,
    /// The component could not be compiled for a reason that may pass, and is not compiled again for a while (C-134).
    #[error(
        "{why}; it is compiled again when it is asked for later than {} min after that; make it smaller if that stays so",
        pause.as_secs() / 60
    )]
    CompileLater {
        /// Why.
        why: Arc<Error>,
        /// For how long.
        pause: Duration,
    },
    /// The compiler's process could not be started.
    #[error("the compiler {program} did not start: {source}")]
    Compiler {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The process that a call was to run in could not be started.
    #[error("the process for the component's calls did not start: {why}")]
    WorkerStart {
        /// Why.
        why: String,
    },
    /// The process that a call ran in was killed.
    #[error("the process that the component ran in was killed, as by the system where memory ends{}", report("had last logged", .logged))]
    WorkerKilled {
        /// The message of its last line of log; escaped and cut.
        logged: Option<String>,
    },
    /// The process that a call ran in has crashed, or it answered what no call answers.
    #[error("the process that the component ran in {how}{}{}", report("wrote", .wrote), report("had last logged", .logged))]
    Worker {
        /// How it ended, such as `crashed with signal 11`.
        how: String,
        /// The end of what the process wrote to its standard error; escaped and cut.
        wrote: Option<String>,
        /// The message of the component's last line of log; escaped and cut.
        logged: Option<String>,
    },
    /// The component's file could not be read.
    #[error("the component {path} cannot be read: {source}; correct `component.file` of its registration")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The component's file is another one than its registration names.
    #[error(
        "the component {path} has the digest {found}, and its registration names {expected}; put that component there, or \
         correct `component.digest`"
    )]
    Digest {
        /// The file.
        path: PathBuf,
        /// The digest that is asked for.
        expected: String,
        /// The digest of what is there.
        found: String,
    },
    /// The component ships with the host, and its bytes in the binary are not what was packed.
    #[error(
        "the component in this program is damaged: it does not unpack to what was packed; install the program again"
    )]
    Damaged,
    /// The component ships with the host, but not with this build of it.
    #[error("{sentence}, or register the component with `--plugins`")]
    NotBuilt {
        /// Why, and what to do.
        sentence: &'static str,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The engine does not start on this machine.
    #[error("the WebAssembly engine does not start: {why}")]
    Engine {
        /// The engine's own words.
        why: String,
    },
}

/// Why the cache of compiled components cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cache of compiled components {folder} cannot be used: {why}")]
pub struct CacheError {
    /// The folder.
    pub folder: PathBuf,
    /// Why, and how to mend it.
    pub why: String,
}

/// What it said before its end, and how.
fn report(how: &str, text: &Option<String>) -> String {
    text.as_ref().map(|text| format!("; it {how}: {text}")).unwrap_or_default()
}

impl Error {
    /// A limit of this budget.
    pub(crate) fn limit(limit: BudgetLimit, budget: &Budget) -> Self {
        Error::Limit { limit, allowed: budget.allowed(limit), logged: None }
    }

    /// An answer of a process that belongs to another function than was called.
    pub(crate) fn of_another_function() -> Self {
        Error::Worker { how: "answered for another function than was called".to_owned(), wrote: None, logged: None }
    }

    /// Where the call was when it was stopped or crashed: what the component had last logged.
    pub(crate) fn after(mut self, last: Option<String>) -> Self {
        if let Error::Limit { logged, .. }
        | Error::Trap { logged, .. }
        | Error::StackOverflow { logged, .. }
        | Error::WorkerKilled { logged }
        | Error::Worker { logged, .. }
        | Error::Exit { logged, .. } = &mut self
        {
            *logged = last;
        }
        self
    }

    /// What it means for the item: the component's name goes before the sentence.
    pub fn fault(&self, who: &PluginIdentity) -> Fault {
        let message = format!("{who}: {self}");
        match self {
            Error::NoPlace(fault) | Error::NotInstalled(fault) | Error::NotRead(fault) => fault.clone(),
            // The cluster may have been slow: the next call may be in time.
            Error::Limit { limit: BudgetLimit::Wall, .. }
            | Error::CompileTime { .. }
            | Error::CompileKilled
            | Error::CompileLater { .. } => Fault::later(Code::LimitExceeded, message),
            Error::Limit { .. }
            | Error::StackOverflow { .. }
            | Error::TooLarge { .. }
            | Error::TooManyParts { .. }
            | Error::CompileLimit { .. } => Fault::invalid(Code::LimitExceeded, message),
            Error::Busy { .. }
            | Error::Compiler { .. }
            | Error::WorkerStart { .. }
            | Error::WorkerKilled { .. }
            | Error::Cache(_) => Fault::later(Code::InternalProblem, message),
            Error::Import { .. } => Fault::denied(message),
            Error::Trap { .. }
            | Error::Exit { .. }
            | Error::Worker { .. }
            | Error::Nonsense { .. }
            | Error::Version { .. }
            | Error::Level { .. }
            | Error::Export { .. }
            | Error::Link { .. }
            | Error::NotAComponent { .. }
            | Error::Compile { .. }
            | Error::Read { .. }
            | Error::Digest { .. }
            | Error::Damaged
            | Error::NotBuilt { .. }
            | Error::Engine { .. } => Fault::invalid(Code::InternalProblem, message),
        }
    }

    /// Whether the same bytes may be usable at another time, so that the reason is not remembered.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Error::Busy { .. }
            | Error::NoPlace(_)
            | Error::NotInstalled(_)
            | Error::NotRead(_)
            | Error::CompileTime { .. }
            | Error::CompileKilled
            | Error::CompileLater { .. }
            | Error::Compiler { .. }
            | Error::WorkerStart { .. }
            | Error::WorkerKilled { .. }
            | Error::Cache(_) => true,
            Error::Limit { .. }
            | Error::Worker { .. }
            | Error::Trap { .. }
            | Error::StackOverflow { .. }
            | Error::Exit { .. }
            | Error::Nonsense { .. }
            | Error::TooManyParts { .. }
            | Error::Import { .. }
            | Error::Version { .. }
            | Error::Level { .. }
            | Error::Export { .. }
            | Error::Link { .. }
            | Error::NotAComponent { .. }
            | Error::TooLarge { .. }
            | Error::Compile { .. }
            | Error::CompileLimit { .. }
            | Error::Read { .. }
            | Error::Digest { .. }
            | Error::Damaged
            | Error::NotBuilt { .. }
            | Error::Engine { .. } => false,
        }
    }
}

/// What a host function or a limiter raises inside a call, to be found again in the error that the call ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum CallStop {
    /// A limit of the call's budget.
    #[error("limit {0}")]
    Limit(BudgetLimit),
    /// A resource of the whole host.
    #[error("no {0} left")]
    Busy(SharedResource),
}

impl CallStop {
    pub(crate) fn error(self, budget: &Budget) -> Error {
        match self {
            CallStop::Limit(limit) => Error::limit(limit, budget),
            CallStop::Busy(what) => Error::Busy { what: what.name() },
        }
    }
}

/// What all calls of a host share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SharedResource {
    /// Bytes of linear memory.
    Memory,
    /// Slots of the pool.
    Instances,
}

impl SharedResource {
    /// What it is called in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SharedResource::Memory => "memory",
            SharedResource::Instances => "instances",
        }
    }
}

impl fmt::Display for SharedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_329_a_fault_names_the_component_and_the_administrator() {
        let who =
            PluginIdentity { name: "mine".into(), version: "1.2.3".into(), digest: "sha256:0".into(), is_pinned: true };
        let cpu = Error::limit(BudgetLimit::Cpu, &Budget::default());
        assert_eq!(
            cpu.fault(&who),
            Fault::invalid(
                Code::LimitExceeded,
                "mine 1.2.3: the call was stopped: it needs more than 2000 ms of processor time; have an administrator raise `limits.cpuMilliseconds` of its registration, or of its Plugin, if that is meant to be"
            )
        );
        let wall = Error::limit(BudgetLimit::Wall, &Budget::default()).after(Some("rendering".into()));
        assert!(wall.to_string().ends_with("if that is meant to be; it had last logged: rendering"), "{wall}");
        assert!(matches!(wall.fault(&who), Fault::Later(_)));
        assert!(matches!(Error::Import { interface: "x:y/z".into() }.fault(&who), Fault::Denied(_)));
        let parts = Error::TooManyParts { most: 8 }.fault(&who);
        let message = "mine 1.2.3: the component says more at once than the 8 parts that are read: each object that it writes, each field \
                       of it and each entry of a list is one or more; have it answer with fewer objects, as in several items";
        assert_eq!(parts, Fault::invalid(Code::LimitExceeded, message), "C-328");
    }
}
