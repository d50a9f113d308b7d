//! Executions of type `Wasm`: the engine comes from the blueprint, in any of the lists.

use orangery_blueprint::ComponentFile;
use orangery_core::error::Fault;
use orangery_ocm::{Artifact, ArtifactFuture, Artifacts, ComponentReference, Files};

use super::*;

/// A registry with one component, or one that is slow.
struct Registry(Option<&'static str>);

impl Artifacts for Registry {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        let slow = Fault::later(Code::Timeout, format!("{} is slow", reference.registry));
        let found = self.0.map(|text| {
            let files: Arc<dyn Files> = Arc::new(FileSystem::parse(&json!({"a.wasm": text})).unwrap());
            Arc::new(ComponentFile::of(&files, "a.wasm").unwrap()) as Arc<dyn Artifact>
        });
        Box::pin(async { found.ok_or(slow) })
    }

    fn oci<'a>(&'a self, _: &'a str) -> ArtifactFuture<'a> {
        unreachable!("blueprints read components alone")
    }

    fn url<'a>(&'a self, _: &'a str) -> ArtifactFuture<'a> {
        unreachable!("blueprints read components alone")
    }

    fn helm_repository<'a>(&'a self, _: &'a str, _: &'a str, _: &'a str) -> ArtifactFuture<'a> {
        unreachable!("blueprints read components alone")
    }
}

fn reference() -> String {
    format!("oci://ghcr.io/acme/render@sha256:{}", "0".repeat(64))
}

#[test]
fn a_file_of_the_blueprint_renders_without_a_template() {
    let world = World::of(json!({
        "blueprint.yaml": "deployExecutions: [{name: one, type: Wasm, file: render.wasm}]\nexportExecutions: [{name: two, type: Wasm, file: export.wasm}]",
        "render.wasm": "deployItems: []",
        "export.wasm": "exports: {}",
    }));
    let mut rendering = world.rendering();
    let none = serde_json::Map::new();
    assert_eq!(block_on(rendering.items(&none, &BTreeMap::new())), Ok(Vec::new()));
    assert_eq!(block_on(rendering.exports(&none, ExportValues::default(), &BTreeMap::new())), Ok(none));
    let asked: Vec<_> =
        world.engines.asked().into_iter().map(|request| (request.name, request.file, request.template)).collect();
    let asks = |name: &str, file: &str| (name.to_owned(), Some(file.to_owned()), String::new());
    assert_eq!(asked, [asks("one", "render.wasm"), asks("two", "export.wasm")]);
}

#[test]
fn a_component_of_a_registry_is_read_by_its_reference() {
    let blueprint = format!("importExecutions: [{{name: one, type: Wasm, template: '{}'}}]", reference());
    let mut world = World::blueprint(&blueprint);
    world.context.artifacts = Arc::new(Registry(Some("bindings: {a: 1}")));
    let bound = block_on(world.rendering().imports(&BTreeMap::new(), &BTreeMap::new()));
    assert_eq!(bound.map(Value::Object), Ok(json!({"a": 1})));
    let asked = world.engines.asked();
    assert_eq!(asked.iter().map(|request| request.template.as_str()).collect::<Vec<_>>(), [""]);

    world.context.artifacts = Arc::new(Registry(None));
    let error = block_on(world.rendering().imports(&BTreeMap::new(), &BTreeMap::new())).unwrap_err();
    let message = "importExecutions \"one\" (Wasm): ghcr.io is slow";
    assert_eq!(error.failure(), Failure::new("RenderTemplate", "ComponentNotRead", message));
    assert!(error.is_transient());
}

#[test]
fn a_component_that_cannot_be_read_is_named_with_its_execution() {
    let blueprint = format!("deployExecutions: [{{name: one, type: Wasm, template: '{}'}}]", reference());
    let world = World::blueprint(&blueprint);
    let error = block_on(world.rendering().items(&serde_json::Map::new(), &BTreeMap::new())).unwrap_err();
    let message = format!(
        "deployExecutions \"one\" (Wasm): {} cannot be read: there is no registry here; put the component into the blueprint and name it with `file`",
        reference()
    );
    let failure = Failure::new("RenderTemplate", "ComponentNotRead", message).with_code(Code::ConfigurationProblem);
    assert_eq!(error.failure(), failure);
}
