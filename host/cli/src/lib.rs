//! The commands of the binary, one file each, and what `up` shares with them.
//!
//! [`Cli`] is the command line. `up`, `run`, `plan`, `rollback`, `explain` and `drift` are described here and carried out by `runtime`, which this crate does not
//! know; every other command ([`Tool`]) is carried out here. What the commands need of each other stands beside them:
//! [`tree`] draws installations, [`folder`] reads manifests, [`apply`] sends them to a cluster, [`connection`] finds the
//! cluster, [`repositories`] has the component versions, [`authoring`] tests components, `blueprint_cases` blueprints, [`terminal`] writes. Nothing here decides what a room of the host decides.

pub mod arguments;
pub mod command;
pub mod command_error;
mod completions;

pub mod apply;
pub mod authoring;
mod blueprint_cases;
pub mod blueprints;
pub mod cache;
pub mod call;
pub mod chart_marks;
pub mod components;
pub mod connection;
mod costs;
pub mod crds;
pub mod default_policy;
pub mod definitions;
pub mod exit;
pub mod file_events;
pub mod folder;
pub mod form;
pub mod invocation;
pub mod job_wait;
mod listed;
pub mod narrowed_chart;
pub mod offline;
mod operator_metrics;
mod operators;
mod packed_chart;
pub mod record_flags;
pub mod records;
pub mod registries;
pub mod repositories;
pub mod restoration;
mod samples;
mod support;
mod table;
mod template_marks;
pub mod template_trace;
pub mod terminal;
mod timeline;
pub mod timeout;
pub mod tree;
mod tree_watch;
mod watched;
pub mod wrapped_engines;

pub use crate::{
    arguments::{Cli, Command},
    command::{
        Tool,
        drift::DriftArguments,
        explain::ExplainArguments,
        logging::{LogFormat, Logging},
        plan::PlanArguments,
        rollback::RollbackArguments,
        run::{AllowedAccounts, MetricsAuthentication, RunArguments},
        up::Up,
    },
    exit::Exit,
    terminal::{Colouring, Terminal},
};
