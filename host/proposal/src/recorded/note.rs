//! What a recording says of itself beside the call (`recording.json`): whose it is, of which contract, and what its files were when they
//! were written (C-341).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The file of it.
pub const RECORDING: &str = "recording.json";

/// The component that was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedComponent {
    /// The name of its registration.
    pub name: String,
    /// Its version, as its registration gives it.
    pub version: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
}

/// What is said of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingNote {
    /// The level of the contract between the host and the component.
    pub contract: u32,
    /// The component.
    pub component: RecordedComponent,
    /// When the call ended, RFC 3339.
    pub at: String,
    /// The files beside this one, with `sha256:…` of each.
    pub files: BTreeMap<String, String>,
}

/// Why a recording cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// It is no recording.
    #[error(
        "{RECORDING} cannot be read: {0}; it was cut off or edited, so record the call again, or delete that file to have a case of your own"
    )]
    Note(String),
    /// It is of another contract.
    #[error(
        "it was recorded under level {0} of the contract, and this host has level {1}; replay it with the orangery that recorded it"
    )]
    Contract(u32, u32),
    /// A file is missing.
    #[error("{0} is missing; the recording was cut off, so record the call again")]
    Missing(String),
    /// A file is another one.
    #[error("{0} is not what was recorded; put it back, or delete {RECORDING} to have a case of your own")]
    Changed(String),
}

impl RecordingNote {
    /// Reads what a recording says of itself.
    ///
    /// # Errors
    /// [`RecordingError::Note`]
    pub fn read(text: &str) -> Result<Self, RecordingError> {
        serde_json::from_str(text).map_err(|error| RecordingError::Note(error.to_string()))
    }

    /// Whether its files, of which `digest` knows those that are there, are what was recorded, under the contract of this level.
    ///
    /// # Errors
    /// [`RecordingError`] about the first file that is not.
    pub fn check(&self, level: u32, digest: impl Fn(&str) -> Option<String>) -> Result<(), RecordingError> {
        if self.contract != level {
            return Err(RecordingError::Contract(self.contract, level));
        }
        for name in ["request.json", "response.json"] {
            if !self.files.contains_key(name) {
                return Err(RecordingError::Note(format!("it does not name {name}")));
            }
        }
        for (name, recorded) in &self.files {
            match digest(name) {
                None => return Err(RecordingError::Missing(name.clone())),
                Some(found) if found != *recorded => return Err(RecordingError::Changed(name.clone())),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_341_a_recording_is_of_one_contract_whole_and_as_it_was_written() {
        let files = json!({"request.json": "sha256:1", "response.json": "sha256:2"});
        let component = json!({"name": "mine", "version": "1", "digest": "sha256:3"});
        let whole = json!({"contract": 1, "component": component, "at": "2026-11-21T02:10:49Z", "files": files});
        let note = RecordingNote::read(&whole.to_string()).unwrap();
        assert_eq!(serde_json::to_value(&note).unwrap(), whole);
        let with = |request: Option<&'static str>| {
            move |name: &str| match name {
                "request.json" => request.map(str::to_owned),
                _ => Some("sha256:2".to_owned()),
            }
        };
        assert_eq!(note.check(1, with(Some("sha256:1"))), Ok(()));
        let why = |result: Result<(), RecordingError>| result.unwrap_err().to_string();
        assert_eq!(
            why(note.check(2, with(Some("sha256:1")))),
            "it was recorded under level 1 of the contract, and this host has level 2; replay it with the orangery that recorded it"
        );
        assert_eq!(
            why(note.check(1, with(None))),
            "request.json is missing; the recording was cut off, so record the call again"
        );
        assert_eq!(
            why(note.check(1, with(Some("sha256:0")))),
            "request.json is not what was recorded; put it back, or delete recording.json to have a case of your own"
        );
        let nameless = RecordingNote { files: BTreeMap::new(), ..note };
        assert!(why(nameless.check(1, with(None))).contains("it does not name request.json"));
        let cut = RecordingNote::read("{\"contract\": 1").unwrap_err().to_string();
        assert!(
            cut.starts_with("recording.json cannot be read: EOF") && cut.contains("it was cut off or edited"),
            "{cut}"
        );
    }
}
