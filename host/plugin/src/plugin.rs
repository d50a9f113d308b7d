//! A registered component: its identity, grants and limits, and the calls that the host makes to it.

mod find_tests;
mod validate;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use orangery_blueprint::{
    gate::GateResult,
    plugins::{GateEngine, GateQuestion},
    rendering::{Findings, RenderFailure, RenderRequest, Rendered},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::{error::Fault, port::BoxFuture};
use orangery_ocm::Artifact;
use orangery_proposal::{
    Item, Proposal,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
};
use orangery_turns::{Tenant, off_the_executor};
use serde_json::Value;

use crate::{
    budget::Budget,
    bundled::BundledTerms,
    call::{self, CallImports, ComponentCall},
    call_figures::{CallFigures, OF_BLUEPRINTS},
    capability::{locked, postponed::Postponed, randomness::RandomnessState},
    component::{Component, Slot},
    convert,
    error::Error,
    export::{ExportAnswer, ExportRequest, Interface},
    registration::{ComponentBytes, Registered},
    sandbox::{AskedComponent, BundledComponent, ComponentOrigin, HeldComponent, LARGE_COMPONENT, Sandbox},
    transcript::Transcript,
    wasi::Randomness,
};

pub use find_tests::{TestCase, TestSubject};

/// A registered component. It is compiled when it is first needed, or before, in the background.
pub struct Plugin {
    identity: PluginIdentity,
    name: Arc<str>,
    grants: Arc<Grants>,
    budget: Budget,
    /// Where its calls are counted.
    figures: Arc<CallFigures>,
    ownership_labels: Vec<String>,
    /// What its registration says under `configuration`.
    configuration: Option<Value>,
    content: PluginComponent,
    /// Whether it is tried beside another one: its calls take turns of the host, and no place of the namespaces that they are for.
    is_candidate: bool,
    sandbox: Arc<Sandbox>,
}

/// Where the component of a plugin is.
enum PluginComponent {
    /// Here, and loaded once for all.
    Registered { bytes: ComponentBytes, origin: ComponentOrigin, slot: Arc<Slot> },
    /// Where its blueprint says.
    OfBlueprint(Arc<dyn Artifact>),
}

/// As much of a digest as people compare.
const SHORT_DIGEST: usize = "sha256:".len() + 12;

impl Plugin {
    /// Takes a registration over. Nothing is compiled yet.
    pub fn new(registered: Registered, sandbox: Arc<Sandbox>) -> Self {
        let Registered { registration, content, is_builtin, origin: _, is_pinned } = registered;
        let origin = if is_builtin { ComponentOrigin::Builtin } else { ComponentOrigin::Registered };
        let digest = content.digest();
        let name = registration.metadata.name;
        let spec = registration.spec;
        Self {
            configuration: spec.configuration,
            figures: sandbox.call_figures().of(&name),
            grants: Arc::new(spec.grants),
            budget: spec.limits,
            ownership_labels: spec.deployer.map(|deployer| deployer.ownership_labels).unwrap_or_default(),
            content: PluginComponent::Registered { bytes: content, origin, slot: sandbox.slot(origin, &digest) },
            identity: PluginIdentity { name: name.clone(), version: spec.version, digest, is_pinned },
            name: name.into(),
            is_candidate: false,
            sandbox,
        }
    }

    /// The same, tried beside another one (C-345).
    #[must_use]
    pub(crate) fn into_candidate(self) -> Self {
        Self { is_candidate: true, ..self }
    }

    /// The engine that a blueprint brings along. `name` is its file or its reference.
    pub(crate) fn of_blueprint(
        name: &str,
        component: Arc<dyn Artifact>,
        terms: &BundledTerms,
        sandbox: Arc<Sandbox>,
    ) -> Self {
        // A file of the blueprint is read for it.
        let digest = off_the_executor(|| component.digest().to_owned());
        Self {
            figures: sandbox.call_figures().of(OF_BLUEPRINTS),
            grants: terms.grants.clone(),
            budget: terms.budget.clone(),
            ownership_labels: Vec::new(),
            configuration: None,
            content: PluginComponent::OfBlueprint(component),
            // A digest is ASCII, so that every length is a boundary.
            identity: PluginIdentity {
                name: name.to_owned(),
                version: digest.chars().take(SHORT_DIGEST).collect(),
                digest,
                is_pinned: true,
            },
            name: name.into(),
            is_candidate: false,
            sandbox,
        }
    }

    /// What one call may spend.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The component, compiled.
    ///
    /// # Errors
    ///
    /// Why it is unusable.
    pub async fn component(&self) -> Result<Arc<Component>, Arc<Error>> {
        self.component_for(&None).await.map(|loaded| loaded.component)
    }

