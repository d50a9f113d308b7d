//! One run: the calls that a job makes of the component, and what each proposes.

use data_encoding::BASE64;
use orangery_sdk::{
    ClusterRef, Completion, ExportRule, ExportSource, Fault, Gate, Host, Item, Next, ObjectKey, ObjectRemoval,
    ObjectWrite, Ownership, Problem, Proposal, Readiness, ReadinessRule, Scope, Selection, Stage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    configuration::{DeployerConfiguration, ProviderConfiguration},
    inputs, names,
    objects::{Run, status_head},
    outcome::{self, RunResult},
    pod::{Program, pod},
    state::{self, Piece},
};

/// How long an image may not be pulled before the item fails, in milliseconds: registries have bad moments.
const PULLED_WITHIN: u64 = 60_000;

/// What a program is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// To install or update.
    Reconcile,
    /// To take away what it has made.
    Delete,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Operation::Reconcile => "RECONCILE",
            Operation::Delete => "DELETE",
        }
    }
}

/// What a call hands to the next one of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Checkpoint {
    /// The pod was made.
    Run,
    /// An image could not be pulled, and there was time for that since.
    Pull,
}

impl Checkpoint {
    fn written(self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(bytes)
            .map_err(|error| outcome::failure(format!("the checkpoint of the last call cannot be read: {error}")))
    }
}

/// What an item needs.
pub(crate) fn plan(item: &Item, operation: Operation, host: &impl Host) -> Result<Proposal, Fault> {
    if operation == Operation::Delete && item.checkpoint.is_none() && !must_run(item) {
        return nothing_to_run(item, host);
    }
    let deployer = DeployerConfiguration::read(item)?;
    let config = ProviderConfiguration::read(&item.config()?)?;
    let run = Run {
        item,
        namespace: deployer.namespace.clone().unwrap_or_else(|| item.namespace.clone()),
        deployer: &deployer,
        on: ClusterRef::Host,
        name: names::pod(item, operation.word()),
        operation: operation.word(),
    };
    match item.checkpoint.as_deref().map(Checkpoint::read).transpose()? {
        None => begin(&run, &config, operation, host),
        Some(checkpoint) => go_on(&run, operation, checkpoint, host),
    }
}

/// Whether a deletion runs the program: not where the item never had a run that succeeded or left a state, and not where somebody
/// does not want it.
fn must_run(item: &Item) -> bool {
    let is_forced = item.annotations.iter().any(|(name, _)| *name == names::deployer_label("force-cleanup"));
    !is_forced && (last_success(item).is_some() || status(item).pointer("/podStatus/hasState").is_some())
}

/// The job whose run was the last one that succeeded.
fn last_success(item: &Item) -> Option<String> {
    status(item).pointer("/podStatus/lastSuccessfulJobID").and_then(Value::as_str).map(str::to_owned)
}

fn status(item: &Item) -> Value {
    item.status.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A deletion without a run: the state goes, and with the inventory everything else.
fn nothing_to_run(item: &Item, host: &impl Host) -> Result<Proposal, Fault> {
    let Ok(deployer) = DeployerConfiguration::read(item) else {
        return Ok(Proposal::finish(Vec::new(), Completion::default()));
    };
    let namespace = deployer.namespace.unwrap_or_else(|| item.namespace.clone());
    let on = ClusterRef::Host;
    let place = (&on, namespace.as_str());
    let pieces = state::pieces(item, place, host)?;
    let stages = removal(state::removals(pieces.iter().map(|piece| &piece.name), place), "state");
    Ok(Proposal::finish(stages, Completion::default()))
}

/// A stage that only removes; none where nothing is removed.
fn removal(removals: Vec<ObjectRemoval>, name: &str) -> Vec<Stage> {
    if removals.is_empty() {
        return Vec::new();
    }
    vec![Stage { removals, ..Stage::new(name, Vec::new(), Gate::Gone) }]
}

/// The first call: everything that the run needs, then its pod. Pods of earlier jobs end before.
fn begin(
    run: &Run<'_>,
    config: &ProviderConfiguration,
    operation: Operation,
    host: &impl Host,
) -> Result<Proposal, Fault> {
    let image = config.image.as_ref().or(run.deployer.default_image.as_ref()).ok_or_else(|| {
        Problem::configuration(
            "/image",
            "image is missing, and the deployer has no default image; name the image of the program",
        )
    })?;
    let parts = inputs::parts(config, host)?;
    let (pull_secrets, foreign) = pull_secrets(run, config, host)?;
    let states = state::newest(&state::pieces(run.item, run.place(), host)?);
    let earlier = earlier_pods(run, host)?;
    let program = Program {
        image,
        command: &config.command,
        args: &config.args,
        parts: parts.len(),
        states: &states,
        pull_secrets: &pull_secrets,
    };
    let object = pod(run, &program);
    let owned = if run.deployer.keeps_pods { Ownership::Kept } else { Ownership::Ephemeral };
    let write = ObjectWrite { owned, ..run.of_run(&object) };
    let mut stages = removal(earlier, "pods of earlier jobs");
    stages.push(Stage::new("what the pod needs", run.prerequisites(&parts, foreign.as_ref()), Gate::Accepted));
    stages.push(Stage { writes: vec![write], ..until_settled(run) });
    let mut proposal = Proposal::new(stages, Next::ContinueWith(Checkpoint::Run.written()));
    proposal.status = Some(provider_status(run, operation, None, last_success(run.item), has_state(run.item)));
    Ok(proposal)
}

/// The pod of the run until it has ended, or cannot begin.
fn until_settled(run: &Run<'_>) -> Stage {
    let check = Readiness {
        name: format!("the end of pod {}", run.name),
        on: run.on.clone(),
        scope: Scope::Keys(vec![key(run, "Pod", &run.name)]),
        rule: ReadinessRule::Expression(outcome::settled()),
        timeout: None,
    };
    Stage::new("run", Vec::new(), Gate::Ready(vec![check]))
}

fn key(run: &Run<'_>, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: Some(run.namespace.clone()),
        name: name.to_owned(),
    }
}

