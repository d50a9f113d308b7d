//! Responses.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde_json::Value;

use crate::refusal::Refusal;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// JSON bytes with a status.
pub(super) fn bytes(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A JSON value.
pub(super) fn json(body: &Value) -> Response {
    bytes(StatusCode::OK, Bytes::from(body.to_string()))
}

/// A refusal as its `Status` object.
pub(super) fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.reason.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    bytes(status, Bytes::from(refusal.status().to_string()))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refused(&self)
    }
}

/// Puts warnings into the headers, as clients show them.
pub(super) fn warn(response: &mut Response, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}
