//! `status.providerStatus`: what the component keeps there, the inventory in the form of Landscaper's deployers, and beside
//! them, under `orangery`, what the host needs to go on and to delete.

use orangery_apply::ItemState;
use orangery_core::{
    error::{Code, Failure},
    name::JobId,
    step::{Halt, Step},
};
use orangery_proposal::{
    DeletionGroup,
    inventory::Inventory,
    item::{Progress, StoredProposal},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const MANAGED_RESOURCES: &str = "managedResources";
const HOST: &str = "orangery";

/// What the host keeps beside the inventory.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Additions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposal: Option<StoredProposal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deletion_order: Vec<DeletionGroup>,
}

/// Reads a provider status, as a job finds it. The progress of another job is no progress of this one.
///
/// # Errors
/// A stall where the inventory cannot be read: guessing would leak or delete objects.
pub(in crate::deploy_item) fn read(status: Option<&Value>, job: &JobId) -> Step<ItemState> {
    let mut own = status.and_then(Value::as_object).cloned().unwrap_or_default();
    let inventory =
        Inventory::read(own.remove(MANAGED_RESOURCES).as_ref()).map_err(|error| unreadable(&error.to_string()))?;
    let additions: Additions = match own.remove(HOST) {
        Some(additions) => serde_json::from_value(additions)
            .map_err(|error| unreadable(&format!("status.providerStatus.orangery cannot be read: {error}")))?,
        None => Additions::default(),
    };
    Ok(ItemState {
        inventory,
        progress: additions.progress.filter(|progress| progress.job == *job),
        stored: additions.proposal,
        status: (!own.is_empty()).then_some(Value::Object(own)),
        deletion_order: additions.deletion_order,
    })
}

fn unreadable(message: &str) -> Halt {
    Halt::Stall(Failure::new("ReadStatus", "UnreadableStatus", message).with_code(Code::InternalProblem))
}

/// The provider status of a state; `None` where there is nothing to say.
pub(in crate::deploy_item) fn write(state: &ItemState) -> Option<Value> {
    let ItemState { inventory, progress, stored, status, deletion_order } = state;
    let mut whole = status.as_ref().and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    if let Some(list) = inventory.list() {
        whole.insert(MANAGED_RESOURCES.to_owned(), list);
    }
    let additions =
        Additions { proposal: stored.clone(), progress: progress.clone(), deletion_order: deletion_order.clone() };
    if additions != Additions::default() {
        whole.insert(HOST.to_owned(), json!(additions));
    }
    if whole.is_empty() {
        return None;
    }
    // The schema of the CRD asks for both.
    whole.entry("apiVersion").or_insert_with(|| json!("orangery.dev/v1alpha1"));
    whole.entry("kind").or_insert_with(|| json!("ProviderStatus"));
    Some(Value::Object(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/golden/hello-manifest`.
    fn recorded() -> Value {
        json!({
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderStatus",
            "managedResources": [{"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm",
                "namespace": "g-hello-manifest", "uid": "47ec1d9f-e855-40fd-87c0-0a45df91ce9e"}}],
        })
    }

    #[test]
    fn a_status_of_landscaper_is_adopted_and_written_as_it_is() {
        let state = read(Some(&recorded()), &"job".into()).unwrap();
        assert_eq!((state.inventory.0.len(), &state.progress, &state.stored), (1, &None, &None));
        assert_eq!(write(&state), Some(recorded()));
    }

    #[test]
    fn additions_stand_beside_and_only_the_own_job_goes_on() {
        let mut status = recorded();
        status["orangery"] = json!({
            "proposal": {"digest": "sha256:0", "secrets": ["s"]},
            "progress": {"job": "j", "at": "pruning", "since": "1970-01-01T00:00:00Z"},
            "deletionOrder": [{"on": "target", "what": ["namespaced"], "force": true}],
        });
        let state = read(Some(&status), &"j".into()).unwrap();
        assert_eq!(write(&state), Some(status.clone()));
        assert_eq!(state.status, Some(json!({"apiVersion": status["apiVersion"], "kind": "ProviderStatus"})));
        let other = read(Some(&status), &"k".into()).unwrap();
        assert_eq!((other.progress, other.stored), (None, state.stored));
    }

    #[test]
    fn nothing_to_say_is_no_status() {
        assert_eq!(write(&read(None, &"j".into()).unwrap()), None);
        let stored = ItemState {
            stored: Some(StoredProposal { digest: "sha256:0".into(), secrets: vec![] }),
            ..ItemState::default()
        };
        assert_eq!(
            write(&stored),
            Some(json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "ProviderStatus",
                "orangery": {"proposal": {"digest": "sha256:0", "secrets": []}}}))
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        for broken in [json!({"managedResources": "x"}), json!({"orangery": {"progress": {"at": "nowhere"}}})] {
            assert!(matches!(read(Some(&broken), &"j".into()), Err(Halt::Stall(_))), "{broken}");
        }
    }
}
