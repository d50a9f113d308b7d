//! Asking one gate expression: what it reads is gathered, and it is evaluated.

use std::sync::Arc;

use orangery_blueprint::plan::gate::{NOT_KNOWN_YET, Unanswered};
use orangery_blueprint::{
    gate::{self, ComponentGate, Definition, GateExpression, GateResult, NamedObject, Test},
    plugins::{GateQuestion, GateSubject},
};
use orangery_cluster::Observed;
use orangery_core::{
    error::{Failure, Fault},
    listing, memory,
    step::Halt,
    workflow::GateKind,
};
use orangery_policy::{PolicyRequest, PolicySubject};
use orangery_proposal::{ClusterRef, ObjectKey, deployer::PluginIdentity};
use serde_json::{Map, Value};

use super::{Evaluation, Evaluator, GateScope, Item, recorded::GateRecording, shadow::ShadowedGate};
use crate::exported_memory::ExportedMemory;

/// Bytes of memory of exports and status of items that are kept while the gate expressions of one object are asked.
const KEPT_RESULT_BYTES: u64 = 16 << 20;

impl<T: Sync> Evaluator<'_, T> {
    /// Asks one gate expression.
    pub(super) async fn answer(
        &self,
        scope: &impl GateScope,
        item: &Item<T>,
        gate: GateKind,
        gate_expression: &GateExpression,
        evaluation: &mut Evaluation,
    ) -> Result<GateResult, Unanswered> {
        let own = item.target.as_deref();
        match gate_expression.test() {
            Err(why) => Err(Unanswered::Lasting(Failure::new("AskGateExpression", "InvalidGateExpression", why))),
            Ok(Test::CrdPresent(definition)) => self.is_defined(definition, own).await,
            Ok(Test::Expression(source)) => {
                let expression = self.expressions.get(source).map_err(|why| {
                    Unanswered::Lasting(Failure::new("AskGateExpression", "InvalidGateExpression", why))
                })?;
                let reads = expression.reads();
                let document = match self.document(scope, item, gate_expression, &reads, evaluation).await? {
                    Ok(document) => document,
                    Err(unknown) => return Ok(unknown),
                };
                Ok(gate::evaluate(&expression, &document))
            }
            Ok(Test::Component(component)) => {
                self.ask_component(scope, (item, gate, gate_expression), component, evaluation).await
            }
        }
    }

    /// Asks a component.
    async fn ask_component(
        &self,
        scope: &impl GateScope,
        (item, gate, gate_expression): (&Item<T>, GateKind, &GateExpression),
        component: &ComponentGate,
        evaluation: &mut Evaluation,
    ) -> Result<GateResult, Unanswered> {
        let Some(evaluator) = self.host.plugins.gate_engine(&component.type_, self.namespace) else {
            let known = listing::listed(self.host.plugins.gate_types());
            let message = format!(
                "no component serves the gate type {:?}; known are: {known}; register one or correct the type",
                component.type_
            );
            return Err(Unanswered::Lasting(Failure::new("AskGateExpression", "UnknownGateType", message)));
        };
        let PluginIdentity { name, is_pinned, .. } = evaluator.identity();
        let memory = PolicyRequest::PluginMemory { plugin: name, mib: evaluator.memory_mib() };
        let unpinned = (!is_pinned).then_some(PolicyRequest::UnpinnedPlugin(name));
        for request in [memory].into_iter().chain(unpinned) {
            let checked = self.host.policies.check(self.namespace, PolicySubject::Installation, request);
            checked.map_err(|halt| match halt {
                Halt::Stall(failure) => Unanswered::Lasting(failure),
                Halt::Retry(failure) => Unanswered::Passing(failure),
                Halt::Wait(wait) => {
                    Unanswered::Passing(Failure::new("AskGateExpression", "PolicyUnknown", wait.to_string()))
                }
            })?;
        }
        let paths: Vec<Vec<&str>> = [gate::IMPORTS, gate::ITEM, gate::OBJECTS]
            .iter()
            .map(|root| vec![*root])
            .chain(item.depends_on().into_iter().map(|name| vec![gate::ITEMS, name]))
            .collect();
        let inputs = match self.document(scope, item, gate_expression, &paths, evaluation).await? {
            Ok(document) => document,
            Err(unknown) => return Ok(unknown),
        };
        let question = GateQuestion {
            namespace: Some(self.namespace.clone()),
            item: item.name.clone(),
            gate: GateSubject::Expression(gate),
            config: component.config.clone(),
            inputs,
            now: self.host.clock.now(),
        };
        let recorded = GateRecording::of(self.host, evaluator.identity(), &question);
        let turn = self.host.candidates.sample(evaluator.identity());
        let answered = evaluator.evaluate(&question).await;
        if let Some(turn) = turn {
            let (host, object) = (Arc::clone(self.host), self.object.clone());
            tokio::spawn(ShadowedGate { host, object, question, answer: answered.clone() }.make(turn));
        }
        if let (Some(recorded), Ok(result)) = (recorded, &answered) {
            Box::pin(recorded.keep(self.host, result)).await;
        }
        answered.map_err(|fault| {
            let problem = fault.problem();
            let message = format!("component {problem}");
            let mut failure = Failure::new("AskGateExpression", "ComponentFailed", message);
            failure.codes.extend(fault.code());
            if matches!(fault, Fault::Later(_)) { Unanswered::Passing(failure) } else { Unanswered::Lasting(failure) }
        })
    }

    /// The values that a gate expression reads: `Ok(Err(…))` where one of them is not known yet.
    async fn document(
        &self,
        scope: &impl GateScope,
        item: &Item<T>,
        gate_expression: &GateExpression,
        reads: &[Vec<&str>],
        evaluation: &mut Evaluation,
    ) -> Result<Result<Map<String, Value>, GateResult>, Unanswered> {
        let imports = self.imports.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut document = Map::new();
        document.insert(gate::IMPORTS.to_owned(), Value::Object(imports));
        let mut looked_at = ExportedMemory::new(self.namespace, "what the gate expression looks at");
        let mut items = Map::new();
        for path in reads.iter().filter(|path| path.first() == Some(&gate::ITEMS)) {
            for name in path.get(1).map_or_else(|| item.depends_on(), |name| vec![*name]) {
                if !items.contains_key(name) {
                    let results = self.results(scope, name, evaluation).await?;
                    looked_at.take(memory::of(&results)).await.map_err(unanswered)?;
                    items.insert(name.to_owned(), results);
                }
            }
        }
        document.insert(gate::ITEMS.to_owned(), Value::Object(items));
        if reads.iter().any(|path| path.first() == Some(&gate::ITEM)) {
            document.insert(gate::ITEM.to_owned(), self.results(scope, &item.name, evaluation).await?);
        }
        let own = item.target.as_deref();
        let mut objects = Map::new();
        for (name, object) in &gate_expression.objects {
            match self.object(object, own).await? {
                Ok(value) => {
                    looked_at.take(memory::of(&value)).await.map_err(unanswered)?;
                    objects.insert(name.clone(), value)
                }
                Err(unknown) => return Ok(Err(unknown)),
            };
        }
        document.insert(gate::OBJECTS.to_owned(), Value::Object(objects));
        Ok(Ok(document))
    }

    async fn results(
        &self,
        scope: &impl GateScope,
        name: &str,
        evaluation: &mut Evaluation,
    ) -> Result<Value, Unanswered> {
        if let Some(known) = evaluation.results.get(name) {
            return Ok(known.clone());
        }
        let results = scope.results(name).await.map_err(unanswered)?;
        let bytes = evaluation.result_bytes.saturating_add(memory::of(&results));
        // Those beyond are read again.
        if bytes <= KEPT_RESULT_BYTES {
            evaluation.result_bytes = bytes;
            evaluation.results.insert(name.to_owned(), results.clone());
        }
        Ok(results)
    }

    /// A live object; null where it does not exist.
    async fn object(&self, object: &NamedObject, own: Option<&str>) -> Result<Result<Value, GateResult>, Unanswered> {
        let NamedObject { target, api_version, kind, namespace, name } = object;
        let on = cluster(target.as_deref(), own)?;
        let key = ObjectKey {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: (!namespace.is_empty()).then(|| namespace.clone()),
            name: name.clone(),
        };
        let text = if namespace.is_empty() { name.to_string() } else { format!("{namespace}/{name}") };
        Ok(match self.clusters.observe(&on, &key).await.map_err(unanswered)? {
            Observed::Present(object) => Ok(without_secrets(&object)),
            Observed::Absent | Observed::Gone(_) => Ok(Value::Null),
            Observed::Unknown => Err(GateResult::unknown(NOT_KNOWN_YET, format!("{kind} {text} is not known yet"))),
            Observed::Forbidden(why) | Observed::Unwatched(why) => {
                let message = format!("{kind} {text} cannot be watched on {on}: {why}", on = on_name(&on));
                Err(GateResult::unknown("ObjectNotVisible", message))
            }
        })
    }

    async fn is_defined(&self, definition: &Definition, own: Option<&str>) -> Result<GateResult, Unanswered> {
        let on = cluster(definition.target.as_deref(), own)?;
        Ok(match self.clusters.definitions(&on).await.map_err(unanswered)? {
            Ok(known) => gate::is_defined(definition, known.iter().map(AsRef::as_ref)),
            Err(Observed::Forbidden(why) | Observed::Unwatched(why)) => {
                let message = format!("CustomResourceDefinitions cannot be watched on {on}: {why}", on = on_name(&on));
                GateResult::unknown("ObjectNotVisible", message)
            }
            Err(Observed::Unknown | Observed::Absent | Observed::Gone(_) | Observed::Present(_)) => {
                GateResult::unknown(NOT_KNOWN_YET, "the definitions of the cluster are not known yet")
            }
        })
    }
}

