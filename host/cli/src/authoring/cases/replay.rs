//! Recorded calls, made again with another component: what it answers, held against what was answered (C-342).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_core::digest::sha256;
use orangery_plugin::{LEVEL, World};
use orangery_proposal::recorded::{RECORDING, RecordingNote, replayed_differences};
use serde::Serialize;
use serde_json::Value;

use super::{CallLog, Case, CaseKind, Expectation, MOST_DIFFERENCES, folders};
use crate::{authoring::loaded::LoadedComponent, command_error::CommandError, folder};

/// How a call ended that was made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// The recording: the name of its folder.
    pub name: String,
    /// How it ended.
    pub outcome: ReplayOutcome,
    /// The differences of the answers, or why there are none to tell, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

/// How an answer stands to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ReplayOutcome {
    /// It is the same.
    Same,
    /// It is another one.
    Different,
    /// The call was not made, or had no answer.
    NotReplayed,
}

impl ReplayReport {
    fn of(name: String, differences: Result<Vec<String>, String>) -> Self {
        let (outcome, differences) = match differences {
            Ok(differences) if differences.is_empty() => (ReplayOutcome::Same, differences),
            Ok(differences) => (ReplayOutcome::Different, differences),
            Err(why) => (ReplayOutcome::NotReplayed, vec![why]),
        };
        Self { name, outcome, differences }
    }
}

/// The recordings that paths name: folders of recordings, and recordings themselves.
///
/// # Errors
/// A folder cannot be read, or holds none.
pub fn recordings(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    for path in paths {
        if path.join("request.json").is_file() {
            found.push(path.clone());
        } else {
            found.extend(folders(path)?);
        }
    }
    Ok(found)
}

/// Makes a recorded call again, and says how the answer differs from the recorded one.
pub async fn replay(component: &LoadedComponent, recording: &Path) -> ReplayReport {
    ReplayReport::of(name_of(recording), differences(component, recording).await)
}

/// Makes one call with two components, and says how their answers differ.
pub async fn compare((old, new): (&LoadedComponent, &LoadedComponent), case: &Path) -> ReplayReport {
    let compared = async {
        check(case)?;
        let (recorded, _) = answer(old, case).await.map_err(|why| format!("the old component: {why}"))?;
        let (found, problems) = answer(new, case).await.map_err(|why| format!("the new component: {why}"))?;
        let differences = orangery_proposal::recorded::differences(&recorded, &found, MOST_DIFFERENCES);
        Ok([differences, problems].concat())
    };
    ReplayReport::of(name_of(case), compared.await)
}

/// What is known of a recording beside its call; `None` of a case that nobody recorded.
///
/// # Errors
/// One sentence: it is no recording, or not as it was written.
pub fn note(recording: &Path) -> Result<Option<RecordingNote>, String> {
    let content = |name: &str| folder::content_within(recording, name).map_err(|error| error.to_string());
    let Some(text) = content(RECORDING)? else { return Ok(None) };
    RecordingNote::read(&String::from_utf8_lossy(&text)).map(Some).map_err(|error| error.to_string())
}

/// Whether the files of a recording are what was recorded, under the contract of this host.
fn check(recording: &Path) -> Result<(), String> {
    let Some(note) = note(recording)? else { return Ok(()) };
    let mut unread = None;
    let digest = |name: &str| match folder::content_within(recording, name) {
        Ok(content) => content.map(|content| sha256(&content)),
        Err(error) => Some(error.to_string()),
    };
    // What cannot be read is told as it is, and not as a file that somebody has changed.
    for name in note.files.keys() {
        unread = unread.or(folder::content_within(recording, name).err());
    }
    match unread {
        Some(error) => Err(error.to_string()),
        None => note.check(LEVEL, digest).map_err(|error| error.to_string()),
    }
}

