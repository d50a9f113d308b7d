//! What a blueprint is loaded of.

use orangery_blueprint::template_engine::JobRandomness;
use orangery_core::error::Fault;
use orangery_ocm::Unavailable;

use super::{component::Version, *};

fn reach() -> TemplateAccess {
    let rng = JobRandomness { now: "2026-01-01T00:00:00Z".parse().unwrap(), seed: [7; 32] };
    let namespace = Namespace::from_static("ns");
    TemplateAccess { namespace, artifacts: Arc::new(Unavailable), kubeconfigs: Arc::new(Unavailable), rng }
}

fn opened() -> OpenedComponent {
    let overwritten = Some(Ok("a -> b".to_owned()));
    OpenedComponent { version: Arc::from(Version::of(&[]).unwrap()), source: json!({"inline": "d"}), overwritten }
}

fn loaded(blueprint: &str, opened: Option<OpenedComponent>) -> Result<LoadedBlueprint, LoadError> {
    let files = FileSystem::parse(&json!({"blueprint.yaml": blueprint})).unwrap();
    LoadedBlueprint::new(Arc::new(files), json!({"inline": "b"}), opened, reach())
}

#[test]
fn without_a_component_version_templates_see_none() {
    let loaded = loaded("{}", None).unwrap();
    let expected = InputDefinitions {
        blueprint: json!({"inline": "b"}),
        component_descriptor: None,
        descriptor: Value::Null,
        components: Value::Null,
    };
    assert_eq!((loaded.definitions, loaded.component.is_none(), loaded.overwritten), (expected, true, None));
    assert_eq!((loaded.context.rng.now, loaded.context.rng.seed), (reach().rng.now, [7; 32]));
}

#[test]
fn the_blueprint_chooses_the_schema_of_the_descriptors_that_templates_see() {
    let seen = |blueprint: &str| {
        let loaded = loaded(blueprint, Some(opened())).unwrap();
        assert_eq!(loaded.overwritten, opened().overwritten);
        let InputDefinitions { component_descriptor, descriptor, components, .. } = loaded.definitions;
        assert_eq!(component_descriptor, Some(json!({"inline": "d"})));
        let all = components.get("components").unwrap_or(&components);
        assert_eq!(*all, json!([descriptor]), "its own is the first of all");
        (descriptor["meta"]["schemaVersion"].clone(), descriptor["apiVersion"].clone())
    };
    assert_eq!(seen("{}"), (json!("v2"), Value::Null), "as the descriptor is written");
    let chosen = seen("annotations: {ocmSchemaVersion: ocm.software/v3alpha1}");
    assert_eq!(chosen, (Value::Null, json!("ocm.software/v3alpha1")));
    let error = loaded("annotations: {ocmSchemaVersion: v9}", None).err().unwrap();
    let message = "the annotation ocmSchemaVersion of the blueprint is \"v9\"; known are v2 and ocm.software/v3alpha1";
    assert_eq!(error.failure(), refused("InvalidBlueprint", message));
}

fn refused(reason: &str, message: &str) -> Failure {
    Failure::new("ReadBlueprint", reason, message).with_code(Code::ConfigurationProblem)
}

#[test]
fn a_blueprint_has_its_files_from_one_place() {
    let version = Version::of(&[]).unwrap();
    let message = |inline: Option<&Value>, resource: Option<&str>, component: Option<&dyn ComponentVersion>| {
        let error = block_on(files(BlueprintSource { inline, resource }, component)).err().unwrap();
        (error.failure(), error.is_transient())
    };
    let tree = json!({"a": "text"});
    let found = block_on(files(BlueprintSource { inline: Some(&tree), resource: None }, None)).unwrap();
    assert_eq!(found.read("a"), Ok(b"text".to_vec()));
    let both = "spec.blueprint needs exactly one of ref and inline";
    assert_eq!(message(Some(&tree), Some("r"), None), (refused("InvalidBlueprint", both), false));
    assert_eq!(message(None, None, Some(version.as_ref())), (refused("InvalidBlueprint", both), false));
    let nowhere = "spec.blueprint.ref names the resource \"r\", but the installation has no component version to find it in; set spec.componentDescriptor";
    assert_eq!(message(None, Some("r"), None), (refused("NoComponentDescriptor", nowhere), false));
    let broken = message(Some(&json!([])), None, None).0;
    assert_eq!(broken.reason, "InvalidBlueprint");
    let away = Failure::new("ReadComponent", "ComponentNotUsable", "the repository does not answer");
    assert_eq!(message(None, Some("r"), Some(version.as_ref())), (away, true));
    let fault = LoadError::Component(Fault::denied("no"));
    let denied = Failure::new("ReadComponent", "ComponentNotUsable", "no").with_code(Code::Forbidden);
    assert_eq!((fault.failure(), fault.is_transient()), (denied, false));
}
