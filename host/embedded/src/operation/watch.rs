//! Watching: a stream of changes from a revision on.

use std::{collections::VecDeque, mem, sync::Arc, vec::IntoIter};

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use serde_json::{Value, json};
use tokio::{
    sync::watch::Receiver,
    time::{Instant, sleep_until},
};

use super::list::too_new;
use crate::{
    cluster::EmbeddedCluster,
    form::ResponseForm,
    off_the_executor::LARGE,
    refusal::Refusal,
    resource::Served,
    selector::ListSelector,
    store::{EventType, ObjectName, ObjectVersion, StoreChange},
};

/// After so many changes that it is not told, a watch is told where it stands, if it wants bookmarks.
const BOOKMARK_EVERY: usize = 256;
/// How many changes are taken at a time.
const BATCH: usize = 256;
/// How many of the objects that are there at the begin are taken at a time …
const MOST_INITIAL: usize = 64;
/// … and after how many bytes a piece of either ends (C-300).
const MOST_PIECE_BYTES: usize = 1 << 20;

/// What a watch asks for.
#[derive(Clone, Debug)]
pub(crate) struct WatchQuery {
    pub(crate) selector: ListSelector,
    pub(crate) namespace: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) bookmarks: bool,
    /// `sendInitialEvents`: the present objects first, then a bookmark that says so.
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) form: ResponseForm,
}

/// The objects that are there at the begin and are not yet in what is sent.
enum InitialObjects {
    Unlisted,
    Listed(IntoIter<(ObjectName, Arc<ObjectVersion>)>),
    Sent,
}

struct Watching {
    cluster: Arc<EmbeddedCluster>,
    served: Served,
    query: WatchQuery,
    bell: Receiver<u64>,
    initial: InitialObjects,
    /// The last revision that was looked at.
    seen: u64,
    /// Changes looked at since the last that was told.
    skipped: usize,
    ready: VecDeque<Bytes>,
    deadline: Option<Instant>,
    over: bool,
}

/// Starts a watch; each item is one or more lines of JSON.
pub(crate) fn watch(
    cluster: Arc<EmbeddedCluster>,
    served: Served,
    query: WatchQuery,
) -> Result<impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send, Refusal> {
    let asked = query.resource_version.as_deref().unwrap_or_default();
    let asked: u64 = match asked {
        "" => 0,
        text => text.parse().map_err(|_| Refusal::bad_request(format!("invalid resource version \"{text}\"")))?,
    };
    let current = cluster.store.revision();
    if asked > current {
        return Err(too_new(asked, current));
    }
    let bell = cluster.store.bell(served.label());
    // What is beyond the clock does not end.
    let deadline = query.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut watching = Watching {
        initial: InitialObjects::Sent,
        seen: asked,
        skipped: 0,
        ready: VecDeque::new(),
        over: false,
        cluster,
        served,
        query,
        bell,
        deadline,
    };
    match watching.query.initial_events {
        Some(true) => watching.initial = InitialObjects::Unlisted,
        Some(false) if asked == 0 => watching.seen = current,
        None if asked == 0 => watching.initial = InitialObjects::Unlisted,
        Some(false) | None => {
            // The first look finds out whether the history reaches back so far.
            let history = watching.cluster.store.changes_after(watching.served.label(), asked, 0);
            history.map_err(|oldest| Refusal::expired(asked, oldest))?;
        }
    }
    Ok(futures::stream::unfold(watching, |mut watching| async move {
        let next = watching.next().await?;
        Some((Ok(next), watching))
    }))
}

