//! Template executions in fresh instances: a typical one (two deploy items) and a large one, by each engine.

use std::{path::Path, time::Instant};

use orangery_plugin::PluginSet;
use serde_json::{Value, json};

use crate::{
    calls::{execute, load, repeat},
    figures::{Figures, Samples, display},
};

/// Deploy items of the largest execution.
const MANY: usize = 1000;

/// Measures the engines that were built.
pub(crate) async fn measure(figures: &mut Figures) {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let plugins = load(cache.path());
    let (typical, many) = (include_str!("typical.jinja"), include_str!("many.jinja"));
    engine(&plugins, "Jinja", typical, many, figures).await;
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == "gotemplate");
    if builtin.is_none_or(|builtin| builtin.component.is_err()) {
        figures.add("render by GoTemplate", "not built: this machine has no Go");
        return;
    }
    let (typical, many) = (include_str!("typical.gotmpl"), include_str!("many.gotmpl"));
    engine(&plugins, "GoTemplate", typical, many, figures).await;
    in_another_process(cache.path(), typical, figures).await;
}

async fn engine(plugins: &PluginSet, engine: &str, typical: &str, many: &str, figures: &mut Figures) {
    let begin = Instant::now();
    execute(plugins, engine, typical, inputs()).await;
    figures.add(&format!("first render by {engine}, compiled for it"), &display(begin.elapsed()));
    let samples = repeat(async || execute(plugins, engine, typical, inputs()).await).await;
    figures.add(&format!("render of a typical execution by {engine}"), &Samples::new(samples).text());
    let begin = Instant::now();
    execute(plugins, engine, many, json!({"imports": {"count": MANY}})).await;
    figures.add(&format!("render of {MANY} deploy items by {engine}"), &display(begin.elapsed()));
}

/// As a process that finds the engine in its cache.
async fn in_another_process(cache: &Path, typical: &str, figures: &mut Figures) {
    let plugins = load(cache);
    let begin = Instant::now();
    execute(&plugins, "GoTemplate", typical, inputs()).await;
    figures.add("first render by GoTemplate, from the cache", &display(begin.elapsed()));
}

/// What a typical blueprint imports.
fn inputs() -> Value {
    json!({
        "imports": {
            "cluster": {"metadata": {"name": "my-cluster", "namespace": "default"}, "spec": {"type": "kubernetes"}},
            "namespace": "shop",
            "config": {"replicas": 3, "image": "registry.example.org/shop:1.2.3", "labels": {"team": "a", "tier": "web"}},
        },
        "cd": null, "components": null, "blueprint": {},
    })
}
