use kube::core::response::{StatusCause, StatusDetails};

use super::*;

fn key(kind: &str) -> ObjectKey {
    ObjectKey { api_version: "v1".into(), kind: kind.into(), namespace: Some("a".into()), name: "x".into() }
}

fn status(code: u16, reason: &str, message: &str, causes: Vec<StatusCause>) -> kube::Error {
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes,
        retry_after_seconds: 0,
    };
    let mut status = kube::core::Status::failure(message, reason).with_code(code);
    status.details = Some(details);
    kube::Error::Api(Box::new(status))
}

#[track_caller]
fn check(error: kube::Error, sort: &str, reason: &str, codes: &[Code]) {
    let halt = Halt::from(Error::judge("c", &key("ConfigMap"), error));
    let (found, failure) = match &halt {
        Halt::Wait(_) => panic!("{halt:?}"),
        Halt::Retry(failure) => ("retry", failure),
        Halt::Stall(failure) => ("stall", failure),
    };
    let found_codes: Vec<Code> = failure.codes.iter().cloned().collect();
    assert_eq!((found, failure.reason.as_str(), found_codes.as_slice()), (sort, reason, codes));
}

#[test]
fn c_09_network_api_and_conflicts_pass_and_the_rest_does_not() {
    let plain = |code, reason| status(code, reason, "m", vec![]);
    check(plain(409, "Conflict"), "retry", "Conflict", &[]);
    check(plain(409, "AlreadyExists"), "retry", "AlreadyExists", &[]);
    check(plain(404, "NotFound"), "retry", "NotFound", &[]);
    check(plain(429, "TooManyRequests"), "retry", "ClusterUnreachable", &[]);
    check(plain(500, "InternalError"), "retry", "ClusterUnreachable", &[]);
    check(plain(503, "ServiceUnavailable"), "retry", "ClusterUnreachable", &[]);
    check(plain(422, "Invalid"), "stall", "InvalidObject", &[Code::ConfigurationProblem]);
    check(plain(400, "BadRequest"), "stall", "InvalidObject", &[Code::ConfigurationProblem]);
    check(plain(403, "Forbidden"), "stall", "Forbidden", &[Code::Unauthorized]);
    check(plain(401, "Unauthorized"), "stall", "Forbidden", &[Code::Unauthorized]);
    check(kube::Error::LinesCodecMaxLineLengthExceeded, "retry", "ClusterUnreachable", &[]);
}

#[test]
fn a_quota_and_a_going_namespace_pass() {
    let terminating =
        StatusCause { reason: "NamespaceTerminating".into(), message: String::new(), field: String::new() };
    check(status(403, "Forbidden", "m", vec![terminating]), "retry", "NotFound", &[]);
    check(status(403, "Forbidden", "exceeded quota: pods", vec![]), "retry", "NotFound", &[]);
}

#[test]
fn orc_22_c_26_the_content_of_a_secret_is_not_quoted() {
    let cause = |field: &str| StatusCause { reason: String::new(), message: "hunter2".into(), field: field.into() };
    let words =
        |causes| Error::judge("c", &key("Secret"), status(422, "Invalid", "hunter2 is wrong", causes)).to_string();
    assert_eq!(words(vec![cause("type")]), "Secret a/x is refused by the API server: it is not a valid Secret at type");
    assert_eq!(words(vec![]), "Secret a/x is refused by the API server: it is not a valid Secret");
}

#[test]
fn everything_that_stood_in_the_way_is_told_and_the_first_object_named() {
    let missing = |name: &str| {
        Setback::from(Error::Missing {
            key: Box::new(ObjectKey { name: name.into(), ..key("K") }),
            message: "m".into(),
        })
    };
    let joined = all([Ok(1), Err(missing("p")), Err(missing("q"))]).unwrap_err();
    assert_eq!(joined.key.map(|key| key.name), Some("p".to_owned()));
    let Halt::Retry(failure) = joined.halt else { panic!() };
    assert_eq!(failure.message, "K a/p cannot be written now: m; K a/q cannot be written now: m");
    assert_eq!(all([Ok(1), Ok(2)]).unwrap(), [1, 2]);
}

#[test]
fn c_24_a_superseded_job_does_not_fail() {
    let failure = Failure::new("Apply", "Superseded", Error::Superseded.to_string());
    assert_eq!(Halt::from(Error::Superseded), Halt::Retry(failure));
}
