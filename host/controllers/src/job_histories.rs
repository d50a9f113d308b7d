//! Which jobs of deploy items are on record, as this process knows it (C-333).

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orangery_api::job_history::RecordedJob;
use orangery_core::name::{JobId, Namespace};

/// So many items go before it is looked how many histories there are.
pub(crate) const LOOKED_AFTER: u32 = 16;

/// Which jobs are on record, and what of them is not written yet.
#[derive(Default)]
pub struct JobHistories {
    /// How many jobs of each item are kept; `None` where none is.
    pub(crate) most: Option<NonZeroUsize>,
    /// By the uid of the item. Held for one look-up or one change.
    by_item: Mutex<BTreeMap<String, KnownJob>>,
    /// How many items have gone since it was looked for their histories. Held for one look-up or one change.
    ended: Mutex<BTreeMap<Namespace, u32>>,
}

/// What this process knows of the job of an item that is under way.
#[derive(Default)]
struct KnownJob {
    job: JobId,
    /// What could not be written yet.
    unwritten: RecordedJob,
}

impl JobHistories {
    /// So many jobs of each item are kept.
    pub fn keeping(most: Option<NonZeroUsize>) -> Self {
        Self { most, ..Self::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, KnownJob>> {
        self.by_item.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all calls of a job before this one were those of this process, and none of them was lost. Until the next
    /// [`wrote`](Self::wrote) the call that begins counts as lost.
    pub(crate) fn begin(&self, uid: &str, job: &JobId) -> bool {
        let mut known = self.known();
        let is_seen = known.get(uid).is_some_and(|known| known.job == *job);
        if let Some(known) = known.get_mut(uid) {
            known.job = JobId::default();
        }
        is_seen
    }

    /// A call of a job that goes on has done nothing that is to be said. Whether nothing is left to be written.
    pub(crate) fn goes_on(&self, uid: &str, job: &JobId) -> bool {
        let mut known = self.known();
        let known = known.entry(uid.to_owned()).or_default();
        known.job.clone_from(job);
        known.unwritten == RecordedJob::default()
    }

    /// The item is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.known().remove(uid);
    }

    /// What calls before this one could not write.
    pub(crate) fn take_unwritten(&self, uid: &str) -> RecordedJob {
        self.known().remove(uid).map_or_else(RecordedJob::default, |known| known.unwritten)
    }

    /// A call of a job has said all that it did.
    pub(crate) fn wrote(&self, uid: &str, job: &JobId) {
        let known = KnownJob { job: job.clone(), unwritten: RecordedJob::default() };
        self.known().insert(uid.to_owned(), known);
    }

    /// What a call did could not be written.
    pub(crate) fn keep(&self, uid: &str, job: &JobId, unwritten: RecordedJob) {
        self.known().insert(uid.to_owned(), KnownJob { job: job.clone(), unwritten });
    }

    /// An item has gone: whether it is to be looked how many histories there are.
    pub(crate) fn counts_ended(&self, namespace: &Namespace) -> bool {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let since = ended.entry(namespace.clone()).or_insert(LOOKED_AFTER);
        *since = since.saturating_add(1);
        if *since <= LOOKED_AFTER {
            return false;
        }
        *since = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_333_a_call_counts_as_lost_until_it_has_said_what_it_did() {
        let histories = JobHistories::keeping(NonZeroUsize::new(1));
        let (job, other): (JobId, JobId) = ("j".into(), "k".into());
        assert!(!histories.begin("u", &job), "another process may have begun it");
        histories.wrote("u", &job);
        assert!(histories.begin("u", &job));
        assert!(!histories.begin("u", &job), "the call before this one was lost");
        assert!(histories.goes_on("u", &job));
        assert!(histories.begin("u", &job), "it has nothing to say");
        histories.wrote("u", &job);
        assert!(!histories.begin("u", &other) && !histories.begin("v", &job));
        histories.wrote("u", &job);
        histories.forget("u");
        assert!(!histories.begin("u", &job), "it is gone");
    }

    #[test]
    fn c_333_what_could_not_be_written_is_left_to_the_next_call() {
        let histories = JobHistories::keeping(NonZeroUsize::new(1));
        let (job, left): (JobId, RecordedJob) = ("j".into(), RecordedJob { more: 1, ..RecordedJob::default() });
        histories.keep("u", &job, left.clone());
        assert!(histories.begin("u", &job), "no call was lost");
        assert!(!histories.goes_on("u", &job), "something is left to be written");
        assert_eq!(histories.take_unwritten("v"), RecordedJob::default(), "of another item");
        assert_eq!(histories.take_unwritten("u"), left);
        assert_eq!(histories.take_unwritten("u"), RecordedJob::default());
    }

    #[test]
    fn c_335_it_is_looked_at_the_first_item_that_goes_and_then_after_some() {
        let histories = JobHistories::keeping(NonZeroUsize::new(1));
        let looks = |namespace: &str| histories.counts_ended(&namespace.into());
        let counts: Vec<bool> = (0..=LOOKED_AFTER + 1).map(|_| looks("n")).collect();
        let expected: Vec<bool> = (0..=LOOKED_AFTER + 1).map(|at| at == 0 || at == LOOKED_AFTER + 1).collect();
        assert_eq!(counts, expected);
        assert!(looks("m"), "each namespace for itself");
        assert!(!looks("m"));
        assert!(!looks("n"));
    }
}
