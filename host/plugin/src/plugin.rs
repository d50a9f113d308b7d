//! A registered component: its identity, grants and limits, and the calls that the host makes to it.

mod find_tests;

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
use orangery_proposal::{
    Item, Proposal,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
};

use crate::{
    bindings::template::exports::orangery::template::template,
    budget::Budget,
    bundled::BundledTerms,
    call::{self, CallImports, ComponentCall},
    capability::{locked, postponed::Postponed, randomness::RandomnessState},
    component::{Component, Slot},
    convert,
    error::Error,
    registration::{ComponentBytes, Registered},
    sandbox::{ComponentOrigin, LARGE_COMPONENT, Sandbox, Tenant},
    transcript::Transcript,
};

pub use find_tests::{TestCase, TestSubject};

/// A registered component. It is compiled when it is first needed, or before, in the background.
pub struct Plugin {
    identity: PluginIdentity,
    name: Arc<str>,
    grants: Arc<Grants>,
    budget: Budget,
    ownership_labels: Vec<String>,
    content: ComponentBytes,
    origin: ComponentOrigin,
    slot: Arc<Slot>,
    sandbox: Arc<Sandbox>,
}

/// As much of a digest as people compare.
const SHORT_DIGEST: usize = "sha256:".len() + 12;

impl Plugin {
    /// Takes a registration over. Nothing is compiled yet.
    pub fn new(registered: Registered, sandbox: Arc<Sandbox>) -> Self {
        let Registered { registration, content, origin: _, is_pinned } = registered;
        let digest = content.digest();
        let name = registration.metadata.name;
        let spec = registration.spec;
        Self {
            grants: Arc::new(spec.grants),
            budget: spec.limits,
            ownership_labels: spec.deployer.map(|deployer| deployer.ownership_labels).unwrap_or_default(),
            content,
            origin: ComponentOrigin::Registered,
            slot: sandbox.slot(ComponentOrigin::Registered, &digest),
            identity: PluginIdentity { name: name.clone(), version: spec.version, digest, is_pinned },
            name: name.into(),
            sandbox,
        }
    }

