//! Components that were built for a version of the contract and are kept as they were built (`tests/contracts/README.md`).

use std::{fs, path::PathBuf, sync::Arc};

use orangery_cli::authoring::{
    cases::{self, CallLog, Expectation},
    loaded::LoadedComponent,
};
use orangery_plugin::{TestCase, TestSubject, World};
use orangery_proposal::deployer::Reads;
use orangery_tests::{empty::Empty, repository};
use serde_json::json;

use crate::inside::fixtures::{loaded, sandbox};

/// The versions of the contract of which components are kept.
const VERSIONS: [&str; 1] = ["0.1.0"];

fn folder(version: &str) -> PathBuf {
    repository().join("tests/contracts").join(version)
}

/// A component as it was built then. It is small, and everything is granted to it.
fn kept(version: &str, name: &str) -> LoadedComponent {
    let file = folder(version).join(format!("{name}.wasm"));
    let bytes = fs::read(&file).unwrap();
    assert!(bytes.len() < 160 << 10, "{} has {} bytes", file.display(), bytes.len());
    loaded(&sandbox(), &file, bytes, None)
}

/// Runs the cases of a component, which call all of its functions and have all answers of the contract.
async fn check(version: &str, name: &str, world: World) {
    let component = kept(version, name);
    assert_eq!(component.world, world);
    let log = Arc::new(CallLog::default());
    let how = match std::env::var_os("UPDATE") {
        Some(_) => Expectation::IsUpdated,
        None => Expectation::Holds,
    };
    for (case, kind) in cases::all(&folder(version).join(name).join("cases")).unwrap() {
        let report = cases::run(&component, &case, kind, how, &log).await;
        assert_eq!(report.problems, Vec::<String>::new(), "{version} {name}: {}", report.name);
    }
    let coverage = log.coverage(&component.inspection);
    let never = [coverage.never_called, coverage.never_answered];
    assert_eq!(never, [Vec::<&str>::new(), Vec::new()], "{version} {name}");
}

#[tokio::test]
async fn c_225_deployers_of_each_version_of_the_contract_still_run() {
    for version in VERSIONS {
        check(version, "deployer", World::Deployer).await;
        let plugin = kept(version, "deployer").plugin;
        let tests = async |namespace: &str| {
            let subject = TestSubject { namespace: namespace.into(), name: "web".into() };
            plugin.find_tests(&subject, Reads::of_clusters(Arc::new(Empty))).await.unwrap()
        };
        let test = TestCase {
            source: "templates/test.yaml".to_owned(),
            object: json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}),
            delete_before: true,
            delete_after_success: true,
            delete_after_failure: false,
        };
        assert_eq!((tests("default").await, tests("other").await), (Some(vec![test]), None));
    }
}

#[tokio::test]
async fn c_225_engines_of_each_version_of_the_contract_still_run() {
    for version in VERSIONS {
        check(version, "templater", World::Templater).await;
    }
}

#[tokio::test]
async fn c_225_gates_of_each_version_of_the_contract_still_run() {
    for version in VERSIONS {
        check(version, "gate", World::Gate).await;
    }
}
