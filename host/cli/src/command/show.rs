//! `orangery show`: what a job did, as it is on record (C-336), also as an in-toto statement (C-337).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kube::Client;
use orangery_api::job_history::RecordedWrite;
use orangery_core::name::{ApiVersion, JobId, Kind, Namespace};
use serde::Serialize;
use serde_json::{Value, json};

use super::plugin::push::signing_key;
use crate::{
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    form::OutputFormat,
    records::{JobRecordError, ShownRecord, all, of_job},
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery show 4f1c0e2a                   a job, by the begin of its id
  orangery show 4f1c0e2a -o json | jq '.items[].writes[]'
  orangery show 4f1c0e2a -o statement --key auditor.key > job.dsse.json

Each object is told by what it was before and after a write: absent, unread, going, or a digest under a key of the operator, by which
nobody can guess what it stands for. Digests of one deploy item can be compared with each other. Values are on no record.

A record counts where its seal is good: it is a signature by Ed25519. --operator-key has it be that of one operator.

-o statement prints an in-toto statement, with a subject for each deploy item; with --key it is in a DSSE envelope, signed with that key.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion    orangery.dev/v1alpha1
  kind          JobRecord
  job           the id
  items         a list: item {name, uid}, job, number, phase, begun, written, summary, hash, trigger, inputs, plans, clusters,
                writes [{cluster, apiVersion, kind, namespace, name, verb, before, after, isUnanswered, isAfterJob}],
                more, unaccounted, errors, exports";

/// What a statement is about.
const PREDICATE: &str = "https://orangery.dev/job-record/v1";
/// The type of a statement of in-toto.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// Its media type.
const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";

/// Shows what a job did.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Show {
    /// The job, by its id or the begin of that
    #[arg(value_name = "JOB")]
    pub id: String,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<RecordForm>,
    /// The private key that signs a statement: ECDSA on P-256, PKCS #8 in PEM
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Which records.
    #[command(flatten)]
    pub records: RecordFlagsOfOperator,
}

/// Which records are looked at.
#[derive(Clone, Debug, Args)]
pub struct RecordFlagsOfOperator {
    /// The public key of the operator that is meant, as `key` of its records has it, in base64
    #[arg(long, value_name = "KEY")]
    pub operator_key: Option<String>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordForm {
    /// One JSON document
    Json,
    /// The same as YAML
    Yaml,
    /// A statement of in-toto
    Statement,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownJob<'a> {
    api_version: ApiVersion,
    kind: Kind,
    job: &'a JobId,
    items: &'a [ShownRecord],
}

impl Show {
    /// Reads, and shows.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.records.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.records.scope.namespace(client);
        let found = all(client, &namespace).await?;
        let items = of_job(&found, &namespace, &self.id, self.records.operator_key.as_deref())?;
        let job = items.first().map_or_else(JobId::default, |item| item.job.clone());
        let document = ShownJob {
            api_version: "orangery.dev/v1alpha1".into(),
            kind: "JobRecord".into(),
            job: &job,
            items: &items,
        };
        match self.output {
            Some(RecordForm::Json) => OutputFormat::Json.write(&document, terminal)?,
            Some(RecordForm::Yaml) => OutputFormat::Yaml.write(&document, terminal)?,
            Some(RecordForm::Statement) => terminal.text(&(self.statement(&namespace, &document)? + "\n"))?,
            None => {
                for line in lines(&job, &items) {
                    terminal.line(line)?;
                }
            }
        }
        Ok(Exit::Ok)
    }

    fn statement(&self, namespace: &Namespace, job: &ShownJob<'_>) -> Result<String, CommandError> {
        let subjects: Vec<Value> = job.items.iter().map(|item| subject(namespace, item)).collect();
        let statement =
            json!({"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE, "predicate": job}).to_string();
        match &self.key {
            None => Ok(statement),
            Some(path) => {
                let key = signing_key(path)?;
                let envelope = key.envelope(STATEMENT_TYPE, statement.as_bytes()).map_err(JobRecordError::Sign)?;
                Ok(envelope)
            }
        }
    }
}

/// The record of a deploy item, by the digest of its content.
fn subject(namespace: &Namespace, item: &ShownRecord) -> Value {
    let hex = item.hash.strip_prefix("sha256:").unwrap_or(&item.hash);
    json!({"name": format!("deployitem/{namespace}/{}", item.item.name), "digest": {"sha256": hex}})
}

fn lines(job: &JobId, items: &[ShownRecord]) -> Vec<String> {
    let mut lines = vec![format!("job {job}")];
    let trigger = items.iter().find_map(|item| item.content.trigger.as_ref());
    lines.extend(trigger.map(|trigger| match trigger.manager.as_str() {
        "" => format!("  started by {}, of nobody that is known", trigger.cause),
        manager => format!("  started by {}, of field manager {manager}", trigger.cause),
    }));
    for item in items {
        lines.extend(item_lines(item));
    }
    lines
}

fn item_lines(item: &ShownRecord) -> Vec<String> {
    let (content, inputs) = (&item.content, &item.content.inputs);
    let errors = if content.errors.is_empty() { String::new() } else { format!(" ({})", content.errors.join(", ")) };
    let mut lines = vec![
        format!("  deploy item {}: {}{errors}, {}", item.item.name, item.phase, item.summary),
        format!("    record {}, from {} to {}", item.number, item.begun, item.written),
        format!("    by {} {}", inputs.plugin, inputs.plugin_digest),
    ];
    for (name, value) in [
        ("installation", Some(&inputs.installation)),
        ("component version", inputs.component_version.as_ref()),
        ("blueprint", inputs.blueprint.as_ref()),
        ("spec of installation", Some(&inputs.spec)),
        ("imports", inputs.imports.as_ref()),
        ("spec of deploy item", Some(&inputs.item)),
    ] {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| format!("    {name} {value}")));
    }
    for plan in &content.plans {
        let by = if plan.by.is_empty() { "somebody" } else { &plan.by };
        lines.push(format!("    plan {} {}, approved by {by}", plan.name, plan.plan_hash));
    }
    for (name, uid) in &content.clusters {
        lines.push(format!("    cluster {name} is {uid}"));
    }
    lines.extend(content.writes.iter().map(|write| format!("    {}", write_line(write))));
    if content.more > 0 {
        lines.push(format!("    and {} more, which are not listed", content.more));
    }
    for object in &content.unaccounted {
        lines.push(format!("    perhaps {} in {}: an operator ended before it could say", object.key, object.cluster));
    }
    lines.extend(content.exports.iter().map(|digest| format!("    exports {digest}")));
    lines
}

fn write_line(write: &RecordedWrite) -> String {
    let object = &write.object;
    let doubt = if write.is_unanswered { ", no answer is known" } else { "" };
    let later = if write.is_after_job { ", after the job" } else { "" };
    format!("{} {} in {}: {} → {}{doubt}{later}", write.verb, object.key, object.cluster, write.before, write.after)
}
