//! The worker's process: confines itself and loads code, then makes one call after the other.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};
use wasmtime::{
    Engine,
    component::{Component as Code, Linker, ResourceTable},
};

use super::{
    frame::{DetachedAnswer, LoadFailure, WorkerCall, WorkerFrame, WorkerStart},
    remote::{self, HostConnection, LentMemory, RemoteGuest},
};
use crate::{
    confine::{ProcessLimits, confine_loaded, confine_loader},
    cost::CodeCounts,
    error::Error,
    export::ExportedFunctions,
    instance::{self, CallTerms, most_passed},
    meter::Meter,
    sandbox::{Ticker, one_call_engine, settings},
    wasi,
};

/// How long the host may send no call: longer than it keeps a worker for the next one.
const LONGEST_IDLE: Duration = Duration::from_secs(60);
/// Seconds of processor time of a worker, besides those of one call.
pub(super) const MOST_CPU_SECONDS: u64 = 600;
/// Bytes of memory besides those that calls are allowed: the engine's own, and stacks.
const OWN_MEMORY: u64 = 64 << 20;
/// The compiled code, as the host hands it over.
const CODE: &str = "/proc/self/fd/1";

/// Makes calls for the host at the other end of the standard input, until that closes. Call it from `main`, before any
/// thread is started.
///
/// The exit code is 0, or 1 with one sentence on the standard error.
pub fn call_worker_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody else can be told when nobody reads it.
            let _unread = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    confine_loader()?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let socket = UnixStream::from(socket);
    socket.set_read_timeout(Some(LONGEST_IDLE))?;
    let host = Arc::new(HostConnection::new(File::from(std::os::fd::OwnedFd::from(socket))));
    let Some(start) = host.receive::<WorkerStart>()? else { return Ok(()) };
    let worker = match Worker::load(&start) {
        Ok(worker) => worker,
        Err(failure) => return host.send(&WorkerFrame::Ready(Err(failure))),
    };
    let ticker = Ticker::start(&worker.engine).map_err(io::Error::other)?;
    let budget = &start.budget;
    confine_loaded(ProcessLimits {
        cpu_seconds: MOST_CPU_SECONDS + budget.cpu_milliseconds.div_ceil(1_000),
        memory: (budget.memory_mib << 20) + 2 * most_passed(budget) as u64 + OWN_MEMORY,
    })?;
    let event_loop = Builder::new_current_thread().enable_time().build()?;
    host.send(&WorkerFrame::Ready(Ok(())))?;
    while let Some(call) = host.receive::<WorkerCall>()? {
        host.send(&WorkerFrame::Begun)?;
        worker.call(&host, &ticker, &event_loop, call)?;
    }
    Ok(())
}

/// The code that the host has handed over.
#[expect(unsafe_code, reason = "it was made by our own compiler")]
fn code(engine: &Engine) -> Result<Code, Error> {
    // SAFETY: the host hands over what it got from `compile` or, with its seal checked, from `Cache`, in memory that is
    // sealed. And this process is confined: what is no honest code has nothing here.
    unsafe { Code::deserialize_file(engine, CODE) }.map_err(|error| Error::Compile { why: format!("{error:#}") })
}

/// What a worker has loaded.
struct Worker {
    engine: Engine,
    exports: ExportedFunctions<RemoteGuest>,
    /// Whether the costs of calls are asked for.
    is_measured: bool,
}

impl Worker {
    fn load(start: &WorkerStart) -> Result<Self, LoadFailure> {
        let counts = start.measured.unwrap_or(CodeCounts::Nothing);
        let unpooled = Engine::new(&settings(counts)).map_err(|error| Error::Engine { why: format!("{error:#}") })?;
        let engine = one_call_engine(code(&unpooled)?.resources_required(), counts)?;
        let mut linker = Linker::new(&engine);
        remote::add_to_linker(&mut linker).map_err(|error| Error::Engine { why: format!("{error:#}") })?;
        let exports = ExportedFunctions::link(&linker, &start.interfaces, &code(&engine)?)?;
        Ok(Self { engine, exports, is_measured: start.measured.is_some() })
    }

    fn call(
        &self,
        host: &Arc<HostConnection>,
        ticker: &Ticker,
        event_loop: &Runtime,
        call: WorkerCall,
    ) -> io::Result<()> {
        let WorkerCall { terms: CallTerms { budget, now, randomness }, request } = call;
        let _ticking = ticker.enter();
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(budget.handles).unwrap_or(usize::MAX));
        let guest = RemoteGuest {
            meter: Meter::new(budget.clone(), Arc::new(LentMemory::new(host.clone())), ticker.epochs().clone()),
            wasi: wasi::context(now, randomness, host.clone()),
            host: host.clone(),
            table,
        };
        let (ended, cost) = event_loop.block_on(instance::call(&self.engine, &self.exports, guest, &budget, &request));
        if self.is_measured {
            host.send(&WorkerFrame::Cost(cost))?;
        }
        host.send(&WorkerFrame::End(ended.map(DetachedAnswer::new)))
    }
}
