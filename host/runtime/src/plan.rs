//! `orangery plan`: what the next job of an Installation or of a deploy item would do, as components and clusters answer.

mod job_rules;
mod observe;
mod opaque;
mod rollback;
pub(crate) mod tree;

use std::{
    fmt::Debug,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use kube::{Api, Client, Resource, ResourceExt as _, core::NamespaceResourceScope};
use orangery_api::{
    GROUP, annotation::SIGNED_ORIGIN, deploy_item::DeployItem, installation::Installation, marks::Marks as _,
};
use orangery_blueprint::plugins::Plugins;
use orangery_cli::{
    Exit, PlanArguments, Terminal,
    call::{CallError, CallSubject},
    command::plan::{PlanDocument, PlanSubject},
    command_error::CommandError,
    components,
    connection::ConnectionError,
    definitions::DefinitionError,
    folder::{self, FolderError, FolderManifest},
    offline::{LiveNamespace, NamespaceObjects, WorldError},
    repositories::RepositoriesError,
};
use orangery_controllers::{
    ActingAccounts, ControllerContext, HostKey, NamespacePolicies,
    deploy_item::{ItemDryRun, dry_run, dry_run_of_deletion},
    read_secret_values, stores,
};
use orangery_core::{
    masking::Masker,
    name::{Kind, Namespace, ObjectName},
    port::Rng as _,
};
use orangery_ocm::ComponentVersions;
use orangery_policy::Profile;
use serde::de::DeserializeOwned;

use self::tree::TreePlanning;
pub use self::{observe::observe, rollback::roll_back};
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
    /// The file or folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// An object of it has a wrong form.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The file has something else.
    #[error("{} is not planned: {why}", display(path))]
    NotPlanned {
        /// The file.
        path: PathBuf,
        /// Why, in a sentence with the fix.
        why: String,
    },
    /// The cluster does not answer the item.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What a job was made from cannot be had.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
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
            | PlanError::Folder(_)
            | PlanError::World(_)
            | PlanError::NotPlanned { .. } => Exit::Usage,
            PlanError::Definition(_)
            | PlanError::Call(_)
            | PlanError::Refused(_)
            | PlanError::Command(_)
            | PlanError::Detailed(_) => Exit::Failed,
        }
    }
}

