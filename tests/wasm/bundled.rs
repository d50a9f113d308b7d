//! Engines that blueprints bring along: executions of type `Wasm`.

use std::{path::Path, sync::Arc};

use orangery_blueprint::{
    ComponentFile,
    plugins::Plugins,
    rendering::{RenderFailure, Rendered},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_ocm::{Artifact, Files};
use orangery_plugin::{
    CallIsolation, PluginSet, Registered, Registration, RegistrationError, Sandbox, SandboxConfig, WorkerCommand,
};
use serde_json::{Value, json};

use super::{
    fixtures::{bytes, sandbox, sandbox_with, section, with_module},
    template_context::{context, request, text},
};

/// The registration of such engines.
fn terms(name: &str, spec: Value) -> Registered {
    let mut registration = json!({
        "apiVersion": "orangery.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": name},
        "spec": {"version": "1.0.0", "template": {"types": ["Wasm"]}},
    });
    for (field, value) in spec.as_object().unwrap() {
        registration["spec"][field] = value.clone();
    }
    let registration = Registration::parse(&registration.to_string(), "own.yaml").unwrap();
    Registered::new(registration, vec![], "own.yaml".to_owned())
}

fn set(registered: Vec<Registered>) -> PluginSet {
    PluginSet::load(registered, &sandbox()).unwrap()
}

/// A file of a blueprint.
pub(super) fn component(bytes: Vec<u8>) -> Arc<dyn Artifact> {
    let files: Arc<dyn Files> = Arc::new(ComponentBytes(bytes));
    Arc::new(ComponentFile::of(&files, "render.wasm").unwrap())
}

/// A blueprint of one file, whatever it is called.
struct ComponentBytes(Vec<u8>);

impl Files for ComponentBytes {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone())
    }

    fn list(&self, _: &str) -> Result<Vec<String>, String> {
        unreachable!("it is read by its name")
    }
}

async fn render(set: &PluginSet, bytes: Vec<u8>, template: &str) -> Result<Rendered, RenderFailure> {
    set.bundled_engine("render.wasm", component(bytes)).render(&request(template), &context(None)).await
}

/// What is told of bytes that render nothing.
async fn message_of(bytes: Vec<u8>, template: &str) -> String {
    let digest = orangery_core::digest::sha256(&bytes);
    let failure = render(&set(vec![]), bytes, template).await.unwrap_err();
    assert_eq!((failure.file.as_deref(), failure.transient), (Some("deploy.txt"), false));
    let who = format!("render.wasm {}: ", &digest[.."sha256:".len() + 12]);
    failure.message.strip_prefix(&who).unwrap_or_else(|| panic!("{}", failure.message)).to_owned()
}

#[tokio::test]
async fn a_component_of_the_blueprint_renders_with_the_blueprint_around_it() {
    let set = set(vec![]);
    for (template, expected) in
        [("file answer", "Bonjour"), ("key answer", "key of reference"), ("time answer", "2026-11-21T02:10:49Z")]
    {
        assert_eq!(text(render(&set, bytes("renders"), template).await), expected, "{template}");
    }
    assert_eq!(set.template_types(), ["Wasm"]);
    assert!(set.template_engine("Wasm", None).is_none(), "there is no engine without a blueprint");
}

#[tokio::test]
async fn bytes_that_are_no_engine_are_told_with_the_file_they_came_from() {
    assert_eq!(
        message_of(b"#!/bin/sh\n".to_vec(), "").await,
        "the file is not a WebAssembly component: it does not begin as one; build it for the target wasm32-wasip2"
    );
    assert_eq!(
        message_of(b"\0asm\x01\0\0\0".to_vec(), "").await,
        "the file is not a WebAssembly component: it is a core module; build it for the target wasm32-wasip2"
    );
    assert_eq!(
        message_of(bytes("answers"), "").await,
        "the component does not export orangery:template/template; build it against the world of `orangery wit` that has it"
    );
    assert_eq!(
        message_of(bytes("opens_a_door"), "").await,
        "the component imports acme:door/backdoor@1.0.0, which is not offered to components; build it against the contracts that `orangery wit` prints"
    );
    // A function that leaves a number on a stack that ought to be empty.
    let sections = [section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), section(10, &[1, 4, 0, 0x41, 0, 0x0b])];
    let invalid = message_of(with_module(bytes("renders"), &sections), "").await;
    assert!(invalid.starts_with("the component does not compile: "), "{invalid}");
    let large = [b"\0asm\x0d\0\x01\0".to_vec(), vec![0; 64 << 20]].concat();
    assert_eq!(
        message_of(large, "").await,
        "the component has 67108872 bytes, and at most 67108864 are compiled; make it smaller"
    );
}

