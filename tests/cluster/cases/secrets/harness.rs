//! The search at the end of each case finds what it is for (C-82).

use std::{fs, io::Write as _};

use orangery_tests::tree::API;
use serde_json::json;

use super::{CANARY, secret};

#[tokio::test]
#[should_panic(expected = "DataObject open shows a value of a Secret")]
async fn c_82_a_case_fails_in_which_an_object_shows_a_value() {
    let cluster = crate::cluster().await;
    cluster.apply(&secret()).await;
    let metadata = json!({"name": "open", "labels": {"orangery.dev/secret-data": "whole"}});
    let mut object = json!({"apiVersion": API, "kind": "DataObject", "metadata": metadata, "data": {"of": [CANARY]}});
    cluster.apply(&object).await;
    object["metadata"]["labels"] = json!({});
    cluster.apply(&object).await;
}

#[tokio::test]
#[should_panic(expected = "the command inspect shows a value of a Secret")]
async fn c_82_a_case_fails_in_which_a_command_shows_a_value() {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, &[]).await;
    cluster.apply(&secret()).await;
    let kubeconfig = binary.folder().join("kubeconfig-of-the-test");
    fs::write(&kubeconfig, cluster.kubeconfig()).expect("the file can be written");
    let ended = binary.run(&["inspect", CANARY, "--kubeconfig", &kubeconfig.to_string_lossy()]).await;
    assert!(ended.stderr.contains(CANARY), "{ended:?}");
}

#[tokio::test]
#[should_panic(expected = "the log shows a value of a Secret")]
async fn c_82_a_case_fails_in_which_the_log_shows_a_value() {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, &[]).await;
    cluster.apply(&secret()).await;
    let entries = binary.folder().read_dir().expect("the folder is there").filter_map(Result::ok);
    let log = entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|of| of == "log"));
    let mut log = fs::File::options().append(true).open(log.expect("it logs into a file")).expect("it can be written");
    writeln!(log, "it says {}", data_encoding::BASE64.encode(CANARY.as_bytes())).expect("it can be written");
}
