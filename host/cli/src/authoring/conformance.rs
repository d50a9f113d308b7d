//! What every deployer has to be able to do, asked of one from outside: black-box cases over configurations that it plans
//! (`docs/plugins/conformance.md`).

mod answers;
mod clusters;
mod configurations;
mod failures;
mod session;

use std::path::Path;

use orangery_core::yaml;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use session::{DeployerAnswer, DeployerUnderTest};

use self::session::{ConformanceSession, Shortfall};
use crate::{
    command_error::CommandError,
    folder::{self, FolderError},
};

/// One thing that is asked of a deployer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConformanceCase {
    /// Same request, same proposal.
    SameAnswer,
    /// The proposal passes the check that the host makes of it before it writes anything.
    WithinGrants,
    /// A second job over what the first has left changes nothing of it.
    Idempotent,
    /// At another time, with other randomness, the item is of the same objects.
    AnotherTime,
    /// What is no configuration is `invalid`.
    NoConfiguration,
    /// A field of another type is `invalid` with its place, or of no interest.
    WrongTypes,
    /// A field that nobody knows changes nothing, or is named.
    UnknownField,
    /// A configuration of any size is answered.
    HugeConfiguration,
    /// A cluster answers objects of other kinds.
    OtherKinds,
    /// A cluster answers objects that lack their fields.
    MissingFields,
    /// A cluster answers lists without an end.
    HugeLists,
    /// A cluster cannot be read now: that passes by itself.
    ClusterLater,
    /// A read is not granted: trying again does not help.
    ClusterDenied,
    /// An item is deleted of which nothing is there.
    NothingThere,
    /// A checkpoint of another version is answered.
    ForeignCheckpoint,
    /// A provider status of another version does not stop the item.
    ForeignStatus,
    /// An item is deleted whose deployment ended anywhere.
    UninstallAfterFailure,
    /// What it says of configurations without a cluster is what it plans.
    Validation,
    /// What asks to recover does.
    Recovery,
}

impl ConformanceCase {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 19] = [
        Self::SameAnswer,
        Self::WithinGrants,
        Self::Idempotent,
        Self::AnotherTime,
        Self::NoConfiguration,
        Self::WrongTypes,
        Self::UnknownField,
        Self::HugeConfiguration,
        Self::OtherKinds,
        Self::MissingFields,
        Self::HugeLists,
        Self::ClusterLater,
        Self::ClusterDenied,
        Self::NothingThere,
        Self::ForeignCheckpoint,
        Self::ForeignStatus,
        Self::UninstallAfterFailure,
        Self::Validation,
        Self::Recovery,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::SameAnswer => "same-answer",
            Self::WithinGrants => "within-grants",
            Self::Idempotent => "idempotent",
            Self::AnotherTime => "another-time",
            Self::NoConfiguration => "no-configuration",
            Self::WrongTypes => "wrong-types",
            Self::UnknownField => "unknown-field",
            Self::HugeConfiguration => "huge-configuration",
            Self::OtherKinds => "other-kinds",
            Self::MissingFields => "missing-fields",
            Self::HugeLists => "huge-lists",
            Self::ClusterLater => "cluster-later",
            Self::ClusterDenied => "cluster-denied",
            Self::NothingThere => "nothing-there",
            Self::ForeignCheckpoint => "foreign-checkpoint",
            Self::ForeignStatus => "foreign-status",
            Self::UninstallAfterFailure => "uninstall-after-failure",
            Self::Validation => "validation",
            Self::Recovery => "recovery",
        }
    }

    async fn ask(self, session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
        match self {
            Self::SameAnswer => answers::same_answer(session).await,
            Self::WithinGrants => answers::within_grants(session).await,
            Self::Idempotent => answers::idempotent(session).await,
            Self::AnotherTime => answers::another_time(session).await,
            Self::NoConfiguration => configurations::no_configuration(session).await,
            Self::WrongTypes => configurations::wrong_types(session).await,
            Self::UnknownField => configurations::unknown_field(session).await,
            Self::HugeConfiguration => configurations::huge(session).await,
            Self::OtherKinds => clusters::lied_to(session, clusters::Lie::OtherKinds).await,
            Self::MissingFields => clusters::lied_to(session, clusters::Lie::MissingFields).await,
            Self::HugeLists => clusters::lied_to(session, clusters::Lie::HugeLists).await,
            Self::ClusterLater => clusters::lied_to(session, clusters::Lie::Later).await,
            Self::ClusterDenied => clusters::lied_to(session, clusters::Lie::Denied).await,
            Self::NothingThere => failures::nothing_there(session).await,
            Self::ForeignCheckpoint => failures::foreign_checkpoint(session).await,
            Self::ForeignStatus => failures::foreign_status(session).await,
            Self::UninstallAfterFailure => failures::uninstall_after_failure(session).await,
            Self::Validation => configurations::validation(session).await,
            Self::Recovery => failures::recovery(session).await,
        }
    }
}

