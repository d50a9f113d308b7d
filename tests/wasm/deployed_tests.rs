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

#[tokio::test]
async fn what_a_deployer_does_not_know_has_no_tests() {
    let subject = TestSubject { namespace: "default".into(), name: "web".into() };
    let reads = || Reads::of_clusters(Arc::new(Empty));
    assert_eq!(deployer("answers", json!({})).find_tests(&subject, reads()).await, Ok(None));
    let Some(helm) = builtin_in(sandbox(), "helm", &json!({})) else { return };
    assert_eq!(helm.find_tests(&subject, reads()).await, Ok(None));
}
