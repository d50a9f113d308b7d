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
        let item = json!({
            "name": self.item.item_name().unwrap_or(self.key.name.as_str()), "type": self.item.spec.type_, "installation": self.root(),
            "namespace": self.key.namespace, "plugin": self.deployer.identity().name,
        });
        policy.broken_plan_rules(&variables(effects, item))
    }
}

/// What expressions are over: what is written and deleted, how much of it, and the item.
fn variables(effects: &[Effect], item: Value) -> Map<String, Value> {
    let written: Vec<&Effect> = effects.iter().filter(|effect| effect.action.writes()).collect();
    let count = |action: Action| written.iter().filter(|effect| effect.action == action).count();
    let counts = json!({
        "create": count(Action::Create), "change": count(Action::Change), "replace": count(Action::Replace),
        "delete": count(Action::Delete),
    });
    let object = |effect: &&Effect| {
        let key = &effect.located.key;
        json!({
            "action": effect.action, "cluster": effect.located.on.to_string(), "apiVersion": key.api_version, "group": key.group(),
            "kind": key.kind, "namespace": key.namespace.as_deref().map_or("", |namespace| namespace), "name": key.name,
            "stage": effect.stage, "ephemeral": effect.ephemeral, "before": effect.before, "after": effect.after,
        })
    };
    let objects = Value::Array(written.iter().map(object).collect());
    Map::from_iter([("objects".to_owned(), objects), ("counts".to_owned(), counts), ("item".to_owned(), item)])
}
