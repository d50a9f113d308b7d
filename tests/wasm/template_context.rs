//! What a template reaches through its imports: files, component versions, credentials, time and chance.

use std::sync::Arc;

use orangery_blueprint::{
    rendering::{ExecutionKind, InputStep, Output, RenderFailure, RenderRequest, Rendered},
    template_engine::{JobRandomness, Kubeconfigs, TemplateContext, TemplateEngine},
};
use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{Components, Files, Identity, Unavailable};
use orangery_plugin::{BudgetLimit, Error, Plugin, Registered, Registration};
use serde_json::{Value, json};

use super::fixtures::{bytes, ended, sandbox};

/// A blueprint with one file.
pub(crate) struct OneFile(pub(crate) &'static str, pub(crate) Vec<u8>);

impl Files for OneFile {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == self.0 { Ok(self.1.clone()) } else { Err(format!("the blueprint has no file {path}")) }
    }

    fn list(&self, _: &str) -> Result<Vec<String>, String> {
        Ok(vec![self.0.to_owned()])
    }
}

/// Answers what it was asked, or always the same fault.
struct Echo(Option<Fault>);

impl Echo {
    fn answer<'a, T: Send + 'a>(&'a self, answer: T) -> BoxFuture<'a, Result<T, Fault>> {
        let answer = self.0.clone().map_or(Ok(answer), Err);
        Box::pin(async { answer })
    }
}

impl Components for Echo {
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        self.answer(json!({"from": from, "select": select}))
    }

    fn resources<'a>(&'a self, _: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        self.answer(vec![json!(select.len()), json!({"name": "image"})])
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        self.answer(format!("key of {reference}"))
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        self.answer(format!("content of {reference}").into_bytes())
    }
}

const TOKEN: &str = "eyJhbGciOiJSUzI1NiIs.token";

impl Kubeconfigs for Echo {
    fn issue_credential<'a>(&'a self, kind: &'a str, arguments: &'a Value) -> BoxFuture<'a, Result<Value, Fault>> {
        self.answer(json!({"kind": kind, "target": arguments["target"], "token": TOKEN}))
    }
}

/// Surroundings whose ports answer what they are asked, or this fault.
pub(crate) fn context(fault: Option<Fault>) -> TemplateContext {
    TemplateContext {
        namespace: None,
        files: Arc::new(OneFile("greeting.txt", b"Bonjour".to_vec())),
        components: Arc::new(Echo(fault.clone())),
        artifacts: Arc::new(Unavailable),
        kubeconfigs: Arc::new(Echo(fault)),
        rng: JobRandomness { now: "2026-11-21T02:10:49Z".parse().unwrap(), seed: [7; 32] },
    }
}

/// What to ask and what to make of the answer.
pub(crate) fn request(template: &str) -> RenderRequest {
    RenderRequest {
        execution: ExecutionKind::Deploy,
        name: "default".into(),
        file: Some("deploy.txt".into()),
        template: template.into(),
        inputs: json!({"imports": {"a": 1}}),
        state: None,
    }
}

fn engine(grants: Value, limits: Value) -> Plugin {
    let registration: Registration = serde_json::from_value(json!({
        "apiVersion": "orangery.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": "renders"},
        "spec": {
            "version": "1.0.0",
            "component": {"file": "renders.wasm"},
            "template": {"types": ["Renders"]},
            "grants": grants,
            "limits": limits,
        },
    }))
    .unwrap();
    Plugin::new(Registered::new(registration, bytes("renders"), "test".to_owned()), sandbox())
}

async fn ask(template: &str, grants: Value, fault: Option<Fault>) -> Result<Rendered, RenderFailure> {
    engine(grants, json!({})).render(&request(template), &context(fault)).await.unwrap()
}

pub(crate) fn text(of: Result<Rendered, RenderFailure>) -> String {
    match of.unwrap().output {
        Output::Text(text) => text,
        Output::Document(document) => panic!("{document}"),
    }
}

fn issuing() -> Value {
    json!({"kubeconfigs": ["serviceAccount"]})
}

