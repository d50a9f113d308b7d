//! What template executions have kept: as the command line gives it, or as the last job has stored it.

use std::collections::BTreeMap;

use orangery_blueprint::{Blueprint, rendering::ExecutionKind};
use orangery_core::name::{StateOwner, state_secret};
use orangery_render::{StateKey, States};
use serde_json::Value;

use super::{BLUEPRINT, Given, GivenNames, GivenOrigin, NamespaceObjects, OfflineFault};

/// The lists whose executions keep a state.
const LISTS: [(ExecutionKind, &str); 3] = [
    (ExecutionKind::Subinstallation, "subinstallationExecutions"),
    (ExecutionKind::Deploy, "deployExecutions"),
    (ExecutionKind::Export, "exportExecutions"),
];

/// The key of a state in its Secret.
const STATE: &str = "config";

/// The names that the Secret with a state may have, the one that counts first.
fn owners(list: ExecutionKind) -> &'static [StateOwner] {
    match list {
        ExecutionKind::Export => &[StateOwner::Export],
        ExecutionKind::Subinstallation => &[StateOwner::Subinstallation, StateOwner::Deploy],
        ExecutionKind::Import | ExecutionKind::Deploy | ExecutionKind::ImportMapping | ExecutionKind::ExportMapping => {
            &[StateOwner::Deploy]
        }
    }
}

/// What the executions of an Installation have kept, whose object has this name.
///
/// # Errors
/// [`OfflineFault::Unknown`] and [`OfflineFault::State`]
pub(super) fn states(
    given: &Given,
    object: &str,
    blueprint: &Blueprint,
    objects: &NamespaceObjects,
) -> Result<States, OfflineFault> {
    match given.origin {
        GivenOrigin::CommandLine => named(given, blueprint),
        GivenOrigin::Cluster => stored(object, blueprint, objects),
    }
}

/// Those that the last job has stored.
fn stored(object: &str, blueprint: &Blueprint, objects: &NamespaceObjects) -> Result<States, OfflineFault> {
    let mut states = States::default();
    for key in States::keys(blueprint) {
        let name = |owner: &StateOwner| state_secret(object, *owner, &key.execution);
        let stored = owners(key.list).iter().find_map(|owner| objects.secret_key(&name(owner), STATE));
        if let Some(stored) = stored {
            states.load(key, stored).map_err(|error| OfflineFault::State(error.to_string()))?;
        }
    }
    Ok(states)
}

/// The states that the command line gives.
fn named(given: &Given, blueprint: &Blueprint) -> Result<States, OfflineFault> {
    let lists = LISTS.map(|(_, list)| list);
    GivenNames { flag: "state", what: "states of the list", whose: BLUEPRINT, known: &lists }
        .check(given.state.keys())?;
    let mut states = States::default();
    for (list, name) in LISTS {
        let Some(executions) = given.state.get(name) else { continue };
        let known: Vec<StateKey> = States::keys(blueprint).filter(|key| key.list == list).collect();
        let known: Vec<&str> = known.iter().map(|key| key.execution.as_str()).collect();
        let what = "the state of the execution";
        GivenNames { flag: "state", what, whose: BLUEPRINT, known: &known }.check(executions.keys())?;
        for (execution, value) in executions {
            let key = StateKey { list, execution: execution.clone() };
            states.load(key, value.to_string().as_bytes()).map_err(|error| OfflineFault::State(error.to_string()))?;
        }
    }
    Ok(states)
}

/// The states after a rendering, by list and name.
pub(super) fn kept(states: &States) -> BTreeMap<&'static str, BTreeMap<String, Value>> {
    let mut kept: BTreeMap<&'static str, BTreeMap<String, Value>> = BTreeMap::new();
    for (key, value) in states.values() {
        if let Some((_, list)) = LISTS.iter().find(|(list, _)| *list == key.list) {
            kept.entry(*list).or_default().insert(key.execution.clone(), value.clone());
        }
    }
    kept
}
