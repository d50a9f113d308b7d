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
    former, inputs, names,
    objects::{Run, status_head},
    outcome::{self, RunResult},
    pod::{Program, pod},
    state::{self, Piece},
};

/// What Landscaper's deployer has left, as a stage is called.
const LEFTOVERS: &str = "what another deployer has left";

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Checkpoint {
    /// The pod was made.
    Run,
    /// An image could not be pulled, and there was time for that since.
    Pull,
    /// A pod of Landscaper's deployer runs for this job.
    Former(String),
    /// The same of an image of that pod.
    FormerPull(String),
}

impl Checkpoint {
    /// The same where an image could not be pulled and there was time for that since; `None` where this is that.
    fn after_pull(&self) -> Option<Self> {
        match self {
            Self::Run => Some(Self::Pull),
            Self::Former(pod) => Some(Self::FormerPull(pod.clone())),
            Self::Pull | Self::FormerPull(_) => None,
        }
    }

    /// The same before that.
    fn of_run(&self) -> Self {
        match self {
            Self::Run | Self::Pull => Self::Run,
            Self::Former(pod) | Self::FormerPull(pod) => Self::Former(pod.clone()),
        }
    }

    /// The pod of Landscaper's deployer, where it is one.
    fn former(&self) -> Option<&str> {
        match self {
            Self::Run | Self::Pull => None,
            Self::Former(pod) | Self::FormerPull(pod) => Some(pod),
        }
    }

    fn written(&self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(bytes)
            .map_err(|error| outcome::failure(format!("the checkpoint of the last call cannot be read: {error}")))
    }
}

/// What an item needs.
pub(crate) fn plan(item: &Item, operation: Operation, host: &impl Host) -> Result<Proposal, Fault> {
    let is_first = operation == Operation::Delete && item.checkpoint.is_none();
    let is_of_former = former::is_of_former(&status(item));
    if is_first && (is_forced(item) || !(has_run(item) || is_of_former)) {
        return nothing_to_run(item, host);
    }
    let deployer = DeployerConfiguration::read(item)?;
    let config = ProviderConfiguration::read(&item.config()?);
    if is_first && !has_run(item) && !has_pieces(item, place(item, &deployer, config.as_ref().ok()), host)? {
        return nothing_to_run(item, host);
    }
    let config = config?;
    if config.target_namespace.is_some() && item.target.is_none() {
        let problem =
            "the pod is to run on the cluster of the target, and the item has none; give it a target, or leave pod out";
        return Err(Problem::configuration("/pod/cluster", problem).into());
    }
    let run = Run::new(item, &deployer, place(item, &deployer, Some(&config)), operation.word());
    match item.checkpoint.as_deref().map(Checkpoint::read).transpose()? {
        None => begin(&run, &config, operation, host),
        Some(checkpoint) => go_on(&run, operation, &checkpoint, host),
    }
}

/// Where the pod of an item runs.
fn place(
    item: &Item,
    deployer: &DeployerConfiguration,
    config: Option<&ProviderConfiguration>,
) -> (ClusterRef, String) {
    match config.and_then(|config| config.target_namespace.clone()) {
        Some(namespace) => (ClusterRef::Target, namespace),
        None => (ClusterRef::Host, deployer.namespace.clone().unwrap_or_else(|| item.namespace.clone())),
    }
}

/// Whether somebody does not want the program to run for a deletion.
fn is_forced(item: &Item) -> bool {
    item.annotations.iter().any(|(name, _)| *name == names::deployer_label("force-cleanup"))
}

/// Whether the item had a run that succeeded or left a state: its deletion runs the program, and no other one does.
fn has_run(item: &Item) -> bool {
    last_success(item).is_some() || has_state(item)
}

