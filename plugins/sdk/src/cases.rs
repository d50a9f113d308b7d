//! Golden cases: one folder each, `cases/<name>/{request.json, response.json}`, run natively here and in the sandbox by
//! `orangery plugin test`, which has more to ask of them.
//!
//! A deployer's request is `{item, reads, artifacts}` (see [`recorded`](crate::recorded)), its response `{proposal}` or
//! `{fault}`. Reads that are not recorded are answered from the objects of `target.yaml`, where there is one. An engine's
//! request is `{request, files, host}`, its response `{rendered}` or `{failure}`; where it is checked instead,
//! `{findings}`. A gate's request is `{question}`, its response `{answer}`. `UPDATE=1` writes the responses anew: read
//! what it wrote before you commit it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Answer, Deployer, DeployerWithUninstall, Engine, Fault, Findings, GateEngine, GateQuestion, Item, Proposal,
    RenderFailure, RenderRequest, Rendered,
    recorded::{Recorded, RecordedAnswer, RecordedArtifact, RecordedFiles, RecordedHost, RecordedRead},
};

/// Which function of a deployer a case calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CalledFunction {
    /// `deploy.plan`
    #[default]
    Plan,
    /// `uninstall.plan`
    Uninstall,
}

/// The request of a deployer's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// The function that is called.
    #[serde(default, skip_serializing_if = "crate::json::is_default")]
    pub call: CalledFunction,
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
        answered(folder, request, |call, item, host| match call {
            CalledFunction::Plan => Ok(D::plan(item, host)),
            CalledFunction::Uninstall => {
                Err("it calls `uninstall`, which this deployer does not export; leave the case out".to_owned())
            }
        })
    });
}

/// Runs the golden cases of a deployer with an uninstall.
///
/// # Panics
///
/// As [`check_deployer`].
#[track_caller]
pub fn check_deployer_with_uninstall<D: DeployerWithUninstall>(cases: impl AsRef<Path>) {
    check(cases.as_ref(), |folder, request| {
        answered(folder, request, |call, item, host| match call {
            CalledFunction::Plan => Ok(D::plan(item, host)),
            CalledFunction::Uninstall => Ok(D::uninstall(item, host)),
        })
    });
}

/// What a deployer answers to a request, with the content of a folder.
fn answered(
    folder: &Path,
    request: &str,
    ask: impl Fn(CalledFunction, Item, &Recorded) -> Result<Result<Proposal, Fault>, String>,
) -> Result<PlanResponse, String> {
    let PlanRequest { call, item, reads, mut artifacts } = parse(request)?;
    for artifact in &mut artifacts {
        read_content(folder, artifact)?;
    }
    let host = Recorded::new(reads, artifacts).with_objects(objects(&folder.join("target.yaml"))?);
    Ok(match ask(call, item, &host)? {
        Ok(proposal) => PlanResponse::Proposal(proposal),
        Err(fault) => PlanResponse::Fault(fault),
    })
}

/// The objects of a file of manifests; `None` where there is no such file.
fn objects(file: &Path) -> Result<Option<Vec<Value>>, String> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(None) };
    let documents = yaml_serde::Deserializer::from_str(&text).map(Value::deserialize);
    let objects = documents.collect::<Result<Vec<Value>, _>>().map_err(|error| format!("target.yaml: {error}"))?;
    Ok(Some(objects.into_iter().filter(|object| !object.is_null()).collect()))
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
        Ok(CheckResponse { findings })
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
        Ok(match E::render(request, RecordedHost { files, answers: host }) {
            Ok(rendered) => EngineResponse::Rendered(rendered),
            Err(failure) => EngineResponse::Failure(failure),
        })
    });
}

/// The request of a gate's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateRequest {
    /// What is asked.
    pub question: GateQuestion,
}

/// The response of a gate's case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResponse {
    /// What is answered.
    pub answer: Answer,
}

