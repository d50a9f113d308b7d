//! The workers of a host: those that make calls, and those that wait for the next one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orangery_turns::{Tenant, Turn, Turns, lending};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use super::{
    connection::Lost,
    frame::WorkerCall,
    host_calls,
    process::{CompiledCode, WorkerCommand, WorkerProcess},
    serve::MOST_CPU_SECONDS,
};
use crate::{
    budget::{Budget, BudgetLimit},
    capability::Capabilities,
    error::Error,
    export::{ExportAnswer, ExportRequest},
    instance::{CallEnd, CallTerms},
    meter::LENT_MEMORY,
    transcript::Transcript,
};

/// How long the calls of one worker take together, of which it computes at most all of the time.
const LONGEST_USE: Duration = Duration::from_secs(MOST_CPU_SECONDS);
/// How long a worker waits for its next call; then it is ended, whatever it does meanwhile.
const LONGEST_IDLE: Duration = Duration::from_secs(50);

/// The most bytes of code of all workers that wait for their next call, that of each component once; an interpreter with its language
/// has 40 MB.
const MOST_CODE_OF_IDLE: usize = 128 << 20;

/// What a worker serves, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WorkerKey {
    digest: String,
    tenant: Tenant,
    budget: Budget,
}

/// A worker that waits for its next call.
struct IdleWorker {
    key: WorkerKey,
    process: WorkerProcess,
    since: Instant,
}

impl IdleWorker {
    fn is_usable(&mut self) -> bool {
        self.since.elapsed() < LONGEST_IDLE && self.process.is_alive()
    }
}

/// Those that wait, the one used last at the end.
#[derive(Default)]
struct IdleWorkers {
    waiting: Vec<IdleWorker>,
    /// Ends those that have waited for long; there is one while any waits.
    ending: Option<JoinHandle<()>>,
}

impl IdleWorkers {
    /// Bytes of their code, that of each component once.
    fn code(&self) -> usize {
        let code: BTreeMap<&str, usize> =
            self.waiting.iter().map(|worker| (worker.key.digest.as_str(), worker.process.code)).collect();
        code.values().sum()
    }
}

/// The workers of a host.
pub(crate) struct Workers {
    command: WorkerCommand,
    most: usize,
    places: Arc<Turns>,
    /// Protects those that wait; held for one look-up.
    idle: Arc<Mutex<IdleWorkers>>,
}

impl Workers {
    /// At most so many processes at once, those that wait among them.
    pub(crate) fn new(command: WorkerCommand, most: usize) -> Self {
        Self { command, most, places: Turns::new(most), idle: Arc::default() }
    }

    /// A place for a process, when this tenant has its turn.
    pub(crate) async fn place(&self, tenant: &Tenant) -> Turn {
        lending(self.places.acquire(tenant)).await
    }

    /// Starts a worker for the calls of a tenant, which finds out whether the code can be used. Whoever calls it has a place.
    pub(crate) async fn check(&self, tenant: &Tenant, code: &CompiledCode, budget: &Budget) -> Result<(), Error> {
        let key = WorkerKey { digest: code.digest.clone(), tenant: tenant.clone(), budget: budget.clone() };
        let process = self.started(code, &key).await?;
        self.keep(key, process);
        Ok(())
    }

    /// Makes a call in a worker. Whoever calls it has a place.
    pub(crate) async fn call(
        &self,
        tenant: &Tenant,
        code: &CompiledCode,
        terms: CallTerms,
        mut capabilities: Capabilities,
        request: ExportRequest,
    ) -> Result<ExportAnswer, Error> {
        let (budget, transcript) = (terms.budget.clone(), capabilities.transcript.clone());
        if let Err(stop) = capabilities.meter.lend(LENT_MEMORY) {
            return Err(CallEnd::Stop(stop).error(&budget, &transcript));
        }
        let key = WorkerKey { digest: code.digest.clone(), tenant: tenant.clone(), budget };
        let call = WorkerCall { terms, request };
        let mut left = Duration::from_millis(key.budget.wall_milliseconds);
        if let Some(mut process) = self.waiting(&key) {
            let begin = Instant::now();
            let called = called(&mut process, &mut capabilities, &call, left).await;
            // Where it died while nobody called it, another one takes its place.
            if !matches!(called, Err(CallFailure::Lost(Lost::GoneBefore))) {
                return self.ended(key, process, called, &transcript).await;
            }
            left = left.saturating_sub(begin.elapsed());
        }
        let mut process = self.started(code, &key).await?;
        let called = called(&mut process, &mut capabilities, &call, left).await;
        self.ended(key, process, called, &transcript).await
    }

