//! `orangery history`: the jobs of an Installation that are on record (C-336).

use std::collections::BTreeMap;

use clap::Args;
use kube::Client;
use orangery_core::name::{ApiVersion, JobId, Kind};
use serde::Serialize;

use crate::{
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    form::OutputFormat,
    records::{FoundRecord, all, of_name, phase_of},
    table,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery history web                     the jobs of the Installation web, with all that is below it
  orangery history deployitem/web-x7k2     those of one deploy item
  orangery history web -o json | jq '.jobs[].job'

Jobs are on record where the operator is started with --job-records; it keeps so many of each deploy item, and the last ones of those that
are gone. orangery show JOB shows one of them, orangery diff JOB JOB what differs.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion    orangery.dev/v1alpha1
  kind          JobHistory
  jobs          a list, the oldest first: job, begun, written, items, phases {phase: items}, trigger {cause, manager},
                summaries {deploy item: what was written}, broken: deploy items whose record is not as the operator wrote it";

/// Shows which jobs of an Installation are on record.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct History {
    /// A root Installation, or a deploy item; installation/NAME or deployitem/NAME where both have the name
    pub name: String,
    /// How it is written [default: a table]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The jobs, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownHistory<'a> {
    api_version: ApiVersion,
    kind: Kind,
    jobs: Vec<HistoryJob<'a>>,
}

/// One job.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryJob<'a> {
    job: &'a JobId,
    begun: &'a str,
    written: &'a str,
    items: usize,
    phases: BTreeMap<&'a str, usize>,
    trigger: ShownTrigger,
    summaries: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<&'a str>,
}

#[derive(Default, Serialize)]
struct ShownTrigger {
    cause: String,
    manager: String,
}

impl History {
    /// Reads, and shows.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let found = of_name(all(client, &namespace).await?, &namespace, &self.name)?;
        let jobs = jobs(&found);
        match self.output {
            Some(form) => {
                let document =
                    ShownHistory { api_version: "orangery.dev/v1alpha1".into(), kind: "JobHistory".into(), jobs };
                form.write(&document, terminal)?;
            }
            None => {
                for line in table(&jobs) {
                    terminal.line(line)?;
                }
            }
        }
        Ok(Exit::Ok)
    }
}

/// The records by job, the oldest job first.
fn jobs(found: &[FoundRecord]) -> Vec<HistoryJob<'_>> {
    let mut jobs: Vec<HistoryJob<'_>> = Vec::new();
    for FoundRecord { item, record, is_sealed, .. } in found {
        let id = &record.job_id;
        let place = jobs.iter().position(|job| job.job == id);
        let place = place.unwrap_or_else(|| {
            jobs.push(HistoryJob {
                job: id,
                begun: &record.begun,
                written: "",
                items: 0,
                phases: BTreeMap::new(),
                trigger: ShownTrigger::default(),
                summaries: BTreeMap::new(),
                broken: Vec::new(),
            });
            jobs.len() - 1
        });
        let Some(job) = jobs.get_mut(place) else { continue };
        job.items += 1;
        job.written = job.written.max(&record.written);
        if !is_sealed {
            job.broken.push(&item.name);
            continue;
        }
        *job.phases.entry(&record.phase).or_default() += 1;
        job.summaries.insert(&item.name, &record.summary);
        if let Some(trigger) = record.recorded().ok().and_then(|recorded| recorded.trigger) {
            job.trigger = ShownTrigger { cause: trigger.cause, manager: trigger.manager };
        }
    }
    jobs
}

fn table(jobs: &[HistoryJob<'_>]) -> Vec<String> {
    let mut rows = vec![["JOB", "BEGUN", "TRIGGER", "ITEMS", "PHASE"].map(str::to_owned)];
    for job in jobs {
        let trigger = match (job.trigger.cause.as_str(), job.trigger.manager.as_str()) {
            ("", _) => "unknown".to_owned(),
            (cause, "") => cause.to_owned(),
            (cause, manager) => format!("{cause} by {manager}"),
        };
        let mut phase = phase_of(&job.phases);
        if !job.broken.is_empty() {
            phase = format!("{phase} ({} not as the operator wrote it)", job.broken.len()).trim_start().to_owned();
        }
        rows.push([job.job.to_string(), job.begun.to_owned(), trigger, job.items.to_string(), phase]);
    }
    table::lines(&rows, [false; 5])
}
