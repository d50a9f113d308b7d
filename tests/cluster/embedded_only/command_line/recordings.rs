//! `orangery up --record`, and what is made of recordings: `plugin test`, `plugin replay` and `plugin diff`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use orangery_tests::{
    binary::Binary,
    canary::Canaries,
    tree::{API, blueprint, executions, installation, mocks, on_cluster},
};
use serde_json::{Value, json};

const PASSWORD: &str = "canary-9f5b-hunter2";
const TOKEN: &str = "canary-7c1d-of-a-manifest";

/// A component that ships with the operator.
fn component(name: &str) -> Vec<u8> {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).expect("it ships");
    let (packed, size, _) = builtin.component.expect("it is built");
    orangery_plugin::unpack(packed, size).expect("it unpacks")
}

/// The manifest deployer as a file of its own, with everything granted.
fn manifest(folder: &Path, name: &str, more: &[u8]) -> String {
    fs::write(folder.join(name), [&component("manifest"), more].concat()).expect("the component can be written");
    name.to_owned()
}

fn objects() -> Vec<Value> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": PASSWORD}});
    let manifests = json!([
        {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "namespace": "default"},
            "data": {"url": "db://{{ imports.password }}@host", "encoded": BASE64.encode(format!("a {PASSWORD}").as_bytes())}}},
        {"manifest": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop", "namespace": "default"},
            "stringData": {"token": TOKEN, "pin": "abc"}}},
    ]);
    let config = json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "manifests": manifests});
    let item = json!({"name": "shop", "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"import": "cluster"},
        "config": config});
    let execution = json!({"name": "default", "type": "Jinja", "template": json!({"deployItems": [item]}).to_string()});
    let imports = json!([
        {"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"},
        {"name": "password", "type": "data", "schema": {"type": "string"}},
    ]);
    let mut root =
        on_cluster(installation("shop", &blueprint(json!({"imports": imports, "deployExecutions": [execution]}))));
    root["spec"]["imports"]["data"] = json!([{"name": "password", "secretRef": {"name": "login", "key": "password"}}]);
    root["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    assert_eq!(root["apiVersion"], API);
    vec![secret, root]
}

/// Deploys with recording, and answers the folders of the calls of deployers; those of engines stay in `all`.
async fn record(binary: &Binary) -> Vec<PathBuf> {
    write(binary, "input", &objects());
    let up = ["up", "--ephemeral", "--port", "0", "--once", "--record", "all", "input"];
    let ended = binary.run(&up).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let (folder, of_deployers) = (binary.folder(), binary.folder().join("recordings"));
    fs::create_dir_all(&of_deployers).expect("the folder can be made");
    for call in calls_in(&folder.join("all")) {
        let name = call.file_name().unwrap_or_default().to_owned();
        if !name.to_string_lossy().ends_with("-render") {
            fs::rename(&call, of_deployers.join(name)).expect("it can be moved");
        }
    }
    calls_in(&of_deployers)
}

/// Writes a folder of manifests.
fn write(binary: &Binary, folder: &str, objects: &[Value]) {
    let folder = binary.folder().join(folder);
    fs::create_dir_all(&folder).expect("the folder can be made");
    for (number, object) in objects.iter().enumerate() {
        fs::write(folder.join(format!("{number}.json")), object.to_string()).expect("the file can be written");
    }
}

/// The folders of calls in one, the oldest first.
fn calls_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it can be read").map(|entry| entry.expect("an entry").path());
    let mut calls: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    calls.sort();
    calls
}

