//! Which object, and what the loop asks of a kind.

use std::fmt::{self, Debug};

use kube::core::NamespaceResourceScope;
use orangery_core::name::{Namespace, ObjectName};
use serde::{Serialize, de::DeserializeOwned};

/// One object of a kind that a store holds: its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
}

impl Key {
    /// The key of a name in a namespace.
    pub fn new(namespace: impl Into<Namespace>, name: impl Into<ObjectName>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object; missing parts are empty.
    pub fn of<K: kube::Resource>(object: &K) -> Self {
        Self::of_meta(object.meta())
    }

    pub(crate) fn of_meta(meta: &kube::core::ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.as_deref().map(Namespace::from).unwrap_or_default(),
            name: meta.name.as_deref().map(ObjectName::from).unwrap_or_default(),
        }
    }
}

/// `namespace/name`
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A namespaced kind that is known at compile time. Implemented for all of them.
pub trait Watched:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

/// `Kind namespace/name`, as messages name an object.
pub(crate) fn describe<K: Watched>(object: &K) -> String {
    format!("{} {}", K::kind(&()), Key::of(object))
}
