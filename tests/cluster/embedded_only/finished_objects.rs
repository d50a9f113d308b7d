//! What finished objects take of the memory of the operator and of the embedded server in one process (C-209).

use std::{env, path::Path, sync::Arc};

use futures::{StreamExt, stream};
use orangery_core::port::Clock as _;
use orangery_embedded::{Options, Storage};
use orangery_runtime::machine::SystemClock;
use orangery_tests::{
    cluster::Cluster,
    objects::Objects,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
    usage::peak_resident_mebibytes,
};
use serde_json::{Value, json};

/// Installations, each with its Execution and its deploy item, where `FINISHED` says no other number: 6,667 of them are 20,001
/// objects.
const TRIPLES: usize = 1_500;

/// The most that each object takes of the memory that is resident at the most, in KiB: the texts of the server and what the
/// operator knows of it, twice while it is listed.
const MOST_KIBIBYTES: f64 = 24.0;

/// The one that is copied. The names of the copies are as long.
const FIRST: &str = "triple-0000";

/// How many triples are made at once.
const AT_ONCE: usize = 8;

fn tree(name: &str) -> Value {
    let items = executions(&[deploys(name, &[], "1")]);
    on_cluster(installation(name, &blueprint(json!({"imports": imports_cluster(), "deployExecutions": items}))))
}

/// A copy of an object under another name, and of other owners.
fn copied(object: &Value, names: &[(String, String)]) -> Value {
    let text = names.iter().fold(object.to_string(), |text, (from, to)| text.replace(from, to));
    let mut copy: Value = serde_json::from_str(&text).expect("names are text of JSON");
    if let Some(metadata) = copy["metadata"].as_object_mut() {
        for given in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generateName"] {
            metadata.remove(given);
        }
    }
    copy
}

/// Writes a copy with its status, and answers its uid.
async fn write(objects: &Objects, copy: &Value) -> String {
    let made = objects.create(copy).await;
    objects.patch_status(copy, copy["status"].clone()).await;
    made["metadata"]["uid"].as_str().expect("the server gives it one").to_owned()
}

/// Makes copies of a finished triple beside it, while no operator works.
async fn multiply(folder: &Path, triple: [Value; 3], triples: usize) {
    let clock = Arc::new(|| SystemClock.now());
    let options = Options { storage: Storage::Folder(folder.to_owned()), address: ([127, 0, 0, 1], 0).into(), clock };
    let server = orangery_embedded::start(options).await.expect("the server starts");
    let objects = Objects::of(server.kubeconfig()).await;
    let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let one = async |number: usize| {
        let mut names = vec![(FIRST.to_owned(), format!("triple-{number:04}"))];
        for object in &triple {
            let uid = write(&objects, &copied(object, &names)).await;
            names.push((text(object, "uid"), uid));
        }
    };
    stream::iter(1..triples).map(one).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    drop(objects);
    server.stop().await;
}

/// The most memory that `up` has taken until another triple has succeeded, in MiB.
async fn peak_beside(start: impl AsyncFn() -> Cluster, another: &str) -> f64 {
    let cluster = start().await;
    cluster.apply(&tree(another)).await;
    cluster.expect(&in_phase("Installation", another, "Succeeded")).await;
    let peak = peak_resident_mebibytes(cluster.process()).expect("a process has memory");
    cluster.kill().await;
    peak
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_209_finished_objects_take_their_share_of_memory() {
    let triples = env::var("FINISHED").map_or(TRIPLES, |number| number.parse().expect("FINISHED is a number"));
    let binary = crate::binary().await;
    let start = async || Cluster::start(&binary, &["--data", "state"]).await;
    let cluster = start().await;
    cluster.apply(&tree(FIRST)).await;
    cluster.expect(&in_phase("Installation", FIRST, "Succeeded")).await;
    let mut triple = Vec::new();
    for kind in ["Installation", "Execution", "DeployItem"] {
        triple.extend(cluster.list(&any(kind, "")).await);
    }
    cluster.kill().await;
    let alone = peak_beside(start, "second").await;
    multiply(&binary.folder().join("state"), triple.try_into().expect("one of each kind"), triples).await;
    let peak = peak_beside(start, "third").await;
    let each = (peak - alone) * 1024.0 / f64::from(u32::try_from(3 * triples).expect("a small number"));
    println!("{alone:.0} MiB alone, {peak:.0} MiB beside {} finished objects, {each:.1} KiB each", 3 * triples);
    assert!(
        each <= MOST_KIBIBYTES,
        "each finished object takes {each:.1} KiB: {alone:.0} MiB alone, {peak:.0} MiB beside them"
    );
}
