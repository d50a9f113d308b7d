//! A disk that takes no more while jobs are under way (C-108): what is refused is said, and once there is room all of them end.

use std::{fs, process::Command};

use orangery_tests::{
    cluster::Cluster,
    effects::{self, Effects},
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

/// Trees that are under way when the disk is full.
const UNDER_WAY: usize = 12;

/// What fills the disk, in bytes for each object.
const FILLER: usize = 200_000;

fn tree(number: usize) -> Value {
    let [first, second, third] = ["first", "second", "third"].map(|item| format!("{item}-{number}"));
    let items = [deploys(&first, &[], "1"), deploys(&second, &[&first], "1"), deploys(&third, &[&second], "1")];
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
    on_cluster(installation(&format!("tree-{number}"), &blueprint(fields)))
}

fn filler(number: usize) -> Value {
    let metadata = json!({"name": format!("filler-{number}")});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"x": "x".repeat(FILLER)}})
}

/// From now on no file of the process may become larger than this.
fn limit_files(process: u32, bytes: &str) {
    let limited = Command::new("prlimit").args([format!("--pid={process}"), format!("--fsize={bytes}:")]).status();
    assert!(limited.expect("prlimit can be run").success());
}

#[tokio::test]
async fn c_108_jobs_end_once_after_the_disk_below_the_server_was_full() {
    let prepared = crate::binary().await;
    // A file that may not grow is a write that fails, and not the end of the process.
    let binary = prepared.after("trap '' XFSZ");
    let cluster = Cluster::start(&binary, &["--data", "state"]).await;
    let effects = Effects::begin(cluster.client()).await;
    for number in 0..UNDER_WAY {
        cluster.apply(&tree(number)).await;
    }
    let file = binary.folder().join("state/objects.redb");
    let length = fs::metadata(&file).expect("the server has its objects there").len();
    limit_files(cluster.process(), &length.to_string());
    let mut number = 0;
    let refused = loop {
        match cluster.try_apply(&filler(number)).await {
            Ok(_) => number += 1,
            Err(refused) => break refused.to_string(),
        }
    };
    for words in [
        "the data folder cannot be written at the moment",
        "nothing was written; make room there, and the server goes on by itself",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    let succeeded = |root: &Value| root["status"]["phase"] == "Succeeded";
    let trees = cluster.list(&any("Installation", "")).await;
    assert!(!trees.iter().all(succeeded), "all of them had ended when the disk was full");
    limit_files(cluster.process(), "unlimited");
    for number in 0..UNDER_WAY {
        cluster.expect(&in_phase("Installation", &format!("tree-{number}"), "Succeeded")).await;
    }
    let done = effects::by_name(&effects.until_now(&cluster).await);
    assert_eq!(done.len(), 3 * UNDER_WAY, "{done:?}");
    for (name, contents) in done {
        assert_eq!(contents, [Some("1".to_owned())], "{name}");
    }
    for number in 0..UNDER_WAY {
        cluster.delete(&any("Installation", &format!("tree-{number}"))).await;
    }
    for kind in ["Installation", "Execution", "DeployItem"] {
        cluster.expect_absent(&json!({"apiVersion": orangery_tests::tree::API, "kind": kind})).await;
    }
}
