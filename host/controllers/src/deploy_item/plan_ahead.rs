//! Plans of items whose turn has not come (C-366): whoever approves sees at once what all items of an Execution are about to write,
//! as far as that can be known. When it is the turn of an item it is tried out anew, and where it is the same nobody is asked again.

use std::{sync::Arc, time::Duration};

use orangery_api::{
    annotation, deploy_item::DeployItem, execution::Execution, job::Job as _, label, marks::Marks as _,
};
use orangery_apply::{Purpose, dry_run};
use orangery_cluster::ClusterPool;
use orangery_core::{
    name::JobId,
    phase::{execution::Execution as Phase, item::Item as ItemPhase},
    step::{Halt, Step, Wait},
};
use orangery_policy::RuleScope;
use orangery_proposal::{deployer::Deployer, item::NextCall};
use orangery_reconcile::{Key, Queue, in_this_slot};

use super::{
    apply::ended::end_after_job,
    gather::{GatheredItem, has_rules, request::ItemJob, requires_approval},
    planned::ItemWrites,
    timeout::{in_time, limit},
};
use crate::{
    controller_context::ControllerContext,
    plans::{ItemPlans, PlanTurn},
    tree::MANAGED_BY,
};

/// How long it may take to find out what an item is about to write whose turn has not come.
const TIME_TO_PLAN: Duration = Duration::from_secs(60);

/// A job that will be handed down to an item.
#[derive(Debug, PartialEq, Eq)]
struct ComingJob {
    id: JobId,
    purpose: Purpose,
}

/// What there is to do for an item without a job: what lived for the last one ends, and there is a Plan of the next one where it is known
/// to come.
///
/// # Errors
/// Those of [`end_after_job`].
pub(super) async fn between_jobs(
    host: &Arc<ControllerContext>,
    pool: &Arc<ClusterPool>,
    item: &Arc<DeployItem>,
    deployer: Arc<dyn Deployer>,
) -> Step<()> {
    end_after_job(host, pool, item, Arc::clone(&deployer)).await?;
    let key = Key::of(item.as_ref());
    let (noted, coming) = (host.planned_ahead.job_of(&key), coming_job(host, item));
    if let Some(noted) = noted.as_ref().filter(|noted| coming.as_ref().is_none_or(|coming| coming.id != **noted)) {
        let running = coming.as_ref().map(|coming| &coming.id);
        ItemPlans { host, item, job: noted }.end_all_but(running).await;
        host.planned_ahead.forget(&key);
    }
    // Rules over the whole job may have come since.
    let has_rules = has_rules(&host.policies.of(&key.namespace), RuleScope::Job);
    let is_known = |of: &ComingJob| !has_rules || host.job_writes.knows(&(key.namespace.clone(), of.id.clone()), &key);
    let coming = coming.filter(|coming| noted.as_ref() != Some(&coming.id) || !is_known(coming));
    let Some(coming) = coming else { return Ok(()) };
    host.planned_ahead.note(key.clone(), coming.id.clone());
    let tree = (key.namespace.clone(), coming.id.clone());
    let planned = in_this_slot(in_time(Some(TIME_TO_PLAN), Box::pin(plan(host, pool, (item, deployer), coming))));
    if let Err(halt) = host.computations.run(&Some(key.namespace.clone()), planned).await {
        // It may need what another item makes first: it is planned when it is its turn.
        tracing::debug!(item = %key, ?halt, "an item is not planned ahead");
        if has_rules {
            host.job_writes.note(&tree, &key, None);
        }
    }
    Ok(())
}

/// An item that waits for a place is planned, so that rules over the whole job know of it (C-362). What it waits for.
pub(super) async fn plan_queued(gathered: &GatheredItem, phase: ItemPhase, wait: Wait) -> Halt {
    if gathered.has_job_rules() && !gathered.host.job_writes.knows(&gathered.tree_job(), &gathered.key) {
        let purpose = if phase == ItemPhase::Deleting { Purpose::Uninstall } else { Purpose::Install };
        if let Err(halt) = in_time(Some(TIME_TO_PLAN), Box::pin(hold_ahead(gathered, purpose))).await {
            tracing::debug!(item = %gathered.key, ?halt, "an item that waits for a place is not planned");
            gathered.note_job_writes(None);
        }
    }
    Halt::Wait(wait)
}

