//! Every example, as its README runs it. `UPDATE=1` writes the expected errors anew.

use std::{env, fs, path::Path, process::Command};

use orangery_tests::{
    binary::Ended,
    chart,
    cluster::Cluster,
    own_template, repository,
    tree::{API, any},
};
use serde_json::{Value, json};
use tempfile::TempDir;

async fn up_once(example: &str, arguments: &[&str]) -> Ended {
    let folder = folder(example);
    crate::binary().await.run(&[&["up", "--ephemeral", "--port", "0", "--once", &folder], arguments].concat()).await
}

fn folder(example: &str) -> String {
    repository().join("examples").join(example).to_string_lossy().into_owned()
}

/// Runs an example that fails, and compares what it prints with the file beside it.
async fn check_fails(example: &str) {
    let ended = up_once(example, &[]).await;
    let file = repository().join("examples").join(example).join("expected-error.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, &ended.stderr).expect("the expected error can be written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), expected.as_str()), "printed:\n{}", ended.stdout);
    assert!(!expected.is_empty(), "an error is printed");
}

/// Runs an example that succeeds, and waits for what it says it deploys.
async fn check_deploys(example: &str, expected: &[Value]) {
    check_deploys_with(example, &[], expected).await;
}

async fn check_deploys_with(example: &str, arguments: &[&str], expected: &[Value]) {
    let folder = folder(example);
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &[&["--ephemeral", &folder], arguments].concat()).await;
    for object in expected {
        cluster.expect(object).await;
    }
    let ended = up_once(example, arguments).await;
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

fn config_map(name: &str, namespace: &str, content: Value) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content})
}

fn data_object(name: &str, content: Value) -> Value {
    let kind = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DataObject"});
    let mut object = kind;
    object["metadata"] = json!({"name": name});
    object["data"] = content;
    object
}

fn succeeded(name: &str) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": name},
        "status": {"phase": "Succeeded"},
    })
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn helm_chart() {
    let pages = config_map("greeter-pages", "web", json!({"index.html": "Good morning"}));
    let mut deployed = chart::revision_of("greeter", 1, "deployed");
    deployed["metadata"]["namespace"] = json!("web");
    check_deploys_with("helm-chart", &["--simulate-workloads"], &[pages, deployed]).await;
}

#[test]
fn the_packed_chart_of_the_example_is_its_folder() {
    let installation = fs::read_to_string(folder("helm-chart") + "/installation.yaml").expect("it can be read");
    let packed: String = installation
        .lines()
        .skip_while(|line| !line.contains("raw: |-"))
        .skip(1)
        .take_while(|line| !line.contains("values:"))
        .map(str::trim)
        .collect();
    let packed = chart::files(&packed);
    let chart = folder("helm-chart") + "/chart/";
    for (name, content) in &packed {
        let file = name.strip_prefix("greeter/").expect("all is in the chart's folder");
        assert_eq!(fs::read(chart.clone() + file).ok().as_ref(), Some(content), "{file}; pack the chart again");
    }
    assert_eq!(packed.len(), 6);
}

#[tokio::test]
async fn hello_world_deploys_one_config_map() {
    let greeting = json!({"greeting": "Hello from a sandboxed component"});
    check_deploys("hello-world", &[config_map("hello", "default", greeting), succeeded("hello")]).await;
}

/// The processes that call components for this one.
fn call_workers(process: u32) -> usize {
    let processes = fs::read_dir("/proc").expect("there are processes").flatten();
    let is_worker = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        let line = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{process}\n")) && line.ends_with("plugin\0call-worker\0")
    };
    processes.filter(|entry| is_worker(&entry.path())).count()
}

#[tokio::test]
async fn c_73_built_in_components_are_called_in_processes_of_their_own_where_all_are() {
    let (binary, folder) = (crate::binary().await, folder("hello-world"));
    for (arguments, workers) in [(&["--call-processes", "all"][..], true), (&[], false)] {
        let cluster = Cluster::start(&binary, &[&["--ephemeral", &folder], arguments].concat()).await;
        cluster.expect(&succeeded("hello")).await;
        assert_eq!(call_workers(cluster.process()) > 0, workers, "{arguments:?}");
    }
}

#[tokio::test]
async fn data_flow_hands_the_address_on() {
    let address = "postgres.garden.example:5432";
    let application = config_map("application", "default", json!({"databaseAddress": address}));
    let exported = data_object("database-address", json!(address));
    check_deploys("data-flow", &[application, exported, succeeded("application")]).await;
}

