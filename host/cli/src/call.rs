//! Why a call to a cluster did not do what it was for, in one sentence.

use orangery_cluster::unreached;
use orangery_core::name::{Kind, Namespace, ObjectName};

/// How the certificate authority of the cluster is named.
const AUTHORITY: &str = "name its authority in the kubeconfig (certificate-authority-data)";

/// Why a call to the cluster did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer.
    #[error("the cluster cannot be reached: {cause}; check that it runs, and that this is its kubeconfig")]
    Unreachable {
        /// The deepest cause.
        cause: String,
    },
    /// Not known to the cluster.
    #[error("the cluster does not accept the credentials of the kubeconfig; log in again, or choose another context")]
    Unauthorized,
    /// Not allowed.
    #[error("{message}; ask for that permission, or choose another user")]
    Forbidden {
        /// What the server says: who may not do what.
        message: String,
    },
    /// The kind is not served.
    #[error(
        "the cluster does not know {kind} of {group}; install the kinds: orangery crd | kubectl apply --server-side -f -"
    )]
    NotServed {
        /// The kind.
        kind: Kind,
        /// Its API group.
        group: String,
    },
    /// There is no such object.
    #[error("there is no {kind} {name} in namespace {namespace}; orangery inspect -A shows all there are")]
    NotFound {
        /// The kind, in lower case.
        kind: Kind,
        /// The namespace looked into.
        namespace: Namespace,
        /// The name.
        name: ObjectName,
    },
    /// Somebody else changed the object in between.
    #[error("{message}; somebody else changes the same object, try again")]
    Conflict {
        /// What the server says.
        message: String,
    },
    /// The server refuses for another reason.
    #[error("the cluster refuses: {message} (HTTP {code})")]
    Refused {
        /// What the server says.
        message: String,
        /// The HTTP status.
        code: u16,
    },
    /// The answer is not what was asked for.
    #[error(
        "the cluster's answer cannot be read: {0}; the definitions may be of another version than this program; where they are older: orangery crd --apply"
    )]
    Answer(#[source] serde_json::Error),
}

/// What a call was about, for its errors.
#[derive(Clone, Copy, Debug)]
pub struct CallSubject<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// Its API group.
    pub group: &'a str,
    /// The namespace.
    pub namespace: &'a Namespace,
    /// The name; empty for a list.
    pub name: &'a ObjectName,
}

impl CallError {
    /// Classifies an error of the client.
    pub fn of(subject: CallSubject<'_>, error: kube::Error) -> Self {
        let status = match error {
            kube::Error::Api(status) => status,
            kube::Error::SerdeError(error) => return CallError::Answer(error),
            other => return CallError::Unreachable { cause: unreached(&other, AUTHORITY) },
        };
        let message = status.message.clone();
        match status.code {
            401 => CallError::Unauthorized,
            403 => CallError::Forbidden { message },
            404 if status.details.as_ref().is_some_and(|details| !details.name.is_empty()) => CallError::NotFound {
                kind: subject.kind.to_lowercase().into(),
                namespace: subject.namespace.to_owned(),
                name: subject.name.to_owned(),
            },
            404 => CallError::NotServed { kind: subject.kind.into(), group: subject.group.to_owned() },
            409 => CallError::Conflict { message },
            code => CallError::Refused { message, code },
        }
    }

    /// Whether asking again may help: a server that starts or is busy.
    pub fn may_pass(&self) -> bool {
        match self {
            CallError::Unreachable { .. } => true,
            CallError::Refused { code, .. } => *code == 429 || *code >= 500,
            CallError::Unauthorized
            | CallError::Forbidden { .. }
            | CallError::NotServed { .. }
            | CallError::NotFound { .. }
            | CallError::Conflict { .. }
            | CallError::Answer(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    const SUBJECT: CallSubject<'_> = CallSubject {
        kind: &Kind::from_static("Installation"),
        group: "landscaper.gardener.cloud",
        namespace: &Namespace::from_static("default"),
        name: &ObjectName::from_static("hello"),
    };

    fn sentence(status: serde_json::Value) -> String {
        let status: Status = serde_json::from_value(status).unwrap();
        CallError::of(SUBJECT, kube::Error::Api(Box::new(status))).to_string()
    }

    #[test]
    fn a_missing_object_and_a_missing_kind_are_told_apart() {
        assert_eq!(
            sentence(json!({"code": 404, "message": "x", "reason": "NotFound", "details": {"name": "hello"}})),
            "there is no installation hello in namespace default; orangery inspect -A shows all there are"
        );
        assert_eq!(
            sentence(json!({"code": 404, "message": "404 page not found"})),
            "the cluster does not know Installation of landscaper.gardener.cloud; install the kinds: orangery crd | \
             kubectl apply --server-side -f -"
        );
    }

    #[test]
    fn refusals_carry_what_the_server_says() {
        assert_eq!(
            sentence(json!({"code": 403, "message": "user x may not list installations"})),
            "user x may not list installations; ask for that permission, or choose another user"
        );
        assert_eq!(
            sentence(json!({"code": 422, "message": "spec: Required"})),
            "the cluster refuses: spec: Required (HTTP 422)"
        );
    }
}
