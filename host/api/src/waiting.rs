//! `status.waitingFor`: what an object waits for. Not in the original.

use orangery_core::{
    name::{Kind, Namespace, ObjectName},
    step::{Awaited, Until, Waiting},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that an object waits for. An Installation and an Execution wait for objects of their own namespace, a
/// DeployItem for objects of the clusters that it deploys to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// Its kind, such as `DeployItem`. `GateExpression` stands for a gate expression of an item, which is named `item/field`,
    /// `Finalizer` for a finalizer of the object itself, and `Host` for the operator and its limit `maxParallel`.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// Its namespace; absent where it is in none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub namespace: Namespace,
    /// Its name; absent where it is selected and not named.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub name: ObjectName,
    /// What selects it, in words, where it is not named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selection: String,
    /// What must become of it: `Exists`, `Ready`, `Finished` (its job), `Gone`, `Met` (a gate expression), `Approved` (a Plan) or `Room` (the
    /// operator works on fewer items than it may).
    pub until: String,
}

/// Whether a number is not written.
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WaitingFor {
    /// On the wire.
    pub fn new(waiting: &Waiting) -> Self {
        let (name, selection) = match &waiting.which {
            Awaited::Name(name) => (ObjectName::from(name.as_str()), String::new()),
            Awaited::Selection(selection) => (ObjectName::default(), selection.clone()),
        };
        Self {
            kind: waiting.kind.clone(),
            namespace: waiting.location.namespace().cloned().unwrap_or_default(),
            name,
            selection,
            until: waiting.until.as_str().to_owned(),
        }
    }

    /// What must become of it; `None` for a word that this version does not know.
    pub fn until(&self) -> Option<Until> {
        Until::parse(&self.until)
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::step::{Location, Wait};
    use serde_json::{Value, json};

    use super::*;
    use crate::deploy_item::DeployItemStatus;

    fn wire(waiting: Waiting) -> Value {
        serde_json::to_value(WaitingFor::new(&waiting)).unwrap()
    }

    #[test]
    fn orc_08_the_wire_form_of_each_thing_that_is_waited_for() {
        let target = |namespace: Option<&str>, until| {
            Waiting::target(&"Job".into(), namespace.map(Into::into), &"a".into(), until)
        };
        let beside = Waiting {
            location: Location::Beside(Some("here".into())),
            ..Waiting::beside("DeployItem", "a", Until::Finished)
        };
        assert_eq!(wire(beside), json!({"kind": "DeployItem", "namespace": "here", "name": "a", "until": "Finished"}));
        assert_eq!(
            wire(target(Some("there"), Until::Ready).because("0 of 1")),
            json!({"kind": "Job", "namespace": "there", "name": "a", "until": "Ready"})
        );
        assert_eq!(wire(target(None, Until::Gone)), json!({"kind": "Job", "name": "a", "until": "Gone"}));
        assert_eq!(
            wire(Waiting::selected(&Kind::from_static("Pod"), None, "with the labels a=b".into(), Until::Exists)),
            json!({"kind": "Pod", "selection": "with the labels a=b", "until": "Exists"})
        );
        assert_eq!(
            wire(Waiting::nowhere("GateExpression", "a/when", Until::Met)),
            json!({"kind": "GateExpression", "name": "a/when", "until": "Met"})
        );
        assert_eq!(
            wire(Waiting::nowhere("Host", "maxParallel=1", Until::Room)),
            json!({"kind": "Host", "name": "maxParallel=1", "until": "Room"})
        );
    }

    #[test]
    fn nothing_is_written_where_nothing_is_waited_for() {
        let status = serde_json::to_value(DeployItemStatus::default()).unwrap();
        assert_eq!((status.get("waitingFor"), status.get("waitingForMore")), (None, None));
    }

    #[test]
    fn what_an_external_deployer_writes_never_makes_an_item_unreadable() {
        let read = |waiting_for: Value, more: Value| {
            let status = json!({"phase": "Progressing", "waitingFor": waiting_for, "waitingForMore": more});
            let status: DeployItemStatus = serde_json::from_value(status).unwrap();
            assert_eq!(status.phase, "Progressing");
            (status.waiting_for, status.waiting_for_more)
        };
        let good = json!({"kind": "Job", "namespace": "n", "name": "a", "until": "Ready"});
        let job = WaitingFor::new(&Waiting {
            location: Location::Target(Some("n".into())),
            ..Waiting::nowhere("Job", "a", Until::Ready)
        });
        for rubbish in [json!(null), json!("x"), json!(7), json!({"kind": "Job"}), json!([1, "x", null, {"kind": []}])]
        {
            assert_eq!(read(rubbish.clone(), json!([rubbish])), (vec![], 0));
        }
        assert_eq!(read(json!([good, 1]), json!(2)), (vec![job], 2));
        assert_eq!(read(json!([]), json!(-1)), (vec![], 0));
        let unknown = WaitingFor { kind: "Job".into(), until: "Whenever".into(), ..WaitingFor::default() };
        assert_eq!(read(json!([{"kind": "Job", "until": "Whenever"}]), json!(0)), (vec![unknown.clone()], 0));
        assert_eq!(unknown.until(), None);
    }

    #[test]
    fn what_a_wait_lists_is_read_as_it_was_written() {
        let wait = Wait::on("Target", "a", Until::Exists).in_namespace(&"here".into());
        let (listed, _) = wait.listed();
        let written: Vec<WaitingFor> = listed.iter().map(WaitingFor::new).collect();
        let wire = serde_json::to_value(&written).unwrap();
        assert_eq!(serde_json::from_value::<Vec<WaitingFor>>(wire).unwrap(), written);
        assert_eq!(written.first().and_then(WaitingFor::until), Some(Until::Exists));
    }
}
