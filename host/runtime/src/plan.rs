//! `orangery plan`: what the next job of a deploy item would do, as its component and its clusters answer.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use kube::{Api, Client, ResourceExt as _};
use orangery_api::{GROUP, annotation::SIGNED_ORIGIN, deploy_item::DeployItem, marks::Marks as _};
use orangery_apply::Effect;
use orangery_blueprint::plugins::Plugins;
use orangery_cli::{
    Exit, PlanArguments, Terminal,
    call::{CallError, CallSubject},
    command::plan::{PlanDocument, PlannedObject},
    command_error::CommandError,
    components,
    connection::ConnectionError,
    repositories::RepositoriesError,
};
use orangery_controllers::{
    ActingAccounts, ControllerContext, HostKey, NamespacePolicies,
    deploy_item::{ItemDryRun, dry_run},
    read_secret_values, stores,
};
use orangery_core::{
    masking::Masker,
    name::{Kind, Namespace, ObjectName},
    port::Rng as _,
    yaml,
};
use orangery_policy::Profile;

use crate::{
    caller::{own_connection, policies, read_policies, refusal},
    components::ComponentsError,
    machine::{OsChance, SystemClock},
};

/// Why there is no plan: one sentence, and an exit code.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A component cannot be registered.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// Component versions cannot be had as the flags say.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// No cluster is meant.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The file cannot be read.
    #[error("{} cannot be read: {cause}", display(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file has something else.
    #[error("{} is no deploy item: {why}", display(path))]
    NotAnItem {
        /// The file.
        path: PathBuf,
        /// Why, in a sentence with the fix.
        why: String,
    },
    /// The cluster does not answer the item.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The component has no answer, or what it answered cannot be held against the clusters.
    #[error("{0}")]
    Refused(String),
    /// The output.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Any of these, where 2 means that something is to be done (C-307).
    #[error(transparent)]
    Detailed(Box<PlanError>),
}

impl PlanError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            PlanError::Components(_)
            | PlanError::Repositories(_)
            | PlanError::Connection(_)
            | PlanError::Read { .. }
            | PlanError::NotAnItem { .. } => Exit::Usage,
            PlanError::Call(_) | PlanError::Refused(_) | PlanError::Command(_) | PlanError::Detailed(_) => Exit::Failed,
        }
    }
}

