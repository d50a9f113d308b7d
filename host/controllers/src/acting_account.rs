//! As whom the operator acts for a namespace on the cluster of the resources, and which service accounts Targets may name
//! (C-38).

use orangery_core::{
    name::{Namespace, ObjectName},
    step::Step,
};

use crate::namespace_policy::{NamespacePolicies, refused};

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
    /// may create `serviceaccounts/token`: the API server is asked in its name. Whoever acts as themselves needs that right.
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

    /// Nobody but the user of the client: for what a user does with their own credentials. What a Target of the namespace
    /// names gets no token that its namespace may not have, however much the user may.
    pub fn caller() -> Self {
        Self { actor: Actor::Caller, of_targets: TargetAccounts::OptedIn }
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

/// The service account that the operator acts as for a namespace: the one that a policy names, else its own choice. `None` where
/// it acts as the user of its client.
///
/// # Errors
/// Two policies name different ones; or it is not known yet what counts.
pub(crate) fn acting_account(
    (accounts, policies): (&ActingAccounts, &NamespacePolicies),
    namespace: &Namespace,
) -> Step<Option<ServiceAccountRef>> {
    let Some(usual) = accounts.service_account_for(namespace) else { return Ok(None) };
    let policy = policies.of(namespace)?;
    let named = policy.service_account().map_err(|violation| refused(&violation))?;
    let named = named.map(|name| ServiceAccountRef { namespace: namespace.clone(), name: name.into() });
    Ok(Some(named.unwrap_or(usual)))
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
    use orangery_core::step::Halt;
    use orangery_policy::{Policy, Profile};
    use serde_json::json;

    use super::*;

    #[test]
    fn c_38_a_policy_names_the_account_of_its_namespaces() {
        let policies = NamespacePolicies::new(Profile::Compatible);
        let named = |name: &str, account: &str| {
            let spec = json!({"namespaces": {"names": ["a"]}, "targets": {"hostCluster": {"serviceAccount": account}}});
            policies.put_policy(name.to_owned(), Policy::read(name, &spec));
        };
        let user = |accounts: &ActingAccounts, namespace: &str| {
            let account = acting_account((accounts, &policies), &namespace.into());
            account.map(|account| account.map(|account| account.user()))
        };
        named("team", "robot");
        let usual = ActingAccounts::default();
        assert_eq!(user(&usual, "a").unwrap().as_deref(), Some("system:serviceaccount:a:robot"));
        assert_eq!(user(&usual, "b").unwrap().as_deref(), Some("system:serviceaccount:b:default"));
        assert_eq!(user(&ActingAccounts::caller(), "a").unwrap(), None, "whoever plans acts as themselves");
        named("other", "admin");
        let Err(Halt::Stall(failure)) = user(&usual, "a") else { panic!("two accounts") };
        assert!(failure.message.contains("line spec.targets.hostCluster.serviceAccount ("), "{failure}");
        named("team", "");
        assert_eq!(user(&usual, "a").unwrap().as_deref(), Some("system:serviceaccount:a:admin"));
    }

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
