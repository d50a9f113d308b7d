//! What the controllers write to the host cluster, which can be cut off after any write: as if their process had been killed.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use http::{Method, Request};
use kube::{Client, client::Body};
use tokio::sync::{Notify, Semaphore};
use tower::service_fn;

/// Counts writes, and holds back for ever what comes after the last one. Events are none: they are written in the background.
pub(crate) struct Traffic {
    /// Requests of any kind.
    requests: AtomicUsize,
    /// How many more writes pass.
    left: AtomicUsize,
    is_cut: AtomicBool,
    changed: Arc<Notify>,
    /// All of them, in order.
    asked: Mutex<Vec<SentRequest>>,
    /// Which write waits on its way, until it is let through.
    held: Mutex<Option<HeldWrite>>,
    /// Which reads wait on their way, until all are let through.
    held_reads: Mutex<Option<HeldReads>>,
}

/// Reads that wait on their way.
struct HeldReads {
    /// What their paths contain.
    part: String,
    waiting: usize,
    pass: Arc<Semaphore>,
}

/// A write that waits on its way.
struct HeldWrite {
    /// What its path ends with.
    path: String,
    /// Whether it is on its way.
    is_waiting: bool,
    /// Whether its sender hears what the server makes of it.
    is_answered: bool,
    pass: Arc<Notify>,
}

/// A request of the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    /// In whose name it is, where that is not the operator itself.
    pub(crate) user: Option<String>,
}

impl Traffic {
    pub(super) fn new(changed: Arc<Notify>) -> Arc<Self> {
        let (requests, left) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let (is_cut, asked, held) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Arc::new(Self { requests, left, is_cut, changed, asked, held, held_reads: Mutex::default() })
    }

    /// So many more writes pass.
    pub(super) fn cut_after(&self, writes: usize) {
        self.left.store(writes, Ordering::SeqCst);
    }

    /// Holds the next write back whose path ends like this.
    pub(super) fn delay_write(&self, path: &str) {
        self.delay(path, true);
    }

    /// The same, and once the server has done it the answer is lost.
    pub(super) fn delay_write_and_lose_answer(&self, path: &str) {
        self.delay(path, false);
    }

    fn delay(&self, path: &str, is_answered: bool) {
        let held = HeldWrite { path: path.to_owned(), is_waiting: false, is_answered, pass: Arc::default() };
        *self.held.lock().unwrap() = Some(held);
    }

    /// Whether that write is on its way.
    pub(super) fn is_held(&self) -> bool {
        self.held.lock().unwrap().as_ref().is_some_and(|held| held.is_waiting)
    }

    /// Holds the next write back whose path ends like this, and lets the one through that was held back before.
    pub(super) fn delay_next_write(&self, path: &str) {
        let next = HeldWrite { path: path.to_owned(), is_waiting: false, is_answered: true, pass: Arc::default() };
        if let Some(held) = self.held.lock().unwrap().replace(next) {
            held.pass.notify_one();
        }
    }

    /// Lets it through.
    pub(super) fn let_pass(&self) {
        if let Some(held) = self.held.lock().unwrap().take() {
            held.pass.notify_one();
        }
    }

    /// Holds all reads back whose path has this in it.
    pub(super) fn hold_reads(&self, part: &str) {
        let held = HeldReads { part: part.to_owned(), waiting: 0, pass: Arc::new(Semaphore::new(0)) };
        *self.held_reads.lock().unwrap() = Some(held);
    }

    /// How many of them are on their way.
    pub(super) fn reads_held(&self) -> usize {
        self.held_reads.lock().unwrap().as_ref().map_or(0, |held| held.waiting)
    }

    /// Lets so many of them go on.
    pub(super) fn let_reads_pass(&self, reads: usize) {
        if let Some(held) = &*self.held_reads.lock().unwrap() {
            held.pass.add_permits(reads);
        }
    }

    /// Waits while the read is held back.
    async fn wait_to_read(&self, (method, path): (Method, String)) {
        let pass = {
            let mut held = self.held_reads.lock().unwrap();
            let held = held.as_mut().filter(|held| method == Method::GET && path.contains(&held.part));
            held.map(|held| {
                held.waiting += 1;
                Arc::clone(&held.pass)
            })
        };
        if let Some(pass) = pass {
            self.changed.notify_one();
            pass.acquire().await.unwrap().forget();
            self.held_reads.lock().unwrap().iter_mut().for_each(|held| held.waiting -= 1);
        }
    }

    /// What the write has to wait for, where it is the one that is held back, and whether it is answered then.
    fn wait_of(&self, request: &Request<Body>) -> Option<(Arc<Notify>, bool)> {
        let mut held = self.held.lock().unwrap();
        let held = held.as_mut().filter(|held| {
            !held.is_waiting && request.method() != Method::GET && request.uri().path().ends_with(&held.path)
        })?;
        held.is_waiting = true;
        self.changed.notify_one();
        Some((Arc::clone(&held.pass), held.is_answered))
    }

    /// Whether a write was held back.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    /// How many requests there were.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The requests whose path has this in it.
    pub(super) fn about(&self, part: &str) -> Vec<SentRequest> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.path.contains(part)).cloned().collect()
    }

    fn note(&self, request: &Request<Body>) {
        let user = request.headers().get("impersonate-user").map(|user| user.to_str().unwrap().to_owned());
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        self.asked.lock().unwrap().push(SentRequest { method, path, user });
    }

    fn passes(&self, request: &Request<Body>) -> bool {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.note(request);
        if request.method() == Method::GET || request.uri().path().ends_with("/events") {
            return true;
        }
        let passes = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if !passes {
            self.is_cut.store(true, Ordering::SeqCst);
            self.changed.notify_one();
        }
        passes
    }

    /// The client of the controllers.
    pub(super) fn client(self: Arc<Self>, through: Client) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let (traffic, through) = (Arc::clone(&self), through.clone());
            async move {
                if !traffic.passes(&request) {
                    std::future::pending::<()>().await;
                }
                traffic.wait_to_read((request.method().clone(), request.uri().path().to_owned())).await;
                let Some((pass, is_answered)) = traffic.wait_of(&request) else { return through.send(request).await };
                pass.notified().await;
                let answer = through.send(request).await?;
                if is_answered { Ok(answer) } else { Err(kube::Error::Service("the answer was lost".into())) }
            }
        });
        Client::new(service, "default")
    }
}
