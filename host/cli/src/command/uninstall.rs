//! `orangery uninstall`: what would hang or be left without the operator, and guards that nobody takes away any more (C-236, C-237).

mod left;

use std::fmt::Debug;

use clap::Args;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ListParams, PartialObjectMeta, Patch, PatchParams},
    core::NamespaceResourceScope,
};
use orangery_api::{
    FINALIZER, annotation::GUARD, context::Context, deploy_item::DeployItem, execution::Execution,
    installation::Installation, plugin::Plugin, sync::TargetSync, target::Target,
};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde::de::DeserializeOwned;
use serde_json::json;

use self::left::{GuardedObject, LeftObject, Leftovers};
use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::Connection,
    exit::Exit,
    operators,
    terminal::Terminal,
};

const EXAMPLES: &str = "\
Examples:
  orangery uninstall --check                    what would hang, and what would be left
  orangery uninstall --release-guards           the guards that would be taken off
  orangery uninstall --release-guards --yes     takes them off

While the operator runs, delete the Installations and wait until they are gone; then uninstall it. What it deployed goes in
this order alone. Guards are for when it is gone already: they keep Targets, Contexts, Secrets, ConfigMaps and Plugins, and only
an operator takes them away. Where Installations or what belongs to them are left in a namespace, its guards stay: who starts an
operator again needs what they keep to remove what was deployed.";

/// Secrets that the operator makes once in its own namespace.
const SEED: &str = "orangery-seed";
/// Objects in one page of a list.
const PAGE: u32 = 500;

/// Tells what would hang or be left once there is no operator any more, and takes guards off that nobody else would.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Uninstall {
    /// Tell what would hang and what would be left, and change nothing; the exit code is 1 where something would hang
    #[arg(long, required_unless_present = "release_guards", conflicts_with = "release_guards")]
    pub check: bool,
    /// Take the guards off in namespaces where nothing is left that uses what they keep
    #[arg(long)]
    pub release_guards: bool,
    /// Also in the other namespaces: what deployed objects are reached and removed by can be deleted then
    #[arg(long, requires = "release_guards")]
    pub in_use: bool,
    /// The Lease of the operator, where Leases of somebody else say that they are of one
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "release_guards")]
    pub lease: Option<String>,
    /// Do it, and not only tell what would be done
    #[arg(long, requires = "release_guards")]
    pub yes: bool,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Uninstall {
    /// Looks at all namespaces, and takes guards off where that is asked for.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let left = gather(client).await?;
        if !self.release_guards {
            left.lines().into_iter().try_for_each(|line| terminal.line(line))?;
            return Ok(if left.hangs() { Exit::Failed } else { Exit::Ok });
        }
        if let Some((lease, holder)) = left.holder(self.lease.as_deref()) {
            return Err(CommandError::OperatorRuns {
                holder: holder.name.clone(),
                namespace: lease.namespace.clone(),
                lease: lease.name.clone(),
                renewed: holder.renewed.clone(),
            });
        }
        let (release, stay): (Vec<_>, Vec<_>) =
            left.guarded.iter().partition(|guarded| self.in_use || !left.is_needed(guarded));
        for guarded in &release {
            if self.yes {
                guarded.release(client).await?;
            }
            let does = if self.yes { "has no guard any more" } else { "would have no guard any more" };
            terminal.line(format_args!("{guarded} {does}{}", left.consequence(guarded)))?;
        }
        for guarded in &stay {
            let place = if guarded.object.namespace.is_empty() { "" } else { " in its namespace" };
            terminal.warning(format_args!("{guarded} keeps its guard: {} is left{place}", left.user_of(guarded)));
        }
        match (release.is_empty(), self.yes) {
            (true, _) => terminal.note("nothing is to be done")?,
            (false, false) => terminal.note("nothing was changed; look at these, and say --yes to do it")?,
            (false, true) => {}
        }
        Ok(if stay.is_empty() { Exit::Ok } else { Exit::Failed })
    }
}

impl GuardedObject {
    /// Takes the guard off, under the version that was seen.
    async fn release(&self, client: &Client) -> Result<(), CallError> {
        match self.object.kind.as_str() {
            "Target" => self.release_as::<Target>(client).await,
            "Context" => self.release_as::<Context>(client).await,
            "Secret" => self.release_as::<Secret>(client).await,
            "Plugin" => self.release_in::<Plugin>(Api::all(client.clone())).await,
            _ => self.release_as::<ConfigMap>(client).await,
        }
    }

