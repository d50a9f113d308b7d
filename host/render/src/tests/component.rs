//! Blueprints that belong to a component version (`docs/wire.md` §4.8, §5.8).

use orangery_core::error::Fault;
use orangery_ocm::{
    Artifact, Child, ComponentSource, Components, Descriptor, Files, ResourceContent, ResourceKey, ResourceReference,
    VersionReference,
};

use super::*;

/// A component version that has these schemas, and whose children are called as they are referred to.
pub(super) struct Version {
    descriptor: Arc<Descriptor>,
    schemas: BTreeMap<ResourceReference, Value>,
}

impl Version {
    pub(super) fn of(schemas: &[(&str, Value)]) -> Option<Box<dyn ComponentVersion>> {
        let schemas = schemas.iter().map(|(at, schema)| (ResourceReference::parse(at).unwrap(), schema.clone()));
        let component = json!({
            "name": "example.com/own", "version": "1.0.0", "provider": "us", "repositoryContexts": [], "sources": [],
            "componentReferences": [], "resources": [],
        });
        let document = json!({"meta": {"schemaVersion": "v2"}, "component": component});
        let descriptor = Arc::new(Descriptor::parse(&document).unwrap());
        Some(Box::new(Self { descriptor, schemas: schemas.collect() }))
    }
}

fn no<T>() -> BoxFuture<'static, Result<T, Fault>> {
    Box::pin(async { Err(Fault::later(Code::Timeout, "the repository does not answer")) })
}

impl ComponentVersion for Version {
    fn descriptor(&self) -> &Arc<Descriptor> {
        &self.descriptor
    }

    fn descriptors(&self) -> &[Arc<Descriptor>] {
        std::slice::from_ref(&self.descriptor)
    }

    fn replaced(&self) -> Option<&VersionReference> {
        None
    }

    fn blueprint<'a>(&'a self, _: &'a ResourceReference) -> BoxFuture<'a, Result<Arc<dyn Files>, Fault>> {
        no()
    }

    fn json_schema<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<Value, Fault>> {
        match self.schemas.get(resource).cloned() {
            Some(schema) => Box::pin(async { Ok(schema) }),
            None => no(),
        }
    }

    fn keyed<'a>(&'a self, _: &'a ResourceKey) -> BoxFuture<'a, Result<Option<Arc<dyn Artifact>>, Fault>> {
        no()
    }

    fn content<'a>(&'a self, _: &'a ResourceReference) -> BoxFuture<'a, Result<ResourceContent, Fault>> {
        no()
    }

    fn child(&self, reference: &str) -> Result<Child, Fault> {
        let component = match reference {
            // Some 36 MiB.
            "cd://large" => ComponentSource::Reference(VersionReference {
                repository_context: Some(Value::from(vec![json!({"": 0}); 40_000]).into()),
                ..VersionReference::default()
            }),
            _ => ComponentSource::Inline(json!({"name": "child"}).into()),
        };
        let resource = reference.strip_prefix("cd://").map(str::to_owned);
        let refused = || Fault::invalid(Code::ConfigurationProblem, format!("{reference} is no reference"));
        resource.map(|resource| Child { component, resource }).ok_or_else(refused)
    }

    fn templates(self: Arc<Self>) -> Arc<dyn Components> {
        Arc::new(orangery_ocm::Unavailable)
    }
}

fn world(schema: &str) -> World {
    World::blueprint(&format!(
        "imports: [{{name: a, schema: {schema}}}]\nexports: [{{name: a, schema: {schema}}}]\nexportExecutions: [{{name: one, type: Echo, template: 'exports: {{a: 1}}'}}]"
    ))
}

fn bind(world: &World, value: Value) -> Result<Value, RenderError> {
    block_on(world.rendering().imports(&data(json!({"a": value})), &BTreeMap::new())).map(Value::Object)
}

#[test]
fn schemas_of_the_component_version_are_fetched_and_count_from_where_they_lie() {
    let mut world = world("{$ref: 'cd://componentReferences/r/resources/outer#/definitions/x'}");
    world.component = Version::of(&[
        (
            "cd://componentReferences/r/resources/outer",
            json!({"definitions": {"x": {"$ref": "cd://componentReferences/s/resources/inner"}}}),
        ),
        ("cd://componentReferences/r/componentReferences/s/resources/inner", json!({"type": "string"})),
        ("cd://componentReferences/s/resources/inner", json!({"type": "boolean"})),
    ]);
    assert_eq!(bind(&world, json!("text")), Ok(json!({"a": "text"})));
    assert_eq!(bind(&world, json!(true)).unwrap_err().failure().reason, "SchemaValidationFailed");
    let exports =
        block_on(world.rendering().exports(&serde_json::Map::new(), ExportValues::default(), &BTreeMap::new()));
    assert_eq!(exports.unwrap_err().failure().reason, "SchemaValidationFailed");
}

