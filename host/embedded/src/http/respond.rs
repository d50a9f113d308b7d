//! Responses.

use std::collections::HashSet;

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

/// The most letters of all warnings of an answer, and of each where they have more together: as on the real server (C-300).
const MOST_WARNED_LETTERS: usize = 4 << 10;
const LONGEST_WARNING: usize = 256;
/// The most warnings of an answer: many a client reads a hundred headers and no more.
const MOST_WARNINGS: usize = 64;

/// Puts warnings into the headers, as clients show them: each once, and as many as clients read.
pub(super) fn warn(response: &mut Response, warnings: &[String]) {
    for warning in bounded(warnings) {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

fn bounded(warnings: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let each_once: Vec<&str> = warnings.iter().map(String::as_str).filter(|warning| seen.insert(*warning)).collect();
    let letters: usize = each_once.iter().map(|warning| warning.chars().count()).sum();
    let longest = if letters > MOST_WARNED_LETTERS { LONGEST_WARNING } else { usize::MAX };
    let (mut kept, mut letters) = (Vec::new(), 0);
    for warning in &each_once {
        if letters >= MOST_WARNED_LETTERS || kept.len() + 1 == MOST_WARNINGS && each_once.len() > MOST_WARNINGS {
            kept.push(format!("{} more warnings", each_once.len() - kept.len()));
            break;
        }
        let cut: String = warning.chars().take(longest).collect();
        letters += cut.chars().count();
        kept.push(cut);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers_of(warnings: &[String]) -> Vec<String> {
        let mut response = Response::new(Body::empty());
        warn(&mut response, warnings);
        let headers = response.headers().get_all(header::WARNING).iter();
        headers.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    fn warnings(count: usize, length: usize) -> Vec<String> {
        (0..count).map(|number| format!("{number:0length$}")).collect()
    }

    #[test]
    fn c_300_limits_embedded_warnings_are_as_many_as_clients_read() {
        let twice = ["a \"b\"".to_owned(), "a \"b\"".to_owned()];
        assert_eq!(headers_of(&twice), ["299 - \"a \\\"b\\\"\""]);
        let long = warnings(1, MOST_WARNED_LETTERS);
        assert_eq!(headers_of(&long), [format!("299 - \"{}\"", long[0])], "one that has room is told whole");
        let cut = headers_of(&warnings(100, 1000));
        let begin = format!("299 - \"{}\"", "0".repeat(LONGEST_WARNING));
        let most = MOST_WARNED_LETTERS / LONGEST_WARNING;
        assert_eq!(cut[..most], vec![begin; most]);
        assert_eq!(cut[most..], [format!("299 - \"{} more warnings\"", 100 - most)]);
        assert_eq!(headers_of(&warnings(MOST_WARNINGS, 2)).last().unwrap(), "299 - \"63\"");
        let many = headers_of(&warnings(MOST_WARNINGS + 1, 2));
        assert_eq!((many.len(), many.last().unwrap().as_str()), (MOST_WARNINGS, "299 - \"2 more warnings\""));
    }
}