    /// The same for a call of a namespace, which waits for its turn where it is to be compiled. It is held until the call has ended.
    async fn component_for(&self, tenant: &Tenant) -> Result<HeldComponent, Arc<Error>> {
        let (identity, budget) = (&self.identity, &self.budget);
        match &self.content {
            PluginComponent::Registered { bytes: ComponentBytes::Bytes { bytes, .. }, origin, slot } => {
                let asked = AskedComponent { slot, origin: *origin, tenant, identity, budget, bytes };
                let loaded = slot.get_or_load(&origin.whose(tenant), || self.sandbox.load(asked)).await;
                loaded.map(HeldComponent::registered)
            }
            PluginComponent::Registered { bytes: ComponentBytes::Missing(error), .. } => Err(error.clone()),
            PluginComponent::OfBlueprint(content) => {
                let asked = BundledComponent { tenant, identity, budget, content: content.as_ref() };
                self.sandbox.load_bundled(asked).await
            }
        }
    }

    /// Whether to wait with it until something uses it: compiling it takes both processors and seconds.
    pub(crate) fn is_large(&self) -> bool {
        match &self.content {
            PluginComponent::Registered { bytes: ComponentBytes::Bytes { bytes, .. }, .. } => {
                bytes.size() > LARGE_COMPONENT
            }
            PluginComponent::Registered { bytes: ComponentBytes::Missing(_), .. } | PluginComponent::OfBlueprint(_) => {
                false
            }
        }
    }

    /// What the item needs, as the component says it.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer. The component's own fault is an answer.
    pub async fn plan(&self, item: &Item, reads: Reads) -> Result<Result<Proposal, Fault>, Arc<Error>> {
        let component = self.component_for(&Some(item.namespace.clone())).await?;
        if !component.exports(Interface::Deploy) {
            return Err(missing(Interface::Deploy));
        }
        let request = ExportRequest::Plan(convert::item(item, self.configuration.as_ref()));
        let answer = call::run(&self.sandbox, &component, self.deployer_call(item, reads), request).await?;
        self.proposal(answer)
    }

    /// What must happen before the inventory is deleted; `None` where the component has nothing to say about it.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer. The component's own fault is an answer.
    pub async fn uninstall(&self, item: &Item, reads: Reads) -> Result<Option<Result<Proposal, Fault>>, Arc<Error>> {
        let component = self.component_for(&Some(item.namespace.clone())).await?;
        if !component.exports(Interface::Uninstall) {
            return Ok(None);
        }
        let request = ExportRequest::Uninstall(convert::item(item, self.configuration.as_ref()));
        let answer = call::run(&self.sandbox, &component, self.deployer_call(item, reads), request).await?;
        Ok(Some(self.proposal(answer)?))
    }

    /// What the engine makes of a template.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer. The engine's own failure is an answer.
    pub async fn render(
        &self,
        request: &RenderRequest,
        context: &TemplateContext,
    ) -> Result<Result<Rendered, RenderFailure>, Arc<Error>> {
        let component = self.component_for(&context.namespace).await?;
        if !component.exports(Interface::Template) {
            return Err(missing(Interface::Template));
        }
        let call = self.renderer_call(request, context);
        let (postponed, transcript) = (call.postponed.clone(), call.transcript.clone());
        let wire = ExportRequest::Render(convert::request(request));
        let answer = call::run(&self.sandbox, &component, call, wire).await.and_then(|answer| match answer {
            ExportAnswer::Render(rendering) => Ok(rendering),
            _ => Err(Error::of_another_function()),
        });
        let words = locked(&transcript);
        match (answer, postponed.why()) {
            (Ok(Err(failure)), why) => {
                let failure = convert::render_failure(failure, &self.budget, &words)?;
                Ok(Err(RenderFailure { transient: why.is_some(), ..failure }))
            }
            // Whatever came of it, a later call is told something else.
            (Ok(Ok(_)) | Err(_), Some(why)) => Ok(Err(RenderFailure {
                message: words.message_of(why, why.len()),
                file: request.file.clone(),
                line: None,
                column: None,
                snippet: None,
                reads: Vec::new(),
                transient: true,
            })),
            (Ok(Ok(rendered)), None) => Ok(Ok(convert::rendered(rendered, &self.budget, &words)?)),
            (Err(error), None) => Err(Arc::new(error)),
        }
    }

    /// What the engine says of a template that it does not render; `None` where the component cannot tell.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer.
    pub async fn check(
        &self,
        request: &RenderRequest,
        context: &TemplateContext,
    ) -> Result<Option<Findings>, Arc<Error>> {
        let component = self.component_for(&context.namespace).await?;
        if !component.exports(Interface::Check) {
            return Ok(None);
        }
        let call = self.renderer_call(request, context);
        let transcript = call.transcript.clone();
        let wire = ExportRequest::Check(convert::request(request));
        let ExportAnswer::Check(found) = call::run(&self.sandbox, &component, call, wire).await? else {
            return Err(Arc::new(Error::of_another_function()));
        };
        let words = locked(&transcript);
        Ok(found.map(|found| convert::findings(found, &self.budget, &words)).transpose()?)
    }

