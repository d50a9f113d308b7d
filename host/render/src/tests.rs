//! Rendering with engines that answer what the template says, so that what is tested is what the room does with it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use orangery_blueprint::{
    Blueprint, FileSystem,
    import::{DataValue, Imported, TargetObject},
    plugins::Plugins,
    record::RecordWriter,
    rendering::{ExecutionKind, InputStep, Output, RenderFailure, RenderRequest, Rendered},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::{
    error::{Code, Failure},
    name::{JobId, Namespace},
    port::BoxFuture,
};
use orangery_ocm::{Artifact, ComponentVersion};
use orangery_proposal::deployer::{Deployer, PluginIdentity};
use serde_json::{Value, json};

use super::*;

mod bundled;
mod component;
mod loaded;
mod state;

/// Answers the template as text, or what it was made of where a blueprint brought it along, or, under `Spiff`, the JSON of the template as a document; keeps what it was asked.
struct Echo {
    identity: PluginIdentity,
    asked: Arc<Mutex<Vec<RenderRequest>>>,
    own: Option<Arc<dyn Artifact>>,
}

impl TemplateEngine for Echo {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        _: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        self.asked.lock().unwrap().push(request.clone());
        let reported = |warnings: &[&str]| warnings.iter().map(|text| (*text).to_owned()).collect();
        Box::pin(async move {
            let text = match &self.own {
                Some(own) => String::from_utf8(own.content().await.unwrap().to_vec()).unwrap(),
                None => request.template.clone(),
            };
            if let Some(message) = text.strip_prefix("fail: ") {
                let transient = message == "later";
                let file = request.file.clone();
                let (line, column, snippet) = (Some(3), Some(7), Some("3 | x".to_owned()));
                let (message, paths) = message.split_once(", reading ").unwrap_or((message, ""));
                let step = |name: &str| InputStep::Field(name.to_owned());
                let reads = paths.split_whitespace().map(|path| path.split('.').map(step).collect()).collect();
                let message = message.to_owned();
                return Err(RenderFailure { message, file, line, column, snippet, reads, transient });
            }
            if self.identity.name == "Spiff" {
                let document: Value = serde_json::from_str(&text).unwrap();
                let state = document.get("state").cloned();
                return Ok(Rendered { output: Output::Document(document), state, warnings: Vec::new() });
            }
            Ok(Rendered { output: Output::Text(text), state: None, warnings: reported(&["careful"]) })
        })
    }
}

/// The engines `Echo` and, unless it is taken away, `Spiff`.
struct Engines {
    asked: Arc<Mutex<Vec<RenderRequest>>>,
    spiff: bool,
}

impl Engines {
    fn new() -> Self {
        Self { asked: Arc::default(), spiff: true }
    }

    fn asked(&self) -> Vec<RenderRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Plugins for Engines {
    fn deployer(&self, _: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        None
    }

    fn template_engine(
        &self,
        template_type: &str,
        _: Option<&orangery_core::name::Namespace>,
    ) -> Option<Arc<dyn TemplateEngine>> {
        if !self.template_types().contains(&template_type.to_owned()) {
            return None;
        }
        let identity = PluginIdentity {
            name: template_type.to_owned(),
            version: "1".to_owned(),
            digest: String::new(),
            is_pinned: true,
        };
        Some(Arc::new(Echo { identity, asked: Arc::clone(&self.asked), own: None }))
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        let identity =
            PluginIdentity { name: name.to_owned(), version: "1".to_owned(), digest: String::new(), is_pinned: true };
        Arc::new(Echo { identity, asked: Arc::clone(&self.asked), own: Some(component) })
    }

    fn template_types(&self) -> Vec<String> {
        let all = if self.spiff { ["Echo", "Spiff"].as_slice() } else { &["Echo"] };
        all.iter().map(|name| (*name).to_owned()).collect()
    }
}

const SCOPE: RecordWriter<'_> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "x",
    parent: None,
    job: &JobId::from_static("j"),
};

