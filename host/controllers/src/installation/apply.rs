//! What an Installation writes: its subobjects, its DataObjects and Targets, and the states of its templates.

pub(super) mod children;
pub(super) mod deletion;
pub(super) mod execution;
pub(super) mod records;
pub(super) mod requests;
pub(super) mod states;
pub(super) mod subinstallations;