    /// Whether a gate expression holds.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer.
    pub async fn evaluate(&self, question: &GateQuestion) -> Result<GateResult, Arc<Error>> {
        let component = self.component_for(&question.namespace).await?;
        if !component.exports(Interface::Gate) {
            return Err(missing(Interface::Gate));
        }
        // Same question, same answer: nothing is random, and the time is that of the question.
        let call = self.call(question.namespace.clone(), CallImports::Gate(0), since_epoch(question.now));
        let transcript = call.transcript.clone();
        let wire = ExportRequest::Evaluate(convert::question(question));
        let ExportAnswer::Evaluate(answer) = call::run(&self.sandbox, &component, call, wire).await? else {
            return Err(Arc::new(Error::of_another_function()));
        };
        Ok(convert::answered(answer, &self.budget, &locked(&transcript))?)
    }

    fn renderer_call(&self, request: &RenderRequest, context: &TemplateContext) -> ComponentCall<'_> {
        let reach = CallImports::Template(context.clone(), RandomnessState::new(&context.rng, request));
        self.call(context.namespace.clone(), reach, since_epoch(context.rng.now))
    }

    fn deployer_call(&self, item: &Item, reads: Reads) -> ComponentCall<'_> {
        let now: Option<Timestamp> = item.now.parse().ok();
        let tenant = Some(item.namespace.clone());
        let reach = CallImports::Deployer(reads, Randomness::of_item(item));
        self.call(tenant, reach, now.map(since_epoch).unwrap_or_default())
    }

    fn call(&self, tenant: Tenant, reach: CallImports, now: Duration) -> ComponentCall<'_> {
        ComponentCall {
            turns: tenant.clone().filter(|_| !self.is_candidate),
            tenant,
            by: &self.identity,
            figures: &self.figures,
            budget: &self.budget,
            grants: self.grants.clone(),
            reach,
            now,
            postponed: Postponed::default(),
            transcript: Arc::new(Mutex::new(Transcript::new(self.name.clone(), &self.budget))),
        }
    }

    fn proposal(&self, answer: ExportAnswer) -> Result<Result<Proposal, Fault>, Arc<Error>> {
        Ok(match answer {
            ExportAnswer::Plan(Ok(proposal)) => Ok(convert::proposal(proposal, &self.budget)?),
            ExportAnswer::Plan(Err(fault)) => Err(convert::fault(fault)),
            _ => return Err(Arc::new(Error::of_another_function())),
        })
    }

    fn fault(&self, error: &Error) -> Fault {
        let mut fault = error.fault(&self.identity);
        if let (PluginComponent::OfBlueprint(_), Error::Limit { .. }) = (&self.content, error)
            && let Fault::Invalid(text) | Fault::Later(text) | Fault::Denied(text) = &mut fault
        {
            text.message.push_str("; components of blueprints are registered as the template type Wasm");
        }
        fault
    }

    /// The host's reason why a template got no answer, as that of an engine.
    fn render_failure(&self, request: &RenderRequest, error: &Error) -> RenderFailure {
        let fault = self.fault(error);
        RenderFailure {
            message: fault.problem().message.clone(),
            file: request.file.clone(),
            line: None,
            column: None,
            snippet: None,
            reads: Vec::new(),
            transient: matches!(fault, Fault::Later(_)),
        }
    }
}

fn missing(interface: Interface) -> Arc<Error> {
    Arc::new(Error::Export { interface: interface.name() })
}

/// A time for the guest's clock; nothing was before the epoch.
fn since_epoch(now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
}

impl Deployer for Plugin {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn memory_mib(&self) -> u64 {
        self.budget.memory_mib
    }

    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn ownership_labels(&self) -> &[String] {
        &self.ownership_labels
    }

    fn plan<'a>(&'a self, item: &'a Item, reads: Reads) -> BoxFuture<'a, Result<Proposal, Fault>> {
        Box::pin(async move { Plugin::plan(self, item, reads).await.map_err(|error| self.fault(&error))? })
    }

    fn uninstall<'a>(&'a self, item: &'a Item, reads: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>> {
        Box::pin(
            async move { Plugin::uninstall(self, item, reads).await.map_err(|error| self.fault(&error))?.transpose() },
        )
    }
}

impl GateEngine for Plugin {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn memory_mib(&self) -> u64 {
        self.budget.memory_mib
    }

    fn evaluate<'a>(&'a self, question: &'a GateQuestion) -> BoxFuture<'a, Result<GateResult, Fault>> {
        Box::pin(async move { Plugin::evaluate(self, question).await.map_err(|error| self.fault(&error)) })
    }
}

impl TemplateEngine for Plugin {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn memory_mib(&self) -> u64 {
        self.budget.memory_mib
    }

    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        Box::pin(async move {
            let answer = Plugin::render(self, request, context).await;
            answer.map_err(|error| self.render_failure(request, &error))?
        })
    }

    fn check<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Option<Findings>, RenderFailure>> {
        Box::pin(async move {
            let answer = Plugin::check(self, request, context).await;
            answer.map_err(|error| self.render_failure(request, &error))
        })
    }
}
