//! Panics of reconciles, written down by an operator that has no more rights than the chart gives it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use orangery_proposal::deployer::Deployer;
use orangery_runtime::{Definitions, Operator, OperatorConfig};
use orangery_tests::{
    deployers::Deployers,
    kube::{HOST_NAMESPACE, Kube, OPERATOR},
    objects::{Objects, connect},
    tree::API,
};
use serde_json::{Value, json};

/// Panics once for each type of items, and claims none.
fn panicking() -> Deployers<impl Fn(&str) -> Option<Arc<dyn Deployer>>> {
    let asked = Mutex::<BTreeSet<String>>::default();
    Deployers(move |item_type: &str| {
        let is_new = asked.lock().unwrap_or_else(PoisonError::into_inner).insert(item_type.to_owned());
        assert!(!is_new, "as asked by {item_type}");
        None
    })
}

/// An item whose type makes the operator panic.
fn item(name: &str) -> Value {
    let spec = json!({"type": format!("example.com/{name}")});
    json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": name}, "spec": spec})
}

fn problem(name: &str) -> Value {
    let description = format!("the reconcile of deploy-item default/{name} panicked: as asked by example.com/{name}");
    json!({"podName": "the-pod", "description": description})
}

#[tokio::test]
async fn a_panic_is_written_down_with_the_rights_of_the_chart() {
    let (binary, programs) = super::programs().await;
    let server = Kube::start_audited(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let client = connect(&server.kubeconfig_of_operator(OPERATOR[0])).await;
    let config = OperatorConfig::new(client, Arc::new(panicking()));
    let config = OperatorConfig { definitions: Definitions::Expect, pod: "the-pod".to_owned(), ..config };
    let operator = Operator::start(config).await.expect("the operator starts");
    for (name, problems) in
        [("first", json!([problem("first")])), ("second", json!([problem("first"), problem("second")]))]
    {
        objects.apply(&item(name)).await;
        objects
            .expect(&json!({
                "apiVersion": API,
                "kind": "CriticalProblems",
                "metadata": {"name": "critical-problems", "namespace": HOST_NAMESPACE},
                "spec": {"criticalProblem": problems},
            }))
            .await;
    }
    operator.stop().await;
    let mut written = server.writes(OPERATOR[0]);
    written.retain(|write| write.contains("criticalproblems"));
    let expected = ["create criticalproblems critical-problems 201", "update criticalproblems critical-problems 200"];
    assert_eq!(written, expected);
}
