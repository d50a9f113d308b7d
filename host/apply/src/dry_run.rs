//! What a proposal would do, without doing it: the path of a run, with a writer that only tries.

use std::collections::{BTreeMap, BTreeSet};

use orangery_core::{masking::Masker, port::BoxFuture, step::Step};
use orangery_proposal::{
    Action, ObjectWrite, Ownership, PlannedObject, Proposal, Stage, Write,
    executor::{ExecutionStep, stages, writes},
    inventory::{Inventory, LocatedObject},
    item::StoredProposal,
    overlay::{difference, plain, whole_difference},
};
use serde_json::{Value, json};

use crate::{
    ItemState, Job, Outcome, ProgressStore,
    cluster_identity::ClusterIdentity,
    deletion::delete_by,
    dry_run_objects::{DryRunObject, DryRunObjects},
    executor::{execute, located},
    job_objects::JobObjects,
    writer::ObjectWriter,
};

/// What a proposal would do.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// Where it would lead.
    pub outcome: Outcome,
    /// What would become of each object, in the order in which the proposal comes to them.
    pub effects: Vec<Effect>,
    /// What would not be deleted, and why, one sentence each.
    pub notes: Vec<String>,
    /// What would be left in clusters that the targets do not name any more, by the uid of the cluster.
    pub former: BTreeMap<String, Inventory>,
}

impl DryRun {
    /// Nothing is tried out.
    pub fn nothing() -> Self {
        Self::of_deletion(Vec::new(), ItemState::default())
    }

    fn of_deletion(effects: Vec<Effect>, state: ItemState) -> Self {
        Self { outcome: Outcome::Finished, effects, notes: state.notes, former: state.former }
    }
}

/// One object of a proposal: what it is, and what it would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Which object.
    pub located: LocatedObject,
    /// By what its cluster is known again (C-35); `None` where that was not looked at.
    pub cluster: Option<ClusterIdentity>,
    /// What would become of it.
    pub action: Action,
    /// As it is; `None` where it does not exist.
    pub before: Option<Value>,
    /// As it would be; `None` where it is deleted. Where the object exists, as the server answers to a try.
    pub after: Option<Value>,
    /// The stage that comes to it first; empty for what left the plan.
    pub stage: String,
    /// Whether it lives for the job only, as hooks do.
    pub ephemeral: bool,
}

impl Effect {
    /// What people are shown of it, without what is secret.
    pub fn display(mut self, masker: &Masker) -> PlannedObject {
        self.before.iter_mut().chain(&mut self.after).for_each(|object| masker.mask_value(object));
        let mut key = self.located.key;
        key.name = masker.mask(&key.name).into_owned().into();
        PlannedObject::new(self.action, &self.located.on, &key, self.before.as_ref(), self.after.as_ref())
            .in_stage(self.stage, self.ephemeral)
    }

    /// What is written, one value for each thing that is done to the object, whatever order it is done in (C-313): what it becomes where
    /// it is made, which one goes where it is deleted, and else the fields that change. What the server fills in says nothing.
    /// It is secret.
    pub fn writes(&self) -> Vec<Value> {
        let Self { located, cluster, action, before, after, .. } = self;
        let cluster = cluster.as_ref().map(|cluster| [cluster.uid(), cluster.address()]);
        let made = || json!(["make", cluster, located, after.as_ref().map(plain)]);
        let uid = || before.as_ref().and_then(|before| before.pointer("/metadata/uid"));
        let gone = || json!(["delete", cluster, located, uid()]);
        match (action, before, after) {
            (Action::Create, _, _) => vec![made()],
            (Action::Replace, _, _) => vec![gone(), made()],
            (Action::Delete, _, _) => vec![gone()],
            (Action::Change, Some(before), Some(after)) => {
                vec![json!(["change", cluster, located, uid(), whole_difference(before, after)])]
            }
            (Action::Change | Action::None | Action::Foreign, _, _) => Vec::new(),
        }
    }
}

/// Carries a proposal out as [`carry_out`](crate::carry_out) does, with reads and dry runs alone, from where `known`, the item's
/// state, says that it stands. Gates are not waited for: every stage is taken to succeed; and nobody recovers from a failure, which is
/// answered.
///
/// # Errors
/// Those of [`carry_out`](crate::carry_out).
pub async fn dry_run(job: &Job<'_>, proposal: &Proposal, known: &ItemState) -> Step<DryRun> {
    let proposal = Proposal { recover: None, ..proposal.clone() };
    let writer = ObjectWriter::DryRun(DryRunObjects::default());
    let mut state = standing(known);
    let objects = JobObjects::new(job, &writer, Some(&proposal));
    let outcome = execute(objects, &mut Unrecorded, &proposal, &mut state).await?;
    let ObjectWriter::DryRun(objects) = writer else {
        return Ok(DryRun { outcome, effects: Vec::new(), notes: state.notes, former: state.former });
    };
    let mut objects = objects.into_objects();
    let writes: BTreeMap<LocatedObject, &ObjectWrite> = writes(&proposal).collect();
    let effects = order(&proposal, &known.inventory).into_iter().filter_map(|(located, stage)| {
        let known = objects.remove(&located)?;
        let write = writes.get(&located).copied();
        Some(effect(known, (located, stage), write, job))
    });
    let mut effects: Vec<Effect> = effects.collect();
    effects.extend(beside(objects, job));
    place(&mut effects, &state);
    Ok(DryRun { outcome, effects, notes: state.notes, former: state.former })
}

