//! What rules of policies say of what a deploy item is about to write (C-318, C-362).

use std::{collections::BTreeSet, sync::Arc};

use orangery_api::marks::Marks as _;
use orangery_apply::{DryRun, Effect, ItemState};
use orangery_core::{digest::sha256, step::Step};
use orangery_policy::{BrokenRule, EffectivePolicy, RuleScope};
use orangery_proposal::{Action, ObjectKey, inventory::Inventory};
use serde_json::{Map, Value, json};

use super::GatheredItem;
use crate::{
    job_writes::{JobObject, TreeJob},
    plan_rules::RuleQuestion,
};

impl GatheredItem {
    /// Whether there are any over the item alone.
    pub(in crate::deploy_item) fn has_plan_rules(&self) -> bool {
        self.has_rules(RuleScope::Item)
    }

    /// Whether there are any over the whole job.
    pub(in crate::deploy_item) fn has_job_rules(&self) -> bool {
        self.has_rules(RuleScope::Job)
    }

    fn has_rules(&self, scope: RuleScope) -> bool {
        has_rules(&self.policy, scope)
    }

    /// Whether there is a Plan of what it is about to write: to be approved, or for rules over the whole job.
    pub(in crate::deploy_item) fn has_plans(&self) -> bool {
        self.requires_approval || self.has_job_rules()
    }

    /// Its job, with the whole tree.
    pub(in crate::deploy_item) fn tree_job(&self) -> TreeJob {
        (self.key.namespace.clone(), self.job.id.clone())
    }

    /// What it is about to write is known to rules over the whole job; `None` where nobody can tell before it is its turn.
    pub(in crate::deploy_item) fn note_job_writes(&self, next: Option<BTreeSet<JobObject>>) {
        if self.has_job_rules() {
            self.host.job_writes.note(&self.tree_job(), &self.key, next);
        }
    }

    /// By what it is known whether rules over jobs are the same as before.
    pub(in crate::deploy_item) fn job_rules_digest(&self) -> String {
        let rules = self.policy.iter().flat_map(|policy| policy.plan_rules(RuleScope::Job));
        sha256(rules.map(|rule| format!("{rule:?};")).collect::<String>().as_bytes())
    }

    /// The rules that do not hold of a run from this state.
    pub(in crate::deploy_item) async fn broken_plan_rules(&self, run: &DryRun, state: &ItemState) -> Vec<BrokenRule> {
        let Ok(policy) = &self.policy else { return Vec::new() };
        let item = self.item_variable();
        let former = former_objects(state.former.iter().chain(&run.former));
        let (namespace, scope, name) = (&self.key.namespace, RuleScope::Item, &self.key.name);
        let asked = RuleQuestion { host: &self.host, namespace, scope, item: name };
        asked.broken(policy, &variables(&run.effects, &former, item)).await
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
    let Effect { located, action, before, after, stage, ephemeral, .. } = effect;
    let cluster = located.on.to_string();
    described((*action, cluster, &located.key), (stage, *ephemeral), (before.as_ref(), after.as_ref()))
}

fn described(
    (action, cluster, key): (Action, String, &ObjectKey),
    (stage, ephemeral): (&str, bool),
    (before, after): (Option<&Value>, Option<&Value>),
) -> Value {
    json!({
        "action": action, "cluster": cluster, "apiVersion": key.api_version, "group": key.group(), "kind": key.kind,
        "namespace": key.namespace.as_deref().map_or("", |namespace| namespace), "name": key.name,
        "stage": stage, "ephemeral": ephemeral, "before": before, "after": after,
    })
}

/// Whether there are rules; of what is not known there are none, and nothing is written then.
pub(in crate::deploy_item) fn has_rules(policy: &Step<Arc<EffectivePolicy>>, scope: RuleScope) -> bool {
    policy.as_ref().is_ok_and(|policy| policy.has_plan_rules(scope))
}

/// What lies in former clusters, each with the uid of its cluster.
fn former_objects<'a>(former: impl Iterator<Item = (&'a String, &'a Inventory)>) -> BTreeSet<(&'a str, &'a ObjectKey)> {
    former.flat_map(|(uid, left)| left.0.keys().map(move |located| (uid.as_str(), &located.key))).collect()
}

/// What is deleted in a cluster that the target named before. Nobody looks at it first.
fn former_object(uid: &str, key: &ObjectKey) -> Value {
    described((Action::Delete, former_cluster(uid), key), ("", false), (None, None))
}

/// A cluster that the target named before, in words.
pub(in crate::deploy_item) fn former_cluster(uid: &str) -> String {
    format!("the former cluster whose kube-system has the uid {uid}")
}

/// What expressions are over: what is written and deleted, also in former clusters, how much of it, and the item.
fn variables(effects: &[Effect], former: &BTreeSet<(&str, &ObjectKey)>, item: Value) -> Map<String, Value> {
    let written: Vec<&Effect> = effects.iter().filter(|effect| effect.action.writes()).collect();
    let left: Vec<Value> = former.iter().map(|(uid, key)| former_object(uid, key)).collect();
    let count = |action: Action| written.iter().filter(|effect| effect.action == action).count();
    let counts = json!({
        "create": count(Action::Create), "change": count(Action::Change), "replace": count(Action::Replace),
        "delete": count(Action::Delete) + left.len(),
    });
    let objects = Value::Array(written.iter().map(|effect| object(effect)).chain(left).collect());
    Map::from_iter([("objects".to_owned(), objects), ("counts".to_owned(), counts), ("item".to_owned(), item)])
}

#[cfg(test)]
mod tests {
    use orangery_proposal::{
        ClusterRef,
        inventory::{InventoryEntry, LocatedObject},
    };

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
        let variables = variables(&effects, &BTreeSet::new(), json!({"name": "item"}));
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

    #[test]
    fn c_318_what_goes_in_a_cluster_that_the_target_named_before_is_deleted_as_anything_else() {
        let effects = [effect(Action::Delete, "old", Some("n"))];
        let located = effects[0].located.clone();
        let left = Inventory([(located, InventoryEntry::default())].into());
        let (uid, known) = ("u1".to_owned(), [&left, &left]);
        let former = former_objects(known.into_iter().map(|left| (&uid, left)));
        let variables = variables(&effects, &former, Value::Null);
        assert_eq!(variables["counts"]["delete"], 2);
        let expected = json!({
            "action": "delete", "cluster": "the former cluster whose kube-system has the uid u1", "apiVersion": "apps/v1",
            "group": "apps", "kind": "Deployment", "namespace": "n", "name": "old", "stage": "", "ephemeral": false,
            "before": null, "after": null,
        });
        assert_eq!(variables["objects"][1], expected);
    }
}
