//! A policy as it was read, whether it can be used or not.

use std::{collections::BTreeMap, fmt};

use orangery_core::name::Namespace;
use serde_json::Value;

use crate::{profile::Profile, selector::NamespaceSelector, spec::PolicySpec};

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyOrigin {
    /// A NamespacePolicy of this name.
    Named(String),
    /// The profile that counts where no NamespacePolicy selects a namespace.
    Default,
    /// The same for a command that was told no profile.
    Command,
}

impl fmt::Display for PolicyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "NamespacePolicy {name}"),
            Self::Default => f.write_str("the default policy"),
            Self::Command => f.write_str(
                "what this command takes where no NamespacePolicy selects the namespace (--default-policy compatible allows all)",
            ),
        }
    }
}

/// A policy: its lines, or why it cannot be used. One that cannot be used allows nothing in the namespaces that it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    origin: PolicyOrigin,
    priority: i32,
    /// `None` where it cannot be read which namespaces are selected: then all may be.
    selector: Option<NamespaceSelector>,
    lines: Result<PolicySpec, String>,
}

impl Policy {
    /// Reads the `spec` of a NamespacePolicy. Of one that cannot be used as a whole, what says where it counts is read for
    /// itself; what of that cannot be read is taken for the strictest.
    pub fn read(name: impl Into<String>, spec: &Value) -> Self {
        let origin = PolicyOrigin::Named(name.into());
        let read =
            serde_json::from_value::<PolicySpec>(spec.clone()).map_err(|error| format!("spec cannot be read: {error}"));
        match read {
            Ok(spec) => {
                let selector = Some(spec.namespaces.clone()).filter(|selector| selector.fault().is_none());
                let (priority, fault) = (spec.priority, spec.fault());
                Self { origin, priority, selector, lines: fault.map_or(Ok(spec), Err) }
            }
            Err(why) => {
                let priority = match spec.get("priority") {
                    None => 0,
                    Some(value) => value.as_i64().and_then(|value| i32::try_from(value).ok()).unwrap_or(i32::MAX),
                };
                let selector = spec.get("namespaces").map_or_else(
                    || Some(NamespaceSelector::default()),
                    |value| serde_json::from_value::<NamespaceSelector>(value.clone()).ok(),
                );
                let selector = selector.filter(|selector| selector.fault().is_none());
                Self { origin, priority, selector, lines: Err(why) }
            }
        }
    }

    /// The policy of a profile.
    pub fn of_profile(profile: Profile) -> Self {
        let lines = Ok(profile.spec().clone());
        Self { origin: PolicyOrigin::Default, priority: i32::MIN, selector: None, lines }
    }

    /// What counts for a command that was told no profile: the most that an operator may allow, but for networks that are not
    /// the internet. Whoever runs the command stands in such networks, and others have written where it would connect to
    /// (C-128).
    pub fn of_command() -> Self {
        let mut lines = Profile::Compatible.spec().clone();
        lines.egress.networks.clone_from(&Profile::Restricted.spec().egress.networks);
        Self { origin: PolicyOrigin::Command, priority: i32::MIN, selector: None, lines: Ok(lines) }
    }

    /// Where it comes from.
    pub fn origin(&self) -> &PolicyOrigin {
        &self.origin
    }

    /// Its priority among those that select a namespace.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Its lines, or why it cannot be used.
    pub fn lines(&self) -> Result<&PolicySpec, &str> {
        self.lines.as_ref().map_err(String::as_str)
    }

    /// Whether it selects a namespace.
    pub fn selects(&self, namespace: &Namespace, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.selects(namespace, labels))
    }

    /// Whether the labels of a namespace decide whether it is selected.
    pub(crate) fn asks_labels(&self, namespace: &Namespace) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.label_selector.is_some() && !selector.names(namespace))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(policy: &Policy, name: &str) -> bool {
        policy.selects(&name.into(), &BTreeMap::new())
    }

    #[test]
    fn a_policy_is_read_with_its_place() {
        let policy =
            Policy::read("team", &json!({"priority": 3, "namespaces": {"names": ["a"]}, "quotas": {"items": 4}}));
        assert_eq!((policy.origin().to_string(), policy.priority()), ("NamespacePolicy team".to_owned(), 3));
        assert_eq!(policy.lines().unwrap().quotas.items, Some(4));
        assert!(selects(&policy, "a") && !selects(&policy, "b"));
    }

    #[test]
    fn a_field_that_there_is_not_makes_a_policy_unusable_where_it_counts() {
        let policy = Policy::read("team", &json!({"namespaces": {"names": ["a"]}, "quota": {"items": 4}}));
        let why = policy.lines().unwrap_err();
        assert!(why.starts_with("spec cannot be read: unknown field `quota`"), "{why}");
        assert!(selects(&policy, "a") && !selects(&policy, "b"));
        assert_eq!(policy.priority(), 0);
    }

    #[test]
    fn a_selector_that_cannot_be_used_selects_every_namespace() {
        for namespaces in [
            json!({"labelSelector": {"matchExpressions": [{"key": "l", "operator": "In"}]}}),
            json!({"labelSelector": {"matchExpressions": [{"key": "l", "operator": "Is", "values": ["x"]}]}}),
            json!({"names": "a"}),
            json!({"names": [""]}),
            json!("a"),
        ] {
            let policy = Policy::read("team", &json!({"namespaces": namespaces}));
            assert!(policy.lines().is_err() && selects(&policy, "anything"), "{namespaces}");
        }
    }

    #[test]
    fn a_priority_that_cannot_be_read_is_the_highest() {
        for priority in [json!("high"), json!(1_u64 << 40)] {
            let policy = Policy::read("team", &json!({"priority": priority, "namespaces": {"names": ["a"]}}));
            assert_eq!(policy.priority(), i32::MAX, "{priority}");
        }
    }

    #[test]
    fn the_default_policy_is_a_profile_and_selects_what_no_other_does() {
        let policy = Policy::of_profile(Profile::Restricted);
        assert_eq!(policy.origin().to_string(), "the default policy");
        assert!(selects(&policy, "anything"));
        assert_eq!(policy.lines(), Ok(Profile::Restricted.spec()));
    }
}
