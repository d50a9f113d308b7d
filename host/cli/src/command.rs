//! The commands, one file each. `up`, `run` and `plan` are described here and carried out by `runtime`, which alone may wire
//! everything.

pub mod blueprint;
pub mod completion;
pub mod crd;
pub mod inspect;
pub mod interrupt;
pub mod logging;
pub mod plan;
pub mod plugin;
pub mod reconcile;
pub mod release_tests;
pub mod render;
pub mod run;
#[cfg(test)]
mod tests;
pub mod up;
pub mod why;
pub mod wit;
