//! The engines in Go through the sandbox: what they render, what they cost, and how bombs of templates end.
//!
//! A machine that cannot build Go has no engines; these tests then say so and check that the host does.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use orangery_core::{
    port::{Files, Surroundings},
    template::{ExecutionKind, Output, RenderFailure, RenderRequest, Rendered},
};
use orangery_plugin::{Error, Limit, Occupancy, Plugin, Registered, Registration, Sandbox};
use serde_json::{Value, json};

use crate::stage::{bytes, cache, deployer_of, ended, plan, sandbox_with};

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

fn surroundings(files: &[(&str, &str)]) -> Surroundings {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Surroundings::of_files(Arc::new(Blueprint(files.collect())))
}

/// One sandbox for all of them: a compiled engine is loaded once.
fn shared() -> Arc<Sandbox> {
    static SANDBOX: OnceLock<Arc<Sandbox>> = OnceLock::new();
    SANDBOX.get_or_init(|| sandbox_with(cache())).clone()
}

/// A built-in engine, with other limits than its registration has; `None` where it was not built.
fn engine_in(sandbox: Arc<Sandbox>, name: &str, limits: &Value) -> Option<Plugin> {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).unwrap();
    let registered = Registered::builtin(name, builtin.registration, builtin.component).unwrap();
    let mut registration: Registration = registered.registration().clone();
    let mut changed = serde_json::to_value(&registration.spec.limits).unwrap();
    for (limit, value) in limits.as_object().unwrap() {
        changed[limit] = value.clone();
    }
    registration.spec.limits = serde_json::from_value(changed).unwrap();
    match builtin.component {
        Ok((bytes, _)) => Some(Plugin::new(Registered::new(registration, bytes.to_vec(), "test".into()), sandbox)),
        Err(sentence) => {
            assert!(sentence.contains("install Go"), "{sentence}");
            eprintln!("not tested: {sentence}");
            None
        }
    }
}

