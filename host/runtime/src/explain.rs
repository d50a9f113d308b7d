//! `orangery explain`: where an object of a target cluster comes from, field by field.

mod chart;
mod inputs;
mod item;
mod search;

use std::sync::Arc;

use kube::{Client, ResourceExt as _};
use orangery_api::{deploy_item::DeployItem, marks::Marks as _};
use orangery_blueprint::{DEEPEST_MADE, plugins::Plugins};
use orangery_cli::{
    Exit, ExplainArguments, Terminal,
    chart_marks::ReleaseText,
    command::explain::{
        ConfigPlace, ExplainedField, ExplainedInput, ExplainedItem, ExplainedObject, Explanation, NotTriedInput,
        ObjectHolder, SubjectError, holder,
    },
    command_error::CommandError,
    components,
    connection::ConnectionError,
    offline::{LiveNamespace, WorldError},
    repositories::RepositoriesError,
};
use orangery_controllers::{
    ControllerContext,
    deploy_item::proposals::{ItemProposal, ItemProposals, ProposedObject},
    read_secret_values,
};
use orangery_core::{
    masking::Masker,
    name::{JobId, Namespace, ObjectName},
};
use orangery_proposal::{
    ObjectKey,
    field::{ObjectField, at, fields, managers},
    overlay::display,
};
use serde_json::Value;

use self::{
    chart::{NarrowedChart, release_text},
    inputs::RootInputs,
    item::{ExplainedSource, RenderedItem},
    search::{FieldSearch, Found},
};
use crate::{
    caller::{own_connection, policies, read_policies, refusal},
    components::ComponentsError,
    plan::planning_host,
};

/// Why nothing is explained: one sentence, and an exit code.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// A component cannot be registered.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// Component versions cannot be had as the flags say.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// No cluster is meant.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// It is not known which deploy item is meant.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The namespace cannot be read.
    #[error(transparent)]
    Call(#[from] orangery_cli::call::CallError),
    /// An object of it has a wrong form.
    #[error(transparent)]
    World(#[from] WorldError),
    /// What puts the object there cannot be asked.
    #[error("{0}")]
    Refused(String),
    /// The output.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl ExplainError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            ExplainError::Components(_) | ExplainError::Repositories(_) | ExplainError::Connection(_) => Exit::Usage,
            ExplainError::Subject(_)
            | ExplainError::Call(_)
            | ExplainError::World(_)
            | ExplainError::Refused(_)
            | ExplainError::Command(_) => Exit::Failed,
        }
    }
}

/// Carries `orangery explain` out.
///
/// # Errors
/// [`ExplainError`], whose [`exit`](ExplainError::exit) is the exit code.
pub async fn execute(arguments: ExplainArguments, terminal: &mut Terminal) -> Result<Exit, ExplainError> {
    let plugins: Arc<dyn Plugins> = components::of_command(arguments.plugins.as_deref())?;
    let versions = arguments.repositories.open(&[])?;
    let (client, own_server) = own_connection(&arguments.connection).await?;
    let wanted = (arguments.scope.namespace.as_ref(), arguments.item.as_deref());
    let holder = holder(&client, &arguments.object, wanted).await?;
    let namespace: Namespace = holder.item.namespace().unwrap_or_default().into();
    let policies = policies(arguments.default_policy, own_server);
    let host = planning_host(&client, (plugins, Arc::clone(&versions)), policies);
    read_secret_values(&host, &namespace).await;
    let notes: Vec<String> = read_policies(&host, &namespace).await.into_iter().collect();
    let subject = ObjectExplanation { client, arguments: &arguments, masker: host.secrets.masker(&namespace), host };
    let explanation = subject.explain(holder, (namespace, versions), notes).await?;
    explanation.write(arguments.output, terminal)?;
    Ok(Exit::Ok)
}

/// What is asked for, and with what it is found out.
struct ObjectExplanation<'a> {
    client: Client,
    arguments: &'a ExplainArguments,
    host: Arc<ControllerContext>,
    masker: Arc<Masker>,
}

