//! What `up` shows: the tree as it changes, and what became of it.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use kube::{ResourceExt, api::DynamicObject};
use orangery_api::{
    deploy_item::{DeployItem, DeployItemSpec},
    execution::Execution,
    installation::{Installation, InstallationSpec},
    marks::Operation,
};
use orangery_cli::{
    Exit, Terminal,
    tree::{NodeKind, NodeState, Objects, Tree, TreeNode, live::Live},
};
use orangery_controllers::Stores;
use orangery_core::name::Namespace;
use orangery_reconcile::{Store, Watched};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The least time between two drawings: faster than an eye follows only costs.
const PACE: Duration = Duration::from_millis(40);

/// A tree that is read in less than this may be read at every change.
const CHEAP: Duration = Duration::from_millis(1);

/// A larger one is read for one part in so many of the time: what is read is all that there is, whatever changes.
const SHARE: u32 = 10;

/// At the latest it is read after this long, so that the end of a very large one is noticed.
const AT_THE_LATEST: Duration = Duration::from_millis(500);

/// Which trees are shown and judged.
#[derive(Debug)]
pub(super) enum ViewScope {
    /// All that there are.
    All,
    /// Those of these objects: what else a data folder holds from earlier is neither shown nor judged.
    Applied(BTreeSet<(NodeKind, Namespace, String)>),
}

impl ViewScope {
    /// The trees of what was applied.
    pub(super) fn of(applied: &[DynamicObject]) -> Self {
        let roots = applied.iter().filter_map(|object| {
            let kind = match object.types.as_ref()?.kind.as_str() {
                "Installation" => NodeKind::Installation,
                "Execution" => NodeKind::Execution,
                "DeployItem" => NodeKind::DeployItem,
                _ => return None,
            };
            Some((kind, object.namespace().unwrap_or_default().into(), object.name_any()))
        });
        ViewScope::Applied(roots.collect())
    }

    fn has(&self, root: &TreeNode) -> bool {
        match self {
            ViewScope::All => true,
            ViewScope::Applied(roots) => roots.contains(&(root.kind, root.namespace.clone(), root.name.to_string())),
        }
    }
}

/// A drawing that follows the stores.
pub(super) struct LiveView {
    stores: Stores,
    scope: ViewScope,
    live: Live,
    changed: Arc<Notify>,
    began: Instant,
    tree: Tree,
}

impl LiveView {
    pub(super) fn new(stores: Stores, scope: ViewScope, home: &Namespace) -> Self {
        let changed = Arc::new(Notify::new());
        ring_on_change(&stores.installations, &changed);
        ring_on_change(&stores.executions, &changed);
        ring_on_change(&stores.deploy_items, &changed);
        Self { stores, scope, live: Live::new(home), changed, began: Instant::now(), tree: Tree::default() }
    }

