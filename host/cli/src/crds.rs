//! The custom resource definitions in a cluster: brought up to date, but for those of a newer version.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{
        conditions::is_crd_established,
        wait::{Condition as _, await_condition},
    },
};
use orangery_api::annotation::VERSION;
use semver::Version;

/// As whom definitions are applied: the field manager.
pub const CRD_AUTHOR: &str = "orangery";

/// What became of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedCrd {
    /// It is as it was given, and served.
    Applied,
    /// That of a newer version is there, and stays: an older one would have the server drop fields of objects that it does not know.
    Newer {
        /// The version.
        version: String,
    },
}

/// Why a definition is not there.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// It could not be applied.
    #[error("the definition {name} cannot be installed in the cluster: {source}")]
    Apply {
        /// Its name.
        name: String,
        /// What the client says.
        source: kube::Error,
    },
    /// It was applied and is not served.
    #[error("the definition {name} was applied, and the wait for the cluster to serve it broke off: {source}")]
    NotEstablished {
        /// Its name.
        name: String,
        /// What the wait says.
        source: Box<kube::runtime::wait::Error>,
    },
}

/// Applies a definition by server-side apply, and waits until it is served.
///
/// # Errors
/// [`CrdError`]
pub async fn apply_crd(client: &Client, crd: &CustomResourceDefinition) -> Result<AppliedCrd, CrdError> {
    let (api, name) = (Api::<CustomResourceDefinition>::all(client.clone()), crd.name_any());
    let refused = |source| CrdError::Apply { name: name.clone(), source };
    let present = api.get_metadata_opt(&name).await.map_err(refused)?;
    if let Some(version) = present.and_then(|present| newer(present.annotations().get(VERSION)?, crd)) {
        return Ok(AppliedCrd::Newer { version });
    }
    let params = PatchParams::apply(CRD_AUTHOR).force();
    let applied = api.patch(&name, &params, &Patch::Apply(crd)).await.map_err(refused)?;
    if !is_crd_established().matches_object(Some(&applied)) {
        let established = await_condition(api, &name, is_crd_established()).await;
        established.map_err(|source| CrdError::NotEstablished { name, source: Box::new(source) })?;
    }
    Ok(AppliedCrd::Applied)
}

/// The version of a definition that is there, where it is newer than that of another one.
fn newer(present: &str, crd: &CustomResourceDefinition) -> Option<String> {
    let version = |text: &str| Version::parse(text).ok();
    let given = crd.annotations().get(VERSION).and_then(|given| version(given))?;
    (version(present)? > given).then(|| present.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_410_only_a_definition_of_a_newer_version_stays() {
        let of = |version: &str| {
            let mut crd = CustomResourceDefinition::default();
            crd.metadata.annotations = Some([(VERSION.to_owned(), version.to_owned())].into());
            crd
        };
        let given = of("0.10.0");
        for (present, stays) in [("0.11.0", true), ("0.9.0", false), ("0.10.0", false), ("none", false)] {
            assert_eq!(newer(present, &given), stays.then(|| present.to_owned()), "{present}");
        }
        assert_eq!(newer("0.11.0", &CustomResourceDefinition::default()), None);
    }
}
