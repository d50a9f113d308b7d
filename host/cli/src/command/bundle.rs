//! `orangery bundle`: an archive for support, without what is secret (C-400, C-401).

mod operator;

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::{Args, value_parser};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use orangery_api::{GROUP, namespace_policy::POLICY_GROUP};
use orangery_core::{
    error::cleaned,
    masking::{MOST_MASKED_BYTES, Masker, SHORTEST_MASKED},
    name::{Kind, Namespace, ObjectName},
};
use serde_json::Value;

use super::inspect;
use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    listed,
    operator_metrics::MetricsFlags,
    records,
    support::{SupportFiles, redacted, secret_outline, secret_values},
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery bundle                          of the namespace, into orangery-bundle.tar.gz
  orangery bundle -A --into case-4711.tar.gz
  tar -xzf orangery-bundle.tar.gz && cat orangery-bundle/README.txt

In it are the objects of the operator's kinds, events about them, records of jobs, the Leases, pods and the end of the logs of the operator, its
metrics, and versions. What the caller may not read is left out, and README.txt says what and why.

No value of a Secret is in it: values of DataObjects, Targets, blueprints, configurations and annotations of others are hidden by their
place, managed fields are left out, and in messages and logs the values of Secrets and the credentials of Targets are masked. To mask them the
Secrets of the namespaces are read; where that is not allowed, messages are as the operator has masked them. Names are not hidden: look
through it before you give it to somebody.";

const SECRET: &Kind = &Kind::from_static("Secret");
const TARGET: &Kind = &Kind::from_static("Target");
const DATA_OBJECT: &Kind = &Kind::from_static("DataObject");

/// Objects that are asked for at once.
const PAGE: u32 = 100;

/// The most namespaces whose objects are in an archive.
const MOST_NAMESPACES: usize = 500;

/// The most namespaces that a note names.
const MOST_NAMED: usize = 10;

/// The most bytes of values that are kept, of which the short ones are looked for.
const MOST_VALUES: usize = 4 << 20;

/// Writes an archive for support: objects, events, records, logs and versions, without what is secret.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct SupportBundle {
    /// The file that is written, which must not be there yet
    #[arg(long, value_name = "FILE", default_value = "orangery-bundle.tar.gz")]
    pub into: PathBuf,
    /// Of all namespaces with Installations or DeployItems
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// How much may be in it before it is compressed, in mebibytes
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = value_parser!(u16).range(1..=1024))]
    pub size: u16,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
    /// Where figures of the operator come from.
    #[command(flatten)]
    pub figures: MetricsFlags,
}

