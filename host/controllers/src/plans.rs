//! Plans of deploy items on the server: found, made, and told where they stand (C-311 … C-317). What the operator has made is
//! known by its seal: whoever writes Plans makes none that counts.

use std::{collections::BTreeSet, sync::Arc};

use data_encoding::BASE64;
use futures::{StreamExt as _, future::join_all};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use orangery_api::{
    condition::Condition,
    deploy_item::DeployItem,
    job::Job as _,
    job_history::RecordedPlan,
    plan::{PLANNED_AHEAD, PLANNED_ITEM, PLANNED_JOB, Plan, PlanApproval, PlanContent, PlanDecision, phase},
};
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    name::{JobId, Namespace},
    plan::approval::{ApprovalDecision, KnownPlan, PlanOrigin, WriteDigest},
    step::{Halt, Step, Until},
};
use orangery_reconcile::{Key, Queue};
use serde_json::json;

use crate::{
    controller_context::ControllerContext,
    object::{beginning_of_name, delete_old, message_of, owner_reference, uid_of},
    object_access::get,
};

mod of_job;

pub(crate) use of_job::read_job;

/// The most Plans of an item in one job: where what it is about to write changes that often, nobody can approve it (C-317).
pub(crate) const MOST_PLANS_OF_A_JOB: u32 = 64;

/// Plans of an item that are kept beside the one that is made (C-317).
const MOST_KEPT_PLANS: usize = 3;

/// Letters of what somebody says of a Plan, and of a name, that come into messages (C-317).
const LONGEST_REASON: usize = 256;

/// Plans of an item that are looked at: others than this operator's are among them.
const PAGE: u32 = 100;

/// The Plans of an item in a job, and the number of the next one.
pub(crate) type JobPlans = (Vec<KnownPlan>, u32);

/// When a Plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanTurn {
    /// When it is the turn of its item.
    Now,
    /// Before that (C-366).
    Ahead,
}

/// The reason of the condition of a Plan of which somebody said something who may not.
const MAY_NOT_DECIDE: &str = "MayNotDecide";

/// Plans of one item in one job.
pub(crate) struct ItemPlans<'a> {
    pub(crate) host: &'a ControllerContext,
    pub(crate) item: &'a DeployItem,
    pub(crate) job: &'a JobId,
}

