//! Deploy items: created and updated from the spec in `Init`, triggered in order in `Progressing`.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use kube::{ResourceExt, core::ObjectMeta};
use orangery_api::{
    FINALIZER, annotation,
    deploy_item::{DeployItem, DeployItemSpec},
    execution::{DeployItemCache, DeployItemTemplate, Records},
    job::{Job, NamePair},
    label,
    marks::Marks,
};
use orangery_blueprint::gate;
use orangery_core::{
    dag::Direction,
    error::{Code, Failure},
    job::{JobIds, interrupted},
    name,
    phase::{Phase, item::Item as ItemPhase},
    plan::execution::{self as plan, ItemState, ObjectState},
    step::{Halt, Step, Until, Verdict},
    workflow::{Answer, Point},
};
use orangery_reconcile::{Key, WriteError};

use super::{Run, conditions, deletion::states_of_objects};
use crate::{
    conditions::Asked,
    guard,
    host::{Host, index},
    job::{JobStatus, failure_of},
    object::{controller_reference, hold},
};

/// How many items of one Execution are written at the same time.
pub(super) const WRITES_AT_ONCE: usize = 16;

impl Run<'_> {
    /// The DeployItem objects of this Execution, sorted by name.
    pub(super) fn objects(&self) -> Vec<Arc<DeployItem>> {
        let namespace = self.draft.namespace().unwrap_or_default();
        self.host.stores.deploy_items.indexed(index::MANAGED_BY, &namespace, &self.draft.name_any())
    }

    /// The items of the spec, read once.
    pub(super) fn load_items(&mut self) -> Step<()> {
        if self.items.list.is_empty() {
            let templates = self.draft.spec.items().map_err(|error| {
                Halt::Stall(
                    Failure::new("ReadDeployItems", "UnreadableDeployItems", error.to_string())
                        .with_code(Code::ConfigurationProblem),
                )
            })?;
            self.items = Arc::new(conditions::items(templates));
        }
        Ok(())
    }

    /// `Init`: every definition has its object, the others are orphans and are deleted (EXE-11 … EXE-15). Items that
    /// conditions decide about are left as they are: `Progressing` makes what is wanted, and deletes what is not.
    pub(super) async fn init(&mut self) -> Step<Verdict> {
        self.load_items()?;
        self.check_conditions()?;
        let namespace = self.draft.namespace().unwrap_or_default();
        guard::before_asking(self.host, &namespace, &self.draft.spec.condition_targets).await?;
        let objects = self.objects();
        let existing: BTreeMap<String, String> = objects
            .iter()
            .filter(|object| !object.is_deleting())
            .map(|object| (object.name_any(), item_name(object).to_owned()))
            .collect();
        let plan = plan::reconcile(self.items.list.iter().map(|item| item.name.as_str()), &existing);
        let by_name = |name: &str| objects.iter().find(|object| object.name_any() == name);
        let now = self.items.list.iter().filter(|item| !item.late);
        let writes: Vec<_> = now
            .map(|item| self.ensure(&item.template, plan.update.get(&item.name).and_then(|name| by_name(name))))
            .collect();
        let active = stream::iter(writes).buffered(WRITES_AT_ONCE).try_collect::<Vec<NamePair>>().await?;
        for orphan in plan.orphans.iter().filter_map(|name| by_name(name)) {
            self.host
                .writer(&self.host.stores.deploy_items)
                .delete(orphan)
                .await
                .map_err(|error| error.halt("DeleteOrphan"))?;
        }
        let orphaned_items = self.orphans().iter().map(|object| object.name_any()).collect();
        self.draft.status.get_or_insert_default().deploy_item_cache =
            Some(DeployItemCache { active_items: active, orphaned_items });
        Ok(Verdict::Done)
    }

    async fn ensure(&self, item: &DeployItemTemplate, present: Option<&Arc<DeployItem>>) -> Step<NamePair> {
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let object_name = match present {
            Some(before) => {
                let after = self.updated(item, before);
                if after != **before {
                    writer.update(before, &after).await.map_err(|error| error.halt("UpdateDeployItem"))?;
                }
                before.name_any()
            }
            None => {
                let object = self.updated(item, &self.skeleton(item));
                match writer.create(&object).await {
                    Ok(_) => {}
                    // This job made it before a crash: the name is that of this item in this job.
                    Err(WriteError::AlreadyExists { .. }) => {}
                    Err(error) => return Err(error.halt("CreateDeployItem")),
                }
                object.name_any()
            }
        };
        Ok(NamePair { spec_name: item.name.clone(), object_name })
    }

    fn skeleton(&self, item: &DeployItemTemplate) -> DeployItem {
        let execution = self.draft.name_any();
        let generate_name = name::deploy_item_prefix(&execution, &item.name);
        // The name a server would make up is fixed by item and job instead, so that a create whose answer was lost is
        // not repeated under another name (C-31).
        let suffix = name::generated_suffix(&[&self.draft.uid().unwrap_or_default(), &item.name, &self.job]);
        DeployItem {
            metadata: ObjectMeta {
                name: Some(format!("{generate_name}{suffix}")),
                generate_name: Some(generate_name),
                namespace: self.draft.namespace(),
                finalizers: Some(vec![FINALIZER.to_owned()]),
                owner_references: Some(vec![controller_reference(&self.draft)]),
                ..ObjectMeta::default()
            },
            ..DeployItem::default()
        }
    }

    /// The object as the spec wants it; the same object where nothing differs.
    fn updated(&self, item: &DeployItemTemplate, before: &DeployItem) -> DeployItem {
        let mut after = before.clone();
        after.spec = DeployItemSpec {
            type_: item.type_.clone(),
            target: item.target.clone(),
            context: self.draft.spec.context.clone(),
            config: item.config.clone(),
            timeout: item.timeout.clone(),
            update_on_change_only: item.update_on_change_only,
            on_delete: item.on_delete.clone(),
        };
        let labels = after.metadata.labels.get_or_insert_default();
        labels.extend(item.labels.clone());
        labels.insert(label::MANAGED_BY.to_owned(), self.draft.name_any());
        labels.insert(label::ITEM_NAME.to_owned(), item.name.clone());
        let target = item.target.as_ref().map_or(annotation::NO_TARGET_NAME, |target| target.name.as_str());
        let annotations = after.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::DEPENDS_ON.to_owned(), item.depends_on.join(","));
        annotations.insert(annotation::DEPLOYER_TYPE.to_owned(), item.type_.clone());
        annotations.insert(annotation::DEPLOYER_TARGET_NAME.to_owned(), target.to_owned());
        if let Some(cached) = self.draft.annotation(annotation::CACHE_HELM_CHARTS) {
            annotations.insert(annotation::CACHE_HELM_CHARTS.to_owned(), cached.to_owned());
        }
        hold(&mut after);
        if after != *before {
            let now = self.host.now().0.to_string();
            after.metadata.annotations.get_or_insert_default().insert(annotation::RECONCILE_TIME.to_owned(), now);
        }
        after
    }

    /// Objects of this Execution that no item of the spec stands for, or that are being deleted.
    fn orphans(&self) -> Vec<Arc<DeployItem>> {
        let mut objects = self.objects();
        objects.retain(|object| object.is_deleting());
        objects
    }

    /// `Progressing`: orphans first, in reverse order (C-19); then the items in theirs.
    pub(super) async fn progressing(&mut self) -> Step<Verdict> {
        self.load_items()?;
        let asked = self.ask_all(Direction::Forward, &self.objects()).await;
        let outcome = self.progress(&asked).await;
        asked.with(outcome)
    }

    async fn progress(&mut self, asked: &Asked) -> Step<Verdict> {
        let mut objects = self.objects();
        let mut orphans: Vec<_> = objects.iter().filter(|object| object.is_deleting()).cloned().collect();
        if !orphans.is_empty() {
            let leaving = plan::leaving(&self.states(&objects, Direction::Forward, (&self.records, asked)), &self.job);
            orphans.retain(|object| !leaving.contains(item_name(object)));
        }
        if !orphans.is_empty() {
            match self.carry_out_deletion(&orphans, states_of_objects(&orphans)).await? {
                Verdict::Done => objects = self.objects(),
                failed @ Verdict::Failed(_) => return Ok(failed),
            }
        }
        let states = self.states(&objects, Direction::Forward, (&self.records, asked));
        let plan::Plan { trigger: names, delete, outcome } =
            plan::progressing(&states, &self.job, self.draft.spec.policy());
        drop(states);
        let live = objects.iter().filter(|object| !object.is_deleting());
        let live: BTreeMap<&str, &Arc<DeployItem>> = live.map(|object| (item_name(object), object)).collect();
        let (late, early): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| self.items.find(name).is_some_and(|item| item.late));
        let made = self.make(&late, &live).await?;
        let triggered = early.into_iter().filter_map(|name| live.get(name.as_str()).copied()).chain(&made);
        trigger(self.host, triggered, &self.job, ItemPhase::INIT).await?;
        self.take_away(&delete).await?;
        outcome
    }

    /// What the plan needs to know of all items.
    pub(super) fn states<'s>(
        &'s self,
        objects: &'s [Arc<DeployItem>],
        direction: Direction,
        (records, asked): (&Records, &Asked),
    ) -> Vec<ItemState<'s>> {
        let named: BTreeMap<(bool, &str), &Arc<DeployItem>> =
            objects.iter().rev().map(|object| ((object.is_deleting(), item_name(object)), object)).collect();
        let none = BTreeMap::new();
        let of_spec = self.items.list.iter().map(|item| {
            let found = |deleting| named.get(&(deleting, item.name.as_str())).map(|object| state(object));
            let records = records.get(&item.name).unwrap_or(&none);
            let keep = item.template.on_delete.as_ref().is_some_and(|on_delete| on_delete.keep);
            let mut answers = gate::answers(&item.conditions, records);
            if keep {
                // What it deployed stays: nobody waits for that to be gone.
                answers.deleted = Answer::Met;
            }
            let never_made = item.late && found(false).is_none() && found(true).is_none();
            let interrupted = (never_made && self.is_interrupted()).then(|| (Point::When, interrupted()));
            ItemState {
                going: if item.late { found(true) } else { None },
                keep,
                late: item.late,
                answers,
                given_up: asked.given_up.get(&item.name).cloned().or(interrupted),
                ..ItemState::new(&item.name, item.depends_on(), found(false))
            }
        });
        match direction {
            Direction::Forward => {
                let lost = named.iter().filter(|((deleting, name), _)| !deleting && self.items.find(name).is_none());
                let lost = lost.map(|((_, name), object)| ItemState::new(name, Vec::new(), Some(state(object))));
                of_spec.chain(lost.filter(|item| item.is_running(&self.job))).collect()
            }
            Direction::Backward => self.states_of_deletion(objects, of_spec.collect()),
        }
    }

    /// The objects of items that are made when they start, as the spec wants them.
    async fn make(&mut self, names: &[&String], live: &BTreeMap<&str, &Arc<DeployItem>>) -> Step<Vec<Arc<DeployItem>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let items = Arc::clone(&self.items);
        let wanted = names.iter().filter_map(|name| items.find(name));
        let writes: Vec<_> =
            wanted.map(|item| self.ensure(&item.template, live.get(item.name.as_str()).copied())).collect();
        let pairs = stream::iter(writes).buffered(WRITES_AT_ONCE).try_collect::<Vec<NamePair>>().await?;
        let namespace = self.draft.namespace().unwrap_or_default();
        let cache = self.draft.status.get_or_insert_default().deploy_item_cache.get_or_insert_default();
        let mut made = Vec::new();
        for pair in pairs {
            let Some(object) = self.host.stores.deploy_items.get(&Key::new(&namespace, &pair.object_name)) else {
                // Made before a crash, and not seen yet.
                return Err(Halt::wait("DeployItem", pair.object_name, Until::Exists));
            };
            made.push(object);
            cache.active_items.retain(|known| known.spec_name != pair.spec_name);
            cache.active_items.push(pair);
        }
        Ok(made)
    }

    /// Deletes what conditions do not want (WF-20, WF-21).
    async fn take_away(&mut self, names: &[String]) -> Step<()> {
        if names.is_empty() {
            return Ok(());
        }
        let is_named = |object: &Arc<DeployItem>| names.iter().any(|name| name == item_name(object));
        self.delete_calls(self.objects().into_iter().filter(is_named).collect(), false).await?;
        let going: Vec<_> = self.orphans().into_iter().filter(is_named).collect();
        self.hand_down_deletion(going.iter()).await
    }
}

