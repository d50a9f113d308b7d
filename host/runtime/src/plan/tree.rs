//! The plan of Installations: their blueprints rendered over what the cluster has now, and each deploy item that comes of it
//! tried out; what is no longer rendered, as what its deletion would take away.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt as _, stream};
use kube::{ResourceExt as _, api::ObjectMeta};
use orangery_api::{
    annotation::CACHE_HELM_CHARTS, deploy_item::DeployItem, execution::DeployItemTemplate, installation::Installation,
    marks::Marks as _,
};
use orangery_blueprint::{DEEPEST_MADE, import::ImportFault, template_engine::JobRandomness};
use orangery_cli::{
    command::plan::{InstallationPlan, ItemPlan, ObjectAction},
    offline::{
        LiveNamespace, NamespaceObjects, Offline, OfflineError, OfflineFault, OfflineVersions, OpaqueValues,
        RenderSubject, RenderedInstallation,
    },
};
use orangery_controllers::{
    ControllerContext,
    deploy_item::{ItemDryRun, dry_run, dry_run_of_deletion},
    execution::ItemOwner,
};
use orangery_core::{
    name::{self, JobId, Namespace, ObjectName},
    phase::item::Item as Phase,
    step::Step,
};
use orangery_ocm::ComponentVersions;

use super::{
    PlanError,
    opaque::{OpaquePair, RenderedTwice, drawn},
};
use crate::caller::refusal;

/// How many items are tried out at the same time.
const ITEMS_AT_ONCE: usize = 8;

/// The job that there is not.
const JOB: &JobId = &JobId::from_static("plan");

/// Where and with what Installations are planned.
pub(super) struct TreePlanning {
    pub(super) host: Arc<ControllerContext>,
    pub(super) versions: Arc<dyn ComponentVersions>,
    pub(super) namespace: Namespace,
    /// What the cluster has.
    pub(super) live: LiveNamespace,
}

/// An item that is to be tried out.
struct PlannedItem<'a> {
    name: String,
    depends_on: Vec<String>,
    action: ObjectAction,
    /// As the job would write it; what goes, as it is.
    object: DeployItem,
    /// The same with other values in place of exports that come in the job, where it has any.
    second: Option<DeployItem>,
    /// As it is, where it is there.
    before: Option<&'a DeployItem>,
}

/// Roots as they were rendered, with what stands for their exports and with what they have written.
struct RenderedTree {
    roots: Vec<RenderedInstallation>,
    opaque: OpaqueValues,
    world: NamespaceObjects,
}

impl TreePlanning {
    /// What the next job of these Installations would do, which are as the cluster has them or as somebody would write them.
    /// `objects` is what they read.
    pub(super) async fn jobs(
        &self,
        objects: NamespaceObjects,
        installations: Vec<Installation>,
    ) -> Result<Vec<InstallationPlan>, PlanError> {
        let cached: BTreeMap<String, String> = installations
            .iter()
            .filter_map(|of| Some((of.name_any(), of.annotation(CACHE_HELM_CHARTS)?.to_owned())))
            .collect();
        let rng = JobRandomness { now: self.host.clock.now(), seed: self.host.rng.secret() };
        let first = self.rendered(&installations, objects.clone(), (&rng, 0)).await?;
        // Where values stand for others, a second rendering with other ones tells where they come through.
        let second = match first.opaque.is_empty() {
            true => None,
            false => Some(self.rendered(&installations, objects, (&rng, 1)).await?),
        };
        let values = second.as_ref().map(|second| OpaquePair { values: &first.opaque, other: &second.opaque });
        // Items find the Targets that the job would write before those that are there.
        for (_, target) in first.world.targets() {
            let mut target = target.clone();
            target.metadata.namespace = Some(self.namespace.to_string());
            self.host.stores.targets.upsert(target);
        }
        let mut plans = Vec::new();
        for root in &first.roots {
            let of = RenderedTwice {
                rendered: root,
                second: second.as_ref().and_then(|second| second.roots.iter().find(|of| of.name == root.name)),
                values,
                cached: cached.get(&root.name).map(String::as_str),
            };
            self.installation(of, &root.name, &mut plans).await;
        }
        Ok(plans)
    }

