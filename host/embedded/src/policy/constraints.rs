//! Which requests a policy, or its binding, is about.

use serde_json::Value;

use super::Attempt;
use crate::{
    object::{self, at, items, text},
    operation::ObjectPart,
    selector::LabelSelector,
};

/// `matchConstraints` of a policy, `matchResources` of a binding.
#[derive(Debug)]
pub(super) struct Constraints {
    /// None selects every request.
    rules: Option<Vec<ConstraintRule>>,
    excluded: Vec<ConstraintRule>,
    objects: LabelSelector,
    namespaces: LabelSelector,
}

#[derive(Debug)]
struct ConstraintRule {
    groups: Vec<String>,
    versions: Vec<String>,
    operations: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    scope: String,
}

impl Constraints {
    pub(super) fn read(constraints: &Value) -> Self {
        let rules = |field: &str| items(constraints, &[field]).iter().map(ConstraintRule::read).collect::<Vec<_>>();
        let selector = |field: &str| LabelSelector::read(at(constraints, &[field]).unwrap_or(&Value::Null));
        let some = rules("resourceRules");
        Self {
            rules: (!some.is_empty()).then_some(some),
            excluded: rules("excludeResourceRules"),
            objects: selector("objectSelector"),
            namespaces: selector("namespaceSelector"),
        }
    }

    /// Whether they select a request. An object is selected by its labels if its old or its new form is.
    pub(super) fn select(&self, attempt: &Attempt<'_>) -> bool {
        let forms = [attempt.old, Some(attempt.new).filter(|new| !new.is_null())];
        let by_labels = || forms.into_iter().flatten().any(|form| self.objects.selects(form));
        let of_namespace = || match attempt.namespace {
            // Of objects without a namespace only namespaces themselves have the labels of one.
            None if attempt.served.label() == "namespaces" => self.namespaces.selects(attempt.object()),
            None => true,
            Some(namespace) => self.namespaces.selects(namespace),
        };
        self.rules.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.covers(attempt)))
            && !self.excluded.iter().any(|rule| rule.covers(attempt))
            && by_labels()
            && of_namespace()
    }
}

impl ConstraintRule {
    fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            let entries = items(rule, &[field]).iter().filter_map(Value::as_str);
            entries.map(str::to_owned).collect::<Vec<_>>()
        };
        Self {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            operations: texts("operations"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            scope: text(rule, &["scope"]).unwrap_or("*").to_owned(),
        }
    }

    fn covers(&self, attempt: &Attempt<'_>) -> bool {
        let resource = &attempt.served.resource;
        let has = |list: &[String], wanted: &str| list.iter().any(|entry| entry == "*" || entry == wanted);
        let name = object::meta(attempt.object(), "name");
        let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
        has(&self.groups, &resource.group)
            && has(&self.versions, &attempt.served.version().name)
            && has(&self.operations, attempt.operation())
            && self.resources.iter().any(|entry| covers_resource(entry, &resource.plural, attempt.part))
            && (self.names.is_empty() || self.names.iter().any(|entry| entry == name))
            && (self.scope == "*" || self.scope == scope)
    }
}

/// `pods`, `pods/status`, `pods/*`, `*/status`, `*` (no subresource) and `*/*`.
fn covers_resource(entry: &str, plural: &str, part: ObjectPart) -> bool {
    let (kind, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    let whole = entry == "*/*";
    whole
        || ((kind == "*" || kind == plural)
            && (subresource == part.subresource() || (subresource == "*" && part != ObjectPart::Main)))
}
