//! Carrying proposals out against an API server: what is written, in which order, and that no crash changes the end.

#[cfg(test)]
#[path = "carry_out/crash.rs"]
mod crash;
#[cfg(test)]
#[path = "carry_out/definitions.rs"]
mod definitions;
#[cfg(test)]
#[path = "carry_out/deletion.rs"]
mod deletion;
#[cfg(test)]
#[path = "carry_out/drift.rs"]
mod drift;
#[cfg(test)]
#[path = "carry_out/dry_run.rs"]
mod dry_run;
#[cfg(test)]
#[path = "carry_out/gates.rs"]
mod gates;
#[cfg(test)]
#[path = "carry_out/identity.rs"]
mod identity;
#[cfg(test)]
#[path = "carry_out/ownership.rs"]
mod ownership;
#[cfg(test)]
#[path = "carry_out/pruning.rs"]
mod pruning;
#[cfg(test)]
#[path = "carry_out/resume.rs"]
mod resume;
#[cfg(test)]
#[path = "carry_out/world.rs"]
mod world;
#[cfg(test)]
#[path = "carry_out/writes.rs"]
mod writes;
