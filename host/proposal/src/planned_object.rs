//! One object of a plan, as people and programs are shown it.

use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Action, ClusterRef, ObjectKey,
    overlay::{Difference, difference, display},
};

/// How many objects become what, in words; `None` where there are none.
pub fn counted(actions: impl Iterator<Item = Action>) -> Option<String> {
    let actions: Vec<Action> = actions.collect();
    let counts = [
        (Action::Create, "to create"),
        (Action::Change, "to change"),
        (Action::Replace, "to create anew"),
        (Action::Delete, "to delete"),
        (Action::Foreign, "of somebody else"),
        (Action::None, "as they should be"),
    ];
    let counts = counts.map(|(action, words)| (actions.iter().filter(|one| **one == action).count(), words));
    let told = counts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// One object of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedObject {
    /// What would become of it.
    pub action: Action,
    /// Its cluster; `None` for that of the item's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Group and version.
    pub api_version: ApiVersion,
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; `None` for a kind without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: ObjectName,
    /// The stage that comes to it first; empty for what left the plan.
    pub stage: String,
    /// Whether it goes with the job that made it.
    pub ephemeral: bool,
    /// What changes, field by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Difference>,
    /// As it would be, where it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

impl PlannedObject {
    /// What would become of an object, from what it is and would be.
    pub fn new(
        action: Action,
        on: &ClusterRef,
        key: &ObjectKey,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Self {
        let changes = match (action, before, after) {
            (Action::Change | Action::Replace, Some(before), Some(after)) => difference(before, after),
            _ => Vec::new(),
        };
        Self {
            action,
            cluster: (*on != ClusterRef::Target).then(|| on.to_string()),
            api_version: key.api_version.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            stage: String::new(),
            ephemeral: false,
            changes,
            object: after.filter(|_| action == Action::Create).map(display),
        }
    }

    /// The same in a stage; `ephemeral` where it goes with the job.
    pub fn in_stage(self, stage: String, ephemeral: bool) -> Self {
        Self { stage, ephemeral, ..self }
    }

    /// Whether the job writes or deletes it.
    pub fn is_changed(&self) -> bool {
        self.action.writes()
    }
}