impl ItemPlans<'_> {
    fn api(&self) -> Api<Plan> {
        Api::namespaced(self.host.client.clone(), &Key::of(self.item).namespace)
    }

    /// How the names of Plans of this job begin, before their numbers: with that of the item, as far as there is room.
    fn prefix(&self) -> String {
        let item = Key::of(self.item).name;
        let job = sha256(format!("{}/{}", uid_of(self.item), self.job).as_bytes());
        let job: String = job.chars().rev().take(8).collect();
        format!("{}-{job}-", beginning_of_name(&item))
    }

    /// Plans of this operator for the item in this job, and the number of the next one.
    ///
    /// # Errors
    /// The server does not answer; or there are too many.
    pub(crate) async fn known(&self) -> Step<JobPlans> {
        let (namespace, prefix) = (Key::of(self.item).namespace, self.prefix());
        let (mut plans, mut last) = (Vec::new(), 0);
        for listed in self.listed().await? {
            let name = listed.name_any();
            let Some(number) = name.strip_prefix(&prefix).and_then(|number| number.parse::<u32>().ok()) else {
                continue;
            };
            last = last.max(number);
            if let Some(plan) = get::<Plan>(&self.host.client, &namespace, &name.into()).await? {
                plans.extend(self.read(&plan));
            }
        }
        if last >= MOST_PLANS_OF_A_JOB {
            return Err(self.too_many(&format!(
                "what it is about to write has changed {MOST_PLANS_OF_A_JOB} times in this job, each time with a new Plan: see what changes \
                 its objects"
            )));
        }
        Ok((plans, last + 1))
    }

    /// What is known of the Plans of the item, of whatever job.
    async fn listed(&self) -> Step<Vec<PartialObjectMeta<Plan>>> {
        let selected = format!("{PLANNED_ITEM}={}", uid_of(self.item));
        let listed = self.api().list_metadata(&ListParams::default().labels(&selected).limit(PAGE)).await;
        let listed = listed.map_err(|error| {
            let message =
                format!("Plans of DeployItem {} could not be listed: {}", Key::of(self.item), message_of(&error));
            Halt::Retry(Failure::new("Approve", "PlansNotListed", message))
        })?;
        if listed.metadata.continue_.is_some_and(|token| !token.is_empty()) {
            return Err(self.too_many(&format!(
                "there are more than {PAGE} Plans with its uid in the label {PLANNED_ITEM}, of which this operator keeps a few: delete the \
                 others"
            )));
        }
        Ok(listed.items)
    }

    fn too_many(&self, why: &str) -> Halt {
        let message = format!("DeployItem {} is not approved: {why}, and reconcile again", Key::of(self.item));
        Halt::Stall(Failure::new("Approve", "TooManyPlans", message).with_code(Code::LimitExceeded))
    }

    /// A Plan that counts: this operator has made it as it is, for this item and job.
    fn read(&self, plan: &Plan) -> Option<KnownPlan> {
        let spec = &plan.spec;
        let is_of_job = spec.item.uid == uid_of(self.item) && spec.job_id == *self.job;
        if !is_of_job || !self.host.key.seals().knows(spec) {
            return None;
        }
        let planned = spec.planned().ok()?;
        let counts = |said: &&PlanApproval| plan.may_be_decided_by(&said.by);
        let was_told =
            || plan.status.iter().flat_map(|status| &status.conditions).any(|told| told.reason == MAY_NOT_DECIDE);
        let decision = match plan.decision().filter(counts) {
            None => ApprovalDecision::Open,
            Some(said) => match said.decision {
                PlanDecision::Approve => ApprovalDecision::Approved,
                PlanDecision::Reject => ApprovalDecision::Rejected { by: cut(&said.by), reason: cut(&said.reason) },
            },
        };
        let write =
            |write: orangery_api::plan::PlannedWrite| WriteDigest { object: write.object, digest: write.digest };
        Some(KnownPlan {
            name: plan.name_any(),
            is_applied: [phase::APPLYING, phase::APPLIED].contains(&plan.phase()),
            is_stale: plan.phase() == phase::STALE,
            is_ended: [phase::APPLIED, phase::REJECTED].contains(&plan.phase()),
            origin: PlanOrigin { component: spec.made_from.component.clone(), item: spec.made_from.item.clone() },
            writes: planned.writes.into_iter().map(write).collect(),
            decision,
            needs_no_approval: spec.needs_no_approval,
            is_misdecided: plan.decision().is_some_and(|said| !counts(&said)) && !was_told(),
        })
    }

    /// Says of an open Plan that what somebody said of it does not count.
    pub(crate) async fn tell_misdecided(&self, name: &str) {
        let why = "what was said of it does not count: somebody else has to decide than the author, and both have to be named";
        self.tell(name, phase::READY, (MAY_NOT_DECIDE, why)).await;
    }

    /// Says of the Plans of the item that are open, in jobs that are not this one, that they do not count any more.
    pub(crate) async fn end_all_but(&self, running: Option<&JobId>) {
        for listed in self.listed().await.into_iter().flatten() {
            let found: Step<Option<Plan>> =
                get(&self.host.client, &Key::of(self.item).namespace, &listed.name_any().into()).await;
            let Ok(Some(plan)) = found else { continue };
            let is_own = plan.spec.item.uid == uid_of(self.item) && self.host.key.seals().knows(&plan.spec);
            if is_own && plan.phase() == phase::READY && Some(&plan.spec.job_id) != running {
                self.tell(&plan.name_any(), phase::STALE, ("JobEnded", "its job has ended without it")).await;
            }
        }
    }

    /// Makes the Plan of this number, sealed. Those of the item that are left over from earlier go, but for the last few.
    ///
    /// # Errors
    /// The server does not take it.
    pub(crate) async fn make(&self, number: u32, spec: PlanContent, turn: PlanTurn) -> Step<String> {
        let api = self.api();
        let name = format!("{}{number}", self.prefix());
        let mut plan = Plan::new(&name, spec);
        self.host.key.seals().seal_plan(&mut plan.spec);
        let of_item = [
            (PLANNED_ITEM.to_owned(), uid_of(self.item).to_owned()),
            (PLANNED_JOB.to_owned(), of_job::label_of(self.job)),
        ];
        let ahead = (turn == PlanTurn::Ahead).then(|| (PLANNED_AHEAD.to_owned(), "true".to_owned()));
        plan.metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: self.item.namespace(),
            labels: Some(of_item.into_iter().chain(ahead).collect()),
            owner_references: Some(vec![owner_reference(self.item)]),
            ..ObjectMeta::default()
        };
        let not_made = |error: kube::Error| {
            let message = format!(
                "Plan {name}, which is to be approved, could not be created: {}; nothing is written until it can",
                message_of(&error)
            );
            Halt::Retry(Failure::new("Approve", "PlanNotCreated", message))
        };
        api.create(&PostParams::default(), &plan).await.map_err(not_made)?;
        self.remove_old(&api, &name).await;
        Ok(name)
    }

    /// Removes Plans of the item but the newest and those that are kept beside it. What cannot be removed goes with the item.
    async fn remove_old(&self, api: &Api<Plan>, newest: &str) {
        let Ok(listed) = self.listed().await else { return };
        let old = listed.into_iter().filter(|plan| plan.name_any() != newest).collect();
        // Of those of one second the one with the highest number is the newest.
        let age = |plan: &PartialObjectMeta<Plan>| {
            let name = plan.name_any();
            (plan.metadata.creation_timestamp.clone(), name.len(), name)
        };
        delete_old(api, old, age, MOST_KEPT_PLANS).await;
    }

    /// Says where a Plan stands. It is said to people alone: nothing depends on it.
    pub(crate) async fn tell(&self, name: &str, phase: &str, (reason, why): (&str, &str)) {
        let now = self.host.now();
        let current = Condition {
            type_: "Current".to_owned(),
            status: if phase == phase::STALE { "False" } else { "True" }.to_owned(),
            last_transition_time: now.clone(),
            last_update_time: now,
            reason: reason.to_owned(),
            message: why.to_owned(),
            codes: Vec::new(),
            observed_generation: None,
        };
        let patch = Patch::Merge(json!({"status": {"phase": phase, "conditions": [current]}}));
        if let Err(error) = self.api().patch_status(name, &PatchParams::default(), &patch).await {
            tracing::debug!(%error, plan = name, "the phase of a Plan is not written");
        }
    }

    /// The Plans of this job that somebody has approved, as far as the server answers.
    pub(crate) async fn approved(&self) -> Vec<RecordedPlan> {
        let prefix = self.prefix();
        let mut approved = Vec::new();
        for listed in self.listed().await.into_iter().flatten() {
            let name = listed.name_any();
            if !name.starts_with(&prefix) {
                continue;
            }
            let found: Step<Option<Plan>> =
                get(&self.host.client, &Key::of(self.item).namespace, &name.clone().into()).await;
            let Some(plan) = found.ok().flatten().filter(|plan| self.read(plan).is_some()) else { continue };
            let decision = plan.decision().filter(|said| said.decision == PlanDecision::Approve);
            approved.extend(decision.map(|said| RecordedPlan {
                name,
                plan_hash: said.plan_hash.clone(),
                by: cut(&said.by),
            }));
        }
        approved
    }

    /// The job of the item has ended: what was carried out is applied, and what nobody has said anything of does not count any more.
    pub(crate) async fn end(&self) {
        let Ok((plans, _)) = self.known().await else { return };
        for KnownPlan { name, is_applied, is_stale, is_ended, decision, .. } in plans {
            match (is_applied, is_stale, decision) {
                _ if is_ended => {}
                (true, _, _) => self.tell(&name, phase::APPLIED, ("JobEnded", "its job has ended")).await,
                (false, false, ApprovalDecision::Rejected { .. }) => {
                    self.tell(&name, phase::REJECTED, ("Rejected", "it is rejected, and its job has ended")).await;
                }
                (false, false, _) => self.tell(&name, phase::STALE, ("JobEnded", "its job has ended without it")).await,
                (false, true, _) => {}
            }
        }
    }
}