/// Whether there is a state: the status of Landscaper's deployer does not say it.
fn has_pieces(item: &Item, (on, namespace): (ClusterRef, String), host: &impl Host) -> Result<bool, Fault> {
    Ok(!state::newest(&state::pieces(item, (&on, &namespace), host)?).is_empty())
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
    let config = item.config().ok().and_then(|config| ProviderConfiguration::read(&config).ok());
    let run = Run::new(item, &deployer, place(item, &deployer, config.as_ref()), Operation::Delete.word());
    let pieces = state::pieces(item, run.place(), host)?;
    let mut stages = removal(state::removals(pieces.iter().map(|piece| &piece.name), run.place()), "state");
    if former::is_of_former(&status(item)) {
        stages.extend(removal(pods_but(&run, &pods(&run, host)?, None), "pods of earlier jobs"));
        stages.extend(removal(former::leftovers(&run, host)?, LEFTOVERS));
    }
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
    let pods = pods(run, host)?;
    if let Some(former) = former::pod_of_job(&pods, run) {
        return Ok(wait_for_former(run, operation, &pods, former));
    }
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
    let mut stages = removal(pods_but(run, &pods, Some(&run.name)), "pods of earlier jobs");
    if former::is_of_former(&status(run.item)) {
        stages.extend(removal(former::leftovers(run, host)?, LEFTOVERS));
    }
    stages.push(Stage::new("what the pod needs", run.prerequisites(&parts, foreign.as_ref()), Gate::Accepted));
    stages.push(Stage::new("the rights of its container wait", vec![run.binding()], Gate::Accepted));
    stages.push(Stage { writes: vec![write], ..until_settled(run, &run.name) });
    let mut proposal = Proposal::new(stages, Next::ContinueWith(Checkpoint::Run.written()));
    proposal.status = Some(provider_status(run, operation, None, last_success(run.item), has_state(run.item)));
    Ok(proposal)
}

/// The pod that Landscaper's deployer has made for this job counts for it. What else there is of pods ends.
fn wait_for_former(run: &Run<'_>, operation: Operation, pods: &[Value], former: String) -> Proposal {
    let mut stages = removal(pods_but(run, pods, Some(&former)), "pods of earlier jobs");
    stages.push(until_settled(run, &former));
    let pod = pods.iter().find(|pod| pod.pointer("/metadata/name").is_some_and(|name| *name == former));
    let run = &run.with_pod(&former);
    let mut proposal = Proposal::new(stages, Next::ContinueWith(Checkpoint::Former(former).written()));
    proposal.status = Some(provider_status(run, operation, pod, last_success(run.item), has_state(run.item)));
    proposal
}