impl Watching {
    /// Makes the next piece of what is there at the begin.
    fn send_initial(&mut self) {
        let mut left = match mem::replace(&mut self.initial, InitialObjects::Sent) {
            InitialObjects::Unlisted => {
                let page = self.cluster.store.list(self.served.label(), self.query.namespace.as_deref(), None);
                self.seen = page.revision;
                page.entries.into_iter()
            }
            InitialObjects::Listed(left) => left,
            InitialObjects::Sent => return,
        };
        let mut frames = BytesMut::new();
        for (name, entry) in left.by_ref().take(MOST_INITIAL) {
            if self.query.selector.matches(&name, &entry) {
                self.frame(&mut frames, "ADDED", &entry);
            }
            if frames.len() >= MOST_PIECE_BYTES {
                break;
            }
        }
        if left.len() > 0 {
            self.initial = InitialObjects::Listed(left);
        } else if self.query.initial_events == Some(true) && self.query.bookmarks {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            frames.put(self.bookmark(Some(annotations)));
        }
        if !frames.is_empty() {
            self.ready.push_back(frames.freeze());
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        let cluster = Arc::clone(&self.cluster);
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            if self.over {
                return None;
            }
            // As a list, it may take long, however long the single objects are.
            if !matches!(self.initial, InitialObjects::Sent) {
                cluster.large.carry_out(async { self.send_initial() }).await;
                continue;
            }
            self.bell.mark_unchanged();
            match self.cluster.store.changes_after(self.served.label(), self.seen, BATCH) {
                Ok(changes) if changes.is_empty() => self.wait().await,
                Ok(changes) if is_long(&changes) => cluster.large.carry_out(async { self.tell(&changes) }).await,
                Ok(changes) => self.tell(&changes),
                Err(oldest) => {
                    let status = Refusal::expired(self.seen, oldest).status();
                    self.ready.push_back(line(&json!({"type": "ERROR", "object": status})));
                    self.over = true;
                }
            }
        }
    }

    /// Waits for a change, the end of the server, or the end of the watch's time.
    async fn wait(&mut self) {
        let deadline = self.deadline;
        let timeout = async move {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.bell.changed() => self.over = changed.is_err(),
            () = self.cluster.stop.cancelled() => self.over = true,
            () = timeout => {
                self.over = true;
                if self.query.bookmarks {
                    let bookmark = self.bookmark(None);
                    self.ready.push_back(bookmark);
                }
            }
        }
    }

    /// Tells changes, or the first of them: the others are taken again.
    fn tell(&mut self, changes: &[Arc<StoreChange>]) {
        let mut frames = BytesMut::new();
        for change in changes {
            if frames.len() >= MOST_PIECE_BYTES {
                break;
            }
            self.seen = change.entry.revision;
            match self.seen_as(change) {
                Some(word) => {
                    self.frame(&mut frames, word, &change.entry);
                    self.skipped = 0;
                }
                None => self.skipped += 1,
            }
        }
        if self.query.bookmarks && self.skipped >= BOOKMARK_EVERY {
            self.skipped = 0;
            frames.put(self.bookmark(None));
        }
        if !frames.is_empty() {
            self.ready.push_back(frames.freeze());
        }
    }

    /// What a change is to this watch: an object that stops to match is deleted for it, one that begins to is added.
    fn seen_as(&self, change: &StoreChange) -> Option<&'static str> {
        if self.query.namespace.as_deref().is_some_and(|namespace| namespace != &*change.name.namespace) {
            return None;
        }
        let selects = |entry: &Arc<ObjectVersion>| self.query.selector.matches(&change.name, entry);
        let before = change.previous.as_ref().is_some_and(selects);
        match change.event_type {
            EventType::Deleted => before.then_some("DELETED"),
            EventType::Added | EventType::Modified => match (before, selects(&change.entry)) {
                (true, true) => Some("MODIFIED"),
                (false, true) => Some("ADDED"),
                (true, false) => Some("DELETED"),
                (false, false) => None,
            },
        }
    }

    fn frame(&self, frames: &mut BytesMut, word: &str, entry: &ObjectVersion) {
        let object = self.query.form.one(&self.cluster, &self.served, entry);
        frames.reserve(object.len() + 40);
        frames.put_slice(b"{\"type\":\"");
        frames.put_slice(word.as_bytes());
        frames.put_slice(b"\",\"object\":");
        frames.put(object);
        frames.put_slice(b"}\n");
    }

    fn bookmark(&self, annotations: Option<Value>) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.seen.to_string(), "creationTimestamp": null});
        if let Some(annotations) = annotations {
            crate::object::set(&mut metadata, &["annotations"], annotations);
        }
        let object = self.query.form.bookmark(&self.served, metadata);
        line(&json!({"type": "BOOKMARK", "object": object}))
    }
}

/// Whether it may take long to tell changes.
fn is_long(changes: &[Arc<StoreChange>]) -> bool {
    changes.iter().map(|change| change.entry.bytes.len() as u64).sum::<u64>() > LARGE
}

fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{event}\n"))
}
