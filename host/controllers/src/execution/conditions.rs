//! The conditions of deploy items: what an Execution gives to [`crate::conditions`].

use std::{collections::BTreeMap, mem, sync::Arc};

use kube::ResourceExt;
use orangery_api::{
    deploy_item::DeployItem,
    execution::{DeployItemTemplate, Records},
    marks::Marks,
};
use orangery_core::{
    dag::Direction,
    plan::execution::{self as plan, ItemKind},
    step::Step,
    workflow::Point,
};
use serde_json::{Value, json};

use super::{Run, items::item_name};
use crate::{
    conditions::{Asked, Inquiry, Item, Items, Runner},
    deploy_item::{USUAL_TIMEOUT, limit_of},
};

/// The items of a spec. Those that conditions decide about are made when they start.
pub(super) fn items(templates: Vec<DeployItemTemplate>) -> Items<DeployItemTemplate> {
    let item = |template: DeployItemTemplate| Item {
        name: template.name.clone(),
        depends_on: template.depends_on.clone(),
        target: template.target.as_ref().map(|target| target.name.clone()),
        // That it cannot be read the item itself will say.
        limit: limit_of(template.timeout.as_ref()).unwrap_or(Some(USUAL_TIMEOUT)),
        conditions: template.conditions(),
        late: false,
        template,
    };
    Items::of(templates.into_iter().map(item).collect(), |item| item.conditions.decide())
}

/// An Execution in one look.
struct Look<'a> {
    run: &'a Run<'a>,
    direction: Direction,
    objects: &'a [Arc<DeployItem>],
    /// Those that are not being deleted, by item.
    live: BTreeMap<&'a str, &'a Arc<DeployItem>>,
}

impl Runner for Look<'_> {
    fn asks(&self, records: &Records, asked: &Asked) -> Vec<(String, Point)> {
        let Run { job, draft, .. } = self.run;
        let states = self.run.states(self.objects, self.direction, (records, asked));
        let asks = plan::asks(&states, job, self.direction, draft.spec.policy());
        asks.into_iter().map(|(name, point)| (name.to_owned(), point)).collect()
    }

    async fn results(&self, item: &str) -> Step<Value> {
        let Some(object) = self.live.get(item) else { return Ok(json!({"exports": null, "status": null})) };
        let namespace = self.run.draft.namespace().unwrap_or_default();
        let exports = self.run.exports_of(&namespace, object).await?;
        Ok(json!({"exports": exports, "status": object.status}))
    }
}

impl Run<'_> {
    fn inquiry(&self) -> Inquiry<'_, DeployItemTemplate> {
        Inquiry {
            host: self.host,
            expressions: self.expressions,
            clusters: &self.clusters,
            kind: ItemKind::DeployItem,
            items: &self.items,
            imports: &self.draft.spec.imports,
            interrupted: self.is_interrupted(),
        }
    }

    /// Refuses conditions that cannot be asked.
    pub(super) fn check_conditions(&self) -> Step<()> {
        self.inquiry().check()
    }

    /// Whether the job was interrupted: nothing is waited for any longer, and nothing more is made.
    pub(super) fn is_interrupted(&self) -> bool {
        self.draft.status.as_ref().is_some_and(|status| status.interrupted_job == self.job)
    }

    /// The answers of the last job that are others now.
    pub(super) async fn changed(&mut self) -> Step<Vec<String>> {
        self.load_items()?;
        let objects = self.objects();
        let live = objects.iter().rev().filter(|object| !object.is_deleting());
        let live = live.map(|object| (item_name(object), object)).collect();
        let look = Look { run: self, direction: Direction::Forward, objects: &objects, live };
        self.inquiry().changed(&look, &self.records).await
    }

    /// Asks what holds items up.
    pub(super) async fn ask_all(&mut self, direction: Direction, objects: &[Arc<DeployItem>]) -> Asked {
        if !self.items.conditional {
            return Asked::default();
        }
        let mut records = mem::take(&mut self.records);
        let live = objects.iter().rev().filter(|object| !object.is_deleting());
        let live = live.map(|object| (item_name(object), object)).collect();
        let look = Look { run: self, direction, objects, live };
        let asked = self.inquiry().ask_all(&look, &mut records, direction).await;
        self.records = records;
        self.left = asked.left;
        asked
    }
}
