//! Which namespaces a policy selects.

use std::collections::BTreeMap;

use orangery_core::name::Namespace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// Which namespaces a policy selects: those that are named, and those whose labels match. Without either it selects none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamespaceSelector {
    /// Names of namespaces; `*` stands for any letters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Pattern>,
    /// Labels of namespaces, as selectors of Kubernetes say them: all of it has to hold. An empty one selects all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// A label selector of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// What else has to hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// What has to hold of one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// What has to hold.
    pub operator: LabelOperator,
    /// The values of `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What has to hold of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// It has one of the values.
    In,
    /// It has none of them, or is not there.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

impl NamespaceSelector {
    /// Whether a namespace is selected.
    pub fn selects(&self, namespace: &Namespace, labels: &BTreeMap<String, String>) -> bool {
        self.names(namespace) || self.label_selector.as_ref().is_some_and(|selector| selector.selects(labels))
    }

    /// Whether a namespace is selected by its name.
    pub fn names(&self, namespace: &Namespace) -> bool {
        self.names.iter().any(|name| name.matches(namespace))
    }

    /// Why it cannot be used.
    pub(crate) fn fault(&self) -> Option<String> {
        let name = self.names.iter().find_map(Pattern::fault).map(|why| format!("spec.namespaces.names {why}"));
        name.or_else(|| self.label_selector.as_ref().and_then(LabelSelector::fault))
    }
}

impl LabelSelector {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(label, value)| labels.get(label) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }

    fn fault(&self) -> Option<String> {
        let at = "spec.namespaces.labelSelector.matchExpressions";
        self.match_expressions.iter().enumerate().find_map(|(number, LabelRequirement { key, operator, values })| {
            let needs_values = matches!(operator, LabelOperator::In | LabelOperator::NotIn);
            match (key.is_empty(), needs_values, values.is_empty()) {
                (true, _, _) => Some(format!("{at}[{number}] names no label; set key")),
                (false, true, true) => {
                    Some(format!("{at}[{number}] has the operator {operator:?} and no values; set values"))
                }
                (false, false, false) => {
                    Some(format!("{at}[{number}] has the operator {operator:?} and values; remove values"))
                }
                (false, true, false) | (false, false, true) => None,
            }
        })
    }
}

impl LabelRequirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_one = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            LabelOperator::In => is_one,
            LabelOperator::NotIn => !is_one,
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selector(json: Value) -> NamespaceSelector {
        serde_json::from_value(json).unwrap()
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_namespace_is_selected_by_its_name_or_by_its_labels() {
        let both = selector(json!({"names": ["a", "team-*"], "labelSelector": {"matchLabels": {"tenant": "yes"}}}));
        let none = labels(&[]);
        let selects = |name: &str, labels: &BTreeMap<String, String>| both.selects(&name.into(), labels);
        assert!(selects("a", &none) && selects("team-b", &none));
        assert!(!selects("b", &none) && !selects("b", &labels(&[("tenant", "no")])));
        assert!(selects("b", &labels(&[("tenant", "yes"), ("more", "")])));
    }

    #[test]
    fn without_names_and_labels_nothing_is_selected_and_an_empty_selector_selects_all() {
        let selects = |json: Value| selector(json).selects(&"a".into(), &labels(&[]));
        assert!(!selects(json!({})));
        assert!(selects(json!({"labelSelector": {}})));
    }

    #[test]
    fn the_operators_are_those_of_kubernetes() {
        let there = labels(&[("l", "1")]);
        let absent = labels(&[]);
        let holds = |operator: &str, values: &[&str]| {
            let requirement = json!({"key": "l", "operator": operator, "values": values});
            let selector = selector(json!({"labelSelector": {"matchExpressions": [requirement]}}));
            [&there, &absent].map(|labels| selector.selects(&"a".into(), labels))
        };
        assert_eq!(holds("In", &["1", "2"]), [true, false]);
        assert_eq!(holds("In", &["2"]), [false, false]);
        assert_eq!(holds("NotIn", &["1"]), [false, true]);
        assert_eq!(holds("NotIn", &["2"]), [true, true]);
        assert_eq!(holds("Exists", &[]), [true, false]);
        assert_eq!(holds("DoesNotExist", &[]), [false, true]);
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_place() {
        let fault = |requirement: Value| {
            selector(json!({"labelSelector": {"matchExpressions": [requirement]}})).fault().unwrap_or_default()
        };
        let at = "spec.namespaces.labelSelector.matchExpressions[0]";
        assert_eq!(fault(json!({"key": "", "operator": "Exists"})), format!("{at} names no label; set key"));
        assert_eq!(
            fault(json!({"key": "l", "operator": "In"})),
            format!("{at} has the operator In and no values; set values")
        );
        assert_eq!(
            fault(json!({"key": "l", "operator": "Exists", "values": ["x"]})),
            format!("{at} has the operator Exists and values; remove values")
        );
        assert_eq!(fault(json!({"key": "l", "operator": "NotIn", "values": ["x"]})), "");
        assert_eq!(
            selector(json!({"names": [""]})).fault().unwrap(),
            "spec.namespaces.names has a pattern of 0 letters; it has to have 1 to 512"
        );
    }
}