    /// Renders Installations. `number`: the how manieth rendering of this plan; each has other values in place of exports that come in
    /// the job.
    async fn rendered(
        &self,
        installations: &[Installation],
        objects: NamespaceObjects,
        (rng, number): (&JobRandomness, usize),
    ) -> Result<RenderedTree, PlanError> {
        let subject = |of: &Installation| RenderSubject {
            given: self.live.given(&of.name_any()),
            name: of.name_any(),
            spec: of.spec.clone(),
            files: None,
        };
        let mut offline = Offline {
            plugins: self.host.plugins.as_ref(),
            versions: OfflineVersions { repositories: Arc::clone(&self.versions), repository_context: None },
            rng: rng.clone(),
            namespace: self.namespace.clone(),
            world: objects,
            imports: BTreeMap::new(),
            rendered: 0,
            opaque: Some(OpaqueValues::new(&drawn(&self.host.rng.secret(), number))),
        };
        let roots = offline.roots(installations.iter().map(subject).collect()).await;
        let roots = roots.map_err(|error| PlanError::Refused(self.masked(&message(&error))))?;
        Ok(RenderedTree { roots, opaque: offline.opaque.unwrap_or_default(), world: offline.world })
    }

    /// A text without the secret values of the namespace (C-41).
    fn masked(&self, text: &str) -> String {
        self.host.secrets.masker(&self.namespace).mask(text).into_owned()
    }

    /// What the deletion of Installations would take away, of those below them first.
    pub(super) async fn deletions(&self, installations: &[Installation]) -> Vec<InstallationPlan> {
        let mut plans = Vec::new();
        for installation in installations {
            let name = installation.name_any();
            self.delete(&name, &name, DEEPEST_MADE, &mut plans).await;
        }
        plans
    }

    async fn installation(&self, of: RenderedTwice<'_>, path: &str, plans: &mut Vec<InstallationPlan>) {
        let rendered = of.rendered;
        let live = rendered.object.as_ref().filter(|name| self.live.installation(name).is_some());
        let action = if live.is_some() { ObjectAction::Run } else { ObjectAction::Create };
        let decided_later = of.decided_later();
        let items = if decided_later.is_some() { Vec::new() } else { self.items(&of, live) };
        plans.push(InstallationPlan {
            path: path.to_owned(),
            action,
            decided_later: decided_later.as_deref().map(|why| self.masked(why)),
            known_after_apply: rendered.has_opaque_imports && decided_later.is_none(),
            items: self.try_out(items, of.values).await,
            warnings: rendered.warnings.iter().map(|warning| self.masked(&of.display(warning))).collect(),
        });
        if decided_later.is_some() {
            return;
        }
        for below in of.below() {
            Box::pin(self.installation(below, &format!("{path}/{}", below.rendered.name), plans)).await;
        }
        if let Some(object) = live {
            let stay: BTreeSet<&str> = rendered.subinstallations.iter().map(|of| of.name.as_str()).collect();
            for (name, child) in self.live.children_of(object).filter(|(name, _)| !stay.contains(name)) {
                self.delete(&child.name_any(), &format!("{path}/{name}"), DEEPEST_MADE, plans).await;
            }
        }
    }

    async fn delete(&self, installation: &str, path: &str, depth: usize, plans: &mut Vec<InstallationPlan>) {
        for (name, child) in self.live.children_of(installation).filter(|_| depth > 0) {
            Box::pin(self.delete(&child.name_any(), &format!("{path}/{name}"), depth - 1, plans)).await;
        }
        let items = self.live.items_of(installation).map(PlannedItem::deleted).collect();
        plans.push(InstallationPlan {
            path: path.to_owned(),
            action: ObjectAction::Delete,
            decided_later: None,
            known_after_apply: false,
            items: self.try_out(items, None).await,
            warnings: Vec::new(),
        });
    }

