//! Which functions of the contract cases have called, and which answers they have had.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use orangery_core::error::Fault;
use orangery_plugin::Inspection;
use orangery_proposal::{Next, Proposal};
use serde::Serialize;

/// The functions of the interfaces that a case can exercise.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("orangery:deployer/deploy", &["deploy.plan"]),
    ("orangery:deployer/uninstall", &["uninstall.plan"]),
    (
        "orangery:deployer/cluster",
        &["cluster.get", "cluster.get-many", "cluster.list", "cluster.version", "cluster.discover"],
    ),
    (
        "orangery:deployer/artifacts",
        &[
            "artifacts.oci",
            "artifacts.url",
            "artifacts.helm-repository",
            "artifacts.component-resource",
            "artifacts.component-descriptors",
        ],
    ),
    ("orangery:template/template", &["template.render"]),
    ("orangery:template/check", &["check.check"]),
    ("orangery:template/files", &["files.read", "files.list"]),
    (
        "orangery:template/components",
        &["components.component", "components.resources", "components.resource-key", "components.resource-content"],
    ),
    ("orangery:template/kubeconfigs", &["kubeconfigs.issue-credential"]),
    ("orangery:gate/gate", &["gate.evaluate"]),
];

/// The answers that a deployer can give, by the words of the contract.
const DEPLOYER_ANSWERS: &[&str] = &[
    "finish",
    "fail",
    "continue-with",
    "again-in",
    "recover",
    "exports",
    "afterwards",
    "status",
    "invalid",
    "later",
    "denied",
];
const ENGINE_ANSWERS: &[&str] = &["text", "document", "state", "warnings", "failure"];
const GATE_ANSWERS: &[&str] = &["met", "not-met", "unknown"];

/// What was called and answered, of all cases together.
#[derive(Debug, Default)]
pub struct CallLog {
    seen: Mutex<BTreeSet<&'static str>>,
}

/// What of the contract the cases have exercised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Functions that some case called.
    pub called: Vec<&'static str>,
    /// Functions of the component's interfaces that no case called. It may have no use for them.
    pub never_called: Vec<&'static str>,
    /// Answers that some case had.
    pub answered: Vec<&'static str>,
    /// Answers of the contract that no case had.
    pub never_answered: Vec<&'static str>,
}

impl CallLog {
    /// Notes a function that was called, or an answer that was had.
    pub(super) fn note(&self, word: &'static str) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(word);
    }

    /// Notes what a deployer answered.
    pub(super) fn note_answer(&self, answer: &Result<Proposal, Fault>) {
        let proposal = match answer {
            Ok(proposal) => proposal,
            Err(Fault::Invalid(_)) => return self.note("invalid"),
            Err(Fault::Later(_)) => return self.note("later"),
            Err(Fault::Denied(_)) => return self.note("denied"),
        };
        let parts = match &proposal.next {
            Next::Finish(completion) => {
                self.note("finish");
                [("exports", !completion.exports.is_empty()), ("afterwards", !completion.afterwards.is_empty())]
            }
            Next::Fail(_) => [("fail", true); 2],
            Next::ContinueWith(_) => [("continue-with", true); 2],
            Next::AgainIn { .. } => [("again-in", true); 2],
        };
        let more = [("recover", proposal.recover.is_some()), ("status", proposal.status.is_some())];
        parts.into_iter().chain(more).filter(|(_, is_there)| *is_there).for_each(|(word, _)| self.note(word));
    }

    /// What was exercised of what a component has.
    pub fn coverage(&self, of: &Inspection) -> Coverage {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |interface: &str| {
            let mut names = of.imports.iter().chain(&of.exports);
            names.any(|name| name.split('@').next() == Some(interface))
        };
        let functions = FUNCTIONS.iter().filter(|(interface, _)| has(interface)).flat_map(|(_, names)| *names);
        let (called, never_called) = functions.copied().partition(|name| seen.contains(name));
        let answers = [
            ("orangery:deployer/deploy", DEPLOYER_ANSWERS),
            ("orangery:template/template", ENGINE_ANSWERS),
            ("orangery:gate/gate", GATE_ANSWERS),
        ];
        let answers = answers.iter().filter(|(interface, _)| has(interface)).flat_map(|(_, words)| *words);
        let (answered, never_answered) = answers.copied().partition(|word| seen.contains(word));
        Coverage { called, never_called, answered, never_answered }
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::error::Code;
    use serde_json::json;

    use super::*;

    #[test]
    fn c_255_what_no_case_called_and_no_case_was_answered_is_named() {
        let log = CallLog::default();
        ["deploy.plan", "cluster.get"].into_iter().for_each(|name| log.note(name));
        let proposal = |fields: serde_json::Value| Ok(serde_json::from_value(fields).unwrap());
        log.note_answer(&proposal(json!({"stages": [], "next": {"continueWith": [1]}, "recover": [1]})));
        let export = json!({"key": "a", "source": {"value": 1}});
        log.note_answer(&proposal(json!({"stages": [], "next": {"finish": {"exports": [export]}}})));
        log.note_answer(&Err(Fault::later(Code::Unfinished, "no")));
        let of = Inspection {
            digest: String::new(),
            size: 0,
            functions: 0,
            level: None,
            imports: vec!["orangery:deployer/cluster@0.1.0".into(), "wasi:cli/exit@0.2.3".into()],
            exports: vec!["orangery:deployer/deploy@0.1.0".into()],
        };
        let coverage = log.coverage(&of);
        assert_eq!(coverage.called, ["deploy.plan", "cluster.get"]);
        assert_eq!(coverage.never_called, ["cluster.get-many", "cluster.list", "cluster.version", "cluster.discover"]);
        assert_eq!(coverage.answered, ["finish", "continue-with", "recover", "exports", "later"]);
        assert_eq!(coverage.never_answered, ["fail", "again-in", "afterwards", "status", "invalid", "denied"]);
    }
}
