//! The custom resource definitions in a cluster: brought up to date, but for those of a newer version.

use std::time::Duration;

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
use tokio::time::timeout;

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
    /// It was applied, and the server does not come to serve it.
    #[error("the definition {name} was applied, and the cluster does not serve it after {LONGEST_WAIT:?}{why}")]
    NotServed {
        /// Its name.
        name: String,
        /// What its conditions say, as the sentence goes on; empty where they say nothing.
        why: String,
    },
}

/// How long a server may take to serve a definition.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

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
        match timeout(LONGEST_WAIT, await_condition(api.clone(), &name, is_crd_established())).await {
            Ok(Ok(_)) => {}
            Ok(Err(source)) => return Err(CrdError::NotEstablished { name, source: Box::new(source) }),
            Err(_) => {
                let newest = api.get_opt(&name).await.ok().flatten();
                return Err(CrdError::NotServed { name, why: newest.map_or_else(String::new, |crd| unserved(&crd)) });
            }
        }
    }
    Ok(AppliedCrd::Applied)
}

/// Why a definition is not served, as its conditions say.
fn unserved(crd: &CustomResourceDefinition) -> String {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let false_ones = conditions.filter(|condition| condition.status == "False");
    false_ones
        .filter_map(|condition| condition.message.as_deref())
        .fold(String::new(), |why, message| format!("{why}; {message}"))
}

/// The version of a definition that is there, where it is newer than that of another one.
fn newer(present: &str, crd: &CustomResourceDefinition) -> Option<String> {
    let version = |text: &str| Version::parse(text).ok();
    let given = crd.annotations().get(VERSION).and_then(|given| version(given))?;
    (version(present)? > given).then(|| present.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_410_a_definition_that_is_not_served_says_why() {
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "reason": "r", "message": message});
        let conditions = [
            condition("NamesAccepted", "False", "\"pl\" is already in use"),
            condition("Established", "False", "not all names are accepted"),
            condition("NonStructuralSchema", "True", "no"),
        ];
        let status = json!({"conditions": conditions, "acceptedNames": {"kind": "Plan", "plural": "plans"}});
        let mut crd =
            CustomResourceDefinition { status: serde_json::from_value(status).unwrap(), ..Default::default() };
        let error = CrdError::NotServed { name: "plans.orangery.dev".to_owned(), why: unserved(&crd) };
        let expected = "the definition plans.orangery.dev was applied, and the cluster does not serve it after 60s; \"pl\" is already \
                        in use; not all names are accepted";
        assert_eq!(error.to_string(), expected);
        crd.status = None;
        assert_eq!(unserved(&crd), "");
    }

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
