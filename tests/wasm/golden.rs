//! The golden cases of the built-in components, which run natively in their crates, through the sandbox.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_blueprint::{
    rendering::{Findings, RenderFailure, RenderRequest, Rendered},
    template_engine::TemplateContext,
};
use orangery_core::{
    error::{Fault, Problem},
    port::BoxFuture,
};
use orangery_ocm::Files;
use orangery_plugin::{Plugin, Registered};
use orangery_proposal::{
    ClusterRef, Item, ObjectKey, Proposal, Selection,
    deployer::{ApiResource, Clusters, Reads},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fixtures::sandbox;

fn plugin(name: &str) -> Plugin {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).unwrap();
    Plugin::new(Registered::builtin(name, builtin.registration, builtin.component).unwrap(), sandbox())
}

/// The cases of a plugin: name, request, response.
fn cases(plugin: &str) -> Vec<(String, Value, Value)> {
    cases_in(plugin, "cases")
}

fn cases_in(plugin: &str, folder: &str) -> Vec<(String, Value, Value)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(plugin).join(folder);
    let read = |file: &Path| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut cases: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let folder = entry.unwrap().path();
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            (name, read(&folder.join("request.json")), read(&folder.join("response.json")))
        })
        .collect();
    cases.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(!cases.is_empty(), "{plugin} has no golden cases");
    cases
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanRequest {
    item: Item,
    #[serde(default)]
    reads: Vec<Value>,
}

/// The deployer's recorded reads: `{"read": …, "answer": …}`.
struct Recorded(Vec<Value>);

impl Recorded {
    fn answer(&self, asked: &Value) -> Result<Value, Fault> {
        let read = self.0.iter().find(|read| read["read"] == *asked);
        Ok(read.unwrap_or_else(|| panic!("{asked} was not recorded"))["answer"].clone())
    }
}

fn read(word: &str, on: &ClusterRef, rest: Value) -> Value {
    let mut asked = rest;
    if *on != ClusterRef::Target {
        asked["on"] = serde_json::to_value(on).unwrap();
    }
    json!({ word: asked })
}

impl Clusters for Recorded {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move {
            let answer = self.answer(&read("get", on, json!({ "key": key })))?;
            Ok(Some(answer).filter(|object| !object.is_null()))
        })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(futures::future::try_join_all(keys.iter().map(|key| self.get(on, key))))
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let answer = self.answer(&read("list", on, json!({ "what": what })))?;
            Ok(serde_json::from_value(answer).unwrap())
        })
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move { Ok(serde_json::from_value(self.answer(&read("version", on, json!({})))?).unwrap()) })
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async { Ok(vec![]) })
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PlanResponse {
    Proposal(Proposal),
    Fault(ToldFault),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ToldFault {
    Invalid(Problem),
    Later(Problem),
    Denied(Problem),
}

async fn check_deployer(name: &str) {
    let plugin = plugin(name);
    for (case, request, response) in cases(name) {
        let PlanRequest { item, reads } = serde_json::from_value(request).unwrap();
        let expected: PlanResponse = serde_json::from_value(response).unwrap();
        let answer = match plugin.plan(&item, Reads::of_clusters(Arc::new(Recorded(reads)))).await.unwrap() {
            Ok(proposal) => PlanResponse::Proposal(proposal),
            Err(Fault::Invalid(problem)) => PlanResponse::Fault(ToldFault::Invalid(problem)),
            Err(Fault::Later(problem)) => PlanResponse::Fault(ToldFault::Later(problem)),
            Err(Fault::Denied(problem)) => PlanResponse::Fault(ToldFault::Denied(problem)),
        };
        assert_eq!(answer, expected, "{name}/{case}");
    }
}

#[tokio::test]
async fn the_manifest_deployer_answers_as_it_does_natively() {
    check_deployer("manifest").await;
}

#[tokio::test]
async fn the_mock_deployer_answers_as_it_does_natively() {
    check_deployer("mock").await;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineRequest {
    request: RenderRequest,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

struct Recordings(BTreeMap<String, String>);

impl Files for Recordings {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0
            .get(path)
            .map(|text| text.clone().into_bytes())
            .ok_or_else(|| format!("the blueprint has no file {path}"))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let names = self.0.keys().filter_map(|path| path.strip_prefix(&prefix)?.split('/').next().map(str::to_owned));
        let names: std::collections::BTreeSet<String> = names.collect();
        Ok(Vec::from_iter(names))
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum EngineResponse {
    Rendered(Rendered),
    Failure(RenderFailure),
}

#[tokio::test]
async fn the_jinja_engine_answers_as_it_does_natively() {
    let plugin = plugin("jinja");
    for (case, request, response) in cases("jinja") {
        let EngineRequest { request, files } = serde_json::from_value(request).unwrap();
        let expected: EngineResponse = serde_json::from_value(response).unwrap();
        let answer =
            match plugin.render(&request, &TemplateContext::of_files(Arc::new(Recordings(files)))).await.unwrap() {
                Ok(rendered) => EngineResponse::Rendered(rendered),
                Err(failure) => EngineResponse::Failure(failure),
            };
        assert_eq!(answer, expected, "jinja/{case}");
    }
}

#[tokio::test]
async fn the_jinja_engine_checks_as_it_does_natively() {
    let plugin = plugin("jinja");
    for (case, request, response) in cases_in("jinja", "checks") {
        let EngineRequest { request, files } = serde_json::from_value(request).unwrap();
        let expected: Option<Findings> = serde_json::from_value(response["findings"].clone()).unwrap();
        let found = plugin.check(&request, &TemplateContext::of_files(Arc::new(Recordings(files)))).await.unwrap();
        assert_eq!(found, expected, "jinja/{case}");
    }
}
