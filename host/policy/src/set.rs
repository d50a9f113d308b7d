//! All policies of a cluster, and which of them count for a namespace.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use orangery_core::name::Namespace;

use crate::{effective::EffectivePolicy, profile::Profile, read::Policy};

/// All policies of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySet {
    /// What counts where nothing else does.
    default: Arc<Policy>,
    /// The highest priority first, then by name.
    policies: Vec<Arc<Policy>>,
}

impl PolicySet {
    /// These policies, and a profile for all namespaces that none of them selects.
    pub fn new(default: Profile, policies: impl IntoIterator<Item = Policy>) -> Self {
        Self::with_default(Arc::new(Policy::of_profile(default)), policies)
    }

    /// These policies, and another one for all namespaces that none of them selects.
    pub fn with_default(default: Arc<Policy>, policies: impl IntoIterator<Item = Policy>) -> Self {
        let mut policies: Vec<_> = policies.into_iter().map(Arc::new).collect();
        policies.sort_by(|a, b| (Reverse(a.priority()), a.origin()).cmp(&(Reverse(b.priority()), b.origin())));
        Self { default, policies }
    }

    /// What counts for a namespace with these labels: of the policies that select it all those with the highest priority,
    /// each of which has to allow what is asked; where none selects it, the default.
    pub fn of(&self, namespace: &Namespace, labels: &BTreeMap<String, String>) -> EffectivePolicy {
        let mut selecting = self.policies.iter().filter(|policy| policy.selects(namespace, labels)).peekable();
        let Some(highest) = selecting.peek().map(|policy| policy.priority()) else {
            return EffectivePolicy::new(vec![Arc::clone(&self.default)]);
        };
        let counting = selecting.take_while(|policy| policy.priority() == highest);
        EffectivePolicy::new(counting.cloned().collect())
    }

    /// Whether it cannot be said what counts for a namespace without its labels.
    pub fn asks_labels(&self, namespace: &Namespace) -> bool {
        self.policies.iter().any(|policy| policy.asks_labels(namespace))
    }

    /// All policies but the default, those that count first at the front.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The policies that count for the namespace `a`, which has the label `tenant: yes`.
    fn counting(policies: &[(&str, Value)]) -> Vec<String> {
        let set = PolicySet::new(Profile::Restricted, policies.iter().map(|(name, spec)| Policy::read(*name, spec)));
        let labels = BTreeMap::from([("tenant".to_owned(), "yes".to_owned())]);
        set.of(&"a".into(), &labels).policies().map(|policy| policy.origin().to_string()).collect()
    }

    fn selecting(names: &[&str], priority: i32) -> Value {
        json!({"namespaces": {"names": names}, "priority": priority})
    }

    #[test]
    fn where_no_policy_selects_a_namespace_the_default_counts() {
        assert_eq!(counting(&[]), ["the default policy"]);
        assert_eq!(counting(&[("other", selecting(&["b"], 9)), ("none", json!({}))]), ["the default policy"]);
    }

    #[test]
    fn the_highest_priority_counts_and_of_several_all_of_them_by_name() {
        let policies = [
            ("z", selecting(&["a"], 1)),
            ("low", selecting(&["*"], 0)),
            ("b", json!({"priority": 1, "namespaces": {"labelSelector": {"matchLabels": {"tenant": "yes"}}}})),
            ("elsewhere", selecting(&["b"], 2)),
        ];
        assert_eq!(counting(&policies), ["NamespacePolicy b", "NamespacePolicy z"]);
        let mut backwards = policies;
        backwards.reverse();
        assert_eq!(counting(&backwards), ["NamespacePolicy b", "NamespacePolicy z"], "whatever the order");
    }

    #[test]
    fn a_policy_with_a_selector_that_cannot_be_used_counts_everywhere_but_below_a_higher_priority() {
        let bad = json!({"namespaces": {"labelSelector": {"matchExpressions": [{"key": "l", "operator": "In"}]}}});
        assert_eq!(counting(&[("bad", bad.clone())]), ["NamespacePolicy bad"]);
        assert_eq!(
            counting(&[("bad", bad.clone()), ("good", selecting(&["a"], 0))]),
            ["NamespacePolicy bad", "NamespacePolicy good"]
        );
        assert_eq!(counting(&[("bad", bad), ("good", selecting(&["a"], 1))]), ["NamespacePolicy good"]);
    }

    #[test]
    fn labels_are_asked_for_where_they_decide() {
        let asks =
            |spec: Value| PolicySet::new(Profile::Restricted, [Policy::read("p", &spec)]).asks_labels(&"a".into());
        assert!(!asks(selecting(&["b"], 0)));
        assert!(asks(json!({"namespaces": {"labelSelector": {}}})));
        assert!(!asks(json!({"namespaces": {"names": ["a"], "labelSelector": {}}})), "it is selected by its name");
    }
}
