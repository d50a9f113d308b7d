//! Which built-in kinds are written on both servers, held against those that are served.

use std::collections::BTreeSet;

use kube::core::discovery::verbs;
use kube::discovery::Discovery;
use serde_json::Value;

/// Groups that are not built in.
const OURS: [&str; 2] = ["landscaper.gardener.cloud", "orangery.dev"];

#[tokio::test]
async fn every_built_in_kind_that_is_served_is_written_on_both_servers() {
    let cluster = crate::cluster().await;
    let discovered = Discovery::new(cluster.client().clone()).run().await.expect("the server tells its kinds");
    let mut served = BTreeSet::new();
    for group in discovered.groups().filter(|group| !OURS.contains(&group.name())) {
        let versions = group.versions().flat_map(|version| group.versioned_resources(version));
        // What cannot be read is answered and not stored: reviews of access and of tokens.
        let stored = versions.filter(|(_, can)| can.supports_operation(verbs::GET));
        served.extend(stored.map(|(kind, _)| (kind.api_version, kind.kind)));
    }
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let written = include_str!("../cases/answers/kinds.jsonl").lines().map(|line| {
        let case: Value = serde_json::from_str(line).expect("a case");
        (text(&case["object"], "apiVersion"), text(&case["object"], "kind"))
    });
    assert_eq!(served, written.collect());
}