    async fn release_as<K>(&self, client: &Client) -> Result<(), CallError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.release_in::<K>(Api::namespaced(client.clone(), &self.object.namespace)).await
    }

    async fn release_in<K>(&self, api: Api<K>) -> Result<(), CallError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let LeftObject { kind, namespace, name } = &self.object;
        let others: Vec<&String> = self.finalizers.iter().filter(|finalizer| *finalizer != GUARD).collect();
        let metadata = json!({
            "finalizers": others,
            "labels": {(GUARD): null},
            "resourceVersion": self.version,
        });
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let released = api.patch_metadata(name, &PatchParams::default(), &patch).await;
        let group = K::group(&());
        let subject = CallSubject { kind, group: &group, namespace, name };
        match released.map_err(|error| CallError::of(subject, error)) {
            // It went meanwhile.
            Ok(_) | Err(CallError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Everything of a cluster that an operator would have to be there for, and what it leaves.
async fn gather(client: &Client) -> Result<Leftovers, CommandError> {
    let mut left = Leftovers { leases: operators::leases(client).await?, ..Leftovers::default() };
    left.at_work.extend(at_work::<Installation>(client).await?);
    left.at_work.extend(at_work::<Execution>(client).await?);
    left.at_work.extend(at_work::<DeployItem>(client).await?);
    left.at_work.extend(at_work::<TargetSync>(client).await?);
    left.guarded.extend(guarded::<Target>(client).await?);
    left.guarded.extend(guarded::<Context>(client).await?);
    left.guarded.extend(guarded::<Secret>(client).await?);
    left.guarded.extend(guarded::<ConfigMap>(client).await?);
    left.guarded.extend(guarded::<Plugin>(client).await?);
    let definitions = listed::<CustomResourceDefinition>(client, None).await?;
    let ours = |name: &String| name.ends_with(".landscaper.gardener.cloud") || name.ends_with(".orangery.dev");
    left.definitions = definitions.iter().map(|definition| definition.name_any()).filter(ours).count();
    for lease in &left.leases {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &lease.namespace);
        let (kind, name) = (Kind::from_static("Secret"), ObjectName::from(SEED));
        let subject = CallSubject { kind: &kind, group: "", namespace: &lease.namespace, name: &name };
        let found = secrets.get_metadata_opt(SEED).await.map_err(|error| CallError::of(subject, error))?;
        if found.is_some() {
            left.seeds.insert(format!("{}/{SEED}", lease.namespace));
        }
    }
    Ok(left)
}

/// The objects of a kind that hang when they are deleted without an operator.
async fn at_work<K>(client: &Client) -> Result<Vec<LeftObject>, CallError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let found = listed::<K>(client, None).await?;
    let held = found.iter().filter(|object| object.finalizers().iter().any(|finalizer| finalizer == FINALIZER));
    Ok(held.map(LeftObject::of).collect())
}

/// The objects of a kind that have the guard.
async fn guarded<K>(client: &Client) -> Result<Vec<GuardedObject>, CallError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let found = listed::<K>(client, Some(GUARD)).await?;
    let held = found.iter().filter(|object| object.finalizers().iter().any(|finalizer| finalizer == GUARD));
    let guarded = held.map(|object| GuardedObject {
        object: LeftObject::of(object),
        finalizers: object.finalizers().to_vec(),
        version: object.resource_version().unwrap_or_default(),
        is_deleting: object.metadata.deletion_timestamp.is_some(),
    });
    Ok(guarded.collect())
}

impl LeftObject {
    fn of<K: Resource<DynamicType = ()>>(object: &PartialObjectMeta<K>) -> Self {
        Self {
            kind: Kind::from(K::kind(&())),
            namespace: object.metadata.namespace.clone().unwrap_or_default().into(),
            name: object.metadata.name.clone().unwrap_or_default().into(),
        }
    }
}

/// The objects of a kind in all namespaces, with this label where one is named; none where the kind is not served any more.
async fn listed<K>(client: &Client, label: Option<&str>) -> Result<Vec<PartialObjectMeta<K>>, CallError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let (kind, group) = (Kind::from(K::kind(&())), K::group(&()));
    let namespace = Namespace::default();
    let subject = CallSubject { kind: &kind, group: &group, namespace: &namespace, name: ObjectName::EMPTY };
    let mut objects = Vec::new();
    let mut parameters = ListParams { label_selector: label.map(str::to_owned), ..ListParams::default().limit(PAGE) };
    loop {
        let page = match api.list_metadata(&parameters).await.map_err(|error| CallError::of(subject, error)) {
            Ok(page) => page,
            Err(CallError::NotServed { .. }) => return Ok(objects),
            Err(error) => return Err(error),
        };
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        objects.extend(page.items);
        match next {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(objects),
        }
    }
}
