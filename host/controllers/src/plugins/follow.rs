//! Keeps what is installed current: watches of Plugins and of the ConfigMaps that they name, the deploy items of their types, and the
//! calls that all of that makes.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use orangery_api::plugin::{ConfigMapSource, Plugin};
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use super::{
    one::{CallOutcome, NextLook, PluginCallCause, PluginMemory, announce, not_loaded, reconcile},
    source::namespace_of,
};
use crate::controller_context::ControllerContext;

/// How long items may come and go before they are counted anew.
const SETTLING: Duration = Duration::from_secs(1);
/// The first pause after a failure, which doubles with each in a row, and the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

type MetaEvent = watcher::Result<Event<PartialObjectMeta<ConfigMap>>>;

/// Keeps the components of Plugins installed. Runs until it is dropped.
///
/// Errors are logged and backed off; what was known stays until a watch goes on.
pub async fn keep_plugins(host: Arc<ControllerContext>) {
    if host.plugins.installer().is_none() {
        host.served_types.mark_known();
        return;
    }
    let resource = ApiResource::erase::<Plugin>(&());
    let api: Api<DynamicObject> = Api::all_with(host.client.clone(), &resource);
    let mut plugins = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut config_maps: Option<BoxStream<'static, MetaEvent>> = None;
    let mut known = KnownPlugins::new(Arc::clone(&host));
    loop {
        known.call_woken();
        if config_maps.is_none() && known.names_config_maps() {
            let api: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(host.client.clone(), &namespace_of(&host));
            config_maps = Some(watcher(api, watcher::Config::default()).default_backoff().boxed());
        }
        let due = known.next_due();
        tokio::select! {
            Some(event) = plugins.next() => known.hear(event),
            event = next_of(config_maps.as_mut()) => known.hear_config_map(event),
            Some(ended) = known.calls.join_next() => known.end(ended),
            () = host.served_types.items.changed() => known.settle_items(),
            () = host.candidates.changed() => known.settle_items(),
            () = until(due) => known.pass_time(),
        }
    }
}

/// The next event of a stream that may not be there yet.
async fn next_of(stream: Option<&mut BoxStream<'static, MetaEvent>>) -> MetaEvent {
    match stream {
        Some(stream) => match stream.next().await {
            Some(event) => event,
            None => pending().await,
        },
        None => pending().await,
    }
}

/// Waits for a time, where there is one.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// A Plugin, and where it stands.
struct KnownPlugin {
    plugin: Arc<Plugin>,
    memory: PluginMemory,
    /// Whether a call is under way.
    is_called: bool,
    woken: Option<PluginCallCause>,
    due: Option<Instant>,
    failed: u32,
}

/// A call that has ended: of which Plugin, by its name and uid; nothing where it panicked.
type EndedPluginCall = (String, Option<String>, Option<CallOutcome>);

struct KnownPlugins {
    host: Arc<ControllerContext>,
    plugins: BTreeMap<String, KnownPlugin>,
    calls: JoinSet<EndedPluginCall>,
    /// Those of a list that is coming in.
    listed: BTreeSet<String>,
    /// The versions of the ConfigMaps in the namespace of the operator, by name.
    config_maps: BTreeMap<String, Option<String>>,
    items_due: Option<Instant>,
}

impl KnownPlugins {
    fn new(host: Arc<ControllerContext>) -> Self {
        let (plugins, calls, config_maps) = (BTreeMap::new(), JoinSet::new(), BTreeMap::new());
        Self { host, plugins, calls, listed: BTreeSet::new(), config_maps, items_due: None }
    }

