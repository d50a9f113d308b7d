//! What Executions depend on.

use orangery_api::{
    data_object::DataObject, deploy_item::DeployItem, execution::Execution, installation::Installation, target::Target,
};
use orangery_reconcile::{FoundObjects, Key};

use crate::{
    dependency::{Dependency, Dependents, Edge, Watch, gone_records},
    guard::free_target,
    index::Index,
    policy::policy_of_root,
    stores::Stores,
    tree::MANAGED_BY,
};

/// Executions by the Targets that their gate expressions look at.
static GATE_TARGETS: Index<Execution> =
    Index { name: "target", values: |execution| execution.spec.gate_targets.clone() };

/// An Execution waits for its deploy items.
pub(crate) static DEPLOY_ITEMS: Dependency<Execution, DeployItem> = Dependency {
    what: "to finish, to be gone",
    through: "its label managed-by",
    dependents: Dependents::Named(&MANAGED_BY),
    watch: Watch::Wakes(|_| true),
};

/// An Execution without its Installation deletes itself.
static INSTALLATION: Dependency<Execution, Installation> = Dependency {
    what: "to be gone, which it follows",
    through: "its name, which is that of its Installation",
    dependents: Dependents::SameName,
    watch: Watch::Wakes(|change| change.after.is_none()),
};

static POLICY: Dependency<Execution, Installation> = policy_of_root();

/// Gate expressions look at the clusters behind Targets.
pub(super) static TARGETS: Dependency<Execution, Target> = Dependency {
    what: "to be gone, before its guard goes",
    through: "the Targets that its gate expressions look at",
    dependents: Dependents::Indexed(&GATE_TARGETS, |target| vec![Key::of(target).name.into()]),
    watch: Watch::Frees(free_target),
};

/// An Execution writes what its items have exported.
static EXPORTS: Dependency<Execution, DataObject> = gone_records();

/// All of them.
pub(crate) static EDGES: [&dyn Edge; 5] = [&DEPLOY_ITEMS, &INSTALLATION, &POLICY, &TARGETS, &EXPORTS];

/// The deploy items of an Execution, sorted by name.
pub(super) fn deploy_items(stores: &Stores, of: &Key) -> FoundObjects<DeployItem> {
    MANAGED_BY.find(&stores.deploy_items, &of.namespace, &of.name)
}
