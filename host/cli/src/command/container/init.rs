//! `orangery container init`: writes the files that the program of a container item reads. It has no credentials and asks nobody:
//! what it writes lies in Secrets that are mounted for it.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use data_encoding::BASE64;
use orangery_registry::archive::{ArchiveLimits, files};
use serde::Deserialize;

use super::{ContainerError, Environment, ProgramPaths, state::unpack, variable};

/// What the container deployer hands over (`plugins/container/src/inputs.rs`).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Inputs {
    imports: Option<String>,
    component_descriptors: Option<String>,
    files: Vec<(String, String)>,
    archive: Option<String>,
}

/// Writes the files.
///
/// # Errors
/// The first thing that goes wrong.
pub fn execute(environment: Environment<'_>) -> Result<(), ContainerError> {
    let paths = ProgramPaths::read(environment)?;
    for name in ["DEPLOY_ITEM_NAME", "DEPLOY_ITEM_NAMESPACE"] {
        variable(environment, name)?;
    }
    let folder = |name: &str| variable(environment, name).map(PathBuf::from);
    let (inputs, states) = (folder("ORANGERY_INPUTS_DIR")?, folder("ORANGERY_STATES_DIR")?);
    let target = folder("ORANGERY_TARGET_FILE")?;
    let inputs: Inputs = serde_json::from_slice(&joined(&inputs)?)
        .map_err(|error| ContainerError(format!("what the container deployer hands over cannot be read: {error}")))?;
    let files = [&paths.imports, &paths.exports, &paths.component_descriptor, &paths.target];
    for folder in files.into_iter().filter_map(|path| path.parent()).chain([paths.content.as_path(), &paths.state]) {
        fs::create_dir_all(folder).map_err(|error| ContainerError::file(folder, "made", &error))?;
    }
    let text = |path: &Path, text: &Option<String>| match text {
        Some(text) => write(path, text.as_bytes()),
        None => Ok(()),
    };
    text(&paths.component_descriptor, &inputs.component_descriptors)?;
    content(&paths.content, &inputs)?;
    text(&paths.imports, &inputs.imports)?;
    let document = fs::read(&target).map_err(|error| ContainerError::file(&target, "read", &error))?;
    write(&paths.target, &document)?;
    let pieces = joined(&states)?;
    if pieces.is_empty() { Ok(()) } else { unpack(&pieces, &paths.state) }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ContainerError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| ContainerError::file(parent, "made", &error))?;
    }
    fs::write(path, bytes).map_err(|error| ContainerError::file(path, "written", &error))
}

/// The files of a folder, one after the other; empty where there is no such folder. Those of a mounted Secret lie beside what the
/// kubelet keeps for itself, and are called by numbers.
fn joined(folder: &Path) -> Result<Vec<u8>, ContainerError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut names: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        })
        .collect();
    names.sort();
    let mut bytes = Vec::new();
    for name in names {
        bytes.extend(fs::read(&name).map_err(|error| ContainerError::file(&name, "read", &error))?);
    }
    Ok(bytes)
}

/// The files of the blueprint.
fn content(folder: &Path, inputs: &Inputs) -> Result<(), ContainerError> {
    let decoded = |text: &str| {
        BASE64
            .decode(text.as_bytes())
            .map_err(|_| ContainerError("what the container deployer hands over is no base64".to_owned()))
    };
    for (name, text) in &inputs.files {
        write(&below(folder, name)?, &decoded(text)?)?;
    }
    if let Some(archive) = &inputs.archive {
        let unpacked = files(&decoded(archive)?, ArchiveLimits::BLUEPRINT)
            .map_err(|error| ContainerError(format!("the blueprint cannot be unpacked: {error}")))?;
        for (name, bytes) in unpacked {
            write(&below(folder, &name)?, &bytes)?;
        }
    }
    Ok(())
}

