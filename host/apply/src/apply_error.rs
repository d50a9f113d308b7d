//! Why something of a proposal was not carried out: what it means for the job, and which object is to blame.

use orangery_core::{
    error::{Code, Failure},
    step::Halt,
};
use orangery_proposal::{ClusterRef, ObjectKey};

use orangery_cluster::{Error, NOT_SERVED, UNLOCATED};

/// The reasons of writes that met another version of their object, or one that had not been there.
const OVERTAKEN: [&str; 2] = ["Conflict", "AlreadyExists"];

/// Why a step of a proposal does not go on.
#[derive(Debug)]
pub(crate) struct ApplyError {
    pub(crate) halt: Halt,
    /// The object that is to blame, if one is. Boxed, as these errors travel far.
    pub(crate) key: Option<Box<ObjectKey>>,
}

impl ApplyError {
    /// The job is not the item's current one any more: nothing is written for it (C-24).
    pub(crate) fn superseded() -> Self {
        Halt::Retry(Failure::new("Apply", "Superseded", "the job has been superseded or interrupted")).into()
    }

    /// A place for secret content, a JSON pointer, is not in the object.
    pub(crate) fn no_place(key: &ObjectKey, at: &str) -> Self {
        let message = format!("{key} has no place {at} for the content to be put there; its parent must be an object");
        let failure = Failure::new("Apply", "InvalidObject", message).with_code(Code::ConfigurationProblem);
        Self { halt: Halt::Stall(failure), key: Some(Box::new(key.clone())) }
    }

    /// What is to be written is not the object that was checked (C-119).
    pub(crate) fn another_object(key: &ObjectKey) -> Self {
        let message = format!(
            "{key} was checked, and another object would be written by what is merged in at creation or placed by the host; leave \
             apiVersion, kind, metadata.name and metadata.namespace out of that"
        );
        let failure = Failure::new("Apply", "InvalidObject", message).with_code(Code::ConfigurationProblem);
        Self { halt: Halt::Stall(failure), key: Some(Box::new(key.clone())) }
    }

    /// An object was checked as one of a namespace, and its kind has none: it is checked anew.
    pub(crate) fn without_namespace(key: &ObjectKey) -> Self {
        let message = format!(
            "{key} was checked as an object of that namespace, before its kind was served, and the kind has no namespaces; it is \
             checked again, or leave metadata.namespace out"
        );
        let failure = Failure::new("Apply", "ScopeChanged", message).with_code(Code::ConfigurationProblem);
        Self { halt: Halt::Retry(failure), key: Some(Box::new(key.clone())) }
    }

    /// What the job has written is not there any more while it is waited for (C-107).
    pub(crate) fn vanished(key: &ObjectKey) -> Self {
        let message = format!(
            "{key} was deleted by somebody else while this job waited for it; find out who deletes it, and ask for another job, \
             which writes it anew"
        );
        Self::gone(key, message)
    }

    /// The same of what runs to its end, which was not seen.
    pub(crate) fn vanished_before_its_end(key: &ObjectKey) -> Self {
        let message = format!(
            "{key} was deleted before its end was seen, by somebody else or because its ttlSecondsAfterFinished was over: whether \
             it has done its work is not known; look for that, raise ttlSecondsAfterFinished if it has one, and ask for another job, \
             which makes it anew"
        );
        Self::gone(key, message)
    }

    fn gone(key: &ObjectKey, message: String) -> Self {
        Self { halt: Halt::Stall(Failure::new("Wait", "Vanished", message)), key: Some(Box::new(key.clone())) }
    }

    /// An object is to be deleted and made anew, and stays.
    pub(crate) fn not_made_anew(key: &ObjectKey, why: &str) -> Self {
        let message = format!(
            "{key} has to be deleted before it is made anew, and stays: {why}; delete it by hand where it is not needed, or give \
             one of the two another name"
        );
        let failure = Failure::new("Apply", "Foreign", message).with_code(Code::ConfigurationProblem);
        Self { halt: Halt::Stall(failure), key: Some(Box::new(key.clone())) }
    }

    /// The item has left objects in as many clusters as it may (C-129).
    pub(crate) fn too_many_clusters(on: &ClusterRef, limit: usize) -> Self {
        let message = format!(
            "{on} names another cluster than before, and this item has left objects in {limit} others, which is the most: have these \
             clusters answer, so that what is there is deleted, or delete the item and make it anew"
        );
        let failure = Failure::new("Apply", "TooManyClusters", message).with_code(Code::ConfigurationProblem);
        Self { halt: Halt::Stall(failure), key: None }
    }