/// A blueprint with its files, and what it is rendered with.
struct World {
    blueprint: Blueprint,
    context: TemplateContext,
    engines: Engines,
    definitions: InputDefinitions,
    component: Option<Box<dyn ComponentVersion>>,
}

impl World {
    fn of(files: Value) -> Self {
        let files = FileSystem::parse(&files).unwrap();
        let blueprint = Blueprint::parse(&files).unwrap();
        let definitions = InputDefinitions {
            blueprint: json!({"inline": "b"}),
            component_descriptor: Some(json!({"ref": "c"})),
            descriptor: json!({"cd": 1}),
            components: json!(["all"]),
        };
        let context = TemplateContext::of_files(Arc::new(files));
        Self { blueprint, context, engines: Engines::new(), definitions, component: None }
    }

    fn blueprint(text: &str) -> Self {
        Self::of(json!({"blueprint.yaml": text}))
    }

    fn rendering(&self) -> Rendering<'_> {
        self.rendering_after(States::default())
    }

    fn rendering_after(&self, states: States) -> Rendering<'_> {
        let subject = RenderedSubject {
            blueprint: &self.blueprint,
            scope: SCOPE,
            plugins: &self.engines,
            context: &self.context,
            definitions: &self.definitions,
            component: self.component.as_deref(),
        };
        Rendering::new(subject, states)
    }
}

fn data(values: Value) -> BTreeMap<String, Imported> {
    let imported = |(name, value): (&String, &Value)| {
        (name.clone(), Imported::Data(DataValue { value: value.clone(), ..DataValue::default() }))
    };
    values.as_object().unwrap().iter().map(imported).collect()
}

fn mappings(of: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(of).unwrap()
}

#[test]
fn ins_24_every_execution_is_given_the_inputs_of_the_field() {
    let world = World::of(json!({
        "blueprint.yaml": "deployExecutions: [{name: one, type: Echo, file: items.txt}]\nexportExecutions: [{name: two, type: Echo, template: 'exports: {}'}]",
        "items.txt": "deployItems: []",
    }));
    let imports = json!({"a": 1}).as_object().unwrap().clone();
    let mut rendering = world.rendering();
    assert_eq!(block_on(rendering.items(&imports, &BTreeMap::new())), Ok(Vec::new()));
    let values = ExportValues {
        deploy_items: Some(json!({"item": {"e": 1}})),
        data_objects: BTreeMap::from([("d".to_owned(), json!(2))]),
        targets: BTreeMap::new(),
    };
    assert_eq!(block_on(rendering.exports(&imports, values, &BTreeMap::new())), Ok(serde_json::Map::new()));
    let asked = world.engines.asked();
    let common = json!({
        "imports": {"a": 1}, "cd": {"cd": 1}, "components": ["all"],
        "blueprint": {"inline": "b"}, "blueprintDef": {"inline": "b"}, "componentDescriptorDef": {"ref": "c"},
    });
    let request = |execution, name: &str, file: Option<&str>, template: &str, inputs: Value| RenderRequest {
        execution,
        name: name.to_owned(),
        file: file.map(str::to_owned),
        template: template.to_owned(),
        inputs,
        state: None,
    };
    let mut exporting = common.clone();
    let parts = json!({"deployitems": {"item": {"e": 1}}, "dataobjects": {"d": 2}, "targets": {}});
    exporting.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
    exporting["values"] = parts;
    assert_eq!(
        asked,
        [
            request(ExecutionKind::Deploy, "one", Some("items.txt"), "deployItems: []", common),
            request(ExecutionKind::Export, "two", None, "exports: {}", exporting),
        ]
    );
}

