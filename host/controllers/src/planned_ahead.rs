//! The items that have Plans which were made before it was their turn (C-366).

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orangery_core::name::JobId;
use orangery_reconcile::Key;

/// Items, each with the job that it has Plans of.
#[derive(Default)]
pub(crate) struct PlannedAhead {
    /// Protects the items. Held for one look-up or one change. A job that has no id is one that is not known.
    items: Mutex<BTreeMap<Key, JobId>>,
}

impl PlannedAhead {
    /// The item has Plans of this job.
    pub(crate) fn note(&self, item: Key, job: JobId) {
        self.lock().insert(item, job);
    }

    /// The item has Plans of some job. Whether that is new.
    pub(crate) fn find(&self, item: &Key) -> bool {
        let mut items = self.lock();
        let is_new = !items.contains_key(item);
        if is_new {
            items.insert(item.clone(), JobId::default());
        }
        is_new
    }

    /// The job that the item has Plans of.
    pub(crate) fn job_of(&self, item: &Key) -> Option<JobId> {
        self.lock().get(item).cloned()
    }

    /// Its Plans have ended, or it is gone.
    pub(crate) fn forget(&self, item: &Key) {
        self.lock().remove(item);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, JobId>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_366_an_item_is_found_once_and_keeps_the_job_that_is_noted() {
        let (ahead, item) = (PlannedAhead::default(), Key::new("n", "item"));
        assert_eq!(ahead.job_of(&item), None);
        assert!(ahead.find(&item) && !ahead.find(&item));
        assert_eq!(ahead.job_of(&item), Some(JobId::default()));
        ahead.note(item.clone(), "j".into());
        assert!(!ahead.find(&item));
        assert_eq!(ahead.job_of(&item), Some("j".into()));
        ahead.forget(&item);
        assert_eq!(ahead.job_of(&item), None);
    }
}
