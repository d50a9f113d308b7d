//! As whom the operator acts for a namespace on its own cluster.

use crate::{effective::EffectivePolicy, read::Policy, request::PolicyRequest, violation::Violation};

const SERVICE_ACCOUNT: &str = "spec.targets.hostCluster.serviceAccount";

impl EffectivePolicy {
    /// The service account of the namespace that a policy names; `None` where none does.
    ///
    /// # Errors
    /// Two policies name different ones.
    pub fn service_account(&self) -> Result<Option<&str>, Violation> {
        let mut found: Option<(&Policy, &str)> = None;
        for policy in self.policies() {
            let named = policy.lines().ok().and_then(|lines| lines.targets.host_cluster.service_account.as_deref());
            let Some(name) = named.filter(|name| !name.is_empty()) else { continue };
            match found {
                Some((other, known)) if known != name => {
                    return Err(Violation {
                        policy: policy.origin().clone(),
                        line: SERVICE_ACCOUNT.to_owned(),
                        of_profile: None,
                        asked: PolicyRequest::HostCluster.to_string(),
                        why: Some(format!("{} names another account", other.origin()).into()),
                        remedy: None,
                    });
                }
                Some(_) | None => found = Some((policy, name)),
            }
        }
        Ok(found.map(|(_, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Profile, set::PolicySet};

    fn account(named: &[&str]) -> Result<Option<String>, String> {
        let policies = named.iter().enumerate().map(|(number, name)| {
            let spec = json!({"namespaces": {"names": ["a"]}, "targets": {"hostCluster": {"serviceAccount": name}}});
            Policy::read(format!("p{number}"), &spec)
        });
        let effective = PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new());
        let found = effective.service_account().map(|name| name.map(str::to_owned));
        found.map_err(|violation| violation.to_string())
    }

    #[test]
    fn c_38_policies_name_one_account_and_no_profile_does() {
        assert_eq!(account(&[]), Ok(None));
        assert_eq!(account(&[""]), Ok(None));
        assert_eq!(account(&["", "robot", "robot"]), Ok(Some("robot".to_owned())));
        assert_eq!(
            account(&["robot", "other"]).unwrap_err(),
            "the cluster that the operator runs in is refused by NamespacePolicy p1, line \
             spec.targets.hostCluster.serviceAccount (NamespacePolicy p0 names another account); have an administrator \
             correct that policy"
        );
    }

    #[test]
    fn c_38_what_is_no_name_of_an_account_makes_the_policy_unusable() {
        let spec = json!({"namespaces": {"names": ["a"]}, "targets": {"hostCluster": {"serviceAccount": "../x"}}});
        let policy = Policy::read("p", &spec);
        assert_eq!(
            policy.lines().unwrap_err(),
            "spec.targets.hostCluster.serviceAccount is no name of a ServiceAccount; use lower case letters, digits, - and ."
        );
    }
}