/// The pod of the run until it has ended, or cannot begin.
fn until_settled(run: &Run<'_>, pod: &str) -> Stage {
    let check = Readiness {
        name: format!("the end of pod {pod}"),
        on: run.on.clone(),
        scope: Scope::Keys(vec![key(run, "Pod", pod)]),
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

/// The pods of the item.
fn pods(run: &Run<'_>, host: &impl Host) -> Result<Vec<Value>, Fault> {
    let what = Selection {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: Some(run.namespace.clone()),
        names: Vec::new(),
        labels: Some(names::selector(run.item)),
        fields: None,
    };
    host.list(&run.on, &what)
}

/// The removal of pods but for one. Those of Landscaper's deployer have a finalizer of its own.
fn pods_but(run: &Run<'_>, pods: &[Value], but: Option<&str>) -> Vec<ObjectRemoval> {
    let names = pods.iter().filter_map(|pod| pod.pointer("/metadata/name")?.as_str());
    let names = names.filter(|name| Some(*name) != but);
    names.map(|name| ObjectRemoval { key: key(run, "Pod", name), on: run.on.clone(), force: true }).collect()
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
        // Where the pods of all namespaces share one, its Secrets are others': they are read as the item's account.
        let is_own = run.namespace == run.item.namespace;
        if is_own && run.on == ClusterRef::Host && namespace == run.namespace {
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
fn go_on(run: &Run<'_>, operation: Operation, checkpoint: &Checkpoint, host: &impl Host) -> Result<Proposal, Fault> {
    let former = checkpoint.former();
    let run = &former.map_or_else(|| run.clone(), |pod| run.with_pod(pod));
    let of_exports = if former.is_some() { former::exports_key(run) } else { key(run, "Secret", &run.result()) };
    let mut found = host.get_many(&run.on, &[key(run, "Pod", &run.name), of_exports])?.into_iter();
    let (pod, left) = (found.next().flatten(), found.next().flatten());
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
    let pieces = state::pieces(run.item, run.place(), host)?;
    let (mut stages, is_stored, exported) = if former.is_some() {
        let exported = left.as_ref().and_then(|left| former::exports(left, &pod)).transpose();
        (Vec::new(), !state::newest(&pieces).is_empty(), exported.map_err(not_a_document))
    } else {
        let result = left.as_ref().and_then(outcome::result);
        let (stages, is_stored) = in_order(run, &pieces, result.as_ref());
        (stages, is_stored, Ok(result.and_then(|result| result.exports)))
    };
    if former.is_some() {
        stages.extend(removal(pods_but(run, std::slice::from_ref(&pod), None), "the pod"));
        stages.extend(removal(former::leftovers(run, host)?, LEFTOVERS));
    }
    let ended = match outcome::failed(&pod) {
        Some(problem) => Err(problem),
        None => exported.and_then(exports),
    };
    let (next, succeeded) = match ended {
        Ok(exports) => (Next::Finish(Completion { exports, afterwards: Vec::new() }), Some(run.item.job.clone())),
        Err(problem) => (Next::Fail(problem), last_success(run.item)),
    };
    let mut proposal = Proposal::new(stages, next);
    proposal.status = Some(provider_status(run, operation, Some(&pod), succeeded, is_stored));
    Ok(proposal)
}

fn not_a_document(error: String) -> Problem {
    outcome::failure(format!(
        "what the program has exported is neither JSON nor YAML: {error}; write one document to EXPORTS_PATH"
    ))
}

/// What is done while a pod has not ended: its images have some time, and then it is waited for again.
fn unfinished(run: &Run<'_>, checkpoint: &Checkpoint, pod: &Value) -> Proposal {
    match (outcome::kept(pod), checkpoint.after_pull()) {
        (Some(kept), Some(after)) if kept.may_pass => {
            Proposal::new(Vec::new(), Next::AgainIn((PULLED_WITHIN, after.written())))
        }
        (Some(kept), _) => Proposal::new(Vec::new(), Next::Fail(kept.problem())),
        (None, _) => {
            let next = Next::ContinueWith(checkpoint.of_run().written());
            Proposal::new(vec![until_settled(run, &run.name)], next)
        }
    }
}

/// What becomes of the states when a pod has ended, and whether there is one then: that of this run is kept from now on and takes the
/// place of those before, and where the program has left none, no other one stays. Where nobody could store one, the last one stays.
/// What was made for a state of this run and is not kept goes with the job.
fn in_order(run: &Run<'_>, pieces: &[Piece], result: Option<&RunResult>) -> (Vec<Stage>, bool) {
    let of_run = run.states();
    let before = || pieces.iter().map(|piece| &piece.name).filter(|name| !of_run.contains(name));
    let Some(result) = result else { return (Vec::new(), before().next().is_some()) };
    let keeps = of_run.iter().take(result.state_pieces).map(|name| run.kept_state(name));
    let stage =
        Stage { removals: state::removals(before(), run.place()), ..Stage::new("state", keeps.collect(), Gate::Gone) };
    let stages = if stage.removals.is_empty() && stage.writes.is_empty() { Vec::new() } else { vec![stage] };
    (stages, result.state_pieces > 0)
}

/// What the program has exported: an object, or nothing.
fn exports(document: Option<Value>) -> Result<Vec<ExportRule>, Problem> {
    match document {
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
    let conditions = pod.map(outcome::conditions).unwrap_or_default();
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), json!(conditions));
    }
    Value::Object(status).to_string()
}
