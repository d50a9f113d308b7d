//! The tests that deployers know of what they have deployed.

use std::sync::Arc;

use orangery_plugin::TestSubject;
use orangery_proposal::deployer::Reads;
use orangery_tests::empty::Empty;
use serde_json::json;

use super::{
    engines::builtin_in,
    fixtures::{deployer, sandbox},
};

fn subject() -> TestSubject {
    TestSubject { namespace: "default".into(), name: "web".into() }
}

fn reads() -> Reads {
    Reads::of_clusters(Arc::new(Empty))
}

#[tokio::test]
async fn what_a_deployer_does_not_know_has_no_tests() {
    assert_eq!(deployer("answers", json!({})).find_tests(&subject(), reads()).await, Ok(None));
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn what_is_no_release_has_no_tests() {
    let helm = builtin_in(sandbox(), "helm", &json!({}));
    assert_eq!(helm.find_tests(&subject(), reads()).await, Ok(None));
}