/// Deploys what lies in a folder beside what the operator has already, without any flag of recordings; answers the types of the items of all calls
/// that it has kept so far, in their order.
async fn kept_after(binary: &Binary, input: &str, objects: &[Value]) -> Vec<String> {
    write(binary, input, objects);
    let ended = binary.run(&["up", "--data", "state", "--port", "0", "--once", input]).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let folder = binary.folder().join("state/recordings");
    let calls = if folder.exists() { calls_in(&folder) } else { Vec::new() };
    let type_of = |call: &PathBuf| -> String {
        let request: Value = serde_json::from_str(&text(&call.join("request.json"))).expect("it is JSON");
        request["item"]["itemType"].as_str().unwrap_or_default().to_owned()
    };
    calls.iter().map(type_of).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn c_340_c_341_c_342_calls_are_recorded_without_secrets_and_made_again() {
    let binary = crate::binary().await;
    let calls = record(&binary).await;
    let [call] = &calls[..] else { panic!("the item is planned once: {calls:?}") };
    let name = call.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    assert!(name.starts_with("call-0000000001-default-shop-") && name.ends_with("-plan"), "{name}");
    let canaries = Canaries::default();
    [PASSWORD, TOKEN].iter().for_each(|value| canaries.learn_text(value));
    for file in ["request.json", "response.json", "recording.json"] {
        assert_eq!(canaries.find(&text(&call.join(file))), None, "{file}");
    }
    let answer: Value = serde_json::from_str(&text(&call.join("response.json"))).expect("it is JSON");
    let writes = answer.pointer("/proposal/stages/0/writes").and_then(Value::as_array).expect("it writes");
    let object = |kind: &str| {
        let found = writes.iter().map(|write| &write["object"]).find(|object| object["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {answer}")).clone()
    };
    let url = object("ConfigMap")["data"]["url"].as_str().unwrap_or_default().to_owned();
    let token = url.strip_prefix("db://").and_then(|rest| rest.strip_suffix("@host")).unwrap_or_default();
    assert!(token.starts_with("secret-") && token.len() == 23, "{url}");
    let encoded = BASE64.encode(format!("a {token}").as_bytes());
    assert_eq!(object("ConfigMap")["data"]["encoded"], json!(encoded), "the same value has the same token");
    let pin = object("Secret")["stringData"]["pin"].as_str().unwrap_or_default().to_owned();
    assert!(pin.starts_with("secret-"), "a short value as well: {pin}");

    // A recording is a case as it is, and is made again.
    let component = manifest(binary.folder(), "manifest.wasm", b"");
    let ended = binary.run(&["plugin", "test", &component, "--cases", "recordings"]).await;
    assert_eq!(
        (ended.code, ended.stdout.lines().next()),
        (Some(0), Some(format!("passed   {name}").as_str())),
        "{}",
        ended.stdout
    );
    let replay = ["plugin", "replay", "recordings", "--with", &component];
    let ended = binary.run(&replay).await;
    let expected = format!("same       {name}\n1 same, 0 different, 0 not made again\n");
    assert_eq!((ended.code, ended.stdout), (Some(0), expected), "{}", ended.stderr);
    let ended = binary.run(&[replay.as_slice(), &["--component", "helm"]].concat()).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "0 same, 0 different, 0 not made again; 1 of other components or types left out\n")
    );

    // Edited it is no recording any more, and without its note a case.
    let response = text(&call.join("response.json")).replace("db://", "mysql://");
    fs::write(call.join("response.json"), response).expect("it can be written");
    let ended = binary.run(&replay).await;
    assert!(
        ended.code == Some(1) && ended.stdout.contains("response.json is not what was recorded"),
        "{}",
        ended.stdout
    );
    fs::remove_file(call.join("recording.json")).expect("it can be removed");
    let ended = binary.run(&[replay.as_slice(), &["-o", "json"]].concat()).await;
    let document: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_eq!(
        (ended.code, &document["different"], &document["recordings"][0]["outcome"]),
        (Some(1), &json!(1), &json!("different"))
    );
    let difference = document["recordings"][0]["differences"][0].as_str().unwrap_or_default();
    assert!(
        difference.starts_with("/proposal/stages/0/writes/0/object/data/url: expected is \"mysql://secret-"),
        "{difference}"
    );
    // Cut off.
    fs::write(call.join("response.json"), "{\"proposal\": {").expect("it can be written");
    let ended = binary.run(&replay).await;
    assert!(ended.code == Some(1) && ended.stdout.contains("response.json is no JSON: EOF"), "{}", ended.stdout);
}

#[tokio::test]
async fn c_341_a_folder_that_cannot_be_written_is_told_before_anything_is_deployed() {
    let binary = crate::binary().await;
    fs::write(binary.folder().join("file"), "").expect("it can be written");
    let ended = binary.run(&["up", "--ephemeral", "--port", "0", "--once", "--record", "file/below"]).await;
    assert!(
        ended.code == Some(2) && ended.stderr.starts_with("error: calls cannot be recorded in file/below: "),
        "{:?} {}",
        ended.code,
        ended.stderr
    );
    let ended = binary.run(&["up", "--record-one-in", "3"]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("--record <FOLDER>"), "{}", ended.stderr);
}