/// Runs the golden cases of a gate.
///
/// # Panics
///
/// As [`check_deployer`].
#[track_caller]
pub fn check_gate<G: GateEngine>(cases: impl AsRef<Path>) {
    check(cases.as_ref(), |_, request| {
        let GateRequest { question } = parse(request)?;
        Ok(GateResponse { answer: G::evaluate(question) })
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
fn check<R: Serialize + DeserializeOwned>(cases: &Path, run: impl Fn(&Path, &str) -> Result<R, String>) {
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

fn check_case<R: Serialize + DeserializeOwned>(
    folder: &Path,
    run: impl Fn(&Path, &str) -> Result<R, String>,
) -> Result<(), String> {
    let named = |problem: String| format!("{}: {problem}", folder.display());
    let as_json = |response: R| serde_json::to_value(response).map_err(|error| named(error.to_string()));
    let path = folder.join("response.json");
    let request = fs::read_to_string(folder.join("request.json")).map_err(|error| named(error.to_string()))?;
    let actual = as_json(run(folder, &request).map_err(named)?)?;
    // What is left out, and what stands there as its default, are the same.
    let expected = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<R>(&text).ok());
    let expected = expected.map(as_json).transpose()?;
    if expected.as_ref() == Some(&actual) {
        return Ok(());
    }
    let rendered = format!("{actual:#}\n");
    if env::var_os("UPDATE").is_some() {
        return fs::write(&path, rendered).map_err(|error| named(error.to_string()));
    }
    let expected = expected.map_or_else(|| "no such response".to_owned(), |expected| format!("{expected:#}"));
    Err(named(format!("response.json is\n{expected}\nbut the answer is\n{rendered}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ClusterRef, Completion, Gate, Host, ObjectWrite, Selection, Stage};

    /// Writes a ConfigMap that counts those of the target.
    struct Counter;

    impl Deployer for Counter {
        fn plan(item: Item, host: &impl Host) -> Result<Proposal, Fault> {
            let what = Selection {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: None,
                names: Vec::new(),
                labels: item.config()?["labels"].as_str().map(str::to_owned),
                fields: None,
            };
            let count = host.list(&ClusterRef::Target, &what)?.len();
            let object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": item.name}, "data": count});
            let stage = Stage::new("s", vec![ObjectWrite::apply(&object)], Gate::Accepted);
            Ok(Proposal::finish(vec![stage], Completion::default()))
        }
    }

    const OBJECTS: &str = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, labels: {app: web, tier: x}}\n---\n---\n\
                           kind: ConfigMap\napiVersion: v1\nmetadata: {name: b, labels: {app: db}}\n---\n\
                           kind: Secret\napiVersion: v1\nmetadata: {name: a}\n";

    fn counted(labels: Value) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let item = json!({
            "namespace": "default", "name": "item", "uid": "u", "itemType": "example.org/mine", "generation": 1,
            "context": "default", "job": "j", "config": {"labels": labels}, "now": "", "seed": 7, "timeout": 1,
        });
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "item"}, "data": 1});
        let write = json!({"object": object, "how": "apply", "on": "target", "owned": "managed"});
        let stage = json!({"name": "s", "writes": [write], "gate": "accepted", "removals": []});
        let response = json!({"proposal": {"stages": [stage], "next": {"finish": {"exports": [], "afterwards": []}}}});
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("request.json", &json!({"item": item}).to_string());
        write("response.json", &response.to_string());
        write("target.yaml", OBJECTS);
        check_case(folder.path(), |folder, request| {
            let PlanRequest { item, reads, .. } = parse(request)?;
            let host = Recorded::new(reads, Vec::new()).with_objects(objects(&folder.join("target.yaml"))?);
            match Counter::plan(item, &host) {
                Ok(proposal) => Ok(PlanResponse::Proposal(proposal)),
                Err(fault) => Ok(PlanResponse::Fault(fault)),
            }
        })
    }

    #[test]
    fn c_251_reads_that_are_not_recorded_are_answered_from_the_objects_of_the_target() {
        assert_eq!(counted(json!("app=web,tier==x")), Ok(()));
        let error = counted(json!("app in (web)")).unwrap_err();
        assert!(error.contains("selects more than equal labels; run `orangery plugin test`"), "{error}");
        assert!(counted(json!("app=none")).unwrap_err().contains("but the answer is"));
    }

    #[test]
    fn c_251_without_objects_only_what_is_recorded_is_answered() {
        let host = Recorded::new(Vec::new(), Vec::new()).with_objects(objects(Path::new("/nowhere")).unwrap());
        let item = json!({
            "namespace": "default", "name": "item", "uid": "u", "itemType": "t", "generation": 1, "context": "default",
            "job": "j", "config": {}, "now": "", "seed": 7, "timeout": 1,
        });
        let Err(Fault::Invalid(problem)) = Counter::plan(serde_json::from_value(item).unwrap(), &host) else {
            panic!("nothing is recorded")
        };
        assert!(problem.message.starts_with("the recording has no answer to {\"list\""), "{}", problem.message);
    }
}
