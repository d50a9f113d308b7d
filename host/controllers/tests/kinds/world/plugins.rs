//! The components of the tests: a deployer whose proposals stand in the configuration of its items, and a template engine.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use data_encoding::BASE64;
use orangery_blueprint::{
    plugins::Plugins,
    rendering::{Output, RenderFailure, RenderRequest, Rendered},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::Artifact;
use orangery_proposal::{
    Item, Proposal,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::objects::{ENGINE, SCRIPTED};

fn identity(name: &str) -> PluginIdentity {
    let (name, version, digest) = (name.to_owned(), "1.0".to_owned(), "sha256:0".to_owned());
    PluginIdentity { name, version, digest, is_pinned: true }
}

/// Answers `config.proposals[n]` at the call whose checkpoint is `[n]`; the first has none.
pub(crate) struct Scripted {
    identity: PluginIdentity,
    grants: Grants,
    labels: Vec<String>,
    pub(crate) calls: Mutex<Vec<Item>>,
    /// The calls before an uninstall.
    pub(crate) uninstalls: Mutex<Vec<Item>>,
    /// Whether proposals that are held back are answered.
    is_open: AtomicBool,
    called: Arc<Notify>,
}

/// The number of the proposal that a call asks for.
fn number(item: &Item) -> u8 {
    item.checkpoint.as_ref().and_then(|bytes| bytes.first()).copied().unwrap_or_default()
}

impl Scripted {
    pub(super) fn new(called: Arc<Notify>) -> Self {
        Self::granted(called, json!({"clusters": {"target": true}, "reads": [{}], "writes": [{}]}))
    }

    pub(super) fn granted(called: Arc<Notify>, grants: Value) -> Self {
        Self {
            identity: identity("scripted"),
            grants: serde_json::from_value(grants).unwrap(),
            labels: vec!["example.org/item".into()],
            calls: Mutex::default(),
            uninstalls: Mutex::default(),
            is_open: AtomicBool::new(false),
            called,
        }
    }

    /// From now on it answers what was closed.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    fn answer(&self, item: &Item) -> Result<Proposal, Fault> {
        self.calls.lock().unwrap().push(item.clone());
        self.called.notify_one();
        let proposal = item.config.pointer(&format!("/proposals/{}", number(item))).cloned();
        let mut proposal =
            proposal.ok_or_else(|| Fault::invalid(Code::ConfigurationProblem, "config.proposals is missing"))?;
        // `{"closed": PROPOSAL}` is not answered before the component is open.
        if let Some(then) = proposal.get_mut("closed").map(Value::take) {
            if !self.is_open.load(Ordering::SeqCst) {
                return Err(Fault::later(Code::Unfinished, "closed"));
            }
            proposal = then;
        }
        // `{"many": COUNT, "of": PROPOSAL}` has so many of its first write.
        if let Some(count) = proposal.get("many").and_then(Value::as_u64) {
            proposal = many(proposal["of"].take(), count);
        }
        Ok(serde_json::from_value(proposal).unwrap())
    }
}

/// The same with so many of the first write, each under a name of its own.
fn many(mut proposal: Value, count: u64) -> Value {
    let write = proposal["stages"][0]["writes"][0].take();
    let name = write["object"]["metadata"]["name"].as_str().unwrap_or_default();
    let numbered = (0..count).map(|number| {
        let mut write = write.clone();
        write["object"]["metadata"]["name"] = json!(format!("{name}-{number}"));
        write
    });
    proposal["stages"][0]["writes"] = numbered.collect();
    proposal
}

impl Deployer for Scripted {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn ownership_labels(&self) -> &[String] {
        &self.labels
    }

    fn plan<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Proposal, Fault>> {
        Box::pin(async move {
            // `{"endless": true}` is never answered.
            if item.config.pointer(&format!("/proposals/{}/endless", number(item))).is_some() {
                return std::future::pending().await;
            }
            self.answer(item)
        })
    }

    /// Answers `config.uninstalls[n]` like `plan`; nothing where there is none. `{"refused": MESSAGE}` is what a cluster has told it.
    fn uninstall<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>> {
        Box::pin(async move {
            self.uninstalls.lock().unwrap().push(item.clone());
            self.called.notify_one();
            let proposal = item.config.pointer(&format!("/uninstalls/{}", number(item))).cloned();
            if let Some(refused) = proposal.as_ref().and_then(|proposal| proposal["refused"].as_str()) {
                return Err(Fault::later(Code::Unauthorized, refused));
            }
            Ok(proposal.map(|proposal| serde_json::from_value(proposal).unwrap()))
        })
    }
}

/// An engine whose templates are JSON documents: `{"$input": POINTER}` is replaced by that value of the inputs. A document
/// `{"$fail": MESSAGE}` fails, `$state` is kept for the next job, and for `{"$credential": {"kind": …, "arguments": …}}` a
/// credential is asked for before anything is answered; its token takes the place of `TOKEN` in a message.
struct Renders(PluginIdentity);

/// The value with all inputs in their places.
fn filled(value: &Value, inputs: &Value) -> Value {
    match value {
        Value::Object(members) => match members.get("$input").and_then(Value::as_str) {
            Some(pointer) => inputs.pointer(pointer).cloned().unwrap_or_default(),
            None => Value::Object(members.iter().map(|(key, value)| (key.clone(), filled(value, inputs))).collect()),
        },
        Value::Array(elements) => elements.iter().map(|element| filled(element, inputs)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The token in a credential that was issued.
fn token(issued: &Value) -> String {
    let Some(kubeconfig) = issued["kubeconfig"].as_str() else { return String::new() };
    let kubeconfig: Value = serde_json::from_slice(&BASE64.decode(kubeconfig.as_bytes()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned()
}

fn failed(message: String) -> RenderFailure {
    RenderFailure { message, file: None, line: None, column: None, snippet: None, transient: false, reads: Vec::new() }
}

impl TemplateEngine for Renders {
    fn identity(&self) -> &PluginIdentity {
        &self.0
    }

    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        let template: Value = serde_json::from_str(&request.template).unwrap();
        let mut inputs = request.inputs.clone();
        inputs["state"] = request.state.clone().unwrap_or_default();
        let mut document = filled(&template, &inputs);
        let state = document.as_object_mut().and_then(|members| members.remove("$state"));
        let credential = document.as_object_mut().and_then(|members| members.remove("$credential"));
        let failure = document.get("$fail").and_then(Value::as_str).map(str::to_owned);
        Box::pin(async move {
            let asked = match &credential {
                Some(wanted) => {
                    let kind = wanted["kind"].as_str().unwrap_or_default();
                    context
                        .kubeconfigs
                        .issue_credential(kind, &wanted["arguments"])
                        .await
                        .map_err(|fault| fault.to_string())
                }
                None => Ok(Value::Null),
            };
            let failure =
                failure.map(|failure| failure.replace("TOKEN", &asked.as_ref().map(token).unwrap_or_default()));
            match failure.or(asked.err()) {
                Some(message) => Err(failed(message)),
                None => Ok(Rendered { output: Output::Document(document), state, warnings: Vec::new() }),
            }
        })
    }
}

/// The two of them.
pub(super) struct TestPlugins {
    deployer: Arc<Scripted>,
    engine: Arc<Renders>,
}

impl TestPlugins {
    pub(super) fn new(deployer: Arc<Scripted>) -> Self {
        Self { deployer, engine: Arc::new(Renders(identity("paths"))) }
    }
}

impl Plugins for TestPlugins {
    fn deployer(&self, item_type: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        (item_type == SCRIPTED).then(|| Arc::clone(&self.deployer) as Arc<dyn Deployer>)
    }

    fn template_engine(
        &self,
        template_type: &str,
        _: Option<&orangery_core::name::Namespace>,
    ) -> Option<Arc<dyn TemplateEngine>> {
        (template_type == ENGINE).then(|| Arc::clone(&self.engine) as Arc<dyn TemplateEngine>)
    }

    fn bundled_engine(&self, name: &str, _: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        unreachable!("{name}: no blueprint brings an engine along")
    }

    fn template_types(&self) -> Vec<String> {
        vec![ENGINE.to_owned()]
    }
}
