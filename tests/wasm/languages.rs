//! `examples/own-template` in its languages: each component answers the same.

use std::{path::PathBuf, sync::Arc};

use orangery_core::{
    port::{Plugins, Surroundings},
    template::{Output, RenderRequest},
};
use orangery_plugin::PluginSet;
use orangery_tests::own_template;
use serde_json::json;

use crate::{
    stage::sandbox,
    surroundings::{OneFile, request},
};

fn tmp() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own-template");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn check(component: Vec<u8>) {
    let set = PluginSet::load(vec![], &sandbox()).unwrap();
    let trees = json!([
        {"name": "orange", "kilograms": 35}, {"name": "lemon", "kilograms": 24}, {"name": "kumquat", "kilograms": 1},
    ]);
    let request =
        RenderRequest { inputs: json!({"imports": {"trees": trees}}), file: Some("render.wasm".into()), ..request("") };
    let around = |path| Surroundings::of_files(Arc::new(OneFile(path, b"autumn\n".to_vec())));
    let engine = set.own_renderer("render.wasm", component);
    let rendered = engine.render(&request, &around("season.txt")).await.unwrap();
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "harvest", "namespace": "default"},
        "data": {"season": "autumn", "orange": "3 crates", "lemon": "2 crates", "kumquat": "1 crates"},
    });
    let item = json!({
        "name": "harvest",
        "type": "landscaper.gardener.cloud/kubernetes-manifest",
        "target": {"import": "cluster"},
        "config": {
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderConfiguration",
            "manifests": [{"manifest": config_map}],
        },
    });
    assert_eq!(rendered.output, Output::Document(json!({"deployItems": [item]})));
    let failure = engine.render(&request, &around("other.txt")).await.unwrap_err();
    assert_eq!(failure.message, "the blueprint has no file season.txt");
}

/// Runs what could be built; says what could not.
async fn check_where_it_builds(language: &str, built: Result<Vec<u8>, String>) {
    match built {
        Ok(component) => check(component).await,
        Err(why) => eprintln!("LEFT OUT: examples/own-template in {language} is not tested here: {why}"),
    }
}

#[tokio::test]
async fn the_example_in_rust_renders() {
    check(own_template::rust(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")))).await;
}

#[tokio::test]
async fn the_example_in_go_renders() {
    let component = crate::stage::bytes("harvest-go");
    let no_go = || "this machine had no Go when the tests were built".to_owned();
    check_where_it_builds("Go", Some(component).filter(|bytes| !bytes.is_empty()).ok_or_else(no_go)).await;
}

#[tokio::test]
async fn the_example_in_javascript_renders() {
    check_where_it_builds("JavaScript", own_template::javascript(&tmp())).await;
}

#[tokio::test]
async fn the_example_in_python_renders() {
    check_where_it_builds("Python", own_template::python(&tmp())).await;
}
