//! The manifest deployer (`docs/wire.md` §8.1, §8.3 and §9): writes the objects of its configuration to the cluster of
//! the item's target, waits until they are ready, exports values of them.
//!
//! It reads nothing: what a write does to an object that exists already, who owns it, and when it is ready is for the host
//! to carry out. A missing target is the host's to tell. Timeouts are the item's alone, as in the original.

mod deletion;
mod exports;
mod manifests;
mod objects;
mod plan;
mod readiness;

use orangery_sdk::{Deployer, Fault, Host, Item, Proposal};

/// The component.
pub struct Manifest;

impl Deployer for Manifest {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        Ok(plan::plan(&item.config()?)?)
    }
}

orangery_sdk::export_deployer!(Manifest);