/// The name of the item that an object stands for.
pub(super) fn item_name(object: &DeployItem) -> &str {
    object.label(label::ITEM_NAME).unwrap_or_default()
}

/// What the plan needs to know of an object.
pub(super) fn state(object: &DeployItem) -> ObjectState {
    ObjectState {
        object_name: object.name_any(),
        ids: JobIds::new(object.job_id(), object.job_id_finished()),
        phase: ItemPhase::parse(object.phase()),
        failure: failure_of(object.last_error()),
    }
}

/// Passes the job to deploy items: the trigger of their deployers (EXE-16).
pub(super) async fn trigger(
    host: &Host,
    objects: impl Iterator<Item = &Arc<DeployItem>>,
    job: &str,
    first: ItemPhase,
) -> Step<()> {
    let writer = host.writer(&host.stores.deploy_items);
    let now = host.now();
    let writes: Vec<_> = objects
        .map(|object| {
            let mut after = DeployItem::clone(object);
            let generation = object.metadata.generation.unwrap_or_default();
            let status = after.status.get_or_insert_default();
            status.trigger(job, first, generation, &now);
            status.job_id_generation_time = Some(now.clone());
            let writer = &writer;
            async move { writer.update_status(object, &after).await }
        })
        .collect();
    stream::iter(writes)
        .buffer_unordered(WRITES_AT_ONCE)
        .try_for_each(|_| async { Ok(()) })
        .await
        .map_err(|error| error.halt("TriggerDeployItem"))
}
