//! What deploy items depend on.

use orangery_api::{
    context::{Context, DEFAULT_CONTEXT},
    deploy_item::DeployItem,
    execution::Execution,
    target::Target,
};
use orangery_core::step::Step;
use orangery_reconcile::Key;

use crate::{
    controller_context::ControllerContext,
    dependency::{Dependency, Dependents, Edge, Watch},
    guard::free_target,
    index::Index,
    removed,
    stores::{SecretMeta, StoredKind, Stores},
    tree::MANAGED_BY,
};

use super::status::large_state::inventory_secrets;

/// Deploy items by the Target that they have to reach as long as they are there. Of an item that goes without being
/// uninstalled when its Target is gone, deleting the Target is how a user says that the cluster is (ORC-39).
static TARGET_NAME: Index<DeployItem> = Index {
    name: "target",
    values: |item| {
        let needed = item.spec.target.iter().filter(|_| !removed::may_skip(item));
        needed.map(|target| target.name.to_string()).collect()
    },
};

/// Deploy items by their Context.
static CONTEXT_NAME: Index<DeployItem> = Index {
    name: "context",
    values: |item| {
        let context = &item.spec.context;
        vec![if context.is_empty() { DEFAULT_CONTEXT.to_owned() } else { context.clone() }]
    },
};

/// A deploy item is deployed to a Target.
static TARGET: Dependency<DeployItem, Target> = Dependency {
    what: "to be gone, before its guard goes",
    through: "the Target that it deploys to",
    dependents: Dependents::Indexed(&TARGET_NAME, |target| vec![Key::of(target).name.into()]),
    watch: Watch::Frees(free_target),
};

/// A deploy item reads artifacts with the credentials of its Context.
static CONTEXT: Dependency<DeployItem, Context> = Dependency {
    what: "to be gone, before its guard goes",
    through: "its Context",
    dependents: Dependents::Indexed(&CONTEXT_NAME, |context| vec![Key::of(context).name.into()]),
    watch: Watch::Frees(|_, queues, context| queues.wake(StoredKind::Context, context)),
};

/// Deploy items by the Secrets that hold their inventory (C-94).
static INVENTORY_SECRETS: Index<DeployItem> = Index { name: "inventory", values: inventory_secrets };

/// What a deploy item has deployed is forgotten without the Secrets that say it.
static INVENTORY: Dependency<DeployItem, SecretMeta> = Dependency {
    what: "to be gone, before its guard goes",
    through: "the Secrets that hold its inventory",
    dependents: Dependents::Indexed(&INVENTORY_SECRETS, |secret| vec![Key::of(secret).name.into()]),
    watch: Watch::Frees(|_, queues, secret| queues.wake(StoredKind::Secret, secret)),
};

/// A deploy item without its Execution deletes itself.
pub(super) static EXECUTION: Dependency<DeployItem, Execution> = Dependency {
    what: "to be gone, which it follows",
    through: "its label managed-by",
    dependents: Dependents::Reached(items_of),
    watch: Watch::Wakes(|change| change.after.is_none()),
};

fn items_of(stores: &Stores, execution: &Execution) -> Vec<Key> {
    let Key { namespace, name } = Key::of(execution);
    MANAGED_BY.keys(&stores.deploy_items, &namespace, &name)
}

/// All of them.
pub(crate) static EDGES: [&dyn Edge; 4] = [&TARGET, &CONTEXT, &INVENTORY, &EXECUTION];

/// Guards what a deploy item uses, before it uses it for the first time in a job.
pub(super) async fn guard(host: &ControllerContext, item: &DeployItem) -> Step<()> {
    CONTEXT.guard(host, item).await?;
    TARGET.guard(host, item).await
}
