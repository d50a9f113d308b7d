//! Installations whose component versions are signed, or replaced by overwrites of their Context.

use std::fs;

use orangery_tests::{cluster::Cluster, repository, tree::API};
use serde_json::{Value, json};

use crate::{
    cases::signed_items::{in_phase, installation, required},
    embedded_only::command_line::offline::{document, write},
};

/// A host that runs only what is signed, over the repository in `tests/signed`.
async fn start() -> Cluster {
    let folder = repository().join("tests/signed");
    let components = folder.to_string_lossy();
    let flags = ["--ephemeral", "--components", &components, "--signature-policy", "Enforce"];
    let cluster = Cluster::start(&crate::binary().await, &flags).await;
    let key = fs::read_to_string(folder.join("blobs/public.pem")).expect("a key");
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": key}});
    cluster.apply(&secret).await;
    let reference = json!({"publicKeySecretReference": {"name": "keys", "key": "key"}});
    let mut context = json!({
        "apiVersion": API, "kind": "Context", "metadata": {"name": "signed"},
        "repositoryContext": {"type": "local", "filePath": "."}, "verificationSignatures": {"release": reference},
    });
    cluster.apply(&context).await;
    let to = json!({"componentName": "example.org/app"});
    let rules = json!([{"source": {"componentName": "example.org/alias"}, "substitution": to}]);
    let overwrites = json!({
        "apiVersion": API, "kind": "ComponentVersionOverwrites", "metadata": {"name": "rules"}, "overwrites": rules,
    });
    cluster.apply(&overwrites).await;
    context["metadata"]["name"] = json!("replacing");
    context["componentVersionOverwrites"] = json!("rules");
    cluster.apply(&context).await;
    cluster
}

pub(super) async fn failed(cluster: &Cluster, name: &str) -> String {
    let failed = cluster.expect(&in_phase(name, "Failed")).await;
    failed["status"]["lastError"]["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn where_signatures_are_enforced_sub_installations_stand_under_that_of_their_root() {
    let cluster = start().await;
    cluster.apply(&installation("app", "signed", "example.org/app", Some("release"))).await;
    cluster.expect(&in_phase("app", "Succeeded")).await;
    let all = cluster.list(&json!({"apiVersion": API, "kind": "Installation"})).await;
    let below = all.iter().find(|one| one["metadata"]["name"] != "app").expect("a sub-installation");
    assert_eq!(below["spec"]["componentDescriptor"]["ref"]["componentName"], "example.org/part");
    assert_eq!(below["spec"]["verification"], json!({"signatureName": "release"}));
    assert_eq!(below["status"]["phase"], "Succeeded");

    // The same component version is nobody's part when a user names it.
    cluster.apply(&installation("part", "signed", "example.org/part", Some("release"))).await;
    let expected =
        "the component example.org/part:1.0.0 cannot be verified: it has no signature \"release\"; it has none";
    assert_eq!(failed(&cluster, "part").await, expected);
    cluster.apply(&installation("unsigned", "signed", "example.org/app", None)).await;
    let expected = "this host runs only what is signed (--signature-policy Enforce), but the installation names no \
                    signature; set spec.verification.signatureName";
    assert_eq!(failed(&cluster, "unsigned").await, expected);
    let mut inline = installation("inline", "signed", "example.org/app", Some("release"));
    inline["spec"].as_object_mut().expect("an object").remove("componentDescriptor");
    inline["spec"]["blueprint"] = json!({"inline": {"filesystem": {"blueprint.yaml": "kind: Blueprint\n"}}});
    cluster.apply(&inline).await;
    let expected = "this host runs only what is signed (--signature-policy Enforce), but the installation has no \
                    component version; set spec.componentDescriptor and spec.verification";
    assert_eq!(failed(&cluster, "inline").await, expected);
}

#[tokio::test]
async fn c_47_where_a_policy_has_keys_those_of_the_context_do_not_count() {
    let cluster = start().await;
    let key = fs::read_to_string(repository().join("tests/signed/blobs/public.pem")).expect("a key");
    let fixture = fs::read_to_string(repository().join("host/registry/tests/local/signed.json")).expect("the fixture");
    let fixture: Value = serde_json::from_str(&fixture).expect("JSON");
    let foreign = fixture["keys"]["other"].as_str().expect("a key").to_owned();
    let counts = async |policy: Value| {
        let generation = cluster.apply(&policy).await.metadata.generation;
        let is_known = |found: &Value| found["status"]["observedGeneration"].as_i64() == generation;
        cluster.expect_that(&policy, "the policy was not read in time", is_known).await;
    };
    // The tenant's own key made the signature, and the administrator's did not.
    counts(required(&foreign)).await;
    cluster.apply(&installation("tenant", "signed", "example.org/app", Some("release"))).await;
    let told = failed(&cluster, "tenant").await;
    let expected =
        "the component example.org/app:1.0.0 cannot be verified: the signature \"release\" was not made with the key";
    assert!(told.starts_with(expected), "{told}");

    counts(required(&key)).await;
    // The Context names no key at all.
    let context = json!({
        "apiVersion": API, "kind": "Context", "metadata": {"name": "keyless"},
        "repositoryContext": {"type": "local", "filePath": "."},
    });
    cluster.apply(&context).await;
    cluster.apply(&installation("app", "keyless", "example.org/app", Some("release"))).await;
    cluster.expect(&in_phase("app", "Succeeded")).await;

    // A signed component beside a blueprint of the tenant's own.
    let mut inline = installation("inline", "signed", "example.org/app", Some("release"));
    inline["spec"]["blueprint"] = json!({"inline": {"filesystem": {"blueprint.yaml": "kind: Blueprint\n"}}});
    cluster.apply(&inline).await;
    let told = failed(&cluster, "inline").await;
    assert!(told.contains("NamespacePolicy signed, line spec.signatures.required"), "{told}");
}

#[tokio::test]
async fn an_overwrite_is_reported_in_a_condition() {
    let cluster = start().await;
    let message = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|one| one["type"] == "ComponentReferenceOverwrite");
        found.map(|one| ["status", "reason", "message"].map(|field| one[field].as_str().expect("text").to_owned()))
    };
    let overwritten = "Component reference has been overwritten:\nRepositoryContext has not been \
                       overwritten\nexample.org/alias -> example.org/app\nVersion has not been overwritten";
    let not = "component reference has not been overwritten";
    let cases = [
        ("replaced", "replacing", "example.org/alias", Some(["True", "FoundOverwrite", overwritten])),
        ("kept", "replacing", "example.org/app", Some(["False", "NoOverwriteDefined", not])),
        ("plain", "signed", "example.org/app", None),
    ];
    for (name, context, component, expected) in cases {
        cluster.apply(&installation(name, context, component, Some("release"))).await;
        let done = cluster.expect(&in_phase(name, "Succeeded")).await;
        assert_eq!(message(&done), expected.map(|texts| texts.map(str::to_owned)), "{name}");
        // What Flux and kstatus look at is as it is without overwrites.
        let ready =
            |one: &&Value| ["Ready", "Reconciling", "Stalled"].contains(&one["type"].as_str().unwrap_or_default());
        let seen: Vec<_> = done["status"]["conditions"].as_array().expect("conditions").iter().filter(ready).collect();
        assert_eq!((seen.len(), &seen[0]["status"]), (1, &json!("True")), "{name}");
    }
}

