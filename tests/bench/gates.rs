//! Gate expressions of deploy items: what it costs to decide about them, how soon a change is heard, and how much is watched.

use std::time::Instant;

use futures::StreamExt as _;
use kube::{
    Api, ResourceExt as _,
    runtime::watcher::{self, Event},
};
use orangery_blueprint::gate::{self, Expression};
use orangery_core::{
    job::JobIds,
    phase::item::Item,
    plan::execution::{self as plan, ItemState, ObjectState},
    workflow::{Answers, WorkflowPolicy},
};
use orangery_tests::{
    cluster::Cluster,
    objects::NAMESPACE,
    requests::Requests,
    tree::{blueprint, executions, imports_cluster, in_phase, installation, mocks, on_cluster},
};
use serde_json::{Map, Value, json};

use crate::{
    figures::{Figures, Samples, display},
    load::{self, Seen},
    place::Place,
};

const ITEMS: usize = 1000;
const ROUNDS: usize = 50;
const KINDS: [(&str, &str, &str); 5] = [
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("landscaper.gardener.cloud/v1alpha1", "DataObject", "dataobjects"),
    ("landscaper.gardener.cloud/v1alpha1", "Context", "contexts"),
];

/// One decision about a thousand items, each with a `when` and a `readyWhen` of its own: both evaluated, then classified.
pub(crate) fn classify(figures: &mut Figures) {
    let compiled = |source: String| gate::compile(&source).expect("an expression");
    let names: Vec<String> = (0..ITEMS).map(|number| format!("item{number}")).collect();
    let wanted = |number: usize| compiled(format!("imports.size > {number} || 'item{number}' in imports.always"));
    let ready =
        |number: usize| compiled(format!("item.status.phase == 'Succeeded' && item.exports.number == {number}"));
    let begin = Instant::now();
    let conditions: Vec<[Expression; 2]> = (0..ITEMS).map(|number| [wanted(number), ready(number)]).collect();
    figures.add(&format!("compile {} expressions, once", 2 * ITEMS), &display(begin.elapsed()));
    let documents: Vec<Map<String, Value>> = (0..ITEMS).map(document).collect();
    let mut samples = Vec::new();
    for _ in 0..20 {
        let begin = Instant::now();
        let states: Vec<ItemState<'_>> = names
            .iter()
            .zip(&conditions)
            .zip(&documents)
            .map(|((name, [when, ready]), document)| ItemState {
                late: true,
                answers: Answers {
                    when: gate::evaluate(when, document).answer,
                    ready: gate::evaluate(ready, document).answer,
                    ..Answers::default()
                },
                ..ItemState::new(name, Vec::new(), Some(succeeded(name)))
            })
            .collect();
        let plan = plan::progressing(&states, &"job".into(), WorkflowPolicy::default());
        samples.push(begin.elapsed());
        assert!(plan.outcome.is_ok() && plan.trigger.is_empty(), "all are ready: {plan:?}");
    }
    figures.add(
        &format!("{ITEMS} items with two conditions each, evaluated and classified"),
        &Samples::new(samples).text(),
    );
}

fn document(number: usize) -> Map<String, Value> {
    let document = json!({
        "imports": {"size": ITEMS, "always": ["a", "b", "c"]},
        "items": {},
        "item": {"status": {"phase": "Succeeded"}, "exports": {"number": number}},
        "objects": {},
    });
    document.as_object().cloned().unwrap_or_default()
}

fn succeeded(name: &str) -> ObjectState {
    ObjectState {
        object_name: name.into(),
        ids: JobIds::new("job", "job"),
        phase: Some(Item::Succeeded),
        failure: None,
    }
}

fn conditional(name: &str, after: &[&str], ready: Value) -> Value {
    let mut item = mocks(name, after, "Succeeded", "x");
    if let Some(fields) = item.as_object_mut() {
        fields.insert("readyWhen".to_owned(), ready);
        fields.insert("target".to_owned(), json!({"import": "cluster"}));
    }
    item
}

async fn apply(cluster: &Cluster, name: &str, items: &[Value]) {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    cluster.apply(&on_cluster(installation(name, &blueprint(fields)))).await;
}

/// From the answer to a change of an object to the sight of what waited for it.
pub(crate) async fn wake_up(place: &Place, figures: &mut Figures) {
    let cluster = place.start(&crate::binary()).await;
    let metric = |round: usize| {
        let metadata = json!({"name": "metric", "namespace": NAMESPACE});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"round": round.to_string()}})
    };
    cluster.apply(&metric(0)).await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": "metric"});
    let names: Vec<String> = (0..=ROUNDS).map(|number| format!("link{number}")).collect();
    let link = |number: usize| {
        let before: Vec<&str> =
            number.checked_sub(1).and_then(|before| names.get(before)).map(String::as_str).into_iter().collect();
        let ready =
            json!({"expression": format!("int(objects.metric.data.round) > {number}"), "objects": {"metric": object}});
        conditional(&format!("link{number}"), &before, ready)
    };
    let items: Vec<Value> = (0..=ROUNDS).map(link).collect();
    let api: Api<Seen> = Api::namespaced_with(cluster.client().clone(), NAMESPACE, &load::resource("DeployItem"));
    let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
    apply(&cluster, "chain", &items).await;
    let mut samples = Vec::new();
    let mut begin: Option<Instant> = None;
    while samples.len() < ROUNDS {
        let event = events.next().await.expect("the watch goes on");
        let Ok(Event::Apply(seen) | Event::InitApply(seen)) = event else { continue };
        let name = seen.labels().get("execution.landscaper.gardener.cloud/name").cloned().unwrap_or_default();
        let round = samples.len();
        let progress = seen.status.unwrap_or_default();
        if name == format!("link{}", round + 1) && progress.job.is_some() {
            samples.extend(begin.take().map(|begin| begin.elapsed()));
        }
        let round = samples.len();
        if begin.is_none() && name == format!("link{round}") && progress.job.is_some() && progress.succeeded() {
            cluster.apply(&metric(round + 1)).await;
            begin = Some(Instant::now());
        }
    }
    let title = format!("{}: wake-up by a change of an object that a condition names", place.name());
    figures.add(&title, &Samples::new(samples).text());
}

/// What a thousand items that look at objects of five kinds have watched.
pub(crate) async fn watches(place: &Place, figures: &mut Figures) {
    let cluster = place.start(&crate::binary()).await;
    let item = |number: usize| {
        let (api_version, kind, _) = KINDS.get(number % KINDS.len()).copied().unwrap_or_default();
        let object =
            json!({"apiVersion": api_version, "kind": kind, "namespace": NAMESPACE, "name": format!("absent{number}")});
        conditional(&format!("item{number}"), &[], json!({"expression": "objects.o == null", "objects": {"o": object}}))
    };
    let items: Vec<Value> = (0..ITEMS).map(item).collect();
    let before = Requests::counted(cluster.client()).await;
    let begin = Instant::now();
    apply(&cluster, "many", &items).await;
    cluster.expect(&in_phase("Installation", "many", "Succeeded")).await;
    let took = begin.elapsed();
    let begun = Requests::counted(cluster.client()).await - before;
    let watches: u64 = KINDS.iter().map(|(_, _, plural)| begun.watches(plural)).sum();
    let title =
        format!("{}: watches for {ITEMS} items whose gate expressions look at {} kinds", place.name(), KINDS.len());
    figures.add(&title, &format!("{watches}, until Succeeded {}", display(took)));
}
