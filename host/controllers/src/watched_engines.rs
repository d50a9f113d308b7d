//! Calls of template engines that are recorded (C-355), or made with a candidate as well (C-356).
//!
//! A rendering may show anything that it was given, in any form. So what is recorded is not what was answered: the same engine is asked
//! once more with what the recording has, tokens in the place of what is secret and randomness of nobody, and that answer is kept.

mod noted_host;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::installation::Installation;
use orangery_blueprint::{
    import::{DataValue, Imported},
    plugins::Plugins,
    recorded::{RecordedHost, RecordedRendering, RenderAnswer, hide_places, rendering_differences},
    rendering::{Findings, RenderFailure, RenderRequest, Rendered},
    template_engine::{JobRandomness, TemplateContext, TemplateEngine},
};
use orangery_core::{name::Namespace, port::BoxFuture};
use orangery_ocm::Artifact;
use orangery_proposal::{
    deployer::{Deployer, PluginIdentity},
    recorded::{HiddenCall, NotHidden, SecretTokens, values_of_secrets},
};
use orangery_reconcile::Key;
use orangery_turns::off_the_executor;
use serde_json::{Value, json};

use self::noted_host::{NotedHost, NotedRendering};
use crate::{
    call_records::{CallRecording, CallRecords},
    candidates::{CandidateTurn, DIFFERS},
    controller_context::ControllerContext,
    event,
    hidden_call::read_values_once,
};

/// The components for the renderings of one Installation, of which some are recorded or compared.
pub(crate) struct WatchedPlugins(Arc<WatchedInstallation>);

struct WatchedInstallation {
    host: Arc<ControllerContext>,
    installation: Arc<Installation>,
    /// The imports that are no data of Secrets, and that no template has made.
    plain: BTreeSet<String>,
}

struct WatchedEngine {
    engine: Arc<dyn TemplateEngine>,
    of: Arc<WatchedInstallation>,
}

/// Why a call is not recorded.
#[derive(Debug, thiserror::Error)]
enum NotRecorded {
    #[error("{0}")]
    NotHidden(#[from] NotHidden),
    #[error("{0}")]
    Recording(String),
    #[error("with tokens in the place of what is secret it is not rendered")]
    OtherOutcome,
}

impl WatchedPlugins {
    /// For an Installation with these imports.
    pub(crate) fn new(
        host: &Arc<ControllerContext>,
        installation: &Arc<Installation>,
        imported: &BTreeMap<String, Imported>,
    ) -> Self {
        let mapped = &installation.spec.import_data_mappings;
        let is_plain = |import: &Imported| match import {
            Imported::Data(DataValue { secret, .. }) => secret.is_none(),
            Imported::Target(_) | Imported::TargetList(_) | Imported::TargetMap(_) => true,
        };
        let plain = imported.iter().filter(|(name, import)| is_plain(import) && !mapped.contains_key(*name));
        let plain = plain.map(|(name, _)| name.clone()).collect();
        Self(Arc::new(WatchedInstallation { host: Arc::clone(host), installation: Arc::clone(installation), plain }))
    }

    fn plugins(&self) -> &dyn Plugins {
        self.0.host.plugins.as_ref()
    }
}

impl Plugins for WatchedPlugins {
    fn deployer(&self, item_type: &str, namespace: &Namespace) -> Option<Arc<dyn Deployer>> {
        self.plugins().deployer(item_type, namespace)
    }

    fn template_engine(&self, template_type: &str, namespace: Option<&Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        let engine = self.plugins().template_engine(template_type, namespace)?;
        Some(Arc::new(WatchedEngine { engine, of: Arc::clone(&self.0) }))
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        self.plugins().bundled_engine(name, component)
    }

    fn bundled_memory_mib(&self) -> u64 {
        self.plugins().bundled_memory_mib()
    }

    fn template_types(&self) -> Vec<String> {
        self.plugins().template_types()
    }
}

impl TemplateEngine for WatchedEngine {
    fn identity(&self) -> &PluginIdentity {
        self.engine.identity()
    }

    fn memory_mib(&self) -> u64 {
        self.engine.memory_mib()
    }

    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        Box::pin(async move {
            let Some(namespace) = &context.namespace else { return self.engine.render(request, context).await };
            let host = &self.of.host;
            let records = host.call_records(self.engine.identity(), namespace);
            let turn = host.candidates.sample(self.engine.identity());
            if records.is_none() && turn.is_none() {
                return self.engine.render(request, context).await;
            }
            let noted = NotedHost::over(context, request, host.noted.none_of(&context.namespace));
            let answer = self.engine.render(request, &noted.context(context)).await;
            let kept = self.keep((request, context), noted.recorded(request, &context.rng), &answer, (records, turn));
            Box::pin(kept).await;
            answer
        })
    }

