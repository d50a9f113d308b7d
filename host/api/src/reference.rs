//! References to other objects (`docs/wire.md` §1).

use orangery_core::name::{Namespace, ObjectName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object by name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The object's name.
    #[schemars(with = "String")]
    pub name: ObjectName,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub namespace: Namespace,
}

/// One key of a Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalSecretReference {
    /// The Secret's name.
    pub name: String,
    /// The key; empty means the whole Secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// One key of a ConfigMap in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalConfigMapReference {
    /// The ConfigMap's name.
    pub name: String,
    /// The key; empty means the whole ConfigMap.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// One key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The Secret's name.
    #[schemars(with = "String")]
    pub name: ObjectName,
    /// Its namespace; empty means the referring object's.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub namespace: Namespace,
    /// The key; empty means the whole Secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// An object of the same namespace, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalReference {
    /// The object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}
