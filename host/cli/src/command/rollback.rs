//! `orangery rollback`: back to what a job deployed (C-360). Carried out by `runtime`; described and written here.

use std::path::PathBuf;

use clap::Args;
use orangery_core::name::{ApiVersion, JobId, Kind, ObjectName};
use orangery_policy::Profile;
use serde::Serialize;

use super::{plan::TreePlan, show::RecordFlagsOfOperator};
use crate::{
    command_error::CommandError,
    default_policy::profile,
    form::OutputFormat,
    repositories::RepositoryFlags,
    restoration::{ImportChoice, NotRestored, Restoration},
    terminal::{Paint, Terminal},
    timeout::Timeout,
};

const HELP: &str = "\
Examples:
  orangery rollback web --to 4f1c0e2a                 show what going back to that job would do
  orangery rollback web --to 4f1c0e2a --yes           the same, and do it
  orangery rollback web --to 4f1c0e2a --yes --wait    and wait for the end of the job
  orangery rollback web --to 4f1c0e2a --imports now   the definition of then, with the imports of now

orangery history NAME lists the jobs. What one was made from is kept where the operator is started with --job-records: the spec of the
root with its blueprint, and the data of DataObjects that users have written. It lies in Secrets of the namespace, and counts by the
signature of the operator.

First the plan is shown, as orangery plan shows it, and what cannot be as it was: Targets, Secrets and ConfigMaps, what other
Installations export, components, and component versions by a name. Without --yes nothing is written. With it the DataObjects that
differ are written, then the spec, and a job is asked for: an ordinary one, which waits for approvals where these are required.
While DataObjects are written the root is suspended, so that no job begins in between.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion    orangery.dev/v1alpha1
  kind          Rollback
  job           the job that is gone back to
  imports       recorded or now
  fields        fields of the spec that change
  dataObjects   names of DataObjects that are written
  notRestored   what is not as it was then: a list of {what, why}
  plan          as orangery plan prints it
  isWritten     whether it was done";

/// Goes back to what a job deployed: shows the plan, and what cannot be as it was, and does it with --yes.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct RollbackArguments {
    /// The root installation
    pub name: ObjectName,
    /// The job, by its id or the begin of that
    #[arg(long = "to", value_name = "JOB")]
    pub id: String,
    /// With which imports
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub imports: ImportChoice,
    /// Write it, and ask for a job
    #[arg(long)]
    pub yes: bool,
    /// With --yes: wait until the job has ended, and show its tree on a terminal
    #[arg(long, requires = "yes", conflicts_with = "output")]
    pub wait: bool,
    /// With --wait: how long, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "wait")]
    pub timeout: Timeout,
    /// Leave the content of objects out
    #[arg(long)]
    pub brief: bool,
    /// How it is written [default: lines]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// What the operator takes for namespaces that no NamespacePolicy selects
    #[arg(long, value_name = "PROFILE", value_parser = profile())]
    pub default_policy: Option<Profile>,
    /// Which records.
    #[command(flatten)]
    pub records: RecordFlagsOfOperator,
    /// Where component versions come from.
    #[command(flatten)]
    pub repositories: RepositoryFlags,
}

/// What going back to a job does.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackPlan {
    api_version: ApiVersion,
    kind: Kind,
    job: JobId,
    imports: ImportChoice,
    fields: Vec<String>,
    data_objects: Vec<ObjectName>,
    not_restored: Vec<NotRestored>,
    plan: TreePlan,
    is_written: bool,
}

impl RollbackPlan {
    /// Of a job, with what its root would do.
    pub fn new((job, imports): (JobId, ImportChoice), restoration: &Restoration, plan: TreePlan) -> Self {
        Self {
            api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
            kind: Kind::from_static("Rollback"),
            job,
            imports,
            fields: restoration.fields.clone(),
            data_objects: restoration.data.keys().cloned().collect(),
            not_restored: restoration.not_restored.clone(),
            plan,
            is_written: false,
        }
    }

    /// Whether an item would fail.
    pub fn fails(&self) -> bool {
        self.plan.fails()
    }

    /// Shows it to people, before anything is written.
    ///
    /// # Errors
    /// [`CommandError::Output`]
    pub fn show(&self, brief: bool, terminal: &mut Terminal) -> Result<(), CommandError> {
        self.plan.write_lines(brief, terminal)?;
        let ink = terminal.ink();
        for field in &self.fields {
            terminal.painted(&ink.paint(Paint::Busy, &format!("~ {field} of the installation")))?;
        }
        for name in &self.data_objects {
            terminal.painted(&ink.paint(Paint::Busy, &format!("~ DataObject {name}")))?;
        }
        if self.fields.is_empty() && self.data_objects.is_empty() {
            terminal.line(format_args!("spec and DataObjects are those of job {} already", self.job))?;
        }
        if !self.not_restored.is_empty() {
            terminal.line("not as it was:")?;
        }
        for NotRestored { what, why } in &self.not_restored {
            terminal.painted(&ink.paint(Paint::Bad, &format!("  ! {what}: {why}")))?;
        }
        Ok(())
    }

    /// Writes it for programs.
    ///
    /// # Errors
    /// [`CommandError::Form`] and [`CommandError::Output`]
    pub fn write(mut self, form: OutputFormat, is_written: bool, terminal: &mut Terminal) -> Result<(), CommandError> {
        self.is_written = is_written;
        form.write(&self, terminal)
    }
}
