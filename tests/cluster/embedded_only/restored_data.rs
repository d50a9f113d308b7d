//! A data folder that is put back from a copy (C-91). On a real server that is a backup of etcd: `kube_only/lease.rs`.

use std::{fs, path::Path};

use orangery_tests::{
    cluster::{Cluster, own_target},
    effects::{self, Effects},
    objects::NAMESPACE,
    tree::{any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder can be made");
    let rights = fs::metadata(from).expect("the folder is there").permissions();
    fs::set_permissions(to, rights).expect("it can be closed to others");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("it can be read");
        let there = to.join(entry.file_name());
        if entry.file_type().expect("it has a type").is_dir() {
            copy(&entry.path(), &there);
        } else {
            fs::copy(entry.path(), there).expect("a file can be copied");
        }
    }
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
}

/// The job is that of the copy, and the cluster that it deploys to has gone on meanwhile.
#[tokio::test]
async fn c_91_a_job_of_a_copy_of_the_data_folder_ends_once_and_what_others_have_made_since_stays() {
    let binary = crate::binary().await;
    let elsewhere = Cluster::start(&crate::binary().await, &["--ephemeral"]).await;
    let [state, kept] = ["state", "copy"].map(|name| binary.folder().join(name));
    let start = async || Cluster::start(&binary, &["--data", "state"]).await;
    let cluster = start().await;
    let mut target = own_target(elsewhere.kubeconfig());
    target["metadata"]["name"] = json!("elsewhere");
    cluster.apply(&target).await;
    let items = executions(&[deploys("first", &[], "1"), becomes_ready("second", &["first"])]);
    let fields = json!({"imports": imports_cluster(), "deployExecutions": items});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["imports"]["targets"][0]["target"] = json!("elsewhere");
    cluster.apply(&root).await;
    let waits = |item: &Value| {
        let mut conditions = item["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["message"].to_string().contains("ConfigMap default/second"))
    };
    cluster.expect_that(&any("DeployItem", ""), "does not wait for the second ConfigMap", waits).await;
    let job = cluster.expect(&any("Installation", "root")).await["status"]["jobID"].clone();
    cluster.kill().await;
    copy(&state, &kept);

    let cluster = start().await;
    elsewhere.merge(&map("second", &json!({"ready": "yes"}))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.kill().await;
    let theirs = json!({"content": "theirs"});
    elsewhere.delete(&map("first", &json!({}))).await;
    for name in ["first", "third"] {
        elsewhere.apply(&map(name, &theirs)).await;
    }
    let effects = Effects::begin(elsewhere.client()).await;
    fs::remove_dir_all(&state).expect("the folder can be removed");
    copy(&kept, &state);

    let cluster = start().await;
    let done = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    assert_eq!((&done["status"]["jobID"], &done["status"]["jobIDFinished"]), (&job, &job), "{done:#}");
    assert_eq!(effects.until_now(&elsewhere).await, [], "all of it was there");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    let gone = effects::by_name(&effects.until_now(&elsewhere).await);
    assert_eq!(gone.into_iter().collect::<Vec<_>>(), [("second".to_owned(), vec![None])]);
    for name in ["first", "third"] {
        elsewhere.expect(&map(name, &theirs)).await;
    }
}