fn display(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Carries `orangery plan` out.
///
/// # Errors
/// [`PlanError`], whose [`exit`](PlanError::exit) is the exit code.
pub async fn execute(arguments: PlanArguments, terminal: &mut Terminal) -> Result<Exit, PlanError> {
    if !arguments.detailed_exitcode {
        return plan(arguments, terminal).await.map(|_| Exit::Ok);
    }
    let plan = plan(arguments, terminal).await.map_err(|error| PlanError::Detailed(Box::new(error)))?;
    Ok(plan.detailed_exit())
}

async fn plan(arguments: PlanArguments, terminal: &mut Terminal) -> Result<PlanDocument, PlanError> {
    let written = arguments.file.as_deref().map(read).transpose()?;
    let plugins = components::of_command(arguments.plugins.as_deref())?;
    let components = arguments.repositories.open(&[])?;
    let (client, own_server) = own_connection(&arguments.connection).await?;
    let item = item(&client, &arguments, written).await?;
    let name = (item.namespace().unwrap_or_default().into(), item.name_any().into());
    let plugins: Arc<dyn Plugins> = plugins;
    let planning = |policies| {
        let (stores, clock, rng) = ((client.clone(), stores()), Arc::new(SystemClock), Arc::new(OsChance));
        let key = HostKey::unknown(&OsChance.secret());
        let (plugins, components) = (Arc::clone(&plugins), Arc::clone(&components));
        let mut host = ControllerContext::new(stores, plugins, components, clock, rng, key);
        // What may be looked at is for the rights of whoever asks.
        host.accounts = ActingAccounts::caller();
        host.policies = policies;
        Arc::new(host)
    };
    let host = planning(policies(arguments.default_policy, own_server));
    read_secret_values(&host, &name.0).await;
    let mut notes: Vec<String> = read_policies(&host, &name.0).await.into_iter().collect();
    let run = dry_run(&host, item.clone()).await;
    if run.is_ok() && arguments.default_policy.is_none() && host.policies.has_default(&name.0) {
        let refused = dry_run(&planning(NamespacePolicies::new(Profile::Restricted)), item).await.err();
        notes.extend(refused.map(|halt| format!("where --default-policy is restricted, {}", refusal(&halt))));
    }
    let masker = host.secrets.masker(&name.0);
    let mut run = run.map_err(|halt| PlanError::Refused(masker.mask(&refusal(&halt)).into_owned()))?;
    run.notes.extend(notes);
    let document = document(name, run, &masker);
    document.write(&arguments, terminal)?;
    Ok(document)
}

fn read(path: &Path) -> Result<DeployItem, PlanError> {
    let unread = |cause| PlanError::Read { path: path.to_owned(), cause };
    let text = if is_stdin(path) {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(unread)?;
        text
    } else {
        fs::read_to_string(path).map_err(unread)?
    };
    let other = |why: String| PlanError::NotAnItem { path: path.to_owned(), why };
    let value = yaml::decode(&text).map_err(|error| other(format!("it is no YAML: {error}")))?;
    let kind = value.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    if kind != "DeployItem" {
        let why = format!("it has the kind {kind:?}; name a file with one DeployItem");
        return Err(other(why));
    }
    serde_json::from_value(value).map_err(|error| other(format!("{error}; correct it")))
}

/// The item as the cluster has it; of one that is written in a file, what the cluster knows of it.
async fn item(
    client: &Client,
    arguments: &PlanArguments,
    written: Option<DeployItem>,
) -> Result<DeployItem, PlanError> {
    let own = written.as_ref().and_then(DeployItem::namespace).filter(|_| arguments.scope.namespace.is_none());
    let namespace = own.map_or_else(|| arguments.scope.namespace(client), Namespace::from);
    let name = written.as_ref().map(DeployItem::name_any).or_else(|| arguments.name.clone()).unwrap_or_default();
    let api: Api<DeployItem> = Api::namespaced(client.clone(), &namespace);
    let subject = CallSubject {
        kind: &Kind::from_static("DeployItem"),
        group: GROUP,
        namespace: &namespace,
        name: &ObjectName::from(&name),
    };
    let live = api.get_opt(&name).await.map_err(|error| CallError::of(subject, error))?;
    match (written, live) {
        (None, Some(live)) => Ok(live),
        (None, None) => {
            let kind = Kind::from_static("deploy item");
            Err(CallError::NotFound { kind, namespace, name: name.into() }.into())
        }
        (Some(mut written), live) => {
            written.metadata.namespace = Some(namespace.into());
            // A mark is good for the very spec that it was made for (C-69).
            let unchanged = live.as_ref().filter(|live| live.spec == written.spec);
            let mark = unchanged.and_then(|live| live.annotation(SIGNED_ORIGIN)).map(str::to_owned);
            let annotations = written.metadata.annotations.get_or_insert_default();
            annotations.remove(SIGNED_ORIGIN);
            annotations.extend(mark.map(|mark| (SIGNED_ORIGIN.to_owned(), mark)));
            if let Some(live) = live {
                written.metadata.uid = live.metadata.uid;
                written.metadata.labels = written.metadata.labels.or(live.metadata.labels);
                written.status = live.status;
            }
            Ok(written)
        }
    }
}

/// The plan without the secret values of the namespace (C-41).
fn document(name: (Namespace, ObjectName), run: ItemDryRun, masker: &Masker) -> PlanDocument {
    let ItemDryRun { plugin, effects, notes, unfinished, failure } = run;
    let notes = notes.iter().map(|note| masker.mask(note).into_owned()).collect();
    let objects = effects.into_iter().map(|effect| planned(effect, masker)).collect();
    let failure = failure.map(|problem| masker.mask(&problem.message).into_owned());
    PlanDocument::new(name, plugin, objects, unfinished, failure).with_notes(notes)
}

fn planned(effect: Effect, masker: &Masker) -> PlannedObject {
    let Effect { located, action, mut before, mut after, stage, ephemeral } = effect;
    before.iter_mut().chain(&mut after).for_each(|object| masker.mask_value(object));
    let mut key = located.key;
    key.name = masker.mask(&key.name).into_owned().into();
    PlannedObject::new(action, &located.on, &key, before.as_ref(), after.as_ref()).in_stage(stage, ephemeral)
}