/// Other items of the Execution of an item which write something in this job, or will.
pub(super) fn others_in_job(host: &ControllerContext, item: &DeployItem, job: &JobId) -> Vec<Key> {
    let own = Key::of(item);
    let Some(execution) = item.label(label::MANAGED_BY) else { return Vec::new() };
    let takes_part = |key: &Key| {
        let Some(other) = host.stores.deploy_items.get(key) else { return false };
        let is_under_way = other.job_id() == job && !other.job_finished();
        let is_coming = || coming_job(host, &other).is_some_and(|coming| coming.id == *job);
        (is_under_way || is_coming()) && host.deployer_of(&other).is_some()
    };
    let items = MANAGED_BY.keys(&host.stores.deploy_items, &own.namespace, execution);
    items.into_iter().filter(|key| *key != own && takes_part(key)).collect()
}

/// Whether items of an Installation have Plans: to be approved, or for rules over the whole job.
fn has_plans(host: &ControllerContext, of: &Key) -> bool {
    let (policy, installation) = (host.policies.of(&of.namespace), host.stores.installations.get(of));
    has_rules(&policy, RuleScope::Job) || requires_approval(&policy, installation.as_deref())
}

/// The job that an item will get of its Execution, where what it writes has to be approved and is known: of those that are made or changed
/// with the job, and of those that go with the Execution.
fn coming_job(host: &ControllerContext, item: &DeployItem) -> Option<ComingJob> {
    let key = Key { name: item.label(label::MANAGED_BY)?.into(), ..Key::of(item) };
    let execution = host.stores.executions.get(&key)?;
    let (id, name) = (execution.job_id(), Key::of(item).name);
    let is_coming = !execution.job_finished() && item.job_finished() && item.job_id() != id;
    if !is_coming || !has_plans(host, &key) {
        return None;
    }
    let of = |purpose| Some(ComingJob { id: id.clone(), purpose });
    match (Phase::parse(execution.phase())?, item.is_deleting()) {
        (Phase::Progressing, false) => {
            let cache = execution.status.as_ref()?.deploy_item_cache.as_ref()?;
            cache.active_items.iter().any(|active| active.object_name == name).then(|| of(Purpose::Install))?
        }
        (Phase::Deleting, true) if !item.is_kept() && !item.flag(annotation::DELETE_WITHOUT_UNINSTALL) => {
            of(Purpose::Uninstall)
        }
        _ => None,
    }
}

/// Tries out what an item is about to write in a job, and makes a Plan of it.
async fn plan(
    host: &Arc<ControllerContext>,
    pool: &Arc<ClusterPool>,
    (item, deployer): (&Arc<DeployItem>, Arc<dyn Deployer>),
    ComingJob { id, purpose }: ComingJob,
) -> Step<()> {
    let cluster = host.host_cluster.uid(&host.client).await?;
    let job = ItemJob { id, begun: host.clock.now(), limit: limit(item).unwrap_or(None) };
    let gathered = GatheredItem::new(host, pool, (Arc::clone(item), cluster), deployer, job);
    gathered.clusters.call().end_in(Some(TIME_TO_PLAN));
    hold_ahead(&gathered, purpose).await
}

