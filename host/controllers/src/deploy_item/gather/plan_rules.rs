//! What rules of policies say of what a deploy item is about to write (C-318).

use orangery_api::marks::Marks as _;
use orangery_apply::Effect;
use orangery_policy::BrokenRule;
use orangery_proposal::Action;
use serde_json::{Map, Value, json};

use super::GatheredItem;

impl GatheredItem {
    /// Whether there are any.
    pub(in crate::deploy_item) fn has_plan_rules(&self) -> bool {
        self.policy.as_ref().is_ok_and(|policy| policy.has_plan_rules())
    }

    /// The rules that do not hold.
    pub(in crate::deploy_item) fn broken_plan_rules(&self, effects: &[Effect]) -> Vec<BrokenRule> {
        let Ok(policy) = &self.policy else { return Vec::new() };
        let item = self.item_variable();
        policy.broken_plan_rules(&variables(effects, item))
    }

    /// What somebody has to approve of what is written: the rest needs no approval by the policies (C-370).
    pub(in crate::deploy_item) fn to_be_approved<'e>(&self, effects: &'e [Effect]) -> Vec<&'e Effect> {
        let exemptions = self.policy.as_ref().map(|policy| policy.approval_exemptions()).unwrap_or_default();
        if exemptions.is_empty() {
            return effects.iter().collect();
        }
        let item = self.item_variable();
        let is_covered = |effect: &Effect| {
            let variables = [("object".to_owned(), object(effect)), ("item".to_owned(), item.clone())];
            exemptions.cover(&Map::from_iter(variables))
        };
        effects.iter().filter(|effect| !is_covered(effect)).collect()
    }

    /// The item, as expressions of policies know it.
    fn item_variable(&self) -> Value {
        json!({
            "name": self.item.item_name().unwrap_or(self.key.name.as_str()), "type": self.item.spec.type_, "installation": self.root(),
            "namespace": self.key.namespace, "plugin": self.deployer.identity().name,
        })
    }
}

/// What is written or deleted, as expressions of policies know it.
fn object(effect: &Effect) -> Value {
    let key = &effect.located.key;
    json!({
        "action": effect.action, "cluster": effect.located.on.to_string(), "apiVersion": key.api_version, "group": key.group(),
        "kind": key.kind, "namespace": key.namespace.as_deref().map_or("", |namespace| namespace), "name": key.name,
        "stage": effect.stage, "ephemeral": effect.ephemeral, "before": effect.before, "after": effect.after,
    })
}

/// What expressions are over: what is written and deleted, how much of it, and the item.
fn variables(effects: &[Effect], item: Value) -> Map<String, Value> {
    let written: Vec<&Effect> = effects.iter().filter(|effect| effect.action.writes()).collect();
    let count = |action: Action| written.iter().filter(|effect| effect.action == action).count();
    let counts = json!({
        "create": count(Action::Create), "change": count(Action::Change), "replace": count(Action::Replace),
        "delete": count(Action::Delete),
    });
    let objects = Value::Array(written.iter().map(|effect| object(effect)).collect());
    Map::from_iter([("objects".to_owned(), objects), ("counts".to_owned(), counts), ("item".to_owned(), item)])
}

#[cfg(test)]
mod tests {
    use orangery_proposal::{ClusterRef, ObjectKey, inventory::LocatedObject};

    use super::*;

    fn effect(action: Action, name: &str, namespace: Option<&str>) -> Effect {
        let object = |value: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"value": value}});
        let (before, after) = match action {
            Action::Create => (None, Some(object("new"))),
            Action::Delete => (Some(object("old")), None),
            Action::Change | Action::Replace | Action::None | Action::Foreign => {
                (Some(object("old")), Some(object("new")))
            }
        };
        let key = ObjectKey {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        };
        let located = LocatedObject { on: ClusterRef::Named("edge".into()), key };
        Effect { located, cluster: None, action, before, after, stage: "one".to_owned(), ephemeral: name == "hook" }
    }

    #[test]
    fn c_318_rules_are_over_what_is_written_and_deleted_and_not_over_what_stays() {
        let effects = [
            effect(Action::Create, "hook", Some("n")),
            effect(Action::Change, "web", Some("n")),
            effect(Action::None, "as-it-is", Some("n")),
            effect(Action::Foreign, "theirs", Some("n")),
            effect(Action::Delete, "old", None),
            effect(Action::Delete, "older", None),
        ];
        let variables = variables(&effects, json!({"name": "item"}));
        assert_eq!(variables["item"], json!({"name": "item"}));
        assert_eq!(variables["counts"], json!({"create": 1, "change": 1, "replace": 0, "delete": 2}));
        let old = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"value": "old"}});
        let new = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"value": "new"}});
        let object = |action: &str, name: &str, namespace: &str, before: Value, after: Value| {
            json!({
                "action": action, "cluster": "the cluster of target edge", "apiVersion": "apps/v1", "group": "apps",
                "kind": "Deployment", "namespace": namespace, "name": name, "stage": "one", "ephemeral": name == "hook",
                "before": before, "after": after,
            })
        };
        let expected = json!([
            object("create", "hook", "n", Value::Null, new.clone()),
            object("change", "web", "n", old.clone(), new),
            object("delete", "old", "", old.clone(), Value::Null),
            object("delete", "older", "", old, Value::Null),
        ]);
        assert_eq!(variables["objects"], expected);
    }
}