#[tokio::test]
async fn a_hostile_component_ends_with_its_limit_and_the_registration_that_sets_it() {
    let limits = [
        ("nothing loop", "2000 ms of processor time; have an administrator raise `limits.cpuMilliseconds`"),
        ("nothing allocate", "128 MiB of memory; have an administrator raise `limits.memoryMiB`"),
        ("nothing answer-much", "8388608 bytes of output; have an administrator raise `limits.outputBytes`"),
    ];
    for (template, limit) in limits {
        let expected = format!(
            "the call was stopped: it needs more than {limit} of its registration, or of its Plugin, if that is meant to be; components of blueprints are registered as the template type Wasm"
        );
        assert_eq!(message_of(bytes("renders"), template).await, expected, "{template}");
    }
    let crash = message_of(bytes("renders"), "nothing panic").await;
    assert!(crash.starts_with("the component crashed: wasm trap: ") && crash.contains("cannot go on"), "{crash}");
    let deep = message_of(bytes("renders"), "nothing recurse").await;
    assert!(deep.starts_with("the component crashed: its calls are nested deeper than the stack"), "{deep}");
}

#[tokio::test]
async fn the_operator_registers_what_such_components_may_reach_and_spend() {
    let refused = render(&set(vec![]), bytes("renders"), "credential answer").await.unwrap_err();
    assert_eq!(
        refused.message,
        "issuing a credential of kind \"serviceAccount\" is not granted to this component; have an administrator add it to `kubeconfigs` in the grants of its registration, or of its Plugin"
    );
    let terms = terms("own", json!({"grants": {"kubeconfigs": ["*"]}, "limits": {"memoryMiB": 16}}));
    let set = set(vec![terms]);
    assert!(text(render(&set, bytes("renders"), "credential answer").await).contains("serviceAccount"));
    let failure = render(&set, bytes("renders"), "nothing allocate").await.unwrap_err();
    assert!(failure.message.contains("more than 16 MiB of memory"), "{}", failure.message);
    assert!(set.plugins().is_empty(), "there is nothing to compile before a blueprint comes");
}

#[test]
fn a_registration_of_such_components_has_none_itself() {
    let parse = |spec: &str| {
        let text = format!("apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: own}}\nspec: {spec}\n");
        Registration::parse(&text, "own.yaml").map_err(|error: RegistrationError| error.to_string())
    };
    let own = "own.yaml: plugin own is for the template type Wasm, whose components blueprints bring along; remove `component` and all other types";
    let with_component = "{version: 1.0.0, component: {file: a.wasm}, template: {types: [Wasm]}}";
    assert_eq!(parse(with_component), Err(own.to_owned()));
    assert_eq!(parse("{version: 1.0.0, template: {types: [Wasm, Jinja]}}"), Err(own.to_owned()));
    let none = "own.yaml: `spec.component` is empty; give it a value";
    assert_eq!(parse("{version: 1.0.0, template: {types: [Jinja]}}"), Err(none.to_owned()));
    assert_eq!(parse("{version: 1.0.0, deployer: {itemTypes: [Wasm]}}"), Err(none.to_owned()));
    assert!(parse("{version: 1.0.0, template: {types: [Wasm]}}").is_ok());
    let twice = PluginSet::load(vec![terms("a", json!({})), terms("b", json!({}))], &sandbox());
    assert_eq!(
        twice.err().unwrap().to_string(),
        "the type Wasm is claimed by two plugins, a and b; remove it from one of them"
    );
}

#[tokio::test]
async fn a_component_is_compiled_once_for_all_blueprints_and_for_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let render = async |set: &PluginSet, name: &str| {
        let around: TemplateContext = context(None);
        set.bundled_engine(name, component(bytes("renders"))).render(&request("file answer"), &around).await
    };
    let first = PluginSet::load(vec![], &sandbox_with(cache.clone())).unwrap();
    assert_eq!(text(render(&first, "a.wasm").await), "Bonjour");
    let compiled = |folder: &Path| {
        let files =
            std::fs::read_dir(folder).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        files.filter(|name| name.ends_with(".cwasm")).count()
    };
    assert_eq!((compiled(&cache), compiled(&cache.join("of-blueprints/compiled"))), (0, 1));
    std::fs::remove_dir_all(cache.join("of-blueprints")).unwrap();
    assert_eq!(text(render(&first, "b.wasm").await), "Bonjour", "it is still loaded");

    let again = PluginSet::load(vec![], &sandbox_with(cache.clone())).unwrap();
    assert_eq!(text(render(&again, "a.wasm").await), "Bonjour");
    let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
    let config = SandboxConfig { isolation: CallIsolation::Nothing, ..SandboxConfig::new(worker, Some(cache)) };
    let without = Sandbox::start(config).unwrap();
    let next: Arc<PluginSet> = Arc::new(PluginSet::load(vec![], &without).unwrap());
    assert_eq!(text(render(&next, "c.wasm").await), "Bonjour", "the next start finds it in the cache");
}

#[tokio::test]
async fn a_component_is_called_by_its_name_and_digest() {
    let engine = set(vec![]).bundled_engine("templates/render.wasm", component(bytes("renders")));
    let identity = TemplateEngine::identity(engine.as_ref());
    assert_eq!(identity.digest, orangery_core::digest::sha256(&bytes("renders")));
    assert_eq!(identity.to_string(), format!("templates/render.wasm {}", &identity.digest[..19]));
}