#[tokio::test]
async fn c_347_calls_are_recorded_where_a_plugin_or_the_policy_of_a_namespace_asks_for_them() {
    let binary = crate::binary().await;
    let mine = "example.org/mine";
    let content = json!({"component.wasm": BASE64.encode(&component("mock"))});
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "default"}, "binaryData": content});
    let spec = json!({"source": {"configMap": {"name": "mine"}}, "deployer": {"itemTypes": [mine]}, "record": {}});
    let plugin =
        json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "mine"}, "spec": spec});
    assert_eq!(kept_after(&binary, "plugin", &[config_map, plugin]).await, Vec::<String>::new());

    let of_plugin = json!({"name": "mine", "type": mine, "config": {
        "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "phase": "Succeeded",
    }});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "default"}});
    let of_others = json!({"name": "other", "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"import": "cluster"}, "config": {
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "manifests": [{"manifest": map}],
    }});
    let items = json!({"deployItems": [of_plugin, of_others]}).to_string();
    let imports =
        json!([{"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"}]);
    let executions = json!([{"name": "default", "type": "Jinja", "template": items}]);
    let mut root =
        on_cluster(installation("both", &blueprint(json!({"imports": imports, "deployExecutions": executions}))));
    root["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    let kept = kept_after(&binary, "root", &[root.clone()]).await;
    assert!(!kept.is_empty() && kept.iter().all(|kept| kept == mine), "{kept:?}");

    let spec = json!({"profile": "compatible", "namespaces": {"names": ["default"]}, "recordings": {"oneIn": 1}});
    let policy = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "all"}, "spec": spec});
    kept_after(&binary, "policy", &[policy]).await;
    let kept = kept_after(&binary, "root", &[root]).await;
    assert!(kept.iter().any(|kept| kept == "landscaper.gardener.cloud/kubernetes-manifest"), "{kept:?}");
}