/// Takes away what an item has deployed as [`delete`](crate::delete) does, with reads and dry runs alone.
///
/// # Errors
/// Those of [`delete`](crate::delete).
pub async fn dry_run_of_deletion(job: &Job<'_>, known: &ItemState) -> Step<DryRun> {
    let writer = ObjectWriter::DryRun(DryRunObjects::default());
    let mut state = ItemState { deletion_order: known.deletion_order.clone(), ..standing(known) };
    delete_by(&writer, job, &mut state).await?;
    let ObjectWriter::DryRun(objects) = writer else {
        return Ok(DryRun::of_deletion(Vec::new(), state));
    };
    let mut effects = beside(objects.into_objects(), job);
    place(&mut effects, &state);
    Ok(DryRun::of_deletion(effects, state))
}

/// Says in which clusters it is, as the dry run has found them.
fn place(effects: &mut [Effect], state: &ItemState) {
    for effect in effects {
        effect.cluster = state.clusters.get(&effect.located.on).cloned();
    }
}

/// As much of a state as a dry run begins with.
fn standing(known: &ItemState) -> ItemState {
    let (inventory, clusters, progress) = (known.inventory.clone(), known.clusters.clone(), known.progress.clone());
    ItemState { inventory, clusters, progress, ..ItemState::default() }
}

/// What is written or deleted although no stage and no inventory names it: what a selection takes in.
fn beside(objects: BTreeMap<LocatedObject, DryRunObject>, job: &Job<'_>) -> Vec<Effect> {
    let reached = objects.into_iter().filter(|(_, known)| known.is_written || known.is_deleted);
    reached.map(|(located, known)| effect(known, (located, String::new()), None, job)).collect()
}

/// The objects of a proposal and of an inventory in the order in which the proposal comes to them, each with its first stage.
fn order(proposal: &Proposal, known: &Inventory) -> Vec<(LocatedObject, String)> {
    let (before, afterwards) = stages(proposal);
    let planned: BTreeSet<LocatedObject> = writes(proposal).map(|(located, _)| located).collect();
    let leaving = known.leaving(&planned).into_iter().map(|located| (located, String::new()));
    let all = before.iter().flat_map(objects).chain(leaving).chain(afterwards.iter().flat_map(objects));
    let mut seen = BTreeSet::new();
    all.filter(|(located, _)| seen.insert(located.clone())).collect()
}

/// The objects of the stages that a proposal has behind it at this step: the item has come to them in this job.
pub fn reached(proposal: &Proposal, step: &ExecutionStep) -> BTreeSet<LocatedObject> {
    let (before, afterwards) = stages(proposal);
    let (of_before, of_afterwards) = match step {
        ExecutionStep::Stage(position) => (position.stage, 0),
        ExecutionStep::Pruning | ExecutionStep::Exporting => (before.len(), 0),
        ExecutionStep::Afterwards(position) => (before.len(), position.stage),
        ExecutionStep::Tidying => (before.len(), afterwards.len()),
        ExecutionStep::Calling { .. } | ExecutionStep::Recovering(_) | ExecutionStep::Deleting => (0, 0),
    };
    let passed = before.iter().take(of_before).chain(afterwards.iter().take(of_afterwards));
    passed.flat_map(objects).map(|(located, _)| located).collect()
}

fn objects(stage: &Stage) -> impl Iterator<Item = (LocatedObject, String)> {
    let removals = stage.removals.iter().map(|one| LocatedObject { on: one.on.clone(), key: one.key.clone() });
    let writes = stage.writes.iter().filter_map(|write| located(write).ok());
    removals.chain(writes).map(|located| (located, stage.name.clone()))
}

/// A store of a job that leaves nothing behind.
struct Unrecorded;

impl ProgressStore for Unrecorded {
    fn record<'a>(&'a mut self, _: &'a ItemState) -> BoxFuture<'a, Step<()>> {
        Box::pin(async { Ok(()) })
    }

    fn persist<'a>(&'a mut self, _: &'a Proposal) -> BoxFuture<'a, Step<StoredProposal>> {
        Box::pin(async { Ok(StoredProposal { digest: String::new(), secrets: Vec::new() }) })
    }

