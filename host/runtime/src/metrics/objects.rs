//! Objects by phase and by condition, as they are when somebody asks.

use std::collections::BTreeMap;

use orangery_api::condition::Condition;
use orangery_controllers::Stores;
use orangery_core::condition;

/// What stands for all values that the host does not write.
const OTHER: &str = "other";

/// The conditions that have a series of their own.
const SHOWN_CONDITIONS: [&str; 6] = {
    let [ready, reconciling, stalled, progressing] = condition::OWNED;
    [ready, reconciling, stalled, progressing, condition::DRIFTED, condition::OVERWRITE]
};

/// The phase of an object that has had no job.
const NONE: &str = "none";

/// The phases of all kinds (`docs/wire.md` §3.2).
const SHOWN_PHASES: [&str; 11] = [
    "Init",
    "CleanupOrphaned",
    "ObjectsCreated",
    "Progressing",
    "Completing",
    "Succeeded",
    "Failed",
    "InitDelete",
    "TriggerDelete",
    "Deleting",
    "DeleteFailed",
];

/// How many objects there are, by kind and phase, and by kind, condition and its status.
#[derive(Debug, Default)]
pub(super) struct ObjectCounts {
    pub(super) phases: BTreeMap<(&'static str, &'static str), u64>,
    pub(super) conditions: BTreeMap<(&'static str, &'static str, &'static str), u64>,
}

impl ObjectCounts {
    pub(super) fn of(stores: &Stores) -> Self {
        let mut counts = Self::default();
        stores.installations.for_each(|object| {
            let status = object.status.as_ref();
            counts.add("Installation", status.map(|status| (status.phase.as_str(), &status.conditions[..])));
        });
        stores.executions.for_each(|object| {
            let status = object.status.as_ref();
            counts.add("Execution", status.map(|status| (status.phase.as_str(), &status.conditions[..])));
        });
        stores.deploy_items.for_each(|object| {
            let status = object.status.as_ref();
            counts.add("DeployItem", status.map(|status| (status.phase.as_str(), &status.conditions[..])));
        });
        counts
    }

    /// Whoever may write a status may write any phase and any condition, and each would be a series of its own.
    fn add(&mut self, of: &'static str, status: Option<(&str, &[Condition])>) {
        let (phase, conditions) = status.unwrap_or_default();
        *self.phases.entry((of, known_phase(phase))).or_default() += 1;
        for Condition { type_, status, .. } in conditions {
            let known = SHOWN_CONDITIONS.iter().find(|shown| *shown == type_).copied();
            let status = ["True", "False", "Unknown"].into_iter().find(|known| known == status);
            *self.conditions.entry((of, known.unwrap_or(OTHER), status.unwrap_or(OTHER))).or_default() += 1;
        }
    }
}

/// The phase, as far as it is one that the host writes.
fn known_phase(phase: &str) -> &'static str {
    let known = SHOWN_PHASES.into_iter().find(|known| *known == phase);
    known.unwrap_or(if phase.is_empty() { NONE } else { OTHER })
}
