//! How long one thing takes when nothing else happens.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use kube::{
    Api, ResourceExt as _,
    runtime::watcher::{self, Event},
};
use orangery_tests::{cluster::Cluster, objects::NAMESPACE};
use serde_json::{Value, json};

use crate::{
    figures::{Figures, Samples},
    load::{self, Installations, Run, Seen},
    place::Place,
};

const HELLOS: usize = 50;
const CHAIN: usize = 50;

/// From the request that creates an installation to the moment its success is seen.
pub(crate) async fn hello_world(place: &Place, figures: &mut Figures) {
    let binary = crate::binary();
    let mut add = |place: &str, samples: Samples| {
        figures.add(&format!("{place}: hello-world from apply to Succeeded"), &samples.text());
    };
    add(place.name(), hellos(&place.start(&binary).await, "hello", HELLOS).await);
    if matches!(place, Place::Embedded) {
        let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
        add("embedded server in memory", hellos(&cluster, "hello", HELLOS).await);
    }
}

/// So many installations with names that begin so, one after the other, and how long each took.
pub(crate) async fn hellos(cluster: &Cluster, run: &str, count: usize) -> Samples {
    let mut seen = Installations::watch(cluster.client()).await;
    let mut samples = Vec::new();
    for number in 0..=count {
        let name = format!("{run}{number}");
        let begin = Instant::now();
        Run::new(&name, 1).create(cluster.client()).await;
        seen.until_succeeded(&load::name(&name, 0)).await;
        samples.push(begin.elapsed());
    }
    // The first one waits for the components to be loaded.
    Samples::new(samples.split_off(1))
}

fn chain() -> Value {
    let items: Vec<Value> = (0..CHAIN).map(link).collect();
    let items = serde_json::to_string(&json!({"deployItems": items})).expect("items are JSON");
    let execution = json!({"name": "default", "type": "Jinja", "template": items});
    let blueprint = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Blueprint",
        "deployExecutions": [execution],
    });
    let blueprint = serde_json::to_string(&blueprint).expect("a blueprint is JSON");
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "chain", "annotations": {"landscaper.gardener.cloud/operation": "reconcile"}},
        "spec": {"blueprint": {"inline": {"filesystem": {"blueprint.yaml": blueprint}}}},
    })
}

fn link(number: usize) -> Value {
    let after: Vec<String> = number.checked_sub(1).map(|before| format!("link{before}")).into_iter().collect();
    let config =
        json!({"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration"});
    json!({"name": format!("link{number}"), "type": "landscaper.gardener.cloud/mock", "dependsOn": after, "config": config})
}

/// In a chain of items: from the sight of one item's end to the sight of the next one's start.
pub(crate) async fn wake_up(place: &Place, figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = place.start(&binary).await;
    let api: Api<Seen> = Api::namespaced_with(cluster.client().clone(), NAMESPACE, &load::resource("DeployItem"));
    let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
    let begin = Instant::now();
    cluster.apply(&chain()).await;
    let (mut started, mut ended) = (BTreeMap::new(), BTreeMap::new());
    while ended.len() < CHAIN {
        let event = events.next().await.expect("the watch goes on");
        let Ok(Event::Apply(seen) | Event::InitApply(seen)) = event else { continue };
        let now = Instant::now();
        let name = seen.labels().get("execution.landscaper.gardener.cloud/name").cloned().unwrap_or_default();
        let progress = seen.status.unwrap_or_default();
        if progress.job.is_some() {
            started.entry(name.clone()).or_insert(now);
        }
        if progress.job.is_some() && progress.succeeded() {
            ended.entry(name).or_insert(now);
        }
    }
    let whole = begin.elapsed();
    let between = (1..CHAIN).filter_map(|number| {
        let start: &Instant = started.get(&format!("link{number}"))?;
        Some(start.saturating_duration_since(*ended.get(&format!("link{}", number - 1))?))
    });
    let samples: Vec<Duration> = between.collect();
    let title = |what: &str| format!("{}: {what}", place.name());
    figures.add(&title("wake-up of the next item of a chain"), &Samples::new(samples).text());
    figures.add(&title(&format!("chain of {CHAIN} items, whole")), &crate::figures::display(whole));
}