    fn hear(&mut self, event: watcher::Result<Event<DynamicObject>>) {
        match event {
            Ok(Event::Init) => self.listed.clear(),
            Ok(Event::InitApply(object)) => {
                self.listed.insert(object.name_any());
                self.put(object);
            }
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<String> = self.plugins.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
                self.host.served_types.mark_known();
            }
            Ok(Event::Apply(object)) => self.put(object),
            Ok(Event::Delete(object)) => self.forget(&object.name_any()),
            Err(error) => {
                // Its definition, or the right to read it, is of a later version than the chart: there are none.
                if let watcher::Error::InitialListFailed(kube::Error::Api(status)) = &error
                    && matches!(status.code, 403 | 404)
                {
                    self.host.served_types.mark_known();
                }
                tracing::warn!(%error, "the watch of Plugins broke off and is taken up again");
            }
        }
    }

    /// A Plugin that is new or has changed. Its types are claimed at once, so that nobody takes its items for those of others.
    fn put(&mut self, object: DynamicObject) {
        let name = object.name_any();
        let plugin = match object.try_parse::<Plugin>() {
            Ok(plugin) => Arc::new(Plugin { spec: plugin.spec.with_promoted(), ..plugin }),
            Err(error) => {
                tracing::warn!(plugin = name, %error, "a Plugin cannot be read, and is left as it was known last");
                return;
            }
        };
        self.ask_for_recordings(&name, &plugin);
        match self.plugins.get_mut(&name) {
            Some(known) if known.plugin.metadata.uid == plugin.metadata.uid => {
                let is_asked = is_asked(&known.plugin, &plugin);
                known.plugin = plugin;
                if is_asked {
                    known.wake(PluginCallCause::Change);
                }
            }
            Some(_) | None => {
                announce(&self.host, &plugin, not_loaded(&name));
                let memory = PluginMemory::default();
                let woken = Some(PluginCallCause::Change);
                self.plugins
                    .insert(name, KnownPlugin { plugin, memory, is_called: false, woken, due: None, failed: 0 });
            }
        }
    }

    /// Whether its calls are recorded is no matter of its version: it counts at once, also while it is suspended (C-347).
    fn ask_for_recordings(&self, name: &str, plugin: &Plugin) {
        let one_in = plugin.spec.record.as_ref().map(|record| record.one_in);
        self.host.asked_recordings.of_plugin(name, one_in);
        if one_in.is_some() && self.host.recordings.is_none() {
            tracing::warn!(
                plugin = name,
                "spec.record asks for recordings, and this operator keeps none; name a folder with --record or --components-cache"
            );
        }
    }

    /// A Plugin that is gone: nobody is of its types any more, or nobody guards them.
    fn forget(&mut self, name: &str) {
        self.plugins.remove(name);
        self.host.asked_recordings.of_plugin(name, None);
        self.uninstall(name);
    }

    fn uninstall(&mut self, name: &str) {
        self.host.candidates.remove(name);
        let Some(installer) = self.host.plugins.installer() else { return };
        let types: BTreeSet<String> = installer.claimed(name).into_iter().map(|(claimed, _)| claimed).collect();
        installer.remove(name);
        if !types.is_empty() {
            self.host.served_types.tell(&types);
            self.wake_all(PluginCallCause::Items);
        }
    }

    fn hear_config_map(&mut self, event: MetaEvent) {
        let meta = match event {
            Ok(Event::InitApply(meta) | Event::Apply(meta)) => meta,
            Ok(Event::Delete(meta)) => {
                self.config_maps.remove(&meta.name_any());
                return;
            }
            Ok(Event::Init | Event::InitDone) => return,
            Err(error) => {
                tracing::warn!(%error, "the watch of the ConfigMaps of Plugins broke off and is taken up again");
                return;
            }
        };
        let (name, version) = (meta.name_any(), meta.resource_version());
        let before = self.config_maps.insert(name.clone(), version.clone());
        if before == Some(version) {
            return;
        }
        for known in self.plugins.values_mut() {
            if config_maps_of(&known.plugin).any(|map| map.name == name) {
                known.wake(PluginCallCause::Source);
            }
        }
    }

    fn names_config_maps(&self) -> bool {
        self.plugins.values().any(|known| config_maps_of(&known.plugin).next().is_some())
    }

    fn settle_items(&mut self) {
        self.items_due.get_or_insert_with(|| Instant::now() + SETTLING);
    }

    fn next_due(&self) -> Option<Instant> {
        let plugins = self.plugins.values().filter(|known| !known.is_called).filter_map(|known| known.due);
        plugins.chain(self.items_due).min()
    }

    fn pass_time(&mut self) {
        let now = Instant::now();
        if self.items_due.is_some_and(|due| due <= now) {
            self.items_due = None;
            let types = self.host.served_types.items.take_changed();
            let installer = self.host.plugins.installer();
            let claimed = |name: &str| installer.map_or_else(Vec::new, |installer| installer.claimed(name));
            let is_touched = |name: &str| claimed(name).iter().any(|(claimed, _)| types.contains(claimed));
            let touched = self.plugins.iter_mut().filter(|(name, _)| is_touched(name));
            touched.for_each(|(_, known)| known.wake(PluginCallCause::Items));
            let tried = self.host.candidates.take_changed();
            let tried = self.plugins.iter_mut().filter(|(name, _)| tried.contains(*name));
            tried.for_each(|(_, known)| known.wake(PluginCallCause::Items));
        }
        for known in self.plugins.values_mut() {
            if known.due.is_some_and(|due| due <= now) {
                known.due = None;
                known.wake(PluginCallCause::Source);
            }
        }
    }

    fn wake_all(&mut self, cause: PluginCallCause) {
        self.plugins.values_mut().for_each(|known| known.wake(cause));
    }

    /// Begins the calls of those that are woken, one at a time for each.
    fn call_woken(&mut self) {
        for (name, known) in &mut self.plugins {
            if known.is_called {
                continue;
            }
            let Some(cause) = known.woken.take() else { continue };
            known.is_called = true;
            let (host, plugin, memory) = (Arc::clone(&self.host), Arc::clone(&known.plugin), known.memory.clone());
            let name = name.clone();
            self.calls.spawn(async move {
                let called = AssertUnwindSafe(reconcile(&host, &plugin, memory, cause)).catch_unwind().await;
                (name, plugin.metadata.uid.clone(), called.ok())
            });
        }
    }

    fn end(&mut self, ended: Result<EndedPluginCall, JoinError>) {
        // A task that is cancelled belongs to a runtime that is shutting down; panics are caught within the task.
        let Ok((name, uid, outcome)) = ended else { return };
        let fraction = self.host.rng.fraction();
        let Some(known) = self.plugins.get_mut(&name) else { return self.uninstall(&name) };
        if known.plugin.metadata.uid != uid {
            // It may have put what the one before it had in its place.
            return known.wake(PluginCallCause::Source);
        }
        known.is_called = false;
        let Some(CallOutcome { memory, look, changed }) = outcome else {
            tracing::error!(plugin = name, "the call of a Plugin panicked and is made again");
            known.failed = known.failed.saturating_add(1);
            known.due = Some(Instant::now() + pause(known.failed, fraction));
            return;
        };
        known.memory = memory;
        match look {
            NextLook::AsBefore => {}
            NextLook::OnChange => (known.failed, known.due) = (0, None),
            NextLook::After(after) => (known.failed, known.due) = (0, Some(Instant::now() + after)),
            NextLook::Backoff => {
                known.failed = known.failed.saturating_add(1);
                known.due = Some(Instant::now() + pause(known.failed, fraction));
            }
        }
        if changed {
            // Another one may serve what this one did, or the other way round.
            self.plugins
                .iter_mut()
                .filter(|(other, _)| **other != name)
                .for_each(|(_, other)| other.wake(PluginCallCause::Items));
        }
    }
}

