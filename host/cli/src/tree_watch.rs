//! The trees of a namespace as they change, by watches.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use futures::{
    FutureExt as _, StreamExt as _,
    stream::{self, BoxStream},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    core::NamespaceResourceScope,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use orangery_api::{GROUP, deploy_item::DeployItem, execution::Execution, installation::Installation};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde::de::DeserializeOwned;

use crate::{
    call::{CallError, CallSubject},
    tree::Objects,
    watched::refusal,
};

/// What a watch tells.
enum TreeChange {
    Installation(Box<Event<Installation>>),
    Execution(Box<Event<Execution>>),
    DeployItem(Box<Event<DeployItem>>),
}

/// The objects of one kind.
struct WatchedKind<K> {
    objects: BTreeMap<String, Arc<K>>,
    /// Those of a list that is being read.
    listed: BTreeMap<String, Arc<K>>,
    is_listed: bool,
}

impl<K: Resource> WatchedKind<K> {
    const fn new() -> Self {
        Self { objects: BTreeMap::new(), listed: BTreeMap::new(), is_listed: false }
    }

    fn take(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(object.name_any(), Arc::new(object));
            }
            Event::InitDone => {
                self.objects = std::mem::take(&mut self.listed);
                self.is_listed = true;
            }
            Event::Apply(object) => {
                self.objects.insert(object.name_any(), Arc::new(object));
            }
            Event::Delete(object) => {
                self.objects.remove(&object.name_any());
            }
        }
    }

    fn all(&self) -> Vec<Arc<K>> {
        self.objects.values().cloned().collect()
    }
}

/// Installations, Executions and DeployItems of a namespace.
pub(crate) struct TreeWatch {
    changes: BoxStream<'static, Result<TreeChange, Option<CallError>>>,
    installations: WatchedKind<Installation>,
    executions: WatchedKind<Execution>,
    deploy_items: WatchedKind<DeployItem>,
}

impl TreeWatch {
    /// Nothing is known yet.
    pub(crate) fn of(client: &Client, namespace: &Namespace) -> Self {
        let changes = [
            changes::<Installation>(client, namespace)
                .map(|event| event.map(Box::new).map(TreeChange::Installation))
                .boxed(),
            changes::<Execution>(client, namespace).map(|event| event.map(Box::new).map(TreeChange::Execution)).boxed(),
            changes::<DeployItem>(client, namespace)
                .map(|event| event.map(Box::new).map(TreeChange::DeployItem))
                .boxed(),
        ];
        Self {
            changes: stream::select_all(changes).boxed(),
            installations: WatchedKind::new(),
            executions: WatchedKind::new(),
            deploy_items: WatchedKind::new(),
        }
    }

    /// Waits until something is told that was not known, and takes in all that is told already. A server that does not answer for a while
    /// is asked again.
    ///
    /// # Errors
    /// The server refuses.
    pub(crate) async fn changed(&mut self) -> Result<(), CallError> {
        let mut change = self.changes.next().await;
        loop {
            match change {
                Some(Ok(change)) => self.take(change),
                Some(Err(Some(refused))) if !refused.may_pass() => return Err(refused),
                Some(Err(_)) => {}
                None => return Err(CallError::Unreachable { cause: "the watch ended".to_owned() }),
            }
            match self.changes.next().now_or_never() {
                Some(next) => change = next,
                None if self.is_complete() => return Ok(()),
                None => change = self.changes.next().await,
            }
        }
    }

    /// All of them.
    pub(crate) fn objects(&self) -> Objects {
        Objects {
            installations: self.installations.all(),
            executions: self.executions.all(),
            deploy_items: self.deploy_items.all(),
        }
    }

    fn is_complete(&self) -> bool {
        self.installations.is_listed && self.executions.is_listed && self.deploy_items.is_listed
    }

    fn take(&mut self, change: TreeChange) {
        match change {
            TreeChange::Installation(event) => self.installations.take(*event),
            TreeChange::Execution(event) => self.executions.take(*event),
            TreeChange::DeployItem(event) => self.deploy_items.take(*event),
        }
    }
}

fn changes<K>(
    client: &Client,
    namespace: &Namespace,
) -> impl futures::Stream<Item = Result<Event<K>, Option<CallError>>> + use<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let namespace = namespace.clone();
    let api: Api<K> = Api::namespaced(client.clone(), &namespace);
    watcher(api, watcher::Config::default()).default_backoff().map(move |event| {
        event.map_err(|error| {
            let kind = Kind::from(K::kind(&()).into_owned());
            refusal(CallSubject { kind: &kind, group: GROUP, namespace: &namespace, name: ObjectName::EMPTY }, error)
        })
    })
}