    /// Draws what changes until nothing goes on any more, at a pace that leaves the processors to the work itself: the
    /// end is noticed at once, what lies between is drawn now and then.
    pub(super) async fn until_final(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let mut next_drawing = Instant::now();
        loop {
            let began = Instant::now();
            self.tree = self.read();
            let at = self.began.elapsed();
            if self.tree.is_final() {
                self.live.finish(terminal, self.tree.clone(), at)?;
                self.live.leave();
                return Ok(());
            }
            let is_drawn = next_drawing <= began;
            if is_drawn {
                self.live.show(terminal, self.tree.clone(), at)?;
                next_drawing = began + PACE;
            }
            let cost = began.elapsed();
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(next_drawing), if !is_drawn => {}
            }
            leave_to_others(began, cost).await;
        }
    }

    /// Waits until there is something new to draw.
    pub(super) async fn changed(&self) {
        loop {
            self.changed.notified().await;
            let began = Instant::now();
            if self.read() != self.tree {
                return;
            }
            leave_to_others(began, began.elapsed()).await;
        }
    }

    /// Whether there is a tree at all.
    pub(super) fn shows_anything(&self) -> bool {
        !self.tree.roots.is_empty()
    }

    /// Tells what failed, what was never started and what deploys nothing, on stderr. [`Exit::Ok`] where all has succeeded.
    pub(super) fn tell_outcome(&self, terminal: &mut Terminal) -> Exit {
        let mut exit = Exit::Ok;
        for cause in self.tree.causes() {
            terminal.error(cause.text());
            exit = Exit::Failed;
        }
        for root in self.tree.roots.iter().filter(|root| root.standing == NodeState::Idle) {
            terminal.error(not_started(root));
            exit = Exit::Failed;
        }
        for root in self.tree.roots.iter().filter(|root| deploys_nothing(root)) {
            terminal.warning(format_args!(
                "Installation {}/{} deploys nothing: its blueprint has no deployExecutions and no subinstallations that \
                 give anything; correct blueprint.yaml if that is not what was meant",
                root.namespace, root.name
            ));
        }
        if self.tree.has_failed() { Exit::Failed } else { exit }
    }

    fn read(&self) -> Tree {
        let mut objects = Objects::default();
        self.stores.installations.for_each(|one| objects.installations.push(Arc::new(shown_installation(one))));
        self.stores.executions.for_each(|one| objects.executions.push(Arc::new(shown_execution(one))));
        self.stores.deploy_items.for_each(|one| objects.deploy_items.push(Arc::new(shown_item(one))));
        let mut tree = Tree::of(&objects);
        tree.roots.retain(|root| self.scope.has(root));
        tree
    }
}

/// Leaves the processors to the work itself for a while after a large tree was read.
async fn leave_to_others(began: Instant, cost: Duration) {
    if cost >= CHEAP {
        sleep_until(began + (cost * SHARE).min(AT_THE_LATEST.max(cost * 2))).await;
    }
}

/// What is shown of an Installation. What it deploys may be long, and would be in memory of all at once (C-99).
fn shown_installation(one: &Installation) -> Installation {
    let Installation { metadata, spec: _, status } = one;
    Installation { metadata: metadata.clone(), spec: InstallationSpec::default(), status: status.clone() }
}

/// The same of an Execution.
fn shown_execution(one: &Execution) -> Execution {
    let Execution { metadata, spec, status } = one;
    Execution { metadata: metadata.clone(), spec: spec.outline(), status: status.clone() }
}

/// The same of a deploy item.
fn shown_item(one: &DeployItem) -> DeployItem {
    let DeployItem { metadata, spec, status } = one;
    let spec = DeployItemSpec { type_: spec.type_.clone(), target: spec.target.clone(), ..DeployItemSpec::default() };
    let mut status = status.clone();
    if let Some(status) = &mut status {
        // Its inventory, and what the host keeps.
        status.provider_status = None;
    }
    DeployItem { metadata: metadata.clone(), spec, status }
}

fn deploys_nothing(root: &TreeNode) -> bool {
    root.kind == NodeKind::Installation && root.standing == NodeState::Succeeded && root.children.is_empty()
}

fn not_started(root: &TreeNode) -> String {
    let (kind, namespace, name) = (root.kind.as_str(), &root.namespace, &root.name);
    let (operation, command) = match root.kind {
        NodeKind::DeployItem => (Operation::TestReconcile, String::new()),
        _ => (Operation::Reconcile, format!(", or run orangery reconcile {name} -n {namespace}")),
    };
    format!(
        "{kind} {namespace}/{name} was not started, because nothing triggers it; add the annotation \
         landscaper.gardener.cloud/operation: {operation} to its manifest{command}"
    )
}

fn ring_on_change<K: Watched>(store: &Store<K>, bell: &Arc<Notify>) {
    let bell = Arc::clone(bell);
    store.subscribe(move |_| bell.notify_one());
}

#[cfg(test)]
mod tests;
