//! Computations whose length others chose: they hold up nobody but those of their own namespace.

use std::{
    future::poll_fn,
    num::NonZeroUsize,
    panic::resume_unwind,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    thread::{self, available_parallelism},
    time::Instant,
};

use tokio::{runtime::Handle, task::JoinError};

use crate::{Tenant, Turns, debts::Debts, large::off_the_executor};

/// Computations that are run at once for each processor: one namespace alone gets half of them.
const AT_ONCE_EACH: usize = 2;
/// How much less a thread counts that gives way: a tenth of another one, to the scheduler of Linux.
const LOW_PRIORITY: i32 = 10;
/// Bytes of its stack, as those of the executor have.
const STACK: usize = 2 << 20;

/// Computes what may take long off the executor, so that whoever waits for an answer, a watch or a timer goes on, and in
/// turns by namespace, so that there is a processor for the next one (C-45). Each computation has a budget of its own, which
/// ends it. Where several namespaces compute, one that does so for long gives way to the others (C-96).
pub struct Computations {
    turns: Arc<Turns>,
    /// Protects what namespaces have computed. Held for one look or one change.
    debts: Mutex<Debts>,
}

impl Default for Computations {
    /// As many as this machine has processors for.
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, NonZeroUsize::get) * AT_ONCE_EACH)
    }
}

impl Computations {
    /// So many at once.
    pub fn new(at_once: usize) -> Self {
        Self { turns: Turns::new(at_once), debts: Mutex::default() }
    }

    /// Carries out some work. Each time when it goes on it has its turn, and computes off the executor; while it waits for
    /// anything, it has neither.
    pub async fn run<T: Send>(&self, tenant: &Tenant, work: impl Future<Output = T> + Send) -> T {
        let mut work = pin!(work);
        loop {
            let turn = self.turns.acquire(tenant).await;
            let begin = Instant::now();
            let gives_way = self.debts().gives_way(tenant, begin);
            let went_on = poll_fn(|context| {
                let waker = context.waker();
                let mut go_on = || work.as_mut().poll(&mut Context::from_waker(waker));
                Poll::Ready(off_the_executor(|| if gives_way { at_low_priority(go_on) } else { go_on() }))
            });
            let went_on = went_on.await;
            let end = Instant::now();
            self.debts().computed(tenant, end.saturating_duration_since(begin), end);
            drop(turn);
            match went_on {
                Poll::Ready(answer) => return answer,
                Poll::Pending => woken().await,
            }
        }
    }

