//! Sending manifests to a cluster by server-side apply.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Discovery,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersion,
    discovery::{self, ApiResource, Scope},
    runtime::{conditions, wait::await_condition},
};
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};

use crate::{
    call::{CallError, CallSubject},
    folder::{FolderManifest, ObjectOrigin, in_order_of_need},
};

/// The field manager of applied objects.
pub const FIELD_MANAGER: &str = "orangery-up";

/// Why a manifest could not be applied: one sentence with the place and the fix.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The cluster does not serve the kind.
    #[error("{origin}: the cluster knows no kind {kind} of {api_version}; {}", suggestion(nearest.as_deref()))]
    UnknownKind {
        /// Where.
        origin: ObjectOrigin,
        /// The kind.
        kind: Kind,
        /// Its group and version.
        api_version: ApiVersion,
        /// What was probably meant, such as `Deployment of apps/v1`.
        nearest: Option<String>,
    },
    /// The group and version are no such thing.
    #[error("{origin}: {api_version:?} is no apiVersion; it is written v1, or group/version as in apps/v1")]
    ApiVersion {
        /// Where.
        origin: ObjectOrigin,
        /// The text.
        api_version: ApiVersion,
    },
    /// The namespace does not exist.
    #[error(
        "{origin}: {kind} {name} is to be in the namespace {namespace}, which does not exist; add a Namespace object to \
         the folder, or correct metadata.namespace"
    )]
    NoNamespace {
        /// Where.
        origin: ObjectOrigin,
        /// The kind.
        kind: Kind,
        /// The name.
        name: ObjectName,
        /// The namespace.
        namespace: Namespace,
    },
    /// The cluster refuses the object.
    #[error("{origin}: the cluster refuses {kind} {name}: {message}; correct it and try again")]
    Refused {
        /// Where.
        origin: ObjectOrigin,
        /// The kind.
        kind: Kind,
        /// The name.
        name: String,
        /// What the server says.
        message: String,
    },
    /// A call failed for a reason that is not the object's.
    #[error("{origin}: {cause}")]
    Call {
        /// Where.
        origin: ObjectOrigin,
        /// Why.
        #[source]
        cause: CallError,
    },
    /// A definition was accepted, and the wait for it to be served broke off.
    #[error("{origin}: the definition {name} was applied and is not served: {cause}; try again")]
    NotServed {
        /// Where.
        origin: ObjectOrigin,
        /// The definition's name.
        name: String,
        /// Why.
        cause: String,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => "apply its CustomResourceDefinition first, or correct kind and apiVersion".to_owned(),
    }
}

/// Applies all manifests in the order of need. All kinds are looked up before the first object is sent, so that a typing
/// error changes nothing. Objects without a namespace go to `namespace`.
///
/// Answers the objects as the server has them, in the order sent.
pub async fn apply(
    client: &Client,
    namespace: &Namespace,
    manifests: Vec<FolderManifest>,
) -> Result<Vec<DynamicObject>, ApplyError> {
    let mut apply = Apply { client, namespace, served: BTreeMap::new() };
    let manifests = in_order_of_need(manifests);
    let defined = defined_kinds(&manifests);
    for manifest in &manifests {
        if !defined.contains(&(manifest.api_version.group().to_owned(), manifest.kind.clone())) {
            apply.resolve(manifest).await?;
        }
    }
    let mut applied = Vec::with_capacity(manifests.len());
    for manifest in &manifests {
        applied.push(apply.send(manifest).await?);
    }
    Ok(applied)
}

/// Group and kind of what the manifests themselves define.
fn defined_kinds(manifests: &[FolderManifest]) -> BTreeSet<(String, Kind)> {
    let text = |manifest: &FolderManifest, path: &str| {
        manifest.object.pointer(path).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    manifests
        .iter()
        .filter(|manifest| is_definition(manifest))
        .map(|manifest| (text(manifest, "/spec/group"), text(manifest, "/spec/names/kind").into()))
        .collect()
}

fn is_definition(manifest: &FolderManifest) -> bool {
    manifest.kind == "CustomResourceDefinition" && manifest.api_version.group() == "apiextensions.k8s.io"
}

/// One run of apply.
struct Apply<'a> {
    client: &'a Client,
    namespace: &'a Namespace,
    /// What the cluster serves, by group and version, as far as asked.
    served: BTreeMap<ApiVersion, Vec<(ApiResource, Scope)>>,
}

