//! Trees of Installations, Executions and deploy items of an external deployer, which the tests play.

mod deletion;
mod dependencies;
mod encrypted;
mod follow_ups;
mod gate_expressions;
mod jobs;
mod on_change;
mod phases;
mod refusals;
mod secrets;
mod states;
mod targets;
