//! One call of a component: cold, from the cache, warm.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use orangery_blueprint::{
    plugins::Plugins,
    rendering::{ExecutionKind, RenderRequest},
    template_engine::TemplateContext,
};
use orangery_plugin::{CallIsolation, PluginSet, Registered, Sandbox, SandboxConfig, WorkerCommand};
use orangery_proposal::{Item, deployer::Reads};
use orangery_tests::empty::Empty;
use serde_json::{Value, json};

use crate::figures::{Figures, Samples, display};

const WARM: usize = 2000;
const MANIFEST: &str = "landscaper.gardener.cloud/kubernetes-manifest";
const MOCK: &str = "landscaper.gardener.cloud/mock";

/// Measures the built-in components.
pub(crate) async fn measure(figures: &mut Figures) {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let begin = Instant::now();
    let plugins = load(cache.path());
    plan(&plugins, MANIFEST).await;
    figures.add("first call of the manifest component, compiled for it", &display(begin.elapsed()));
    drop(plugins);

    let plugins = load(cache.path());
    let begin = Instant::now();
    plan(&plugins, MANIFEST).await;
    figures.add("first call of the manifest component, from the cache", &display(begin.elapsed()));
    warm(figures, &plugins, "").await;
    drop(plugins);
    in_workers(figures, cache.path()).await;
}

/// The same with every call in a process of its own.
async fn in_workers(figures: &mut Figures, cache: &Path) {
    let plugins = load_with(cache, CallIsolation::All);
    let begin = Instant::now();
    plan(&plugins, MANIFEST).await;
    figures.add("first call of the manifest component in a worker, from the cache", &display(begin.elapsed()));
    warm(figures, &plugins, " in a worker").await;
}

/// Calls that find their component loaded; `how` says where they run.
async fn warm(figures: &mut Figures, plugins: &PluginSet, how: &str) {
    let samples = Samples::new(repeat(async || plan(plugins, MANIFEST).await).await);
    figures.add(&format!("warm call of the manifest component, one ConfigMap{how}"), &samples.text());
    plan(plugins, MOCK).await;
    let samples = Samples::new(repeat(async || plan(plugins, MOCK).await).await);
    figures.add(&format!("warm call of the mock component{how}"), &samples.text());
    render(plugins).await;
    let samples = Samples::new(repeat(async || render(plugins).await).await);
    figures.add(&format!("warm render of the hello-world template{how}"), &samples.text());
}

/// The built-in components, with this cache.
pub(crate) fn load(cache: &Path) -> PluginSet {
    load_with(cache, CallIsolation::Untrusted)
}

fn load_with(cache: &Path, isolation: CallIsolation) -> PluginSet {
    let worker = WorkerCommand { program: crate::release().join(crate::BINARY), args: vec!["plugin".into()] };
    let config = SandboxConfig { isolation, ..SandboxConfig::new(worker, Some(cache.to_owned())) };
    let sandbox = Sandbox::start(config).expect("the sandbox starts");
    let builtin = orangery_builtin::components().iter();
    let registered = builtin.map(|one| Registered::builtin(one.name, one.registration, one.component));
    let registered = registered.collect::<Result<Vec<_>, _>>().expect("what ships is registered well");
    PluginSet::load(registered, &sandbox).expect("what ships goes together")
}

/// How long each of many calls takes.
pub(crate) async fn repeat(call: impl AsyncFn()) -> Vec<Duration> {
    let mut samples = Vec::with_capacity(WARM);
    for _ in 0..WARM {
        let begin = Instant::now();
        call().await;
        samples.push(begin.elapsed());
    }
    samples
}

async fn plan(plugins: &PluginSet, item_type: &str) {
    let deployer = plugins.deployer(item_type, &"default".into()).expect("a built-in component serves the type");
    deployer.plan(&item(item_type), Reads::of_clusters(Arc::new(Empty))).await.expect("the item is planned");
}

fn item(item_type: &str) -> Item {
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hello", "namespace": "default"},
        "data": {"greeting": "Hello"},
    });
    let config = if item_type == MOCK {
        json!({"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration"})
    } else {
        json!({
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderConfiguration",
            "manifests": [{"policy": "manage", "manifest": config_map}],
        })
    };
    Item {
        namespace: "default".into(),
        name: "hello-item-x8mv6".into(),
        uid: "f4885b78-dfc7-4031-ab6f-debb6a69f732".to_owned(),
        item_type: item_type.to_owned(),
        generation: 1,
        context: "default".to_owned(),
        target: Some("cluster".to_owned()),
        job: "65eb57ff-4f00-4844-95cb-61410f68fa59".into(),
        config,
        annotations: BTreeMap::new(),
        configuration: None,
        status: None,
        checkpoint: None,
        failed: None,
        now: "2026-11-21T02:09:18Z".to_owned(),
        seed: 1,
        secret: None,
        timeout: 600_000,
    }
}

async fn render(plugins: &PluginSet) {
    let inputs = json!({"imports": {"name": "hello"}, "cd": null, "components": [], "blueprint": {}});
    execute(plugins, "Jinja", include_str!("hello.jinja"), inputs).await;
}

/// Renders one execution.
pub(crate) async fn execute(plugins: &PluginSet, engine: &str, template: &str, inputs: Value) {
    let template_engine = plugins.template_engine(engine, None).expect("a built-in component renders the type");
    let request = RenderRequest {
        execution: ExecutionKind::Deploy,
        name: "default".to_owned(),
        file: None,
        template: template.to_owned(),
        inputs,
        state: None,
    };
    template_engine.render(&request, &TemplateContext::of_files(Arc::new(Empty))).await.expect("the template is right");
}
