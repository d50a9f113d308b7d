//! Golden cases of a component, run in its sandbox: one folder each with a request and the answer that is expected
//! (`docs/plugins/testing.md`). The SDK runs the same natively.

mod assertions;
mod call_log;
mod deployer;
mod engine;
mod gate;
mod recorded_content;
mod recorded_reads;
pub mod replay;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_core::yaml;
use orangery_plugin::World;
use orangery_proposal::recorded::differences;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{authoring::loaded::LoadedComponent, command_error::CommandError, folder};

pub(crate) use assertions::Assertion;
pub use call_log::{CallLog, Coverage};
pub(crate) use deployer::MOST_CALLS;

/// As many differences of an answer are shown.
const MOST_DIFFERENCES: usize = 12;

/// What is done where an answer is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The case fails.
    Holds,
    /// The expectation is written anew.
    IsUpdated,
    /// There is none: what is answered is kept.
    IsAnswered,
}

/// Which function of an engine the cases of a folder call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKind {
    /// What the component is for.
    Cases,
    /// A look at a template without rendering it.
    Checks,
}

/// How one case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseReport {
    /// The case: the name of its folder.
    pub name: String,
    /// What is wrong, a sentence each; empty where it passed.
    pub problems: Vec<String>,
    /// The files that were written anew.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updated: Vec<String>,
}

/// The folders of the cases in a folder, sorted.
///
/// # Errors
/// The folder cannot be read, or has no cases.
pub fn folders(cases: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let unread = |cause| CommandError::Read { path: cases.to_owned(), cause };
    let mut folders = Vec::new();
    for entry in fs::read_dir(cases).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        // A link is no folder of these cases.
        let is_folder = entry.file_type().map_err(unread)?.is_dir();
        let path = entry.path();
        if is_folder && path.join("request.json").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    match folders.is_empty() {
        true => Err(CommandError::NoCases { path: cases.to_owned() }),
        false => Ok(folders),
    }
}

/// The cases in a folder, and those of the folder `checks` beside it, which look at templates without rendering them.
///
/// # Errors
/// As [`folders`].
pub fn all(cases: &Path) -> Result<Vec<(PathBuf, CaseKind)>, CommandError> {
    let of = |folder: &Path, kind| folders(folder).map(|found| found.into_iter().map(move |folder| (folder, kind)));
    let mut all: Vec<(PathBuf, CaseKind)> = of(cases, CaseKind::Cases)?.collect();
    let checks = cases.parent().unwrap_or(Path::new("")).join("checks");
    if checks.is_dir() && checks != cases {
        all.extend(of(&checks, CaseKind::Checks)?);
    }
    Ok(all)
}

/// Runs one case. What it called and what was answered goes into `log`.
pub async fn run(
    component: &LoadedComponent,
    folder: &Path,
    kind: CaseKind,
    expectation: Expectation,
    log: &Arc<CallLog>,
) -> CaseReport {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut case = Case::new(folder, expectation);
    case.call(component, kind, log).await;
    CaseReport { name, problems: case.problems, updated: case.updated }
}

/// A case while it runs.
struct Case<'a> {
    folder: &'a Path,
    expectation: Expectation,
    problems: Vec<String>,
    updated: Vec<String>,
    /// What was answered, where that is kept.
    answered: Option<Value>,
}

impl<'a> Case<'a> {
    fn new(folder: &'a Path, expectation: Expectation) -> Self {
        Self { folder, expectation, problems: Vec::new(), updated: Vec::new(), answered: None }
    }
}

