//! The life of a deploy item on an API server, with a component whose proposals stand in the item's configuration.

#[cfg(test)]
#[path = "deploy_item/jobs.rs"]
mod jobs;
#[cfg(test)]
#[path = "deploy_item/world.rs"]
mod world;
