//! `orangery rollback`: the plan of an Installation as a job has deployed it, and the writes that lead there (C-360, C-361).

use std::{collections::BTreeMap, sync::Arc};

use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use orangery_api::{
    GROUP, annotation,
    convert::{is_requested, is_suspended},
    data_object::DataObject,
    installation::{Installation, InstallationSpec},
    job::Job as _,
    job_definition::JobDefinition,
    label,
    marks::{Marks as _, Operation},
};
use orangery_blueprint::{
    binding::ImportBindings,
    import::{self, Imported},
    plugins::Plugins,
    record::RecordWriter,
};
use orangery_cli::{
    Exit, RollbackArguments, Terminal,
    call::{CallError, CallSubject},
    command::{approve::caller, reconcile::Request, rollback::RollbackPlan},
    command_error::CommandError,
    components,
    definitions::RecordedDefinition,
    job_wait::AwaitedJob,
    offline::{LiveNamespace, NamespaceObjects},
    restoration::Restoration,
};
use orangery_controllers::read_secret_values;
use orangery_core::name::{JobId, Kind, Namespace, ObjectName};
use serde_json::{Value, json};

use super::{PlanError, planning_host, tree::TreePlanning};
use crate::caller::{own_connection, policies, read_policies};

/// As whom the objects are written: it is on record as what has asked for the job.
const FIELD_OWNER: &str = "orangery-rollback";

const INSTALLATION: &Kind = &Kind::from_static("Installation");
const DATA_OBJECT: &Kind = &Kind::from_static("DataObject");

/// The job that there is not.
const JOB: &JobId = &JobId::from_static("plan");

/// Carries `orangery rollback` out.
///
/// # Errors
/// [`PlanError`], whose [`exit`](PlanError::exit) is the exit code.
pub async fn roll_back(arguments: RollbackArguments, terminal: &mut Terminal) -> Result<Exit, PlanError> {
    let plugins: Arc<dyn Plugins> = components::of_command(arguments.plugins.as_deref())?;
    let versions = arguments.repositories.open(&[])?;
    let (client, own_server) = own_connection(&arguments.records.connection).await?;
    let namespace = arguments.records.scope.namespace(&client);
    let root = RollbackRoot::read(&client, &namespace, &arguments.name).await?;
    let key = arguments.records.operator_key.as_deref();
    let recorded = RecordedDefinition::read(&client, &root.installation, (&arguments.id, key)).await?;
    let host = planning_host(&client, (plugins, Arc::clone(&versions)), policies(arguments.default_policy, own_server));
    read_secret_values(&host, &namespace).await;
    let notes: Vec<String> = read_policies(&host, &namespace).await.into_iter().collect();
    let live = LiveNamespace::read(&client, &namespace).await?;
    let now = imported(&live.objects, &root.key(), &recorded.definition.spec);
    let now = JobDefinition::of((&arguments.name, ""), &recorded.definition.spec, &now);
    let restoration = Restoration::of(&recorded, &root.installation, &now, arguments.imports);
    let data: Vec<DataObject> =
        restoration.data.iter().map(|(name, data)| written(&live.objects, (&namespace, name), data)).collect();
    // Over what the cluster has.
    let mut objects = live.objects.clone();
    data.iter().for_each(|object| objects.add_data_object(object.clone()));
    let mut installation = root.installation.clone();
    installation.spec = recorded.definition.spec.clone().into_owned();
    let planning = TreePlanning { host, versions, namespace: namespace.clone(), live };
    let plans = planning.jobs(objects, vec![installation]).await?;
    let plan = planning.with_job_rules(arguments.name.clone(), plans, notes).await;
    let plan = RollbackPlan::new((recorded.job.clone(), arguments.imports), &restoration, plan);
    if arguments.output.is_none() {
        plan.show(arguments.brief, terminal)?;
    }
    if plan.fails() {
        let why = "an item, or the whole job, would fail, so nothing was changed; mend what it says, or go back to another job";
        return not_written(plan, &arguments, terminal).and(Err(PlanError::Refused(why.to_owned())));
    }
    if !arguments.yes {
        not_written(plan, &arguments, terminal)?;
        terminal.note("nothing was changed; look at these, and say --yes to do it").map_err(CommandError::from)?;
        return Ok(Exit::Ok);
    }
    let spec = json!(*recorded.definition.spec);
    let token = root.write(&client, (&spec, &data)).await?;
    if let Some(form) = arguments.output {
        plan.write(form, true, terminal)?;
        return Ok(Exit::Ok);
    }
    root.follow((&client, token), (&recorded.job, &arguments), terminal).await
}