fn display(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What is planned.
enum Planned {
    Item(Box<DeployItem>),
    Installations { root: ObjectName, installations: Vec<Installation>, manifests: Vec<FolderManifest> },
}

/// Carries `orangery plan` out.
///
/// # Errors
/// [`PlanError`], whose [`exit`](PlanError::exit) is the exit code.
pub async fn execute(arguments: PlanArguments, terminal: &mut Terminal) -> Result<Exit, PlanError> {
    if !arguments.detailed_exitcode {
        return plan(&arguments, terminal).await.map(|outcome| outcome.exit);
    }
    let outcome = plan(&arguments, terminal).await.map_err(|error| PlanError::Detailed(Box::new(error)))?;
    Ok(outcome.detailed_exit)
}

/// What a plan says by the exit code, where that is not asked for, and where it is (C-307).
struct PlanExits {
    exit: Exit,
    detailed_exit: Exit,
}

async fn plan(arguments: &PlanArguments, terminal: &mut Terminal) -> Result<PlanExits, PlanError> {
    let written = arguments.file.as_deref().map(read).transpose()?.unwrap_or_default();
    let plugins = components::of_command(arguments.plugins.as_deref())?;
    let components = arguments.repositories.open(&[])?;
    let (client, own_server) = own_connection(&arguments.connection).await?;
    let namespace = namespace(&client, arguments, &written);
    let planned = subject(&client, &namespace, arguments, written).await?;
    let plugins: Arc<dyn Plugins> = plugins;
    let planning = |policies| planning_host(&client, (Arc::clone(&plugins), Arc::clone(&components)), policies);
    let host = planning(policies(arguments.default_policy, own_server));
    read_secret_values(&host, &namespace).await;
    let notes: Vec<String> = read_policies(&host, &namespace).await.into_iter().collect();
    match planned {
        Planned::Item(item) => {
            let restricted = || planning(NamespacePolicies::new(Profile::Restricted));
            let plan = plan_of_item(&host, *item, notes, (arguments, restricted)).await?;
            plan.write(arguments, terminal)?;
            Ok(PlanExits { exit: Exit::Ok, detailed_exit: plan.detailed_exit() })
        }
        Planned::Installations { root, installations, manifests } => {
            let live = LiveNamespace::read(&client, &namespace).await?;
            let mut objects = live.objects.clone();
            objects.add(&manifests)?;
            let planning = TreePlanning { host, versions: components, namespace: namespace.clone(), live };
            let plans = if arguments.delete {
                planning.deletions(&installations).await
            } else {
                planning.jobs(objects, installations).await?
            };
            let plan = planning.with_job_rules(root, plans, notes).await;
            plan.write(arguments, terminal)?;
            let exit = if plan.fails() { Exit::Failed } else { Exit::Ok };
            Ok(PlanExits { exit, detailed_exit: plan.detailed_exit() })
        }
    }
}

/// A host that writes nothing, with components and component versions.
pub(crate) fn planning_host(
    client: &Client,
    (plugins, versions): (Arc<dyn Plugins>, Arc<dyn ComponentVersions>),
    policies: NamespacePolicies,
) -> Arc<ControllerContext> {
    let (stores, clock, rng) = ((client.clone(), stores()), Arc::new(SystemClock), Arc::new(OsChance));
    let key = HostKey::unknown(&OsChance.secret());
    let mut host = ControllerContext::new(stores, plugins, versions, clock, rng, key);
    // What may be looked at is for the rights of whoever asks.
    host.accounts = ActingAccounts::caller();
    host.policies = policies;
    Arc::new(host)
}

/// What the next job of an item would do, or its deletion. Where no default policy is named, what the other profile would refuse
/// is said as well.
async fn plan_of_item(
    host: &Arc<ControllerContext>,
    item: DeployItem,
    notes: Vec<String>,
    (arguments, restricted): (&PlanArguments, impl Fn() -> Arc<ControllerContext>),
) -> Result<PlanDocument, PlanError> {
    let name: (Namespace, ObjectName) = (item.namespace().unwrap_or_default().into(), item.name_any().into());
    let run = match arguments.delete {
        true => dry_run_of_deletion(host, item.clone()).await,
        false => dry_run(host, item.clone()).await,
    };
    let mut notes = notes;
    let has_default = arguments.default_policy.is_none() && host.policies.has_default(&name.0);
    if run.is_ok() && has_default && !arguments.delete {
        let refused = dry_run(&restricted(), item).await.err();
        notes.extend(refused.map(|halt| format!("where --default-policy is restricted, {}", refusal(&halt))));
    }
    let masker = host.secrets.masker(&name.0);
    let mut run = run.map_err(|halt| PlanError::Refused(masker.mask(&refusal(&halt)).into_owned()))?;
    run.notes.extend(notes);
    Ok(document(name, run, &masker))
}

/// The objects of a file or folder. Standard input is one document.
fn read(path: &Path) -> Result<Vec<FolderManifest>, PlanError> {
    if is_stdin(path) {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|cause| PlanError::Read { path: path.to_owned(), cause })?;
        return Ok(folder::of_text(path, &text)?);
    }
    Ok(folder::read(&[path.to_owned()])?)
}

/// The namespace that is asked for, else that of what is written, else that of the connection.
fn namespace(client: &Client, arguments: &PlanArguments, written: &[FolderManifest]) -> Namespace {
    let own = written.iter().find(|of| ["Installation", "DeployItem"].contains(&of.kind.as_str()));
    let own = own.and_then(|of| of.namespace.clone()).filter(|_| arguments.scope.namespace.is_none());
    own.unwrap_or_else(|| arguments.scope.namespace(client))
}

