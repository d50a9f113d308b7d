//! What plans, approvals and records cost.

use std::{fs, time::Instant};

use orangery_tests::{
    approver::Approver,
    binary::Binary,
    cluster::Cluster,
    objects::NAMESPACE,
    requests::Requests,
    tree::{blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster, subinstallation},
};
use serde_json::{Value, json};

use crate::{
    figures::{Figures, display},
    load::{Installations, Run},
    place::{self, Place},
    triples::{Moment, report},
};

/// A tree of so many sub-installations, each of so many items.
const BELOW: usize = 10;
const ITEMS: usize = 100;

/// How many jobs are kept on record.
const RECORDS: &str = "--job-records=5";

/// Plans of a large tree, and what approvals and records add to many triples.
pub(crate) async fn measure(size: usize, figures: &mut Figures) {
    of_a_tree(figures).await;
    let plain = created(&[], size, false, figures).await;
    let recorded = created(&[RECORDS], size, false, figures).await;
    let approved = created(&[], size, true, figures).await;
    for (what, cpu) in [("records", recorded), ("approvals", approved)] {
        figures.add(&format!("{size} triples: processor time with {what}"), &format!("× {:.3}", cpu / plain));
    }
}

fn tree(changed: usize) -> Value {
    let item = |below: usize, number: usize| {
        let content = if below == 0 && number < changed { "2" } else { "1" };
        deploys(&format!("item-{below}-{number}"), &[], content)
    };
    let below = (0..BELOW).map(|below| {
        let items: Vec<Value> = (0..ITEMS).map(|number| item(below, number)).collect();
        let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
        on_cluster(subinstallation(&format!("below-{below}"), &blueprint(fields)))
    });
    let fields = json!({"imports": imports_cluster(), "subinstallations": below.collect::<Vec<_>>()});
    on_cluster(installation("tree", &blueprint(fields)))
}

async fn of_a_tree(figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = Place::Embedded.start(&binary).await;
    let kubeconfig = binary.folder().join("plans.kubeconfig");
    fs::write(&kubeconfig, cluster.kubeconfig()).expect("a file in a temporary folder");
    cluster.apply(&tree(0)).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    for changed in [0, 10] {
        fs::write(binary.folder().join("tree.json"), tree(changed).to_string()).expect("a file in a temporary folder");
        let before = Requests::counted(cluster.client()).await;
        let begin = Instant::now();
        let ended = plan(&binary, &kubeconfig.to_string_lossy()).await;
        let taken = begin.elapsed();
        let requests = Requests::counted(cluster.client()).await - before;
        let summary = ended.lines().last().unwrap_or_default().to_owned();
        let text = format!("{}, {} reads and {} tries; {summary}", display(taken), requests.reads(), requests.writes());
        figures.add(&format!("plan of a tree of {} items, {changed} of them changed", BELOW * ITEMS), &text);
    }
    cluster.kill().await;
}

async fn plan(binary: &Binary, kubeconfig: &str) -> String {
    let ended = binary.run(&["plan", "-f", "tree.json", "--brief", "-n", NAMESPACE, "--kubeconfig", kubeconfig]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

/// Creates triples, and answers the processor time.
async fn created(arguments: &[&str], size: usize, approvals: bool, figures: &mut Figures) -> f64 {
    let binary = crate::binary();
    let cluster = Cluster::start(&binary, &[&["--data", "state"], arguments].concat()).await;
    let client = cluster.client();
    let approver = approvals.then(|| Approver::begin(client));
    if approvals {
        let spec = json!({"profile": "compatible", "namespaces": {"names": [NAMESPACE]}, "approval": "Required"});
        let policy = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "team"}, "spec": spec});
        cluster.apply(&policy).await;
        let ready = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "team"},
            "status": {"observedGeneration": 1}});
        cluster.expect(&ready).await;
    }
    let mut seen = Installations::watch(client).await;
    let run = Run::new("triple", size);
    let before = Moment::now(&cluster).await;
    let used = before.cpu_seconds();
    tokio::join!(run.create(client), seen.until(size, |_, now| now.succeeded()));
    let what = if approvals { "approved by another process".to_owned() } else { arguments.join(" ") };
    report(&format!("{size} triples: create {what}"), size, before, &cluster, figures).await;
    let used = Moment::now(&cluster).await.cpu_seconds() - used;
    let histories = cluster.list(&json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "JobHistory"})).await;
    if let Some(records) = std::num::NonZero::new(histories.len()) {
        let bytes: usize = histories.iter().map(|history| history["spec"].to_string().len()).sum();
        figures.add(&format!("{size} triples: bytes of a record"), &format!("{}", bytes / records));
    }
    figures.add(&format!("{size} triples: create {what}: peak resident memory"), &place::peak(&cluster));
    drop(approver);
    cluster.kill().await;
    used
}