fn not_written(plan: RollbackPlan, arguments: &RollbackArguments, terminal: &mut Terminal) -> Result<(), PlanError> {
    match arguments.output {
        Some(form) => Ok(plan.write(form, false, terminal)?),
        None => Ok(()),
    }
}

/// What a root imports now, as far as it can be read.
fn imported(
    objects: &NamespaceObjects,
    (namespace, name): &(Namespace, ObjectName),
    spec: &InstallationSpec,
) -> BTreeMap<String, Imported> {
    let scope = RecordWriter { namespace, installation: name, parent: None, job: JOB };
    let ImportBindings { data, targets } = (&spec.imports).into();
    let data = data.into_iter().map(|data| ImportBindings { data: vec![data], targets: Vec::new() });
    let targets = targets.into_iter().map(|target| ImportBindings { data: Vec::new(), targets: vec![target] });
    let read = data.chain(targets).filter_map(|one| import::read(&one, &scope, objects).ok());
    read.flatten().collect()
}

/// A DataObject as it is, with other data, or a new one.
fn written(objects: &NamespaceObjects, (namespace, name): (&Namespace, &ObjectName), data: &Value) -> DataObject {
    let mut object = objects.known_data_object(name).cloned().unwrap_or_default();
    object.metadata.namespace = Some(namespace.to_string());
    object.metadata.name = Some(name.to_string());
    object.metadata.managed_fields = None;
    // It is that of other data.
    object.annotations_mut().remove(annotation::HASH);
    object.spec.data = data.clone();
    object
}

/// The root that goes back.
struct RollbackRoot {
    installation: Installation,
    /// The same with all that the server has of it.
    object: DynamicObject,
}