    /// What a call means for its worker, and for whoever asked for it.
    async fn ended(
        &self,
        key: WorkerKey,
        process: WorkerProcess,
        called: Result<Result<ExportAnswer, CallEnd>, CallFailure>,
        transcript: &Mutex<Transcript>,
    ) -> Result<ExportAnswer, Error> {
        match called {
            Ok(ended) => {
                let ended = ended.map_err(|end| end.error(&key.budget, transcript));
                self.keep(key, process);
                ended
            }
            Err(CallFailure::Lost(lost)) => Err(process.end(lost).await),
            // It is dropped, and so killed: whether it still computes or was frozen is all the same.
            Err(CallFailure::TooLong) => Err(Error::limit(BudgetLimit::Wall, &key.budget)),
        }
    }

    /// The worker for this key that was used last.
    fn waiting(&self, key: &WorkerKey) -> Option<WorkerProcess> {
        let mut idle = self.idle();
        idle.waiting.retain_mut(IdleWorker::is_usable);
        let at = idle.waiting.iter().rposition(|worker| worker.key == *key)?;
        Some(idle.waiting.remove(at).process)
    }

    /// A new worker. Where there are as many as there may be, one that waits goes.
    async fn started(&self, code: &CompiledCode, key: &WorkerKey) -> Result<WorkerProcess, Error> {
        {
            let mut idle = self.idle();
            let waiting = &mut idle.waiting;
            let too_many = (waiting.len() + self.places.taken()).saturating_sub(self.most).min(waiting.len());
            waiting.drain(..too_many);
        }
        WorkerProcess::start(&self.command, code, &key.budget).await
    }

    /// Keeps a worker for the next call, unless that might be more than the system lets the process compute. Those that have waited
    /// for longest go where the code of all takes too much.
    fn keep(&self, key: WorkerKey, process: WorkerProcess) {
        if process.used >= LONGEST_USE || process.code > MOST_CODE_OF_IDLE {
            return;
        }
        let mut idle = self.idle();
        idle.waiting.push(IdleWorker { key, process, since: Instant::now() });
        while idle.code() > MOST_CODE_OF_IDLE {
            idle.waiting.remove(0);
        }
        // Of an executor that has gone it is finished, too.
        if idle.ending.as_ref().is_none_or(JoinHandle::is_finished) {
            idle.ending = Some(tokio::spawn(end_idle(Arc::downgrade(&self.idle))));
        }
    }

    fn idle(&self) -> MutexGuard<'_, IdleWorkers> {
        locked(&self.idle)
    }
}

fn locked(idle: &Mutex<IdleWorkers>) -> MutexGuard<'_, IdleWorkers> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends workers as they have waited for too long, until none waits.
async fn end_idle(workers: Weak<Mutex<IdleWorkers>>) {
    loop {
        let next = {
            let Some(workers) = workers.upgrade() else { return };
            let mut idle = locked(&workers);
            idle.waiting.retain_mut(IdleWorker::is_usable);
            let Some(oldest) = idle.waiting.iter().map(|worker| worker.since).min() else {
                idle.ending = None;
                return;
            };
            oldest + LONGEST_IDLE
        };
        sleep_until(next).await;
    }
}

/// Why a worker is of no use after a call.
enum CallFailure {
    Lost(Lost),
    /// The call took longer than it may.
    TooLong,
}

