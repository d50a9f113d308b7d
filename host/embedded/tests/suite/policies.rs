//! Admission policies: what they select, what they say, and when they are in force.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::scaffold::*;

fn policies(client: &kube::Client) -> Api<DynamicObject> {
    dynamic(client, "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", None)
}

fn bindings(client: &kube::Client) -> Api<DynamicObject> {
    dynamic(client, "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", None)
}

/// A policy over things: their size stays under three, unless a label says otherwise.
fn policy(validation: Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "small"},
        "spec": {
            "matchConstraints": {
                "objectSelector": {"matchExpressions": [{"key": "free", "operator": "NotIn", "values": ["true"]}]},
                "resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["things"]}],
            },
            "matchConditions": [{"name": "changes", "expression": "oldObject == null || object.spec != oldObject.spec"}],
            "variables": [{"name": "size", "expression": "object.spec.size"}],
            "validations": [validation],
        },
    })
}

fn binding(actions: &[&str]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "everywhere"}, "spec": {"policyName": "small", "validationActions": actions},
    })
}

fn small() -> Value {
    json!({"expression": "variables.size < 3", "messageExpression": "'the size is ' + string(variables.size)"})
}

const DENIED: &str = "things.example.com \"t\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'everywhere' \
                      denied request: ";

#[tokio::test]
async fn a_policy_holds_as_long_as_it_is_bound() {
    let (server, client) = serve_things().await;
    create(&policies(&client), policy(small())).await.unwrap();
    let api = things(&client, "ns");
    create(&api, thing("unbound", json!({"size": 9}))).await.unwrap();
    create(&bindings(&client), binding(&["Deny"])).await.unwrap();
    let refused = refusal(create(&api, thing("t", json!({"size": 9}))).await);
    assert_eq!(refused, (422, format!("{DENIED}the size is 9")));
    create(&api, thing("t", json!({"size": 2}))).await.unwrap();
    let grow = Patch::Merge(json!({"spec": {"size": 4}}));
    let refused = refusal(api.patch("t", &PatchParams::default(), &grow).await);
    assert_eq!(refused, (422, format!("{DENIED}the size is 4")));
    bindings(&client).delete("everywhere", &DeleteParams::default()).await.unwrap();
    api.patch("t", &PatchParams::default(), &grow).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn what_is_there_already_stays_writable() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    create(&api, thing("t", json!({"size": 9}))).await.unwrap();
    create(&policies(&client), policy(small())).await.unwrap();
    create(&bindings(&client), binding(&["Deny"])).await.unwrap();
    let annotated = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    let made = api.patch("t", &PatchParams::default(), &annotated).await.unwrap();
    assert_eq!(made.annotations().len(), 1);
    let with_status = json!({"status": {"phase": "x"}});
    api.patch_status("t", &PatchParams::default(), &Patch::Merge(with_status)).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_label_skips_it_if_old_and_new_form_bear_it() {
    let (server, client) = serve_things().await;
    create(&policies(&client), policy(small())).await.unwrap();
    create(&bindings(&client), binding(&["Deny"])).await.unwrap();
    let api = things(&client, "ns");
    let mut free = thing("t", json!({"size": 9}));
    free["metadata"]["labels"] = json!({"free": "true"});
    create(&api, free).await.unwrap();
    let grow = Patch::Merge(json!({"spec": {"size": 10}}));
    api.patch("t", &PatchParams::default(), &grow).await.unwrap();
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {"free": null}}, "spec": {"size": 11}}));
    assert_eq!(refusal(api.patch("t", &PatchParams::default(), &unlabelled).await).0, 422);
    server.stop().await;
}