    fn debts(&self) -> MutexGuard<'_, Debts> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does some work on a thread that others go before. A thread of its own: none gets back the priority that it gave up. Where
/// there is none to be had, the work is done here.
fn at_low_priority<T: Send>(mut work: impl FnMut() -> T + Send) -> T {
    let (executor, span) = (Handle::try_current().ok(), tracing::Span::current());
    let done = thread::scope(|scope| {
        let work = || {
            // A system that refuses has all threads alike.
            let _refused = rustix::process::setpriority_process(None, LOW_PRIORITY);
            let _entered = executor.as_ref().map(Handle::enter);
            // What is said there is said of the same object.
            span.in_scope(&mut work)
        };
        let spawned = thread::Builder::new().name("computation".to_owned()).stack_size(STACK).spawn_scoped(scope, work);
        spawned.ok().map(|spawned| spawned.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    done.unwrap_or_else(work)
}

/// Some work that blocks, on a thread that was started by the executor, whoever asks for it. One that a thread of low priority
/// starts has its priority for good, and what blocked on it once may be the executor the next time (C-96).
///
/// # Errors
/// The work panicked, or the executor ends.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    tokio::spawn(async { tokio::task::spawn_blocking(work).await }).await.flatten()
}

/// Pending until the task is polled again: what it waits for has its waker.
async fn woken() {
    let mut is_polled_again = false;
    poll_fn(|_| if std::mem::replace(&mut is_polled_again, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, mpsc},
        time::Duration,
    };

    use orangery_core::name::Namespace;
    use tokio::{sync::oneshot, task::yield_now, time::timeout};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(20);

    fn of(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    /// Computations that take until the test lets them end, one for each sender.
    struct Endless {
        begun: Arc<Mutex<Vec<&'static str>>>,
        ends: mpsc::Sender<()>,
        end: Arc<Mutex<mpsc::Receiver<()>>>,
    }

    impl Endless {
        fn new() -> Self {
            let (ends, end) = mpsc::channel();
            Self { begun: Arc::default(), ends, end: Arc::new(Mutex::new(end)) }
        }

        fn spawn(&self, computations: &Arc<Computations>, name: &'static str) -> tokio::task::JoinHandle<()> {
            let (computations, begun, end) = (Arc::clone(computations), Arc::clone(&self.begun), Arc::clone(&self.end));
            tokio::spawn(async move {
                let endless = async {
                    begun.lock().unwrap().push(name);
                    // A thread that computes asks nobody.
                    end.lock().unwrap().recv_timeout(DEADLINE).unwrap();
                };
                computations.run(&of(name), endless).await;
            })
        }

        async fn has_begun(&self, names: &[&str]) {
            let begun = async {
                while *self.begun.lock().unwrap() != names {
                    yield_now().await;
                }
            };
            timeout(DEADLINE, begun).await.expect("they begin");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn c_45_what_computes_for_long_holds_up_neither_the_executor_nor_the_next_namespace() {
        let (computations, endless) = (Arc::new(Computations::new(4)), Endless::new());
        let mut spawned = Vec::new();
        // The only thread of the executor goes on with others, also while it has some computed.
        for (name, begun) in [("a", vec!["a"]), ("a", vec!["a", "a"]), ("b", vec!["a", "a", "b"])] {
            spawned.push(endless.spawn(&computations, name));
            endless.has_begun(&begun).await;
        }
        spawned.push(endless.spawn(&computations, "a"));
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move { sender.send(()) });
        timeout(DEADLINE, receiver).await.expect("others go on").unwrap();
        spawned.push(endless.spawn(&computations, "c"));
        endless.has_begun(&["a", "a", "b", "c"]).await;
        for _ in &spawned {
            endless.ends.send(()).unwrap();
        }
        for task in spawned {
            timeout(DEADLINE, task).await.expect("in time").unwrap();
        }
        assert_eq!(*endless.begun.lock().unwrap(), ["a", "a", "b", "c", "a"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c_96_what_has_computed_for_long_goes_on_at_low_priority_while_others_compute() {
        let computations = Computations::new(2);
        let computed = async |name: &'static str, spins: Duration| {
            let work = async {
                let begin = Instant::now();
                while begin.elapsed() < spins {
                    std::hint::spin_loop();
                }
                // What needs the executor finds it.
                assert!(Handle::try_current().is_ok());
                rustix::process::getpriority_process(None).unwrap()
            };
            computations.run(&of(name), work).await
        };
        let usual = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(computed("long", Duration::from_millis(500)).await, usual);
        assert_eq!(computed("long", Duration::ZERO).await, usual, "nobody else computes");
        assert_eq!(computed("short", Duration::ZERO).await, usual);
        assert_eq!(computed("long", Duration::ZERO).await, LOW_PRIORITY);
        assert_eq!(computed("short", Duration::ZERO).await, usual);
        let long = of("long");
        let panics = computations.run(&long, async { panic!("of the work") });
        let panics = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(panics)).await;
        let message = panics.err().and_then(|panic| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        assert_eq!(message.as_deref(), Some("of the work"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c_96_what_blocks_for_one_at_low_priority_runs_on_threads_that_have_the_usual_one() {
        const AT_ONCE: usize = 16;
        let computations = Computations::new(2);
        let begin = Instant::now();
        let (long, short) = (of("long"), of("short"));
        computations.debts().computed(&long, Duration::from_secs(2), begin);
        computations.debts().computed(&short, Duration::ZERO, begin);
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let usual = priority();
        let work = async {
            assert_eq!(priority(), LOW_PRIORITY);
            // None of them ends before all have begun: so many threads are needed.
            let all = Arc::new(std::sync::Barrier::new(AT_ONCE));
            let blocks = |_| {
                let all = Arc::clone(&all);
                blocking(move || {
                    all.wait();
                    priority()
                })
            };
            futures::future::join_all((0..AT_ONCE).map(blocks)).await
        };
        let priorities = timeout(DEADLINE, computations.run(&long, work)).await.expect("in time");
        assert_eq!(priorities.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [usual; AT_ONCE]);
    }

    /// Lines of log, kept.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c_96_what_is_said_at_low_priority_names_the_same_object() {
        let lines = Lines::default();
        let written = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || written.clone()).with_ansi(false).finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        let computations = Computations::new(2);
        let begin = Instant::now();
        let (long, short) = (of("long"), of("short"));
        computations.debts().computed(&long, Duration::from_secs(2), begin);
        computations.debts().computed(&short, Duration::ZERO, begin);
        let work = async {
            tracing::info!("it was said");
            rustix::process::getpriority_process(None).unwrap()
        };
        let span = tracing::info_span!("walk", object = "the one");
        let ran = tracing::Instrument::instrument(computations.run(&long, work), span);
        assert_eq!(ran.await, LOW_PRIORITY);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("walk{object=\"the one\"}") && text.contains("it was said"), "{text}");
    }

    #[tokio::test]
    async fn c_45_what_waits_has_no_turn_and_goes_on_when_it_is_woken() {
        let (computations, a, b) = (Computations::new(1), of("a"), of("b"));
        let (sender, receiver) = oneshot::channel();
        let waits = computations.run(&a, receiver);
        let sends = computations.run(&b, async { sender.send(7).unwrap() });
        assert_eq!(timeout(DEADLINE, async { tokio::join!(waits, sends) }).await.expect("in time"), (Ok(7), ()));
        assert_eq!(computations.turns.taken(), 0);
    }
}
