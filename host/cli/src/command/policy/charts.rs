//! Charts of deploy items, as their configuration names them, held against a policy by what asks for them.

use orangery_api::deploy_item::DeployItem;
use orangery_core::{error::Fault, lenient, name::Namespace};
use orangery_policy::{EffectivePolicy, PolicySubject};
use orangery_registry::NamedContent;
use serde::Deserialize;

use super::addresses;

/// The items whose configuration has a chart.
const HELM: &str = "landscaper.gardener.cloud/helm";

/// What the configuration of a release says of its chart, as far as it names a place.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReleaseConfiguration {
    chart: Option<ChartSource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ChartSource {
    #[serde(rename = "ref")]
    reference: String,
    archive: Option<ChartArchive>,
    helm_chart_repo: Option<ChartOfRepository>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChartArchive {
    remote: Option<RemoteArchive>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RemoteArchive {
    url: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChartOfRepository {
    #[serde(rename = "helmChartRepoUrl")]
    url: String,
    #[serde(rename = "helmChartName")]
    name: String,
    #[serde(rename = "helmChartVersion")]
    version: String,
}

/// The lines that refuse the chart of an item: by its name, or by the network of a server that is named by its address.
pub(super) fn refused(policy: &EffectivePolicy, namespace: &Namespace, item: &DeployItem) -> Vec<String> {
    let config = item.spec.config.as_ref().filter(|_| item.spec.type_ == HELM);
    // What cannot be read is no chart for the deployer either.
    let read = config.map(lenient::decode::<ReleaseConfiguration>);
    let Some(Ok(ReleaseConfiguration { chart: Some(chart) })) = read else { return Vec::new() };
    let ChartSource { reference, archive, helm_chart_repo } = chart;
    let remote = archive.and_then(|archive| archive.remote).map(|remote| remote.url);
    let sources = policy.sources(namespace, PolicySubject::Item(HELM));
    let mut lines = Vec::new();
    let mut check = |content: NamedContent<'_>, server: &str, is_registry: bool| {
        if let Err(Fault::Denied(problem)) = content.check(&sources) {
            lines.push(problem.message);
        }
        let networks = if is_registry { &sources.networks.registries } else { &sources.networks.hosts };
        lines.extend(addresses::refused(server, networks).map(|refused| refused.to_string()));
    };
    if !reference.is_empty() {
        check(NamedContent::Oci(&reference), &reference, true);
    }
    if let Some(url) = &remote {
        check(NamedContent::Url(url), url, false);
    }
    if let Some(ChartOfRepository { url, name, version }) = &helm_chart_repo {
        let chart = NamedContent::Chart { repository: url, chart: name, version };
        check(chart, url, url.starts_with("oci://"));
    }
    lines
}
