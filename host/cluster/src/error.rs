//! What can go wrong with a cluster, and what it means for the job. One exhaustive table for all of it.

use std::sync::Arc;

use orangery_core::{
    error::{Code, Failure, Fault, cleaned},
    name::{ApiVersion, Kind},
    step::Halt,
};
use orangery_egress::{ConnectRefusal, TlsRefusal, deepest, denial, tls_refusal};
use orangery_proposal::ObjectKey;

/// The reason of a failure that names a kind which the cluster does not serve.
pub const NOT_SERVED: &str = "KindNotServed";

/// The reason of a failure that names an object without a namespace, whose kind has them.
pub const UNLOCATED: &str = "NoNamespace";

/// The reason of a failure that a namespace is to blame for which is being terminated.
pub const TERMINATING: &str = "NamespaceTerminating";

/// The most bytes of what a server says when it refuses something.
const LONGEST_ANSWER: usize = 2 << 10;

/// The most fields of a Secret that a message names.
const MOST_FIELDS: usize = 20;

/// Why a cluster did not do what it was asked for. Messages never hold content of Secrets.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The cluster does not know the kind; a definition may be on its way.
    #[error(
        "{cluster} does not serve {api_version} {kind}; install its CustomResourceDefinition, or mend apiVersion and kind"
    )]
    NotServed {
        /// The cluster.
        cluster: String,
        /// Group and version.
        api_version: ApiVersion,
        /// The kind.
        kind: Kind,
    },
    /// An object of a namespaced kind has no namespace.
    #[error("{key} needs metadata.namespace, because its kind is namespaced")]
    Unlocated {
        /// The object.
        key: Box<ObjectKey>,
    },
    /// The object changed again and again between read and write.
    #[error("{key} keeps changing while it is written; the write is tried again")]
    Conflict {
        /// The object.
        key: Box<ObjectKey>,
    },
    /// Others manage fields of the object with other values.
    #[error(
        "{key} is not written, because others manage some of its fields: {message}; have them give those up, or leave the fields out"
    )]
    Managed {
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words: managers and fields.
        message: String,
    },
    /// The object exists already.
    #[error("{key} exists already")]
    AlreadyExists {
        /// The object.
        key: Box<ObjectKey>,
    },
    /// Something that the object needs does not exist, or is going, such as its namespace.
    #[error("{key} cannot be written now: {message}")]
    Missing {
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// Its namespace is being terminated: nothing is created there any more.
    #[error("{key} cannot be written now: {message}")]
    Terminating {
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// The server refuses the object.
    #[error("{key} is refused by the API server: {message}")]
    Invalid {
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// The server does not do this with objects of the kind, as with one that can only be created.
    #[error("{key}: the API server does not do this with objects of the kind: {message}; leave the object out")]
    Unsupported {
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// A rule of the cluster does not allow it, whoever asks.
    #[error("{cluster} does not allow this for {key}: {message}; change the object, or the rule")]
    Forbidden {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// The server could not be asked, or could not answer.
    #[error("{cluster} does not answer as it should for {key}: {}", unreached(source, AUTHORITY))]
    Unreachable {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// What the client says.
        source: Arc<kube::Error>,
    },
    /// Nobody connects to its address through this host (C-95), or whoever asks may not (C-101).
    #[error("{cluster} is not asked for {key}: {message}")]
    Denied {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// Why.
        message: String,
        /// Whether a policy says so.
        by_policy: bool,
    },
    /// The server did not answer in time.
    #[error("{cluster} did not answer within {seconds} s for {key}")]
    Unanswered {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// How long it was given.
        seconds: u64,
    },
    /// The time of the call was up before the server could be asked, or before the request had its turn.
    #[error("{cluster} was not asked for {key}, because the time for it was up")]
    OutOfTime {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
    },
    /// A request that several have waited for was given up.
    #[error("a request to a cluster was given up: {message}")]
    Abandoned {
        /// Why.
        message: String,
    },
    /// The credentials are not accepted; a token that is about to be renewed, or was a moment ago, may be.
    #[error("{cluster} does not accept the credentials for {key}: {message}; renew them")]
    Unauthenticated {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// The credentials do not allow it; rights that were granted a moment ago are not known everywhere.
    #[error("the credentials of {cluster} do not allow this for {key}: {message}; grant it to them, or use others")]
    Unauthorized {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// The server's words.
        message: String,
    },
    /// A list has more than is allowed.
    #[error("{cluster} lists more than the {limit} that are allowed for {key}; select fewer objects, or delete some")]
    TooLarge {
        /// The cluster.
        cluster: String,
        /// What was listed.
        key: Box<ObjectKey>,
        /// The limit.
        limit: String,
    },
    /// Objects that are looked at together take more than is allowed.
    #[error(
        "objects of {cluster} that are looked at together take more than the {limit} that are allowed, {key} among them; have fewer in \
         one item"
    )]
    NoRoomTogether {
        /// The cluster.
        cluster: String,
        /// The one that has come last.
        key: Box<ObjectKey>,
        /// The limit.
        limit: String,
    },
    /// The server wants to be asked later (`Retry-After`), beyond the time that there is.
    #[error(
        "{cluster} has answered that it takes no requests for now (Retry-After: {seconds} s more), so it was not asked again for {key}"
    )]
    Busy {
        /// The cluster.
        cluster: String,
        /// The object.
        key: Box<ObjectKey>,
        /// For how long it is left alone from now on, at most a minute.
        seconds: u64,
    },
    /// A watch does not come about.
    #[error("{cluster} cannot be watched for {api_version} {kind}: {message}")]
    Unwatched {
        /// The cluster.
        cluster: String,
        /// Group and version.
        api_version: ApiVersion,
        /// The kind.
        kind: Kind,
        /// What the client says.
        message: String,
    },
}

impl Error {
    /// The object that is to blame, where there is one.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Error::Unlocated { key }
            | Error::Conflict { key }
            | Error::Managed { key, .. }
            | Error::AlreadyExists { key }
            | Error::Missing { key, .. }
            | Error::Terminating { key, .. }
            | Error::Invalid { key, .. }
            | Error::Unsupported { key, .. }
            | Error::Forbidden { key, .. }
            | Error::TooLarge { key, .. }
            | Error::NoRoomTogether { key, .. }
            | Error::Busy { key, .. }
            | Error::Unauthenticated { key, .. }
            | Error::Unauthorized { key, .. }
            | Error::Unreachable { key, .. }
            | Error::Denied { key, .. }
            | Error::OutOfTime { key, .. }
            | Error::Unanswered { key, .. } => Some(key),
            Error::NotServed { .. } | Error::Unwatched { .. } | Error::Abandoned { .. } => None,
        }
    }

    /// The same error of a server, about another object.
    pub(crate) fn about(self, object: &ObjectKey) -> Self {
        let key = Box::new(object.clone());
        match self {
            Error::Unreachable { cluster, source, .. } => Error::Unreachable { cluster, key, source },
            Error::Unanswered { cluster, seconds, .. } => Error::Unanswered { cluster, key, seconds },
            Error::Denied { cluster, message, by_policy, .. } => Error::Denied { cluster, key, message, by_policy },
            other => other,
        }
    }

    /// Classifies what the client says about an object of a cluster.
    pub(crate) fn classify(cluster: &str, key: &ObjectKey, error: kube::Error) -> Self {
        let (cluster, key) = (cluster.to_owned(), Box::new(key.clone()));
        let status = match error {
            kube::Error::Api(mut status) => {
                // The server chooses its words.
                status.message = cleaned(&status.message, LONGEST_ANSWER);
                status
            }
            other => {
                return match denial(&other) {
                    Some(denied) => {
                        let by_policy = matches!(denied, ConnectRefusal::NotAllowed(_));
                        Error::Denied { cluster, key, message: denied.to_string(), by_policy }
                    }
                    None => Error::Unreachable { cluster, key, source: Arc::new(other) },
                };
            }
        };
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        let terminating = causes.iter().any(|cause| cause.reason == TERMINATING);
        let passing = status.message.contains("exceeded quota");
        let managed = causes.iter().any(|cause| cause.reason == "FieldManagerConflict");
        // An answer about an object names it; another one is about the path, so about the version and the kind.
        let is_named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
        let message = message(&key, &status);
        match status.code {
            404 if is_named => Error::Missing { key, message },
            404 => Error::NotServed { cluster, api_version: key.api_version, kind: key.kind },
            403 if terminating => Error::Terminating { key, message },
            403 if passing => Error::Missing { key, message },
            401 => Error::Unauthenticated { cluster, key, message },
            403 if is_of_rights(&status.message) => Error::Unauthorized { cluster, key, message },
            403 => Error::Forbidden { cluster, key, message },
            409 if status.is_already_exists() => Error::AlreadyExists { key },
            409 if managed => Error::Managed { key, message },
            409 => Error::Conflict { key },
            405 => Error::Unsupported { key, message },
            // 410: what it counted on has expired, and the next answer counts on something else.
            408 | 410 | 429 => Error::Unreachable { cluster, key, source: Arc::new(kube::Error::Api(status)) },
            400..500 => Error::Invalid { key, message },
            _ => Error::Unreachable { cluster, key, source: Arc::new(kube::Error::Api(status)) },
        }
    }
}