#[test]
fn bindings_of_one_import_execution_are_imports_of_the_next() {
    let world = World::blueprint(
        "importExecutions:\n- {name: one, type: Echo, template: 'bindings: {b: 1}'}\n- {name: two, type: Echo, template: 'bindings: {c: 2}'}",
    );
    let bound = block_on(world.rendering().imports(&BTreeMap::new(), &BTreeMap::new()));
    assert_eq!(bound.map(Value::Object), Ok(json!({"b": 1, "c": 2})));
    let imports: Vec<_> = world.engines.asked().iter().map(|request| request.inputs["imports"].clone()).collect();
    assert_eq!(imports, [json!({}), json!({"b": 1})]);
}

#[test]
fn the_first_list_of_errors_ends_the_job_with_its_sentences() {
    let world = World::blueprint(
        "importExecutions:\n- {name: check, type: Echo, template: 'errors: [first, second]'}\n- {name: never, type: Echo, template: x}",
    );
    let error = block_on(world.rendering().imports(&BTreeMap::new(), &BTreeMap::new())).unwrap_err();
    let message = "import execution \"check\" refuses the imports: first; second";
    let failure = Failure::new("RunImportExecutions", "ImportsRefused", message).with_code(Code::ConfigurationProblem);
    assert_eq!(error.failure(), failure);
    assert_eq!(world.engines.asked().len(), 1);
}

#[test]
fn mappings_win_over_imports_and_see_them_all() {
    let world = World::blueprint("imports: [{name: a, schema: {}}]");
    let imported = data(json!({"a": "import", "other": 5}));
    let bound = block_on(world.rendering().imports(&imported, &mappings(json!({"a": {"x": "mapped"}}))));
    assert_eq!(bound.map(Value::Object), Ok(json!({"a": {"x": "mapped"}})));
    let asked = world.engines.asked();
    let mapping = RenderRequest {
        execution: ExecutionKind::ImportMapping,
        name: "a".to_owned(),
        file: None,
        template: "{\"x\":\"mapped\"}".to_owned(),
        inputs: json!({"a": "import", "other": 5}),
        state: None,
    };
    assert_eq!(asked, [mapping]);
}

#[test]
fn export_mappings_see_the_exports_twice_and_stand_over_them_unchecked() {
    let world = World::blueprint(
        "exports: [{name: e, schema: {type: string}}]\nexportExecutions: [{name: one, type: Echo, template: 'exports: {e: text, undefined: 1}'}]",
    );
    let mut rendering = world.rendering();
    let mapped = mappings(json!({"e": [1], "more": true}));
    let exports = block_on(rendering.exports(&serde_json::Map::new(), ExportValues::default(), &mapped));
    assert_eq!(exports.map(Value::Object), Ok(json!({"e": [1], "more": true})));
    let asked = world.engines.asked();
    let inputs: Vec<_> = asked.iter().skip(1).map(|request| request.inputs.clone()).collect();
    assert_eq!(
        inputs,
        [json!({"e": "text", "exports": {"e": "text"}}), json!({"e": "text", "exports": {"e": "text"}})]
    );
    let warned: Vec<_> = rendering.take_warnings().into_iter().map(|warning| (warning.place, warning.text)).collect();
    let dropped = "the blueprint does not define it, so it is dropped; add it to `exports` of the blueprint";
    assert_eq!(
        warned,
        [
            ("exportExecutions \"one\" (Echo)".to_owned(), "careful".to_owned()),
            ("export \"undefined\"".to_owned(), dropped.to_owned())
        ]
    );
    assert_eq!(rendering.take_warnings(), []);
}

#[test]
fn c_322_limits_blueprint_so_many_warnings_are_told_and_how_many_more_there_are() {
    let exports: Vec<String> = (0..30).map(|number| format!("u{number:02}: 1")).collect();
    let template = exports.join(", ");
    let world = World::blueprint(&format!(
        "exportExecutions: [{{name: one, type: Echo, template: 'exports: {{{template}}}'}}]"
    ));
    let mut rendering = world.rendering();
    let exports = block_on(rendering.exports(&serde_json::Map::new(), ExportValues::default(), &mappings(json!({}))));
    assert_eq!(exports.map(Value::Object), Ok(json!({})));
    let warned = rendering.take_warnings();
    // One is of the engine.
    assert_eq!((warned.len(), warned[19].place.as_str()), (21, "export \"u18\""));
    assert_eq!((warned[20].place.as_str(), warned[20].text.as_str()), ("the blueprint", "there are 11 more warnings"));
    assert_eq!(rendering.take_warnings(), []);
}