impl RollbackRoot {
    /// Reads it. Nothing may be under way.
    async fn read(client: &Client, namespace: &Namespace, name: &ObjectName) -> Result<Self, PlanError> {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource());
        let object = api.get(name).await.map_err(|error| refused((INSTALLATION, namespace, name), error))?;
        let installation: Installation =
            serde_json::from_value(json!(object)).map_err(|error| PlanError::Call(CallError::Answer(error)))?;
        let parent = installation.parent_installation().or_else(|| installation.label(label::ENCOMPASSED_BY));
        if let Some(parent) = parent {
            let (namespace, name, parent) = (namespace.clone(), name.clone(), parent.to_owned());
            return Err(CommandError::NotRoot { command: "rollback", namespace, name, parent }.into());
        }
        let why = if installation.is_deleting() {
            "is being deleted, and goes back to nothing"
        } else if !installation.job_finished() {
            "has a job under way; go back when it has ended, or end it by orangery interrupt"
        } else if is_requested(&installation) && !is_suspended(&installation) {
            "is about to begin a job; go back when it has ended"
        } else {
            return Ok(Self { installation, object });
        };
        Err(PlanError::Refused(format!("installation {namespace}/{name} {why}")))
    }

    fn key(&self) -> (Namespace, ObjectName) {
        (self.installation.namespace().unwrap_or_default().into(), self.installation.name_any().into())
    }

    /// Writes DataObjects and the spec, and asks for a job: all of it is tried before, by dry runs. Answers the token of the request.
    async fn write(&self, client: &Client, (spec, data): (&Value, &[DataObject])) -> Result<String, PlanError> {
        let (namespace, name) = self.key();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource());
        let subject = (INSTALLATION, &namespace, &name);
        let token = self.installation.resource_version().unwrap_or_default();
        // Whoever goes back is the author of what is approved then (C-367).
        let author = match self.installation.annotation(annotation::CHANGED_BY) {
            Some(_) => Some((annotation::CHANGED_BY.to_owned(), caller(client).await)),
            None => None,
        };
        let with = |annotations: &[(&str, &str)]| {
            let mut object = self.object.clone();
            object.metadata.managed_fields = None;
            object.annotations_mut().extend(author.clone());
            object.annotations_mut().extend(annotations.iter().map(|(key, of)| ((*key).to_owned(), (*of).to_owned())));
            if let Some(fields) = object.data.as_object_mut() {
                fields.insert("spec".to_owned(), spec.clone());
            }
            object
        };
        let params = |dry_run| PostParams { dry_run, field_manager: Some(FIELD_OWNER.to_owned()) };
        let reconcile = Operation::Reconcile.to_string();
        let asks = with(&[(annotation::OPERATION, reconcile.as_str()), (annotation::TRIGGER, token.as_str())]);
        let replaced = api.replace(&name, &params(true), &asks).await;
        replaced.map_err(|error| refused(subject, error))?;
        for object in data {
            put(client, &namespace, object, &params(true)).await?;
        }
        if data.is_empty() {
            let replaced = api.replace(&name, &params(false), &asks).await;
            return Ok(replaced.map(|_| token).map_err(|error| refused(subject, error))?);
        }
        // No job begins with some of it.
        let held = api.replace(&name, &params(false), &with(&[(annotation::SUSPEND, "true")])).await;
        let held = held.map_err(|error| refused(subject, error))?;
        let halfway = |error: CallError| {
            PlanError::Refused(format!(
                "{error}; installation {namespace}/{name} has the spec of that job already, and is suspended: go back once more, and then \
                 orangery resume {name} -n {namespace}"
            ))
        };
        for object in data {
            put(client, &namespace, object, &params(false)).await.map_err(halfway)?;
        }
        let token = held.resource_version().unwrap_or_default();
        let suspend = if is_suspended(&self.installation) { json!("true") } else { Value::Null };
        let asks = json!({"metadata": {"annotations": {
            (annotation::SUSPEND): suspend, (annotation::OPERATION): reconcile, (annotation::TRIGGER): token,
        }}});
        let by = PatchParams { field_manager: Some(FIELD_OWNER.to_owned()), ..PatchParams::default() };
        let asked = api.patch(&name, &by, &Patch::Merge(&asks)).await;
        asked.map_err(|error| halfway(refused(subject, error)))?;
        Ok(token)
    }

    /// Says what was done, and waits for the job where that is asked for.
    async fn follow(
        &self,
        (client, token): (&Client, String),
        (job, arguments): (&JobId, &RollbackArguments),
        terminal: &mut Terminal,
    ) -> Result<Exit, PlanError> {
        let (namespace, name) = self.key();
        let suspended = is_suspended(&self.installation);
        let more = if suspended {
            format!(", which begins once orangery resume {name} -n {namespace}")
        } else {
            String::new()
        };
        let said = format_args!("installation {namespace}/{name}: as in job {job}; a job is asked for{more}");
        terminal.line(said).map_err(CommandError::from)?;
        if !arguments.wait || suspended {
            return Ok(Exit::Ok);
        }
        let request = Request { before: self.installation.job_id().clone(), token };
        let job = AwaitedJob { client, namespace: &namespace, name: &name, timeout: &arguments.timeout };
        Ok(request.wait_for(job, terminal).await?)
    }
}

fn resource() -> ApiResource {
    ApiResource::erase::<Installation>(&())
}

/// Writes a DataObject under the version that was read; a new one is created.
async fn put(
    client: &Client,
    namespace: &Namespace,
    object: &DataObject,
    params: &PostParams,
) -> Result<(), CallError> {
    let api: Api<DataObject> = Api::namespaced(client.clone(), namespace);
    let name: ObjectName = object.name_any().into();
    let written = match object.meta().resource_version {
        Some(_) => api.replace(&name, params, object).await,
        None => api.create(params, object).await,
    };
    written.map(drop).map_err(|error| refused((DATA_OBJECT, namespace, &name), error))
}

fn refused((kind, namespace, name): (&Kind, &Namespace, &ObjectName), error: kube::Error) -> CallError {
    CallError::of(CallSubject { kind, group: GROUP, namespace, name }, error)
}
