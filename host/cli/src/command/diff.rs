//! `orangery diff`: what differs between two jobs on record (C-338).

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use kube::Client;
use orangery_api::job_history::{RecordedInputs, RecordedJob, RecordedKey};
use serde::Serialize;
use serde_json::{Value, json};

use super::show::RecordFlagsOfOperator;
use crate::{
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    records::{ShownRecord, all, of_job},
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery diff 4f1c0e2a 9b07d311          what differs in inputs, in what was written, and in results
  orangery diff 4f1c0e2a 9b07d311 -o json

Digests of one deploy item are compared: that something differs is told, and not how. An object that one of the jobs did not write is
told so: it found it as it should be, or it did not have it.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion     orangery.dev/v1alpha1
  kind           JobDifference
  jobs           the two ids
  differences    a list: item, what (item, input, object or result), name, and before and after, null where there is none";

/// Shows what differs between two jobs.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Diff {
    /// The job that is compared, by its id or the begin of that
    #[arg(value_name = "JOB")]
    pub id: String,
    /// The job that it is compared with
    #[arg(value_name = "JOB")]
    pub other: String,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Which records.
    #[command(flatten)]
    pub records: RecordFlagsOfOperator,
}

/// Something that differs.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobDifference {
    item: String,
    what: &'static str,
    name: String,
    before: Option<String>,
    after: Option<String>,
}

impl Diff {
    /// Reads, and compares.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.records.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.records.scope.namespace(client);
        let found = all(client, &namespace).await?;
        let of = |id: &str| of_job(&found, &namespace, id, self.records.operator_key.as_deref());
        let (before, after) = (of(&self.id)?, of(&self.other)?);
        let differences = differences(&before, &after);
        let id = |records: &[ShownRecord]| records.first().map(|record| record.job.clone());
        if let Some(form) = self.output {
            let document = json!({
                "apiVersion": "orangery.dev/v1alpha1",
                "kind": "JobDifference",
                "jobs": [id(&before), id(&after)],
                "differences": differences,
            });
            form.write(&document, terminal)?;
            return Ok(Exit::Ok);
        }
        let mut told = None;
        for JobDifference { item, what, name, before, after } in &differences {
            if told != Some(item) {
                terminal.line(format_args!("deploy item {item}"))?;
                told = Some(item);
            }
            let word = |side: &Option<String>| side.clone().unwrap_or_else(|| "none".to_owned());
            terminal.line(format_args!("  {what} {name}: {} → {}", word(before), word(after)))?;
        }
        if differences.is_empty() {
            terminal.line("nothing differs in what is on record of both jobs")?;
        }
        Ok(Exit::Ok)
    }
}

fn differences(before: &[ShownRecord], after: &[ShownRecord]) -> Vec<JobDifference> {
    let by_name = |records: &[ShownRecord]| -> BTreeMap<String, ShownRecord> {
        records.iter().map(|record| (record.item.name.clone(), record.clone())).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        let tell = |what, of: String, before: Option<String>, after: Option<String>| {
            (before != after).then(|| JobDifference { item: name.clone(), what, name: of, before, after })
        };
        let (Some(earlier), Some(later)) = (before.get(name), after.get(name)) else {
            let side = |records: &BTreeMap<String, ShownRecord>| records.get(name).map(|record| record.phase.clone());
            differences.extend(tell("item", name.clone(), side(&before), side(&after)));
            continue;
        };
        // Digests of another item of the same name say nothing of each other.
        differences.extend(tell(
            "item",
            "uid".to_owned(),
            Some(earlier.item.uid.clone()),
            Some(later.item.uid.clone()),
        ));
        let (inputs, others) = (fields(&earlier.content.inputs), fields(&later.content.inputs));
        let of = |inputs: &BTreeMap<String, String>, field: &String| inputs.get(field).cloned();
        let all: BTreeSet<&String> = inputs.keys().chain(others.keys()).collect();
        differences.extend(
            all.into_iter().filter_map(|field| tell("input", field.clone(), of(&inputs, field), of(&others, field))),
        );
        let (objects, others) = (last_writes(&earlier.content), last_writes(&later.content));
        let all: BTreeSet<&RecordedKey> = objects.keys().chain(others.keys()).collect();
        differences.extend(all.into_iter().filter_map(|key| {
            let object = format!("{} in {}", key.key, key.cluster);
            tell("object", object, objects.get(key).cloned(), others.get(key).cloned())
        }));
        let results = |record: &ShownRecord| {
            [
                ("phase", Some(record.phase.clone())),
                ("errors", Some(record.content.errors.join(", "))),
                ("exports", record.content.exports.clone()),
            ]
        };
        let both = results(earlier).into_iter().zip(results(later));
        differences.extend(both.filter_map(|((of, before), (_, after))| tell("result", of.to_owned(), before, after)));
    }
    differences
}

fn fields(inputs: &RecordedInputs) -> BTreeMap<String, String> {
    let Value::Object(fields) = json!(inputs) else { return BTreeMap::new() };
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// What has become of each object that a job has written.
fn last_writes(job: &RecordedJob) -> BTreeMap<RecordedKey, String> {
    job.writes.iter().map(|write| (write.object.clone(), write.after.clone())).collect()
}