impl SupportBundle {
    /// Gathers, and writes.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let archive = ArchiveFile::create(&self.into)?;
        let mut files = SupportFiles::new(usize::from(self.size) << 20);
        let namespaces = self.namespaces(client, &mut files).await?;
        let mut values = ValuesOfAll::default();
        operator::versions(client, &mut files).await;
        for definition in orangery_api::crds().iter().filter(|definition| definition.spec.scope == "Cluster") {
            let path = path(definition, None);
            self.objects(
                (client, &path),
                (&definition.spec.names.kind.as_str().into(), "cluster"),
                &Masker::default(),
                &mut files,
            )
            .await;
        }
        for namespace in &namespaces {
            values.add(namespace, self.gather_within(client, namespace, &mut files).await);
        }
        let (looked_for, left) = values.looked_for();
        let masker = Masker::of_as_many_as_can_be(looked_for);
        for note in unmasked(&left, (!self.all_namespaces).then_some(&namespaces)) {
            files.note(note);
        }
        operator::operators(client, (&self.figures, &masker), &mut files).await;
        files.mask_notes(&masker);
        archive.write(&files.archive()?)?;
        for note in files.notes() {
            terminal.note(format_args!("not in it: {note}"))?;
        }
        terminal
            .line(format_args!("{} is written; look through it before you give it to somebody", self.into.display()))?;
        Ok(Exit::Ok)
    }

    /// The namespaces whose objects are gathered.
    async fn namespaces(&self, client: &Client, files: &mut SupportFiles) -> Result<Vec<Namespace>, CommandError> {
        if !self.all_namespaces {
            return Ok(vec![self.scope.namespace(client)]);
        }
        let objects = inspect::read(client, &Namespace::default()).await?;
        let of_installations = objects.installations.iter().filter_map(|object| object.metadata.namespace.clone());
        let of_items = objects.deploy_items.iter().filter_map(|object| object.metadata.namespace.clone());
        let mut namespaces: Vec<Namespace> = of_installations.chain(of_items).map(Namespace::from).collect();
        namespaces.sort();
        namespaces.dedup();
        files.note(
            "namespaces that have neither an Installation nor a DeployItem: name one with --namespace".to_owned(),
        );
        if namespaces.len() > MOST_NAMESPACES {
            files.note(format!("{} more namespaces: name one with --namespace", namespaces.len() - MOST_NAMESPACES));
            namespaces.truncate(MOST_NAMESPACES);
        }
        Ok(namespaces)
    }

    /// What there is in a namespace: the values that are in no message of it.
    async fn gather_within(&self, client: &Client, namespace: &Namespace, files: &mut SupportFiles) -> Vec<String> {
        let values = self.values(client, namespace, files).await;
        let masker = Masker::of_as_many_as_can_be(values.iter().map(String::as_str));
        for definition in orangery_api::crds().iter().filter(|definition| definition.spec.scope == "Namespaced") {
            // Its content is packed: what is in it is told by records.
            if definition.spec.names.kind != "JobHistory" {
                let path = path(definition, Some(namespace));
                let folder = format!("namespaces/{namespace}");
                self.objects((client, &path), (&definition.spec.names.kind.as_str().into(), &folder), &masker, files)
                    .await;
            }
        }
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let folder = format!("namespaces/{namespace}");
        self.objects((client, &path), (&Kind::from_static("Event"), &folder), &masker, files).await;
        match records::all(client, namespace).await {
            Err(error) => {
                files.note(format!("records of namespace {namespace}: {}", masker.mask(&error.to_string())));
            }
            Ok(found) => {
                let lines = found.iter().map(|record| match record.read(None) {
                    Ok(shown) => masked_line(&serde_json::to_value(shown).unwrap_or(Value::Null), &masker),
                    Err(error) => masked_line(&Value::String(error.to_string()), &masker),
                });
                files.add(&format!("namespaces/{namespace}/records.jsonl"), &lines.collect::<String>());
            }
        }
        values
    }

    /// Values that are looked for in messages. Secrets themselves are told by their names.
    async fn values(&self, client: &Client, namespace: &Namespace, files: &mut SupportFiles) -> Vec<String> {
        let (mut values, mut outlines) = (SecretTexts::default(), String::new());
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        let read = listed::each_value(client, &secrets, PAGE, |secret| {
            outlines.push_str(&format!("{}\n", secret_outline(&secret)));
            // Whole manifests, packed: no message quotes them.
            if secret.get("type").and_then(Value::as_str) != Some("helm.sh/release.v1") {
                values.take(SECRET, &secret);
            }
            ControlFlow::Continue(())
        });
        match read.await {
            Ok(()) => files.add(&format!("namespaces/{namespace}/secrets.jsonl"), &outlines),
            Err(error) => files.note(format!(
                "the names of Secrets of namespace {namespace}, so that messages are as the operator has masked them: {}",
                cause_of(SECRET, &error)
            )),
        }
        for (kind, plural) in [(TARGET, "targets"), (DATA_OBJECT, "dataobjects")] {
            let path = format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/{plural}");
            let take = |object: Value| {
                values.take(kind, &object);
                ControlFlow::Continue(())
            };
            // What cannot be read is noted where it goes into the archive.
            let _noted_there = listed::each_value(client, &path, PAGE, take).await;
        }
        if values.bytes > MOST_MASKED_BYTES {
            files.note(format!(
                "masks of all values of namespace {namespace}: its Secrets and Targets have {} bytes of them, of which {MOST_MASKED_BYTES} are looked \
                 for, short ones first; messages are as the operator has masked them beside that",
                values.bytes
            ));
        }
        values.texts
    }

    /// The objects of a path, one a line.
    async fn objects(
        &self,
        (client, path): (&Client, &str),
        (kind, folder): (&Kind, &str),
        masker: &Masker,
        files: &mut SupportFiles,
    ) {
        let most = usize::from(self.size) << 20;
        let mut text = String::new();
        let read = listed::each_value(client, path, PAGE, |object| {
            if kind.as_str() == "Event" && !is_about_ours(&object) {
                return ControlFlow::Continue(());
            }
            text.push_str(&masked_line(&redacted(kind, object, masker), &Masker::default()));
            // What does not fit is cut and noted where it is added.
            if text.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Err(error) = read.await {
            files.note(format!("{kind} in {folder}: {}", cause_of(kind, &error)));
        }
        files.add(&format!("{folder}/{}.jsonl", kind.to_lowercase()), &text);
    }
}

/// Values of a namespace, as far as they are kept.
#[derive(Default)]
struct SecretTexts {
    texts: Vec<String>,
    /// Of all of them.
    bytes: usize,
}

impl SecretTexts {
    fn take(&mut self, kind: &Kind, object: &Value) {
        let mut texts = Vec::new();
        secret_values(kind, object, &mut texts);
        let has_room = self.bytes < MOST_VALUES;
        self.bytes += texts.iter().map(String::len).sum::<usize>();
        self.texts.extend(texts.into_iter().filter(|_| has_room));
    }
}

/// The values of all namespaces.
#[derive(Default)]
struct ValuesOfAll {
    of: Vec<(Namespace, Vec<String>)>,
    bytes: usize,
    /// Namespaces whose values are not kept.
    left: BTreeSet<Namespace>,
}

impl ValuesOfAll {
    fn add(&mut self, namespace: &Namespace, values: Vec<String>) {
        self.bytes += values.iter().map(String::len).sum::<usize>();
        if self.bytes <= MOST_VALUES * 2 {
            self.of.push((namespace.clone(), values));
        } else {
            self.left.insert(namespace.clone());
        }
    }

    /// As many as can be looked for together, short ones first, and the namespaces that have others.
    fn looked_for(&self) -> (Vec<&str>, BTreeSet<Namespace>) {
        let of =
            self.of.iter().flat_map(|(namespace, values)| values.iter().map(move |value| (value.trim(), namespace)));
        let mut all: Vec<(&str, &Namespace)> = of.filter(|(value, _)| value.len() >= SHORTEST_MASKED).collect();
        all.sort_unstable_by_key(|(value, namespace)| (value.len(), *value, *namespace));
        let (mut found, mut left, mut bytes) = (Vec::new(), self.left.clone(), 0);
        for (value, namespace) in all {
            if found.last() == Some(&value) {
                continue;
            }
            bytes += value.len();
            if bytes > MOST_MASKED_BYTES {
                left.insert(namespace.clone());
            } else {
                found.push(value);
            }
        }
        (found, left)
    }
}

/// What is to be known of masks in what the operator itself says: which values are not looked for, those of `left` for want of room, and
/// where one namespace alone is gathered those of all others.
fn unmasked(left: &BTreeSet<Namespace>, alone: Option<&Vec<Namespace>>) -> Vec<String> {
    let mut notes = Vec::new();
    let named: Vec<&str> = left.iter().take(MOST_NAMED).map(Namespace::as_str).collect();
    let more = left.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !named.is_empty() {
        notes.push(format!(
            "masks in operator/ of long values of these namespaces: {}{more}; together there are more than {MOST_MASKED_BYTES} bytes of values, \
             of which the short ones are looked for",
            named.join(", ")
        ));
    }
    if let Some(alone) = alone {
        let names: Vec<&str> = alone.iter().map(Namespace::as_str).collect();
        notes.push(format!(
            "masks in operator/ of values of other namespaces than {}: there its logs are as the operator has masked them; have all looked for \
             with -A",
            names.join(", ")
        ));
    }
    notes
}

/// Whether an event is about an object of a kind of ours.
fn is_about_ours(event: &Value) -> bool {
    let group = event.pointer("/regarding/apiVersion").and_then(Value::as_str).unwrap_or_default();
    group.starts_with(GROUP) || group.starts_with(POLICY_GROUP)
}

/// A line of JSON, masked.
fn masked_line(value: &Value, masker: &Masker) -> String {
    let mut value = value.clone();
    masker.mask_value(&mut value);
    format!("{value}\n")
}

fn path(definition: &CustomResourceDefinition, namespace: Option<&Namespace>) -> String {
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.served).map_or("v1alpha1", |version| &version.name);
    let within = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    format!("/apis/{}/{version}{within}/{}", spec.group, spec.names.plural)
}

