use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::target_kubeconfig::TargetKubeconfig;

fn labels(value: &str) -> Labels {
    Labels::from([("tenant".to_owned(), value.to_owned())])
}

/// The policies that count for a namespace, by name.
fn counting(policies: &NamespacePolicies, namespace: &str) -> Vec<String> {
    let effective = policies.of(&namespace.into()).unwrap();
    effective.policies().map(|policy| policy.origin().to_string()).collect()
}

fn put(policies: &NamespacePolicies, name: &str, spec: &Value) {
    policies.put_policy(name.to_owned(), Policy::read(name, spec));
}

fn of_tenants() -> Value {
    json!({"namespaces": {"labelSelector": {"matchLabels": {"tenant": "yes"}}}})
}

#[test]
fn what_counts_follows_policies_and_labels() {
    let policies = NamespacePolicies::new(Profile::Restricted);
    assert_eq!(counting(&policies, "a"), ["the default policy"], "nothing has to be known of the namespace");
    policies.put_namespace("a".into(), labels("yes"));
    put(&policies, "tenants", &of_tenants());
    assert_eq!(counting(&policies, "a"), ["NamespacePolicy tenants"]);
    policies.put_namespace("a".into(), labels("no"));
    assert_eq!(counting(&policies, "a"), ["the default policy"]);
    policies.put_namespace("a".into(), labels("yes"));
    policies.remove_policy("tenants");
    assert_eq!(counting(&policies, "a"), ["the default policy"]);
}

#[test]
fn a_namespace_whose_labels_decide_and_are_not_known_is_tried_again() {
    let policies = NamespacePolicies::new(Profile::Compatible);
    put(&policies, "tenants", &of_tenants());
    let Err(Halt::Retry(failure)) = policies.of(&"new".into()) else { panic!("it was taken for one without labels") };
    assert_eq!(failure.reason, "NamespaceUnknown");
    policies.put_namespace("new".into(), labels("yes"));
    assert_eq!(counting(&policies, "new"), ["NamespacePolicy tenants"]);
}

#[test]
fn a_change_names_the_namespaces_for_which_something_else_counts() {
    let policies = NamespacePolicies::new(Profile::Restricted);
    let changes: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let told = Arc::clone(&changes);
    policies.subscribe(move |changed| {
        told.lock().unwrap().push(changed.iter().map(ToString::to_string).collect());
    });
    policies.replace_namespaces(BTreeMap::from([("a".into(), labels("yes")), ("b".into(), labels("no"))]));
    counting(&policies, "a");
    counting(&policies, "b");
    put(&policies, "tenants", &of_tenants());
    put(&policies, "tenants", &of_tenants());
    put(&policies, "nobody", &json!({"namespaces": {"names": ["c"]}}));
    policies.put_namespace("b".into(), labels("yes"));
    policies.replace_policies(BTreeMap::new());
    policies.remove_namespace(&"a".into());
    let changes = changes.lock().unwrap().clone();
    assert_eq!(changes, [vec!["a"], vec!["b"], vec!["a", "b"]]);
}

#[tokio::test]
async fn it_is_synced_when_both_lists_are_in() {
    let policies = NamespacePolicies::new(Profile::Restricted);
    policies.replace_policies(BTreeMap::new());
    assert!(!policies.shared.synced.borrow().1);
    policies.replace_namespaces(BTreeMap::new());
    policies.synced().await;
}

#[test]
fn c_103_a_kubeconfig_that_the_operator_made_for_its_own_cluster_is_held_against_no_network() {
    let policies = NamespacePolicies::new(Profile::Restricted);
    let rules = |is_own: bool| {
        let kubeconfig = TargetKubeconfig { text: "the same".to_owned(), is_own, source: None };
        let networks = policies.networks(&"a".into(), &kubeconfig).unwrap();
        networks.rules.iter().map(|rule| rule.line.clone()).collect::<Vec<_>>()
    };
    assert_eq!(rules(true), Vec::<String>::new());
    assert_eq!(rules(false), ["the default policy, line spec.egress.networks"]);
    put(&policies, "open", &json!({"namespaces": {"names": ["a"]}, "profile": "compatible"}));
    assert_eq!(rules(false), Vec::<String>::new(), "what counts now");
}

#[test]
fn a_violation_ends_the_job_with_its_code() {
    let policies = NamespacePolicies::new(Profile::Restricted);
    let halt = policies.check(&"a".into(), PolicySubject::Installation, PolicyRequest::HostCluster).unwrap_err();
    let Halt::Stall(failure) = halt else { panic!("{halt:?}") };
    assert_eq!((failure.operation.as_str(), failure.reason.as_str()), ("CheckPolicy", "PolicyViolation"));
}
