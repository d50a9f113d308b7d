//! The golden cases of the built-in components, through the sandbox: a component answers as its logic does natively.
//!
//! The same files run natively in `plugins/<name>/tests/cases.rs`; only there `UPDATE=1` writes them anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use orangery_builtin::components;
use orangery_core::{
    error::{Code, Fault, Problem},
    port::{ApiResource, BoxFuture, Clusters, Files, Plugins, Surroundings},
    proposal::{ClusterRef, Item, ObjectKey, Proposal, Selection},
    template::{RenderFailure, RenderRequest, Rendered},
};
use orangery_plugin::{CompileCommand, PluginSet, Registered, Sandbox, SandboxConfig, compile_worker_main};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct PlanRequest {
    item: Item,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PlanResponse {
    Proposal(Box<Proposal>),
    Fault(RecordedFault),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RecordedFault {
    Invalid(Problem),
    Later(Problem),
    Denied(Problem),
}

#[derive(Deserialize)]
struct EngineRequest {
    request: RenderRequest,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum EngineResponse {
    Rendered(Rendered),
    Failure(RenderFailure),
}

/// The built-in deployers decide without reading: a read is a mistake.
struct NoClusters;

fn no_read<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, Fault>> {
    Box::pin(async { Err(Fault::invalid(Code::InternalProblem, "a built-in deployer has read a cluster")) })
}

impl Clusters for NoClusters {
    fn get<'a>(&'a self, _: &'a ClusterRef, _: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        no_read()
    }

    fn get_many<'a>(
        &'a self,
        _: &'a ClusterRef,
        _: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        no_read()
    }

    fn list<'a>(&'a self, _: &'a ClusterRef, _: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        no_read()
    }

    fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        no_read()
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        no_read()
    }
}

struct RecordedFiles(BTreeMap<String, String>);

impl Files for RecordedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.0.get(path).map(|text| text.clone().into_bytes());
        found.ok_or_else(|| format!("the blueprint has no file {path}"))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let inside = self.0.keys().filter_map(|file| file.strip_prefix(&folder));
        let names: BTreeSet<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }
}

fn main() -> ExitCode {
    if env::args().any(|argument| argument == "compile-worker") {
        return compile_worker_main();
    }
    // Test runners ask every suite for its list.
    if env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(every_case_answers_through_the_sandbox_as_recorded());
    ExitCode::SUCCESS
}

async fn every_case_answers_through_the_sandbox_as_recorded() {
    let compiler = CompileCommand::current_exe().expect("a suite knows its own path");
    let sandbox = Sandbox::start(SandboxConfig::new(compiler, None)).expect("the sandbox starts");
    let registered = components().iter().map(|builtin| {
        Registered::builtin(builtin.name, builtin.registration, builtin.bytes).expect("our own registration parses")
    });
    let plugins = PluginSet::load(registered.collect(), &sandbox).expect("our own registrations go together");
    let mut failures = Vec::new();
    for builtin in components() {
        for folder in cases(builtin.name) {
            if let Err(failure) = check(&plugins, &folder).await {
                failures.push(format!("{}: {failure}", folder.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn cases(plugin: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(plugin).join("cases");
    let entries = fs::read_dir(&folder).expect("every built-in component has cases");
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("a folder is listed").path()).collect();
    folders.sort();
    folders
}

async fn check(plugins: &PluginSet, folder: &Path) -> Result<(), String> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let (request, response) = (text("request.json")?, text("response.json")?);
    match serde_json::from_str::<PlanRequest>(&request) {
        Ok(request) => {
            let deployer = plugins.deployer(&request.item.item_type).ok_or("no component claims the item type")?;
            let answer = match deployer.plan(&request.item, Arc::new(NoClusters)).await {
                Ok(proposal) => PlanResponse::Proposal(Box::new(proposal)),
                Err(Fault::Invalid(problem)) => PlanResponse::Fault(RecordedFault::Invalid(problem)),
                Err(Fault::Later(problem)) => PlanResponse::Fault(RecordedFault::Later(problem)),
                Err(Fault::Denied(problem)) => PlanResponse::Fault(RecordedFault::Denied(problem)),
            };
            compare(&answer, &response)
        }
        Err(_) => {
            let EngineRequest { request, files } =
                serde_json::from_str(&request).map_err(|error| format!("no request: {error}"))?;
            let engine = plugins.renderer("Jinja").ok_or("no component claims the template type")?;
            let answer = match engine.render(&request, &Surroundings::of_files(Arc::new(RecordedFiles(files)))).await {
                Ok(rendered) => EngineResponse::Rendered(rendered),
                Err(failure) => EngineResponse::Failure(failure),
            };
            compare(&answer, &response)
        }
    }
}

fn compare<T>(answer: &T, recorded: &str) -> Result<(), String>
where
    T: PartialEq + std::fmt::Debug + for<'de> Deserialize<'de>,
{
    let recorded: T = serde_json::from_str(recorded).map_err(|error| format!("no response: {error}"))?;
    if *answer == recorded {
        return Ok(());
    }
    Err(format!("recorded is\n{recorded:#?}\nbut the component answers\n{answer:#?}"))
}
