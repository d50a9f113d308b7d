//! What an Execution reads: what is asked of it, its items and their objects, and what these exported (EXE-31).

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use orangery_api::{
    annotation,
    deploy_item::DeployItem,
    execution::{DeployItemTemplate, Execution},
    job::Job,
    label,
    marks::{Marks, Operation},
};
use orangery_core::{
    error::{Code, Failure},
    job::JobIds,
    phase::{execution::Execution as Phase, item::Item as ItemPhase},
    plan::{
        execution::{ItemState, ObjectState},
        reconcile::{self, ExecutionAction, ExecutionFacts, JobFacts},
    },
    step::{Halt, Step},
};
use orangery_reconcile::Key;
use serde_json::{Map, Value};

use super::{
    dependencies::{TARGETS, deploy_items},
    reconciliation::{ExecutionReconciliation, ExecutionWorker},
};
use crate::{
    controller_context::waiter,
    gates::{Item, Items},
    job::{Subobjects, failure_of, told_phase},
    object_access::get,
    refresh,
    stores::StoredKind,
    timeout::{USUAL_TIMEOUT, limit_of},
    tree::{is_orphaned, observing_root},
    workflow::changed_answers,
};

/// The key of an export Secret.
const CONFIG: &str = "config";

/// How many exports of one Execution are read at the same time.
const READS_AT_ONCE: usize = 16;

/// Reads what one call of the controller is decided from. Of an Execution at rest whose root starts jobs by changes, what decided
/// about its items is watched, and the root is woken where that answers otherwise now.
///
/// # Errors
/// Gate expressions could not be asked.
pub(super) async fn gather(worker: &ExecutionWorker, execution: &Arc<Execution>) -> Step<ExecutionFacts> {
    let status = execution.status.as_ref();
    let facts = ExecutionFacts {
        job: JobFacts {
            root: is_orphaned(&worker.host.stores, execution.as_ref()),
            ids: JobIds::new(execution.job_id(), execution.job_id_finished()),
            phase: Phase::parse(execution.phase()),
            deleting: execution.is_deleting(),
            began: execution.status.as_ref().and_then(|status| Phase::parse(told_phase(&status.conditions)?)),
        },
        is_to_end: execution.operation() == Some(Operation::Interrupt),
        is_interrupted: status.is_some_and(|status| status.interrupted_job == status.job_id),
    };
    if reconcile::execution(&facts) == ExecutionAction::Idle {
        ask_again(worker, execution).await?;
    }
    Ok(facts)
}

async fn ask_again(worker: &ExecutionWorker, execution: &Arc<Execution>) -> Step<()> {
    let (host, key) = (&worker.host, Key::of(execution.as_ref()));
    let answered = execution.status.as_ref().is_some_and(|status| !status.items.is_empty());
    let root = if answered && !execution.is_deleting() { observing_root(&host.stores, &key) } else { None };
    let changed = match &root {
        Some(_) => {
            let mut run = ExecutionReconciliation::of(worker, execution, execution.job_id().clone());
            run.load_items()?;
            changed_answers(&run).await?
        }
        None => {
            worker.pool.release(&waiter(StoredKind::Execution, &key));
            Vec::new()
        }
    };
    if host.changed_answers.set(&(StoredKind::Execution, key), changed)
        && let Some(root) = root
    {
        worker.installations.wake(Key::of(root.as_ref()));
    }
    Ok(())
}