#[test]
fn exports_of_several_executions_are_merged_and_then_checked() {
    let world = World::blueprint(
        "exports: [{name: e, schema: {required: [a, b]}}]\nexportExecutions: [{name: one, type: Echo, template: 'exports: {e: {a: 1}}'}, {name: two, type: Echo, template: 'exports: {e: {b: 2}}'}]",
    );
    let exports = |world: &World| {
        block_on(world.rendering().exports(&serde_json::Map::new(), ExportValues::default(), &BTreeMap::new()))
    };
    assert_eq!(exports(&world).map(Value::Object), Ok(json!({"e": {"a": 1, "b": 2}})));
    let mut short = world;
    short.blueprint.export_executions.truncate(1);
    assert_eq!(exports(&short).unwrap_err().failure().reason, "SchemaValidationFailed");
}

#[test]
fn ins_24_rendered_sub_installations_come_before_those_of_the_blueprint() {
    let template = "{apiVersion: v1, kind: InstallationTemplate, name: rendered, blueprint: {filesystem: {}}}";
    let world = World::blueprint(&format!(
        "subinstallations: [{{name: static, blueprint: {{filesystem: {{}}}}}}]\nsubinstallationExecutions: [{{name: one, type: Echo, template: 'subinstallations: [{template}]'}}]"
    ));
    let templates = block_on(world.rendering().subinstallations(&serde_json::Map::new(), &BTreeMap::new())).unwrap();
    assert_eq!(templates.iter().map(|sub| sub.template.name.as_str()).collect::<Vec<_>>(), ["rendered", "static"]);
}

#[test]
fn items_of_all_executions_are_checked_together_and_have_their_targets() {
    let items = "deployItems: [{name: i, type: t, config: {a: 1}, target: {import: cluster}}]";
    let world = World::blueprint(&format!("deployExecutions: [{{name: one, type: Echo, template: '{items}'}}]"));
    let target = TargetObject { name: "object".to_owned(), ..TargetObject::default() };
    let imported = BTreeMap::from([("cluster".to_owned(), Imported::Target(target))]);
    let rendered = block_on(world.rendering().items(&serde_json::Map::new(), &imported)).unwrap();
    assert_eq!(rendered.iter().map(|item| item.target.as_deref()).collect::<Vec<_>>(), [Some("object")]);

    let twice = World::blueprint(&format!(
        "deployExecutions: [{{name: one, type: Echo, template: '{items}'}}, {{name: two, type: Echo, template: '{items}'}}]"
    ));
    let error = block_on(twice.rendering().items(&serde_json::Map::new(), &imported)).unwrap_err();
    assert_eq!(
        (error.failure().operation, error.failure().reason),
        ("RenderDeployItems".into(), "InvalidDeployItems".into())
    );
}

