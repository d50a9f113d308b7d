//! Which tests of a release are run: what a release says was written by its namespace, and is done with the rights of
//! whoever calls (C-74).

use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, TypeMeta},
    core::GroupVersionKind,
    discovery::{ApiCapabilities, Scope as Reach, pinned_kind},
};
use orangery_core::name::{ApiVersion, Namespace, ObjectName, is_api_version, is_path_segment};
use orangery_plugin::TestCase;

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
};

/// The API groups whose objects give rights: that of Kubernetes, and that of OpenShift, which serves the same objects once more.
const RIGHTS: [&str; 2] = ["rbac.authorization.k8s.io", "authorization.openshift.io"];

/// What tests may create and delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestBounds {
    /// Objects of the namespace of the release that give no rights.
    Namespace,
    /// Anything.
    Open,
}

/// When the object of a test is deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deletions {
    pub(super) before: bool,
    pub(super) after_success: bool,
    pub(super) after_failure: bool,
}

/// A test that is within its bounds.
pub(super) struct AcceptedTest {
    /// Where it comes from.
    pub(super) source: String,
    pub(super) object: DynamicObject,
    pub(super) types: TypeMeta,
    pub(super) api: Api<DynamicObject>,
    /// The object in messages: kind, namespace where it has one, name.
    pub(super) place: String,
    pub(super) deletions: Deletions,
}

impl AcceptedTest {
    /// Looks at a test, and asks the cluster for nothing but its kind.
    pub(super) async fn of(
        client: &Client,
        (namespace, bounds): (&Namespace, TestBounds),
        case: TestCase,
    ) -> Result<Self, CommandError> {
        let TestCase { source, object, delete_before, delete_after_success, delete_after_failure } = case;
        let unusable = |error| CommandError::NotAnObject { file: source.clone(), cause: error };
        let object: DynamicObject = serde_json::from_value(object).map_err(unusable)?;
        let types = object.types.clone().unwrap_or_default();
        if let Some(why) = unnamed(&object, &types) {
            return Err(CommandError::TestWithoutName { file: source, why });
        }
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let found = pinned_kind(client, &GroupVersionKind::gvk(group, version, &types.kind)).await;
        let (kind, ApiCapabilities { scope, .. }) =
            found.map_err(|error| refused((&types, namespace, &object.name_any().into()), error))?;
        let own = object.namespace().map_or_else(|| namespace.clone(), Namespace::from);
        let place = match scope {
            Reach::Cluster => format!("{} {}", types.kind, object.name_any()),
            Reach::Namespaced => format!("{} {own}/{}", types.kind, object.name_any()),
        };
        if bounds == TestBounds::Namespace
            && let Some(why) = out_of_bounds(&scope, (&own, namespace), group)
        {
            return Err(CommandError::TestOutOfBounds { file: source, place, why });
        }
        let api = match scope {
            Reach::Cluster => Api::all_with(client.clone(), &kind),
            Reach::Namespaced => Api::namespaced_with(client.clone(), &own, &kind),
        };
        let deletions = Deletions {
            before: delete_before,
            after_success: delete_after_success,
            after_failure: delete_after_failure,
        };
        Ok(Self { source, object, types, api, place, deletions })
    }

    /// An error of a call for this object.
    pub(super) fn refused(&self, error: kube::Error) -> CommandError {
        let namespace = self.api.namespace().unwrap_or_default().into();
        refused((&self.types, &namespace, &self.object.name_any().into()), error).into()
    }
}

fn refused((types, namespace, name): (&TypeMeta, &Namespace, &ObjectName), error: kube::Error) -> CallError {
    let subject = CallSubject { kind: &types.kind.as_str().into(), group: &types.api_version, namespace, name };
    CallError::of(subject, error)
}

/// What would be put into the path of a request and cannot be: it could ask for another object than the one that was looked at.
fn unnamed(object: &DynamicObject, types: &TypeMeta) -> Option<&'static str> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let namespace = object.metadata.namespace.as_deref();
    if !is_path_segment(name) {
        return Some("metadata.name is no name of an object");
    }
    if namespace.is_some_and(|namespace| !is_path_segment(namespace)) {
        return Some("metadata.namespace is no name of a namespace");
    }
    (!is_api_version(&ApiVersion::from(types.api_version.as_str()))).then_some("apiVersion is no group and version")
}

/// Why an object is not one that a release may have with the rights of others.
fn out_of_bounds(scope: &Reach, (own, namespace): (&Namespace, &Namespace), group: &str) -> Option<String> {
    match scope {
        Reach::Cluster => Some("belongs to no namespace".to_owned()),
        Reach::Namespaced if own != namespace => Some(format!("is outside of the namespace {namespace}")),
        Reach::Namespaced => RIGHTS.contains(&group).then(|| "gives rights".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_74_an_object_of_the_namespace_gives_rights_by_its_group() {
        let (own, other) = (Namespace::from_static("own"), Namespace::from_static("other"));
        let of = |scope: Reach, namespace: &Namespace, group: &str| out_of_bounds(&scope, (namespace, &own), group);
        for group in ["", "apps", "authorization.k8s.io"] {
            assert_eq!(of(Reach::Namespaced, &own, group), None, "{group}");
        }
        for group in ["rbac.authorization.k8s.io", "authorization.openshift.io"] {
            assert_eq!(of(Reach::Namespaced, &own, group).as_deref(), Some("gives rights"), "{group}");
        }
        assert_eq!(of(Reach::Namespaced, &other, "").as_deref(), Some("is outside of the namespace own"));
        assert_eq!(of(Reach::Cluster, &own, "").as_deref(), Some("belongs to no namespace"));
    }
}