/// How the certificate authority of a cluster is named.
const AUTHORITY: &str =
    "name its authority in the Target, as certificate-authority-data of the kubeconfig or as caData of oidcConfig";

/// Why a server gives no answer, in words of whoever can mend it (C-327). `authority` says how the authority of a server is named
/// to whoever asks.
pub fn unreached(error: &kube::Error, authority: &str) -> String {
    match tls_refusal(error) {
        Some(TlsRefusal::Certificate(why)) => format!("its certificate {why}; {}", why.advice(authority)),
        Some(TlsRefusal::NoTls) => "it does not speak TLS; name it with http:// if that is intended".to_owned(),
        Some(TlsRefusal::Other(why)) => format!("no connection by TLS: {why}"),
        None if matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_)) => deepest(error),
        None => error.to_string(),
    }
}

/// Whether a refusal is about the rights of whoever asks, as API servers say it for all that authorizes; others are about what
/// is asked.
fn is_of_rights(message: &str) -> bool {
    message.contains("User \"") && message.contains("\" cannot ")
}

/// The server's words. Of a Secret only the names of fields: the words may quote their content.
fn message(key: &ObjectKey, status: &kube::core::Status) -> String {
    if key.kind != "Secret" || !matches!(status.code, 400 | 422) {
        return status.message.clone();
    }
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    let fields = causes.iter().map(|cause| cleaned(&cause.field, LONGEST_ANSWER)).filter(|field| !field.is_empty());
    let fields: Vec<String> = fields.take(MOST_FIELDS).collect();
    if fields.is_empty() {
        return "it is not a valid Secret".to_owned();
    }
    format!("it is not a valid Secret at {}", fields.join(", "))
}

