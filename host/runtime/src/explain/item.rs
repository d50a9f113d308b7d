//! The deploy item that puts the object there, rendered over what the cluster has, or over inputs that are changed.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kube::ResourceExt as _;
use orangery_api::{
    annotation::CACHE_HELM_CHARTS, deploy_item::DeployItem, execution::DeployItemTemplate, installation::Installation,
    marks::Marks as _,
};
use orangery_blueprint::{
    import::Imported, plugins::Plugins, rendering::ExecutionKind, template_engine::JobRandomness,
};
use orangery_cli::{
    offline::{Given, LiveNamespace, Offline, OfflineVersions, RenderSubject, RenderedInstallation},
    template_trace::{TemplatePlace, TemplateTrace, TracedTemplate, traced},
};
use orangery_controllers::{ControllerContext, execution::ItemOwner};
use orangery_core::name::{Namespace, ObjectName};
use orangery_ocm::ComponentVersions;
use serde_json::Value;

use crate::plan::tree::message;

/// The seed of what templates draw at random: the same in each rendering.
const SEED: [u8; 32] = [7; 32];

/// What an item is rendered from.
pub(super) struct ExplainedSource<'a> {
    pub(super) host: &'a Arc<ControllerContext>,
    pub(super) versions: Arc<dyn ComponentVersions>,
    pub(super) namespace: &'a Namespace,
    pub(super) live: &'a LiveNamespace,
    /// From the Installation of the item up to the root; empty of an item that stands for itself.
    pub(super) installations: &'a [ObjectName],
    /// As the cluster has it.
    pub(super) item: &'a DeployItem,
    pub(super) now: Timestamp,
}

/// The item as the next job would write it.
pub(super) struct RenderedItem {
    pub(super) item: DeployItem,
    /// Whether that is another than the cluster has.
    is_new: bool,
    /// The template that made it, and its number among the items of that.
    made_by: Option<(TracedTemplate, usize)>,
}

impl RenderedItem {
    /// What is to be said of it.
    pub(super) fn note(&self) -> Option<String> {
        let note =
            "the next job writes another deploy item than the cluster has; what is explained is what it will write";
        self.is_new.then(|| note.to_owned())
    }

    /// Where a part of its configuration was made.
    pub(super) fn place(&self, path: &str) -> Option<TemplatePlace> {
        let (template, number) = self.made_by.as_ref()?;
        let separator = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        Some(template.place(&format!("deployItems[{number}].config{separator}{path}")))
    }
}

impl ExplainedSource<'_> {
    /// The root of the item, where it has one.
    pub(super) fn root(&self) -> Option<&Installation> {
        self.installations.last().and_then(|root| self.live.installation(root))
    }

    /// The root as it is rendered.
    pub(super) fn subject(&self, root: &Installation, given: Given) -> RenderSubject {
        RenderSubject { name: root.name_any(), spec: root.spec.clone(), files: None, given }
    }

    /// Renders over the namespace as it is, and these imports in place of those of the root.
    pub(super) fn offline<'p>(&self, plugins: &'p dyn Plugins, imports: BTreeMap<String, Imported>) -> Offline<'p> {
        Offline {
            plugins,
            versions: OfflineVersions { repositories: Arc::clone(&self.versions), repository_context: None },
            rng: JobRandomness { now: self.now, seed: SEED },
            namespace: self.namespace.clone(),
            world: self.live.objects.clone(),
            imports,
            rendered: 0,
            opaque: None,
        }
    }

    /// The item over what the cluster has.
    ///
    /// # Errors
    /// It is not rendered, and why.
    pub(super) async fn rendered(&self) -> Result<RenderedItem, String> {
        let Some(root) = self.root() else {
            return Ok(RenderedItem { item: self.item.clone(), is_new: false, made_by: None });
        };
        let trace = Arc::new(TemplateTrace::default());
        let plugins = traced(self.host.plugins.as_ref(), &trace);
        let mut offline = self.offline(&plugins, BTreeMap::new());
        let subject = self.subject(root, self.live.given(&root.name_any()));
        let rendered = offline.roots(vec![subject]).await.map_err(|error| message(&error))?;
        // Items find the Targets that the job would write before those that are there.
        for (_, target) in offline.world.targets() {
            let mut target = target.clone();
            target.metadata.namespace = Some(self.namespace.to_string());
            self.host.stores.targets.upsert(target);
        }
        let template = self.template(&rendered)?.ok_or_else(|| self.gone())?;
        let item = self.specified(root, template);
        let made_by = trace.take().into_iter().find_map(|template| {
            let number = number_of(&template, self.item.item_name()?, item.spec.config.as_ref()?)?;
            Some((template, number))
        });
        Ok(RenderedItem { is_new: item.spec != self.item.spec, item, made_by })
    }

    /// The item over other inputs; `None` where there is none then.
    ///
    /// # Errors
    /// Nothing is rendered, and why.
    pub(super) async fn changed(
        &self,
        imports: BTreeMap<String, Imported>,
        given: Given,
    ) -> Result<Option<DeployItem>, String> {
        let Some(root) = self.root() else { return Ok(Some(self.item.clone())) };
        let mut offline = self.offline(self.host.plugins.as_ref(), imports);
        let rendered = offline.roots(vec![self.subject(root, given)]).await.map_err(|error| message(&error))?;
        Ok(self.template(&rendered)?.map(|template| self.specified(root, template)))
    }

    /// The template of the item, in what was rendered of the root; `None` where it is not rendered, or not wanted.
    fn template<'r>(&self, rendered: &'r [RenderedInstallation]) -> Result<Option<&'r DeployItemTemplate>, String> {
        let Some(own) = self.installations.first().and_then(|own| find(rendered, own)) else { return Ok(None) };
        if let Some(waits_for) = &own.waits_for {
            return Err(format!("Installation {} is decided in the job: it waits for {waits_for}", own.name));
        }
        let name = self.item.item_name().unwrap_or_default();
        Ok(own.deploy_items.iter().find(|item| item.name == name && !own.not_wanted.contains(&item.name)))
    }

    fn specified(&self, root: &Installation, template: &DeployItemTemplate) -> DeployItem {
        let own = self.installations.first().and_then(|own| self.live.installation(own)).unwrap_or(root);
        let execution = self.installations.first().cloned().unwrap_or_default();
        let cache_helm_charts = root.annotation(CACHE_HELM_CHARTS);
        ItemOwner { execution: &execution, context: &own.spec.context, cache_helm_charts }
            .specified(template, self.item)
    }

    fn gone(&self) -> String {
        format!(
            "deploy item {} is not rendered any more, and the next job deletes it; orangery plan shows what it does",
            self.item.name_any()
        )
    }
}

/// An Installation by the name of its object, among those that were rendered and those below them.
fn find<'r>(rendered: &'r [RenderedInstallation], object: &ObjectName) -> Option<&'r RenderedInstallation> {
    rendered
        .iter()
        .find_map(|of| if of.object.as_ref() == Some(object) { Some(of) } else { find(&of.subinstallations, object) })
}

/// The number of an item among those that a template has made.
fn number_of(template: &TracedTemplate, name: &str, config: &Value) -> Option<usize> {
    if template.list != ExecutionKind::Deploy {
        return None;
    }
    let items = orangery_blueprint::decode_items(&template.document).ok()?;
    items.iter().position(|item| item.name == name && item.config == *config)
}