/// Why something is not in the archive. The server is asked as whoever calls, so that what it says is for them.
fn cause_of(kind: &Kind, error: &kube::Error) -> String {
    let why = match error {
        kube::Error::Api(status) => status.message.clone(),
        // What it says of a value may quote that.
        kube::Error::SerdeError(_) => "the answer cannot be read; the kinds may be of another version".to_owned(),
        other => {
            let nowhere = Namespace::default();
            let subject = CallSubject { kind, group: GROUP, namespace: &nowhere, name: ObjectName::EMPTY };
            return CallError::Unreachable { cause: orangery_cluster::unreached(other, subject.group) }.to_string();
        }
    };
    cleaned(&why, 300)
}

/// A file that nobody else can read, and that was not there. It goes where it is not written to its end.
struct ArchiveFile<'p> {
    path: &'p Path,
    file: File,
    is_written: bool,
}

impl<'p> ArchiveFile<'p> {
    fn create(path: &'p Path) -> Result<Self, CommandError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(file) => Ok(Self { path, file, is_written: false }),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                Err(CommandError::ArchiveExists { path: path.to_owned() })
            }
            Err(cause) => Err(CommandError::Write { path: path.to_owned(), cause }),
        }
    }

    fn write(mut self, bytes: &[u8]) -> Result<(), CommandError> {
        let written = self.file.write_all(bytes);
        self.is_written = written.is_ok();
        written.map_err(|cause| CommandError::Write { path: self.path.to_owned(), cause })
    }
}

