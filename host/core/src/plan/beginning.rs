//! `Init`: may a job begin? (INS-20, INS-21, C-17)

use super::installation::{RelatedObject, no_circle, predecessors};
use crate::{
    dag::DagError,
    error::{Code, Failure},
    name::{JobId, Namespace},
    step::{Halt, Step, Until},
};

/// How the Context of an Installation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextState {
    /// It is there.
    Found,
    /// It is made for every namespace, and on its way.
    Awaited,
    /// Nobody has made it.
    Missing,
}

/// What is known of the siblings whose exports an Installation imports.
#[derive(Debug)]
pub struct SiblingFacts {
    /// Whether they are roots.
    pub root: bool,
    /// A circle of roots that it is in.
    pub circle: Option<DagError>,
    /// The siblings; none where its spec promises that.
    pub predecessors: Vec<RelatedObject>,
}

/// May it begin, as far as its Context is concerned?
pub fn context(state: ContextState, namespace: &Namespace, context: &str) -> Step<()> {
    match state {
        ContextState::Found => Ok(()),
        ContextState::Awaited => Err(Halt::wait("Context", context, Until::Exists)),
        ContextState::Missing => {
            let message = format!(
                "Context {namespace}/{context} does not exist; create it or correct spec.context, then reconcile again"
            );
            let failure = Failure::new("ReadContext", "ContextNotFound", message);
            Err(Halt::Stall(failure.with_code(Code::ConfigurationProblem)))
        }
    }
}

/// May it begin, as far as its siblings are concerned?
pub fn siblings(facts: SiblingFacts, job: &JobId) -> Step<()> {
    no_circle(facts.circle)?;
    predecessors(&facts.predecessors, facts.root, job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job::JobIds, plan::installation::ChildState};

    #[test]
    fn ins_20_a_job_begins_with_its_context_waits_for_the_usual_one_and_fails_without_another() {
        let begins = |state| context(state, &"n".into(), "mine");
        assert_eq!(begins(ContextState::Found), Ok(()));
        assert_eq!(begins(ContextState::Awaited), Err(Halt::wait("Context", "mine", Until::Exists)));
        let message =
            "Context n/mine does not exist; create it or correct spec.context, then reconcile again".to_owned();
        let failure = Failure::new("ReadContext", "ContextNotFound", message).with_code(Code::ConfigurationProblem);
        assert_eq!(begins(ContextState::Missing), Err(Halt::Stall(failure)));
    }

    #[test]
    fn ins_21_c_17_a_job_begins_after_its_siblings_and_in_no_circle() {
        let sibling = |finished: &str| RelatedObject {
            kind: "Installation".into(),
            name: "b".to_owned(),
            ids: JobIds::new("a", finished),
            standing: ChildState::Succeeded,
            failure: None,
            requested: false,
            deleting: false,
        };
        let begins = |root, circle, before| {
            siblings(SiblingFacts { root, circle, predecessors: Vec::from_iter(before) }, &"a".into())
        };
        assert_eq!(begins(true, None, None), Ok(()));
        assert_eq!(begins(false, None, Some(sibling("a"))), Ok(()));
        assert!(matches!(begins(false, None, Some(sibling("old"))), Err(Halt::Wait(_))));
        let circle = || Some(DagError::Cycle { members: vec!["a".to_owned(), "a".to_owned()] });
        assert!(matches!(begins(true, circle(), Some(sibling("old"))), Err(Halt::Stall(_))));
    }
}