/// Wait, Retry or Stall (C-09): API, network and conflicts pass; what is invalid or forbidden does not.
impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        let failure = |reason: &str| Failure::new("Apply", reason, error.to_string());
        match &error {
            Error::NotServed { .. } => Halt::Retry(failure(NOT_SERVED)),
            Error::Conflict { .. } => Halt::Retry(failure("Conflict")),
            Error::AlreadyExists { .. } => Halt::Retry(failure("AlreadyExists")),
            Error::Missing { .. } => Halt::Retry(failure("NotFound")),
            Error::Terminating { .. } => Halt::Retry(failure(TERMINATING)),
            Error::Unreachable { .. }
            | Error::Unanswered { .. }
            | Error::OutOfTime { .. }
            | Error::Busy { .. }
            | Error::Abandoned { .. } => Halt::Retry(failure("ClusterUnreachable")),
            Error::Unauthenticated { .. } | Error::Unauthorized { .. } => {
                Halt::Retry(failure("Forbidden").with_code(Code::Unauthorized))
            }
            Error::Denied { by_policy: true, .. } => {
                Halt::Stall(failure("PolicyViolation").with_code(Code::PolicyViolation))
            }
            Error::Denied { by_policy: false, .. } => Halt::Stall(failure("AddressDenied").with_code(Code::Forbidden)),
            Error::Unwatched { .. } => Halt::Retry(failure("WatchFailed")),
            Error::Unlocated { .. } => Halt::Stall(failure(UNLOCATED).with_code(Code::ConfigurationProblem)),
            Error::Invalid { .. } | Error::Unsupported { .. } => {
                Halt::Stall(failure("InvalidObject").with_code(Code::ConfigurationProblem))
            }
            Error::TooLarge { .. } | Error::NoRoomTogether { .. } => {
                Halt::Stall(failure("TooLarge").with_code(Code::LimitExceeded))
            }
            Error::Managed { .. } => Halt::Stall(failure("FieldsOfOthers").with_code(Code::ConfigurationProblem)),
            Error::Forbidden { .. } => Halt::Stall(failure("Forbidden").with_code(Code::Unauthorized)),
        }
    }
}

/// What a component is told about a read that failed.
pub(crate) fn fault(halt: Halt) -> Fault {
    match halt {
        Halt::Wait(wait) => Fault::later(Code::Unfinished, wait.to_string()),
        Halt::Retry(failure) => Fault::later(code(&failure), failure.message),
        Halt::Stall(failure) => Fault::invalid(code(&failure), failure.message),
    }
}

/// The code that stands for a failure where only one can be given.
pub fn code(failure: &Failure) -> Code {
    failure.codes.first().cloned().unwrap_or(Code::InternalProblem)
}

#[cfg(test)]
mod tests;