fn below(folder: &Path, name: &str) -> Result<PathBuf, ContainerError> {
    let path = Path::new(name);
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(folder.join(path));
    }
    Err(ContainerError(format!("the blueprint has a file {name:?}, which would lie outside of its folder")))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pod {
        folder: tempfile::TempDir,
    }

    impl Pod {
        fn new(inputs: &serde_json::Value, states: &[&[u8]]) -> Self {
            let pod = Self { folder: tempfile::tempdir().unwrap() };
            let text = inputs.to_string();
            let (first, second) = text.as_bytes().split_at(text.len() / 2);
            pod.put("internal/inputs/00001", second);
            pod.put("internal/inputs/00000", first);
            pod.put("internal/inputs/..data", b"of the kubelet");
            for (number, state) in states.iter().enumerate() {
                pod.put(&format!("internal/states/{number:05}"), state);
            }
            pod
        }

        fn put(&self, name: &str, bytes: &[u8]) {
            let path = self.folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }

        fn run(&self) -> Result<(), String> {
            let at = |name: &str| Some(self.folder.path().join(name).display().to_string());
            let environment = |name: &str| match name {
                "IMPORTS_PATH" => at("shared/imports/import.json"),
                "EXPORTS_PATH" => at("shared/exports/values"),
                "COMPONENT_DESCRIPTOR_PATH" => at("shared/component_descriptor.json"),
                "TARGET_PATH" => at("shared/targets/target.json"),
                "CONTENT_PATH" => at("shared/content"),
                "STATE_PATH" => at("shared/state"),
                "ORANGERY_INPUTS_DIR" => at("internal/inputs"),
                "ORANGERY_STATES_DIR" => at("internal/states"),
                "ORANGERY_TARGET_FILE" => at("target.json"),
                name if name.starts_with("DEPLOY_ITEM_") => Some("x".to_owned()),
                _ => None,
            };
            execute(&environment).map_err(|error| error.to_string())
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.folder.path().join("shared").join(name)).ok()
        }
    }

    #[test]
    fn con_14_the_program_finds_what_it_was_promised() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        archive.append_data(&mut header, "docs/b.md", &b"two"[..]).unwrap();
        let inputs = serde_json::json!({
            "imports": "{\"a\":1}", "componentDescriptors": "{}", "files": [["blueprint.yaml", BASE64.encode(b"one")]],
            "archive": BASE64.encode(&archive.into_inner().unwrap()),
        });
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("count"), "1").unwrap();
        let pieces = super::super::state::pack(state.path(), 1).unwrap();
        let (begin, end) = pieces.first().unwrap().split_at(10);
        let pod = Pod::new(&inputs, &[begin, end]);
        pod.put("target.json", b"null");
        pod.run().unwrap();
        let found = ["imports/import.json", "component_descriptor.json", "content/blueprint.yaml", "content/docs/b.md"];
        let found = found.map(|name| pod.text(name).unwrap());
        assert_eq!(found, ["{\"a\":1}", "{}", "one", "two"]);
        assert_eq!([pod.text("targets/target.json"), pod.text("state/count")], [Some("null".into()), Some("1".into())]);
        assert!(pod.folder.path().join("shared/exports").is_dir());
        assert_eq!(pod.text("exports/values"), None);
    }

    #[test]
    fn con_15_what_was_not_given_is_not_there_and_a_target_has_to_be() {
        let pod = Pod::new(&serde_json::json!({}), &[]);
        let error = pod.run().unwrap_err();
        assert!(error.contains("target.json cannot be read"), "{error}");
        pod.put("target.json", b"{}");
        pod.run().unwrap();
        assert_eq!([pod.text("imports/import.json"), pod.text("component_descriptor.json")], [None, None]);
        let pod = Pod::new(&serde_json::json!({"files": [["../a", ""]]}), &[]);
        pod.put("target.json", b"{}");
        assert!(pod.run().unwrap_err().contains("which would lie outside of its folder"));
    }
}
