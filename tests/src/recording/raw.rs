//! A folder as the recorder of the original writes it, turned into the folder of a case.
//!
//! | raw | is |
//! |---|---|
//! | `inputs/*.yaml` | what was applied; `${NS}` is the namespace, `${KUBECONFIG}` alone on its line the kubeconfig |
//! | `steps.yaml` | `namespace`, and `steps` with what was waited for |
//! | `LABEL/*.yaml` | the objects of the dump LABEL, a file for each kind; `events.yaml` and `summary.yaml` are not read |
//! | `transitions.yaml` | what a watch saw, a line for each version of an object |

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    difference::{Phases, is_part},
    names::{Names, generate_name},
    normal::{named, normalised, title},
    steps::{Finished, Named, Namespace, Patch, Recording, Step, StepsFile, document, documents},
};

/// Files of a dump that are no objects to compare.
const NOT_COMPARED: [&str; 2] = ["events.yaml", "summary.yaml"];

#[derive(Deserialize)]
struct Raw {
    namespace: String,
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum RawStep {
    Apply(String),
    MergePatch(Patch),
    PatchStatus(String),
    Delete(Named),
    WaitFinished(RawFinished),
    WaitGone(RawGone),
    Observed(RawObserved),
    /// How long nothing was done.
    SleepSeconds(f64),
    Dump(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawFinished {
    kind: String,
    name: String,
    phase: String,
    timed_out: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGone {
    kind: String,
    name: String,
    gone: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawObserved {
    namespace_after_delete: String,
}

#[derive(Deserialize)]
struct Transition {
    kind: String,
    name: String,
    phase: String,
    #[serde(default)]
    gone: bool,
}

/// Reads a raw folder and writes that of the case.
///
/// # Errors
/// A file cannot be written.
///
/// # Panics
/// The raw folder has another form than the table above says.
pub fn convert(raw: &Path, case: &Path) -> io::Result<()> {
    if case.exists() {
        fs::remove_dir_all(case)?;
    }
    fs::create_dir_all(case.join("objects"))?;
    fs::create_dir_all(case.join("inputs"))?;
    for entry in fs::read_dir(raw.join("inputs"))? {
        let entry = entry?;
        fs::copy(entry.path(), case.join("inputs").join(entry.file_name()))?;
    }
    let recording = read(raw);
    for (label, objects) in &recording.dumps {
        write(&case.join(format!("objects/{label}.yaml")), objects)?;
    }
    write(&case.join("phases.yaml"), &[&recording.phases])?;
    write(&case.join("steps.yaml"), &[StepsFile { namespace: recording.namespace, steps: recording.steps }])
}

fn write(file: &Path, documents: &[impl Serialize]) -> io::Result<()> {
    // By JSON, in which a variant is a map; in YAML of serde it would be a tag.
    let text = |document| {
        let document = serde_json::to_value(document).map_err(io::Error::other)?;
        yaml_serde::to_string(&document).map_err(io::Error::other)
    };
    let texts: io::Result<Vec<String>> = documents.iter().map(text).collect();
    fs::write(file, texts?.join("---\n"))
}

fn read(raw: &Path) -> Recording {
    let case = raw.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let Raw { namespace, steps } = document(&raw.join("steps.yaml"));
    let mut names = Names::default();
    let mut dumps = BTreeMap::new();
    for step in &steps {
        if let RawStep::Dump(label) = step {
            dumps.insert(label.clone(), normalised(objects(&raw.join(label)), &mut names));
        }
    }
    let seen: Vec<Transition> = document(&raw.join("transitions.yaml"));
    let mut phases = phases(&seen, &mut names);
    dumps.values_mut().flatten().for_each(|object| *object = named(object, &names));
    complete(&mut phases, &waited_for(&steps, &dumps, &names));
    let release = dumps.values().flatten().find_map(|object| object.pointer("/spec/config/namespace")?.as_str());
    let release = release.unwrap_or_default().to_owned();
    let steps = steps.into_iter().map(|step| converted(step, &release, &names)).collect();
    Recording { case, namespace, steps, dumps, phases }
}

fn objects(folder: &Path) -> Vec<Value> {
    let entries = fs::read_dir(folder).expect("the dump is a folder").map(|entry| entry.expect("an entry").path());
    let is_compared = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| !NOT_COMPARED.contains(&name))
    };
    let mut files: Vec<_> = entries.filter(|path| is_compared(path)).collect();
    files.sort();
    files.iter().flat_map(|file| documents(file)).collect()
}

/// The phases of objects as the waits and the dumps have them, in order.
fn waited_for(steps: &[RawStep], dumps: &BTreeMap<String, Vec<Value>>, names: &Names) -> Phases {
    let mut phases = Phases::new();
    for step in steps {
        let now: Vec<(String, &str)> = match step {
            RawStep::WaitFinished(of) => vec![(format!("{} {}", of.kind, names.stable(&of.name)), &of.phase)],
            RawStep::WaitGone(of) => vec![(format!("{} {}", of.kind, names.stable(&of.name)), "gone")],
            RawStep::Dump(label) => {
                let objects = dumps.get(label).into_iter().flatten();
                let present: Vec<(String, &str)> = objects.filter_map(|object| in_phase(object, names)).collect();
                let is_gone = |of: &&String| !present.iter().any(|(present, _)| present == *of);
                let gone: Vec<(String, &str)> = phases.keys().filter(is_gone).map(|of| (of.clone(), "gone")).collect();
                [present, gone].concat()
            }
            _ => Vec::new(),
        };
        for (of, phase) in now {
            let of_object = phases.entry(of).or_default();
            of_object.push(phase.to_owned());
            of_object.dedup();
        }
    }
    phases
}

/// An object of a dump and its phase, where it is of a kind that has phases.
fn in_phase<'a>(object: &'a Value, names: &Names) -> Option<(String, &'a str)> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let has_phases = ["Installation", "Execution", "DeployItem"].contains(&text("/kind"));
    has_phases.then(|| (title(object, names), text("/status/phase")))
}

/// The watch of the recorder did not hear all to the end: what was waited for or dumped then stands behind what it heard.
fn complete(heard: &mut Phases, waited_for: &Phases) {
    for (of, waited_for) in waited_for {
        let heard = heard.entry(of.clone()).or_default();
        let most =
            (0..=waited_for.len()).rev().find(|count| is_part(waited_for.get(..*count).unwrap_or_default(), heard));
        heard.extend(waited_for.iter().skip(most.unwrap_or_default()).cloned());
        heard.dedup();
    }
}

/// The phases of each object, in order; objects that were in no dump have their names made out.
fn phases(seen: &[Transition], names: &mut Names) -> Phases {
    // Items of a sub-installation have its name in theirs.
    for kind in ["Installation", "DeployItem"] {
        for of in seen.iter().filter(|of| of.kind == kind) {
            if let Some(generate_name) = generate_name(&of.name) {
                names.add_generated(&of.name, generate_name);
            }
        }
    }
    let mut phases = Phases::new();
    for of in seen {
        let of_object = phases.entry(format!("{} {}", of.kind, names.stable(&of.name))).or_default();
        of_object.push(if of.gone { "gone".to_owned() } else { of.phase.clone() });
        of_object.dedup();
    }
    phases
}

fn converted(step: RawStep, release: &str, names: &Names) -> Step {
    let named = |kind, name: &str| Named { kind, name: names.stable(name) };
    match step {
        RawStep::Apply(file) => Step::Apply(file),
        RawStep::MergePatch(Patch { kind, name, patch }) => {
            Step::MergePatch(Patch { kind, name: names.stable(&name), patch })
        }
        RawStep::PatchStatus(what) => Step::PatchStatus(made_ready(&what)),
        RawStep::Delete(Named { kind, name }) => Step::Delete(named(kind, &name)),
        RawStep::WaitFinished(RawFinished { kind, name, phase, timed_out }) => {
            assert!(!timed_out, "{kind} {name} was not waited for to the end");
            Step::WaitFinished(Finished { kind, name: names.stable(&name), phase })
        }
        RawStep::WaitGone(RawGone { kind, name, gone }) => {
            assert!(gone, "{kind} {name} was not waited for to the end");
            Step::WaitGone(named(kind, &name))
        }
        RawStep::Observed(RawObserved { namespace_after_delete }) => {
            Step::Namespace(Namespace { name: release.to_owned(), exists: namespace_after_delete != "absent" })
        }
        RawStep::SleepSeconds(seconds) => {
            assert!(seconds.is_finite(), "nothing was done for {seconds} seconds");
            Step::Rest
        }
        RawStep::Dump(label) => Step::Dump(label),
    }
}

/// The recorder's words `Deployment NAME ready`, as what it wrote.
fn made_ready(words: &str) -> Patch {
    let name = words.strip_prefix("Deployment ").and_then(|words| words.strip_suffix(" ready"));
    let replicas = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    let mut patch: serde_json::Map<_, _> = replicas.iter().map(|field| ((*field).to_owned(), json!(1))).collect();
    patch.insert("observedGeneration".to_owned(), json!(1));
    Patch {
        kind: "Deployment".to_owned(),
        name: name.expect("only a Deployment is made ready").to_owned(),
        patch: Value::Object(patch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &str = "
namespace: g-one
notes: []
steps:
- apply: inputs/01-root.yaml
- waitFinished: {kind: Installation, name: root, phase: Succeeded, timedOut: false}
- dump: final
- mergePatch: {kind: Installation, name: sub-pq45q, patch: {metadata: {}}}
- sleepSeconds: 3
- patchStatus: Deployment d ready
- delete: {kind: Installation, name: root}
- waitGone: {kind: Installation, name: root, gone: true}
";

    const TRANSITIONS: &str = "
- {t: 0.1, kind: Installation, name: root, phase: '', operation: reconcile}
- {t: 0.2, kind: Installation, name: root, phase: '', jobRunning: true}
- {t: 0.3, kind: Installation, name: sub-pq45q, phase: Init}
- {t: 0.4, kind: DeployItem, name: sub-pq45q-item-t4t27, phase: Succeeded}
- {t: 0.5, kind: DeployItem, name: sub-pq45q-item-t4t27, phase: Succeeded, gone: true}
";

    const INSTALLATIONS: &str = "
kind: Installation
metadata: {name: root, uid: 8c1ea930-aeea-4f52-a970-18ec9f70b83f, resourceVersion: '7', creationTimestamp: '2026-11-21T02:09:17Z'}
status: {phase: Succeeded, jobID: 65eb57ff-4f00-4844-95cb-61410f68fa59, jobIDFinished: 65eb57ff-4f00-4844-95cb-61410f68fa59, lastError: {message: x}}
---
kind: Installation
metadata:
  name: sub-pq45q
  generateName: sub-
  ownerReferences: [{uid: 8c1ea930-aeea-4f52-a970-18ec9f70b83f}]
status: {phase: Succeeded, jobID: 65eb57ff-4f00-4844-95cb-61410f68fa59}
";

    const SECRETS: &str = "
kind: Secret
metadata: {name: sub-pq45q-export}
data: {config: eyJvdXQiOiJ2YWx1ZSJ9}
";

    const COMPARED: &str = "\
kind: Installation
metadata:
  creationTimestamp: <time>
  name: root
  uid: <uid of Installation root>
status:
  jobID: <job of Installation root>
  jobIDFinished: <job of Installation root>
  lastError:
    message: <text>
  phase: Succeeded
---
kind: Installation
metadata:
  generateName: sub-
  name: sub-<generated>
  ownerReferences:
  - uid: <uid of Installation root>
status:
  jobID: <job of Installation root>
  phase: Succeeded
---
data:
  config: '{\"out\":\"value\"}'
kind: Secret
metadata:
  name: sub-<generated>-export
";

    #[test]
    fn a_raw_folder_becomes_a_case() {
        let folder = tempfile::tempdir().unwrap();
        let (raw, case) = (folder.path().join("one"), folder.path().join("golden/one"));
        let files = [
            ("steps.yaml", STEPS),
            ("transitions.yaml", TRANSITIONS),
            ("inputs/01-root.yaml", "a: b\n"),
            ("final/installations.yaml", INSTALLATIONS),
            ("final/secrets.yaml", SECRETS),
            ("final/events.yaml", "kind: Event"),
        ];
        for (name, text) in files {
            fs::create_dir_all(raw.join(name).parent().unwrap()).unwrap();
            fs::write(raw.join(name), text).unwrap();
        }
        convert(&raw, &case).unwrap();
        assert_eq!(fs::read_to_string(case.join("inputs/01-root.yaml")).unwrap(), "a: b\n");
        assert_eq!(fs::read_to_string(case.join("objects/final.yaml")).unwrap(), COMPARED);
        let recording = Recording::read(&case);
        let root = Named { kind: "Installation".to_owned(), name: "root".to_owned() };
        let Named { kind, name } = root.clone();
        let [wait, patch] = [recording.steps[1].clone(), recording.steps[3].clone()];
        assert_eq!(wait, Step::WaitFinished(Finished { kind, name, phase: "Succeeded".to_owned() }));
        assert!(matches!(patch, Step::MergePatch(patch) if patch.name == "sub-<generated>"));
        assert_eq!(recording.namespace, "g-one");
        assert_eq!(recording.steps[4], Step::Rest);
        assert_eq!(recording.steps[6..], [Step::Delete(root.clone()), Step::WaitGone(root)]);
        let phases = |of: &str| recording.phases[of].join(" ");
        assert_eq!(phases("Installation root"), " Succeeded gone", "what was not heard was waited for");
        assert_eq!(phases("Installation sub-<generated>"), "Init Succeeded");
        assert_eq!(phases("DeployItem sub-<generated>-item-<generated>"), "Succeeded gone");
        assert_eq!(recording.phases.len(), 3);
    }
}