impl Drop for ArchiveFile<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            let _stays_empty = fs::remove_file(self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_401_what_is_not_looked_for_is_told_with_the_namespaces_that_it_is_of() {
        let mut values = ValuesOfAll::default();
        let long = "x".repeat(MOST_MASKED_BYTES - 8);
        values.add(&"a".into(), vec!["short-one".to_owned(), "tiny".to_owned()]);
        values.add(&"b".into(), vec![long.clone(), "short-one".to_owned()]);
        assert_eq!(values.looked_for(), (vec!["short-one"], BTreeSet::from(["b".into()])));
        values.add(&"c".into(), vec!["y".repeat(MOST_VALUES * 2)]);
        assert_eq!(values.looked_for(), (vec!["short-one"], BTreeSet::from(["b".into(), "c".into()])));
        let left: BTreeSet<Namespace> = (0..12).map(|number| Namespace::from(format!("n{number:02}"))).collect();
        let notes = unmasked(&left, Some(&vec!["one".into()]));
        assert!(
            notes.iter().any(|note| note.contains(": n00, n01,") && note.contains(", n09 and 2 more; ")),
            "{notes:?}"
        );
        assert!(notes.iter().any(|note| note.contains("other namespaces than one: ")), "{notes:?}");
        assert_eq!(unmasked(&BTreeSet::new(), None), Vec::<String>::new());
    }

    #[test]
    fn c_401_a_file_that_is_there_stays_and_one_that_is_not_written_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.gz");
        drop(ArchiveFile::create(&path).unwrap());
        assert!(!path.exists());
        ArchiveFile::create(&path).unwrap().write(b"one").unwrap();
        let Err(refused) = ArchiveFile::create(&path) else { panic!("it is written over") };
        let says = format!("{} is there already; name another one with --into", path.display());
        assert_eq!((refused.to_string(), refused.exit()), (says, Exit::Usage));
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }
}
