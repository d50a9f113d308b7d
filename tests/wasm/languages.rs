//! `examples/own-template` in its languages: each component answers the same.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_blueprint::{
    plugins::Plugins,
    rendering::{InputStep, Output, RenderRequest},
    template_engine::TemplateContext,
};
use orangery_plugin::PluginSet;
use orangery_tests::own_template;
use serde_json::json;

use super::{
    bundled::component,
    fixtures::sandbox,
    template_context::{OneFile, request},
};

fn tmp() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own-template");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn check(bytes: Vec<u8>) {
    let set = PluginSet::load(vec![], &sandbox()).unwrap();
    let trees = json!([
        {"name": "orange", "kilograms": 35}, {"name": "lemon", "kilograms": 24}, {"name": "kumquat", "kilograms": 1},
    ]);
    let request =
        RenderRequest { inputs: json!({"imports": {"trees": trees}}), file: Some("render.wasm".into()), ..request("") };
    let around = |path| TemplateContext::of_files(Arc::new(OneFile(path, b"autumn\n".to_vec())));
    let engine = set.bundled_engine("render.wasm", component(bytes));
    let rendered = engine.render(&request, &around("season.txt")).await.unwrap();
    let item = own_template::item(json!({"import": "cluster"}));
    assert_eq!(rendered.output, Output::Document(json!({"deployItems": [item]})));
    let failure = engine.render(&request, &around("other.txt")).await.unwrap_err();
    assert_eq!((failure.message.as_str(), failure.reads), ("the blueprint has no file season.txt", Vec::new()));
    let request = RenderRequest { inputs: json!({"imports": {"trees": "canary"}}), ..request };
    let failure = engine.render(&request, &around("season.txt")).await.unwrap_err();
    let trees = ["imports", "trees"].map(|name| InputStep::Field(name.to_owned()));
    assert_eq!((failure.message.contains("canary"), failure.reads), (false, vec![trees.to_vec()]));
}

#[tokio::test]
async fn the_example_in_rust_renders() {
    check(own_template::rust(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")))).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn the_example_in_go_renders() {
    check(own_template::go(Path::new(env!("OUT_DIR")))).await;
}

#[tokio::test]
#[cfg_attr(without_npm, ignore = "needs node and npm: apt-get install npm")]
async fn the_example_in_javascript_renders() {
    check(own_template::javascript(&tmp())).await;
}

#[tokio::test]
#[cfg_attr(without_python, ignore = "needs python3 with venv: apt-get install python3-venv")]
async fn the_example_in_python_renders() {
    check(own_template::python(&tmp())).await;
}
