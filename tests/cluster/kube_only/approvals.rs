//! Approvals, and the authors of changes: checked by the server, with the admission policies of the chart (C-367, C-368).

use std::time::Duration;

use orangery_tests::{
    cluster::own_target,
    kube::{Kube, OPERATOR},
    objects::Objects,
    rendered::{objects, render},
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
    yaml,
};
use serde_json::{Value, json};
use tokio::time::interval;

/// A user, whom the server knows by this name.
async fn user(server: &Kube, name: &str) -> Objects {
    let mut kubeconfig = yaml::documents(&server.kubeconfig()).remove(0);
    kubeconfig["users"][0]["user"]["as"] = json!(name);
    Objects::of(kubeconfig.to_string()).await
}

/// What a user may do in all namespaces, beside what others have.
async fn allow(admin: &Objects, user: &str, role: &str) {
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
    let metadata = json!({"name": format!("{user}-{}", role["name"].as_str().unwrap_or_default())});
    let api = "rbac.authorization.k8s.io/v1";
    let binding = json!({"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]});
    admin.apply(&binding).await;
}

/// A role for what a tenant does, and what somebody has who may write the status of Plans and not approve them.
fn role(name: &str, group: &str, resource: &str, verbs: &[&str]) -> Value {
    let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": verbs}]);
    let api = "rbac.authorization.k8s.io/v1";
    json!({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

fn root(content: &str, author: &str) -> Value {
    let items = [deploys("web", &[], content)];
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&items)}));
    let mut root = on_cluster(installation("web", &blueprint));
    root["metadata"]["annotations"]["orangery.dev/changed-by"] = json!(author);
    root
}

/// The sentence with which a write is refused; empty where it is not.
fn sentence<T>(answer: kube::Result<T>) -> String {
    answer.err().map(|error| error.to_string()).unwrap_or_default()
}

/// The policies of the chart, for this operator; and what the users may do: anna changes and approves, berta approves, and carl may write the
/// status of Plans without the right to approve.
async fn set_up(admin: &Objects) {
    for mut object in objects(&render("usual").await) {
        if ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
            .contains(&object["kind"].as_str().unwrap_or_default())
            || object["metadata"]["name"] == "orangery-plan-approver"
        {
            if let Some(condition) = object.pointer_mut("/spec/matchConditions/0/expression") {
                *condition = json!(format!("request.userInfo.username != '{}'", OPERATOR[0]));
            }
            admin.apply(&object).await;
        }
    }
    let all = ["get", "list", "create", "patch", "update", "delete"];
    admin.apply(&role("tenant", "landscaper.gardener.cloud", "installations", &all)).await;
    admin.apply(&role("writer", "orangery.dev", "plans/status", &["patch"])).await;
    for (name, roles) in [
        ("anna", vec!["tenant", "orangery-plan-approver"]),
        ("berta", vec!["orangery-plan-approver"]),
        ("carl", vec!["writer"]),
    ] {
        for role in roles {
            allow(admin, name, role).await;
        }
    }
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_367_c_368_the_server_lets_nobody_approve_what_he_has_changed_or_in_the_name_of_another() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let admin = Objects::of(server.kubeconfig()).await;
    set_up(&admin).await;
    let [anna, berta, carl] = [user(&server, "anna").await, user(&server, "berta").await, user(&server, "carl").await];
    let policy = json!({
        "apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "team"},
        "spec": {
            "profile": "compatible", "namespaces": {"names": ["default"]}, "approval": "Required",
            "plans": {"requireOtherApprover": true},
        },
    });
    admin.apply(&policy).await;
    admin.apply(&own_target(&server.kubeconfig())).await;
    let _operator = server.operator(&binary, OPERATOR[0], &["--target-accounts=any"]);
    // The server takes new policies of admission some time after they are written.
    let mut tries = interval(Duration::from_millis(100));
    let for_another = loop {
        tries.tick().await;
        let refused = sentence(anna.would_take(&root("1", "berta")).await);
        if !refused.is_empty() {
            break refused;
        }
    };
    let whoever = "the annotation orangery.dev/changed-by has to name whoever changes an Installation, which is anna";
    assert!(for_another.contains(whoever), "{for_another}");
    // Without an author nobody could be another one.
    let mut unnamed = root("1", "anna");
    unnamed["metadata"]["name"] = json!("unnamed");
    unnamed["metadata"]["annotations"].as_object_mut().expect("annotations").remove("orangery.dev/changed-by");
    anna.apply(&unnamed).await;
    let failed = admin.expect(&in_phase("Installation", "unnamed", "Failed")).await;
    let said = "the Installation unnamed does not say who that was: set its annotation orangery.dev/changed-by";
    assert!(failed["status"]["lastError"]["message"].to_string().contains(said), "{failed}");
    anna.apply(&root("1", "anna")).await;
    let is_open = |plan: &Value| plan["status"]["phase"] == "Ready" && plan["spec"]["installation"] == "web";
    let plan = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plan", "metadata": {"namespace": "default"}});
    let plan = admin.expect_that(&plan, "is not open", is_open).await;
    assert_eq!((&plan["spec"]["author"], &plan["spec"]["requiresOtherApprover"]), (&json!("anna"), &json!(true)));
    let says = |by: &str| json!({"approval": {"decision": "Approve", "planHash": plan["spec"]["planHash"], "by": by}});
    let tries = async |user: &Objects, status: Value| sentence(user.try_patch_status(&plan, status).await);
    for (user, status, why) in [
        (&anna, says("anna"), "a policy has somebody else approve or reject a Plan than has made the change"),
        (&anna, says("berta"), "status.approval.by has to be the name of whoever approves or rejects, which is anna"),
        (&berta, says(""), "status.approval.by has to be the name of whoever approves or rejects, which is berta"),
        (&carl, says("carl"), "approving and rejecting Plans needs the verb approve on plans of orangery.dev"),
        (
            &berta,
            json!({"phase": "Applied"}),
            "of the status of a Plan nobody but the operator may write anything but approval",
        ),
    ] {
        let refused = tries(user, status).await;
        assert!(refused.contains(why), "{refused}");
    }
    admin
        .expect_absent(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}),
        )
        .await;
    assert_eq!(tries(&berta, says("berta")).await, "");
    admin.expect(&in_phase("Installation", "web", "Succeeded")).await;
    // What changes nothing names nobody anew; what changes the spec does.
    let other = |annotations: Value| {
        json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations}})
    };
    allow(&admin, "berta", "tenant").await;
    let taken = sentence(berta.try_merge(&other(json!({"example.org/seen": "yes"}))).await);
    assert_eq!(taken, "");
    let refused = sentence(berta.try_merge(&root("2", "anna")).await);
    assert!(refused.contains("has to name whoever changes an Installation, which is berta"), "{refused}");
    assert_eq!(sentence(berta.try_merge(&root("2", "berta")).await), "");
    admin.expect(&any("Installation", "web")).await;
}
