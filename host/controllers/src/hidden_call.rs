//! Calls of components without values of Secrets (C-340).

use orangery_core::name::Namespace;
use orangery_proposal::recorded::{
    HiddenCall, NotHidden, RecordedAnswer, RecordedRequest, SecretTokens, values_of_call, values_of_secrets,
};
use orangery_turns::off_the_executor;
use serde_json::Value;

use crate::{controller_context::ControllerContext, secret_imports::read_secret_values};

/// Hides the values of Secrets in a call of a namespace; those that another answer to it has count as well.
///
/// # Errors
/// [`NotHidden`]: nothing of it may be kept.
pub(crate) async fn hidden_call(
    host: &ControllerContext,
    namespace: &Namespace,
    request: RecordedRequest,
    answer: RecordedAnswer,
    beside: Option<&RecordedAnswer>,
) -> Result<HiddenCall, NotHidden> {
    read_values_once(host, namespace).await;
    off_the_executor(|| {
        let answers = [Some(&answer), beside].into_iter().flatten();
        let values: Vec<String> = answers.flat_map(|answer| values_of_call(&request, answer)).collect();
        let masker = host.secrets.masker_with(namespace, &values);
        let tokens = SecretTokens { masker: &masker, key: host.key.tokens(), namespace };
        HiddenCall::of(request, answer, tokens)
    })
}

/// Reads what is secret in a namespace, where this process has not done so yet.
pub(crate) async fn read_values_once(host: &ControllerContext, namespace: &Namespace) {
    if host.read_namespaces.begins_with(namespace) {
        read_secret_values(host, namespace).await;
    }
}

/// The same of a call that is two documents.
///
/// # Errors
/// [`NotHidden`]: nothing of it may be kept.
pub(crate) async fn hidden_documents(
    host: &ControllerContext,
    namespace: &Namespace,
    (request, answer): (Value, Value),
) -> Result<HiddenCall, NotHidden> {
    read_values_once(host, namespace).await;
    off_the_executor(|| {
        let values: Vec<String> = [&request, &answer].into_iter().flat_map(values_of_secrets).collect();
        let masker = host.secrets.masker_with(namespace, &values);
        let tokens = SecretTokens { masker: &masker, key: host.key.tokens(), namespace };
        HiddenCall::of_documents(request, answer, tokens)
    })
}