    /// The address of a target is another one than before, or nothing says what it was, and which cluster answers there may not be
    /// known (C-321).
    pub(crate) fn unknown_cluster(on: &ClusterRef, before: Option<&str>, now: &str) -> Self {
        let before = match before {
            Some(before) => format!("it was {before} before"),
            None => "which one it was before is known".to_owned(),
        };
        let message = format!(
            "{on} is {now} now, {before}, and whether that is the same cluster cannot be told: its credentials may not get the \
             Namespace kube-system. Let them, or have the Target be what it was; where the objects are not wanted any more, delete \
             the item with the annotation landscaper.gardener.cloud/delete-without-uninstall"
        );
        let failure = Failure::new("Apply", "UnknownCluster", message).with_code(Code::ConfigurationProblem);
        Self { halt: Halt::Stall(failure), key: None }
    }

    /// Whether the cluster does not serve the kind of the object.
    pub(crate) fn is_not_served(&self) -> bool {
        self.halt.failure().is_some_and(|failure| failure.reason == NOT_SERVED)
    }

    /// Whether the object has no namespace, and its kind has them.
    pub(crate) fn is_unlocated(&self) -> bool {
        self.halt.failure().is_some_and(|failure| failure.reason == UNLOCATED)
    }

    /// Whether the object is not what it was when it was looked at.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.halt.failure().is_some_and(|failure| OVERTAKEN.contains(&failure.reason.as_str()))
    }

    /// Joins two: the halts join, the first object named stays.
    fn join(self, other: Self) -> Self {
        Self { halt: self.halt.join(other.halt), key: self.key.or(other.key) }
    }
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> Self {
        Self { key: error.key().cloned().map(Box::new), halt: error.into() }
    }
}

impl From<Halt> for ApplyError {
    fn from(halt: Halt) -> Self {
        Self { halt, key: None }
    }
}

/// All values, or all errors joined.
pub(crate) fn all<T>(results: impl IntoIterator<Item = Result<T, ApplyError>>) -> Result<Vec<T>, ApplyError> {
    let mut values = Vec::new();
    let mut joined: Option<ApplyError> = None;
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => {
                joined = Some(match joined.take() {
                    Some(before) => before.join(error),
                    None => error,
                });
            }
        }
    }
    joined.map_or(Ok(values), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { api_version: "v1".into(), kind: "K".into(), namespace: Some("a".into()), name: name.into() }
    }

    #[test]
    fn wf_44_errors_are_reported_together_and_the_first_object_is_named() {
        let missing = |name: &str| ApplyError::from(Error::Missing { key: Box::new(key(name)), message: "m".into() });
        let joined = all([Ok(1), Err(missing("p")), Err(missing("q"))]).unwrap_err();
        assert_eq!(joined.key.map(|key| key.name), Some("p".into()));
        let Halt::Retry(failure) = joined.halt else { panic!() };
        assert_eq!(failure.message, "K a/p cannot be written now: m; K a/q cannot be written now: m");
        assert_eq!(all([Ok(1), Ok(2)]).unwrap(), [1, 2]);
    }

    #[test]
    fn c_24_a_superseded_job_does_not_fail() {
        let failure = Failure::new("Apply", "Superseded", "the job has been superseded or interrupted");
        assert_eq!(ApplyError::superseded().halt, Halt::Retry(failure));
    }

    #[test]
    fn c_09_an_object_without_a_place_for_content_fails_and_is_named() {
        let error = ApplyError::no_place(&key("x"), "/data/k");
        let message = "K a/x has no place /data/k for the content to be put there; its parent must be an object";
        let failure = Failure::new("Apply", "InvalidObject", message).with_code(Code::ConfigurationProblem);
        assert_eq!((error.halt, error.key), (Halt::Stall(failure), Some(Box::new(key("x")))));
    }

    #[test]
    fn c_60_a_write_that_was_overtaken_is_told_from_one_that_is_refused() {
        let of = || Box::new(key("x"));
        let refused = Error::Managed { key: of(), message: "m".to_owned() };
        let errors = [Error::Conflict { key: of() }, Error::AlreadyExists { key: of() }, refused];
        assert_eq!(errors.map(|error| ApplyError::from(error).is_overtaken()), [true, true, false]);
    }

    #[test]
    fn a_kind_that_is_not_served_is_told_from_other_failures() {
        let unserved = Error::NotServed { cluster: "c".into(), api_version: "a/v1".into(), kind: "K".into() };
        assert!(ApplyError::from(unserved).is_not_served());
        assert!(!ApplyError::superseded().is_not_served());
        assert!(!ApplyError::from(Halt::wait("K", "x", orangery_core::step::Until::Gone)).is_not_served());
    }
}
