//! Processes that pretend to be workers and lie: the host believes none of it, and its next call gets another process.

use orangery_plugin::{CallIsolation, Error};
use serde_json::json;

use crate::{
    in_workers::fixtures::{bytes, deployer_of, ended, plan},
    workers::marked,
};

/// How a call ends whose worker does this.
async fn end_of(what: &str) -> String {
    let marked = marked(&[&format!("hostile={what}")], CallIsolation::All, 1 << 30);
    let limits = json!({"wallMilliseconds": 3000, "logLines": 100});
    let plugin = deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), limits);
    let error = ended(plan(&plugin).await);
    assert!(marked.workers().len() <= 1, "{what}");
    assert_eq!(marked.sandbox.occupancy(), orangery_plugin::Occupancy::default(), "{what}");
    match &*error {
        Error::Worker { .. }
        | Error::Limit { .. }
        | Error::Trap { .. }
        | Error::StackOverflow { .. }
        | Error::TooManyParts { .. } => error.to_string(),
        Error::WorkerStart { why } => why.split_once(": ").unwrap().1.to_owned(),
        Error::WorkerKilled { .. } => error.to_string(),
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn c_71_c_328_what_no_call_says_ends_the_call_with_one_sentence() {
    let said = "the process that the component ran in said what no call says";
    for (what, end) in [
        ("garbage", format!("{said}: a frame that cannot be read: ")),
        ("huge", format!("{said}: a frame of 4294967295 bytes, where at most 34603008 are read")),
        ("bomb", "the component says more at once than the 262144 parts that are read: ".into()),
        ("does-not-begin", format!("{said}: something else before it began")),
        ("begins-twice", format!("{said}: it began once more")),
        ("two-frames", format!("{said}: it went on after its answer")),
        ("writes-nothing-for-ever", format!("{said}: it writes nothing")),
        (
            "answers-for-another",
            "the process that the component ran in answered for another function than was called".into(),
        ),
        ("exits", "the process that the component ran in ended with exit status: 3".into()),
        ("crashes", "the process that the component ran in crashed with signal 6".into()),
        ("closes", "the process that the component ran in closed its end of the socket and went on".into()),
        ("logs-for-ever", format!("{said}: it went on when its call was stopped; it had last logged: x")),
        (
            "says-nothing",
            "the call was stopped: it needs more than 3000 ms; have an administrator raise `limits.wallMilliseconds`"
                .into(),
        ),
        ("dies-at-once", "the process that the component ran in ended with exit status: 7".into()),
    ] {
        let found = end_of(what).await;
        assert!(found.starts_with(&end), "{what}: {found}");
    }
}

#[tokio::test]
async fn c_71_a_worker_gets_no_more_than_its_guest_would() {
    let secret = end_of("reads-a-secret").await;
    assert!(secret.contains("v1 Secret in namespace default is not granted to this component"), "{secret}");
    let artifact = end_of("reads-an-artifact-that-it-does-not-hold").await;
    assert_eq!(artifact, "the component crashed: resource not present");
}
