//! Installations whose component versions are in a real registry, with TLS and a password.

use std::{fs, path::PathBuf};

use data_encoding::BASE64;
use orangery_tests::{binary::Binary, cluster::Cluster};
use serde_json::{Value, json};

use super::{PASSWORD, RealRegistry};

pub(super) const COMPONENT: &str = "example.org/greeter";
pub(super) const BLUEPRINT_TYPE: &str = "application/vnd.gardener.landscaper.blueprint.layer.v1.tar";
const BLUEPRINT: &str = r#"
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Blueprint
imports:
- name: cluster
  type: target
  targetType: landscaper.gardener.cloud/kubernetes-cluster
deployExecutions:
- name: default
  type: Jinja
  template: |
    deployItems:
    - name: greeting
      type: landscaper.gardener.cloud/kubernetes-manifest
      target: {import: cluster}
      config: {{ {
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "manifests": [{"manifest": {
          "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting", "namespace": "default"},
          "data": {"from": cd.component.name ~ " " ~ cd.component.version},
        }}],
      } | tojson }}
"#;

/// The files of the blueprint.
pub(super) fn archive() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(BLUEPRINT.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "blueprint.yaml", BLUEPRINT.as_bytes()).expect("an entry");
    builder.into_inner().expect("an archive")
}

pub(crate) fn context(registry: &RealRegistry) -> Value {
    json!({"type": "OCIRegistry", "baseUrl": registry.host, "subPath": "components"})
}

/// A component version with one blueprint.
pub(crate) async fn push(registry: &RealRegistry) {
    let repository = format!("components/component-descriptors/{COMPONENT}");
    let layer = registry.push_blob(&repository, BLUEPRINT_TYPE, &archive()).await;
    let access = json!({"type": "localBlob", "localReference": layer["digest"], "mediaType": BLUEPRINT_TYPE});
    let descriptor = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": COMPONENT, "version": "1.0.0+1", "provider": "us", "repositoryContexts": [context(registry)],
            "sources": [], "componentReferences": [],
            "resources": [{
                "name": "blueprint", "version": "1.0.0", "type": "landscaper.gardener.cloud/blueprint",
                "relation": "local", "access": access,
            }],
        },
    });
    let kind = "application/vnd.ocm.software.component-descriptor.v2+json";
    let descriptor = registry.push_blob(&repository, kind, descriptor.to_string().as_bytes()).await;
    let config = json!({"componentDescriptorLayer": descriptor}).to_string();
    let kind = "application/vnd.ocm.software.component.config.v1+json";
    let config = registry.push_blob(&repository, kind, config.as_bytes()).await;
    registry.push_manifest(&repository, "1.0.0.build-1", &config, &[descriptor, layer]).await;
}

/// Server and operator, which trust the registry.
async fn start(binary: &Binary, registry: &RealRegistry) -> Cluster {
    let authority: PathBuf = binary.folder().join("registry-ca.pem");
    fs::write(&authority, registry.authority()).expect("a file");
    Cluster::start(binary, &["--ephemeral", "--registry-ca", &authority.to_string_lossy()]).await
}

fn object(kind: &str, name: &str, body: Value) -> Value {
    let api = if kind == "Secret" { "v1" } else { "landscaper.gardener.cloud/v1alpha1" };
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    object
}

