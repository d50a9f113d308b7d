//! Recorded calls of deployers: what a component was asked, what it read, what it answered. The form of golden cases
//! (`docs/plugins/testing.md`), which the SDK reads as well (`plugins/sdk/src/cases.rs`).

mod difference;
mod hidden;
mod note;
mod replayed;
mod tokens;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use difference::differences;
pub use hidden::{HiddenCall, NotHidden, values_of_call};
pub use note::{RECORDING, RecordedComponent, RecordingError, RecordingNote};
pub use replayed::replayed_differences;
pub use tokens::{SecretTokens, is_token, values_of_secrets};

use crate::{ClusterRef, Item, ObjectKey, Proposal, Selection};
use orangery_core::error::{Fault, Problem};

/// Which function of a deployer is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CalledFunction {
    /// `deploy.plan`
    #[default]
    Plan,
    /// `uninstall.plan`
    Uninstall,
}

impl CalledFunction {
    fn is_plan(&self) -> bool {
        *self == CalledFunction::Plan
    }
}

/// One call, with all that the component may learn in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest {
    /// The function.
    #[serde(default, skip_serializing_if = "CalledFunction::is_plan")]
    pub call: CalledFunction,
    /// What it is called for.
    pub item: Item,
    /// What it may read of clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<RecordedRead>,
    /// The content that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<RecordedArtifact>,
}

/// What a deployer asks of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadQuestion {
    /// One object; the answer is the object or null. Reads of many objects are recorded one by one.
    Get {
        /// Where.
        #[serde(default, skip_serializing_if = "is_target")]
        on: ClusterRef,
        /// Which.
        key: ObjectKey,
    },
    /// Objects of a selection; the answer is a list of them.
    List {
        /// Where.
        #[serde(default, skip_serializing_if = "is_target")]
        on: ClusterRef,
        /// Which.
        what: Selection,
    },
    /// The server's version; the answer is a string.
    Version {
        /// Where.
        #[serde(default, skip_serializing_if = "is_target")]
        on: ClusterRef,
    },
    /// The kinds that the cluster serves; the answer is a list of them.
    Discover {
        /// Where.
        #[serde(default, skip_serializing_if = "is_target")]
        on: ClusterRef,
    },
}

fn is_target(on: &ClusterRef) -> bool {
    *on == ClusterRef::Target
}

/// A read and what the cluster answered: a document, or a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedRead {
    /// What was asked.
    pub read: ReadQuestion,
    /// The answer.
    #[serde(default)]
    pub answer: Value,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<RecordedFault>,
}

/// Which content a deployer asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedSource {
    /// An OCI reference.
    Oci(String),
    /// A URL.
    Url(String),
    /// A chart of a classic Helm repository.
    HelmRepository {
        /// The repository.
        url: String,
        /// The chart's name.
        chart: String,
        /// The chart's version.
        version: String,
    },
    /// The key of a resource of a component version.
    ComponentResource(String),
    /// A component version, as `componentDescriptor` of an Installation says it.
    ComponentDescriptors(Value),
}

/// Content that a deployer was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedArtifact {
    /// What was asked.
    pub source: RecordedSource,
    /// `sha256:…`
    pub digest: String,
    /// Its media type.
    pub media_type: String,
    /// The file with its content, beside the recording.
    pub file: String,
    /// Other layers of the same artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<RecordedArtifact>,
}

/// A fault with its sort by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedFault {
    /// [`Fault::Invalid`]
    Invalid(Problem),
    /// [`Fault::Later`]
    Later(Problem),
    /// [`Fault::Denied`]
    Denied(Problem),
}

impl From<Fault> for RecordedFault {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Invalid(problem) => RecordedFault::Invalid(problem),
            Fault::Later(problem) => RecordedFault::Later(problem),
            Fault::Denied(problem) => RecordedFault::Denied(problem),
        }
    }
}

impl From<RecordedFault> for Fault {
    fn from(fault: RecordedFault) -> Self {
        match fault {
            RecordedFault::Invalid(problem) => Fault::Invalid(problem),
            RecordedFault::Later(problem) => Fault::Later(problem),
            RecordedFault::Denied(problem) => Fault::Denied(problem),
        }
    }
}