#[tokio::test]
async fn sub_installations_export_through_their_parent() {
    let stock = json!({"orange": "in stock", "lemon": "in stock", "kumquat": "in stock"});
    let front = config_map("front", "default", stock);
    let storefront = data_object("storefront", json!("The orange shop"));
    check_deploys("sub-installations", &[front, storefront, succeeded("shop")]).await;
}

#[tokio::test]
async fn dependencies_deploy_into_the_namespace_that_comes_first() {
    let orange = config_map("orange", "garden", json!({"height": "2 m"}));
    let soil = config_map("soil", "garden", json!({"ph": "6"}));
    check_deploys("dependencies", &[soil, orange, succeeded("garden")]).await;
}

#[tokio::test]
async fn wf_02_an_optional_database_comes_and_goes_as_it_is_wanted() {
    let folder = folder("optional-database");
    let cluster = Cluster::start(&crate::binary().await, &["--ephemeral", &folder]).await;
    let map = |name: &str, data: Value| config_map(&format!("optional-database-{name}"), "default", data);
    let optional = [map("database", json!({"port": "5432"})), map("backup", json!({"every": "6 h"}))];
    let application = map("application", json!({"greeting": "Hello"}));
    for object in optional.iter().chain([&application, &succeeded("optional-database")]) {
        cluster.expect(object).await;
    }
    cluster.apply(&data_object("wants-database", json!(false))).await;
    let mut asking = succeeded("optional-database");
    asking["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    asking["status"] = Value::Null;
    cluster.merge(&asking).await;
    for object in &optional {
        cluster.expect_absent(object).await;
    }
    cluster.expect(&application).await;
}

#[tokio::test]
async fn wf_06_an_item_is_deployed_where_its_kind_is_defined() {
    let application =
        config_map("crd-dependent-application", "default", json!({"url": "https://garden.example/health"}));
    check_deploys("crd-dependent", &[application, succeeded("crd-dependent")]).await;
    let (folder, definition) = (folder("crd-dependent"), folder("crd-dependent/definition"));
    let cluster = Cluster::start(&crate::binary().await, &["--ephemeral", &definition, &folder]).await;
    let spec = json!({"everySeconds": 30, "url": "https://garden.example/health"});
    let metadata = json!({"name": "crd-dependent-application"});
    cluster.expect(&succeeded("crd-dependent")).await;
    cluster
        .expect(
            &json!({"apiVersion": "monitoring.example.org/v1", "kind": "Probe", "metadata": metadata, "spec": spec}),
        )
        .await;
}

#[tokio::test]
async fn wf_03_a_healthy_canary_lets_the_rest_start() {
    let map = |name: &str| config_map(name, "default", json!({"version": "2.0"}));
    check_deploys("canary", &[map("canary-one"), map("canary-rest"), succeeded("canary")]).await;
}

#[tokio::test]
async fn c_60_of_two_items_one_tells_drift_and_one_writes_it_again() {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral", &folder("drift")]).await;
    cluster.expect(&succeeded("drift")).await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("the kubeconfig can be written");
    let run = async |name: &str| {
        let ended = binary.run(&["drift", name, "--kubeconfig", "kubeconfig"]).await;
        (ended.code, ended.stdout)
    };
    let as_written = |name: &str| format!("deploy item default/{name}: 1 objects, all as they were written\n");
    let items = cluster.list(&any("DeployItem", "")).await;
    let names = ["told", "corrected"].map(|name| {
        let is = |item: &&Value| item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == name;
        items.iter().find(is).and_then(|item| item["metadata"]["name"].as_str()).unwrap_or_default().to_owned()
    });
    let all: Vec<String> = names.iter().map(|name| as_written(name)).collect();
    assert_eq!(run("drift").await, (Some(0), all.concat()));
    let changed = json!({"greeting": "Go away", "visitors": "7"});
    for name in ["drift-told", "drift-corrected"] {
        cluster.merge(&config_map(name, "default", changed.clone())).await;
    }
    let corrected = json!({"greeting": "Good morning", "visitors": "7"});
    cluster.expect(&config_map("drift-corrected", "default", corrected)).await;
    let says = |item: &Value| item["status"]["drift"]["objects"][0]["fields"] == json!(["/data/greeting"]);
    let told = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": names[0]}});
    cluster.expect_that(&told, "does not tell", says).await;
    let drifted = format!(
        "deploy item default/{}: 1 of 1 objects are not as they were written\n  ~ ConfigMap default/drift-told\n      \
         /data/greeting\n{}",
        names[0],
        as_written(&names[1])
    );
    assert_eq!(run("drift").await, (Some(2), drifted));
    assert_eq!(run("nobody").await.0, Some(1));
    assert_eq!(run("Not_A_Name").await.0, Some(1));
}

#[tokio::test]
async fn wf_13_a_diamond_goes_on_beside_a_failure() {
    check_fails("continue-on-failure").await;
    let folder = folder("continue-on-failure");
    let cluster = Cluster::start(&crate::binary().await, &["--ephemeral", &folder]).await;
    let map =
        |name: &str, on: &str| config_map(&format!("continue-on-failure-{name}"), "default", json!({"standsOn": on}));
    for object in [map("base", "the ground"), map("right", "base"), map("roof", "right")] {
        cluster.expect(&object).await;
    }
}

/// Builds the component as the README of the example says, into the folder that all guests share, and answers a folder
/// with its registration.
fn greeter() -> TempDir {
    let guests = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "guest", "--target", "wasm32-wasip2", "-p", "greeter"]);
    cargo.arg("--target-dir").arg(&guests).current_dir(repository());
    assert!(cargo.status().expect("cargo runs").success(), "the component cannot be built");

    let plugins = TempDir::new().expect("a temporary folder");
    let component = guests.join("wasm32-wasip2/guest/greeter.wasm");
    fs::copy(component, plugins.path().join("greeter.wasm")).expect("the component was built");
    let registration = repository().join("examples/own-deployer/plugins/greeter.yaml");
    let registration = fs::read_to_string(registration).expect("the example has a registration");
    let built = "../../../target/wasm32-wasip2/guest/greeter.wasm";
    assert!(registration.contains(built), "the registration names what the README builds");
    fs::write(plugins.path().join("greeter.yaml"), registration.replace(built, "greeter.wasm")).expect("a copy of it");
    plugins
}