    /// The engine that a blueprint brings along. `name` is its file or its reference.
    pub(crate) fn of_blueprint(name: &str, bytes: Vec<u8>, terms: &BundledTerms, sandbox: Arc<Sandbox>) -> Self {
        let content = ComponentBytes::read(bytes);
        let digest = content.digest();
        Self {
            grants: terms.grants.clone(),
            budget: terms.budget.clone(),
            ownership_labels: Vec::new(),
            content,
            origin: ComponentOrigin::Blueprint,
            slot: sandbox.slot(ComponentOrigin::Blueprint, &digest),
            // A digest is ASCII, so that every length is a boundary.
            identity: PluginIdentity {
                name: name.to_owned(),
                version: digest.chars().take(SHORT_DIGEST).collect(),
                digest,
                is_pinned: true,
            },
            name: name.into(),
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
        self.component_for(&None).await
    }

    /// The same for a call of a namespace, which waits for its turn where it is to be compiled.
    async fn component_for(&self, tenant: &Tenant) -> Result<Arc<Component>, Arc<Error>> {
        match &self.content {
            ComponentBytes::Bytes { bytes, .. } => {
                self.slot.get_or_load(|| self.sandbox.load(self.origin, tenant, &self.identity, bytes)).await
            }
            ComponentBytes::Missing(error) => Err(error.clone()),
        }
    }

    /// Whether to wait with it until something uses it: compiling it takes both processors and seconds.
    pub(crate) fn is_large(&self) -> bool {
        matches!(&self.content, ComponentBytes::Bytes { bytes, .. } if bytes.len() > LARGE_COMPONENT)
    }

    /// What the item needs, as the component says it.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer. The component's own fault is an answer.
    pub async fn plan(&self, item: &Item, reads: Reads) -> Result<Result<Proposal, Fault>, Arc<Error>> {
        let component = self.component_for(&Some(item.namespace.clone())).await?;
        let Some(deploy) = component.deploy.clone() else {
            return Err(Arc::new(Error::Export { interface: "orangery:deployer/deploy" }));
        };
        let request = convert::item(item);
        let answer = call::run(&self.sandbox, &component, self.deployer_call(item, reads), |store, instance| {
            Box::pin(async move { deploy.load(&mut *store, &instance)?.call_plan(store, &request).await })
        });
        self.proposal(answer.await?)
    }

    /// What must happen before the inventory is deleted; `None` where the component has nothing to say about it.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer. The component's own fault is an answer.
    pub async fn uninstall(&self, item: &Item, reads: Reads) -> Result<Option<Result<Proposal, Fault>>, Arc<Error>> {
        let component = self.component_for(&Some(item.namespace.clone())).await?;
        let Some(uninstall) = component.uninstall.clone() else { return Ok(None) };
        let request = convert::item(item);
        let answer = call::run(&self.sandbox, &component, self.deployer_call(item, reads), |store, instance| {
            Box::pin(async move { uninstall.load(&mut *store, &instance)?.call_plan(store, &request).await })
        });
        Ok(Some(self.proposal(answer.await?)?))
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
        let Some(indices) = component.template.clone() else {
            return Err(Arc::new(Error::Export { interface: "orangery:template/template" }));
        };
        let call = self.renderer_call(request, context);
        let (postponed, transcript) = (call.postponed.clone(), call.transcript.clone());
        let wire: template::Request = convert::request(request);
        let answer = call::run(&self.sandbox, &component, call, |store, instance| {
            Box::pin(async move { indices.load(&mut *store, &instance)?.call_render(store, &wire).await })
        });
        let answer = answer.await;
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
        let Some(indices) = component.check.clone() else { return Ok(None) };
        let call = self.renderer_call(request, context);
        let transcript = call.transcript.clone();
        let wire: template::Request = convert::request(request);
        let answer = call::run(&self.sandbox, &component, call, |store, instance| {
            Box::pin(async move { indices.load(&mut *store, &instance)?.call_check(store, &wire).await })
        });
        let found = answer.await?;
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
        let Some(gate) = component.gate.clone() else {
            return Err(Arc::new(Error::Export { interface: "orangery:gate/gate" }));
        };
        // Same question, same answer: nothing is random, and the time is that of the question.
        let call = self.call(question.namespace.clone(), CallImports::Gate(0), since_epoch(question.now));
        let transcript = call.transcript.clone();
        let wire = convert::question(question);
        let answer = call::run(&self.sandbox, &component, call, |store, instance| {
            Box::pin(async move { gate.load(&mut *store, &instance)?.call_evaluate(store, &wire).await })
        });
        let answer = answer.await?;
        Ok(convert::answered(answer, &self.budget, &locked(&transcript))?)
    }

    fn renderer_call(&self, request: &RenderRequest, context: &TemplateContext) -> ComponentCall<'_> {
        let reach = CallImports::Template(context.clone(), RandomnessState::new(&context.rng, request));
        self.call(context.namespace.clone(), reach, since_epoch(context.rng.now))
    }

    fn deployer_call(&self, item: &Item, reads: Reads) -> ComponentCall<'_> {
        let now: Option<Timestamp> = item.now.parse().ok();
        let tenant = Some(item.namespace.clone());
        self.call(tenant, CallImports::Deployer(reads, item.seed), now.map(since_epoch).unwrap_or_default())
    }

    fn call(&self, tenant: Tenant, reach: CallImports, now: Duration) -> ComponentCall<'_> {
        ComponentCall {
            tenant,
            budget: &self.budget,
            grants: self.grants.clone(),
            reach,
            now,
            postponed: Postponed::default(),
            transcript: Arc::new(Mutex::new(Transcript::new(self.name.clone(), &self.budget))),
        }
    }

    fn proposal(
        &self,
        answer: Result<
            crate::bindings::deployer::orangery::deployer::plan::Proposal,
            crate::bindings::deployer::orangery::deployer::types::Fault,
        >,
    ) -> Result<Result<Proposal, Fault>, Arc<Error>> {
        Ok(match answer {
            Ok(proposal) => Ok(convert::proposal(proposal, &self.budget)?),
            Err(fault) => Err(convert::fault(fault)),
        })
    }

    fn fault(&self, error: &Error) -> Fault {
        let mut fault = error.fault(&self.identity);
        if let (ComponentOrigin::Blueprint, Error::Limit { .. }) = (self.origin, error)
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

/// A time for the guest's clock; nothing was before the epoch.
fn since_epoch(now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
}

impl Deployer for Plugin {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
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

    fn evaluate<'a>(&'a self, question: &'a GateQuestion) -> BoxFuture<'a, Result<GateResult, Fault>> {
        Box::pin(async move { Plugin::evaluate(self, question).await.map_err(|error| self.fault(&error)) })
    }
}

impl TemplateEngine for Plugin {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
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
