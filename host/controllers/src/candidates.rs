//! Candidates of Plugins: components that are called beside the ones in use, with what those have read. What they answer is compared,
//! and never carried out (C-344). The status of a Plugin, which is of no namespace, has numbers; what differs is told in the namespace
//! of the item (C-346).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use jiff::{SignedDuration, Timestamp};
use orangery_blueprint::{
    plugins::{CandidateComponent, GateEngine},
    template_engine::TemplateEngine,
};
use orangery_core::{error::escaped, name::Namespace};
use orangery_proposal::{
    deployer::{Deployer, PluginIdentity},
    recorded::differences,
};
use serde_json::Value;
use tokio::sync::Notify;

/// The differences of one call that are told.
const MOST_DIFFERENCES: usize = 4;
/// The calls with other answers of which a namespace is told within [`TOLD_WITHIN`], for each candidate.
const MOST_CALLS_TOLD: u32 = 10;
/// How long they count.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// The letters of one difference.
const LONGEST_DIFFERENCE: usize = 512;
/// As much of a digest as people compare.
const SHORT_DIGEST: usize = "sha256:".len() + 12;

/// The reason of the event that tells of another answer of a candidate.
pub(crate) const DIFFERS: &str = "CandidateDiffers";

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
    component: CandidateComponent,
    /// The digest of the component in use: jobs of older versions are none of its.
    beside: String,
    one_in: u64,
    begun: AtomicU64,
    /// Whether a call of it is under way: there is one at a time.
    is_called: AtomicBool,
    /// Protects the figures. Held for one change or copy.
    figures: Mutex<CandidateFigures>,
    /// Protects since when how many calls were told to which namespaces. Held for one change.
    told: Mutex<BTreeMap<Namespace, (Timestamp, u32)>>,
}

/// What has come of the calls of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CandidateFigures {
    /// Calls with the same answer.
    pub(crate) same: u32,
    /// Calls with another one.
    pub(crate) different: u32,
    /// Calls that could not be compared.
    pub(crate) not_compared: u32,
}

/// The right to call a candidate now; others may when it is dropped.
pub(crate) struct CandidateTurn(Arc<Candidate>);

impl Drop for CandidateTurn {
    fn drop(&mut self) {
        self.0.is_called.store(false, Ordering::Release);
    }
}

impl CandidateTurn {
    /// The candidate, where it is a deployer.
    pub(crate) fn deployer(&self) -> Option<Arc<dyn Deployer>> {
        match &self.0.component {
            CandidateComponent::Deployer(deployer) => Some(Arc::clone(deployer)),
            CandidateComponent::TemplateEngine(_) | CandidateComponent::GateEngine(_) => None,
        }
    }

    /// The candidate, where it renders templates.
    pub(crate) fn template_engine(&self) -> Option<Arc<dyn TemplateEngine>> {
        match &self.0.component {
            CandidateComponent::TemplateEngine(engine) => Some(Arc::clone(engine)),
            CandidateComponent::Deployer(_) | CandidateComponent::GateEngine(_) => None,
        }
    }

    /// The candidate, where it answers gate expressions.
    pub(crate) fn gate_engine(&self) -> Option<Arc<dyn GateEngine>> {
        match &self.0.component {
            CandidateComponent::GateEngine(engine) => Some(Arc::clone(engine)),
            CandidateComponent::Deployer(_) | CandidateComponent::TemplateEngine(_) => None,
        }
    }
}

