//! Deployers that are plain functions: what no component can do in the sandbox, and the report.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use orangery_core::{
    error::{Code, Fault, Problem},
    port::BoxFuture,
};
use orangery_proposal::{Item, ObjectWrite, Proposal, Write, deployer::Clusters, grant::Grants};
use serde_json::{Value, json};

use super::*;

/// Writes one ConfigMap, and says with each answer how often it was called.
struct Counts {
    grants: Grants,
    calls: AtomicUsize,
}

impl DeployerUnderTest for Counts {
    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn plan<'a>(&'a self, item: &'a Item, _: Arc<dyn Clusters>) -> BoxFuture<'a, DeployerAnswer> {
        Box::pin(async move {
            let calls = self.calls.fetch_add(1, Ordering::Relaxed);
            if !item.config.is_object() {
                let message = "the configuration is no object".to_owned();
                return Ok(Err(Fault::Invalid(Problem { code: Code::ConfigurationProblem, message, at: None })));
            }
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
            let mut proposal: Proposal = serde_json::from_value(json!({
                "stages": [{"name": "s", "gate": "accepted"}], "next": {"finish": {}}, "status": {"calls": calls},
            }))
            .unwrap();
            proposal.stages[0].writes.push(ObjectWrite::new(object, Write::Apply));
            Ok(Ok(proposal))
        })
    }

    fn uninstall<'a>(&'a self, _: &'a Item, _: Arc<dyn Clusters>) -> BoxFuture<'a, Option<DeployerAnswer>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn c_256_a_deployer_that_answers_one_request_in_two_ways_fails_by_name() {
    let grants = serde_json::from_value(json!({"clusters": {"target": true}, "writes": [{}]})).unwrap();
    let deployer = Counts { grants, calls: AtomicUsize::new(0) };
    let samples = [Sample { name: "one".to_owned(), config: json!({}) }];
    let report = conform(&deployer, "example.org/counts", (&samples, &[])).await.unwrap();
    let of = |outcome| -> Vec<&str> {
        let verdicts = report.cases.iter().filter(|verdict| verdict.outcome == outcome);
        verdicts.map(|verdict| verdict.case.name()).collect()
    };
    assert_eq!(of(CaseOutcome::Failed), ["same-answer", "unknown-field"]);
    let reason = report.cases[0].reason.as_deref();
    let expected = "the same request was answered in two ways: /proposal/status/calls: expected is 1, answered is 2";
    assert_eq!(reason, Some(expected));
    let not_asked = [
        "other-kinds",
        "missing-fields",
        "huge-lists",
        "cluster-later",
        "cluster-denied",
        "nothing-there",
        "uninstall-after-failure",
        "validation",
        "recovery",
    ];
    assert_eq!(of(CaseOutcome::NotApplicable), not_asked);
    assert_eq!((report.passed, report.failed, report.not_applicable), (8, 2, 9));
}

/// What a deployer has for a schema.
type FoundSchema = Option<Result<Value, String>>;

/// Plans every object alike, and finds nothing wrong with what it is told to be right.
struct Judges {
    grants: Grants,
    schema: FoundSchema,
    right: Vec<Value>,
}

impl DeployerUnderTest for Judges {
    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn plan<'a>(&'a self, _: &'a Item, _: Arc<dyn Clusters>) -> BoxFuture<'a, DeployerAnswer> {
        let proposal = serde_json::from_value(json!({"stages": [], "next": {"finish": {}}})).unwrap();
        Box::pin(async { Ok(Ok(proposal)) })
    }

    fn uninstall<'a>(&'a self, _: &'a Item, _: Arc<dyn Clusters>) -> BoxFuture<'a, Option<DeployerAnswer>> {
        Box::pin(async { None })
    }

    fn schema(&self) -> BoxFuture<'_, Option<Result<Value, String>>> {
        Box::pin(async { self.schema.clone() })
    }

    fn problems<'a>(&'a self, config: &'a Value) -> BoxFuture<'a, Result<Vec<Problem>, String>> {
        let wrong = Problem { code: Code::ConfigurationProblem, message: "it is wrong".to_owned(), at: None };
        let found = if self.right.contains(config) { Vec::new() } else { vec![wrong] };
        Box::pin(async { Ok(found) })
    }
}

#[tokio::test]
async fn c_357_what_is_said_of_configurations_without_a_cluster_is_held_against_what_is_planned() {
    let schema = || Some(Ok(json!({})));
    let sample = json!({"a": 1});
    let nothing = "the component says nothing of configurations without a cluster";
    let cases: [(FoundSchema, Vec<Value>, CaseOutcome, Option<&str>); 5] = [
        (None, vec![], CaseOutcome::NotApplicable, Some(nothing)),
        (Some(Err("it is none".to_owned())), vec![], CaseOutcome::Failed, Some("the schema cannot be had: it is none")),
        (schema(), vec![], CaseOutcome::Failed, Some("the sample, which is planned, is said to be wrong: it is wrong")),
        (schema(), vec![sample.clone()], CaseOutcome::Passed, None),
        (
            schema(),
            vec![sample.clone(), json!(42)],
            CaseOutcome::Failed,
            Some("nothing is said to be wrong with the configuration 42"),
        ),
    ];
    let samples = [Sample { name: "one".to_owned(), config: sample.clone() }];
    for (schema, right, outcome, reason) in cases {
        let deployer = Judges { grants: Grants::default(), schema, right };
        let report = conform(&deployer, "example.org/judges", (&samples, &[])).await.unwrap();
        let verdict = report.cases.iter().find(|verdict| verdict.case == ConformanceCase::Validation).unwrap();
        assert_eq!((verdict.outcome, verdict.reason.as_deref()), (outcome, reason));
    }
}

#[test]
fn c_256_samples_are_the_files_of_a_folder_and_the_target_is_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("target.yaml", "kind: A\n---\nkind: B\n");
    assert!(samples(folder.path()).unwrap_err().to_string().contains("holds no sample"));
    write("b.yaml", "a: 1\n");
    write("a.json", "{\"a\": 2}");
    write("README.md", "no sample");
    let expected = [("a", 2), ("b", 1)].map(|(name, a)| Sample { name: name.to_owned(), config: json!({"a": a}) });
    assert_eq!(samples(folder.path()).unwrap(), (expected.to_vec(), vec![json!({"kind": "A"}), json!({"kind": "B"})]));
    write("c.yaml", "a: [");
    assert!(samples(folder.path()).unwrap_err().to_string().contains("c.yaml cannot be used: line"));
}
