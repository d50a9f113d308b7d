//! Requests that are answered without storing an object of their own: reviews, tokens, scales, evictions.

use axum::{
    body::Body,
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{request::RoutedRequest, respond};
use crate::{
    identity::AUDIENCE,
    object,
    operation::{DeletionOptions, ObjectPart, WriteRequest},
    refusal::Refusal,
};

/// How long a token is good when nothing is said, in seconds.
const TOKEN_SECONDS: i64 = 3600;

/// A subresource other than `status`.
pub(super) async fn subresource(asked: &RoutedRequest, subresource: &str, body: Body) -> Result<Response, Refusal> {
    let name = asked.route.name.as_deref().unwrap_or_default();
    let kind = asked.served.kind().to_owned();
    let form = asked.form()?;
    let main = WriteRequest { part: ObjectPart::Main, ..asked.call() };
    match (kind.as_str(), subresource, asked.method().clone()) {
        ("ServiceAccount", "token", Method::POST) => {
            asked.cluster.find(&asked.served, asked.namespace(), name)?;
            token(asked, name, asked.body(body).await?)
        }
        ("Namespace", "finalize", Method::PUT) => {
            let call = WriteRequest { part: ObjectPart::Finalizers, ..main };
            let outcome = asked.cluster.update(&call, name, asked.body(body).await?).await?;
            Ok(asked.written(form, &outcome))
        }
        ("Pod", "eviction", Method::POST) => {
            let (deleted, _) = asked.cluster.delete(&main, name, &DeletionOptions::default()).await?;
            Ok(respond::bytes(StatusCode::CREATED, deleted.answer(&main, name)))
        }
        ("Pod", "log", Method::GET) => log(&asked.cluster.find(&asked.served, asked.namespace(), name)?.value()),
        (_, "scale", Method::GET) => Ok(respond::json(&asked.cluster.scale(&main, name)?)),
        (_, "scale", Method::PUT | Method::PATCH) if asked.served.version().scale.is_some() => {
            let body = asked.body(body).await?;
            let call = WriteRequest { part: ObjectPart::Scale, ..main };
            let (scale, outcome) = asked.cluster.set_scale(&call, name, &body).await?;
            let mut response = respond::json(&scale);
            respond::warn(&mut response, &outcome.warnings);
            Ok(response)
        }
        _ => Err(Refusal::unknown_path()),
    }
}

/// What has not been put on a node has said nothing, as on a real server; and here nothing is on a node.
fn log(pod: &Value) -> Result<Response, Refusal> {
    if object::text(pod, &["spec", "nodeName"]).is_some_and(|node| !node.is_empty()) {
        return Err(Refusal::bad_request(
            "this server runs no containers, so a pod has no log; read it on a cluster that runs the pod",
        ));
    }
    Ok(([(header::CONTENT_TYPE, "text/plain")], "").into_response())
}

fn token(asked: &RoutedRequest, account: &str, mut request: Value) -> Result<Response, Refusal> {
    let seconds = object::at(&request, &["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or(TOKEN_SECONDS);
    if seconds < 600 {
        let why = "may not specify a duration less than 10 minutes";
        let cause = crate::refusal::StatusCause::invalid("spec.expirationSeconds", &json!(seconds), why);
        return Err(Refusal::invalid("TokenRequest", "authentication.k8s.io", "", &[cause]));
    }
    let expires = Timestamp::from_second(asked.cluster.now().as_second().saturating_add(seconds))
        .map_err(|_| Refusal::bad_request(format!("spec.expirationSeconds: {seconds} is beyond the calendar")))?;
    let audiences = audiences(&request);
    let token = asked.cluster.identity.account_token((asked.namespace(), account), &audiences, Some(expires));
    object::set(&mut request, &["kind"], json!("TokenRequest"));
    object::set(&mut request, &["apiVersion"], json!("authentication.k8s.io/v1"));
    object::set(&mut request, &["spec", "expirationSeconds"], json!(seconds));
    object::set(&mut request, &["spec", "audiences"], json!(audiences));
    object::set(&mut request, &["status"], json!({"token": token, "expirationTimestamp": expires.to_string()}));
    Ok(respond::bytes(StatusCode::CREATED, Bytes::from(request.to_string())))
}

/// For whom a token is asked or reviewed: the server itself where the request does not say.
fn audiences(request: &Value) -> Vec<String> {
    let named = object::at(request, &["spec", "audiences"]).and_then(Value::as_array).into_iter().flatten();
    let named: Vec<String> = named.filter_map(Value::as_str).map(str::to_owned).collect();
    if named.is_empty() { vec![AUDIENCE.to_owned()] } else { named }
}

/// A review: who is this, and what may they do. Everybody with a token may do everything.
pub(super) fn review(asked: &RoutedRequest, mut review: Value) -> Result<Response, Refusal> {
    let user = |user: &crate::identity::User| json!({"username": user.name, "groups": user.groups});
    let status = match asked.served.kind() {
        "SelfSubjectReview" => json!({"userInfo": user(&asked.user)}),
        "TokenReview" => {
            let token = object::text(&review, &["spec", "token"]).unwrap_or_default();
            match asked.cluster.identity.user_for(token, &audiences(&review), asked.cluster.now()) {
                Some((bearer, audiences)) => {
                    json!({"authenticated": true, "user": user(&bearer), "audiences": audiences})
                }
                None => json!({
                    "authenticated": false,
                    "error": "the token is not known, it has expired, or it was made for another audience",
                }),
            }
        }
        "SelfSubjectRulesReview" => json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        _ => json!({"allowed": true, "reason": "this server grants everything to everybody with a token"}),
    };
    object::set(&mut review, &["kind"], json!(asked.served.kind()));
    object::set(&mut review, &["apiVersion"], json!(asked.served.api_version()));
    object::set(&mut review, &["status"], status);
    Ok(respond::bytes(StatusCode::CREATED, Bytes::from(review.to_string())))
}
