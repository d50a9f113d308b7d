//! `orangery render` of blueprints that belong to component versions: in folders of this machine and in a real registry.

use std::{fs, path::Path};

use data_encoding::BASE64;
use orangery_tests::{binary::Binary, cluster::Cluster};
use serde_json::{Value, json};

use super::{
    offline::{document, write},
    render_parity,
};
use crate::embedded_only::component_versions::{PASSWORD, RealRegistry, registry as component_registry};

const LAYER: &str = "application/vnd.gardener.landscaper.blueprint.layer.v1.tar";

/// Everything that a blueprint reads of its component version.
const SHOP: &str = r#"
imports:
- {name: size, schema: {$ref: "cd://resources/size"}}
- {name: ports, schema: {$ref: "cd://componentReferences/db/resources/ports"}}
deployExecutions:
- name: items
  type: GoTemplate
  template: |
    deployItems:
    - name: item
      type: landscaper.gardener.cloud/mock
      config:
        apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1
        kind: ProviderConfiguration
        export:
          own: {{ .cd.component.name }}
          all: [{{ range .components.components }}{{ .component.name }},{{ end }}]
          notes: {{ getResourceContent "cd://resources/notes" }}
          type: {{ (getResource "name" "notes").type }}
          version: {{ (getComponent "name" "db").component.version }}
          key: {{ getResourceKey "cd://componentReferences/db/resources/ports" }}
          definition: {{ toJson .componentDescriptorDef }}
          blueprint: {{ toJson .blueprintDef }}
subinstallations:
- name: database
  blueprint: {ref: "cd://componentReferences/db/resources/blueprint"}
  imports: {data: [{name: ports, dataRef: ports}]}
  exports: {data: [{name: port, dataRef: port}]}
- name: own
  blueprint: {ref: "cd://resources/other"}
exports: [{name: port, schema: {type: integer}}]
exportExecutions:
- {name: port, type: GoTemplate, template: "exports: {port: {{ .dataobjects.port }}}"}
"#;

const DATABASE: &str = r#"
imports: [{name: ports, schema: {$ref: "cd://resources/ports"}}]
exports: [{name: port, schema: {type: integer}}]
exportExecutions:
- {name: port, type: Jinja, template: "exports: {port: {{ imports.ports | first }}}"}
"#;

const OTHER: &str = r#"
deployExecutions:
- name: items
  type: Jinja
  template: |
    deployItems: [{name: other, type: landscaper.gardener.cloud/mock, config: {apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1, kind: ProviderConfiguration, export: {of: {{ cd.component.name }}}}}]
"#;

/// It contains itself.
const ROUND: &str = r#"subinstallations: [{name: a, blueprint: {ref: "cd://resources/round"}}]"#;

fn archive(blueprint: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(blueprint.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "blueprint.yaml", blueprint.as_bytes()).expect("an entry");
    builder.into_inner().expect("an archive")
}

fn resource(name: &str, type_: &str, media_type: &str) -> Value {
    let access = json!({"type": "localBlob", "localReference": name, "mediaType": media_type});
    json!({"name": name, "version": "1.0.0", "type": type_, "relation": "local", "access": access})
}

fn descriptor(name: &str, version: &str, references: Value, resources: Value) -> Value {
    json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": name, "version": version, "provider": "us", "repositoryContexts": [], "sources": [],
            "componentReferences": references, "resources": resources,
        },
    })
}

