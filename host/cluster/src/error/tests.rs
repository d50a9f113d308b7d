use kube::core::response::{StatusCause, StatusDetails};

use super::*;

fn key(kind: &str) -> ObjectKey {
    ObjectKey { api_version: "v1".into(), kind: kind.into(), namespace: Some("a".into()), name: "x".into() }
}

fn status(code: u16, reason: &str, message: &str, causes: Vec<StatusCause>) -> kube::Error {
    let details = StatusDetails {
        name: "x".to_owned(),
        group: String::new(),
        kind: Kind::default().into(),
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
    let halt = Halt::from(Error::classify("c", &key("ConfigMap"), error));
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
    check(plain(401, "Unauthorized"), "retry", "Forbidden", &[Code::Unauthorized]);
    let rights = "configmaps is forbidden: User \"u\" cannot create resource \"configmaps\" in the namespace \"a\"";
    check(status(403, "Forbidden", rights, vec![]), "retry", "Forbidden", &[Code::Unauthorized]);
    let rule = "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"";
    check(status(403, "Forbidden", rule, vec![]), "stall", "Forbidden", &[Code::Unauthorized]);
    check(kube::Error::LinesCodecMaxLineLengthExceeded, "retry", "ClusterUnreachable", &[]);
}

/// An answer about an object names it; a path that is not served names nothing.
#[test]
fn c_35_a_version_that_is_not_served_is_no_object_that_is_missing() {
    let mut unserved = kube::core::Status::failure("404 page not found\n", "Failed to parse error data").with_code(404);
    check(kube::Error::Api(Box::new(unserved.clone())), "retry", NOT_SERVED, &[]);
    unserved.reason = "NotFound".to_owned();
    check(kube::Error::Api(Box::new(unserved)), "retry", NOT_SERVED, &[]);
}

#[test]
fn a_quota_and_a_going_namespace_pass() {
    let terminating =
        StatusCause { reason: "NamespaceTerminating".into(), message: String::new(), field: String::new() };
    check(status(403, "Forbidden", "m", vec![terminating]), "retry", TERMINATING, &[]);
    check(status(403, "Forbidden", "exceeded quota: pods", vec![]), "retry", "NotFound", &[]);
}

#[test]
fn orc_22_c_26_the_content_of_a_secret_is_not_quoted() {
    let cause = |field: &str| StatusCause { reason: String::new(), message: "hunter2".into(), field: field.into() };
    let words =
        |causes| Error::classify("c", &key("Secret"), status(422, "Invalid", "hunter2 is wrong", causes)).to_string();
    assert_eq!(words(vec![cause("type")]), "Secret a/x is refused by the API server: it is not a valid Secret at type");
    assert_eq!(words(vec![]), "Secret a/x is refused by the API server: it is not a valid Secret");
}

/// One of each kind, with what it means for the job and whether it names an object.
fn each() -> Vec<(Error, &'static str, &'static str, bool)> {
    let key = || Box::new(key("K"));
    let (cluster, message) = (|| "c".to_owned(), || "m".to_owned());
    let (api_version, kind) = (|| "a/v1".to_owned(), || "K".to_owned());
    let unreachable = || Arc::new(kube::Error::LinesCodecMaxLineLengthExceeded);
    let unserved = Error::NotServed { cluster: cluster(), api_version: api_version().into(), kind: kind().into() };
    let unwatched = Error::Unwatched {
        cluster: cluster(),
        api_version: api_version().into(),
        kind: kind().into(),
        message: message(),
    };
    let denied = |by_policy| Error::Denied { cluster: cluster(), key: key(), message: message(), by_policy };
    vec![
        (unserved, "retry", NOT_SERVED, false),
        (Error::Unlocated { key: key() }, "stall", UNLOCATED, true),
        (Error::Conflict { key: key() }, "retry", "Conflict", true),
        (Error::Managed { key: key(), message: message() }, "stall", "FieldsOfOthers", true),
        (Error::AlreadyExists { key: key() }, "retry", "AlreadyExists", true),
        (Error::Missing { key: key(), message: message() }, "retry", "NotFound", true),
        (Error::Terminating { key: key(), message: message() }, "retry", TERMINATING, true),
        (Error::Invalid { key: key(), message: message() }, "stall", "InvalidObject", true),
        (Error::Unsupported { key: key(), message: message() }, "stall", "InvalidObject", true),
        (Error::Unauthenticated { cluster: cluster(), key: key(), message: message() }, "retry", "Forbidden", true),
        (Error::Unauthorized { cluster: cluster(), key: key(), message: message() }, "retry", "Forbidden", true),
        (Error::Forbidden { cluster: cluster(), key: key(), message: message() }, "stall", "Forbidden", true),
        (Error::OutOfTime { cluster: cluster(), key: key() }, "retry", "ClusterUnreachable", true),
        (Error::Abandoned { message: message() }, "retry", "ClusterUnreachable", false),
        (
            Error::Unreachable { cluster: cluster(), key: key(), source: unreachable() },
            "retry",
            "ClusterUnreachable",
            true,
        ),
        (Error::Unanswered { cluster: cluster(), key: key(), seconds: 30 }, "retry", "ClusterUnreachable", true),
        (denied(false), "stall", "AddressDenied", true),
        (denied(true), "stall", "PolicyViolation", true),
        (unwatched, "retry", "WatchFailed", false),
    ]
}

#[test]
fn c_09_every_error_is_one_halt_with_its_message_and_names_its_object() {
    for (error, sort, reason, named) in each() {
        let (message, key) = (error.to_string(), error.key().is_some());
        let (found, failure) = match Halt::from(error) {
            Halt::Retry(failure) => ("retry", failure),
            Halt::Stall(failure) => ("stall", failure),
            Halt::Wait(wait) => panic!("{wait}"),
        };
        assert_eq!((found, failure.reason.as_str(), failure.message), (sort, reason, message), "{reason}");
        assert_eq!(key, named, "{reason}");
    }
}

#[test]
fn c_09_a_component_may_read_again_what_may_pass_and_nothing_else() {
    for (error, sort, reason, _) in each() {
        let halt = Halt::from(error);
        let failure = halt.failure().cloned().unwrap();
        let (code, message) = (code(&failure), failure.message);
        let expected = if sort == "retry" { Fault::later(code, message) } else { Fault::invalid(code, message) };
        assert_eq!(fault(halt), expected, "{reason}");
    }
    let waits = fault(Halt::wait("Job", "x", orangery_core::step::Until::Finished));
    assert_eq!(waits, Fault::later(Code::Unfinished, "waiting for Job x to finish"));
}

#[test]
fn messages_of_other_kinds_are_those_of_the_server_and_fields_of_others_fail_the_write() {
    let cause = |reason: &str| StatusCause { reason: reason.into(), message: "m".into(), field: "f".into() };
    let managed =
        Error::classify("c", &key("K"), status(409, "Conflict", "theirs", vec![cause("FieldManagerConflict")]));
    assert_eq!(
        managed.to_string(),
        "K a/x is not written, because others manage some of its fields: theirs; have them give those up, or leave the fields out"
    );
    let invalid = Error::classify("c", &key("K"), status(422, "Invalid", "data is wrong", vec![cause("other")]));
    assert_eq!(invalid.to_string(), "K a/x is refused by the API server: data is wrong");
    let expired = Error::classify("c", &key("K"), status(410, "Expired", "too old", vec![]));
    assert!(matches!(expired, Error::Unreachable { .. }), "{expired}");
    let created = Error::classify("c", &key("K"), status(405, "MethodNotAllowed", "not here", vec![]));
    assert!(matches!(created, Error::Unsupported { .. }), "{created}");
}

#[test]
fn limits_cluster_the_words_of_a_server_are_cut_and_cleaned() {
    let words = format!("no\u{1b}[2J\n{}", "x".repeat(LONGEST_ANSWER));
    for code in [403, 422, 500] {
        let message = Error::classify("c", &key("ConfigMap"), status(code, "R", &words, vec![])).to_string();
        assert!(message.contains("no\u{fffd}[2J xxx") && message.contains("[… 7 more bytes]"), "{message}");
        assert!(!message.chars().any(char::is_control), "{message}");
    }
}

#[test]
fn limits_cluster_so_many_fields_of_a_secret_are_named() {
    let of = |count: usize| {
        let cause = |index| StatusCause { reason: String::new(), message: String::new(), field: format!("f{index}") };
        let causes = (0..count).map(cause).collect();
        Error::classify("c", &key("Secret"), status(422, "Invalid", "m", causes)).to_string()
    };
    assert!(of(20).ends_with(", f19"), "{}", of(20));
    assert_eq!(of(21), of(20));
}