    fn export<'a>(&'a mut self, _: &'a Value) -> BoxFuture<'a, Step<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// What has become of an object in the end.
fn effect(
    known: DryRunObject,
    (located, stage): (LocatedObject, String),
    write: Option<&ObjectWrite>,
    job: &Job<'_>,
) -> Effect {
    let DryRunObject { before, after, is_written, is_deleted } = known;
    let is_foreign = !is_written && !is_deleted && is_foreign(before.as_ref(), write, job);
    let action = match (&before, &after) {
        (Some(_), _) if is_foreign => Action::Foreign,
        (None, Some(_)) => Action::Create,
        (None, None) => Action::None,
        (Some(_), None) => Action::Delete,
        (Some(_), Some(_)) if is_deleted => Action::Replace,
        (Some(before), Some(after)) if difference(before, after).is_empty() => Action::None,
        (Some(_), Some(_)) => Action::Change,
    };
    let ephemeral = !is_foreign && write.is_some_and(|write| write.owned == Ownership::Ephemeral);
    Effect { located, cluster: None, action, before, after, stage, ephemeral }
}

/// Whether an object that is there is left to somebody else: by a write, or where it was to be deleted (C-36).
fn is_foreign(live: Option<&Value>, write: Option<&ObjectWrite>, job: &Job<'_>) -> bool {
    let leaves = |write: &ObjectWrite| write.how == Write::Create || write.owned == Ownership::Fallback;
    live.is_some_and(|live| write.is_none_or(leaves) && !job.owns(live))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use orangery_core::port::Clock;
    use orangery_proposal::{ClusterRef, SecretContent, grant::Grants};
    use serde_json::json;

    use super::*;
    use crate::{DeployItems, Owner, Purpose};
    use orangery_cluster::{Cluster, ClusterPool, Connections, Waiter};

    fn config_map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}})
    }

    fn stage(name: &str, removals: &[&str], writes: &[&str]) -> Value {
        let key =
            |name: &&str| json!({"key": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": name}});
        let write = |name: &&str| json!({"object": config_map(name), "how": "replace"});
        json!({"name": name, "gate": "accepted", "removals": removals.iter().map(key).collect::<Vec<_>>(),
            "writes": writes.iter().map(write).collect::<Vec<_>>()})
    }

    #[test]
    fn objects_come_with_their_first_stage_and_what_left_the_plan_before_the_last_stages() {
        let next = json!({"finish": {"afterwards": [stage("last", &[], &["a", "z"])]}});
        let stages = [stage("one", &["r", "a"], &["b", "a"]), stage("two", &["b"], &["c"])];
        let proposal: Proposal = serde_json::from_value(json!({"stages": stages, "next": next})).unwrap();
        let managed = |name: &str| {
            json!({"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap",
            "namespace": "n", "name": name}})
        };
        let known = Inventory::read(Some(&json!([managed("old"), managed("r"), managed("z")]))).unwrap();
        let found: Vec<(String, String)> = order(&proposal, &known)
            .into_iter()
            .map(|(located, stage)| (located.key.name.to_string(), stage))
            .collect();
        let expected = [("r", "one"), ("a", "one"), ("b", "one"), ("c", "two"), ("old", ""), ("z", "last")];
        assert_eq!(found, expected.map(|(name, stage)| (name.to_owned(), stage.to_owned())));
    }

    #[test]
    fn c_313_what_a_proposal_has_behind_it_are_the_objects_of_the_stages_that_it_has_passed() {
        let next = json!({"finish": {"afterwards": [stage("last", &["r"], &["z"]), stage("end", &[], &["y"])]}});
        let stages = [stage("one", &[], &["a"]), stage("two", &["b"], &["c"])];
        let proposal: Proposal = serde_json::from_value(json!({"stages": stages, "next": next})).unwrap();
        let of = |step: Value| -> String {
            let step = serde_json::from_value(step).unwrap();
            reached(&proposal, &step).into_iter().map(|located| located.key.name.to_string()).collect()
        };
        let at = |stage: usize, step: &str| json!({"stage": stage, "step": step});
        assert_eq!(of(json!({"stage": at(0, "writing")})), "");
        assert_eq!(of(json!({"stage": at(1, "removing")})), "a");
        assert_eq!(of(json!({"stage": at(1, "waiting")})), "a", "the stage is not passed");
        assert_eq!(of(json!("pruning")), "abc");
        assert_eq!(of(json!({"afterwards": at(1, "writing")})), "abcrz");
        assert_eq!(of(json!("tidying")), "abcryz");
        assert_eq!(of(json!({"calling": {}})), "", "what comes is another proposal");
    }

    #[test]
    fn c_313_what_is_written_is_told_apart_by_what_becomes_of_an_object_and_not_by_what_the_server_fills_in() {
        let located = LocatedObject {
            on: ClusterRef::Target,
            key: serde_json::from_value(json!({"apiVersion": "v1",
            "kind": "Secret", "name": "a"}))
            .unwrap(),
        };
        let secret = |version: &str, value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"uid": "u", "resourceVersion": version},
                "data": {"k": value}})
        };
        let of = |action, before: Option<Value>, after: Option<Value>| {
            let (stage, ephemeral) = (String::new(), false);
            let cluster = Some(ClusterIdentity::Uid("c".to_owned()));
            Effect { located: located.clone(), cluster, action, before, after, stage, ephemeral }
        };
        let elsewhere =
            Effect { cluster: Some(ClusterIdentity::Uid("d".to_owned())), ..of(Action::Create, None, None) };
        assert_ne!(elsewhere.writes(), of(Action::Create, None, None).writes(), "another cluster is another place");
        let of = |action, before, after| of(action, before, after).writes();
        let (one, two, three) = (secret("1", "one"), secret("2", "two"), secret("3", "three"));
        let changed = of(Action::Change, Some(one.clone()), Some(two.clone()));
        assert_eq!(changed, of(Action::Change, Some(secret("9", "one")), Some(two.clone())));
        assert_ne!(changed, of(Action::Change, Some(three.clone()), Some(two.clone())), "a value of a Secret counts");
        let created = of(Action::Create, None, Some(two.clone()));
        assert_ne!(created, of(Action::Create, None, Some(three)));
        let replaced = of(Action::Replace, Some(one.clone()), Some(two));
        assert_eq!(replaced, [of(Action::Delete, Some(one.clone()), None), created].concat(), "half of it may be done");
        assert_eq!(of(Action::None, Some(one.clone()), Some(one)), Vec::<Value>::new());
    }

    struct Nowhere;

    impl Connections for Nowhere {
        fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
            unreachable!("no cluster is asked for")
        }

        fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
            unreachable!("no content is asked for")
        }
    }

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    impl DeployItems for Stopped {
        fn is_gone<'a>(&'a self, _: &'a Owner) -> BoxFuture<'a, Step<bool>> {
            Box::pin(async { Ok(false) })
        }
    }

    #[test]
    fn an_effect_is_what_has_become_of_the_object_in_the_end() {
        let waiter = Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: "item".into() };
        let clusters = ClusterPool::new(|_| {}).set(Arc::new(Nowhere), waiter);
        let labels = ["item".to_owned()];
        let owner = Owner { namespace: "n".into(), name: "item".into(), uid: "u".to_owned(), cluster: None };
        let grants = Grants::default();
        let job = Job {
            id: &"j".into(),
            purpose: Purpose::Install,
            owner: &owner,
            labels: &labels,
            grants: &grants,
            clusters: &clusters,
            items: &Stopped,
            clock: &Stopped,
            removes_its_own_alone: false,
            is_current: &|| true,
            recorded: None,
        };
        let created: ObjectWrite = serde_json::from_value(json!({"object": config_map("a"), "how": "create"})).unwrap();
        let (ours, theirs) = (
            json!({"metadata": {"labels": {"item": "item"}}, "data": {"k": "1"}}),
            json!({"metadata": {"labels": {"item": "other"}}, "data": {"k": "2"}}),
        );
        let located = LocatedObject {
            on: ClusterRef::Target,
            key: serde_json::from_value(json!({"apiVersion": "v1",
            "kind": "ConfigMap", "name": "a"}))
            .unwrap(),
        };
        let of = |write: Option<&ObjectWrite>, before: Option<&Value>, after: Option<&Value>, flags: (bool, bool)| {
            let (is_written, is_deleted) = flags;
            let known = DryRunObject { before: before.cloned(), after: after.cloned(), is_written, is_deleted };
            effect(known, (located.clone(), String::new()), write, &job).action
        };
        let action = |before, after, flags| of(Some(&created), before, after, flags);
        assert_eq!(action(None, None, (false, true)), Action::None);
        assert_eq!(action(None, Some(&ours), (true, false)), Action::Create);
        assert_eq!(action(Some(&ours), Some(&ours), (false, false)), Action::None);
        assert_eq!(action(Some(&ours), Some(&theirs), (true, false)), Action::Change);
        assert_eq!(action(Some(&ours), None, (false, true)), Action::Delete);
        assert_eq!(action(Some(&ours), Some(&theirs), (true, true)), Action::Replace);
        assert_eq!(action(Some(&theirs), Some(&theirs), (false, false)), Action::Foreign);
        assert_eq!(action(Some(&theirs), Some(&ours), (true, false)), Action::Change, "it has been taken over");
        let left = |live: &Value| of(None, Some(live), Some(live), (false, false));
        assert_eq!((left(&theirs), left(&ours)), (Action::Foreign, Action::None), "it was to be deleted");
    }
}