/// Whether an item waits until somebody approves what it writes, as its status says.
pub(crate) fn awaits_approval(item: &DeployItem) -> bool {
    let waiting_for = item.status.iter().flat_map(|status| &status.waiting_for);
    waiting_for.into_iter().any(|on| on.until() == Some(Until::Approved))
}

/// The begin of a text that others wrote.
fn cut(text: &str) -> String {
    text.chars().take(LONGEST_REASON).collect()
}

/// What is done to an object, as a Plan says it: with what is secret, so under a key of the operator.
pub(crate) fn digest(host: &ControllerContext, item: &DeployItem, write: &serde_json::Value) -> String {
    let write = json!(["write", uid_of(item), write]).to_string();
    BASE64.encode(&host.key.seals().sign(write.as_bytes()))
}

/// Has items called of which somebody has said something of a Plan. Runs until it is dropped.
///
/// Errors are logged and backed off.
pub async fn watch_plans(host: Arc<ControllerContext>, queue: Queue, namespaces: BTreeSet<Namespace>) {
    let api = |namespace: Option<&Namespace>| -> Api<PartialObjectMeta<Plan>> {
        match namespace {
            Some(namespace) => Api::namespaced(host.client.clone(), namespace),
            None => Api::all(host.client.clone()),
        }
    };
    if namespaces.is_empty() {
        follow(&host, &queue, api(None)).await;
    } else {
        join_all(namespaces.iter().map(|namespace| follow(&host, &queue, api(Some(namespace))))).await;
    }
}

async fn follow(host: &ControllerContext, queue: &Queue, api: Api<PartialObjectMeta<Plan>>) {
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init | Event::InitDone) => {}
            Ok(Event::InitApply(plan) | Event::Apply(plan) | Event::Delete(plan)) => wake(host, queue, &plan),
            Err(error) => tracing::warn!(%error, "the watch of Plans broke off and is taken up again"),
        }
    }
}

/// Has the item of a Plan called, where its job is under way.
fn wake(host: &ControllerContext, queue: &Queue, plan: &PartialObjectMeta<Plan>) {
    let owner = plan.owner_references().iter().find(|owner| owner.kind == "DeployItem");
    let Some((owner, namespace)) = owner.zip(plan.namespace()) else { return };
    let key = Key::new(namespace, owner.name.clone());
    // Whoever makes a Plan chooses its owner: nothing is kept for an item that is not there.
    let Some(item) = host.stores.deploy_items.get(&key) else { return };
    // Made ahead by another process, of which nobody has said yet that its job has ended.
    let is_found = plan.labels().contains_key(PLANNED_AHEAD) && host.planned_ahead.find(&key);
    if is_found || !item.job_finished() {
        queue.wake(key);
    }
}

#[cfg(test)]
mod tests;
