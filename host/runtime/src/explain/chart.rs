//! The text of a release of Helm, with comments that tell the lines of the chart's templates.

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_api::deploy_item::DeployItem;
use orangery_cli::{
    chart_marks::{ChartPlace, ReleaseText, marked_chart},
    narrowed_chart::narrowed_chart,
};
use orangery_controllers::deploy_item::proposals::{ItemProposal, ItemProposals, ProposedObject};
use orangery_core::step::Step;
use serde_json::{Value, json};

/// Where a configuration of the Helm deployer has a chart that is written into it.
pub(super) const RAW: &str = "/chart/archive/raw";

/// Where it says that no release is kept.
const IS_RELEASE: &str = "helmDeployment";

/// The release that an item would make, with the lines of its templates where they can be told; `None` where it makes none.
pub(super) async fn release_text(
    proposals: &ItemProposals,
    item: &DeployItem,
    proposal: &ItemProposal,
) -> Option<ReleaseText> {
    let is_chart = item.spec.config.as_ref().is_some_and(|config| config.get("chart").is_some());
    let unmarked = release_of(proposal);
    if !is_chart && unmarked.is_none() {
        return None;
    }
    let marked = proposals.of_changed(with_marks(item), Arc::new(marked_chart)).await.ok();
    marked.as_ref().and_then(release_of).or(unmarked)
}

/// A chart with no more of its templates than an object is made from.
pub(super) struct NarrowedChart {
    at: ChartPlace,
    /// The number of the object among those that are proposed then.
    pub(super) place: usize,
}

impl NarrowedChart {
    /// The chart of an item, where it makes the very same object then: else all of it is asked for.
    pub(super) async fn of(
        proposals: &ItemProposals,
        (item, object): (&DeployItem, &ProposedObject),
        release: Option<&ReleaseText>,
    ) -> Option<Self> {
        let at = release?.place(&object.object, "metadata.name")?;
        let mut narrowed = Self { at, place: 0 };
        let proposed = narrowed.proposed(proposals, item.clone()).await.ok()?.objects;
        narrowed.place = proposed.iter().position(|of| of.key == object.key && of.object == object.object)?;
        Some(narrowed)
    }

    /// What its component proposes for an item with this chart.
    ///
    /// # Errors
    /// Those of [`ItemProposals::of_changed`].
    pub(super) async fn proposed(&self, proposals: &ItemProposals, mut item: DeployItem) -> Step<ItemProposal> {
        let at = self.at.clone();
        let narrow = move |packed: &[u8]| narrowed_chart(packed, &at);
        change_raw(&mut item, &narrow);
        proposals.of_changed(item, Arc::new(narrow)).await
    }
}

fn release_of(proposal: &ItemProposal) -> Option<ReleaseText> {
    proposal.objects.iter().find_map(|of| ReleaseText::of(&of.object))
}

/// The item with marks in a chart that its configuration has, and with a release whose text is kept.
fn with_marks(item: &DeployItem) -> DeployItem {
    let mut item = item.clone();
    change_raw(&mut item, &marked_chart);
    let Some(config) = item.spec.config.as_mut() else { return item };
    if let Some(fields) = config.as_object_mut().filter(|fields| fields.contains_key(IS_RELEASE)) {
        fields.insert(IS_RELEASE.to_owned(), json!(true));
    }
    item
}

/// Changes a chart that the configuration of an item has.
fn change_raw(item: &mut DeployItem, change: &dyn Fn(&[u8]) -> Option<Vec<u8>>) {
    let Some(raw) = item.spec.config.as_mut().and_then(|config| config.pointer_mut(RAW)) else { return };
    let packed =
        raw.as_str().and_then(|text| BASE64.decode(text.split_whitespace().collect::<String>().as_bytes()).ok());
    if let Some(changed) = packed.as_deref().and_then(change) {
        *raw = Value::String(BASE64.encode(&changed));
    }
}
