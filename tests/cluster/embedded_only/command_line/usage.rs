//! Bad input: one sentence with the fix, an exit code, nothing lost.

use std::{fs, net::TcpListener};

use orangery_tests::{
    binary::{Binary, Ended},
    cluster::Cluster,
    repository,
    tree::{API, in_phase},
};
use serde_json::json;

const ONCE: [&str; 5] = ["up", "--ephemeral", "--port", "0", "--once"];

fn hello_world() -> String {
    repository().join("examples/hello-world").to_string_lossy().into_owned()
}

/// Writes a folder with one file, and answers its name.
fn folder(binary: &Binary, text: &str) -> String {
    let folder = binary.folder().join("input");
    fs::create_dir_all(&folder).expect("the folder can be made");
    fs::write(folder.join("objects.yaml"), text).expect("the file can be written");
    folder.to_string_lossy().into_owned()
}

/// One sentence on standard error that names the subject, and this exit code.
#[track_caller]
fn check(ended: &Ended, code: i32, named: &[&str]) {
    let sentence = ended.stderr.trim_end();
    assert_eq!(ended.code, Some(code), "{sentence}");
    assert!(sentence.starts_with("error: "), "it says that it is an error: {sentence}");
    for name in named {
        assert!(sentence.contains(name), "it names {name}: {sentence}");
    }
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_bad_usage() {
    let ended = crate::binary().await.run(&[ONCE.as_slice(), &["no-such-folder"]].concat()).await;
    check(&ended, 2, &["no-such-folder", "does not exist"]);
}

#[tokio::test]
async fn yaml_that_does_not_parse_is_named_with_its_place() {
    let binary = crate::binary().await;
    let folder = folder(&binary, "kind: ConfigMap\nmetadata: {name: [}\n");
    let ended = binary.run(&[ONCE.as_slice(), &[&folder]].concat()).await;
    check(&ended, 2, &["objects.yaml:2:"]);
}

#[tokio::test]
async fn an_unknown_kind_is_named() {
    let binary = crate::binary().await;
    let folder = folder(&binary, "apiVersion: example.com/v1\nkind: Unheard\nmetadata: {name: of}\n");
    let ended = binary.run(&[ONCE.as_slice(), &[&folder]].concat()).await;
    check(&ended, 2, &["Unheard", "objects.yaml"]);
}

/// As in the original the installation succeeds, so the exit code is 0; but nobody means it.
#[tokio::test]
async fn a_blueprint_without_executions_succeeds_with_a_warning_that_says_the_fix() {
    let binary = crate::binary().await;
    let installation = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "empty", "annotations": {"landscaper.gardener.cloud/operation": "reconcile"}},
        "spec": {"blueprint": {"inline": {"filesystem": {
            "blueprint.yaml": "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Blueprint\n",
        }}}},
    });
    let folder = folder(&binary, &installation.to_string());
    let ended = binary.run(&[ONCE.as_slice(), &[&folder]].concat()).await;
    assert_eq!(
        (ended.code, ended.stderr.trim_end()),
        (
            Some(0),
            "warning: Installation default/empty deploys nothing: its blueprint has no deployExecutions and no \
             subinstallations that give anything; correct blueprint.yaml if that is not what was meant"
        )
    );
}

#[tokio::test]
async fn an_unknown_flag_is_bad_usage() {
    let ended = crate::binary().await.run(&["up", "--no-such-flag"]).await;
    check(&ended, 2, &["--no-such-flag"]);
}

#[tokio::test]
async fn a_port_in_use_is_named_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let ended = crate::binary().await.run(&["up", "--ephemeral", "--once", "--port", &port, &hello_world()]).await;
    check(&ended, 2, &[&port, "--port"]);
}

#[tokio::test]
async fn a_data_folder_in_use_is_named() {
    let binary = crate::binary().await;
    let _running = Cluster::start(&binary, &["--data", "state"]).await;
    let ended = binary.run(&["up", "--data", "state", "--port", "0", "--once", &hello_world()]).await;
    check(&ended, 2, &["state", "another process"]);
}

