//! Golden cases: one folder each, `cases/<name>/{request.json, response.json}`, run natively here and through the sandbox
//! by the host's own tests.
//!
//! A deployer's request is `{item, reads, artifacts}` (see [`recorded`](crate::recorded)), its response `{proposal}` or
//! `{fault}`. An engine's request is `{request, files, host}`, its response `{rendered}` or `{failure}`; where it is checked
//! instead, `{findings}`. `UPDATE=1` writes the responses anew: read what it wrote before you commit it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Deployer, Engine, Fault, Findings, Item, Proposal, RenderFailure, RenderRequest, Rendered,
    recorded::{Recorded, RecordedAnswer, RecordedArtifact, RecordedFiles, RecordedHost, RecordedRead},
};

/// The request of a deployer's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// What to plan for.
    pub item: Item,
    /// What it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<RecordedRead>,
    /// The content that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<RecordedArtifact>,
}

/// The response of a deployer's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanResponse {
    /// It planned.
    Proposal(Proposal),
    /// It did not.
    Fault(Fault),
}

/// The request of an engine's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRequest {
    /// What to render.
    pub request: RenderRequest,
    /// The blueprint's files.
    #[serde(default)]
    pub files: RecordedFiles,
    /// What else the host answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<RecordedAnswer>,
}

/// The response of an engine's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EngineResponse {
    /// It rendered.
    Rendered(Rendered),
    /// It did not.
    Failure(RenderFailure),
}

/// Runs the golden cases of a deployer.
///
/// # Panics
///
/// Where a case answers something else than its `response.json`, or a folder cannot be read; the message has both.
#[track_caller]
pub fn check_deployer<D: Deployer>(cases: impl AsRef<Path>) {
    check(cases.as_ref(), |folder, request| {
        let PlanRequest { item, reads, mut artifacts } = parse(request)?;
        for artifact in &mut artifacts {
            read_content(folder, artifact)?;
        }
        let response = match D::plan(item, &Recorded::new(reads, artifacts)) {
            Ok(proposal) => PlanResponse::Proposal(proposal),
            Err(fault) => PlanResponse::Fault(fault),
        };
        serde_json::to_value(response).map_err(|error| error.to_string())
    });
}

/// The response of a case in which an engine only looks at a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResponse {
    /// What it found; `None` where it cannot tell.
    pub findings: Option<Findings>,
}

/// Runs the golden cases in which an engine only looks at templates.
///
/// # Panics
///
/// As [`check_deployer`].
#[track_caller]
pub fn check_findings<E: Engine>(cases: impl AsRef<Path>) {
    check(cases.as_ref(), |_, request| {
        let EngineRequest { request, files, host } = parse(request)?;
        let findings = E::check(request, RecordedHost { files, answers: host });
        serde_json::to_value(CheckResponse { findings }).map_err(|error| error.to_string())
    });
}

/// Runs the golden cases of an engine.
///
/// # Panics
///
/// As [`check_deployer`].
#[track_caller]
pub fn check_engine<E: Engine>(cases: impl AsRef<Path>) {
    check(cases.as_ref(), |_, request| {
        let EngineRequest { request, files, host } = parse(request)?;
        let response = match E::render(request, RecordedHost { files, answers: host }) {
            Ok(rendered) => EngineResponse::Rendered(rendered),
            Err(failure) => EngineResponse::Failure(failure),
        };
        serde_json::to_value(response).map_err(|error| error.to_string())
    });
}

fn parse<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("request.json is no request: {error}"))
}

fn read_content(folder: &Path, artifact: &mut RecordedArtifact) -> Result<(), String> {
    artifact.content = fs::read(folder.join(&artifact.file)).map_err(|error| format!("{}: {error}", artifact.file))?;
    artifact.layers.iter_mut().try_for_each(|layer| read_content(folder, layer))
}

#[track_caller]
fn check(cases: &Path, run: impl Fn(&Path, &str) -> Result<Value, String>) {
    let mut folders: Vec<PathBuf> = match fs::read_dir(cases) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()).collect(),
        Err(_) => Vec::new(),
    };
    folders.sort();
    assert!(!folders.is_empty(), "there are no cases in {}", cases.display());
    let failures: Vec<_> = folders.iter().filter_map(|folder| check_case(folder, &run).err()).collect();
    let failed = failures.len();
    let all = folders.len();
    assert!(
        failures.is_empty(),
        "{failed} of {all} cases fail (UPDATE=1 writes responses anew)\n\n{}",
        failures.join("\n")
    );
}

fn check_case(folder: &Path, run: impl Fn(&Path, &str) -> Result<Value, String>) -> Result<(), String> {
    let named = |problem: String| format!("{}: {problem}", folder.display());
    let path = folder.join("response.json");
    let request = fs::read_to_string(folder.join("request.json")).map_err(|error| named(error.to_string()))?;
    let actual = run(folder, &request).map_err(named)?;
    let expected: Option<Value> = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
    if expected.as_ref() == Some(&actual) {
        return Ok(());
    }
    let rendered = format!("{actual:#}\n");
    if env::var_os("UPDATE").is_some() {
        return fs::write(&path, rendered).map_err(|error| named(error.to_string()));
    }
    let expected = expected.map_or_else(|| "nothing that is JSON".to_owned(), |expected| format!("{expected:#}"));
    Err(named(format!("response.json is\n{expected}\nbut the answer is\n{rendered}")))
}
