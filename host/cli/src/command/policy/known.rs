//! The policies and namespaces of a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use orangery_api::namespace_policy::{NamespacePolicy, POLICY_GROUP};
use orangery_core::name::{Kind, Namespace, ObjectName};
use orangery_policy::Policy;
use serde_json::Value;

use crate::{
    call::{CallError, CallSubject},
    listed,
};

/// All policies, by name, as they are written.
pub(super) async fn policies(client: &Client) -> Result<BTreeMap<String, Policy>, CallError> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<NamespacePolicy>(&()));
    let nowhere = Namespace::default();
    let subject = CallSubject {
        kind: &Kind::from_static("NamespacePolicy"),
        group: POLICY_GROUP,
        namespace: &nowhere,
        name: &ObjectName::from_static(""),
    };
    let list = api.list(&ListParams::default()).await.map_err(|error| CallError::of(subject, error))?;
    let read =
        |object: &DynamicObject| Policy::read(object.name_any(), object.data.get("spec").unwrap_or(&Value::Null));
    Ok(list.items.iter().map(|object| (object.name_any(), read(object))).collect())
}

/// All namespaces, with their labels.
pub(super) async fn namespaces(client: &Client) -> Result<BTreeMap<Namespace, BTreeMap<String, String>>, CallError> {
    let nowhere = Namespace::default();
    let subject = CallSubject {
        kind: &Kind::from_static("Namespace"),
        group: "",
        namespace: &nowhere,
        name: &ObjectName::from_static(""),
    };
    let list = listed::page::<v1::Namespace>(client, None, &ListParams::default()).await;
    let list = list.map_err(|error| CallError::of(subject, error))?;
    let labels = |labels: Option<BTreeMap<String, String>>| labels.unwrap_or_default();
    Ok(list.objects.into_iter().map(|one| (one.name_any().into(), labels(one.metadata.labels))).collect())
}