#[tokio::test]
async fn offline_signatures_are_held_to_the_same_policy() {
    let binary = crate::binary().await;
    let folder = repository().join("tests/signed");
    let components = folder.to_string_lossy();
    let key = fs::read_to_string(folder.join("blobs/public.pem")).expect("a key");
    let reference = json!({"publicKeySecretReference": {"name": "keys", "key": "key"}});
    let context = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": key}}),
        json!({
            "apiVersion": API, "kind": "Context", "metadata": {"name": "signed"},
            "repositoryContext": {"type": "local", "filePath": "."}, "verificationSignatures": {"release": reference},
        }),
    ];
    let render = async |component: &str, signature: Option<&str>, policy: &str| {
        let manifests = context.iter().cloned().chain([installation("app", "signed", component, signature)]);
        for (index, object) in manifests.enumerate() {
            write(&binary, &format!("manifests/{index}.json"), object.to_string());
        }
        let flags = ["--components", &components, "--signature-policy", policy, "-o", "json"];
        binary.run(&[["render", "manifests"].as_slice(), &flags].concat()).await
    };
    let signed = render("example.org/app", Some("release"), "Enforce").await;
    let below = &document(&signed)["installations"][0]["subinstallations"];
    assert_eq!(below.as_array().map(Vec::len), Some(1), "{below}");
    let refused = render("example.org/part", Some("release"), "Enforce").await;
    let expected = "error: installation app: the component example.org/part:1.0.0 cannot be verified: it has no signature \
                    \"release\"; it has none\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(1), expected));
    let refused = render("example.org/app", None, "Enforce").await;
    let expected = "error: installation app: this host runs only what is signed (--signature-policy Enforce), but the \
                    installation names no signature; set spec.verification.signatureName\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(1), expected));
    let unchecked = render("example.org/part", Some("release"), "Disabled").await;
    assert_eq!(unchecked.code, Some(0), "{}", unchecked.stderr);
}