#[tokio::test]
async fn a_data_folder_of_another_version_is_named_and_left_alone() {
    let binary = crate::binary().await;
    let up = ["up", "--data", "state", "--port", "0", "--once", &hello_world()];
    assert_eq!(binary.run(&up).await.code, Some(0));
    let marker = binary.folder().join("state/FORMAT");
    let before = fs::read_to_string(&marker).expect("the data folder says its format");
    fs::write(&marker, "orangery data 999\n").expect("the marker can be written");
    check(&binary.run(&up).await, 2, &["state", "orangery data 999"]);
    fs::write(&marker, before).expect("the marker can be written");
    assert_eq!(binary.run(&up).await.code, Some(0), "nothing was lost");
}

#[tokio::test]
async fn a_corrupt_component_fails_its_own_items_only() {
    let binary = crate::binary().await;
    let plugins = binary.folder().join("plugins");
    fs::create_dir_all(&plugins).expect("the folder can be made");
    fs::write(plugins.join("broken.wasm"), b"\0asm, but not really").expect("the file can be written");
    let registration = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: broken}\nspec:\n  \
                        version: 0.1.0\n  component: {file: broken.wasm}\n  deployer: {itemTypes: [example.com/broken]}\n";
    fs::write(plugins.join("broken.yaml"), registration).expect("the file can be written");
    let plugins = plugins.to_string_lossy().into_owned();
    let cluster = Cluster::start(&binary, &["--ephemeral", "--plugins", &plugins, &hello_world()]).await;
    let spec = json!({"type": "example.com/broken", "config": {"apiVersion": "example.com/v1", "kind": "Anything"}});
    let item = |name: &str| {
        let annotations = json!({"landscaper.gardener.cloud/operation": "test-reconcile"});
        let metadata = json!({"name": name, "annotations": annotations});
        json!({"apiVersion": API, "kind": "DeployItem", "metadata": metadata, "spec": spec})
    };
    cluster.apply(&item("broken")).await;
    let failed = cluster.expect(&in_phase("DeployItem", "broken", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("broken") && message.len() < 400, "{message}");
    cluster.expect(&in_phase("Installation", "hello", "Succeeded")).await;
}

/// The operator connects to its servers itself, and `orangery` to that of a kubeconfig.
#[tokio::test]
async fn proxies_that_the_environment_names_are_not_used() {
    let prepared = crate::binary().await;
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let proxies = names.map(|name| format!("export {name}=http://127.0.0.1:1"));
    let binary = prepared.after(&proxies.join("\n"));
    let ended = binary.run(&[ONCE.as_slice(), &[&hello_world()]].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let _running = Cluster::start(&binary, &["--data", "state", &hello_world()]).await;
    let ended = binary.run(&["inspect", "--kubeconfig", "state/kubeconfig"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// Editors of another system end lines in their way.
#[tokio::test]
async fn manifests_and_blueprints_with_the_line_ends_of_windows_are_read_as_others() {
    let binary = crate::binary().await;
    let folder = binary.folder().join("windows");
    fs::create_dir_all(&folder).expect("the folder can be made");
    for entry in fs::read_dir(hello_world()).expect("the example can be read") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let text = fs::read_to_string(&path).expect("the example can be read");
            let name = path.file_name().expect("a file has a name");
            fs::write(folder.join(name), text.replace('\n', "\r\n")).expect("a file can be written");
        }
    }
    let cluster = Cluster::start(&binary, &["--ephemeral", "windows"]).await;
    cluster.expect(&in_phase("Installation", "hello", "Succeeded")).await;
    let greeting =
        cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello"}})).await;
    assert!(!greeting["data"].to_string().contains("\\r"), "{greeting:#}");
}

#[tokio::test]
async fn stored_objects_survive_a_restart() {
    let binary = crate::binary().await;
    let ended = binary.run(&["up", "--data", "state", "--port", "0", "--once", &hello_world()]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let cluster = Cluster::start(&binary, &["--data", "state"]).await;
    cluster
        .expect(&json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1",
            "kind": "Installation",
            "metadata": {"name": "hello"},
            "status": {"phase": "Succeeded"},
        }))
        .await;
}

#[tokio::test]
async fn a_kubeconfig_that_does_not_exist_is_named() {
    let binary = crate::binary().await;
    for command in [&["inspect"][..], &["run"]] {
        let ended = binary.run(&[command, &["--kubeconfig", "/nowhere/kubeconfig"]].concat()).await;
        check(&ended, 2, &["/nowhere/kubeconfig", "--kubeconfig"]);
    }
}
