//! The life of a deploy item on an API server, with a component whose proposals stand in the item's configuration.

#[cfg(test)]
#[path = "deploy_item/deletions.rs"]
mod deletions;
#[cfg(test)]
#[path = "deploy_item/dry_runs.rs"]
mod dry_runs;
#[cfg(test)]
#[path = "deploy_item/jobs.rs"]
mod jobs;
#[cfg(test)]
#[path = "deploy_item/limits.rs"]
mod limits;
#[cfg(test)]
#[path = "deploy_item/stops.rs"]
mod stops;
#[cfg(test)]
#[path = "deploy_item/world.rs"]
mod world;
