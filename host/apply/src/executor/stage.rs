//! One stage: removals until they are gone, definitions until they are served, the other writes, the gate.

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt, stream};
use orangery_core::step::{Halt, Until};
use orangery_proposal::{
    ObjectWrite, Stage,
    check::key_of,
    executor::{ExecutionEvent, StageStep},
    health::established,
    inventory::{InventoryEntry, LocatedObject, is_definition},
};
use serde_json::Value;

use super::{AT_ONCE, Executor, located};
use crate::{
    apply_error::{ApplyError, all},
    deletion::stays,
    gate::within,
    job_objects::or_before,
};

impl Executor<'_> {
    /// One step of a stage, within the time of the stage.
    pub(super) async fn perform_in(&mut self, stage: &Stage, step: StageStep) -> Result<ExecutionEvent, ApplyError> {
        let result = match step {
            StageStep::Removing => self.remove(stage).await.map(|()| ExecutionEvent::Removed),
            StageStep::Defining => self.define(stage).await.map(|()| ExecutionEvent::Defined),
            StageStep::Writing => Box::pin(self.write_rest(stage)).await.map(|()| ExecutionEvent::Written),
            StageStep::Waiting => Box::pin(self.pass_gate(stage)).await.map(|()| ExecutionEvent::GatePassed),
        };
        let now = self.objects.job.clock.now();
        result.map_err(|error| within(error, stage.timeout, self.since, now, &format!("stage {}", stage.name)))
    }

    /// What stays is told. What the stage is to make anew must not: written over, it would be the old one.
    async fn remove(&mut self, stage: &Stage) -> Result<(), ApplyError> {
        let left = self.objects.remove(&stage.removals).await?;
        let mut written = BTreeSet::new();
        for write in &stage.writes {
            written.insert(located(write)?);
        }
        let outcomes: Vec<_> = left
            .iter()
            .map(
                |(located, why)| {
                    if written.contains(located) { Err(ApplyError::not_made_anew(&located.key, why)) } else { Ok(()) }
                },
            )
            .collect();
        self.state.notes.extend(left.iter().map(|(located, why)| stays(located, why)));
        all(outcomes).map(drop)
    }

    async fn pass_gate(&self, stage: &Stage) -> Result<(), ApplyError> {
        if self.objects.is_dry_run() {
            Ok(())
        } else {
            self.objects.gate(stage, &self.state.inventory, self.since).await
        }
    }

    /// Definitions of kinds, until the cluster serves them.
    async fn define(&mut self, stage: &Stage) -> Result<(), ApplyError> {
        let definitions: Vec<&ObjectWrite> = stage.writes.iter().filter(|write| defines(write)).collect();
        let located: Vec<LocatedObject> = definitions.iter().map(|write| located(write)).collect::<Result<_, _>>()?;
        self.write_all(&definitions).await?;
        if self.objects.is_dry_run() {
            return Ok(());
        }
        let mut results = Vec::new();
        for located in located.iter().filter(|located| self.state.inventory.0.contains_key(located)) {
            if self.objects.answer(located).is_some_and(|answer| established(answer)) {
                continue;
            }
            let handle = self.objects.handle(located).await?;
            let wait = || Halt::from(located.key.waiting(Until::Ready)).into();
            let live = or_before(self.objects.watch(&handle), wait);
            results.push(live.and_then(
                |live| {
                    if live.is_some_and(|live| established(&live)) { Ok(()) } else { Err(wait()) }
                },
            ));
        }
        all(results).map(drop)
    }

    /// Cluster-scoped objects, then namespaced ones.
    async fn write_rest(&mut self, stage: &Stage) -> Result<(), ApplyError> {
        let namespaced = |write: &&ObjectWrite| write.object.pointer("/metadata/namespace").is_some();
        let rest = || stage.writes.iter().filter(|write| !defines(write));
        let cluster_scoped: Vec<&ObjectWrite> = rest().filter(|write| !namespaced(write)).collect();
        self.write_all(&cluster_scoped).await?;
        let in_namespaces: Vec<&ObjectWrite> = rest().filter(namespaced).collect();
        self.write_all(&in_namespaces).await
    }

    /// One group, concurrently. Foreign objects are not in the inventory and are left alone.
    async fn write_all(&mut self, group: &[&ObjectWrite]) -> Result<(), ApplyError> {
        let (objects, inventory) = (&self.objects, &self.state.inventory);
        let mut ours = Vec::new();
        for write in group {
            let located = located(write)?;
            if let Some(entry) = inventory.0.get(&located) {
                ours.push((located, *write, entry.uid.is_some()));
            }
        }
        let writing: Vec<_> = ours
            .into_iter()
            .map(|(located, write, known)| async move {
                let known = known || objects.has_answer(&located);
                let result = objects.write(&located, write, known).await;
                (located, result)
            })
            .collect();
        let results: Vec<_> = stream::iter(writing).buffered(AT_ONCE).collect().await;
        let mut outcomes = Vec::new();
        for (located, result) in results {
            outcomes.push(match result {
                Ok(answer) => self.answered(located, answer).await,
                Err(error) => Err(error),
            });
        }
        all(outcomes).map(drop)
    }

    async fn answered(&mut self, located: LocatedObject, answer: Option<Arc<Value>>) -> Result<(), ApplyError> {
        let Some(answer) = answer else { return Ok(()) };
        let uid = answer.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        if let Some(InventoryEntry { uid: known, .. }) = self.state.inventory.0.get_mut(&located) {
            *known = uid;
        }
        self.objects.keep(located, answer).await
    }
}

fn defines(write: &ObjectWrite) -> bool {
    key_of(&write.object).is_ok_and(|key| is_definition(&key))
}