fn unanswered(halt: Halt) -> Unanswered {
    match halt {
        Halt::Retry(failure) => Unanswered::Passing(failure),
        Halt::Stall(failure) => Unanswered::Lasting(failure),
        Halt::Wait(wait) => Unanswered::Passing(Failure::new("AskGateExpression", "Waiting", wait.to_string())),
    }
}

/// The cluster of an object: the named target, or the item's own.
fn cluster(target: Option<&str>, own: Option<&str>) -> Result<ClusterRef, Unanswered> {
    match target.or(own) {
        Some(name) => Ok(ClusterRef::Named(name.to_owned())),
        None => Err(Unanswered::Lasting(Failure::new(
            "AskGateExpression",
            "NoTargetDefined",
            "it looks at a cluster, but neither it nor the item names a target; set `target`",
        ))),
    }
}

fn on_name(on: &ClusterRef) -> String {
    match on {
        ClusterRef::Named(name) => format!("Target {name}"),
        ClusterRef::Target => "the item's target".to_owned(),
        ClusterRef::Host => "the host cluster".to_owned(),
    }
}

/// Of a Secret nobody needs the data to know that it is there, and whoever has it may show it.
fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && let Some(members) = object.as_object_mut()
    {
        members.remove("data");
        members.remove("stringData");
        let annotations = members.get_mut("metadata").and_then(|meta| meta.get_mut("annotations"));
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}