impl KnownPlugin {
    fn wake(&mut self, cause: PluginCallCause) {
        self.woken = self.woken.max(Some(cause));
    }
}

/// The ConfigMaps that a Plugin names, also for its candidate.
fn config_maps_of(plugin: &Plugin) -> impl Iterator<Item = &ConfigMapSource> {
    let candidate = plugin.spec.candidate.iter().map(|candidate| &candidate.source);
    candidate.chain([&plugin.spec.source]).filter_map(|source| source.config_map.as_ref())
}

/// Whether something is asked of a Plugin that was not asked before: its status is our own.
fn is_asked(before: &Plugin, after: &Plugin) -> bool {
    let (before, after) = (&before.metadata, &after.metadata);
    (before.generation, &before.deletion_timestamp, &before.finalizers)
        != (after.generation, &after.deletion_timestamp, &after.finalizers)
}

/// The pause after so many failures in a row: a random part of the upper half of it.
fn pause(failed: u32, fraction: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failed.saturating_sub(1))).min(LAST_PAUSE);
    doubled.mul_f64(0.5 + 0.5 * fraction.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_pause_grows_with_failures_in_a_row_up_to_a_minute() {
        let pauses = [1, 2, 3, 7, 40].map(|failed| (pause(failed, 0.0), pause(failed, 1.0)));
        let seconds = |low: f64, high: f64| (Duration::from_secs_f64(low), Duration::from_secs_f64(high));
        let expected =
            [seconds(0.5, 1.0), seconds(1.0, 2.0), seconds(2.0, 4.0), seconds(30.0, 60.0), seconds(30.0, 60.0)];
        assert_eq!(pauses, expected);
    }

    #[test]
    fn c_262_what_the_operator_writes_itself_asks_for_nothing() {
        let plugin = |meta: Value, status: Value| -> Plugin {
            let mut metadata = json!({"name": "mine", "generation": 1, "finalizers": ["f"]});
            if let (Some(metadata), Value::Object(meta)) = (metadata.as_object_mut(), meta) {
                metadata.extend(meta);
            }
            let spec = json!({"source": {"configMap": {"name": "m"}}});
            serde_json::from_value(json!({
                "apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": spec, "status": status,
            }))
            .unwrap()
        };
        let before = plugin(json!({}), json!({}));
        let asked = |meta: Value, status: Value| is_asked(&before, &plugin(meta, status));
        assert!(!asked(json!({"resourceVersion": "2", "labels": {"a": "b"}}), json!({"items": 7})));
        assert!(asked(json!({"generation": 2}), json!({})));
        assert!(asked(json!({"finalizers": []}), json!({})));
        assert!(asked(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({})));
    }
}
