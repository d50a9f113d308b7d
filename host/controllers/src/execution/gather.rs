//! What an Execution reads: what is asked of it, its items and their objects, and what these exported (EXE-31).

use std::{collections::BTreeMap, pin::pin, sync::Arc};

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
    memory,
    name::ObjectName,
    phase::{execution::Execution as Phase, item::Item as ItemPhase},
    plan::{
        execution::{ItemState, ObjectState},
        reconcile::{self, ExecutionAction, ExecutionFacts, JobFacts},
    },
    step::{Halt, Step},
};
use orangery_reconcile::{FoundObjects, Key};
use serde_json::{Map, Value};

use super::{
    dependencies::{TARGETS, deploy_items},
    reconciliation::{ExecutionReconciliation, ExecutionWorker},
};
use crate::{
    controller_context::waiter,
    exported_memory::ExportedMemory,
    gates::{Item, Items},
    job::{Subobjects, failure_of, told_phase},
    object_access::get,
    refresh,
    stores::StoredKind,
    timeout::{USUAL_TIMEOUT, limit_of},
    tree::{is_orphaned, observing_root},
    workflow::{ItemObject, changed_answers},
};

/// The key of an export Secret.
const CONFIG: &str = "config";

/// How many exports of one Execution are read at the same time.
const READS_AT_ONCE: usize = 4;

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
    pub(super) fn deploy_items(&self) -> FoundObjects<DeployItem> {
        deploy_items(&self.host.stores, &self.key)
    }

    /// The same as far as anything is decided by them.
    pub(super) fn item_objects(&self) -> Vec<ItemObject> {
        let with_job = |object: ItemObject| {
            let ids = self.handed_down.ids(&object.key, object.state.ids);
            ItemObject { state: ObjectState { ids, ..object.state }, ..object }
        };
        self.deploy_items().into_iter().map(|object| with_job(item_object(&object))).collect()
    }

    /// Those that are being deleted.
    pub(super) fn leaving_objects(&self) -> Vec<ItemObject> {
        let mut objects = self.item_objects();
        objects.retain(|object| object.is_deleting);
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
        let what = format!("the exports of the deploy items of Execution {}", self.key.name);
        let mut memory = ExportedMemory::new(&self.key.namespace, &what);
        let items = self.deploy_items();
        let reads: Vec<_> = items
            .into_iter()
            .map(|item| {
                let (name, places) = (item_name(&item).to_owned(), ExportPlace::of(&item));
                async move { Ok::<_, Halt>((name, self.written_exports(places).await?)) }
            })
            .collect();
        let mut reads = pin!(stream::iter(reads).buffered(READS_AT_ONCE));
        let mut exports = Map::new();
        while let Some((name, written)) = reads.try_next().await? {
            exports.insert(name, self.read_exports(written, &mut memory).await?);
        }
        memory.gathered().await;
        Ok(exports)
    }

    /// The exports of one item; null where it has none.
    pub(super) async fn exports_of(&self, object: &DeployItem) -> Step<Value> {
        let what = format!("the exports of DeployItem {}", object.name_any());
        let mut memory = ExportedMemory::new(&self.key.namespace, &what);
        let written = self.written_exports(ExportPlace::of(object)).await?;
        let exports = self.read_exports(written, &mut memory).await?;
        memory.gathered().await;
        Ok(exports)
    }

    /// The text of the exports of one item, with the places of what is secret in it; `None` where it has none.
    async fn written_exports(&self, place: Option<ExportPlace>) -> Step<Option<WrittenExports>> {
        let Some(place) = place else { return Ok(None) };
        let secret: Option<Secret> = get(&self.host.client, &self.key.namespace, &place.secret).await?;
        let mut secret = secret.ok_or_else(|| place.unreadable("do not exist"))?;
        let text = secret.data.as_mut().and_then(|data| data.remove(CONFIG));
        let text = text.ok_or_else(|| place.unreadable("lack the key `config`"))?.0;
        // The operator that wrote it may have been another one.
        let places = secret.annotations().get(annotation::SECRET_EXPORTS);
        let places = places.and_then(|places| serde_json::from_str(places).ok()).unwrap_or_default();
        Ok(Some(WrittenExports { place, text, places }))
    }

    async fn read_exports(&self, written: Option<WrittenExports>, memory: &mut ExportedMemory<'_>) -> Step<Value> {
        let Some(WrittenExports { place, text, places }) = written else { return Ok(Value::Null) };
        memory.take(memory::of_json(&text)).await?;
        let exports: Value = serde_json::from_slice(&text).map_err(|_| place.unreadable("are not JSON"))?;
        self.host.secrets.learn_exports(&place.item, &exports, &places);
        Ok(exports)
    }
}

/// Where the exports of an item are.
struct ExportPlace {
    item: Key,
    secret: ObjectName,
}

impl ExportPlace {
    /// `None` where an item has none.
    fn of(item: &DeployItem) -> Option<Self> {
        let reference = item.status.as_ref()?.export_ref.as_ref()?;
        Some(Self { item: Key::of(item), secret: reference.name.clone() })
    }

    fn unreadable(&self, why: &str) -> Halt {
        let message = format!("the exports of DeployItem {} in Secret {} {why}", self.item, self.secret);
        Halt::Retry(Failure::new("CollectExports", "ExportsUnreadable", message))
    }
}

/// Exports as they are written.
struct WrittenExports {
    place: ExportPlace,
    text: Vec<u8>,
    /// The places of what is secret.
    places: Vec<String>,
}

impl Subobjects for ExecutionReconciliation<'_> {
    fn are_working(&self) -> bool {
        let is_working =
            |item: &DeployItem| self.handed_down.ids(&Key::of(item), ids(item)).running() == Some(&self.workflow.job);
        self.deploy_items().into_iter().any(|item| is_working(&item))
    }

    async fn read(&self) -> Step<()> {
        let items = self.deploy_items();
        if !items.iter().any(|item| ids(&item).may_have_got(&self.workflow.job, item.is_deleting())) {
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

/// What is decided by an object.
pub(super) fn item_object(object: &DeployItem) -> ItemObject {
    ItemObject {
        key: Key::of(object),
        item: item_name(object).to_owned(),
        is_deleting: object.is_deleting(),
        state: ObjectState {
            object_name: object.name_any().into(),
            ids: ids(object),
            phase: ItemPhase::parse(object.phase()),
            failure: failure_of(object.last_error()),
        },
        is_kept: object.is_kept(),
        depends_on: object.annotation(annotation::DEPENDS_ON).unwrap_or_default().to_owned(),
    }
}

/// What the deletion of objects needs to know of them alone.
pub(super) fn states_of_objects(objects: &[ItemObject]) -> Vec<ItemState<'_>> {
    objects.iter().map(state_of_object).collect()
}

fn state_of_object(object: &ItemObject) -> ItemState<'_> {
    let ItemObject { item, state, is_kept, .. } = object;
    ItemState { keep: *is_kept, ..ItemState::new(item, depends_on(object), Some(state.clone())) }
}

/// What an item depended on when it was written last: the spec may no longer have it (C-19).
fn depends_on(object: &ItemObject) -> Vec<&str> {
    object.depends_on.split(',').filter(|name| !name.is_empty()).collect()
}

/// Objects without a double, by item.
pub(super) fn by_item(objects: &[ItemObject]) -> BTreeMap<String, String> {
    let live = objects.iter().filter(|object| !object.is_deleting);
    live.map(|object| (object.key.name.to_string(), object.item.clone())).collect()
}