#[test]
fn an_error_says_list_execution_engine_file_line_and_whether_to_try_again() {
    let error = |execution: &str, file: &str| {
        let files = json!({"blueprint.yaml": format!("deployExecutions: [{{name: one, {execution}}}]"), "t.txt": file});
        let world = World::of(files);
        block_on(world.rendering().items(&serde_json::Map::new(), &BTreeMap::new())).unwrap_err()
    };
    let stalled =
        |reason: &str, text: &str| Failure::new("RenderTemplate", reason, text).with_code(Code::ConfigurationProblem);
    let in_file = "type: Echo, file: t.txt";
    let failed = error(in_file, "fail: boom");
    let text = "deployExecutions \"one\" (Echo, file t.txt) at t.txt:3:7: boom\n3 | x";
    let expected = Failure::new("RenderTemplate", "TemplateFailed", text).with_code(Code::ForInfoOnly);
    assert_eq!((failed.failure(), failed.is_transient()), (expected, false));
    let later = error("type: Echo, template: 'fail: later'", "");
    let text = "deployExecutions \"one\" (Echo) at 3:7: later\n3 | x";
    assert_eq!((later.failure(), later.is_transient()), (Failure::new("RenderTemplate", "TemplateFailed", text), true));
    let text = "deployExecutions \"one\" (Brew): no component renders the type \"Brew\"; known types are: Echo, Spiff; correct `type` or register a component for it";
    assert_eq!(error("type: Brew, template: x", "").failure(), stalled("UnknownTemplateType", text));
    let mut gone =
        World::of(json!({"blueprint.yaml": format!("deployExecutions: [{{name: one, {in_file}}}]"), "t.txt": ""}));
    gone.context = TemplateContext::of_files(Arc::new(FileSystem::default()));
    let gone = block_on(gone.rendering().items(&serde_json::Map::new(), &BTreeMap::new())).unwrap_err();
    assert_eq!(gone.failure().reason, "TemplateNotFound");
    let no_yaml = error(in_file, "a: [").failure();
    assert!(
        no_yaml.message.starts_with("deployExecutions \"one\" (Echo, file t.txt): the rendered text is not YAML: "),
        "{}",
        no_yaml.message
    );
    assert_eq!(no_yaml.reason, "InvalidTemplateOutput");
    let no_items = error(in_file, "deployItems: [{name: x}]").failure();
    assert_eq!(no_items.reason, "InvalidTemplateOutput");
    let text = "deployExecutions \"one\" (Echo, file t.txt): deploy item \"x\" (number 1) has no type; set it; it is in line 1 of the rendered text:\n> 1 | deployItems: [{name: x}]";
    assert_eq!(no_items.message, text);
}

#[test]
fn data_mappings_without_their_engine_say_what_is_missing() {
    let mut world = World::blueprint("imports: [{name: a, schema: {}}]");
    world.engines.spiff = false;
    let error = block_on(world.rendering().imports(&BTreeMap::new(), &mappings(json!({"a": "(( 1 ))"})))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "importDataMappings \"a\" (Spiff): data mappings are written in Spiff, and no component renders it; known types are: Echo; register a component for it"
    );
}

#[test]
fn an_error_after_rendering_has_the_item_and_the_line_and_hides_what_the_template_does_not_say() {
    let text = "deployItems:\n- name: one\n  type: 5\n";
    let world =
        World::of(json!({"blueprint.yaml": "deployExecutions: [{name: one, type: Echo, file: t.txt}]", "t.txt": text}));
    let error = block_on(world.rendering().items(&serde_json::Map::new(), &BTreeMap::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "deployExecutions \"one\" (Echo, file t.txt): the rendered deploy items have a wrong form: deployItems[0].type: expected a text; write it in quotes, found a number; it is in line 3 of \"one\" of the rendered text:\n  1 | deployItems:\n  2 | - name: one\n> 3 |   type: 5"
    );
}

#[test]
fn an_error_of_a_template_shows_what_its_engine_says_that_it_reads_by_path_and_type() {
    let text = "fail: boom, reading imports.password imports.pasword";
    let world =
        World::of(json!({"blueprint.yaml": "deployExecutions: [{name: one, type: Echo, file: t.txt}]", "t.txt": text}));
    let imports = json!({"password": "canary"}).as_object().unwrap().clone();
    let error = block_on(world.rendering().items(&imports, &BTreeMap::new())).unwrap_err();
    let message = error.to_string();
    assert!(
        message
            .ends_with("\n3 | x\nimports.password: [...] (string)\nimports has no pasword; it has password (string)"),
        "{message}"
    );
    assert!(!message.contains("canary"), "{message}");
}
