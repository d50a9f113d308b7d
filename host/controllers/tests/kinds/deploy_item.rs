//! The life of a deploy item whose proposals stand in its configuration; the tests hand jobs to it, as an Execution does.

mod acting_account;
mod crashes;
mod deletions;
mod drift;
mod dry_runs;
mod ephemeral;
mod former_cluster;
mod guards;
mod hidden;
mod hostile;
pub(crate) mod items;
mod jobs;
mod limits;
mod moves;
mod stops;
mod terminating;
mod unknown_cluster;
mod whole;
