//! A call as it may be kept: without values of Secrets (C-340).

use serde_json::Value;

use super::{RecordedAnswer, RecordedRequest, tokens::SecretTokens, values_of_secrets};
use crate::{Next, Proposal};

/// A request and its answer with tokens in the place of values of Secrets, as their files have them.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenCall {
    /// A [`RecordedRequest`].
    pub request: Value,
    /// A [`RecordedAnswer`].
    pub answer: Value,
}

/// Why a call cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHidden {
    /// More is secret than can be looked for.
    #[error("more was read of Secrets for its namespace than can be looked for (256 KiB)")]
    TooMany,
    /// A value stands where a token cannot.
    #[error(
        "a value of a Secret stands where nothing can stand for it, such as in the number or the name of a field of the contract"
    )]
    NoPlace,
}

/// The values of all Secrets that a call has read, was given, and writes.
pub fn values_of_call(request: &RecordedRequest, answer: &RecordedAnswer) -> Vec<String> {
    let parts = [serde_json::to_value(request), serde_json::to_value(answer)];
    parts.iter().flatten().flat_map(values_of_secrets).collect()
}

impl HiddenCall {
    /// Hides the values in a call.
    ///
    /// # Errors
    /// [`NotHidden`]: nothing of it may be kept.
    pub fn of(
        mut request: RecordedRequest,
        mut answer: RecordedAnswer,
        tokens: SecretTokens<'_>,
    ) -> Result<Self, NotHidden> {
        if tokens.masker.withholds() {
            return Err(NotHidden::TooMany);
        }
        // Bytes are lists of numbers in JSON, in which no value is found.
        request.item.checkpoint.iter_mut().for_each(|checkpoint| tokens.hide_bytes(checkpoint));
        if let RecordedAnswer::Proposal(proposal) = &mut answer {
            checkpoints_of(proposal).for_each(|checkpoint| tokens.hide_bytes(checkpoint));
        }
        let document = |part: serde_json::Result<Value>| part.map_err(|_| NotHidden::NoPlace);
        let (request, answer) = (document(serde_json::to_value(&request))?, document(serde_json::to_value(&answer))?);
        let call = Self::of_documents(request, answer, tokens)?;
        let is_read = serde_json::from_value::<RecordedRequest>(call.request.clone()).is_ok()
            && serde_json::from_value::<RecordedAnswer>(call.answer.clone()).is_ok();
        is_read.then_some(call).ok_or(NotHidden::NoPlace)
    }

    /// The same of a call that is two documents, in which values may stand anywhere.
    ///
    /// # Errors
    /// [`NotHidden`]: nothing of it may be kept.
    pub fn of_documents(request: Value, answer: Value, tokens: SecretTokens<'_>) -> Result<Self, NotHidden> {
        if tokens.masker.withholds() {
            return Err(NotHidden::TooMany);
        }
        let hidden = |mut part: Value| {
            tokens.hide(&mut part);
            if tokens.masker.finds(&part.to_string()) { Err(NotHidden::NoPlace) } else { Ok(part) }
        };
        Ok(Self { request: hidden(request)?, answer: hidden(answer)? })
    }
}

