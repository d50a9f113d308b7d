//! The container deployer (`docs/containers.md`): each job runs the program of an image in a pod, which gets files, and may leave
//! exports and a state.
//!
//! The component decides and the host does: the objects of a run are writes of its proposals, the end of a pod is a readiness
//! rule that the host watches, and what the program leaves comes back as a Secret, which the container `wait` fills. A run is two
//! calls: [`run::begin`] proposes it, and [`run::go_on`] is called when its pod has ended, or cannot begin.

#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "generated: what the component exports")]
mod bindings;
mod configuration;
mod former;
mod inputs;
mod names;
mod objects;
mod outcome;
mod pod;
mod run;
mod state;

use orangery_sdk::{Deployer, DeployerWithUninstall, Fault, Host, Item, Problem, Proposal};
use serde_json::Value;

use crate::{configuration::ProviderConfiguration, run::Operation};

/// The component.
pub struct Container;

impl Deployer for Container {
    fn plan(item: Item, host: &impl Host) -> Result<Proposal, Fault> {
        run::plan(&item, Operation::Reconcile, host)
    }
}

impl DeployerWithUninstall for Container {
    fn uninstall(item: Item, host: &impl Host) -> Result<Proposal, Fault> {
        run::plan(&item, Operation::Delete, host)
    }

    fn schema() -> Value {
        configuration::schema()
    }

    fn check(config: &Value) -> Vec<Problem> {
        ProviderConfiguration::read(config).err().into_iter().collect()
    }
}

orangery_sdk::contract_level!();