/// A folder with the components of an example, built as its README says.
pub(crate) fn plugins(example: &str) -> TempDir {
    assert_eq!(example, "own-deployer", "say here how the components of this example are built");
    greeter()
}

#[tokio::test]
async fn a_deployer_of_ones_own_is_loaded_from_a_folder() {
    let plugins = greeter();
    let plugins = plugins.path().to_string_lossy().into_owned();
    let french = config_map("greeting-emile", "default", json!({"text": "Bonjour, emile"}));
    let expected = [french, data_object("greeted", json!(2)), succeeded("greetings")];
    check_deploys_with("own-deployer", &["--plugins", &plugins], &expected).await;
}

#[tokio::test]
async fn a_template_engine_of_ones_own_comes_with_the_blueprint() {
    let component = own_template::rust(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let folder = TempDir::new().expect("a temporary folder");
    let installation = own_template::installation(&folder.path().join("own-template"), &component);
    fs::write(folder.path().join("harvest.yaml"), installation).expect("the Installation can be written");
    let path = folder.path().to_string_lossy().into_owned();
    let data = json!({"season": "autumn", "orange": "3 crates", "lemon": "2 crates", "kumquat": "1 crates"});
    check_deploys(&path, &[config_map("harvest", "default", data), succeeded("harvest")]).await;
}

#[tokio::test]
async fn a_wrong_template_prints_where_it_is_wrong() {
    check_fails("errors/wrong-template").await;
}

#[tokio::test]
async fn a_wrong_schema_prints_what_was_expected() {
    check_fails("errors/wrong-schema").await;
}

#[tokio::test]
async fn a_missing_import_prints_which_object_is_missing() {
    check_fails("errors/missing-import").await;
}

#[tokio::test]
async fn wf_11_items_excluded_by_imports_alone_are_printed_without_a_cluster() {
    let folder = TempDir::new().expect("a temporary folder");
    let copy = |name: &str, wanted: &str| {
        let text = fs::read_to_string(repository().join("examples/optional-database").join(name));
        let text = text.expect("the example can be read").replace("data: true", wanted);
        fs::write(folder.path().join(name), text).expect("a copy of it");
    };
    let target = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target", "metadata": {"name": "cluster"},
        "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {}},
    });
    fs::write(folder.path().join("target.yaml"), target.to_string()).expect("a Target");
    copy("2-installation.yaml", "");
    let path = folder.path().to_string_lossy().into_owned();
    for (wanted, expected) in [("data: false", json!(["database", "backup"])), ("data: true", Value::Null)] {
        copy("1-wants-database.yaml", wanted);
        let ended = crate::binary().await.run(&["render", "-o", "json", &path]).await;
        let rendered: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        assert_eq!((ended.code, &rendered["installations"][0]["notWanted"]), (Some(0), &expected), "{}", ended.stderr);
    }
}