/// Tries out what an item is about to write, and holds it against its Plans before it is its turn.
async fn hold_ahead(gathered: &GatheredItem, purpose: Purpose) -> Step<()> {
    gathered.read_job().await?;
    let known = gathered.plans().known().await?;
    let read = match purpose {
        Purpose::Install => gathered.state_with_target().await?,
        Purpose::Uninstall => gathered.state().await?,
    };
    if read.seal_error.is_some() {
        gathered.note_job_writes(None);
        return Ok(());
    }
    let state = read.state;
    let writes = match gathered.ask(purpose, NextCall::default(), &state).await? {
        Some(proposal) => {
            let run = dry_run(&gathered.job(purpose, &|| true), &proposal, &state).await?;
            gathered.item_writes(purpose, run, &state).await?
        }
        None => ItemWrites::of(gathered.tried_deletion(&state).await?),
    };
    let objects = writes.job_objects();
    gathered.hold_against(known, writes, PlanTurn::Ahead).await?;
    gathered.note_job_writes(Some(objects));
    Ok(())
}

/// Has the items of an Execution called when its job begins with them, and when it ends.
pub(super) fn wake_items(host: &Arc<ControllerContext>, queue: Queue) {
    let weak = Arc::downgrade(host);
    host.stores.executions.subscribe(move |change| {
        let Some(after) = change.after else { return };
        if change.before.is_some_and(|before| standing(before) == standing(after)) {
            return;
        }
        let Some(host) = weak.upgrade() else { return };
        let key = Key::of(after.as_ref());
        if has_plans(&host, &key) {
            let items = MANAGED_BY.keys(&host.stores.deploy_items, &key.namespace, &key.name);
            items.into_iter().for_each(|item| queue.wake(item));
        }
    });
}

/// Where the job of an Execution stands.
fn standing(execution: &Execution) -> (&str, &JobId, bool) {
    (execution.phase(), execution.job_id(), execution.job_finished())
}

#[cfg(test)]
mod tests {
    use orangery_api::installation::Installation;
    use serde_json::{Value, json};

    use super::*;
    use crate::controller_context::tests::host;

    /// The job that comes to an item of an Execution.
    fn coming(execution: Value, item: Value, approval: &str) -> Option<ComingJob> {
        let host = host();
        let metadata = |name: &str| json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
        let spec = json!({"blueprint": {}, "approval": approval});
        let root = json!({"metadata": metadata("web"), "spec": spec});
        drop(host.stores.installations.upsert(serde_json::from_value(root).unwrap()));
        let mut of = json!({"metadata": metadata("web"), "spec": {}, "status": {"jobID": "two", "jobIDFinished": "one",
            "phase": "Progressing", "deployItemCache": {"activeDIs": [{"specName": "a", "objectName": "item"}]}}});
        orangery_proposal::overlay::overlay(&mut of, &execution);
        drop(host.stores.executions.upsert(serde_json::from_value(of).unwrap()));
        let mut of = json!({"metadata": metadata("item"), "spec": {"type": "t"},
            "status": {"jobID": "one", "jobIDFinished": "one"}});
        of["metadata"]["labels"] = json!({(label::MANAGED_BY): "web"});
        orangery_proposal::overlay::overlay(&mut of, &item);
        coming_job(&host, &serde_json::from_value(of).unwrap())
    }

    #[tokio::test]
    async fn c_366_a_job_comes_to_an_item_where_its_execution_is_in_one_that_needs_an_approval() {
        let install = || Some(ComingJob { id: "two".into(), purpose: Purpose::Install });
        let none = || json!({});
        assert_eq!(coming(none(), none(), "Required"), install());
        assert_eq!(coming(none(), none(), "None"), None, "nobody is asked");
        let ended = json!({"status": {"jobIDFinished": "two"}});
        assert_eq!(coming(ended, none(), "Required"), None);
        assert_eq!(coming(json!({"status": {"phase": "Init"}}), none(), "Required"), None, "items are being written");
        let late = json!({"status": {"deployItemCache": {"activeDIs": []}}});
        assert_eq!(coming(late, none(), "Required"), None, "expressions decide about it");
        assert_eq!(coming(none(), json!({"status": {"jobID": "two"}}), "Required"), None, "it has it");
        let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(coming(none(), gone.clone(), "Required"), None, "it left the blueprint");
        let deleting = json!({"status": {"phase": "Deleting"}});
        let uninstall = Some(ComingJob { id: "two".into(), purpose: Purpose::Uninstall });
        assert_eq!(coming(deleting.clone(), gone.clone(), "Required"), uninstall);
        assert_eq!(coming(deleting.clone(), none(), "Required"), None);
        let mut without = gone;
        without["metadata"]["annotations"] = json!({(annotation::DELETE_WITHOUT_UNINSTALL): "true"});
        assert_eq!(coming(deleting, without, "Required"), None, "nothing is written");
    }

