//! The engines in Go through the sandbox: what they render, what they cost, and how bombs of templates end.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use orangery_blueprint::{
    rendering::{ExecutionKind, Findings, Output, RenderFailure, RenderRequest, Rendered},
    template_engine::TemplateContext,
};
use orangery_ocm::Files;
use orangery_plugin::{BudgetLimit, Error, Occupancy, Plugin, Registered, Registration, Sandbox, unpack};
use serde_json::{Value, json};

use super::fixtures::{bytes, cache, deployer_of, ended, plan, sandbox_with};

/// The files of a blueprint.
struct Blueprint(BTreeMap<String, String>);

impl Files for Blueprint {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.0.get(path).map(|text| text.clone().into_bytes());
        found.ok_or_else(|| format!("the blueprint has no file {path}"))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let inside = self.0.keys().filter_map(|file| file.strip_prefix(&folder));
        let mut names: Vec<String> = inside.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        match names.is_empty() {
            true => Err(format!("the blueprint has no folder {path}")),
            false => Ok(names),
        }
    }
}

fn context(files: &[(&str, &str)]) -> TemplateContext {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    TemplateContext::of_files(Arc::new(Blueprint(files.collect())))
}

/// One sandbox for all of them: a compiled engine is loaded once.
fn shared() -> Arc<Sandbox> {
    static SANDBOX: OnceLock<Arc<Sandbox>> = OnceLock::new();
    SANDBOX.get_or_init(|| sandbox_with(cache())).clone()
}

/// A component that ships with the host, with other limits than its registration has.
pub(crate) fn builtin_in(sandbox: Arc<Sandbox>, name: &str, limits: &Value) -> Plugin {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).unwrap();
    let registered = Registered::builtin(name, builtin.registration, builtin.component).unwrap();
    let mut registration: Registration = registered.registration().clone();
    let mut changed = serde_json::to_value(&registration.spec.limits).unwrap();
    for (limit, value) in limits.as_object().unwrap() {
        changed[limit] = value.clone();
    }
    registration.spec.limits = serde_json::from_value(changed).unwrap();
    let (packed, size, _) = builtin.component.unwrap();
    Plugin::new(Registered::new(registration, unpack(packed, size).unwrap(), "test".into()), sandbox)
}

fn engine(name: &str) -> Plugin {
    builtin_in(shared(), name, &json!({}))
}

fn request(template: &str, inputs: Value) -> RenderRequest {
    RenderRequest {
        execution: ExecutionKind::Deploy,
        name: "default".into(),
        file: None,
        template: template.into(),
        inputs,
        state: None,
    }
}

async fn render(engine: &Plugin, template: &str, inputs: Value) -> Result<Rendered, RenderFailure> {
    engine.render(&request(template, inputs), &context(&[])).await.unwrap()
}

fn text(rendered: Result<Rendered, RenderFailure>) -> String {
    match rendered.unwrap().output {
        Output::Text(text) => text,
        Output::Document(document) => document.to_string(),
    }
}

/// Two deploy items, as blueprints usually have them.
const TYPICAL: &str = include_str!("../bench/typical.gotmpl");