#[test]
fn schemas_of_component_versions_see_neither_local_types_nor_files_and_no_circle() {
    let message = |schema: Value| {
        let mut world = world("{$ref: 'cd://resources/s'}");
        world.blueprint.local_types = BTreeMap::from([("t".to_owned(), json!({}))]);
        world.component = Version::of(&[("cd://resources/s", schema)]);
        bind(&world, json!(1)).unwrap_err().to_string()
    };
    let begin = "import \"a\" of installation ns/x: the schema refers to";
    assert_eq!(
        message(json!({"$ref": "local://t"})),
        format!("{begin} local://t, but localTypes of the blueprint has no \"t\"; known are: none")
    );
    assert_eq!(
        message(json!({"$ref": "blueprint://blueprint.yaml"})),
        format!(
            "{begin} blueprint://blueprint.yaml: a schema of a component version has no blueprint, use cd:// or `#/…`"
        )
    );
    let circle = message(json!({"items": {"$ref": "cd://resources/s"}}));
    assert!(circle.starts_with(&format!("{begin} cd://resources/s from within itself")), "{circle}");
}

#[test]
fn a_repository_that_may_answer_another_time_is_tried_again() {
    let mut world = world("{$ref: 'cd://resources/s'}");
    world.component = Version::of(&[]);
    let error = bind(&world, json!(1)).unwrap_err();
    // No code that says that nothing helps (C-123).
    let failure = Failure::new("ReadComponent", "ComponentNotUsable", "the repository does not answer");
    assert_eq!((error.failure(), error.is_transient()), (failure, true));
    world.component = None;
    let error = bind(&world, json!(1)).unwrap_err();
    let message = "import \"a\" of installation ns/x: the schema refers to cd://resources/s, but the blueprint belongs to no component version; give the installation a componentDescriptor";
    assert_eq!((error.to_string().as_str(), error.is_transient()), (message, false));
}

#[test]
fn c_288_the_component_versions_of_sub_installations_count_with_what_executions_answer() {
    let rendered = |second: &str| {
        let mut world = World::blueprint(&format!(
            "subinstallations: [{{name: one, blueprint: {{ref: 'cd://large'}}}}, {{name: two, blueprint: {{ref: '{second}'}}}}]"
        ));
        world.component = Version::of(&[]);
        let subs = block_on(world.rendering().subinstallations(&serde_json::Map::new(), &BTreeMap::new()));
        subs.map(|subs| subs.len()).map_err(|error| error.to_string())
    };
    assert_eq!(rendered("cd://r"), Ok(2), "a descriptor that is written out is shared");
    let refused = "the component version of sub-installation \"two\" takes more than the 67108864 bytes of memory that are allowed, with \
                   what was read and answered before; use less, or divide the blueprint";
    assert_eq!(rendered("cd://large"), Err(refused.to_owned()));
}

#[test]
fn a_sub_installation_takes_its_blueprint_from_the_component_version() {
    let with = |reference: &str, component: Option<Box<dyn ComponentVersion>>| {
        let mut world = World::blueprint(&format!(
            "subinstallations: [{{name: one, blueprint: {{ref: '{reference}'}}}}, {{name: two, blueprint: {{filesystem: {{}}}}}}]"
        ));
        world.component = component;
        let subs = block_on(world.rendering().subinstallations(&serde_json::Map::new(), &BTreeMap::new()));
        subs.map(|subs| subs.into_iter().map(|sub| sub.child).collect::<Vec<_>>())
    };
    let child = Child { component: ComponentSource::Inline(json!({"name": "child"}).into()), resource: "r".to_owned() };
    assert_eq!(with("cd://r", Version::of(&[])), Ok(vec![Some(child), None]));
    assert_eq!(with("r", Version::of(&[])).unwrap_err().to_string(), "r is no reference");
    let message = "the sub-installation \"one\" takes its blueprint from cd://r, but the blueprint belongs to no component version; give the installation a componentDescriptor, or write the blueprint's files into blueprint.filesystem";
    assert_eq!(with("cd://r", None).unwrap_err().to_string(), message);
}
