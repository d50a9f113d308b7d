//! Candidates of Plugins: components that are called beside the ones in use, with what those have read. What they answer is compared,
//! and never carried out (C-344).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use orangery_core::error::escaped;
use orangery_proposal::{
    deployer::{Deployer, PluginIdentity},
    recorded::{HiddenCall, differences},
};
use tokio::sync::Notify;

/// The differences of one call that are told.
const MOST_DIFFERENCES: usize = 4;
/// The last calls with other answers that are told.
const MOST_CALLS_TOLD: usize = 5;
/// The letters of one difference.
const LONGEST_DIFFERENCE: usize = 512;

/// The candidates of all Plugins.
#[derive(Default)]
pub(crate) struct Candidates {
    /// Protects what is known. Held for one look-up or change.
    known: Mutex<KnownCandidates>,
    changed: Notify,
}

#[derive(Default)]
struct KnownCandidates {
    by_name: BTreeMap<String, Arc<Candidate>>,
    /// The Plugins of which calls have ended since that was asked for last.
    changed: BTreeSet<String>,
}

/// A component that is tried beside another one.
pub(crate) struct Candidate {
    deployer: Arc<dyn Deployer>,
    /// The digest of the component in use: jobs of older versions are none of its.
    beside: String,
    one_in: u64,
    begun: AtomicU64,
    /// Whether a call of it is under way: there is one at a time.
    is_called: AtomicBool,
    /// Protects the figures. Held for one change or copy.
    figures: Mutex<CandidateFigures>,
}

/// What has come of the calls of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CandidateFigures {
    /// Calls with the same answer.
    pub(crate) same: u32,
    /// Calls with another one.
    pub(crate) different: u32,
    /// Calls that could not be compared.
    pub(crate) not_compared: u32,
    /// The last calls with another answer: the item, and what differs.
    pub(crate) last: Vec<(String, Vec<String>)>,
}

/// The right to call a candidate now; others may when it is dropped.
pub(crate) struct CandidateTurn(Arc<Candidate>);

impl Drop for CandidateTurn {
    fn drop(&mut self) {
        self.0.is_called.store(false, Ordering::Release);
    }
}

impl CandidateTurn {
    pub(crate) fn deployer(&self) -> &Arc<dyn Deployer> {
        &self.0.deployer
    }
}

impl Candidates {
    /// Has a component called beside the one in use of a Plugin from now on, for one call in so many. The figures of the same one beside
    /// the same one go on.
    pub(crate) fn put(&self, plugin: &str, deployer: Arc<dyn Deployer>, beside: String, one_in: u32) {
        let digest = &deployer.identity().digest;
        let known = self.figures(plugin, &beside).filter(|(known, _)| known == digest);
        let candidate = Candidate {
            beside,
            one_in: u64::from(one_in.max(1)),
            begun: AtomicU64::new(0),
            is_called: AtomicBool::new(false),
            figures: Mutex::new(known.map(|(_, figures)| figures).unwrap_or_default()),
            deployer,
        };
        self.known().by_name.insert(plugin.to_owned(), Arc::new(candidate));
    }

    /// Has nothing called beside it any more.
    pub(crate) fn remove(&self, plugin: &str) {
        self.known().by_name.remove(plugin);
    }

    /// What has come of the calls of a candidate beside this component; `None` where there is none.
    pub(crate) fn figures(&self, plugin: &str, beside: &str) -> Option<(String, CandidateFigures)> {
        let candidate = self.known().by_name.get(plugin).filter(|candidate| candidate.beside == beside).cloned()?;
        let figures = candidate.figures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some((candidate.deployer.identity().digest.clone(), figures))
    }

    /// The candidate that a call of this component is made with as well, where it is its turn and no other call of it is under way.
    pub(crate) fn sample(&self, in_use: &PluginIdentity) -> Option<CandidateTurn> {
        let candidate = self.known().by_name.get(&in_use.name).cloned()?;
        let is_its_turn = candidate.beside == in_use.digest
            && candidate.begun.fetch_add(1, Ordering::Relaxed).is_multiple_of(candidate.one_in);
        let begins = is_its_turn && !candidate.is_called.swap(true, Ordering::Acquire);
        begins.then(|| CandidateTurn(candidate))
    }

    /// Tells what a candidate has answered beside the component in use; `None` where that cannot be compared.
    pub(crate) fn tell(&self, turn: CandidateTurn, item: &str, answers: Option<(HiddenCall, HiddenCall)>) {
        turn.0.figures.lock().unwrap_or_else(PoisonError::into_inner).add(item, answers);
        let mut known = self.known();
        let changed = known.by_name.iter().find(|(_, candidate)| Arc::ptr_eq(candidate, &turn.0));
        if let Some(name) = changed.map(|(name, _)| name.clone()) {
            known.changed.insert(name);
            self.changed.notify_one();
        }
    }