fn typical() -> Value {
    json!({
        "imports": {
            "cluster": {"metadata": {"name": "my-cluster", "namespace": "default"}, "spec": {"type": "kubernetes"}},
            "namespace": "shop",
            "config": {"replicas": 3, "image": "registry.example.org/shop:1.2.3", "labels": {"team": "a", "tier": "web"}},
        },
        "cd": null, "components": null, "blueprint": {},
    })
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn every_case_of_the_engines_answers_through_the_sandbox_as_recorded() {
    for name in ["gotemplate", "spiff"] {
        let engine = engine(name);
        let mut checked = 0;
        for Case { folder, request, context, recorded } in cases(name, "cases") {
            let answer = match engine.render(&request, &context).await.unwrap() {
                Ok(rendered) => json!({"rendered": rendered}),
                Err(failure) => json!({"failure": failure}),
            };
            let place = folder.display();
            let without = |value: &Value, part: &str| value.pointer(part).cloned().unwrap_or(Value::Null);
            for part in ["/rendered/output", "/rendered/state", "/failure/line", "/failure/file", "/failure/column"] {
                assert_eq!(without(&answer, part), without(&recorded, part), "{part} of {place}");
            }
            let reads = |of: &Value| of.pointer("/failure/reads").cloned().unwrap_or_else(|| json!([]));
            assert_eq!(reads(&answer), reads(&recorded), "{place}");
            checked += 1;
        }
        assert!(checked > 10, "{name} has {checked} cases");
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn every_check_of_the_engines_answers_through_the_sandbox_as_recorded() {
    for name in ["gotemplate", "spiff"] {
        let engine = engine(name);
        for Case { folder, request, context, recorded } in cases(name, "checks") {
            let expected: Findings = serde_json::from_value(recorded["findings"].clone()).unwrap();
            let found = engine.check(&request, &context).await.unwrap();
            assert_eq!(found, Some(expected), "{}", folder.display());
        }
    }
}

/// What was recorded of an engine natively.
struct Case {
    folder: PathBuf,
    request: RenderRequest,
    context: TemplateContext,
    recorded: Value,
}

fn cases(engine: &str, sort: &str) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/go").join(engine).join(sort);
    let mut folders: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let case = |folder: PathBuf| {
        let read =
            |file: &str| -> Value { serde_json::from_str(&fs::read_to_string(folder.join(file)).unwrap()).unwrap() };
        let (asked, recorded) = (read("request.json"), read("response.json"));
        let files = asked.get("files").cloned().unwrap_or_else(|| json!({}));
        let files: BTreeMap<String, String> = serde_json::from_value(files).unwrap();
        let request = serde_json::from_value(asked["request"].clone()).unwrap();
        Case { folder, request, context: TemplateContext::of_files(Arc::new(Blueprint(files))), recorded }
    };
    folders.into_iter().map(case).collect()
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn two_renders_give_the_same_bytes() {
    let template = "a: {{ randAlphaNum 20 }}\nb: {{ now | unixEpoch }}\nc: {{ uuidv4 }}\nd: {{ randInt 0 1000000 }}\n\
                    e: {{ shuffle \"abcdefghijklmnop\" }}\nf: {{ range $k, $v := .imports }}{{ $k }}{{ end }}\n";
    let inputs = json!({"imports": {"z": 1, "y": 2, "x": 3}});
    let gotemplate = engine("gotemplate");
    let first = text(render(&gotemplate, template, inputs.clone()).await);
    assert!(first.ends_with("f: xyz\n"), "{first}");
    let another = builtin_in(sandbox_with(cache()), "gotemplate", &json!({}));
    for engine in [&gotemplate, &another] {
        assert_eq!(text(render(engine, template, inputs.clone()).await), first);
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_typical_render_stays_below_sixteen_mebibytes() {
    let engine = builtin_in(shared(), "gotemplate", &json!({"memoryMiB": 16}));
    let rendered = text(render(&engine, TYPICAL, typical()).await);
    assert!(rendered.contains("name: shop-config") && rendered.contains("replicas: 3"), "{rendered}");
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn bombs_of_templates_end_with_their_limit_and_neighbours_notice_nothing() {
    let sandbox = sandbox_with(cache());
    let limits = json!({"cpuMilliseconds": 500});
    let gotemplate = builtin_in(sandbox.clone(), "gotemplate", &limits);
    let spiff = builtin_in(sandbox.clone(), "spiff", &limits);
    let victim = deployer_of(sandbox.clone(), "answers", bytes("answers"), json!({}));
    let expected = plan(&victim).await.unwrap().unwrap();
    let doubling = "{{ define \"a\" }}{{ $x := printf \"%s%s\" . . }}{{ template \"a\" $x }}{{ end }}{{ template \"a\" (repeat 1000 \"x\") }}";
    for (engine, template, limit) in [
        (&gotemplate, "{{ range until 100000000 }}{{ end }}", BudgetLimit::Memory),
        (&gotemplate, "{{ range $i := until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}", BudgetLimit::Cpu),
        (&gotemplate, "{{ repeat 1000000000 \"x\" }}", BudgetLimit::Memory),
        (&gotemplate, doubling, BudgetLimit::Memory),
        // Spiff's own writer never ends on a text that is no UTF-8.
        (&spiff, "a: (( asyaml(base64_decode(\"/w==\")) ))\n", BudgetLimit::Cpu),
        (&spiff, "a: (( sum[[1..100000]|0|s,x|->s + x] ))\nb: (( map[[1..10000000]|x|->x] ))\n", BudgetLimit::Memory),
    ] {
        let bomb = request(template, json!({"imports": {}}));
        let error = ended(engine.render(&bomb, &context(&[])).await);
        let Error::Limit { limit: met, .. } = &*error else { panic!("{template}: {error:?}") };
        assert!(*met == limit || *met == BudgetLimit::Cpu, "{template}: {error}");
        assert_eq!(plan(&victim).await.unwrap().unwrap(), expected);
    }
    assert_eq!(sandbox.occupancy(), Occupancy::default());
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn recursion_ends_with_one_error() {
    let gotemplate = engine("gotemplate");
    let context = context(&[("loop.tpl", "{{ include \"loop.tpl\" . }}")]);
    let own = request("{{ include \"loop.tpl\" . }}", json!({"imports": {}}));
    let failure = gotemplate.render(&own, &context).await.unwrap().unwrap_err();
    assert!(failure.message.contains("nested reference"), "{failure:?}");
    let itself = request("{{ template \"execution\" . }}", json!({"imports": {}}));
    let failure = gotemplate.render(&itself, &context).await.unwrap().unwrap_err();
    assert!(failure.message.contains("exceeded maximum template depth"), "{failure:?}");
}

#[tokio::test]
async fn what_a_build_lacks_is_one_sentence_when_it_is_used() {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == "spiff").unwrap();
    let sentence = "the template type Spiff is not part of this build: this machine has no Go; install Go 1.26 or later and build again";
    let registered = Registered::builtin("spiff", builtin.registration, Err(sentence)).unwrap();
    let error = ended(Plugin::new(registered, shared()).render(&request("a: 1", json!({})), &context(&[])).await);
    assert_eq!(error.to_string(), format!("{sentence}, or register the component with `--plugins`"));
}

/// A text whose aliases unfold to ten to the power of twenty.
fn bomb_of_anchors() -> String {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    bomb
}

/// What came of a template: its output, its failure, or the host's sentence.
async fn came_of(engine: &Plugin, template: &str, inputs: Value) -> String {
    let asked = request(template, inputs);
    match engine.render(&asked, &context(&[])).await {
        Ok(Ok(Rendered { output: Output::Text(text), .. })) => text,
        Ok(Ok(Rendered { output: Output::Document(document), .. })) => document.to_string(),
        Ok(Err(failure)) => {
            let column = failure.column.map(|column| format!(":{column}")).unwrap_or_default();
            format!("{}{column}: {}", failure.line.unwrap_or_default(), failure.message)
        }
        Err(error) if matches!(*error, Error::Limit { .. }) => "stopped at a limit".to_owned(),
        // Which limit a deep text meets first, the time or the stack, is a matter of the machine.
        Err(error) if error.to_string().contains("deeper than the stack") => "stopped at a limit".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Texts that no reader of YAML takes lightly.
fn bad_yaml() -> [String; 5] {
    let numbers = "a: 1e999999\nb: 99999999999999999999999999\n";
    let deep = "[".repeat(100_000);
    [bomb_of_anchors(), deep, "a: 1\na: 2\n".into(), numbers.into(), "a: *b\n".into()]
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn bad_yaml_in_gotemplate_is_one_error_with_its_place() {
    let engine = engine("gotemplate");
    let mut came = Vec::new();
    for text in bad_yaml() {
        came.push(came_of(&engine, "{{ fromYaml .imports.text }}", json!({"imports": {"text": text}})).await);
    }
    let failed = "1:4: <fromYaml .imports.text>: error calling fromYaml: error converting YAML to JSON: yaml:";
    assert_eq!(
        came,
        [
            format!("{failed} document contains excessive aliasing"),
            format!("{failed} exceeded max depth of 10000"),
            "map[a:2]".to_owned(),
            "map[a:1e999999 b:1e+26]".to_owned(),
            format!("{failed} unknown anchor 'b' referenced"),
        ]
    );
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn bad_yaml_in_spiff_is_one_error_with_its_place() {
    let engine = builtin_in(shared(), "spiff", &json!({"cpuMilliseconds": 2000}));
    let endless = ["a: (( b ))\nb: (( a ))\n".to_owned(), "f: (( |x|-> .f(x) ))\na: (( .f(1) ))\n".to_owned()];
    let mut came = Vec::new();
    for text in bad_yaml().into_iter().chain(endless) {
        came.push(came_of(&engine, &text, json!({"imports": {}})).await);
    }
    assert_eq!(
        came,
        [
            "stopped at a limit",
            "stopped at a limit",
            r#"{"a":2}"#,
            r#"{"a":"1e999999","b":1e+26}"#,
            "0:3: missing anchor: 'b'",
            "1:4: a: (( b )): 'b' unresolved; b: (( a )): 'a' unresolved",
            "stopped at a limit",
        ]
    );
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn an_output_above_its_limit_is_one_error_that_names_the_limit() {
    let gotemplate = builtin_in(shared(), "gotemplate", &json!({"outputBytes": 1000}));
    let too_long = request("{{ repeat 1001 \"x\" }}", json!({}));
    let error = ended(gotemplate.render(&too_long, &context(&[])).await);
    let message = "the call was stopped: it needs more than 1000 bytes of output; have an administrator raise `limits.outputBytes` of its registration, or of its Plugin, if that is meant to be";
    assert_eq!(error.to_string(), message);
    assert_eq!(came_of(&gotemplate, "{{ repeat 1000 \"x\" }}", json!({})).await, "x".repeat(1000));
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn includes_may_nest_a_hundred_deep() {
    let gotemplate = engine("gotemplate");
    let context = context(&[(
        "down.tpl",
        "{{ if gt (int .) 1 }}{{ include \"down.tpl\" (sub (int .) 1) }}{{ else }}end{{ end }}",
    )]);
    let asked = |depth: u32| request(&format!("{{{{ include \"down.tpl\" {depth} }}}}"), json!({"imports": {}}));
    assert_eq!(text(gotemplate.render(&asked(100), &context).await.unwrap()), "end");
    let failure = gotemplate.render(&asked(200), &context).await.unwrap().unwrap_err();
    assert!(failure.message.contains("nested reference name: down.tpl"), "{}", failure.message);
}
