//! As whom the operator acts for a namespace on the cluster of the resources, and which service accounts Targets may name
//! (C-38).

use orangery_core::name::{Namespace, ObjectName};

/// The service account of a namespace that the operator acts as unless it is told otherwise: the one that every namespace
/// has.
const USUAL_ACCOUNT: &str = "default";

/// As whom the operator acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActingAccounts {
    actor: Actor,
    /// Which service accounts Targets may name.
    pub of_targets: TargetAccounts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Actor {
    /// The service account of this name in the namespace.
    Account(ObjectName),
    /// The user of the operator's own client.
    Caller,
}

/// Which service accounts of their namespace Targets with `selfConfig` or `oidcConfig` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetAccounts {
    /// Those with the annotation [`orangery_api::annotation::ALLOW_TARGETS`], for which the acting account of the namespace
    /// may create `serviceaccounts/token`: the API server is asked in its name.
    OptedIn,
    /// Any, as in the original; the operator asks for the token itself.
    Any,
}

impl ActingAccounts {
    /// The service account of this name, in each namespace.
    pub fn named(account: ObjectName, of_targets: TargetAccounts) -> Self {
        Self { actor: Actor::Account(account), of_targets }
    }

    /// For one trusted team, and for what Landscaper has left: `default` of each namespace, and Targets name any account.
    pub fn compatible() -> Self {
        Self { of_targets: TargetAccounts::Any, ..Self::default() }
    }

    /// Nobody but the user of the client: for what a user does with their own credentials.
    pub fn caller() -> Self {
        Self { actor: Actor::Caller, of_targets: TargetAccounts::Any }
    }

    /// The service account that the operator acts as for a namespace; `None` where it acts as the user of its client.
    pub(crate) fn service_account_for(&self, namespace: &Namespace) -> Option<ServiceAccountRef> {
        match &self.actor {
            Actor::Account(name) => Some(ServiceAccountRef { namespace: namespace.clone(), name: name.clone() }),
            Actor::Caller => None,
        }
    }
}

impl Default for ActingAccounts {
    /// `default` of each namespace, and Targets name what has opted in.
    fn default() -> Self {
        Self::named(ObjectName::from_static(USUAL_ACCOUNT), TargetAccounts::OptedIn)
    }
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceAccountRef {
    pub(crate) namespace: Namespace,
    pub(crate) name: ObjectName,
}

impl ServiceAccountRef {
    /// The user as API servers know it.
    pub(crate) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl std::fmt::Display for ServiceAccountRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServiceAccount {}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_38_each_namespace_has_an_account_of_its_own() {
        let of = |namespace: &str| {
            let account = ActingAccounts::default().service_account_for(&namespace.into()).unwrap();
            (account.user(), account.to_string())
        };
        let expected = |namespace: &str| {
            let user = format!("system:serviceaccount:{namespace}:default");
            (user, format!("ServiceAccount {namespace}/default"))
        };
        assert_eq!([of("a"), of("b")], [expected("a"), expected("b")]);
        assert_eq!(ActingAccounts::caller().service_account_for(&"a".into()), None);
    }
}