    /// The items of an Installation in the order in which they may begin, then those that go.
    fn items(&self, of: &RenderedTwice<'_>, object: Option<&ObjectName>) -> Vec<PlannedItem<'_>> {
        let (rendered, cached) = (of.rendered, of.cached);
        let execution = &object.cloned().unwrap_or_else(|| rendered.name.as_str().into());
        let there = || object.into_iter().flat_map(|object| self.live.items_of(object));
        let owner = ItemOwner { execution, context: &rendered.context, cache_helm_charts: cached };
        let live: BTreeMap<&str, &DeployItem> =
            there().filter(|item| !item.is_deleting()).filter_map(|item| Some((item.item_name()?, item))).collect();
        let wanted: Vec<&DeployItemTemplate> =
            rendered.deploy_items.iter().filter(|item| !rendered.not_wanted.contains(&item.name)).collect();
        let names: BTreeSet<&str> = wanted.iter().map(|item| item.name.as_str()).collect();
        let item = |template: &DeployItemTemplate| {
            let before = live.get(template.name.as_str()).copied();
            let object = before.cloned().unwrap_or_else(|| self.skeleton(execution, &template.name));
            PlannedItem {
                name: template.name.clone(),
                depends_on: template.depends_on.clone(),
                action: if before.is_some() { ObjectAction::Run } else { ObjectAction::Create },
                second: of.second(template).map(|second| owner.specified(second, &object)),
                object: owner.specified(template, &object),
                before,
            }
        };
        let goes = there().filter(|item| item.item_name().is_none_or(|name| !names.contains(name)));
        in_order(&wanted).into_iter().map(item).chain(goes.map(PlannedItem::deleted)).collect()
    }

    /// An item that is not there yet, by a name such as it would have.
    fn skeleton(&self, execution: &ObjectName, item: &str) -> DeployItem {
        let metadata = ObjectMeta {
            name: Some(name::deploy_item(execution, "", item, JOB)),
            namespace: Some(self.namespace.to_string()),
            ..ObjectMeta::default()
        };
        DeployItem { metadata, ..DeployItem::default() }
    }

    /// `values` stand for exports in some of them.
    async fn try_out(&self, items: Vec<PlannedItem<'_>>, values: Option<OpaquePair<'_>>) -> Vec<ItemPlan> {
        let item = |item| async move { self.try_with(item, values).await };
        let runs: Vec<_> = items.into_iter().map(|of| Box::pin(item(of))).collect();
        stream::iter(runs).buffered(ITEMS_AT_ONCE).collect().await
    }

    /// An item that has values which stand for others is tried out with other ones as well.
    async fn try_with(&self, mut item: PlannedItem<'_>, values: Option<OpaquePair<'_>>) -> ItemPlan {
        let (Some(second), Some(values)) = (item.second.take(), values) else { return self.try_item(item).await };
        let other = PlannedItem {
            name: item.name.clone(),
            depends_on: Vec::new(),
            action: item.action,
            object: second,
            second: None,
            before: item.before,
        };
        values.joined(self.try_item(item).await, self.try_item(other).await)
    }

    async fn try_item(&self, item: PlannedItem<'_>) -> ItemPlan {
        let type_ = item.object.spec.type_.clone();
        let run = if item.is_left_alone() { Ok(None) } else { self.run(item.action, item.object).await.map(Some) };
        let masker = self.host.secrets.masker(&self.namespace);
        let mask = |text: &str| masker.mask(text).into_owned();
        let plan = ItemPlan {
            name: item.name,
            type_,
            action: item.action,
            depends_on: item.depends_on,
            plugin: None,
            objects: Vec::new(),
            notes: Vec::new(),
            unfinished: false,
            failure: None,
            decided_later: None,
        };
        match run {
            Ok(None) => ItemPlan {
                notes: vec!["it is as it was, and runs on changes only (updateOnChangeOnly)".to_owned()],
                ..plan
            },
            Ok(Some(ItemDryRun { plugin, effects, notes, unfinished, failure })) => ItemPlan {
                plugin: Some(plugin),
                objects: effects.into_iter().map(|effect| effect.display(&masker)).collect(),
                notes: notes.iter().map(|note| mask(note)).collect(),
                unfinished,
                failure: failure.map(|problem| mask(&problem.message)),
                ..plan
            },
            Err(halt) => ItemPlan { failure: Some(mask(&refusal(&halt))), ..plan },
        }
    }

    async fn run(&self, action: ObjectAction, object: DeployItem) -> Step<ItemDryRun> {
        match action {
            ObjectAction::Create | ObjectAction::Run => dry_run(&self.host, object).await,
            ObjectAction::Delete => dry_run_of_deletion(&self.host, object).await,
        }
    }
}

impl<'a> PlannedItem<'a> {
    fn deleted(item: &'a DeployItem) -> Self {
        Self {
            name: item.item_name().map_or_else(|| item.name_any(), str::to_owned),
            depends_on: Vec::new(),
            action: ObjectAction::Delete,
            object: item.clone(),
            second: None,
            before: Some(item),
        }
    }