impl ObjectExplanation<'_> {
    async fn explain(
        &self,
        holder: ObjectHolder,
        (namespace, versions): (Namespace, Arc<dyn orangery_ocm::ComponentVersions>),
        mut notes: Vec<String>,
    ) -> Result<Explanation, ExplainError> {
        let live = LiveNamespace::read(&self.client, &namespace).await?;
        let installations = installations_of(&live, &holder.item);
        let source = ExplainedSource {
            host: &self.host,
            versions,
            namespace: &namespace,
            live: &live,
            installations: &installations,
            item: &holder.item,
            now: self.host.clock.now(),
        };
        let rendered = source.rendered().await.map_err(|why| self.refused(&why))?;
        notes.extend(rendered.note());
        let proposals = ItemProposals::new(&self.host, (JobId::from_static("explain"), source.now));
        let proposed = proposals.of(rendered.item.clone()).await.map_err(|halt| self.refused(&refusal(&halt)))?;
        notes.extend(
            proposed.unfinished.then(|| "the component is called again after this, and may ask for more".to_owned()),
        );
        let (place, object) = self.object_of(&proposed, &holder)?;
        let (all, is_complete) = fields(&object.object);
        notes.extend((!is_complete).then(|| "the object has more fields than are looked at".to_owned()));
        let release = release_text(&proposals, &rendered.item, &proposed).await;
        let search = FieldSearch {
            source: &source,
            proposals: &proposals,
            key: &object.key,
            place,
            narrowed: NarrowedChart::of(&proposals, (&rendered.item, object), release.as_ref()).await,
            rendered: &rendered,
            wanted: &self.wanted(&all, &object.key)?,
        };
        let found = FoundOrigins {
            inputs: search.inputs(&RootInputs::of(&source).map_err(|why| self.refused(&why))?).await,
            config: search.config(&object.object).await,
            release,
            shown: display(&object.object),
            live: self.live_object(&proposals, &rendered, object, &mut notes).await,
        };
        notes.extend(found.inputs.note().into_iter().chain(found.config.note()));
        let fields = search.wanted.iter().map(|field| self.field(field, object, &found, &rendered)).collect();
        let item = ExplainedItem {
            namespace: namespace.clone(),
            name: holder.item.name_any().into(),
            item: holder.item.item_name().map(str::to_owned),
        };
        let not_tried = found.inputs.not_tried.into_iter();
        let not_tried = not_tried.map(|input| NotTriedInput { why: self.mask(&input.why), ..input }).collect();
        let ObjectKey { api_version, kind, namespace, name } = object.key.clone();
        Ok(Explanation {
            api_version: "orangery.dev/v1alpha1".into(),
            kind: "Explanation".into(),
            object: ExplainedObject { cluster: object.on.to_string(), api_version, kind, namespace, name },
            item,
            execution: installations.first().cloned(),
            installations,
            component: proposed.plugin.clone(),
            fields,
            not_tried,
            notes,
        })
    }

    /// The fields that are asked for.
    fn wanted<'f>(&self, all: &'f [ObjectField], key: &ObjectKey) -> Result<Vec<&'f ObjectField>, ExplainError> {
        let name = self.arguments.field.as_deref().unwrap_or_default();
        let wanted: Vec<&ObjectField> = all.iter().filter(|field| field.is_within(name)).collect();
        if wanted.is_empty() {
            let why =
                format!("{key} has no field {name}; its fields are shown without one, and orangery plan shows all");
            return Err(ExplainError::Refused(why));
        }
        Ok(wanted)
    }

    /// The object as its cluster has it.
    async fn live_object(
        &self,
        proposals: &ItemProposals,
        rendered: &RenderedItem,
        object: &ProposedObject,
        notes: &mut Vec<String>,
    ) -> Option<Value> {
        match proposals.live(rendered.item.clone(), &object.on, &object.key).await {
            Ok(live) => live,
            Err(halt) => {
                notes.push(format!("what is on the cluster is not known: {}", self.mask(&refusal(&halt))));
                None
            }
        }
    }

    fn mask(&self, text: &str) -> String {
        self.masker.mask(text).into_owned()
    }

    fn refused(&self, why: &str) -> ExplainError {
        ExplainError::Refused(self.mask(why))
    }

    /// The object among those that the component proposes: which of them it is.
    fn object_of<'p>(
        &self,
        proposed: &'p ItemProposal,
        holder: &ObjectHolder,
    ) -> Result<(usize, &'p ProposedObject), ExplainError> {
        let subject = &self.arguments.object;
        let is_meant = |of: &ProposedObject| {
            let is_there = holder.namespace.is_none() || of.key.namespace == holder.namespace;
            is_there && subject.is(&of.key.api_version, &of.key.kind, &of.key.name)
        };
        proposed.objects.iter().enumerate().find(|(_, of)| is_meant(of)).ok_or_else(|| {
            let why = format!(
                "deploy item {} has it in its inventory, and its component {} does not propose it any more: the next job deletes it, \
                 or it is made in a later call; orangery plan shows what the next job does",
                holder.item.name_any(),
                proposed.plugin
            );
            ExplainError::Refused(why)
        })
    }

    fn field(
        &self,
        field: &ObjectField,
        object: &ProposedObject,
        found: &FoundOrigins,
        rendered: &RenderedItem,
    ) -> ExplainedField {
        let value = match at(&found.shown, &field.steps).cloned().unwrap_or_default() {
            Value::String(text) => Value::String(self.mask(&text)),
            other => other,
        };
        let place = |path: &String| ConfigPlace { path: path.clone(), place: rendered.place(path) };
        let release = found.release.as_ref();
        ExplainedField {
            path: field.path.clone(),
            value,
            chart: release.and_then(|release| release.place(&object.object, &field.numbered_path())),
            config: found.config.of(&field.path).iter().map(place).collect(),
            inputs: found.inputs.of(&field.path),
            managers: found.live.as_ref().map(|live| managers(live, &field.steps)).unwrap_or_default(),
        }
    }
}

/// What was found out of an object.
struct FoundOrigins {
    inputs: Found<ExplainedInput>,
    config: Found<String>,
    /// The text of its release, where it is of one.
    release: Option<ReleaseText>,
    /// The object as the next job would write it, without what is secret.
    shown: Value,
    /// The object as its cluster has it.
    live: Option<Value>,
}

/// The Installations of an item, from its own up to the root.
fn installations_of(live: &LiveNamespace, item: &DeployItem) -> Vec<ObjectName> {
    let mut names: Vec<ObjectName> = Vec::new();
    let mut next = item.label(orangery_api::label::MANAGED_BY).filter(|name| !name.is_empty());
    while let Some(installation) = next.and_then(|name| live.installation(name)) {
        let name: ObjectName = installation.name_any().into();
        if names.contains(&name) || names.len() > DEEPEST_MADE {
            break;
        }
        names.push(name);
        next = installation.parent_installation();
    }
    names
}