/// What a deployer answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedAnswer {
    /// It planned.
    Proposal(Box<Proposal>),
    /// It did not.
    Fault(RecordedFault),
}

impl From<Result<Proposal, Fault>> for RecordedAnswer {
    fn from(answer: Result<Proposal, Fault>) -> Self {
        match answer {
            Ok(proposal) => RecordedAnswer::Proposal(Box::new(proposal)),
            Err(fault) => RecordedAnswer::Fault(fault.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::error::Code;
    use serde_json::json;

    use super::*;
    use crate::{Completion, Next};

    fn item() -> Value {
        json!({
            "namespace": "default", "name": "item", "uid": "u", "itemType": "example.org/mine", "generation": 1,
            "context": "default", "job": "j", "config": {"a": 1}, "now": "2026-11-21T02:10:49Z", "seed": 7, "timeout": 1,
        })
    }

    #[test]
    fn c_250_a_request_says_what_it_is_besides_the_usual_and_no_field_is_unknown() {
        let usual: RecordedRequest = serde_json::from_value(json!({"item": item()})).unwrap();
        assert_eq!((usual.call, usual.reads.len(), usual.artifacts.len()), (CalledFunction::Plan, 0, 0));
        assert_eq!(serde_json::to_value(&usual).unwrap(), json!({"item": item()}));
        let whole = json!({
            "call": "uninstall",
            "item": item(),
            "reads": [
                {"read": {"get": {"key": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "b"}}}, "answer": null},
                {"read": {"list": {"on": "host", "what": {"apiVersion": "v1", "kind": "Pod"}}}, "answer": [{}]},
                {"read": {"version": {}}, "answer": "v1.33.0"},
                {
                    "read": {"discover": {}},
                    "answer": null,
                    "fault": {"later": {"code": "ERR_UNFINISHED", "message": "not now"}},
                },
            ],
            "artifacts": [{"source": {"oci": "r/a:1"}, "digest": "sha256:0", "mediaType": "m", "file": "a.tgz", "layers": [
                {"source": {"url": "https://a"}, "digest": "sha256:1", "mediaType": "n", "file": "b"},
            ]}],
        });
        let read: RecordedRequest = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(read.call, CalledFunction::Uninstall);
        assert_eq!(serde_json::to_value(&read).unwrap(), whole);
        let error = serde_json::from_value::<RecordedRequest>(json!({"item": item(), "reeds": []})).unwrap_err();
        assert!(error.to_string().starts_with("unknown field `reeds`, expected one of `call`, `item`"), "{error}");
    }

    #[test]
    fn c_250_an_answer_is_a_proposal_or_a_fault_by_its_sort() {
        let proposal: Proposal = serde_json::from_value(json!({"stages": [], "next": {"finish": {}}})).unwrap();
        let answer = RecordedAnswer::from(Ok(proposal.clone()));
        assert_eq!(answer, RecordedAnswer::Proposal(Box::new(proposal)));
        let short: RecordedAnswer =
            serde_json::from_value(json!({"proposal": {"stages": [], "next": {"finish": {}}}})).unwrap();
        let RecordedAnswer::Proposal(read) = short else { panic!("it is a proposal") };
        assert_eq!(read.next, Next::Finish(Completion::default()));
        for (fault, name) in [
            (Fault::invalid(Code::ConfigurationProblem, "no"), "invalid"),
            (Fault::later(Code::ConfigurationProblem, "no"), "later"),
            (Fault::Denied(Fault::invalid(Code::ConfigurationProblem, "no").problem().clone()), "denied"),
        ] {
            let written = serde_json::to_value(RecordedAnswer::from(Err(fault.clone()))).unwrap();
            let problem = json!({"code": "ERR_CONFIGURATION_PROBLEM", "message": "no"});
            assert_eq!(written, json!({"fault": {name: problem}}));
            let RecordedAnswer::Fault(read) = serde_json::from_value(written).unwrap() else { panic!("it is a fault") };
            assert_eq!(Fault::from(read), fault);
        }
    }
}