/// What is meant: written Installations or a written item, or what the cluster has under a name.
async fn subject(
    client: &Client,
    namespace: &Namespace,
    arguments: &PlanArguments,
    written: Vec<FolderManifest>,
) -> Result<Planned, PlanError> {
    let (wanted, name) = match (&arguments.name, &arguments.file) {
        (Some(PlanSubject::Any(name)), _) => (None, name.clone()),
        (Some(PlanSubject::Installation(name)), _) => (Some("Installation"), name.clone()),
        (Some(PlanSubject::Item(name)), _) => (Some("DeployItem"), name.clone()),
        (None, path) => return of_files(client, namespace, (path.as_deref().unwrap_or(Path::new("-")), written)).await,
    };
    if wanted != Some("DeployItem") {
        let installation = get::<Installation>(client, namespace, &name).await?;
        match installation {
            Some(installation) => {
                return Ok(Planned::Installations {
                    root: name,
                    installations: vec![installation],
                    manifests: written,
                });
            }
            None if wanted.is_some() => return Err(not_found(Kind::from_static("installation"), namespace, name)),
            None => {}
        }
    }
    match get::<DeployItem>(client, namespace, &name).await? {
        Some(item) => Ok(Planned::Item(Box::new(item))),
        None if wanted.is_some() => Err(not_found(Kind::from_static("deploy item"), namespace, name)),
        None => Err(not_found(Kind::from_static("installation or deploy item"), namespace, name)),
    }
}

fn not_found(kind: Kind, namespace: &Namespace, name: ObjectName) -> PlanError {
    CallError::NotFound { kind, namespace: namespace.clone(), name }.into()
}

/// The Installations of a folder, or the one deploy item of a file.
async fn of_files(
    client: &Client,
    namespace: &Namespace,
    (path, manifests): (&Path, Vec<FolderManifest>),
) -> Result<Planned, PlanError> {
    let other = |why: String| PlanError::NotPlanned { path: path.to_owned(), why };
    let (_, installations) = NamespaceObjects::of(&manifests)?;
    if let [first, ..] = installations.as_slice() {
        let root = first.name_any().into();
        return Ok(Planned::Installations { root, installations, manifests });
    }
    let mut items = manifests.iter().filter(|of| of.kind.as_str() == "DeployItem");
    let (Some(written), None) = (items.next(), items.next()) else {
        return Err(other(
            "it has neither an Installation nor one DeployItem; name a file or folder that has".to_owned(),
        ));
    };
    let written: DeployItem =
        serde_json::from_value(written.object.clone()).map_err(|error| other(format!("{error}; correct it")))?;
    let live = get::<DeployItem>(client, namespace, &written.name_any().into()).await?;
    Ok(Planned::Item(Box::new(over(live, written, namespace))))
}

/// An object, if it is there.
async fn get<K>(client: &Client, namespace: &Namespace, name: &ObjectName) -> Result<Option<K>, CallError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let kind = Kind::from(K::kind(&()).into_owned());
    api.get_opt(name)
        .await
        .map_err(|error| CallError::of(CallSubject { kind: &kind, group: GROUP, namespace, name }, error))
}

/// An item as it is written, with what the cluster knows of it.
fn over(live: Option<DeployItem>, mut written: DeployItem, namespace: &Namespace) -> DeployItem {
    written.metadata.namespace = Some(namespace.to_string());
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
    written
}

/// The plan without the secret values of the namespace (C-41).
fn document(name: (Namespace, ObjectName), run: ItemDryRun, masker: &Masker) -> PlanDocument {
    let ItemDryRun { plugin, effects, notes, unfinished, failure } = run;
    let notes = notes.iter().map(|note| masker.mask(note).into_owned()).collect();
    let objects = effects.into_iter().map(|effect| effect.display(masker)).collect();
    let failure = failure.map(|problem| masker.mask(&problem.message).into_owned());
    PlanDocument::new(name, plugin, objects, unfinished, failure).with_notes(notes)
}