impl Candidates {
    /// Has a component called beside the one in use of a Plugin from now on, for one call in so many. The figures of the same one beside
    /// the same one go on.
    pub(crate) fn put(&self, plugin: &str, component: CandidateComponent, beside: String, one_in: u32) {
        let digest = &component.identity().digest;
        let known = self.figures(plugin, &beside).filter(|(known, _)| known == digest);
        let candidate = Candidate {
            beside,
            one_in: u64::from(one_in.max(1)),
            begun: AtomicU64::new(0),
            is_called: AtomicBool::new(false),
            figures: Mutex::new(known.map(|(_, figures)| figures).unwrap_or_default()),
            told: Mutex::default(),
            component,
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
        let figures = *candidate.figures.lock().unwrap_or_else(PoisonError::into_inner);
        Some((candidate.component.identity().digest.clone(), figures))
    }

    /// The candidate that a call of this component is made with as well, where it is its turn and no other call of it is under way.
    pub(crate) fn sample(&self, in_use: &PluginIdentity) -> Option<CandidateTurn> {
        let candidate = self.known().by_name.get(&in_use.name).cloned()?;
        let is_its_turn = candidate.beside == in_use.digest
            && candidate.begun.fetch_add(1, Ordering::Relaxed).is_multiple_of(candidate.one_in);
        let begins = is_its_turn && !candidate.is_called.swap(true, Ordering::Acquire);
        begins.then(|| CandidateTurn(candidate))
    }

    /// Counts how a candidate has answered otherwise than the component in use, for an object of this namespace; `None` where that cannot
    /// be compared. Answers what is to be said of the object, where the answers differ.
    pub(crate) fn tell(
        &self,
        turn: CandidateTurn,
        namespace: &Namespace,
        different: Option<Vec<String>>,
        now: Timestamp,
    ) -> Option<String> {
        turn.0.figures.lock().unwrap_or_else(PoisonError::into_inner).add(different.as_deref());
        let mut known = self.known();
        let changed = known.by_name.iter().find(|(_, candidate)| Arc::ptr_eq(candidate, &turn.0));
        // One that is no candidate any more is nobody's business.
        let name = changed.map(|(name, _)| name.clone())?;
        let is_told = different.filter(|different| !different.is_empty() && turn.0.may_tell(namespace, now));
        let digest: String = turn.0.component.identity().digest.chars().take(SHORT_DIGEST).collect();
        let note = is_told.map(|different| {
            let different: Vec<String> = different.iter().map(|words| message(words)).collect();
            format!(
                "the candidate {digest} of the Plugin {name} answers otherwise, and is not used: {}",
                different.join("; ")
            )
        });
        known.changed.insert(name);
        self.changed.notify_one();
        note
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

impl Candidate {
    /// Whether one call more with another answer is told to this namespace. What was told before counts for a while.
    fn may_tell(&self, namespace: &Namespace, now: Timestamp) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, (since, _)| now.duration_since(*since) < TOLD_WITHIN);
        let (_, calls) = told.entry(namespace.clone()).or_insert((now, 0));
        *calls = calls.saturating_add(1);
        *calls <= MOST_CALLS_TOLD
    }
}

impl CandidateFigures {
    /// Counts one call by what differs in its answers.
    fn add(&mut self, different: Option<&[String]>) {
        let count = match different {
            None => &mut self.not_compared,
            Some([]) => &mut self.same,
            Some(_) => &mut self.different,
        };
        *count = count.saturating_add(1);
    }
}

/// One difference as an event has it.
fn message(words: &str) -> String {
    escaped(words, ' ').chars().take(LONGEST_DIFFERENCE).collect()
}

/// How a candidate has answered otherwise, of answers without values of Secrets; empty where they are the same. Where one of them is a
/// fault it says why. `usual` is what is answered else, such as `a proposal`.
pub(crate) fn answer_differences(in_use: &Value, candidate: &Value, usual: &str) -> Vec<String> {
    match (fault_of(in_use), fault_of(candidate)) {
        (None, Some(why)) => vec![format!("the version in use answers {usual}, the candidate a fault: {why}")],
        (Some(why), None) => vec![format!("the version in use answers a fault, the candidate {usual}: {why}")],
        (None, None) | (Some(_), Some(_)) => {
            let worded = |difference: &String| {
                let words = difference.replacen(": expected is ", ": the version in use answers ", 1);
                words.replacen(", answered is ", ", the candidate ", 1)
            };
            differences(in_use, candidate, MOST_DIFFERENCES).iter().map(worded).collect()
        }
    }
}

/// What a fault says.
fn fault_of(answer: &Value) -> Option<&str> {
    answer.get("fault")?.as_object()?.values().next()?.get("message")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::silent_deployer::SilentDeployer;

    fn identity(digest: &str) -> PluginIdentity {
        PluginIdentity { name: "mine".into(), version: "1".into(), digest: digest.into(), is_pinned: false }
    }

    fn silent(digest: &str) -> CandidateComponent {
        CandidateComponent::Deployer(Arc::new(SilentDeployer::new(identity(digest))))
    }

    fn candidates(one_in: u32) -> Candidates {
        let candidates = Candidates::default();
        candidates.put("mine", silent("new"), "old".to_owned(), one_in);
        candidates
    }

    fn answers(one: Value, other: Value) -> Option<Vec<String>> {
        Some(answer_differences(&one, &other, "a proposal"))
    }

    #[test]
    fn c_344_a_candidate_is_called_beside_the_version_in_use_for_a_share_of_calls_one_at_a_time() {
        let candidates = candidates(2);
        assert!(candidates.sample(&identity("older")).is_none(), "a job of an older version");
        let turn = candidates.sample(&identity("old")).unwrap();
        assert_eq!(turn.deployer().unwrap().identity().digest, "new");
        assert!(turn.template_engine().is_none() && turn.gate_engine().is_none());
        assert!(candidates.sample(&identity("old")).is_none(), "one in two");
        assert!(candidates.sample(&identity("old")).is_none(), "one is under way");
        drop(turn);
        assert!(candidates.sample(&identity("old")).is_none(), "one in two");
        assert!(candidates.sample(&identity("old")).is_some());
        candidates.remove("mine");
        assert!(candidates.sample(&identity("old")).is_none());
    }

    fn tell(
        candidates: &Candidates,
        namespace: &'static str,
        answers: Option<Vec<String>>,
        second: i64,
    ) -> Option<String> {
        let now = Timestamp::from_second(second).unwrap();
        candidates.tell(candidates.sample(&identity("old")).unwrap(), &Namespace::from_static(namespace), answers, now)
    }

    #[test]
    fn c_344_answers_are_counted_as_long_as_a_candidate_stands_beside_the_same_version() {
        let candidates = candidates(1);
        let told = tell(&candidates, "ns", answers(json!({"a": 1}), json!({"a": 1})), 0);
        assert_eq!((told, tell(&candidates, "ns", None, 0)), (None, None));
        assert_eq!(candidates.take_changed(), BTreeSet::from(["mine".to_owned()]));
        assert!(candidates.take_changed().is_empty());
        let told = tell(&candidates, "ns", answers(json!({"a": 1}), json!({"a": 2})), 0);
        let note = "the candidate new of the Plugin mine answers otherwise, and is not used: /a: the version in use answers 1, the \
                    candidate 2";
        assert_eq!(told.as_deref(), Some(note));
        let figures = CandidateFigures { same: 1, different: 1, not_compared: 1 };
        assert_eq!(candidates.figures("mine", "old"), Some(("new".to_owned(), figures)));
        assert_eq!(candidates.figures("mine", "older"), None);
        let put = |digest: &str| {
            candidates.put("mine", silent(digest), "old".to_owned(), 1);
            candidates.figures("mine", "old").unwrap().1
        };
        assert_eq!((put("new"), put("newer")), (figures, CandidateFigures::default()));
    }

    #[test]
    fn c_344_a_fault_beside_a_proposal_says_why() {
        let fault = json!({"fault": {"later": {"code": "ERR_LIMIT_EXCEEDED", "message": "it took\ntoo long"}}});
        let proposal = json!({"proposal": {"stages": []}});
        let differ = |one: &Value, other: &Value| -> Vec<String> {
            answer_differences(one, other, "a proposal").iter().map(|words| message(words)).collect()
        };
        let told = differ(&proposal, &fault);
        assert_eq!(told, ["the version in use answers a proposal, the candidate a fault: it took\\ntoo long"]);
        let told = differ(&fault, &proposal);
        assert_eq!(told, ["the version in use answers a fault, the candidate a proposal: it took\\ntoo long"]);
        let other = json!({"fault": {"later": {"code": "ERR_LIMIT_EXCEEDED", "message": "no"}}});
        let told = differ(&other, &fault);
        let place = r#"/fault/later/message: the version in use answers "no", the candidate "it took\ntoo long""#;
        assert_eq!(told, [place]);
    }

    #[test]
    fn c_346_limits_candidates_a_namespace_is_told_of_so_many_calls_in_a_while_and_of_each_some_differences() {
        let candidates = candidates(1);
        let mut number = 0;
        let mut different = |namespace: &'static str, second: i64| {
            number += 1;
            tell(&candidates, namespace, answers(json!(0), json!(number)), second).is_some()
        };
        assert!((0..MOST_CALLS_TOLD).all(|_| different("one", 0)));
        assert!(!different("one", 59), "that was enough for a minute");
        assert!(different("other", 59), "another namespace is told all the same");
        assert!(different("one", 60));
        assert_eq!(candidates.figures("mine", "old").unwrap().1.different, MOST_CALLS_TOLD + 3, "all are counted");

        let long = |value: u64| json!({"a".repeat(2 * LONGEST_DIFFERENCE): value});
        let long = answer_differences(&long(1), &long(2), "a proposal");
        assert_eq!(long.iter().map(|line| message(line).chars().count()).collect::<Vec<_>>(), [LONGEST_DIFFERENCE]);
        let many = |add: u64| json!((0..9).map(|number| number + add).collect::<Vec<u64>>());
        let many = answer_differences(&many(0), &many(1), "a proposal");
        assert_eq!(many.len(), MOST_DIFFERENCES + 1, "and how many more there are");
    }

    #[test]
    fn c_346_what_is_no_candidate_any_more_tells_nothing() {
        let candidates = candidates(1);
        let turn = candidates.sample(&identity("old")).unwrap();
        candidates.remove("mine");
        let told = candidates.tell(turn, &"ns".into(), answers(json!(1), json!(2)), Timestamp::UNIX_EPOCH);
        assert_eq!((told, candidates.take_changed()), (None, BTreeSet::new()));
    }
}
