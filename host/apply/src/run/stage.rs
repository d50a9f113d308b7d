//! One stage: removals until they are gone, definitions until they are served, the other writes, the gate.

use std::sync::Arc;

use futures::{StreamExt, stream};
use orangery_core::step::{Halt, Until};
use orangery_proposal::{
    ObjectWrite, Stage,
    check::key_of,
    health::established,
    inventory::{Entry, Located, is_definition},
    item::{At, Position, StageStep},
};
use serde_json::Value;

use super::{AT_ONCE, Run, located};
use crate::{
    error::{Setback, all},
    gate::within,
    site::or_before,
};

impl Run<'_> {
    /// One stage: removals until they are gone, writes, the gate.
    pub(super) async fn stage(
        &mut self,
        stage: &Stage,
        mut position: Position,
        at: fn(Position) -> At,
    ) -> Result<(), Setback> {
        loop {
            let step = match position.step {
                StageStep::Removing => self.site.remove(&stage.removals).await.map(|()| StageStep::Defining),
                StageStep::Defining => self.define(stage).await.map(|()| StageStep::Writing),
                StageStep::Writing => self.write_rest(stage).await.map(|()| StageStep::Waiting),
                StageStep::Waiting => return self.gated(stage).await,
            };
            let now = self.site.job.clock.now();
            let step = step
                .map_err(|setback| within(setback, stage.timeout, self.since, now, &format!("stage {}", stage.name)))?;
            // What was removed may be written again from here on: a crash must not remove it once more.
            let removed =
                position.step == StageStep::Removing && !stage.removals.is_empty() && !stage.writes.is_empty();
            position = position.step(step);
            self.at = at(position);
            if removed {
                self.record().await?;
            }
        }
    }

    async fn gated(&self, stage: &Stage) -> Result<(), Setback> {
        let held = self.site.gate(stage, &self.page.inventory, self.since).await;
        let now = self.site.job.clock.now();
        held.map_err(|setback| within(setback, stage.timeout, self.since, now, &format!("stage {}", stage.name)))
    }

    /// Definitions of kinds, until the cluster serves them.
    async fn define(&mut self, stage: &Stage) -> Result<(), Setback> {
        let definitions: Vec<&ObjectWrite> = stage.writes.iter().filter(|write| defines(write)).collect();
        let located: Vec<Located> = definitions.iter().map(|write| located(write)).collect::<Result<_, _>>()?;
        self.write_all(&definitions).await?;
        let mut results = Vec::new();
        for located in located.iter().filter(|located| self.page.inventory.0.contains_key(located)) {
            if self.site.answers.get(located).is_some_and(|answer| established(answer)) {
                continue;
            }
            let spot = self.site.spot(located).await?;
            let wait = || Halt::wait(located.key.kind.clone(), located.key.name.clone(), Until::Ready).into();
            let live = or_before(self.site.watch(&spot), wait);
            results.push(live.and_then(
                |live| {
                    if live.is_some_and(|live| established(&live)) { Ok(()) } else { Err(wait()) }
                },
            ));
        }
        all(results).map(drop)
    }

    /// Cluster-scoped objects, then namespaced ones.
    async fn write_rest(&mut self, stage: &Stage) -> Result<(), Setback> {
        let namespaced = |write: &&ObjectWrite| write.object.pointer("/metadata/namespace").is_some();
        let rest = || stage.writes.iter().filter(|write| !defines(write));
        let cluster_scoped: Vec<&ObjectWrite> = rest().filter(|write| !namespaced(write)).collect();
        self.write_all(&cluster_scoped).await?;
        let in_namespaces: Vec<&ObjectWrite> = rest().filter(namespaced).collect();
        self.write_all(&in_namespaces).await
    }

    /// One group, concurrently. Foreign objects are not in the inventory and are left alone.
    async fn write_all(&mut self, group: &[&ObjectWrite]) -> Result<(), Setback> {
        let (site, inventory) = (&self.site, &self.page.inventory);
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
                let known = known || site.answers.contains_key(&located);
                let result = site.write(&located, write, known).await;
                (located, result)
            })
            .collect();
        let results: Vec<_> = stream::iter(writing).buffered(AT_ONCE).collect().await;
        let mut outcomes = Vec::new();
        for (located, result) in results {
            outcomes.push(result.map(|answer| self.answered(located, answer)));
        }
        all(outcomes).map(drop)
    }

    fn answered(&mut self, located: Located, answer: Option<Arc<Value>>) {
        let Some(answer) = answer else { return };
        let uid = answer.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        if let Some(Entry { uid: known, .. }) = self.page.inventory.0.get_mut(&located) {
            *known = uid;
        }
        self.site.answers.insert(located, answer);
    }
}

fn defines(write: &ObjectWrite) -> bool {
    key_of(&write.object).is_ok_and(|key| is_definition(&key))
}
