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
    command::explain::{
        ConfigPlace, ExplainedField, ExplainedItem, ExplainedObject, Explanation, ObjectHolder, SubjectError, holder,
    },
    command_error::CommandError,
    components,
    connection::ConnectionError,
    offline::{LiveNamespace, WorldError},
    repositories::RepositoriesError,
};
use orangery_controllers::{
    ControllerContext,
    deploy_item::{ItemProposal, ItemProposals, ProposedObject},
    read_secret_values,
};
use orangery_core::{
    masking::Masker,
    name::{JobId, Namespace, ObjectName},
};
use orangery_proposal::{
    field::{Field, fields, managers},
    overlay::display,
};
use serde_json::Value;

use self::{
    chart::release_text,
    inputs::Inputs,
    item::{ExplainedSource, RenderedItem},
    search::{Found, Trial},
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
        if !is_complete {
            notes.push("the object has more fields than are looked at; name one".to_owned());
        }
        let name = self.arguments.field.as_deref().unwrap_or_default();
        let wanted: Vec<&Field> = all.iter().filter(|field| field.is_within(name)).collect();
        if wanted.is_empty() {
            let why = format!(
                "{} has no field {name}; its fields are shown without one, and orangery plan shows all",
                object.key
            );
            return Err(ExplainError::Refused(why));
        }
        let trial = Trial {
            source: &source,
            proposals: &proposals,
            key: &object.key,
            place,
            rendered: &rendered,
            wanted: &wanted,
        };
        let inputs = Inputs::of(&source).map_err(|why| self.refused(&why))?;
        let found_inputs = trial.inputs(&inputs).await;
        let found_config = trial.config(&object.object).await;
        let managed = match proposals.live(rendered.item.clone(), &object.on, &object.key).await {
            Ok(managed) => managed,
            Err(halt) => {
                notes.push(format!("what is on the cluster is not known: {}", self.masker.mask(&refusal(&halt))));
                None
            }
        };
        let release = release_text(&proposals, &rendered.item, &proposed).await;
        let shown = display(&object.object);
        let explained = wanted.iter().map(|field| {
            let chart = release.as_ref().and_then(|release| release.place(&object.object, &field.numbered_path()));
            let explained = self.field(field, (&shown, managed.as_ref()), (&found_inputs, &found_config), &rendered);
            ExplainedField { chart, ..explained }
        });
        let explained = explained.collect();
        notes.extend(found_inputs.note().into_iter().chain(found_config.note()));
        let not_tried = found_inputs.not_tried.into_iter().map(|mut input| {
            input.why = self.masker.mask(&input.why).into_owned();
            input
        });
        Ok(Explanation {
            api_version: "orangery.dev/v1alpha1".into(),
            kind: "Explanation".into(),
            object: ExplainedObject {
                cluster: object.on.to_string(),
                api_version: object.key.api_version.clone(),
                kind: object.key.kind.clone(),
                namespace: object.key.namespace.clone(),
                name: object.key.name.clone(),
            },
            item: ExplainedItem {
                namespace: namespace.clone(),
                name: holder.item.name_any().into(),
                item: holder.item.item_name().map(str::to_owned),
            },
            execution: installations.first().cloned(),
            installations,
            component: proposed.plugin.clone(),
            fields: explained,
            not_tried: not_tried.collect(),
            notes,
        })
    }

    fn refused(&self, why: &str) -> ExplainError {
        ExplainError::Refused(self.masker.mask(why).into_owned())
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
        field: &Field,
        (shown, live): (&Value, Option<&Value>),
        (inputs, config): (&Found<orangery_cli::command::explain::ExplainedInput>, &Found<String>),
        rendered: &RenderedItem,
    ) -> ExplainedField {
        let value = orangery_proposal::field::at(shown, &field.steps).cloned().unwrap_or_default();
        let value = match value {
            Value::String(text) => Value::String(self.masker.mask(&text).into_owned()),
            other => other,
        };
        let place = |path: &String| ConfigPlace { path: path.clone(), place: rendered.place(path) };
        ExplainedField {
            path: field.path.clone(),
            value,
            chart: None,
            config: config.of(&field.path).iter().map(place).collect(),
            inputs: inputs.of(&field.path),
            managers: live.map(|live| managers(live, &field.steps)).unwrap_or_default(),
        }
    }
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
