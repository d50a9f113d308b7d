//! What the server answers when it says no: the `Status` object of Kubernetes, with its reasons and sentences.

use serde_json::{Value, json};

/// Why a request is refused. Each reason has one HTTP code and one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Expired,
    TooLarge,
    UnsupportedMediaType,
    Invalid,
    InternalError,
    /// The data folder has no room.
    InsufficientStorage,
    /// The data folder cannot be written for another reason.
    Unwritten,
}

impl RefusalReason {
    /// Whether it passes when the data folder can be written again.
    pub(crate) fn is_of_the_disk(self) -> bool {
        matches!(self, Self::InsufficientStorage | Self::Unwritten)
    }

    /// The HTTP status code.
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::InternalError | Self::Unwritten => 500,
            Self::InsufficientStorage => 507,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::TooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::InternalError | Self::Unwritten => "InternalError",
            Self::InsufficientStorage => "InsufficientStorage",
        }
    }
}

/// One reason in the field list of an `Invalid` or `Conflict` refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusCause {
    /// The word, such as `FieldValueRequired`.
    pub(crate) reason: &'static str,
    /// The sentence without the field.
    pub(crate) message: String,
    /// The path, such as `spec.x`.
    pub(crate) field: String,
}

impl StatusCause {
    pub(crate) fn required(field: impl Into<String>, more: &str) -> Self {
        let message = if more.is_empty() { "Required value".to_owned() } else { format!("Required value: {more}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, more: &str) -> Self {
        let message = format!("Invalid value: {}: {more}", display(value));
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    /// The same of a value that nobody may see.
    pub(crate) fn invalid_secret(field: impl Into<String>, more: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {more}"), field: field.into() }
    }

    /// A value that is none of those that there are.
    pub(crate) fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, more: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {more}"), field: field.into() }
    }

    fn sentence(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}

/// A value as the messages of the real server show it: scalars plain, structure by its type alone.
fn display(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        Value::Null => "\"null\"".to_owned(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
    }
}

/// A refused request: everything the `Status` object needs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) reason: RefusalReason,
    pub(crate) message: String,
    details: Option<Value>,
}

impl Refusal {
    pub(crate) fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(RefusalReason::BadRequest, message)
    }

    /// The path names nothing this server has.
    pub(crate) fn unknown_path() -> Self {
        Self::new(RefusalReason::NotFound, "the server could not find the requested resource")
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(RefusalReason::MethodNotAllowed, "the server does not allow this method on the requested resource")
    }

    pub(crate) fn not_found(resource: &str, name: &str) -> Self {
        Self::about(RefusalReason::NotFound, format!("{resource} \"{name}\" not found"), resource, name)
    }

    pub(crate) fn already_exists(resource: &str, name: &str) -> Self {
        Self::about(RefusalReason::AlreadyExists, format!("{resource} \"{name}\" already exists"), resource, name)
    }

    pub(crate) fn conflict(resource: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::about(RefusalReason::Conflict, message, resource, name)
    }

    /// The object is no longer the one that the request was made for.
    pub(crate) fn stale(resource: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(crate) fn forbidden(resource: &str, name: &str, why: &str) -> Self {
        Self::about(RefusalReason::Forbidden, format!("{resource} \"{name}\" is forbidden: {why}"), resource, name)
    }

    /// A policy denies it. The words are those of a cluster, whatever the reason is.
    pub(crate) fn denied(reason: RefusalReason, resource: &str, name: &str, why: &str) -> Self {
        let mut refusal = Self::forbidden(resource, name, why);
        refusal.reason = reason;
        refusal.add_cause(json!({"message": why}));
        refusal
    }

    pub(crate) fn terminating(resource: &str, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refusal = Self::forbidden(resource, name, &why);
        let cause = json!({"reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated")});
        refusal.add_cause(cause);
        refusal
    }

    fn add_cause(&mut self, cause: Value) {
        if let Some(details) = self.details.as_mut().and_then(Value::as_object_mut) {
            details.insert("causes".to_owned(), json!([cause]));
        }
    }

    /// The history from `asked` on is no longer kept; the client has to list again.
    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(RefusalReason::Expired, format!("too old resource version: {asked} ({oldest})"))
    }

    /// The object breaks rules of its kind.
    pub(crate) fn invalid(kind: &str, group: &str, name: &str, causes: &[StatusCause]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{qualified} \"{name}\" is invalid: {}", joined(causes));
        let details = json!({"name": name, "group": group, "kind": kind, "causes": listed(causes)});
        Self { reason: RefusalReason::Invalid, message, details: Some(details) }
    }

    /// Server-side apply met fields of other managers.
    pub(crate) fn apply_conflict(message: String, causes: &[StatusCause]) -> Self {
        Self { reason: RefusalReason::Conflict, message, details: Some(json!({"causes": listed(causes)})) }
    }

    fn about(reason: RefusalReason, message: String, resource: &str, name: &str) -> Self {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let mut details = json!({"name": name, "kind": plural});
        if !group.is_empty()
            && let Some(details) = details.as_object_mut()
        {
            details.insert("group".to_owned(), json!(group));
        }
        Self { reason, message, details: Some(details) }
    }

    /// The `Status` object.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason.word(), "code": self.reason.code(),
        });
        if let (Some(details), Some(status)) = (&self.details, status.as_object_mut()) {
            status.insert("details".to_owned(), details.clone());
        }
        status
    }
}

fn joined(causes: &[StatusCause]) -> String {
    match causes {
        [only] => only.sentence(),
        many => format!("[{}]", many.iter().map(StatusCause::sentence).collect::<Vec<_>>().join(", ")),
    }
}

fn listed(causes: &[StatusCause]) -> Vec<Value> {
    causes.iter().map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field})).collect()
}