    #[tokio::test]
    async fn c_366_items_are_called_when_a_job_of_their_execution_that_needs_an_approval_has_come_elsewhere() {
        let host = host();
        let queue = Queue::default();
        wake_items(&host, queue.clone());
        let metadata = |name: &str| json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
        for (name, approval) in [("asks", "Required"), ("free", "None")] {
            let root = json!({"metadata": metadata(name), "spec": {"blueprint": {}, "approval": approval}});
            drop(host.stores.installations.upsert(serde_json::from_value(root).unwrap()));
            let mut item = json!({"metadata": metadata(&format!("item-{name}")), "spec": {"type": "t"}});
            item["metadata"]["labels"] = json!({(label::MANAGED_BY): name});
            drop(host.stores.deploy_items.upsert(serde_json::from_value(item).unwrap()));
        }
        let status = json!({"jobID": "two", "jobIDFinished": "one", "phase": "Progressing"});
        for name in ["asks", "free"] {
            let execution = json!({"metadata": metadata(name), "spec": {}, "status": status});
            drop(host.stores.executions.upsert(serde_json::from_value::<Execution>(execution).unwrap()));
        }
        assert_eq!(queue.queued(), [Key::new("n", "item-asks")], "and no item of what needs no approval");
    }

    #[tokio::test]
    async fn c_366_c_311_an_installation_or_a_policy_requires_approvals_and_what_nobody_knows_does_too() {
        let host = host();
        let installation = |approval: Value| -> Installation {
            let spec = json!({"blueprint": {}, "approval": approval});
            serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "n"}, "spec": spec})).unwrap()
        };
        let asks = |of: Option<&Installation>| requires_approval(&host.policies.of(&"n".into()), of);
        assert!(asks(Some(&installation(json!("Required")))));
        assert!(!asks(Some(&installation(json!("None")))) && !asks(Some(&installation(Value::Null))));
        assert!(!asks(None), "of what has no Installation the policy alone says it");
    }

    #[test]
    fn c_366_where_the_job_of_an_execution_stands_is_its_phase_its_job_and_whether_that_has_ended() {
        let execution = |status: Value| -> Execution {
            serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {}, "status": status})).unwrap()
        };
        let at = |job: &str, finished: &str, phase: &str| {
            execution(json!({"jobID": job, "jobIDFinished": finished, "phase": phase}))
        };
        let first = at("two", "one", "Progressing");
        assert_eq!(standing(&first), ("Progressing", &"two".into(), false));
        assert_eq!(standing(&at("two", "two", "Succeeded")), ("Succeeded", &"two".into(), true));
        let mut waits = first.clone();
        waits.status.get_or_insert_default().items = Vec::new();
        assert_eq!(standing(&waits), standing(&first), "what else its status says is nothing to its items");
        for other in
            [at("three", "one", "Progressing"), at("two", "one", "Completing"), at("two", "two", "Progressing")]
        {
            assert_ne!(standing(&other), standing(&first));
        }
    }

    /// Items of the Execution `web`, whose job is `two`, and what they wait for of each other.
    fn others(host: &ControllerContext, items: &[(&str, &str, Value)]) -> Vec<String> {
        let status = json!({"jobID": "two", "jobIDFinished": "one", "phase": "Progressing", "deployItemCache": {"activeDIs":
            items.iter().map(|(name, ..)| json!({"specName": name, "objectName": name})).collect::<Vec<_>>()}});
        let metadata = |name: &str| json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
        let execution = json!({"metadata": metadata("web"), "spec": {}, "status": status});
        drop(host.stores.executions.upsert(serde_json::from_value(execution).unwrap()));
        for (name, of_execution, status) in items {
            let mut item = json!({"metadata": metadata(name), "spec": {"type": "t"}, "status": status});
            item["metadata"]["labels"] = json!({(label::MANAGED_BY): of_execution});
            drop(host.stores.deploy_items.upsert(serde_json::from_value(item).unwrap()));
        }
        let own = host.stores.deploy_items.get(&Key::new("n", items[0].0)).unwrap();
        others_in_job(host, &own, &"two".into()).into_iter().map(|key| key.name.to_string()).collect()
    }

    /// A host with a deployer for each type that begins with `t`, and rules over whole jobs.
    fn host_with_rules() -> Arc<ControllerContext> {
        let mut host = Arc::into_inner(host()).unwrap();
        host.plugins = Arc::new(Deploying);
        let rules = json!([{"name": "few", "expression": "counts.delete < 9"}]);
        let lines = json!({"profile": "compatible", "namespaces": {"names": ["*"]}, "plans": {"jobRules": rules}});
        host.policies.put_policy("p".to_owned(), orangery_policy::Policy::read("p", &lines));
        Arc::new(host)
    }

    struct Deploying;

    impl orangery_blueprint::plugins::Plugins for Deploying {
        fn deployer(&self, item_type: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
            let identity = orangery_proposal::deployer::PluginIdentity {
                name: "p".into(),
                version: "1".into(),
                digest: "sha256:0".into(),
                is_pinned: false,
            };
            let deployer = || Arc::new(crate::silent_deployer::SilentDeployer::new(identity)) as Arc<dyn Deployer>;
            item_type.starts_with('t').then(deployer)
        }

        fn template_engine(
            &self,
            _: &str,
            _: Option<&orangery_core::name::Namespace>,
        ) -> Option<Arc<dyn orangery_blueprint::template_engine::TemplateEngine>> {
            None
        }

        fn bundled_engine(
            &self,
            name: &str,
            _: Arc<dyn orangery_ocm::Artifact>,
        ) -> Arc<dyn orangery_blueprint::template_engine::TemplateEngine> {
            unreachable!("{name}: no template is rendered here")
        }

        fn template_types(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn c_362_an_item_waits_for_those_of_its_execution_that_write_in_the_job_or_will() {
        let host = host_with_rules();
        let at = |job: &str, finished: &str| json!({"jobID": job, "jobIDFinished": finished});
        let items = [
            ("own", "web", at("two", "one")),
            ("runs", "web", at("two", "one")),
            ("comes", "web", at("one", "one")),
            ("ended", "web", at("two", "two")),
            ("elsewhere", "other", at("two", "one")),
        ];
        assert_eq!(others(&host, &items), ["comes", "runs"]);
        let mut external = serde_json::to_value(host.stores.deploy_items.get(&Key::new("n", "runs")).unwrap()).unwrap();
        external["metadata"]["resourceVersion"] = json!("2");
        external["spec"]["type"] = json!("external");
        drop(host.stores.deploy_items.upsert(serde_json::from_value(external).unwrap()));
        let own = host.stores.deploy_items.get(&Key::new("n", "own")).unwrap();
        let left: Vec<_> = others_in_job(&host, &own, &"two".into()).into_iter().map(|key| key.name).collect();
        assert_eq!(left, ["comes"], "what external deployers write nobody knows");
        assert_eq!(others_in_job(&host, &own, &"three".into()), [], "of another job");
    }

    #[tokio::test]
    async fn c_362_items_have_plans_where_rules_are_over_whole_jobs() {
        let host = host_with_rules();
        assert!(has_plans(&host, &Key::new("n", "web")));
        assert!(!has_plans(&self::host(), &Key::new("n", "web")));
        assert!(has_rules(&host.policies.of(&"n".into()), RuleScope::Job));
    }
}
