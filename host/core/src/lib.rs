//! Words, decisions and ports of Orangery.
//!
//! Nothing here reads a clock, a file, the environment or a cluster, takes a lock or is random: the same input gives
//! the same plan, the same digest and the same message. The rest of the host gathers what is needed, asks this crate
//! what to do, and does it.

pub mod automatic;
pub mod binding;
pub mod blueprint;
pub mod check;
pub mod component;
pub mod condition;
pub mod dag;
pub mod deployer;
pub mod digest;
pub mod duration;
pub mod error;
pub mod export;
pub mod gate;
pub mod grant;
pub mod health;
pub mod import;
pub mod inventory;
pub mod job;
pub mod jsonpath;
pub mod lenient;
pub mod name;
pub mod overlay;
pub mod phase;
pub mod plan;
pub mod plugins;
pub mod port;
pub mod proposal;
pub mod record;
pub mod renderer;
pub mod review;
pub mod schema;
pub mod sibling;
pub mod step;
pub mod template;
pub mod walk;
pub mod workflow;
pub mod yaml;