#[tokio::test]
async fn component_versions_and_credentials_are_what_the_ports_answer() {
    let cases = [
        ("component", r#"{"from":null,"select":[["name","shop"]]}"#),
        ("component-of", r#"{"from":{"imports":{"a":1}},"select":[["name","shop"]]}"#),
        ("resources", r#"1+{"name":"image"}"#),
        ("key", "key of reference"),
        ("content", "content of reference"),
        ("credential", r#"{"kind":"serviceAccount","target":"garden","token":"eyJhbGciOiJSUzI1NiIs.token"}"#),
    ];
    for (what, expected) in cases {
        assert_eq!(text(ask(&format!("{what} answer"), issuing(), None).await), expected, "{what}");
    }
}

#[tokio::test]
async fn nonsense_is_refused_before_a_port_is_asked() {
    for (what, expected) in [
        ("component-of-nonsense", "`from` is not JSON: EOF while parsing an object at line 1 column 1"),
        ("credential-for-nonsense", "`arguments` is not a JSON object"),
    ] {
        let failure = ask(&format!("{what} answer"), issuing(), None).await.unwrap_err();
        assert_eq!((failure.message.as_str(), failure.transient), (expected, false), "{what}");
    }
}

#[tokio::test]
async fn c_394_powers_of_big_integers_need_no_grant_and_are_computed_on_the_time_of_the_call() {
    assert_eq!(text(ask("power answer", json!({}), None).await), "[0, 186]");
    let failure = ask("great-power answer", json!({}), None).await.unwrap_err();
    assert_eq!(
        failure.message,
        "a modulus of 513 bytes and an exponent of 1 are asked for, and each may have 512; compute greater powers in the component"
    );
    let engine = engine(json!({}), json!({"cpuMilliseconds": 200, "hostCalls": 1}));
    let error = ended(engine.render(&request("powers answer"), &context(None)).await);
    assert!(matches!(*error, Error::Limit { limit: BudgetLimit::Cpu, .. }), "{error}");
}

#[tokio::test]
async fn a_credential_that_is_not_granted_is_denied_with_the_grant_that_is_missing() {
    let failure = ask("credential answer", json!({"kubeconfigs": ["shootAdmin"]}), None).await.unwrap_err();
    let expected = RenderFailure {
        message: "issuing a credential of kind \"serviceAccount\" is not granted to this component; have an administrator add it to `kubeconfigs` in the grants of its registration, or of its Plugin".into(),
        file: None,
        line: Some(7),
        column: None,
        snippet: None,
        reads: Vec::new(),
        transient: false,
    };
    assert_eq!(failure, expected);
}

#[tokio::test]
async fn what_may_pass_by_itself_is_tried_again_whatever_the_engine_makes_of_it() {
    let later = || Some(Fault::later(Code::Timeout, "the registry is slow"));
    let failure = |message: &str, file: Option<&str>, line, snippet: Option<&str>| RenderFailure {
        message: message.into(),
        file: file.map(str::to_owned),
        line,
        column: None,
        snippet: snippet.map(str::to_owned),
        reads: Vec::new(),
        transient: true,
    };
    let whole = || failure("the registry is slow", Some("deploy.txt"), None, None);
    let cases = [
        ("component answer", failure("the registry is slow", None, Some(7), None)),
        (
            "resources fail",
            failure("\\u{1b}[2Jcannot use the registry is slow", None, Some(7), Some("  1 | the registry is slow")),
        ),
        ("key swallow", whole()),
        ("content panic", whole()),
        ("credential loop", whole()),
    ];
    for (template, expected) in cases {
        let engine = engine(issuing(), json!({"cpuMilliseconds": 50}));
        let answer = engine.render(&request(template), &context(later())).await.unwrap();
        assert_eq!(answer, Err(expected), "{template}");
    }
    let wrong = Some(Fault::invalid(Code::ConfigurationProblem, "there is no resource image"));
    assert_eq!(text(ask("key swallow", issuing(), wrong).await), "default");
}

#[tokio::test]
async fn a_credential_stands_in_no_message() {
    let engine = engine(issuing(), json!({}));
    let render = async |template: &str| engine.render(&request(template), &context(None)).await;
    let hidden = r#"{"kind":"[...]","target":"garden","token":"[...]"}"#;
    let failure = render("credential fail").await.unwrap().unwrap_err();
    assert_eq!(failure.message, format!("\\u{{1b}}[2Jcannot use {hidden}"));
    assert_eq!(failure.snippet, Some(format!("  1 | {hidden}")));
    let warned = render("credential warn").await.unwrap().unwrap();
    assert_eq!(warned.warnings, [format!("odd: {hidden}")]);
    let crash = ended(render("credential panic").await).to_string();
    assert!(crash.contains(&format!("cannot go on with {hidden}")) && !crash.contains(TOKEN), "{crash}");
    // The output is for who asked: there the credential stands whole.
    assert!(text(render("credential answer").await.unwrap()).contains(TOKEN));
}

#[tokio::test]
async fn a_failure_is_cut_to_what_a_status_can_hold() {
    let failure = ask("nothing shout", json!({}), None).await.unwrap_err();
    assert_eq!(failure.message, format!("{}…", "x".repeat(8 << 10)));
    assert_eq!(failure.snippet, Some(format!("{}…", "y\n".repeat(4 << 10))));
}

#[tokio::test]
async fn what_a_failure_reads_is_refused_above_its_limits_and_names_the_place() {
    let megabytes = (4 << 20) + 1 + "imports".len() + 1;
    let nonsense =
        |at: &str, why: String| format!("the component's answer makes no sense: failure.reads{at} has {why}");
    for (template, expected) in [
        ("nothing read-paths", nonsense("", "100000 paths; at most 16 are taken".into())),
        ("nothing read-steps", nonsense("[0]", "100000 bytes; at most 256 are taken".into())),
        ("nothing read-megabytes", nonsense("[0]", format!("{megabytes} bytes; at most 256 are taken"))),
    ] {
        let engine = engine(json!({}), json!({}));
        let error = ended(engine.render(&request(template), &context(None)).await);
        assert_eq!(error.to_string(), expected);
        let text = TemplateEngine::render(&engine, &request(template), &context(None)).await.unwrap_err();
        assert!(text.message.contains(&expected), "{text:?}");
        assert_eq!((text.reads, text.transient), (Vec::new(), false));
    }
}

#[tokio::test]
async fn what_a_failure_reads_may_lead_nowhere_and_has_no_control_characters() {
    let field = |name: &str| InputStep::Field(name.to_owned());
    let signs = ask("nothing read-signs", json!({}), None).await.unwrap_err();
    assert_eq!(signs.reads, [vec![field("imports"), field("\\u{1b}[2J\\u{0}\\u{202e}")], Vec::new()]);
    let nowhere = ask("nothing read-nowhere", json!({}), None).await.unwrap_err();
    let path = vec![field("imports"), field("none"), InputStep::Items, field("none")];
    assert_eq!(nowhere.reads, [path, vec![InputStep::Entries, InputStep::Items]]);
}

#[tokio::test]
async fn time_and_chance_are_those_of_the_job_and_of_nothing_else() {
    let engine = engine(json!({}), json!({}));
    let drawn =
        async |context: &TemplateContext, request: &RenderRequest| text(engine.render(request, context).await.unwrap());
    let here = context(None);
    assert_eq!(drawn(&here, &request("time answer")).await, "2026-11-21T02:10:49Z");
    assert_eq!(drawn(&here, &request("clock answer")).await, "1795227049");
    for what in ["chance answer", "hashes answer"] {
        let first = drawn(&here, &request(what)).await;
        assert_eq!(drawn(&here, &request(what)).await, first, "{what}: rendering again draws the same");
        let mut other_job = context(None);
        other_job.rng.seed = [8; 32];
        let other_name = RenderRequest { name: "other".into(), ..request(what) };
        let other_list = RenderRequest { execution: ExecutionKind::Export, ..request(what) };
        let others =
            [drawn(&other_job, &request(what)).await, drawn(&here, &other_name).await, drawn(&here, &other_list).await];
        assert!(!others.contains(&first), "{what}: {first} {others:?}");
    }
}

#[tokio::test]
async fn chance_is_charged_before_it_is_drawn() {
    let engine = engine(json!({}), json!({}));
    let error = ended(engine.render(&request("much-chance answer"), &context(None)).await);
    assert!(matches!(*error, Error::Limit { limit: BudgetLimit::HostCallBytes, .. }), "{error:?}");
}