fn engine(name: &str) -> Option<Plugin> {
    engine_in(shared(), name, &json!({}))
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
    engine.render(&request(template, inputs), &surroundings(&[])).await.unwrap()
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
async fn every_case_of_the_engines_answers_through_the_sandbox_as_recorded() {
    for name in ["gotemplate", "spiff"] {
        let Some(engine) = engine(name) else { continue };
        let mut checked = 0;
        for folder in cases(name) {
            let read = |file: &str| -> Value {
                serde_json::from_str(&fs::read_to_string(folder.join(file)).unwrap()).unwrap()
            };
            let (asked, recorded) = (read("request.json"), read("response.json"));
            let request: RenderRequest = serde_json::from_value(asked["request"].clone()).unwrap();
            let files: BTreeMap<String, String> =
                serde_json::from_value(asked.get("files").cloned().unwrap_or_else(|| json!({}))).unwrap();
            let surroundings = Surroundings::of_files(Arc::new(Blueprint(files)));
            let answer = match engine.render(&request, &surroundings).await.unwrap() {
                Ok(rendered) => json!({"rendered": rendered}),
                Err(failure) => json!({"failure": failure}),
            };
            let place = folder.display();
            let without = |value: &Value, part: &str| value.pointer(part).cloned().unwrap_or(Value::Null);
            for part in ["/rendered/output", "/rendered/state", "/failure/line", "/failure/file", "/failure/column"] {
                assert_eq!(without(&answer, part), without(&recorded, part), "{part} of {place}");
            }
            checked += 1;
        }
        assert!(checked > 10, "{name} has {checked} cases");
    }
}

fn cases(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/go").join(name).join("cases");
    let mut folders: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

#[tokio::test]
async fn two_renders_give_the_same_bytes() {
    let template = "a: {{ randAlphaNum 20 }}\nb: {{ now | unixEpoch }}\nc: {{ uuidv4 }}\nd: {{ randInt 0 1000000 }}\n\
                    e: {{ shuffle \"abcdefghijklmnop\" }}\nf: {{ range $k, $v := .imports }}{{ $k }}{{ end }}\n";
    let inputs = json!({"imports": {"z": 1, "y": 2, "x": 3}});
    let Some(gotemplate) = engine("gotemplate") else { return };
    let first = text(render(&gotemplate, template, inputs.clone()).await);
    assert!(first.ends_with("f: xyz\n"), "{first}");
    let another = engine_in(sandbox_with(cache()), "gotemplate", &json!({})).unwrap();
    for engine in [&gotemplate, &another] {
        assert_eq!(text(render(engine, template, inputs.clone()).await), first);
    }
}

#[tokio::test]
async fn a_typical_render_stays_below_sixteen_mebibytes() {
    let Some(engine) = engine_in(shared(), "gotemplate", &json!({"memoryMiB": 16})) else { return };
    let rendered = text(render(&engine, TYPICAL, typical()).await);
    assert!(rendered.contains("name: shop-config") && rendered.contains("replicas: 3"), "{rendered}");
}

#[tokio::test]
async fn bombs_of_templates_end_with_their_limit_and_neighbours_notice_nothing() {
    let sandbox = sandbox_with(cache());
    let limits = json!({"cpuMilliseconds": 500});
    let Some(gotemplate) = engine_in(sandbox.clone(), "gotemplate", &limits) else { return };
    let spiff = engine_in(sandbox.clone(), "spiff", &limits).unwrap();
    let victim = deployer_of(sandbox.clone(), "answers", bytes("answers"), json!({}));
    let expected = plan(&victim).await.unwrap().unwrap();
    let doubling = "{{ define \"a\" }}{{ $x := printf \"%s%s\" . . }}{{ template \"a\" $x }}{{ end }}{{ template \"a\" (repeat 1000 \"x\") }}";
    for (engine, template, limit) in [
        (&gotemplate, "{{ range until 100000000 }}{{ end }}", Limit::Memory),
        (&gotemplate, "{{ range $i := until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}", Limit::Cpu),
        (&gotemplate, "{{ repeat 1000000000 \"x\" }}", Limit::Memory),
        (&gotemplate, doubling, Limit::Memory),
        (&spiff, "a: (( sum[[1..100000]|0|s,x|->s + x] ))\nb: (( map[[1..10000000]|x|->x] ))\n", Limit::Memory),
    ] {
        let bomb = request(template, json!({"imports": {}}));
        let error = ended(engine.render(&bomb, &surroundings(&[])).await);
        let Error::Limit { limit: met, .. } = &*error else { panic!("{template}: {error:?}") };
        assert!(*met == limit || *met == Limit::Cpu, "{template}: {error}");
        assert_eq!(plan(&victim).await.unwrap().unwrap(), expected);
    }
    assert_eq!(sandbox.occupancy(), Occupancy::default());
}

#[tokio::test]
async fn recursion_ends_with_one_error() {
    let Some(gotemplate) = engine("gotemplate") else { return };
    let surroundings = surroundings(&[("loop.tpl", "{{ include \"loop.tpl\" . }}")]);
    let own = request("{{ include \"loop.tpl\" . }}", json!({"imports": {}}));
    let failure = gotemplate.render(&own, &surroundings).await.unwrap().unwrap_err();
    assert!(failure.message.contains("nested reference"), "{failure:?}");
    let itself = request("{{ template \"execution\" . }}", json!({"imports": {}}));
    let failure = gotemplate.render(&itself, &surroundings).await.unwrap().unwrap_err();
    assert!(failure.message.contains("exceeded maximum template depth"), "{failure:?}");
}

#[tokio::test]
async fn what_a_build_lacks_is_one_sentence_when_it_is_used() {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == "spiff").unwrap();
    let sentence = "the template type Spiff is not part of this build: this machine has no Go; install Go 1.26 or later and build again";
    let registered = Registered::builtin("spiff", builtin.registration, Err(sentence)).unwrap();
    let error = ended(Plugin::new(registered, shared()).render(&request("a: 1", json!({})), &surroundings(&[])).await);
    assert_eq!(error.to_string(), format!("{sentence}, or register the component with `--plugins`"));
}