#[tokio::test]
async fn an_expression_that_fails_denies_and_a_message_that_fails_does_not_hide() {
    let (server, client) = serve_things().await;
    create(&bindings(&client), binding(&["Deny"])).await.unwrap();
    let api = things(&client, "ns");
    let cases = [
        (
            json!({"expression": "object.spec.absent == 1"}),
            422,
            "expression 'object.spec.absent == 1' resulted in error: no such key: absent",
        ),
        (
            json!({"expression": "false", "message": "never", "messageExpression": "object.spec.absent", "reason": "Forbidden"}),
            403,
            "never",
        ),
        (json!({"expression": "1 > 2"}), 422, "failed expression: 1 > 2"),
    ];
    for (validation, code, why) in cases {
        create(&policies(&client), policy(validation)).await.unwrap();
        let refused = refusal(create(&api, thing("t", json!({"size": 1}))).await);
        assert_eq!(refused, (code, format!("{DENIED}{why}")));
        policies(&client).delete("small", &DeleteParams::default()).await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn c_90_a_variable_that_cannot_be_computed_is_told_with_its_reason() {
    let (server, client) = serve_things().await;
    create(&bindings(&client), binding(&["Deny"])).await.unwrap();
    let mut broken = policy(small());
    broken["spec"]["variables"][0]["expression"] = json!("object.spec.absent");
    create(&policies(&client), broken).await.unwrap();
    let refused = refusal(create(&things(&client, "ns"), thing("t", json!({"size": 1}))).await);
    let why = "expression 'variables.size < 3' resulted in error: composited variable \"size\" fails to evaluate: no such \
               key: absent";
    assert_eq!(refused, (422, format!("{DENIED}{why}")));
    server.stop().await;
}

#[tokio::test]
async fn a_policy_that_does_not_compile_is_refused() {
    let (server, client) = serve_things().await;
    let (code, message) = refusal(create(&policies(&client), policy(json!({"expression": "object.("}))).await);
    assert_eq!(code, 422);
    let start = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"small\" is invalid: \
                 spec.validations[0].expression: Invalid value: \"object.(\": compilation failed: ";
    assert!(message.starts_with(start), "{message}");
    server.stop().await;
}

/// A mutating policy over things, and its binding.
async fn mutate(client: &kube::Client, name: &str, spec: Value) {
    let api = |kind: &str| dynamic(client, "admissionregistration.k8s.io", "v1", kind, None);
    let rules = json!({"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": ["things"]}]});
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": rules, "reinvocationPolicy": "Never"},
    });
    policy["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    create(&api("MutatingAdmissionPolicy"), policy).await.unwrap();
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    create(&api("MutatingAdmissionPolicyBinding"), binding).await.unwrap();
}

fn applying(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patching(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test]
async fn mutating_policies_change_what_is_written_and_validating_ones_see_it() {
    let (server, client) = serve_things().await;
    let grown = applying("Object{spec: Object.spec{size: object.spec.size + variables.more}}");
    let condition = json!([{"name": "small", "expression": "object.spec.size < 5"}]);
    let variables = json!([{"name": "more", "expression": "1"}]);
    mutate(&client, "a", json!({"matchConditions": condition, "variables": variables, "mutations": [grown]})).await;
    let marked = patching(
        "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'size': string(object.spec.size)}}, \
         JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]",
    );
    mutate(&client, "b", json!({"mutations": [marked]})).await;
    create(&policies(&client), policy(small())).await.unwrap();
    create(&bindings(&client), binding(&["Deny"])).await.unwrap();
    let api = things(&client, "ns");
    let made = create(&api, thing("t", json!({"size": 1}))).await.unwrap();
    assert_eq!((made.data["spec"]["size"].clone(), made.annotations()["size"].as_str()), (json!(2), "2"));
    assert_eq!(made.name_any(), "t", "it stays itself");
    let refused = refusal(create(&api, thing("u", json!({"size": 2}))).await);
    assert_eq!(refused.0, 422, "{}", refused.1);
    assert!(refused.1.ends_with("the size is 3"), "{}", refused.1);
    let patch = Patch::Merge(json!({"spec": {"size": 1}, "metadata": {"labels": {"a": "b"}}}));
    let changed = api.patch("t", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((changed.data["spec"]["size"].clone(), changed.labels()["a"].as_str()), (json!(2), "b"));
    server.stop().await;
}

#[tokio::test]
async fn a_mutation_that_fails_refuses_the_write_unless_its_policy_ignores_that() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    for (name, failure_policy, made) in [("a", "Ignore", true), ("b", "Fail", false)] {
        let broken = applying("Object{spec: Object.spec{size: object.spec.absent}}");
        mutate(&client, name, json!({"failurePolicy": failure_policy, "mutations": [broken]})).await;
        let answer = create(&api, thing(name, json!({"size": 1}))).await;
        assert_eq!(answer.is_ok(), made, "{answer:?}");
        if let Err(error) = answer {
            let why = error.to_string();
            assert!(
                why.contains("MutatingAdmissionPolicy 'b' with binding 'b' denied request: expression 'Object{"),
                "{why}"
            );
        }
    }
    let policies = dynamic(&client, "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", None);
    let odd = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "odd"},
        "spec": {"mutations": [applying("Other{}")]},
    });
    let refused = refusal(create(&policies, odd).await);
    assert!(refused.1.contains("spec.mutations[0].applyConfiguration.expression"), "{}", refused.1);
    server.stop().await;
}
