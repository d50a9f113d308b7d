//! The search at the end of each case finds what it is for (C-82).

use std::{fs, io::Write as _, path::Path, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use orangery_tests::{proxy::Sound, tree::API, world::World};
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
    say(binary.folder(), &data_encoding::BASE64.encode(CANARY.as_bytes()));
}

#[tokio::test]
#[should_panic(expected = "the log shows a value of a Secret")]
async fn c_82_a_case_fails_in_which_the_log_shows_a_token_of_a_service_account() {
    let binary = crate::binary().await;
    let _cluster = crate::cluster_of(&binary, &[]).await;
    say(binary.folder(), "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.e30.c2ln");
}

#[tokio::test]
#[should_panic(expected = "ConfigMap of-nobody shows a value of a Secret")]
async fn c_82_a_case_fails_in_which_what_it_has_not_applied_shows_a_value_in_its_metadata() {
    let cluster = crate::cluster().await;
    cluster.apply(&secret()).await;
    let metadata = json!({"name": "of-nobody", "annotations": {"of": CANARY}});
    let object: ConfigMap = serde_json::from_value(json!({"metadata": metadata})).expect("a ConfigMap");
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client().clone());
    maps.create(&PostParams::default(), &object).await.expect("it is made");
}

#[tokio::test]
#[should_panic(expected = "a World is dropped without its end")]
async fn c_82_a_case_fails_that_drops_its_world_without_an_end() {
    let _world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
}

/// Has the log of the operator in this folder say something.
pub(crate) fn say(folder: &Path, words: &str) {
    let entries = folder.read_dir().expect("the folder is there").filter_map(Result::ok);
    let log = entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|of| of == "log"));
    let mut log = fs::File::options().append(true).open(log.expect("it logs into a file")).expect("it can be written");
    writeln!(log, "it says {words}").expect("it can be written");
}