#[tokio::test]
async fn c_348_calls_of_gates_are_recorded_without_secrets_and_made_again() {
    let binary = crate::binary().await;
    let judges = fs::read(Path::new(env!("OUT_DIR")).join("judges.wasm")).expect("the guest was built");
    fs::create_dir_all(binary.folder().join("plugins")).expect("the folder can be made");
    fs::write(binary.folder().join("plugins/judges.wasm"), judges).expect("it can be written");
    let registration = json!({
        "apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "judges"},
        "spec": {"version": "1.0.0", "component": {"file": "judges.wasm"}, "gate": {"types": ["example.org/judges"]}},
    });
    fs::write(binary.folder().join("plugins/judges.yaml"), registration.to_string()).expect("it can be written");

    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": PASSWORD}});
    let mut item = mocks("shop", &[], "Succeeded", "x");
    item["when"] = json!({"component": {"type": "example.org/judges", "config": "met"}});
    let imports = json!([{"name": "password", "type": "data", "schema": {"type": "string"}}]);
    let fields = json!({"imports": imports, "deployExecutions": executions(&[item])});
    let mut root = installation("shop", &blueprint(fields));
    root["spec"]["imports"] =
        json!({"data": [{"name": "password", "secretRef": {"name": "login", "key": "password"}}]});
    write(&binary, "gated", &[secret, root]);
    let up = ["up", "--ephemeral", "--port", "0", "--once", "--plugins", "plugins", "--record", "recordings", "gated"];
    let ended = binary.run(&up).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let calls = calls_in(&binary.folder().join("recordings"));
    let call = calls.iter().find(|call| call.to_string_lossy().ends_with("-default-shop-evaluate"));
    let call = call.unwrap_or_else(|| panic!("the gate is asked: {calls:?}"));
    let canaries = Canaries::default();
    canaries.learn_text(PASSWORD);
    for file in ["request.json", "response.json", "recording.json"] {
        assert_eq!(canaries.find(&text(&call.join(file))), None, "{file}");
    }
    let request: Value = serde_json::from_str(&text(&call.join("request.json"))).expect("it is JSON");
    assert_eq!((&request["question"]["gate"], &request["question"]["config"]), (&json!("when"), &json!("met")));
    let token = request["question"]["inputs"]["imports"]["password"].as_str().unwrap_or_default();
    let answer: Value = serde_json::from_str(&text(&call.join("response.json"))).expect("it is JSON");
    let message = answer["answer"]["message"].as_str().unwrap_or_default();
    assert!(token.starts_with("secret-") && message.contains(token), "what it answers has the same token: {message}");

    // The same again, without those of the deployer of the item and of the engine, and with a deployer without the others.
    let ending = |ending: &str| calls.iter().filter(|call| call.to_string_lossy().ends_with(ending)).count();
    let (gates, plans) = (ending("-evaluate"), ending("-plan"));
    let others = calls.len() - gates;
    let ended = binary.run(&["plugin", "replay", "recordings", "--with", "plugins/judges.wasm"]).await;
    let last = format!("{gates} same, 0 different, 0 not made again; {others} of other components or types left out");
    assert_eq!(
        (ended.code, ended.stdout.lines().last()),
        (Some(0), Some(last.as_str())),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    fs::write(binary.folder().join("mock.wasm"), component("mock")).expect("it can be written");
    let ended = binary.run(&["plugin", "replay", "recordings", "--with", "mock.wasm"]).await;
    let rest = calls.len() - plans;
    let last = format!("{plans} same, 0 different, 0 not made again; {rest} of other components or types left out");
    assert_eq!(
        (ended.code, ended.stdout.lines().last()),
        (Some(0), Some(last.as_str())),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}

/// What an engine has of secrets, some of it too short to be looked for: an import, the credentials of a Target, a state, and what
/// import executions make.
fn secretive() -> Vec<Value> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": PASSWORD, "pin": "q7z"}});
    let imports = json!([
        {"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"},
        {"name": "password", "type": "data", "schema": {"type": "string"}},
        {"name": "pin", "type": "data", "schema": {"type": "string"}},
        {"name": "made", "type": "data", "required": false, "schema": {"type": "string"}},
    ]);
    let template = "{% set old = state.kept if state and state.kept else 'kept-9d-of-a-state' %}state: {kept: {{ old }}}\n\
                    deployItems: [{name: shop, type: landscaper.gardener.cloud/mock, config: {apiVersion: \
                    mock.deployer.landscaper.gardener.cloud/v1alpha1, kind: ProviderConfiguration, phase: Succeeded, providerStatus: \
                    {apiVersion: example.org/v1, kind: Status, pin: {{ imports.pin | tojson }}, reversed: {{ imports.password | reverse \
                    | tojson }}, made: {{ imports.made | tojson }}, token: {{ imports.cluster.spec.config | tojson }}}}}]";
    let made = json!({"bindings": {"made": MADE}}).to_string();
    let fields = json!({
        "imports": imports,
        "importExecutions": [{"name": "makes", "type": "Jinja", "template": made}],
        "deployExecutions": [{"name": "default", "type": "Jinja", "template": template}],
    });
    let mut root = on_cluster(installation("shop", &blueprint(fields)));
    let data = |key: &str| json!({"name": key, "secretRef": {"name": "login", "key": key}});
    root["spec"]["imports"]["data"] = json!([data("password"), data("pin")]);
    root["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    vec![secret, root]
}

/// What a template has made.
const MADE: &str = "canary-5e-made-here";

#[tokio::test]
async fn c_355_calls_of_engines_are_recorded_without_secrets_and_made_again() {
    let binary = crate::binary().await;
    write(&binary, "input", &secretive());
    let up = ["up", "--data", "state", "--port", "0", "--once", "--record", "recordings", "input"];
    for job in ["the first", "one with a state"] {
        let ended = binary.run(&up).await;
        assert_eq!(ended.code, Some(0), "{job}: {}{}", ended.stdout, ended.stderr);
        assert!(!ended.stderr.contains("a call is not recorded"), "{}", ended.stderr);
    }
    let calls = calls_in(&binary.folder().join("recordings"));
    let is_rendering = |call: &&PathBuf| call.to_string_lossy().ends_with("-default-shop-render");
    let renderings: Vec<&PathBuf> = calls.iter().filter(is_rendering).collect();
    let canaries = Canaries::default();
    let reversed: String = PASSWORD.chars().rev().collect();
    [PASSWORD, &reversed].iter().for_each(|value| canaries.learn_text(value));
    let mut lists = Vec::new();
    for call in &renderings {
        let [request, response] = ["request.json", "response.json"].map(|file| text(&call.join(file)));
        for text in [&request, &response, &text(&call.join("recording.json"))] {
            assert_eq!(canaries.find(text), None, "{}", call.display());
            assert!(!text.contains("q7z"), "the pin, which is short: {text}");
        }
        let request: Value = serde_json::from_str(&request).expect("it is JSON");
        let list = request["request"]["execution"].as_str().unwrap_or_default().to_owned();
        if list == "deploy" {
            assert!(!response.contains(MADE), "what an import execution has made: {response}");
            let pin = request["request"]["inputs"]["imports"]["pin"].as_str().unwrap_or_default();
            assert!(pin.starts_with("secret-") && response.contains(pin), "{pin}: {response}");
            let has_state = request["request"]["state"] != Value::Null;
            assert!(!has_state || !request.to_string().contains("\"kept-9d-of-a-state\""), "{request}");
            lists.push(format!("{list} {}", if has_state { "again" } else { "first" }));
        } else {
            lists.push(list);
        }
    }
    lists.sort();
    lists.dedup();
    assert_eq!(lists, ["deploy again", "deploy first", "import"]);

    // The same engine answers the same, and they are cases as well.
    fs::write(binary.folder().join("jinja.wasm"), component("jinja")).expect("it can be written");
    let others = calls.len() - renderings.len();
    let ended = binary.run(&["plugin", "replay", "recordings", "--with", "jinja.wasm"]).await;
    let last = format!(
        "{} same, 0 different, 0 not made again; {others} of other components or types left out",
        renderings.len()
    );
    assert_eq!((ended.code, ended.stdout.lines().last()), (Some(0), Some(last.as_str())), "{}", ended.stdout);
    // Another engine does not.
    let renders = fs::read(Path::new(env!("OUT_DIR")).join("renders.wasm")).expect("the guest was built");
    fs::write(binary.folder().join("renders.wasm"), renders).expect("it can be written");
    let ended = binary.run(&["plugin", "replay", "recordings", "--with", "renders.wasm"]).await;
    let last = format!("0 same, {} different, 0 not made again", renderings.len());
    assert!(
        ended.code == Some(1) && ended.stdout.lines().last().is_some_and(|line| line.starts_with(&last)),
        "{}",
        ended.stdout
    );
}

#[tokio::test]
async fn c_343_two_components_are_compared_by_what_they_are_and_by_what_they_answer() {
    let binary = crate::binary().await;
    record(&binary).await;
    let old = manifest(binary.folder(), "old.wasm", b"");
    // A custom section of one byte, named `x`: another file that does the same.
    let new = manifest(binary.folder(), "new.wasm", &[0, 3, 1, b'x', 7]);
    let ended = binary.run(&["plugin", "diff", &old, &new, "--cases", "recordings"]).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("digest    sha256:") && lines[0].contains(" -> sha256:"), "{}", ended.stdout);
    assert_eq!(lines[1..3], ["world     the same", "contract  the same"]);
    assert_eq!(lines.last().copied(), Some("1 same, 0 different, 0 not made again"), "{}", ended.stdout);
    let ended = binary.run(&["plugin", "diff", &old, "nowhere.wasm"]).await;
    assert!(
        ended.code == Some(2) && ended.stderr.starts_with("error: nowhere.wasm cannot be read"),
        "{}",
        ended.stderr
    );
    fs::write(binary.folder().join("jinja.wasm"), component("jinja")).expect("it can be written");
    let diff = ["plugin", "diff", &old, "jinja.wasm"];
    let ended = binary.run(&diff).await;
    assert!(ended.code == Some(0) && ended.stdout.contains("world     deployer -> templater"), "{}", ended.stdout);
    let ended = binary.run(&[diff.as_slice(), &["--cases", "recordings"]].concat()).await;
    assert!(
        ended.code == Some(2) && ended.stderr.starts_with("error: jinja.wasm exports nothing of a deployer"),
        "{}",
        ended.stderr
    );
}