    /// Whether its deployer has nothing to do: the item is as it was, and has succeeded.
    fn is_left_alone(&self) -> bool {
        let is_same = |before: &DeployItem| {
            let phase = before.status.as_ref().and_then(|status| Phase::parse(&status.phase));
            phase == Some(Phase::Succeeded) && before.spec == self.object.spec
        };
        self.action == ObjectAction::Run && self.object.spec.update_on_change_only && self.before.is_some_and(is_same)
    }
}

/// Items in the order in which they may begin, else as they are listed. What depends on itself comes last.
fn in_order<'a>(items: &[&'a DeployItemTemplate]) -> Vec<&'a DeployItemTemplate> {
    let place: BTreeMap<&str, usize> = items.iter().enumerate().map(|(at, item)| (item.name.as_str(), at)).collect();
    let mut after: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut waits: Vec<usize> = vec![0; items.len()];
    for (at, item) in items.iter().enumerate() {
        let before: BTreeSet<usize> =
            item.depends_on.iter().filter_map(|name| place.get(name.as_str()).copied()).collect();
        if let Some(waits) = waits.get_mut(at) {
            *waits = before.len();
        }
        before.into_iter().for_each(|before| after.entry(before).or_default().push(at));
    }
    let mut ready: BTreeSet<usize> = (0..items.len()).filter(|at| waits.get(*at) == Some(&0)).collect();
    let mut order = Vec::new();
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for next in after.remove(&at).unwrap_or_default() {
            let Some(waits) = waits.get_mut(next) else { continue };
            *waits -= 1;
            if *waits == 0 {
                ready.insert(next);
            }
        }
    }
    let done: BTreeSet<usize> = order.iter().copied().collect();
    order.extend((0..items.len()).filter(|at| !done.contains(at)));
    order.into_iter().filter_map(|at| items.get(at).copied()).collect()
}

/// Why nothing is rendered, without what helps where there is no cluster.
pub(crate) fn message(error: &OfflineError) -> String {
    let why = match error.why.as_ref() {
        OfflineFault::Imports(error) => match error.fault.as_ref() {
            ImportFault::Undecryptable(data) => format!(
                "import {} reads DataObject {}, which is encrypted with the key of the operator, which alone can read it: what it \
                 leads to is known in the job alone",
                error.import, data.name
            ),
            _ => error.to_string(),
        },
        OfflineFault::Context(error) => error.to_string(),
        OfflineFault::NoContext(name) => format!("there is no Context {name:?}; create it, or correct spec.context"),
        OfflineFault::Load(error) | OfflineFault::Blueprint(error) => error.to_string(),
        other => other.to_string(),
    };
    format!("Installation {}: {why}", error.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_265_items_come_in_the_order_in_which_they_may_begin() {
        let item = |name: &str, before: &[&str]| DeployItemTemplate {
            name: name.to_owned(),
            depends_on: before.iter().map(|name| (*name).to_owned()).collect(),
            ..DeployItemTemplate::default()
        };
        let names = |items: &[DeployItemTemplate]| -> Vec<String> {
            in_order(&items.iter().collect::<Vec<_>>()).into_iter().map(|item| item.name.clone()).collect()
        };
        let tree = [item("a", &["c", "unknown"]), item("b", &[]), item("c", &["d", "b"]), item("d", &[])];
        assert_eq!(names(&tree), ["b", "d", "c", "a"]);
        assert_eq!(names(&[item("a", &["a"]), item("b", &[])]), ["b", "a"], "nothing is lost");
    }
}