/// Makes a call in this worker, for at most so long.
async fn called(
    process: &mut WorkerProcess,
    capabilities: &mut Capabilities,
    call: &WorkerCall,
    left: Duration,
) -> Result<Result<ExportAnswer, CallEnd>, CallFailure> {
    let begin = Instant::now();
    let answer = timeout(left, host_calls::call(process, capabilities, call)).await;
    process.used += begin.elapsed();
    answer.map_err(|_elapsed| CallFailure::TooLong)?.map_err(CallFailure::Lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a worker is used again that was kept so long ago, whose calls took so long, and that has so much code.
    fn is_used_again(since: Duration, used: Duration, code_of: usize) -> bool {
        let command = WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), "exec sleep 60".into()] };
        let code = CompiledCode::new("sha256:0", vec![], b"").unwrap();
        let workers = Workers::new(command.clone(), 1);
        let key = WorkerKey { digest: code.digest.clone(), tenant: None, budget: Budget::default() };
        let mut process = WorkerProcess::spawn(&command, code.file().unwrap()).unwrap();
        process.used = used;
        process.code = code_of;
        workers.keep(key.clone(), process);
        for worker in &mut workers.idle().waiting {
            worker.since -= since;
        }
        workers.waiting(&key).is_some()
    }

    const SHORT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn c_72_one_that_waits_is_ended_though_no_call_comes() {
        let command = WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), "exec sleep 60".into()] };
        let code = CompiledCode::new("sha256:0", vec![], b"").unwrap();
        let workers = Workers::new(command.clone(), 4);
        let key = |tenant| WorkerKey { digest: code.digest.clone(), tenant, budget: Budget::default() };
        let keep = |tenant| {
            let process = WorkerProcess::spawn(&command, code.file().unwrap()).unwrap();
            workers.keep(key(tenant), process);
        };
        let waiting = || workers.idle().waiting.iter().map(|worker| worker.key.tenant.clone()).collect::<Vec<_>>();
        let later = Some(orangery_core::name::Namespace::from_static("later"));
        keep(None);
        sleep_until(Instant::now() + LONGEST_IDLE - SHORT).await;
        keep(later.clone());
        sleep_until(Instant::now() + 2 * SHORT).await;
        assert_eq!(waiting(), [later]);
        sleep_until(Instant::now() + LONGEST_IDLE).await;
        assert!(waiting().is_empty());
        assert!(workers.idle().ending.is_none(), "nothing goes on while none waits");
        keep(None);
        sleep_until(Instant::now() + LONGEST_IDLE + SHORT).await;
        assert!(waiting().is_empty());
    }

    #[tokio::test]
    async fn c_72_limits_workers_one_that_has_worked_for_long_makes_no_further_call() {
        let used = [LONGEST_USE - SHORT, LONGEST_USE].map(|used| is_used_again(Duration::ZERO, used, 0));
        assert_eq!(used, [true, false]);
    }

    #[tokio::test]
    async fn c_72_limits_workers_one_that_has_waited_for_long_makes_no_further_call() {
        let waited = [LONGEST_IDLE - SHORT, LONGEST_IDLE].map(|since| is_used_again(since, Duration::ZERO, 0));
        assert_eq!(waited, [true, false]);
    }

    #[tokio::test]
    async fn c_302_limits_workers_those_that_wait_have_so_much_code_together() {
        let command = WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), "exec sleep 60".into()] };
        let code = CompiledCode::new("sha256:0", vec![], b"").unwrap();
        let workers = Workers::new(command.clone(), 8);
        for (digest, code_of) in
            [("a", MOST_CODE_OF_IDLE / 2), ("b", MOST_CODE_OF_IDLE / 2), ("b", MOST_CODE_OF_IDLE / 2), ("c", 1)]
        {
            let mut process = WorkerProcess::spawn(&command, code.file().unwrap()).unwrap();
            process.code = code_of;
            workers.keep(WorkerKey { digest: digest.to_owned(), tenant: None, budget: Budget::default() }, process);
        }
        let waiting: Vec<_> = workers.idle().waiting.iter().map(|worker| worker.key.digest.clone()).collect();
        assert_eq!(waiting, ["b", "b", "c"], "the code of one component counts once, and the first goes");
    }

    #[tokio::test]
    async fn c_302_limits_workers_one_with_much_code_makes_no_further_call() {
        let code =
            [MOST_CODE_OF_IDLE, MOST_CODE_OF_IDLE + 1].map(|code| is_used_again(Duration::ZERO, Duration::ZERO, code));
        assert_eq!(code, [true, false]);
    }
}