    fn check<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Option<Findings>, RenderFailure>> {
        self.engine.check(request, context)
    }
}

impl WatchedEngine {
    /// Has a candidate make a call that has ended, and keeps it. Why it cannot be kept is logged.
    async fn keep(
        &self,
        (request, context): (&RenderRequest, &TemplateContext),
        noted: Result<NotedRendering, &'static str>,
        answer: &Result<Rendered, RenderFailure>,
        (records, turn): (Option<Arc<dyn CallRecords>>, Option<CandidateTurn>),
    ) {
        // What is tried again by itself was not told all.
        if answer.as_ref().is_err_and(|failure| failure.transient) {
            return;
        }
        let host = &self.of.host;
        let key = Key::of(self.of.installation.as_ref());
        let kept = match noted {
            Ok(noted) => {
                if let Some(turn) = turn {
                    tokio::spawn(self.of.clone().shadow(turn, noted.copy(host), context.rng.clone(), answer.clone()));
                }
                match records {
                    Some(records) => self.record(records.as_ref(), &key, noted, answer.is_ok()).await,
                    None => Ok(()),
                }
            }
            Err(why) => {
                if let Some(turn) = turn {
                    host.candidates.tell(turn, &key.namespace, None, host.clock.now());
                }
                records.map_or(Ok(()), |_| Err(NotRecorded::Recording(why.to_owned())))
            }
        };
        if let Err(why) = kept {
            let (list, execution) = (request.execution.list(), &request.name);
            tracing::warn!(installation = %key, list, execution, %why, "a call is not recorded");
        }
    }

    /// Asks the engine once more, with what the recording has, and keeps that.
    async fn record(
        &self,
        records: &dyn CallRecords,
        key: &Key,
        noted: NotedRendering,
        is_rendered: bool,
    ) -> Result<(), NotRecorded> {
        let host = &self.of.host;
        let NotedRendering { mut recorded, held: _held } = noted;
        read_values_once(host, &key.namespace).await;
        let (hidden, masker) = off_the_executor(|| {
            let token = |text: &[u8]| {
                let masker = Default::default();
                SecretTokens { masker: &masker, key: host.key.tokens(), namespace: &key.namespace }.token(text)
            };
            let mut values = values_of_secrets(&json!(recorded));
            values.extend(hide_places(&mut recorded, &self.of.plain, &token));
            let masker = host.secrets.masker_with(&key.namespace, &values);
            let tokens = SecretTokens { masker: &masker, key: host.key.tokens(), namespace: &key.namespace };
            HiddenCall::of_documents(json!(recorded), Value::Null, tokens).map(|call| (call.request, masker))
        })?;
        let read: RecordedRendering = serde_json::from_value(hidden.clone()).map_err(|_| NotHidden::NoPlace)?;
        let (request, context) = RecordedHost::context(read).map_err(NotRecorded::Recording)?;
        let answer = self.engine.render(&request, &context).await;
        if answer.is_ok() != is_rendered {
            return Err(NotRecorded::OtherOutcome);
        }
        let answer = json!(RenderAnswer::from(answer));
        if off_the_executor(|| masker.finds(&answer.to_string())) {
            return Err(NotHidden::NoPlace.into());
        }
        let record = CallRecording {
            component: self.engine.identity().clone(),
            namespace: key.namespace.clone(),
            item: key.name.clone(),
            function: "render",
            at: host.clock.now(),
            call: HiddenCall { request: hidden, answer },
            content: Vec::new(),
        };
        off_the_executor(|| records.keep(record));
        Ok(())
    }
}

impl WatchedInstallation {
    /// Makes a call with a candidate, with the randomness of the job, and tells the Installation how the answers differ.
    async fn shadow(
        self: Arc<Self>,
        turn: CandidateTurn,
        noted: NotedRendering,
        rng: JobRandomness,
        answer: Result<Rendered, RenderFailure>,
    ) {
        let key = Key::of(self.installation.as_ref());
        let NotedRendering { recorded, held: _held } = noted;
        let found = match (turn.template_engine(), RecordedHost::context(recorded)) {
            (Some(candidate), Ok((request, context))) => {
                let context = TemplateContext { namespace: Some(key.namespace.clone()), rng, ..context };
                Some(candidate.render(&request, &context).await)
            }
            (None, _) | (_, Err(_)) => None,
        };
        let different = found.map(|found| rendering_differences(&answer, &found));
        if let Some(note) = self.host.candidates.tell(turn, &key.namespace, different, self.host.clock.now()) {
            event::tell(&self.host, self.installation.as_ref(), DIFFERS, &note);
        }
    }
}
