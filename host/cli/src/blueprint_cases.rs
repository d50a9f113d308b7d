//! Cases of a blueprint: files of the folder `tests` beside it, each with imports and what is to come of them
//! (`docs/blueprint-tests.md`). They are rendered as `orangery render` renders, or carried out by the operator of a server.

mod case;
mod coverage;
pub(crate) mod junit;
mod report;
mod server;
mod snapshot;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_api::installation::InstallationSpec;
use orangery_blueprint::{plugins::Plugins, template_engine::JobRandomness};
use orangery_ocm::Files;

use self::case::{BlueprintCase, CasePlace};
pub(crate) use self::{
    coverage::{CoverageMeasure, LineCoverage, TemplateCoverage, counted},
    report::BlueprintCaseReport,
    server::ServerBlueprint,
    snapshot::SnapshotUse,
};
use crate::{
    command_error::CommandError,
    folder::{self, FolderError},
    form,
    offline::{NamespaceObjects, Offline, OfflineVersions, RenderSubject, RenderedInstallation, seed},
};

/// As many cases a folder has at most.
const MOST_CASES: usize = 1_000;

/// The files of the cases in a folder, by name.
///
/// # Errors
/// The folder cannot be read, has no cases, or too many.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let none = || CommandError::NoBlueprintCases { path: folder.to_owned() };
    match folder::files(folder) {
        Ok(files) if files.len() > MOST_CASES => {
            Err(CommandError::ManyBlueprintCases { path: folder.to_owned(), count: files.len(), most: MOST_CASES })
        }
        Ok(files) => Ok(files),
        Err(FolderError::Missing { .. } | FolderError::Empty { .. }) => Err(none()),
        Err(error) => Err(error.into()),
    }
}

/// A blueprint whose cases are rendered.
pub(crate) struct TestedBlueprint<'a> {
    /// The engines.
    pub(crate) plugins: &'a dyn Plugins,
    /// Where component versions come from.
    pub(crate) versions: OfflineVersions,
    /// Its files.
    pub(crate) files: Arc<dyn Files>,
    /// The Installation that it is the blueprint of.
    pub(crate) spec: InstallationSpec,
}

impl TestedBlueprint<'_> {
    /// Renders one case, and holds what came of it against what the case expects.
    pub(crate) async fn run(&self, file: &Path, snapshots: SnapshotUse) -> BlueprintCaseReport {
        let mut report = BlueprintCaseReport::of(file);
        if let Err(problem) = self.outcome(file, snapshots, &mut report).await {
            report.problems.push(problem);
        }
        report
    }

    async fn outcome(
        &self,
        file: &Path,
        snapshots: SnapshotUse,
        report: &mut BlueprintCaseReport,
    ) -> Result<(), String> {
        let case = BlueprintCase::read(file)?;
        let rendered = self.rendered(&case).await;
        report.problems = case.problems(CasePlace::Here, rendered.as_ref().map_err(String::as_str));
        let Ok(rendered) = rendered else { return Ok(()) };
        if case.has_snapshot {
            let text = form::yaml(&rendered).map_err(|error| error.to_string())?;
            let folder = file.parent().unwrap_or(Path::new(""));
            let outcome = snapshot::compare(folder, &report.name, &text, snapshots)?;
            report.problems.extend(outcome.problems);
            report.updated.extend(outcome.updated);
        }
        Ok(())
    }

    async fn rendered(&self, case: &BlueprintCase) -> Result<RenderedInstallation, String> {
        let mut offline = Offline {
            plugins: self.plugins,
            versions: self.versions.clone(),
            rng: JobRandomness { now: case.now, seed: seed(&case.seed) },
            namespace: case.namespace.clone(),
            world: NamespaceObjects::default(),
            imports: case.imports.clone(),
            rendered: 0,
            opaque: None,
        };
        let subject = RenderSubject {
            name: case.name.to_string(),
            spec: self.spec.clone(),
            files: Some(Arc::clone(&self.files)),
            given: case.given.clone(),
        };
        let mut all = offline.roots(vec![subject]).await.map_err(|error| error.to_string())?;
        all.pop().ok_or_else(|| "nothing is rendered".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_303_limits_a_folder_has_cases_and_not_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let tests = folder.path().join("tests");
        let why = || files(&tests).unwrap_err().to_string();
        let none = format!("{} holds no case; a case is a YAML file in it: docs/blueprint-tests.md", tests.display());
        assert_eq!(why(), none);
        std::fs::create_dir(&tests).unwrap();
        assert_eq!(why(), none);
        for number in 0..=MOST_CASES {
            std::fs::write(tests.join(format!("{number}.yaml")), "").unwrap();
        }
        let many = format!(
            "{} has 1001 cases, 1000 are allowed; split the blueprint, or name another folder",
            tests.display()
        );
        assert_eq!(why(), many);
        std::fs::remove_file(tests.join("0.yaml")).unwrap();
        assert_eq!(files(&tests).unwrap().len(), MOST_CASES);
    }
}
