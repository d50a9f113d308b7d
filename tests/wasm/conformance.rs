//! What every deployer has to be able to do: the built-in ones do all of it, and a guest that does one thing wrong fails that case by
//! its name.

use std::path::{Path, PathBuf};

use orangery_cli::authoring::{
    conformance::{CaseOutcome, ConformanceCase, ConformanceReport, Sample, conform, samples},
    loaded::LoadedComponent,
};
use serde_json::json;

use super::fixtures::{bytes, loaded, loaded_builtin, sandbox};

async fn report(component: &LoadedComponent, folder: &Path) -> ConformanceReport {
    let (samples, target) = samples(folder).unwrap();
    conform(&component.plugin, component.first_type(), (&samples, &target)).await.unwrap()
}

/// Asks a built-in deployer everything. Nothing fails.
async fn check(name: &str) -> ConformanceReport {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(name).join("samples");
    let report = report(&loaded_builtin(name), &folder).await;
    let failed: Vec<_> = report.cases.iter().filter(|verdict| verdict.outcome == CaseOutcome::Failed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    report
}

#[tokio::test]
async fn c_256_the_manifest_deployer_conforms() {
    let report = check("manifest").await;
    // It reads nothing, has nothing to uninstall, does not recover and says nothing of configurations: 9 cases have nothing to ask.
    assert_eq!((report.passed, report.not_applicable), (20, 18));
}

#[tokio::test]
async fn c_256_the_mock_deployer_conforms() {
    let report = check("mock").await;
    assert_eq!(report.failed, 0);
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_256_the_helm_deployer_conforms() {
    let report = check("helm").await;
    let asked = |case: ConformanceCase| {
        let verdict = report.cases.iter().find(|verdict| verdict.case == case && verdict.sample == "release");
        verdict.unwrap().outcome == CaseOutcome::Passed
    };
    for case in [
        ConformanceCase::HugeLists,
        ConformanceCase::ClusterLater,
        ConformanceCase::UninstallAfterFailure,
        ConformanceCase::Validation,
    ] {
        assert!(asked(case), "{}", case.name());
    }
}

/// The one case that no component can fail: the sandbox has nothing that would change from call to call. The guest of this name answers
/// with all that it can learn of clocks, randomness, memory and environment. What is no component and fails it is in the crate of the cases.
const NEVER_FAILED: ConformanceCase = ConformanceCase::SameAnswer;

#[tokio::test]
async fn c_256_a_guest_that_does_one_thing_wrong_fails_that_case_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: misbehaves}\nspec:\n  version: 1.0.0\n  \
                component: {file: mine.wasm}\n  deployer: {itemTypes: [example.org/guest]}\n  grants:\n    clusters: {target: true}\n    \
                reads: [{}]\n    writes: [{kinds: [ConfigMap]}]\n";
    std::fs::write(folder.path().join("plugin.yaml"), text).unwrap();
    let component = loaded(&sandbox(), Path::new("misbehaves"), bytes("misbehaves"), Some(folder.path()));
    let words = |name: &str| if name == ConformanceCase::Validation.name() { "validation" } else { "hello" };
    let sample = |name: &str| Sample { name: name.to_owned(), config: json!({"text": words(name)}) };
    let mistakes: Vec<&str> = ConformanceCase::ALL.iter().map(|case| case.name()).collect();
    let mut all: Vec<Sample> = mistakes.iter().map(|name| sample(name)).collect();
    all.push(sample("well"));
    let report = conform(&component.plugin, component.first_type(), (&all, &[])).await.unwrap();
    let failed = report.cases.iter().filter(|verdict| verdict.outcome == CaseOutcome::Failed);
    let failed: Vec<(&str, &str)> = failed.map(|verdict| (verdict.case.name(), verdict.sample.as_str())).collect();
    let expected: Vec<(&str, &str)> =
        mistakes.iter().filter(|name| **name != NEVER_FAILED.name()).map(|name| (*name, *name)).collect();
    assert_eq!(failed, expected, "{:#?}", report.cases.iter().filter(|one| one.reason.is_some()).collect::<Vec<_>>());
    assert_eq!(report.not_applicable, 0);
}