/// Two component versions in a folder, as Landscaper's own local repository has them.
fn repository(folder: &Path) {
    let blueprint = |name| resource(name, "landscaper.gardener.cloud/blueprint", LAYER);
    let schema = |name| resource(name, "landscaper.gardener.cloud/jsonschema", "application/json");
    let db = json!([{"name": "db", "componentName": "example.org/db", "version": "2.0.0"}]);
    let notes = resource("notes", "text", "text/plain");
    let shop = json!([blueprint("shop"), blueprint("other"), blueprint("round"), schema("size"), notes]);
    let database = json!([blueprint("blueprint"), schema("ports")]);
    fs::create_dir_all(folder.join("blobs")).expect("a folder");
    for (name, content) in [
        ("shop.json", descriptor("example.org/shop", "1.0.0", db, shop).to_string().into_bytes()),
        ("db.json", descriptor("example.org/db", "2.0.0", json!([]), database).to_string().into_bytes()),
        ("blobs/shop", archive(SHOP)),
        ("blobs/other", archive(OTHER)),
        ("blobs/round", archive(ROUND)),
        ("blobs/blueprint", archive(DATABASE)),
        ("blobs/size", br#"{"enum": ["small", "large"]}"#.to_vec()),
        ("blobs/ports", br#"{"type": "array", "items": {"type": "integer"}}"#.to_vec()),
        ("blobs/notes", b"fresh".to_vec()),
    ] {
        fs::write(folder.join(name), content).expect("a file");
    }
}

fn object(kind: &str, name: &str, body: Value) -> Value {
    let api = if ["Secret", "ConfigMap"].contains(&kind) { "v1" } else { "landscaper.gardener.cloud/v1alpha1" };
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    object
}

fn shop(size: &str) -> Vec<Value> {
    let mut installation = object(
        "Installation",
        "shop",
        json!({"spec": {
            "context": "here",
            "componentDescriptor": {"ref": {"componentName": "example.org/shop", "version": "1.0.0"}},
            "blueprint": {"ref": {"resourceName": "shop"}},
            "imports": {"data": [
                {"name": "size", "dataRef": "size"},
                {"name": "ports", "configMapRef": {"name": "ports", "key": "list"}},
            ]},
            "exports": {"data": [{"name": "port", "dataRef": "port"}]},
        }}),
    );
    installation["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    vec![
        object("Context", "here", json!({"repositoryContext": {"type": "local", "filePath": "repository"}})),
        object("DataObject", "size", json!({"data": size})),
        object("ConfigMap", "ports", json!({"data": {"list": "[5432, 5433]"}})),
        installation,
    ]
}

fn components(binary: &Binary) -> String {
    let folder = binary.folder().join("components");
    repository(&folder.join("repository"));
    folder.to_string_lossy().into_owned()
}

/// What is done to manifests to spoil them.
type Change = fn(&mut Vec<Value>);

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_component_version_renders_as_the_operator_renders_it() {
    let binary = crate::binary().await;
    let components = components(&binary);
    let cluster = Cluster::start(&binary, &["--ephemeral", "--components", &components]).await;
    for document in shop("small") {
        cluster.apply(&document).await;
    }
    render_parity::check(&binary, &cluster, &shop("small"), &["--components", &components]).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_folder_and_an_archive_belong_to_the_descriptor_that_is_named() {
    let binary = crate::binary().await;
    let components = components(&binary);
    write(&binary, "blueprint/blueprint.yaml", SHOP);
    write(&binary, "shop.tar", archive(SHOP));
    write(&binary, "imports.yaml", "imports: {size: large, ports: [1]}");
    let descriptor = format!("{components}/repository/shop.json");
    let flags = ["-i", "imports.yaml", "--component-descriptor", &descriptor, "-o", "json"];
    // The folder of the descriptor counts like one of --components.
    let context = ["--repository-context", "{type: local, filePath: .}"];
    let folder = binary.run(&[["render", "blueprint"].as_slice(), &flags, &context].concat()).await;
    let rendered = &document(&folder)["installations"][0];
    let config = &rendered["deployItems"][0]["config"]["export"];
    assert_eq!(config["all"], json!(["example.org/shop", "example.org/db"]));
    assert_eq!(config["notes"], "fresh");
    assert_eq!(config["blueprint"], json!({"ref": {"resourceName": "blueprint"}}));
    assert_eq!(rendered["subinstallations"][0]["exports"], json!({"port": 1}));
    assert_eq!(
        rendered["subinstallations"][1]["deployItems"][0]["config"]["export"],
        json!({"of": "example.org/shop"})
    );
    let archive = binary.run(&[["render", "shop.tar"].as_slice(), &flags, &context].concat()).await;
    assert_eq!(archive.stdout, folder.stdout, "{}", archive.stderr);
}

#[tokio::test]
async fn c_155_a_blueprint_that_contains_itself_is_rendered_so_deep() {
    let binary = crate::binary().await;
    let components = components(&binary);
    write(&binary, "blueprint/blueprint.yaml", ROUND);
    let descriptor = format!("{components}/repository/shop.json");
    let context = ["--component-descriptor", &descriptor, "--repository-context", "{type: local, filePath: .}"];
    let ended = binary.run(&[["render", "blueprint"].as_slice(), &context].concat()).await;
    let message = format!(
        "error: installation blueprint{}: it is not rendered: 16 installations stand in each other already, which are as many as may be; \
         look for a blueprint that contains itself\n",
        "/a".repeat(16)
    );
    assert_eq!((ended.code, ended.stderr), (Some(1), message));
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn errors_of_component_versions_are_reported() {
    let binary = crate::binary().await;
    let components = components(&binary);
    let render = async |name: &str, change: fn(&mut Vec<Value>)| {
        let mut documents = shop("small");
        change(&mut documents);
        for (index, object) in documents.iter().enumerate() {
            write(&binary, &format!("{name}/{index}.json"), object.to_string());
        }
        let ended = binary.run(&["render", name, "--components", &components]).await;
        assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
        ended.stderr.replace(&components, "COMPONENTS")
    };
    let spec = "error: installation shop: ";
    let cases: [(&str, Change, &str); 6] = [
        (
            "context",
            |of| drop(of.remove(0)),
            "there is no Context \"here\" among the manifests; add it, or correct spec.context",
        ),
        (
            "version",
            |of| of[3]["spec"]["componentDescriptor"]["ref"]["version"] = json!("9.0.0"),
            "there is no component example.org/shop:9.0.0 in ",
        ),
        (
            "resource",
            |of| of[3]["spec"]["blueprint"]["ref"]["resourceName"] = json!("sohp"),
            "the component example.org/shop:1.0.0 has no resource ",
        ),
        (
            "secret",
            |of| of[0]["registryPullSecrets"] = json!([{"name": "pull"}]),
            "Secret default/pull, which Context here names, does not exist; create it or correct the Context; here it must be among the manifests",
        ),
        ("size", |of| of[1]["data"] = json!("huge"), "import \"size\" of installation default/shop: "),
        (
            "repository",
            |of| of[0]["repositoryContext"]["filePath"] = json!("../.."),
            "the repository context names the path \"../..\", which is not in the folder of components ",
        ),
    ];
    for (name, change, message) in cases {
        let stderr = render(name, change).await;
        assert!(stderr.starts_with(&format!("{spec}{message}")), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_component_of_a_private_registry_renders_with_the_secret_of_its_context() {
    let registry = RealRegistry::start().await;
    component_registry::push(&registry).await;
    let binary = crate::binary().await;
    write(&binary, "ca.pem", registry.authority());
    let content = BASE64.encode(registry.docker_config(PASSWORD).as_bytes());
    let secret = json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": content}});
    let context = json!({
        "repositoryContext": component_registry::context(&registry), "registryPullSecrets": [{"name": "pull"}],
    });
    let target = json!({"spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster"}});
    let objects = [
        object("Secret", "pull", secret),
        object("Context", "private", context),
        object("Target", "cluster", target),
        component_registry::installation("ours", "private"),
    ];
    for (index, object) in objects.iter().enumerate() {
        write(&binary, &format!("m/{index}.json"), object.to_string());
    }
    let ended = binary.run(&["render", "m", "--registry-ca", "ca.pem", "-o", "json"]).await;
    let item = &document(&ended)["installations"][0]["deployItems"][0];
    assert_eq!(item["config"]["manifests"][0]["manifest"]["data"], json!({"from": "example.org/greeter 1.0.0+1"}));
    fs::remove_file(binary.folder().join("m/0.json")).expect("the Secret goes");
    let ended = binary.run(&["render", "m", "--registry-ca", "ca.pem"]).await;
    assert!(
        ended.stderr.contains("Secret default/pull, which Context private names, does not exist"),
        "{}",
        ended.stderr
    );
}
