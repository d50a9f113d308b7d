//! `configurations.helmChartRepoCredentials` as it is written (`docs/wire.md` §8.2).

use orangery_core::lenient;
use serde::Deserialize;

use crate::context::Context;

/// The configuration of a Context that has them.
pub const CHART_CREDENTIALS: &str = "helmChartRepoCredentials";
/// The key of a Secret where none is named.
pub(super) const USUAL_KEY: &str = "authHeader";

#[derive(Deserialize, Default)]
#[serde(default)]
struct ChartCredentials {
    auths: Vec<ChartAuth>,
}

/// One entry.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ChartAuth {
    pub(super) url: String,
    #[serde(rename = "customCAData")]
    pub(super) custom_ca_data: String,
    pub(super) auth_header: String,
    pub(super) secret_ref: Option<SecretRef>,
}

/// A Secret in the namespace of the Context.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SecretRef {
    pub(super) name: String,
    pub(super) key: String,
}

/// The entries of a Context; the error is the end of a sentence about them.
pub(super) fn auths(context: &Context) -> Result<Vec<ChartAuth>, String> {
    let Some(written) = context.spec.configurations.get(CHART_CREDENTIALS) else { return Ok(Vec::new()) };
    // Where it is wrong, and nothing of what stands there: it may be a password.
    let read: Result<ChartCredentials, _> = lenient::decode(written);
    read.map(|credentials| credentials.auths).map_err(|_| {
        "have another form than auths: [{url, authHeader or secretRef, customCAData}]; correct them".to_owned()
    })
}