impl Case<'_> {
    /// Calls the component. What is wrong stands in the problems then.
    async fn call(&mut self, component: &LoadedComponent, kind: CaseKind, log: &Arc<CallLog>) {
        let ended = match (component.world, kind) {
            (World::Deployer, _) => deployer::run(self, &component.plugin, log).await,
            (World::Templater, CaseKind::Cases) => engine::render(self, &component.plugin, log).await,
            (World::Templater, CaseKind::Checks) => engine::check(self, &component.plugin, log).await,
            (World::Gate, _) => gate::run(self, &component.plugin, log).await,
        };
        self.problems.extend(ended.err());
    }

    /// The text of a file; `None` where there is none.
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let content = folder::content_within(self.folder, name).map_err(|error| error.to_string())?;
        content.map(|content| String::from_utf8(content).map_err(|_| format!("{name} is no UTF-8"))).transpose()
    }

    /// `request.json` in its form.
    fn request<T: DeserializeOwned>(&self) -> Result<T, String> {
        let text = self.text("request.json")?.ok_or_else(|| "there is no request.json".to_owned())?;
        serde_json::from_str(&text).map_err(|error| format!("request.json is no request of this component: {error}"))
    }

    /// The documents of a YAML file; `None` where there is none.
    fn documents(&self, name: &str) -> Result<Option<Vec<Value>>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let documents = yaml::documents(&text).map_err(|error| format!("{name}: {error}"))?;
        Ok(Some(documents.into_iter().map(|document| document.value).collect()))
    }

    /// Holds an answer against `response.json`. A case that asserts something needs none.
    fn expect<T: Serialize + DeserializeOwned>(&mut self, answer: &T) -> Result<(), String> {
        let asserts = self.folder.join(assertions::FILE).is_file();
        let form_of =
            |value: &T| serde_json::to_value(value).map_err(|error| format!("the answer is no JSON: {error}"));
        let found = form_of(answer)?;
        if self.expectation == Expectation::IsAnswered {
            self.answered = Some(found);
            return Ok(());
        }
        let expected = match self.text("response.json")? {
            Some(text) => match serde_json::from_str::<T>(&text) {
                Ok(expected) => Some(form_of(&expected)?),
                Err(error) if self.expectation != Expectation::IsUpdated => {
                    return Err(format!("response.json is no response of this component: {error}"));
                }
                Err(_) => None,
            },
            None if asserts => return Ok(()),
            None => None,
        };
        if expected.as_ref() == Some(&found) {
            return Ok(());
        }
        if self.expectation == Expectation::IsUpdated {
            return self.update("response.json", &format!("{found:#}\n"));
        }
        match expected {
            Some(expected) => self.problems.extend(differences(&expected, &found, MOST_DIFFERENCES)),
            None => {
                self.problems.push("there is no response.json; write it with --update, and read what it wrote".into())
            }
        }
        Ok(())
    }

    /// Holds documents against those of a YAML file, where there is one; those of a case that has none are written with
    /// --update.
    fn expect_documents(&mut self, name: &str, found: &[Value]) -> Result<(), String> {
        let expected = self.documents(name)?;
        if expected.as_deref() == Some(found) || self.expectation == Expectation::IsAnswered {
            return Ok(());
        }
        if self.expectation == Expectation::IsUpdated {
            // JSON is YAML in which no text can be taken for something else, such as `yes`.
            let texts: Vec<String> = found.iter().map(|document| format!("{document:#}\n")).collect();
            return self.update(name, &texts.join("---\n"));
        }
        let expected = Value::from(expected.unwrap_or_default());
        let found = differences(&expected, &Value::from(found.to_vec()), MOST_DIFFERENCES);
        self.problems.extend(found.into_iter().map(|difference| format!("{name}: {difference}")));
        Ok(())
    }

    fn update(&mut self, name: &str, text: &str) -> Result<(), String> {
        folder::write_within(self.folder, name, text).map_err(|error| error.to_string())?;
        self.updated.push(name.to_owned());
        Ok(())
    }

    /// Holds the assertions of the case against these variables.
    fn assert(&mut self, variables: Value) -> Result<(), String> {
        if self.expectation == Expectation::IsAnswered {
            return Ok(());
        }
        let documents = self.documents(assertions::FILE)?;
        self.problems.extend(assertions::check(documents.unwrap_or_default(), variables)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expected(response: Option<&str>, answer: &Value, expectation: Expectation) -> (Vec<String>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("response.json");
        if let Some(response) = response {
            fs::write(&path, response).unwrap();
        }
        let mut case = Case::new(folder.path(), expectation);
        let ended = case.expect(answer);
        case.problems.extend(ended.err());
        (case.problems, fs::read_to_string(&path).ok().filter(|_| !case.updated.is_empty()))
    }

    #[test]
    fn c_254_an_answer_is_held_against_the_expected_one_or_written() {
        let answer = json!({"a": 1});
        let holds = |response| expected(response, &answer, Expectation::Holds);
        assert_eq!(holds(Some("{\"a\": 1}")), (vec![], None));
        assert_eq!(holds(Some("{\"a\": 2}")).0, ["/a: expected is 2, answered is 1"]);
        assert_eq!(holds(None).0, ["there is no response.json; write it with --update, and read what it wrote"]);
        assert!(holds(Some("{")).0[0].starts_with("response.json is no response of this component: EOF"));
        let updated = |response| expected(response, &answer, Expectation::IsUpdated);
        let written = (vec![], Some("{\n  \"a\": 1\n}\n".to_owned()));
        assert_eq!(updated(None), written);
        assert_eq!(updated(Some("{")), written);
        assert_eq!(updated(Some("{\"a\": 1}")), (vec![], None));
    }

    #[test]
    fn c_166_a_case_reads_and_writes_what_is_in_its_folder_alone() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let theirs = other.path().join("theirs");
        fs::write(&theirs, "{}").unwrap();
        let link = folder.path().join("response.json");
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        let outside = |name: &str| {
            format!(
                "{} leads out of its folder, of which nothing else is read or written; copy what it means into the folder, or name \
                 that itself",
                folder.path().join(name).display()
            )
        };
        let case = |expectation| Case::new(folder.path(), expectation);
        for expectation in [Expectation::Holds, Expectation::IsUpdated] {
            assert_eq!(case(expectation).expect(&json!({"a": 1})), Err(outside("response.json")));
        }
        let mut updated = case(Expectation::IsUpdated);
        assert_eq!(updated.update("response.json", "ours"), Err(outside("response.json")));
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "{}");
        for name in ["../x", "/etc/hostname"] {
            assert_eq!(updated.text(name), Err(outside(name)));
        }
        std::os::unix::fs::symlink(other.path(), folder.path().join("linked")).unwrap();
        fs::write(other.path().join("request.json"), "{}").unwrap();
        assert!(folders(folder.path()).is_err(), "a link is no folder of cases");
    }

    #[test]
    fn c_254_a_folder_without_cases_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("notes")).unwrap();
        assert!(folders(folder.path()).unwrap_err().to_string().contains("holds no case"));
        for name in ["b", "a"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("request.json"), "{}").unwrap();
        }
        assert_eq!(folders(folder.path()).unwrap(), ["a", "b"].map(|name| folder.path().join(name)));
    }
}