    /// Waits until a call of some candidate may have ended.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The Plugins of which calls have ended since this was called last.
    pub(crate) fn take_changed(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.known().changed)
    }

    fn known(&self) -> MutexGuard<'_, KnownCandidates> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CandidateFigures {
    fn add(&mut self, item: &str, answers: Option<(HiddenCall, HiddenCall)>) {
        let Some((in_use, candidate)) = answers else {
            self.not_compared = self.not_compared.saturating_add(1);
            return;
        };
        let found = differences(&in_use.answer, &candidate.answer, MOST_DIFFERENCES);
        if found.is_empty() {
            self.same = self.same.saturating_add(1);
            return;
        }
        self.different = self.different.saturating_add(1);
        let found = found.iter().map(|difference| {
            let words = difference.replacen(": expected is ", ": the version in use answers ", 1);
            let words = escaped(&words.replacen(", answered is ", ", the candidate ", 1), ' ');
            words.chars().take(LONGEST_DIFFERENCE).collect()
        });
        self.last.push((item.to_owned(), found.collect()));
        let more = self.last.len().saturating_sub(MOST_CALLS_TOLD);
        self.last.drain(..more);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::silent_deployer::SilentDeployer;

    fn identity(digest: &str) -> PluginIdentity {
        PluginIdentity { name: "mine".into(), version: "1".into(), digest: digest.into(), is_pinned: false }
    }

    fn candidates(one_in: u32) -> Candidates {
        let candidates = Candidates::default();
        candidates.put("mine", Arc::new(SilentDeployer::new(identity("new"))), "old".to_owned(), one_in);
        candidates
    }

    fn answers(one: Value, other: Value) -> Option<(HiddenCall, HiddenCall)> {
        let call = |answer| HiddenCall { request: Value::Null, answer };
        Some((call(one), call(other)))
    }

    #[test]
    fn c_344_a_candidate_is_called_beside_the_version_in_use_for_a_share_of_calls_one_at_a_time() {
        let candidates = candidates(2);
        assert!(candidates.sample(&identity("older")).is_none(), "a job of an older version");
        let turn = candidates.sample(&identity("old")).unwrap();
        assert_eq!(turn.deployer().identity().digest, "new");
        assert!(candidates.sample(&identity("old")).is_none(), "one in two");
        assert!(candidates.sample(&identity("old")).is_none(), "one is under way");
        drop(turn);
        assert!(candidates.sample(&identity("old")).is_none(), "one in two");
        assert!(candidates.sample(&identity("old")).is_some());
        candidates.remove("mine");
        assert!(candidates.sample(&identity("old")).is_none());
    }

    #[test]
    fn c_344_limits_candidates_answers_are_counted_and_of_the_last_others_some_differences_are_told() {
        let candidates = candidates(1);
        let tell = |item: &str, answers| candidates.tell(candidates.sample(&identity("old")).unwrap(), item, answers);
        tell("ns/same", answers(json!({"a": 1}), json!({"a": 1})));
        tell("ns/none", None);
        assert_eq!(candidates.take_changed(), BTreeSet::from(["mine".to_owned()]));
        assert!(candidates.take_changed().is_empty());
        for number in 0..=MOST_CALLS_TOLD {
            tell(&format!("ns/{number}"), answers(json!({"a": 1}), json!({"a": number + 2})));
        }
        let (digest, figures) = candidates.figures("mine", "old").unwrap();
        assert_eq!((digest.as_str(), figures.same, figures.different, figures.not_compared), ("new", 1, 6, 1));
        let told = vec!["/a: the version in use answers 1, the candidate 3".to_owned()];
        assert_eq!((figures.last.len(), figures.last.first()), (MOST_CALLS_TOLD, Some(&("ns/1".to_owned(), told))));
        assert_eq!(candidates.figures("mine", "older"), None);
        let put = |digest: &str| {
            candidates.put("mine", Arc::new(SilentDeployer::new(identity(digest))), "old".to_owned(), 1);
            candidates.figures("mine", "old").unwrap().1
        };
        assert_eq!((put("new"), put("newer")), (figures, CandidateFigures::default()));
        let long = json!({"a".repeat(2 * LONGEST_DIFFERENCE): 1});
        tell("ns/long", answers(long, json!([1, 2, 3, 4, 5, 6])));
        let (_, figures) = candidates.figures("mine", "old").unwrap();
        assert!(figures.last.last().unwrap().1.iter().all(|line| line.chars().count() <= LONGEST_DIFFERENCE));
        let many = |add: u64| json!((0..9).map(|number| number + add).collect::<Vec<u64>>());
        tell("ns/many", answers(many(0), many(1)));
        let (_, figures) = candidates.figures("mine", "old").unwrap();
        assert_eq!(figures.last.last().unwrap().1.len(), MOST_DIFFERENCES + 1, "and how many more there are");
    }
}
