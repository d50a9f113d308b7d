//! What large items and finished releases take of memory and of the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    core::PartialObjectMeta,
    runtime::watcher::{self, Event},
};
use orangery_proposal::overlay::overlay;
use orangery_tests::{
    chart,
    cluster::Cluster,
    dice::Dice,
    objects::NAMESPACE,
    tree::{any, becomes_ready, blueprint, executions, imports_cluster, installation, on_cluster},
    usage::{forget_peak, peak_resident_mebibytes},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    figures::{Figures, display},
    load::{Seen, resource},
    place::Place,
};

/// ConfigMaps of an item of one MB, and how long what each holds is.
const OF_A_LARGE_ITEM: usize = 100;
const CONTENT: usize = 10_000;

/// What a release writes beside what its chart has: the Secret of its revision, while that is deployed and afterwards.
const OF_A_REVISION: usize = 2;

/// How long a run may be without news.
const DEADLINE: Duration = Duration::from_secs(600);

/// What finished releases take of the store, and what many objects take of it and of memory.
pub(crate) async fn measure(place: &Place, figures: &mut Figures) {
    finished_release(place, figures).await;
    for objects in [2_000, 20_000] {
        many_objects(place, objects, figures).await;
    }
}

/// The bytes of all objects of some kinds, by kind; Helm's own Secrets apart.
async fn stored(cluster: &Cluster) -> BTreeMap<String, (usize, usize)> {
    let core = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": ""}});
    let kinds = ["Installation", "Execution", "DeployItem", "DataObject"].map(|kind| any(kind, ""));
    let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for kind in kinds.into_iter().chain([core("Secret"), core("Event")]) {
        for object in cluster.list(&kind).await {
            let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_of_helm = text("/type") == "helm.sh/release.v1";
            let kind = if is_of_helm { "Helm's own Secret".to_owned() } else { text("/kind") };
            let bytes = object.to_string().len();
            let entry = found.entry(kind).or_default();
            *entry = (entry.0 + bytes, entry.1.max(bytes));
        }
    }
    found
}

/// What was stored meanwhile, by kind.
fn since(before: &BTreeMap<String, (usize, usize)>, now: &BTreeMap<String, (usize, usize)>) -> String {
    let rows = now.iter().filter_map(|(kind, (bytes, most))| {
        let more = bytes.saturating_sub(before.get(kind).map_or(0, |(bytes, _)| *bytes));
        (more > 0).then(|| format!("{kind} {more} B (largest {most})"))
    });
    rows.collect::<Vec<_>>().join(", ")
}

/// The bytes that are stored for one finished Helm release of twenty objects.
async fn finished_release(place: &Place, figures: &mut Figures) {
    let cluster = place.start(&crate::binary()).await;
    let packed = chart::packed("1.0.0", &[("maps.yaml", &maps(20))]);
    let before = stored(&cluster).await;
    chart::deploy_well(&cluster, &chart::item(&packed, &json!({}))).await;
    let now = stored(&cluster).await;
    let figure = format!("chart {} B in base64; {}", packed.len(), since(&before, &now));
    figures.add(&format!("{}: stored for a finished Helm release of 20 ConfigMaps", place.name()), &figure);
    cluster.kill().await;
}

/// A template of so many ConfigMaps.
fn maps(count: usize) -> String {
    format!(
        "{{{{ range $i := until {count} }}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {{{{ printf \
         \"m%05d\" $i }}}}}}\ndata: {{content: {{{{ $i | quote }}}}}}\n{{{{ end }}}}\n"
    )
}

/// So many items of one MB each, whose objects were written and are not ready: their proposals are under way.
pub(crate) async fn proposals_under_way(place: &Place, count: usize, figures: &mut Figures) {
    let cluster = place.start(&crate::binary()).await;
    let before = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
    forget_peak(cluster.process());
    let begin = Instant::now();
    let mut dice = Dice::of(1);
    for number in 0..count {
        let name = format!("large{number:04}");
        let item = large(&name, &mut dice);
        let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
        cluster.apply(&on_cluster(installation(&name, &blueprint(fields)))).await;
    }
    config_maps(&cluster, count * OF_A_LARGE_ITEM).await;
    let took = begin.elapsed();
    let peak = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
    let figure = format!("{}; resident {before:.0} -> peak {peak:.0} MiB", display(took));
    figures.add(&format!("{}: {count} items of 1 MB that wait for readiness", place.name()), &figure);
    cluster.kill().await;
}

/// Waits until there are so many ConfigMaps of large items, of which nothing but their names is kept.
async fn config_maps(cluster: &Cluster, count: usize) {
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(cluster.client().clone(), NAMESPACE);
    let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
    let mut names = BTreeSet::new();
    while names.len() < count {
        let event = timeout(DEADLINE, events.next()).await.expect("the run ends in time").expect("the watch goes on");
        // After an error the watcher lists anew by itself.
        if let Ok(Event::Apply(map) | Event::InitApply(map)) = event
            && map.name_any().starts_with("large")
        {
            names.insert(map.name_any());
        }
    }
}

/// An item of one MB that does not compress, and whose objects have to become ready.
fn large(name: &str, dice: &mut Dice) -> Value {
    let mut item = becomes_ready(name, &[]);
    let manifests: Vec<Value> = (0..OF_A_LARGE_ITEM)
        .map(|number| {
            let name = if number == 0 { name.to_owned() } else { format!("{name}-{number}") };
            let metadata = json!({"name": name, "namespace": NAMESPACE});
            let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": noise(dice)}});
            json!({"policy": "manage", "manifest": manifest})
        })
        .collect();
    overlay(&mut item, &json!({"timeout": "1h", "config": {"manifests": manifests}}));
    item
}

fn noise(dice: &mut Dice) -> String {
    (0..CONTENT).map(|_| char::from(b'a' + u8::try_from(dice.below(26)).unwrap_or_default())).collect()
}

/// One job of one item with so many objects: 20,000 are the most that are carried out.
async fn many_objects(place: &Place, count: usize, figures: &mut Figures) {
    let cluster = place.start(&crate::binary()).await;
    let packed = chart::packed("1.0.0", &[("maps.yaml", &maps(count - OF_A_REVISION))]);
    let before = stored(&cluster).await;
    forget_peak(cluster.process());
    let begin = Instant::now();
    chart::deploy(&cluster, &chart::item(&packed, &json!({}))).await;
    item_ended(&cluster).await;
    let item = cluster.list(&any("DeployItem", "")).await.into_iter().next().unwrap_or_default();
    let took = begin.elapsed();
    let peak = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
    let how = item.pointer("/status/phase").cloned().unwrap_or_default();
    let why = item.pointer("/status/lastError/message").cloned().unwrap_or_default();
    let now = stored(&cluster).await;
    let figure = format!("{how} {why} after {}; peak {peak:.0} MiB; {}", display(took), since(&before, &now));
    figures.add(&format!("{}: a Helm release of {count} objects", place.name()), &figure);
    cluster.kill().await;
}

/// Waits until the one item has ended its job.
async fn item_ended(cluster: &Cluster) {
    let api: Api<Seen> = Api::namespaced_with(cluster.client().clone(), NAMESPACE, &resource("DeployItem"));
    let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
    loop {
        let event = timeout(DEADLINE, events.next()).await.expect("the run ends in time").expect("the watch goes on");
        let Ok(Event::Apply(item) | Event::InitApply(item)) = event else { continue };
        if matches!(item.status.unwrap_or_default().phase.as_deref(), Some("Failed" | "Succeeded")) {
            return;
        }
    }
}