impl Apply<'_> {
    /// How the kind is addressed.
    async fn resolve(&mut self, manifest: &FolderManifest) -> Result<(ApiResource, Scope), ApplyError> {
        if !self.served.contains_key(&manifest.api_version) {
            let served = self.ask(manifest).await?;
            self.served.insert(manifest.api_version.clone(), served);
        }
        let served = self.served.get(&manifest.api_version).into_iter().flatten();
        match served.into_iter().find(|(resource, _)| manifest.kind == resource.kind.as_str()) {
            Some(found) => Ok(found.clone()),
            None => Err(self.unknown(manifest).await),
        }
    }

    async fn ask(&self, manifest: &FolderManifest) -> Result<Vec<(ApiResource, Scope)>, ApplyError> {
        let version: GroupVersion = manifest.api_version.parse().map_err(|_| ApplyError::ApiVersion {
            origin: manifest.origin.clone(),
            api_version: manifest.api_version.clone(),
        })?;
        let group = match discovery::pinned_group(self.client, &version).await {
            Ok(group) => group,
            Err(kube::Error::Discovery(_)) => return Ok(Vec::new()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
            Err(error) => return Err(call(manifest, self.namespace, error)),
        };
        let resources = group.versioned_resources(&version.version);
        Ok(resources.into_iter().map(|(resource, capabilities)| (resource, capabilities.scope)).collect())
    }

    /// The error for a kind that is not served, with the nearest one that is.
    async fn unknown(&self, manifest: &FolderManifest) -> ApplyError {
        let known = match Discovery::new(self.client.clone()).run().await {
            Ok(discovery) => discovery
                .groups_alphabetical()
                .into_iter()
                .flat_map(|group| group.resources_by_stability())
                .map(|(resource, _)| (resource.kind, resource.api_version))
                .collect(),
            Err(error) => return call(manifest, self.namespace, error),
        };
        ApplyError::UnknownKind {
            origin: manifest.origin.clone(),
            kind: manifest.kind.clone(),
            api_version: manifest.api_version.clone(),
            nearest: nearest(&manifest.kind, &manifest.api_version, known),
        }
    }

    async fn send(&mut self, manifest: &FolderManifest) -> Result<DynamicObject, ApplyError> {
        let (resource, scope) = self.resolve(manifest).await?;
        let namespace = manifest.namespace.as_ref().unwrap_or(self.namespace);
        let api: Api<DynamicObject> = match scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api
            .patch(&manifest.name, &parameters, &Patch::Apply(&manifest.object))
            .await
            .map_err(|error| refused(manifest, namespace, error))?;
        if is_definition(manifest) {
            self.until_served(manifest).await?;
        }
        Ok(applied)
    }

    async fn until_served(&mut self, manifest: &FolderManifest) -> Result<(), ApplyError> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        await_condition(definitions, &manifest.name, conditions::is_crd_established()).await.map_err(|error| {
            let (origin, name) = (manifest.origin.clone(), manifest.name.clone());
            ApplyError::NotServed { origin, name: name.into(), cause: error.to_string() }
        })?;
        self.served.clear();
        Ok(())
    }
}

fn call(manifest: &FolderManifest, namespace: &Namespace, error: kube::Error) -> ApplyError {
    let group = manifest.api_version.group();
    let subject = CallSubject { kind: &manifest.kind, group, namespace, name: &manifest.name };
    ApplyError::Call { origin: manifest.origin.clone(), cause: CallError::of(subject, error) }
}

fn refused(manifest: &FolderManifest, namespace: &Namespace, error: kube::Error) -> ApplyError {
    let status = match error {
        kube::Error::Api(status) => status,
        other => return call(manifest, namespace, other),
    };
    let (origin, kind, name) = (manifest.origin.clone(), manifest.kind.clone(), manifest.name.clone());
    let is_about_namespace = status.details.as_ref().is_some_and(|details| details.kind == "namespaces");
    match status.code {
        404 if is_about_namespace => ApplyError::NoNamespace { origin, kind, name, namespace: namespace.to_owned() },
        400 | 404 | 405 | 409 | 413 | 415 | 422 => {
            ApplyError::Refused { origin, kind, name: name.into(), message: status.message }
        }
        _ => call(manifest, namespace, kube::Error::Api(status)),
    }
}

/// The kind that was probably meant: the same in another version, or one that is written nearly alike.
fn nearest(kind: &Kind, api_version: &ApiVersion, known: Vec<(String, String)>) -> Option<String> {
    let tolerated = (kind.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|(other, version)| {
            let distance = strsim::damerau_levenshtein(&kind.to_lowercase(), &other.to_lowercase());
            (distance, *api_version != version.as_str(), other, version)
        })
        .filter(|(distance, ..)| *distance <= tolerated)
        .min()
        .map(|(_, _, other, version)| format!("{other} of {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<(String, String)> {
        [
            ("Deployment", "apps/v1"),
            ("ConfigMap", "v1"),
            ("Installation", "landscaper.gardener.cloud/v1alpha1"),
            ("Event", "v1"),
            ("Event", "events.k8s.io/v1"),
        ]
        .map(|(kind, version)| (kind.to_owned(), version.to_owned()))
        .to_vec()
    }

    #[track_caller]
    fn check(kind: &str, api_version: &str, expected: Option<&str>) {
        assert_eq!(nearest(&kind.into(), &api_version.into(), known()).as_deref(), expected);
    }

    #[test]
    fn a_typing_error_gets_the_kind_that_was_meant() {
        check("Configmap", "v1", Some("ConfigMap of v1"));
        check("Deploymnet", "apps/v1", Some("Deployment of apps/v1"));
        check(
            "Installtion",
            "landscaper.gardener.cloud/v1alpha1",
            Some("Installation of landscaper.gardener.cloud/v1alpha1"),
        );
    }

    #[test]
    fn a_wrong_version_gets_the_right_one() {
        check("Deployment", "extensions/v1beta1", Some("Deployment of apps/v1"));
        check("Event", "events.k8s.io/v1", Some("Event of events.k8s.io/v1"));
    }

    #[test]
    fn what_is_like_nothing_gets_no_guess() {
        check("Shoot", "core.gardener.cloud/v1beta1", None);
    }
}
