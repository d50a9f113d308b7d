//! Components that are installed while the host runs: what is done about one (C-260, C-262, C-264), and which of several serves a type
//! (C-261).

use std::cmp::Reverse;

use jiff::Timestamp;

/// What is known of a component that is installed, or is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginFacts {
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it has the finalizer.
    pub held: bool,
    /// Whether this operator guards anything.
    pub guards: bool,
    /// Whether there are items that it alone serves.
    pub in_use: bool,
    /// Whether its owner wants nothing to change.
    pub suspended: bool,
    /// Whether a version of it is in use in this process.
    pub loaded: bool,
    /// Whether its spec, or what its source has, may be something else than what was loaded or tried last.
    pub asked: bool,
    /// Whether its status names what was loaded for this spec.
    pub recorded: bool,
}

/// What is done about a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStep {
    /// Nothing.
    Rest,
    /// The finalizer is put on it, before the first item can be of its types.
    Guard,
    /// The finalizer is taken off it.
    LetGo,
    /// It is loaded: what its source has now.
    LoadNow,
    /// It is loaded: what its status names, whatever its source has now.
    LoadRecorded,
}

/// What is done next.
pub fn step(facts: PluginFacts) -> PluginStep {
    let PluginFacts { deleting, held, guards, in_use, suspended, loaded, asked, recorded } = facts;
    let load = if recorded { PluginStep::LoadRecorded } else { PluginStep::LoadNow };
    if deleting {
        return match (held, in_use && guards, loaded) {
            (false, ..) => PluginStep::Rest,
            (true, false, _) => PluginStep::LetGo,
            // Its items are deleted by the version that is known.
            (true, true, true) => PluginStep::Rest,
            (true, true, false) => load,
        };
    }
    if guards && !held {
        return PluginStep::Guard;
    }
    match (suspended, asked, loaded) {
        (true, _, false) if recorded => PluginStep::LoadRecorded,
        (true, ..) | (false, false, true) => PluginStep::Rest,
        (false, true, _) => PluginStep::LoadNow,
        (false, false, false) => load,
    }
}

/// Of several components that claim a type, the one with the least rank serves it, in the namespaces that it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimRank {
    deleting: bool,
    priority: Reverse<i32>,
    /// Nothing of those that are registered at the start.
    installed: Option<(Timestamp, String)>,
}

impl ClaimRank {
    /// Of one that is registered at the start: with the priority 0, and before those of the same priority.
    pub fn of_registration() -> Self {
        Self { deleting: false, priority: Reverse(0), installed: None }
    }

    /// Of one that is installed. One that is being deleted comes after all others, so that what another one serves does not hold it;
    /// of the same priority the older one comes first.
    pub fn of_installed(deleting: bool, priority: i32, created: Timestamp, name: &str) -> Self {
        Self { deleting, priority: Reverse(priority), installed: Some((created, name.to_owned())) }
    }
}

#[cfg(test)]
mod exhaustive;