async fn differences(component: &LoadedComponent, recording: &Path) -> Result<Vec<String>, String> {
    check(recording)?;
    let case = Case::new(recording, Expectation::IsAnswered);
    let document = |name: &str| -> Result<Value, String> {
        let text = case.text(name)?.ok_or_else(|| format!("there is no {name}; record the call again"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name} is no JSON: {error}; record the call again"))
    };
    let (request, recorded) = (document("request.json")?, document("response.json")?);
    let (found, problems) = answer(component, recording).await?;
    Ok([replayed_differences(&request, &recorded, &found, MOST_DIFFERENCES), problems].concat())
}

/// What a component answers to a case, and why the host would not carry that out.
async fn answer(component: &LoadedComponent, case: &Path) -> Result<(Value, Vec<String>), String> {
    let mut case = Case::new(case, Expectation::IsAnswered);
    case.call(component, CaseKind::Cases, &Arc::new(CallLog::default())).await;
    match case.answered {
        Some(answered) => Ok((answered, case.problems)),
        None => Err(case.problems.join("; ")),
    }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether a recording is of the world of a component, and of an item type that it is registered for; what is registered for nothing of
/// its own is asked all.
pub fn is_claimed(component: &LoadedComponent, recording: &Path) -> bool {
    let text = folder::content_within(recording, "request.json").ok().flatten().unwrap_or_default();
    let request: Value = serde_json::from_slice(&text).unwrap_or_default();
    // What cannot be told is asked, so that it is told why it cannot be.
    if world_of(&request).is_some_and(|world| world != component.world) {
        return false;
    }
    if component.world != World::Deployer || !component.is_registered {
        return true;
    }
    match request.pointer("/item/itemType").and_then(Value::as_str) {
        Some(item_type) => component.types.iter().any(|claimed| claimed == item_type),
        None => true,
    }
}

/// Of which world a call is, by what its request has.
fn world_of(request: &Value) -> Option<World> {
    let worlds = [("item", World::Deployer), ("request", World::Templater), ("question", World::Gate)];
    worlds.into_iter().find(|(field, _)| request.get(field).is_some()).map(|(_, world)| world)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }

    #[test]
    fn c_341_a_recording_that_is_cut_off_edited_huge_or_of_another_contract_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(check(path), Ok(()), "a case that nobody recorded");
        let note = |contract: u32| {
            let files = json!({"request.json": sha256(b"{}"), "response.json": sha256(b"[]")});
            let component = json!({"name": "mine", "version": "1", "digest": "sha256:3"});
            json!({"contract": contract, "component": component, "at": "now", "files": files}).to_string()
        };
        write(path, &[("request.json", "{}"), ("response.json", "[]"), (RECORDING, &note(LEVEL))]);
        assert_eq!(check(path), Ok(()));
        let told = |files: &[(&str, &str)]| {
            write(path, files);
            check(path).unwrap_err()
        };
        assert!(told(&[("request.json", "{ }")]).starts_with("request.json is not what was recorded; put it back"));
        assert!(told(&[(RECORDING, &note(LEVEL + 1))]).starts_with("it was recorded under level 2 of the contract"));
        assert!(told(&[(RECORDING, "{\"contract\": 1,")]).starts_with("recording.json cannot be read: EOF"));
        fs::remove_file(path.join("request.json")).unwrap();
        assert!(told(&[(RECORDING, &note(LEVEL))]).starts_with("request.json is missing; the recording was cut off"));
        // A gigabyte that takes no place on the disk.
        fs::File::create(path.join("request.json")).unwrap().set_len(1 << 30).unwrap();
        let huge = check(path).unwrap_err();
        assert!(huge.ends_with("request.json has more than 64 MiB; split it"), "{huge}");
        fs::remove_file(path.join("request.json")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", path.join("request.json")).unwrap();
        assert!(check(path).unwrap_err().contains("leads out of its folder"));
    }

    #[test]
    fn c_342_a_path_is_a_recording_or_a_folder_of_some() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "notes"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        ["a", "b"].iter().for_each(|name| write(&folder.path().join(name), &[("request.json", "{}")]));
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        assert_eq!(recordings(&[b.clone(), folder.path().to_owned()]).unwrap(), [b.clone(), a, b]);
        assert!(recordings(&[folder.path().join("notes")]).unwrap_err().to_string().contains("holds no case"));
    }

    #[test]
    fn c_342_a_report_says_whether_answers_are_the_same() {
        let report = |differences| ReplayReport::of("a".to_owned(), differences);
        let same = report(Ok(vec![]));
        assert_eq!(json!(same), json!({"name": "a", "outcome": "same"}));
        let different = json!({"name": "a", "outcome": "different", "differences": ["x"]});
        assert_eq!(json!(report(Ok(vec!["x".to_owned()]))), different);
        let not_replayed = json!({"name": "a", "outcome": "notReplayed", "differences": ["why"]});
        assert_eq!(json!(report(Err("why".to_owned()))), not_replayed);
    }

    #[test]
    fn c_348_a_recording_is_of_the_world_that_its_request_is_of() {
        let worlds = ["item", "request", "question", "other"].map(|field| world_of(&json!({field: {}})));
        assert_eq!(worlds, [Some(World::Deployer), Some(World::Templater), Some(World::Gate), None]);
        assert_eq!(world_of(&Value::Null), None);
    }
}