/// The removal of pods that earlier jobs of the item have left. Those of the original have a finalizer of its own.
fn earlier_pods(run: &Run<'_>, host: &impl Host) -> Result<Vec<ObjectRemoval>, Fault> {
    let what = Selection {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: Some(run.namespace.clone()),
        names: Vec::new(),
        labels: Some(names::selector(run.item)),
        fields: None,
    };
    let pods = host.list(&run.on, &what)?;
    let names = pods.iter().filter_map(|pod| pod.pointer("/metadata/name")?.as_str()).filter(|name| *name != run.name);
    Ok(names.map(|name| ObjectRemoval { key: key(run, "Pod", name), on: run.on.clone(), force: true }).collect())
}

/// The names of the Secrets with credentials for images, and one that is made of those in other namespaces.
fn pull_secrets(
    run: &Run<'_>,
    config: &ProviderConfiguration,
    host: &impl Host,
) -> Result<(Vec<String>, Option<Value>), Fault> {
    let context = ObjectKey {
        api_version: "landscaper.gardener.cloud/v1alpha1".to_owned(),
        kind: "Context".to_owned(),
        namespace: Some(run.item.namespace.clone()),
        name: run.item.context.clone(),
    };
    let context = host.get(&ClusterRef::Host, &context)?.unwrap_or_default();
    let of_context = context.get("registryPullSecrets").and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |of: &Value, field: &str| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_context = of_context.iter().map(|named| (run.item.namespace.clone(), text(named, "name")));
    let of_config = config.pull_secrets.iter().map(|named| (named.namespace.clone(), named.name.clone()));
    let (mut beside, mut auths) = (Vec::new(), Map::new());
    for (namespace, name) in of_context.chain(of_config) {
        if run.on == ClusterRef::Host && namespace == run.namespace {
            beside.push(name);
            continue;
        }
        let key = ObjectKey { namespace: Some(namespace), ..key(run, "Secret", &name) };
        // One that cannot be used is skipped, as with the original: the image may need none.
        auths.extend(host.get(&ClusterRef::Host, &key)?.as_ref().and_then(logins).unwrap_or_default());
    }
    beside.dedup();
    let foreign = (!auths.is_empty()).then(|| run.pull_secret(&auths));
    beside.extend(foreign.as_ref().and_then(|secret| secret.pointer("/metadata/name")?.as_str().map(str::to_owned)));
    Ok((beside, foreign))
}

fn logins(secret: &Value) -> Option<Map<String, Value>> {
    let encoded = secret.pointer("/data/.dockerconfigjson")?.as_str()?;
    let config: Value = serde_json::from_slice(&BASE64.decode(encoded.as_bytes()).ok()?).ok()?;
    config.get("auths")?.as_object().cloned()
}

