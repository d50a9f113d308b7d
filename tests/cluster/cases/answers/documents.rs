//! The manifests in the documents of Landscaper: what a reader copies from there is taken.
//!
//! `documents.jsonl` has a line for each, in its documents' order: all examples of its kinds that stand as a whole in YAML, with
//! the name `x` for what the author left open (Landscaper is under the Apache License 2.0).

use http::Method;
use orangery_tests::objects::NAMESPACE;
use serde::Deserialize;
use serde_json::{Value, json};

/// The document, which block of it, and what is said of the manifest there: excerpts, templates and words in place of values.
const REFUSED: [(&str, usize, &str); 16] = [
    ("docs/deployer/README.md", 0, "spec in body must be of type object"),
    ("docs/deployer/helm.md", 0, "spec.target.name: Required value"),
    ("docs/deployer/manifest.md", 0, "404"),
    ("docs/technical/deployer_contract.md", 0, "spec.target: needs both name and namespace"),
    ("docs/technical/deployer_lifecycle_management.md", 3, "spec.type: Required value"),
    ("docs/technical/target_types.md", 0, "spec.type: Required value"),
    ("docs/technical/target_types.md", 1, "spec.type: Required value"),
    ("docs/troubleshooting/common-issues.md", 1, "spec.blueprint: Required value"),
    ("docs/troubleshooting/common-issues.md", 8, "spec.blueprint: Required value"),
    ("docs/troubleshooting/common-issues.md", 10, "spec.blueprint: Required value"),
    ("docs/usage/Installations.md", 0, "an import has an empty name"),
    ("docs/usage/Installations.md", 20, "spec.blueprint: Required value"),
    ("docs/usage/Installations.md", 21, "spec.blueprint: Required value"),
    ("docs/usage/SignatureVerification.md", 1, "spec.blueprint: Required value"),
    ("docs/usage/TargetSyncs.md", 0, "must be of type boolean"),
    ("docs/usage/TargetSyncs.md", 1, "must be of type boolean"),
];

/// A line of the file.
#[derive(Deserialize)]
struct Example {
    document: String,
    block: usize,
    object: Value,
}

#[tokio::test]
async fn every_manifest_in_the_documents_of_landscaper_is_taken_but_for_those_that_are_no_objects() {
    let cluster = crate::cluster().await;
    let examples = include_str!("documents.jsonl").lines();
    let examples: Vec<Example> = examples.map(|line| serde_json::from_str(line).expect("an example")).collect();
    assert_eq!(examples.len(), 39);
    let mut refused = Vec::new();
    for Example { document, block, mut object } in examples {
        object["metadata"]["namespace"] = json!(NAMESPACE);
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let plural = match object["kind"].as_str().unwrap_or_default() {
            "ComponentVersionOverwrites" => "componentversionoverwrites".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        let path = format!("/apis/{version}/namespaces/{NAMESPACE}/{plural}?dryRun=All");
        if let Err(error) = super::send(cluster.client(), (Method::POST, &path), "application/json", &object).await {
            refused.push((document, block, error.to_string()));
        }
    }
    let is_expected = |(found, expected): (&(String, usize, String), &(&str, usize, &str))| {
        found.0 == expected.0 && found.1 == expected.1 && found.2.contains(expected.2)
    };
    let all = refused.len() == REFUSED.len() && refused.iter().zip(&REFUSED).all(is_expected);
    assert!(all, "{refused:#?}");
}