fn checkpoints_of(proposal: &mut Proposal) -> impl Iterator<Item = &mut Vec<u8>> {
    let next = match &mut proposal.next {
        Next::ContinueWith(checkpoint) | Next::AgainIn { checkpoint, .. } => Some(checkpoint),
        Next::Finish(_) | Next::Fail(_) => None,
    };
    next.into_iter().chain(&mut proposal.recover)
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use orangery_core::masking::Masker;
    use serde_json::json;

    use super::*;

    const KEY: [u8; 32] = [7; 32];
    const VALUE: &str = "hunter2-hunter2";

    fn request(more: Value) -> Value {
        let mut item = json!({
            "namespace": "default", "name": "item", "uid": "u", "itemType": "example.org/mine", "generation": 1,
            "context": "default", "job": "j", "config": {"url": format!("db://{VALUE}@host")}, "now": "2026-11-21T02:10:49Z",
            "seed": 7, "timeout": 1, "checkpoint": VALUE.as_bytes(),
        });
        if let (Some(item), Value::Object(more)) = (item.as_object_mut(), more) {
            item.extend(more);
        }
        let read = json!({"read": {"get": {"key": {"apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "s"}}},
            "answer": {"kind": "Secret", "data": {"short": BASE64.encode(b"abc"), "password": BASE64.encode(VALUE.as_bytes())}}});
        json!({"item": item, "reads": [read]})
    }

    fn answer() -> Value {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"made": "made-up-here"}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"made": "made-up-here"}});
        let write = |object: Value| json!({"object": object, "how": "apply"});
        let stage = json!({"name": "s", "writes": [write(secret), write(map)], "gate": "accepted"});
        json!({"proposal": {"stages": [stage], "next": {"continueWith": VALUE.as_bytes()}, "recover": VALUE.as_bytes()}})
    }

    fn hide(request: Value, answer: Value) -> Result<HiddenCall, NotHidden> {
        let request: RecordedRequest = serde_json::from_value(request).unwrap();
        let answer: RecordedAnswer = serde_json::from_value(answer).unwrap();
        let values = values_of_call(&request, &answer);
        let masker = Masker::of(values.iter().map(String::as_str));
        HiddenCall::of(request, answer, SecretTokens { masker: &masker, key: &KEY, namespace: &"n".into() })
    }

    #[test]
    fn c_340_of_a_call_no_value_is_left_that_it_read_or_made() {
        let HiddenCall { request, answer } = hide(request(json!({})), answer()).unwrap();
        let masker = Masker::default();
        let token =
            |text: &str| SecretTokens { masker: &masker, key: &KEY, namespace: &"n".into() }.token(text.as_bytes());
        let of_value = token(VALUE);
        assert_eq!(request["item"]["config"], json!({"url": format!("db://{of_value}@host")}));
        assert_eq!(request["item"]["checkpoint"], json!(of_value.as_bytes()));
        let data =
            json!({"short": BASE64.encode(token("abc").as_bytes()), "password": BASE64.encode(of_value.as_bytes())});
        assert_eq!(request["reads"][0]["answer"], json!({"kind": "Secret", "data": data}));
        let (writes, made) = (&answer["proposal"]["stages"][0]["writes"], token("made-up-here"));
        assert_eq!(writes[0]["object"]["stringData"], json!({"made": made}));
        assert_eq!(writes[1]["object"]["data"], json!({"made": made}));
        assert_eq!(answer["proposal"]["next"], json!({"continueWith": of_value.as_bytes()}));
        assert_eq!(answer["proposal"]["recover"], json!(of_value.as_bytes()));
    }

    #[test]
    fn c_340_what_cannot_be_hidden_is_not_kept() {
        let secret = |value: &str| json!({"config": {"kind": "Secret", "stringData": {"a": value}}});
        let answer = json!({"fault": {"later": {"code": "ERR_UNFINISHED", "message": "no"}}});
        assert_eq!(hide(request(secret("itemType")), answer.clone()), Err(NotHidden::NoPlace));
        assert_eq!(hide(request(secret(&"x".repeat(300 << 10))), answer.clone()), Err(NotHidden::TooMany));
        assert!(hide(request(secret("anything")), answer).is_ok());
    }

    #[test]
    fn c_348_of_a_call_that_is_two_documents_no_value_is_left_either() {
        let namespace = "a".into();
        let hide = |masker: &Masker, request: Value| {
            let tokens = SecretTokens { masker, key: &KEY, namespace: &namespace };
            HiddenCall::of_documents(request, json!({"answer": {"message": format!("{VALUE} is met")}}), tokens)
        };
        let masker = Masker::of([VALUE]);
        let call = hide(&masker, json!({"question": {"inputs": {"imports": {"password": VALUE}}}})).unwrap();
        let token = SecretTokens { masker: &masker, key: &KEY, namespace: &namespace }.token(VALUE.as_bytes());
        let expected = json!({"question": {"inputs": {"imports": {"password": token}}}});
        assert_eq!((call.request, call.answer), (expected, json!({"answer": {"message": format!("{token} is met")}})));
        assert_eq!(hide(&Masker::of_too_many(), json!({})), Err(NotHidden::TooMany));
    }
}
