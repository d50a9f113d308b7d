//! What an Installation does about an import that cannot be read (INS-22, C-10).

use std::collections::BTreeSet;

use crate::import::{ImportError, ImportFault};
use orangery_core::{
    error::{Code, Failure},
    name::Kind,
    step::{Halt, Until},
};

/// The kind and the name of an object.
pub type Named = (Kind, String);

/// What is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The object is asked of the server: the stores of two kinds are not in step, and one that was applied just before its
    /// Installation may not be known yet.
    AskFor(Named),
    /// The job waits or ends.
    Halt(Halt),
}

/// What is done about `error`. `asked` are the objects that were asked for already; `waits` says whether the Installation waits
/// for imports that do not exist.
pub fn unread(error: &ImportError, asked: &BTreeSet<Named>, waits: bool) -> Unread {
    let ImportFault::NotFound { kind, name, .. } = error.fault.as_ref() else {
        return Unread::Halt(failed("ReadImports", error));
    };
    let named = (kind.clone(), name.clone());
    if !asked.contains(&named) {
        return Unread::AskFor(named);
    }
    Unread::Halt(if waits { Halt::wait(kind, name, Until::Exists) } else { failed("ReadImports", error) })
}

/// A fault of the imports that only a new spec or a new trigger helps against.
pub fn failed(operation: &str, error: &ImportError) -> Halt {
    Halt::Stall(Failure::new(operation, error.fault.reason(), error.to_string()).with_code(Code::ConfigurationProblem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fault: ImportFault) -> ImportError {
        ImportError { import: "a".to_owned(), installation: "n/x".to_owned(), fault: Box::new(fault) }
    }

    fn missing() -> ImportError {
        error(ImportFault::NotFound { kind: "DataObject".into(), name: "d".to_owned(), key: "d".to_owned() })
    }

    #[test]
    fn ins_22_what_a_store_lacks_is_asked_for_once() {
        let named = (Kind::from_static("DataObject"), "d".to_owned());
        assert_eq!(unread(&missing(), &BTreeSet::new(), true), Unread::AskFor(named.clone()));
        let failure = Unread::Halt(failed("ReadImports", &missing()));
        assert_eq!(unread(&missing(), &BTreeSet::from([named]), false), failure);
        assert!(matches!(failure, Unread::Halt(Halt::Stall(_))));
    }

    #[test]
    fn c_10_what_does_not_exist_is_waited_for_under_the_policy_alone() {
        let asked = BTreeSet::from([(Kind::from_static("DataObject"), "d".to_owned())]);
        let wait = Unread::Halt(Halt::wait("DataObject", "d", Until::Exists));
        assert_eq!(unread(&missing(), &asked, true), wait);
        let invalid = error(ImportFault::NoSource);
        assert_eq!(unread(&invalid, &asked, true), Unread::Halt(failed("ReadImports", &invalid)));
    }
}
