//! Why a write did not happen, and what a reconcile makes of it.

use orangery_core::{
    error::{Code, Failure},
    step::Halt,
};

/// The reason of a failure that is only a conflict: tried again silently, never written to a status (INS-50).
pub const CONFLICT: &str = "Conflict";

/// Why a write did not happen, or is not known to have happened.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The object has changed since it was read. The store knows the newest version by now.
    #[error("{object} has changed since it was read; it is read again")]
    Conflict {
        /// Kind, namespace and name.
        object: String,
    },
    /// An object of this name exists. The store knows it by now.
    #[error("{object} exists already")]
    AlreadyExists {
        /// Kind, namespace and name.
        object: String,
    },
    /// There is no such object, or no such namespace. The store has forgotten it.
    #[error("{object} cannot be written because it, its namespace or its kind does not exist: {message}")]
    NotFound {
        /// Kind, namespace and name.
        object: String,
        /// The server's words.
        message: String,
    },
    /// The server refuses the write as it is: invalid, or forbidden.
    #[error("{object} cannot be written because the API server refuses it: {message}")]
    Refused {
        /// Kind, namespace and name.
        object: String,
        /// The HTTP status.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// The object cannot be read as it is on the server, or could not be once it is written (C-153).
    #[error("{object} is not worked on as it is: {why}")]
    Unreadable {
        /// Kind, namespace and name.
        object: String,
        /// Why, and what to do about it.
        why: String,
    },
    /// An admission webhook that has to be asked does not answer, so the server does not take the write for now.
    #[error("{object} cannot be written because an admission webhook does not answer as it should: {message}")]
    NoWebhook {
        /// Kind, namespace and name.
        object: String,
        /// The server's words.
        message: String,
    },
    /// The server could not be asked, did not answer, or answered that it cannot now.
    #[error("{object} could not be written because the API server did not answer as it should: {source}")]
    Unreachable {
        /// Kind, namespace and name.
        object: String,
        /// What the client says.
        source: Box<kube::Error>,
    },
}

impl WriteError {
    /// Judges what the client says about a write of `object`.
    pub(super) fn classify(object: String, error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::Unreachable { object, source: Box::new(error) };
        };
        match status.code {
            404 => Self::NotFound { object, message: status.message },
            409 if status.is_already_exists() => Self::AlreadyExists { object },
            409 => Self::Conflict { object },
            408 | 429 => Self::Unreachable { object, source: Box::new(kube::Error::Api(status)) },
            500.. if is_of_webhook(&status.message) => Self::NoWebhook { object, message: status.message },
            400..500 => Self::Refused { object, status: status.code, message: status.message },
            _ => Self::Unreachable { object, source: Box::new(kube::Error::Api(status)) },
        }
    }

    /// What a reconcile makes of it: only an invalid write stalls; everything else may succeed unchanged.
    ///
    /// A conflict is a [`Halt::Retry`] with the reason [`CONFLICT`]. The caller returns it as it is, without writing
    /// a status: [`run`](crate::run) calls again silently.
    pub fn halt(self, operation: &str) -> Halt {
        let message = self.to_string();
        match self {
            Self::Conflict { .. } => Halt::Retry(Failure::new(operation, CONFLICT, message)),
            Self::AlreadyExists { .. } => Halt::Retry(Failure::new(operation, "AlreadyExists", message)),
            Self::NotFound { .. } => Halt::Retry(Failure::new(operation, "NotFound", message)),
            Self::Refused { status: 401 | 403, .. } => {
                Halt::Retry(Failure::new(operation, "Forbidden", message).with_code(Code::Unauthorized))
            }
            Self::Refused { .. } => {
                Halt::Stall(Failure::new(operation, "Invalid", message).with_code(Code::ConfigurationProblem))
            }
            Self::Unreadable { .. } => {
                Halt::Stall(Failure::new(operation, "Unreadable", message).with_code(Code::ConfigurationProblem))
            }
            Self::NoWebhook { .. } => {
                Halt::Retry(Failure::new(operation, "WebhookUnreachable", message).with_code(Code::Webhook))
            }
            Self::Unreachable { .. } => Halt::Retry(Failure::new(operation, "APIServerUnreachable", message)),
        }
    }
}

/// Whether what a server says is about a webhook that it could not ask: it answers 500 then, as where it fails itself.
fn is_of_webhook(message: &str) -> bool {
    message.contains("failed calling webhook") || message.contains("failed to call webhook")
}
