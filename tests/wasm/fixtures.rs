//! What the tests share: a sandbox, guests by name, an item, a cluster.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use orangery_cli::authoring::loaded::LoadedComponent;
use orangery_core::error::Fault;
use orangery_plugin::{
    Error, Plugin, Registered, Registration, Sandbox, SandboxConfig, WorkerCommand, inspect, unpack,
};
use orangery_proposal::{Item, Proposal, deployer::Reads};
use orangery_tests::empty::Empty;
use serde_json::{Value, json};

/// Where compiled components are kept between runs: where the binary under test has its own, so that each of those that ship
/// with it is compiled once.
pub(crate) fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache/orangery")
}

/// A sandbox of its own.
pub(crate) fn sandbox_with(cache: PathBuf) -> Arc<Sandbox> {
    Sandbox::start(config(cache)).unwrap()
}

/// A sandbox of its own, with room for so many calls.
pub(crate) fn sandbox_of(calls: u32) -> Arc<Sandbox> {
    Sandbox::start(SandboxConfig { calls, ..config(cache()) }).unwrap()
}

/// The program that compiles and calls components.
pub(crate) fn worker() -> WorkerCommand {
    WorkerCommand { program: env!("CARGO_BIN_EXE_component-worker").into(), args: vec![] }
}

fn config(cache: PathBuf) -> SandboxConfig {
    SandboxConfig { isolation: super::ISOLATION, ..SandboxConfig::new(worker(), Some(cache)) }
}

/// The sandbox that most tests share.
pub(crate) fn sandbox() -> Arc<Sandbox> {
    static SANDBOX: OnceLock<Arc<Sandbox>> = OnceLock::new();
    SANDBOX.get_or_init(|| sandbox_with(cache())).clone()
}

/// The bytes of a guest of `guests/examples`.
pub(crate) fn bytes(guest: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("OUT_DIR")).join(format!("{guest}.wasm"))).unwrap()
}

/// A component, registered as a deployer (or as an engine) that may read ConfigMaps of its target.
pub(crate) fn registered(name: &str, bytes: Vec<u8>, claim: Value, limits: Value) -> Registered {
    let registration: Registration = serde_json::from_value(json!({
        "apiVersion": "orangery.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": name},
        "spec": {
            "version": "1.0.0",
            "component": {"file": "guest.wasm"},
            "grants": {"clusters": {"target": true}, "reads": [{"groups": [""], "kinds": ["ConfigMap"]}]},
            "limits": limits,
        },
    }))
    .map(|mut registration: Registration| {
        registration.spec.deployer = serde_json::from_value(claim["deployer"].clone()).unwrap();
        registration.spec.template = serde_json::from_value(claim["template"].clone()).unwrap();
        registration.spec.gate = serde_json::from_value(claim["gate"].clone()).unwrap();
        registration
    })
    .unwrap();
    Registered::new(registration, bytes, "test".to_owned())
}

/// A deployer of these bytes.
pub(crate) fn deployer_of(sandbox: Arc<Sandbox>, name: &str, bytes: Vec<u8>, limits: Value) -> Plugin {
    let claim = json!({"deployer": {"itemTypes": ["example.org/guest"]}, "template": null});
    Plugin::new(registered(name, bytes, claim, limits), sandbox)
}

/// A guest, registered as a deployer.
pub(crate) fn deployer(guest: &str, limits: Value) -> Plugin {
    deployer_of(sandbox(), guest, bytes(guest), limits)
}

/// A component as its author tests it, with the registration that lies in a folder.
pub(crate) fn loaded(sandbox: &Arc<Sandbox>, file: &Path, bytes: Vec<u8>, near: Option<&Path>) -> LoadedComponent {
    let near: Vec<PathBuf> = near.into_iter().map(Path::to_path_buf).collect();
    LoadedComponent::in_sandbox(sandbox, (file, bytes), None, &near).unwrap()
}

/// A component that ships with the host, as its author tests it.
pub(crate) fn loaded_builtin(name: &str) -> LoadedComponent {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).unwrap();
    let registered = Registered::builtin(name, builtin.registration, builtin.component).unwrap();
    let (packed, size, _) = builtin.component.unwrap();
    let inspection = inspect(&unpack(packed, size).unwrap()).unwrap();
    let claimed = registered.registration().spec.deployer.clone();
    let types = claimed.map(|claim| claim.item_types).unwrap_or_default();
    let world = inspection.worlds()[0];
    LoadedComponent { plugin: Plugin::new(registered, sandbox()), world, inspection, types, is_registered: true }
}

/// An item to plan for.
pub(crate) fn item() -> Item {
    serde_json::from_value(json!({
        "namespace": "default",
        "name": "item",
        "uid": "5ccce2ed-e75a-457a-8dc3-7f9b3150818a",
        "itemType": "example.org/guest",
        "generation": 1,
        "context": "default",
        "target": "cluster",
        "job": "5d5ac0da-df31-4cb2-8a3c-003944f84db9",
        "config": {},
        "now": "2026-11-21T02:10:49Z",
        "seed": 7,
        "timeout": 600000,
    }))
    .unwrap()
}

/// The end of a call of a guest that the host had to end.
#[track_caller]
pub(crate) fn ended<T: std::fmt::Debug>(answer: Result<T, Arc<Error>>) -> Arc<Error> {
    answer.expect_err("the guest was not stopped")
}

/// Calls a guest.
pub(crate) async fn plan(plugin: &Plugin) -> Result<Result<Proposal, Fault>, Arc<Error>> {
    plugin.plan(&item(), Reads::of_clusters(Arc::new(Empty))).await
}

/// A WebAssembly section.
pub(crate) fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &leb(content.len() as u64), content].concat()
}

/// An unsigned number as WebAssembly writes it.
pub(crate) fn leb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A component with one more module, which is instantiated with it.
pub(crate) fn with_module(mut component: Vec<u8>, sections: &[Vec<u8>]) -> Vec<u8> {
    let modules = wasmparser::Parser::new(0)
        .parse_all(&component)
        .filter(|payload| matches!(payload, Ok(wasmparser::Payload::ModuleSection { .. })))
        .count();
    let module = [b"\0asm\x01\0\0\0".to_vec(), sections.concat()].concat();
    component.extend(section(1, &module));
    component.extend(section(2, &[&[1, 0][..], &leb(modules as u64), &[0]].concat()));
    component
}