impl Serialize for ConformanceCase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A configuration that the deployer plans.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name in reports, and that of its item.
    pub name: String,
    /// The provider configuration.
    pub config: Value,
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CaseOutcome {
    /// The deployer does what is asked.
    Passed,
    /// It does not.
    Failed,
    /// The sample does not reach what is asked about.
    NotApplicable,
}

/// What came of one case with one sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseVerdict {
    /// The case.
    pub case: ConformanceCase,
    /// The sample.
    pub sample: String,
    /// How it ended.
    pub outcome: CaseOutcome,
    /// Why; none where it passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of all cases with all samples, in the order of the cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConformanceReport {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many could not be asked.
    pub not_applicable: usize,
    /// Each of them.
    pub cases: Vec<CaseVerdict>,
}

/// The name of the file among samples with the objects that the target has before the first job.
const TARGET: &str = "target.yaml";

/// The samples of a folder: each YAML file is a provider configuration; and the objects that the target has.
///
/// # Errors
/// The folder or a file of it cannot be read, or there is no sample.
pub fn samples(folder: &Path) -> Result<(Vec<Sample>, Vec<Value>), CommandError> {
    let (mut samples, mut target) = (Vec::new(), Vec::new());
    let files = match folder::files(folder) {
        Err(FolderError::Empty { .. }) => return Err(CommandError::NoSamples { path: folder.to_owned() }),
        files => files?,
    };
    for file in files {
        let text = folder::text_of(&file)?;
        let no_yaml = |error: yaml::YamlError| CommandError::Sample { path: file.clone(), why: error.to_string() };
        if file.file_name().is_some_and(|name| name == TARGET) {
            target.extend(yaml::documents(&text).map_err(no_yaml)?.into_iter().map(|document| document.value));
            continue;
        }
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        samples.push(Sample { name, config: yaml::decode(&text).map_err(no_yaml)? });
    }
    match samples.is_empty() {
        true => Err(CommandError::NoSamples { path: folder.to_owned() }),
        false => Ok((samples, target)),
    }
}

/// Asks everything of a deployer, with each sample as an item of this type.
///
/// # Errors
/// One sentence about an object of the target that is none.
pub async fn conform(
    deployer: &dyn DeployerUnderTest,
    item_type: &str,
    (samples, target): (&[Sample], &[Value]),
) -> Result<ConformanceReport, String> {
    let mut cases = Vec::new();
    for case in ConformanceCase::ALL {
        for sample in samples {
            let session = ConformanceSession::new(deployer, item_type, sample, target)?;
            let (outcome, reason) = match case.ask(&session).await {
                Ok(()) => (CaseOutcome::Passed, None),
                Err(Shortfall::Failed(reason)) => (CaseOutcome::Failed, Some(reason)),
                Err(Shortfall::NotApplicable(reason)) => (CaseOutcome::NotApplicable, Some(reason)),
            };
            cases.push(CaseVerdict { case, sample: sample.name.clone(), outcome, reason });
        }
    }
    let count = |outcome| cases.iter().filter(|verdict| verdict.outcome == outcome).count();
    let (passed, failed) = (count(CaseOutcome::Passed), count(CaseOutcome::Failed));
    Ok(ConformanceReport { passed, failed, not_applicable: count(CaseOutcome::NotApplicable), cases })
}

#[cfg(test)]
mod tests;
