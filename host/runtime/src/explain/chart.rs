//! The text of a release of Helm, with comments that tell the lines of the chart's templates.

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_api::deploy_item::DeployItem;
use orangery_cli::chart_marks::{ReleaseText, marked_chart};
use orangery_controllers::deploy_item::proposals::{ItemProposal, ItemProposals};
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

fn release_of(proposal: &ItemProposal) -> Option<ReleaseText> {
    proposal.objects.iter().find_map(|of| ReleaseText::of(&of.object))
}

/// The item with marks in a chart that its configuration has, and with a release whose text is kept.
fn with_marks(item: &DeployItem) -> DeployItem {
    let mut item = item.clone();
    let Some(config) = item.spec.config.as_mut() else { return item };
    if let Some(raw) = config.pointer_mut(RAW) {
        let packed =
            raw.as_str().and_then(|text| BASE64.decode(text.split_whitespace().collect::<String>().as_bytes()).ok());
        if let Some(marked) = packed.as_deref().and_then(marked_chart) {
            *raw = Value::String(BASE64.encode(&marked));
        }
    }
    if let Some(fields) = config.as_object_mut().filter(|fields| fields.contains_key(IS_RELEASE)) {
        fields.insert(IS_RELEASE.to_owned(), json!(true));
    }
    item
}
