//! The mock deployer (`docs/wire.md` §8.5): an item that deploys nothing and ends as its configuration says.
//!
//! It has no target and reads nothing. What it cannot do in the contract, as a proposal is no status:
//!
//! - `phase` (else `initialPhase`, else `Succeeded`) decides how the job goes on: `Succeeded` finishes, `Failed` fails,
//!   any other phase keeps the job running until it is interrupted or its timeout passes, which the original's mock has not.
//! - The phase shown while it runs is the host's `Progressing`, whatever unfinished phase the configuration names.
//! - Exports are collected when the job succeeds, and are an object; the original writes its export Secret in any case.

mod plan;

use orangery_sdk::{Deployer, Fault, Host, Item, Proposal};

/// The component.
pub struct Mock;

impl Deployer for Mock {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        Ok(plan::plan(&item.config()?)?)
    }
}

orangery_sdk::export_deployer!(Mock);