impl ExecutionReconciliation<'_> {
    /// The DeployItem objects of this Execution, sorted by name.
    pub(super) fn deploy_items(&self) -> Vec<Arc<DeployItem>> {
        deploy_items(&self.host.stores, &self.key)
    }

    /// Those that are being deleted.
    pub(super) fn leaving_objects(&self) -> Vec<Arc<DeployItem>> {
        let mut objects = self.deploy_items();
        objects.retain(|object| object.is_deleting());
        objects
    }

    /// The items of the spec, read once.
    pub(super) fn load_items(&mut self) -> Step<()> {
        if self.workflow.items.list.is_empty() {
            let templates = self.draft.spec.items().map_err(|error| {
                Halt::Stall(
                    Failure::new("ReadDeployItems", "UnreadableDeployItems", error.to_string())
                        .with_code(Code::ConfigurationProblem),
                )
            })?;
            self.workflow.items = Arc::new(items(templates));
        }
        Ok(())
    }

    /// Guards the Targets that gate expressions look at, before the first of them is asked.
    pub(super) async fn guard_targets(&self) -> Step<()> {
        TARGETS.guard(self.host, &self.draft).await
    }

    /// Whether an item goes with its cluster, and the cluster counts as removed: nothing there can be asked any more.
    pub(super) fn is_cluster_removed(&self, item: &DeployItemTemplate) -> bool {
        let skips = item.on_delete.as_ref().is_some_and(|on_delete| on_delete.skip_uninstall_if_cluster_removed);
        let target = |name: &str| Key::new(&self.key.namespace, name);
        let is_gone = |name: &str| self.host.stores.targets.get(&target(name)).is_none();
        skips && item.target.as_ref().is_some_and(|target| is_gone(&target.name))
    }

    /// The exports of all items, by item.
    pub(super) async fn exports(&self) -> Step<Map<String, Value>> {
        let objects = self.deploy_items();
        let reads: Vec<_> = objects.iter().map(|object| self.named_exports(object)).collect();
        let exports: Vec<_> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
        Ok(exports.into_iter().collect())
    }

    async fn named_exports(&self, object: &DeployItem) -> Step<(String, Value)> {
        Ok((item_name(object).to_owned(), self.exports_of(object).await?))
    }

    /// The exports of one item; null where it has none.
    pub(super) async fn exports_of(&self, object: &DeployItem) -> Step<Value> {
        let Some(reference) = object.status.as_ref().and_then(|status| status.export_ref.as_ref()) else {
            return Ok(Value::Null);
        };
        let namespace = &self.key.namespace;
        let unreadable = |why: &str| {
            let message = format!(
                "the exports of DeployItem {namespace}/{} in Secret {} {why}",
                object.name_any(),
                reference.name
            );
            Halt::Retry(Failure::new("CollectExports", "ExportsUnreadable", message))
        };
        let secret: Option<Secret> = get(&self.host.client, namespace, &reference.name).await?;
        let secret = secret.ok_or_else(|| unreadable("do not exist"))?;
        let data = secret
            .data
            .as_ref()
            .and_then(|data| data.get(CONFIG))
            .ok_or_else(|| unreadable("lack the key `config`"))?;
        let exports: Value = serde_json::from_slice(&data.0).map_err(|_| unreadable("are not JSON"))?;
        // The operator that wrote it may have been another one.
        let places = secret.annotations().get(annotation::SECRET_EXPORTS);
        let places: Vec<String> = places.and_then(|places| serde_json::from_str(places).ok()).unwrap_or_default();
        self.host.secrets.learn_exports(&Key::of(object), &exports, &places);
        Ok(exports)
    }
}

impl Subobjects for ExecutionReconciliation<'_> {
    fn are_working(&self) -> bool {
        let is_working = |item: &DeployItem| ids(item).running() == Some(&self.workflow.job);
        self.deploy_items().iter().any(|item| is_working(item))
    }

    async fn read(&self) -> Step<()> {
        let items = self.deploy_items();
        if !items.iter().any(|item| ids(item).may_have_got(&self.workflow.job, item.is_deleting())) {
            return Ok(());
        }
        let of_this = (label::MANAGED_BY, self.key.name.as_str());
        refresh::list(self.host, &self.host.stores.deploy_items, items, &self.key.namespace, of_this).await
    }
}

fn ids(item: &DeployItem) -> JobIds {
    JobIds::new(item.job_id(), item.job_id_finished())
}

/// The items of a spec. Those that gate expressions decide about are made when they start.
fn items(templates: Vec<DeployItemTemplate>) -> Items<DeployItemTemplate> {
    let item = |template: DeployItemTemplate| Item {
        name: template.name.clone(),
        depends_on: template.depends_on.clone(),
        target: template.target.as_ref().map(|target| target.name.clone()).map(String::from),
        // That it cannot be read the item itself will say.
        limit: limit_of(template.timeout.as_ref()).unwrap_or(Some(USUAL_TIMEOUT)),
        gates: template.gates(),
        late: false,
        template,
    };
    Items::of(templates.into_iter().map(item).collect(), |item| item.gates.decide())
}

/// The name of the item that an object stands for.
pub(super) fn item_name(object: &DeployItem) -> &str {
    object.item_name().unwrap_or("")
}

/// What the plan needs to know of an object.
pub(super) fn state(object: &DeployItem) -> ObjectState {
    ObjectState {
        object_name: object.name_any().into(),
        ids: ids(object),
        phase: ItemPhase::parse(object.phase()),
        failure: failure_of(object.last_error()),
    }
}

/// What the deletion of objects needs to know of them alone.
pub(super) fn states_of_objects(objects: &[Arc<DeployItem>]) -> Vec<ItemState<'_>> {
    let of = |object| ItemState {
        keep: is_kept(object),
        ..ItemState::new(item_name(object), depends_on(object), Some(state(object)))
    };
    objects.iter().map(|object| of(object.as_ref())).collect()
}

/// Whether what an item deployed stays: nobody is asked to uninstall it (INS-80, WF-27).
pub(super) fn is_kept(item: &DeployItem) -> bool {
    item.flag(annotation::DELETE_WITHOUT_UNINSTALL)
        || item.spec.on_delete.as_ref().is_some_and(|on_delete| on_delete.keep)
}

/// What an item depended on when it was written last: the spec may no longer have it (C-19).
fn depends_on(object: &DeployItem) -> Vec<&str> {
    let names = object.annotation(annotation::DEPENDS_ON).unwrap_or("");
    names.split(',').filter(|name| !name.is_empty()).collect()
}

/// Objects without a double, by item.
pub(super) fn by_item(objects: &[Arc<DeployItem>]) -> BTreeMap<String, String> {
    let live = objects.iter().filter(|object| !object.is_deleting());
    live.map(|object| (object.name_any(), item_name(object).to_owned())).collect()
}