/// A later call: the pod has ended, or cannot begin.
fn go_on(run: &Run<'_>, operation: Operation, checkpoint: Checkpoint, host: &impl Host) -> Result<Proposal, Fault> {
    let keys = [key(run, "Pod", &run.name), key(run, "Secret", &run.result())];
    let mut found = host.get_many(&run.on, &keys)?.into_iter();
    let (pod, result) = (found.next().flatten(), found.next().flatten());
    let Some(pod) = pod else {
        let message = format!(
            "its pod {} was deleted before its end was seen; find out who deletes it, and reconcile again",
            run.name
        );
        let mut proposal = Proposal::new(Vec::new(), Next::Fail(outcome::failure(message)));
        proposal.status = Some(provider_status(run, operation, None, last_success(run.item), has_state(run.item)));
        return Ok(proposal);
    };
    if !outcome::is_over(&pod) {
        let mut proposal = unfinished(run, checkpoint, &pod);
        proposal.status =
            Some(provider_status(run, operation, Some(&pod), last_success(run.item), has_state(run.item)));
        return Ok(proposal);
    }
    let result = result.as_ref().and_then(outcome::result);
    let pieces = state::pieces(run.item, run.place(), host)?;
    let (stages, is_stored) = in_order(run, &pieces, result.as_ref());
    let ended = match outcome::failed(&pod) {
        Some(problem) => Err(problem),
        None => exports(result),
    };
    let (next, succeeded) = match ended {
        Ok(exports) => (Next::Finish(Completion { exports, afterwards: Vec::new() }), Some(run.item.job.clone())),
        Err(problem) => (Next::Fail(problem), last_success(run.item)),
    };
    let mut proposal = Proposal::new(stages, next);
    proposal.status = Some(provider_status(run, operation, Some(&pod), succeeded, is_stored));
    Ok(proposal)
}

/// What is done while a pod has not ended: its images have some time, and then it is waited for again.
fn unfinished(run: &Run<'_>, checkpoint: Checkpoint, pod: &Value) -> Proposal {
    match outcome::kept(pod) {
        Some(kept) if kept.may_pass && checkpoint == Checkpoint::Run => {
            Proposal::new(Vec::new(), Next::AgainIn((PULLED_WITHIN, Checkpoint::Pull.written())))
        }
        Some(kept) => Proposal::new(Vec::new(), Next::Fail(kept.problem())),
        None => Proposal::new(vec![until_settled(run)], Next::ContinueWith(Checkpoint::Run.written())),
    }
}

/// What becomes of the states when a pod has ended, and whether there is one then: that of this run takes the place of those before,
/// and where the program has left none, no other one stays. Where nobody could store one, the last one stays.
fn in_order(run: &Run<'_>, pieces: &[Piece], result: Option<&RunResult>) -> (Vec<Stage>, bool) {
    let of_run = run.states();
    let (kept, is_stored): (Vec<String>, bool) = match result {
        Some(result) => (of_run.iter().take(result.state_pieces).cloned().collect(), result.state_pieces > 0),
        None => {
            let before = pieces.iter().map(|piece| &piece.name).filter(|name| !of_run.contains(name));
            let before: Vec<String> = before.cloned().collect();
            let has_state = !before.is_empty();
            (before, has_state)
        }
    };
    let leaving = pieces.iter().map(|piece| &piece.name).filter(|name| !kept.contains(name));
    (removal(state::removals(leaving, run.place()), "state"), is_stored)
}

/// What the program has exported: an object, or nothing.
fn exports(result: Option<RunResult>) -> Result<Vec<ExportRule>, Problem> {
    match result.and_then(|result| result.exports) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(document @ Value::Object(_)) => {
            Ok(vec![ExportRule { key: String::new(), source: ExportSource::Value(document.to_string()) }])
        }
        Some(_) => Err(outcome::failure(
            "the program has exported a document that is no object, and exports have names; write an object to EXPORTS_PATH".to_owned(),
        )),
    }
}

fn has_state(item: &Item) -> bool {
    status(item).pointer("/podStatus/hasState").is_some()
}

/// The provider status (contract B).
fn provider_status(
    run: &Run<'_>,
    operation: Operation,
    pod: Option<&Value>,
    succeeded: Option<String>,
    has_state: bool,
) -> String {
    let mut status = status_head();
    let mut pod_status = outcome::pod_status(&run.name, pod, succeeded.as_deref());
    if let Some(pod_status) = pod_status.as_object_mut().filter(|_| has_state) {
        pod_status.insert("hasState".to_owned(), json!(true));
    }
    status.insert("lastOperation".to_owned(), json!(operation.word()));
    status.insert("podStatus".to_owned(), pod_status);
    Value::Object(status).to_string()
}