pub(crate) fn installation(name: &str, context: &str) -> Value {
    let mut installation = object(
        "Installation",
        name,
        json!({"spec": {
            "context": context,
            "componentDescriptor": {"ref": {"componentName": COMPONENT, "version": "1.0.0+1"}},
            "blueprint": {"ref": {"resourceName": "blueprint"}},
            "imports": {"targets": [{"name": "cluster", "target": "cluster"}]},
        }}),
    );
    installation["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    installation
}

fn in_phase(name: &str, phase: &str) -> Value {
    object("Installation", name, json!({"status": {"phase": phase}}))
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_component_of_a_private_registry_deploys_and_again_without_the_registry() {
    let mut registry = RealRegistry::start().await;
    push(&registry).await;
    let binary = crate::binary().await;
    let cluster = start(&binary, &registry).await;
    let content = BASE64.encode(registry.docker_config(PASSWORD).as_bytes());
    let secret = json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": content}});
    cluster.apply(&object("Secret", "pull", secret)).await;
    let of_registry = json!({"repositoryContext": context(&registry)});
    let mut with_secret = of_registry.clone();
    with_secret["registryPullSecrets"] = json!([{"name": "pull"}]);
    cluster.apply(&object("Context", "private", with_secret)).await;
    cluster.apply(&object("Context", "nobody", of_registry)).await;

    cluster.apply(&installation("ours", "private")).await;
    let first = cluster.expect(&in_phase("ours", "Succeeded")).await;
    let greeting = json!({"from": format!("{COMPONENT} 1.0.0+1")});
    let metadata = json!({"name": "greeting", "namespace": "default"});
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": greeting})).await;

    // What is known by now is nothing for a Context without the Secret.
    cluster.apply(&installation("others", "nobody")).await;
    let failed = cluster.expect(&in_phase("others", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().expect("a message");
    assert!(message.contains("401 to a request without credentials, as the Context has none for it"), "{message}");

    registry.stop().await;
    let again = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    cluster.annotate(&in_phase("ours", "Succeeded"), again).await;
    let finished = |object: &Value| object["status"]["jobIDFinished"].clone();
    let ours = in_phase("ours", "");
    let second = cluster.expect_that(&ours, "the second job did not end", |object| {
        object["metadata"]["name"] == "ours" && finished(object) != finished(&first)
    });
    assert_eq!(second.await["status"]["phase"], "Succeeded");
}

#[tokio::test]
async fn c_280_limits_context_what_it_names_for_credentials_has_a_sum() {
    let cluster = Cluster::start(&crate::binary().await, &["--ephemeral"]).await;
    let names = ["one", "two", "three"];
    for name in names {
        let content = json!({"stringData": {".dockerconfigjson": "x".repeat(900 << 10)}});
        cluster.apply(&object("Secret", name, content)).await;
    }
    let named: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    cluster.apply(&object("Context", "long", json!({"registryPullSecrets": named}))).await;
    cluster.apply(&installation("app", "long")).await;
    let failed = cluster.expect(&in_phase("app", "Failed")).await;
    let why = "what Context long has or names for credentials, or its overwrites, has more than 2097152 bytes together; keep \
               Secrets and an ocmConfig with nothing but credentials";
    assert_eq!(failed["status"]["lastError"]["message"], why);
}

#[tokio::test]
async fn c_285_what_counts_of_a_context_has_a_size_and_what_nobody_reads_has_none() {
    let cluster = Cluster::start(&crate::binary().await, &["--ephemeral"]).await;
    let lists = json!(vec![json!([]); 60_000]);
    let charts = json!({"configurations": {"helmChartRepoCredentials": lists}});
    cluster.apply(&object("Context", "charts", charts)).await;
    let sides = json!({"source": {"repositoryContext": {"more": lists}}, "substitution": {"version": "2"}});
    cluster.apply(&object("ComponentVersionOverwrites", "long", json!({"overwrites": [sides]}))).await;
    cluster.apply(&object("Context", "overwrites", json!({"componentVersionOverwrites": "long"}))).await;
    cluster.apply(&object("Context", "others", json!({"configurations": {"other.example": lists}}))).await;
    for context in ["charts", "overwrites", "others"] {
        cluster.apply(&installation(context, context)).await;
        let failed = cluster.expect(&in_phase(context, "Failed")).await;
        let too_long = format!(
            "what Context {context} has or names for credentials, or its overwrites, has more than 2097152 bytes"
        );
        let why = if context == "others" { "RepositoryContextMissing".to_owned() } else { too_long };
        let message = failed["status"]["lastError"]["message"].as_str().expect("a message").to_owned();
        assert!(message.contains(&why), "{message}");
    }
}
