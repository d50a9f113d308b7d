//! `orangery logs`: what happened in a job, in the order of time (C-399).

use std::{
    collections::{BTreeMap, BTreeSet},
    future,
    time::Duration,
};

use clap::Args;
use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, watcher},
    },
};
use orangery_core::{
    error::cleaned,
    name::{ApiVersion, JobId, Kind, Namespace},
};
use serde::Serialize;
use tokio::time::sleep;

use super::{
    inspect,
    why::{ObjectArgument, SubjectKind},
};
use crate::{
    call::CallError,
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    form::OutputFormat,
    listed,
    records::{self, FoundRecord, JobRecordError, ShownRecord},
    terminal::{Ink, Paint, Terminal},
    timeline::{EntrySource, TimelineEntry, TimelineSources, entries},
    tree::{Objects, Tree, TreeNode},
    tree_watch::TreeWatch,
};

const HELP: &str = "\
Examples:
  orangery logs hello                       what happened in the last job of the installation
  orangery logs deployitem/hello-item-x7f   the same of one deploy item
  orangery logs hello --job 4f1c0e2a        an earlier job, by the begin of its id, where jobs are on record
  orangery logs hello --follow              what happens in the job that runs, until it has ended
  orangery logs hello -o json | jq -r '.entries[] | select(.isWarning).message'

A timeline is made of what there is: the times and errors in statuses of the job, the records of it (orangery history lists them), and events of
the objects in its time. A cluster keeps events for an hour, as a rule. What the operator itself logs stands in the log of its pod.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion    orangery.dev/v1alpha1
  kind          JobLog
  job           the id of the job
  entries       a list, the oldest first: time, source (status, record or event), kind, namespace, name, path, reason, message, isWarning,
                count";

/// Events that are listed at once.
const PAGE: u32 = 500;

/// The least time between two looks at what has changed.
const PACE: Duration = Duration::from_millis(100);

/// Shows what happened in a job, in the order of time: from statuses, events and records.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Logs {
    /// The object, such as installation/hello, execution/hello or deployitem/hello-item-x7f; a name alone is that of an installation
    #[arg(value_name = "KIND/NAME")]
    pub name: ObjectArgument,
    /// Which job, by its id or the begin of that [default: the last one]
    #[arg(long = "job", value_name = "JOB")]
    pub id: Option<String>,
    /// Go on until the job that runs has ended
    #[arg(short, long, conflicts_with_all = ["id", "output"])]
    pub follow: bool,
    /// How it is written [default: lines]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The output of `-o json` and `-o yaml`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobLogOutput<'a> {
    api_version: ApiVersion,
    kind: Kind,
    job: &'a JobId,
    entries: &'a [TimelineEntry],
}

impl Logs {
    /// Reads, and shows.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let objects = inspect::read(client, &namespace).await?;
        let tree = self.tree(&objects, &namespace);
        let found = match records::all(client, &namespace).await {
            Ok(found) => found,
            // Whoever may not read them, or has no such kind, has the other sources.
            Err(JobRecordError::Call(CallError::Forbidden { .. } | CallError::NotServed { .. })) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let (job, records) = self.job(&tree, found, &namespace)?;
        let events = events_of(client, &namespace, &tree, terminal).await?;
        let sources = TimelineSources { tree: &tree, objects: &objects, events: &events, records: &records, job: &job };
        let told = entries(sources);
        if let Some(form) = self.output {
            let document = JobLogOutput {
                api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
                kind: Kind::from_static("JobLog"),
                job: &job,
                entries: &told,
            };
            form.write(&document, terminal)?;
            return Ok(Exit::Ok);
        }
        let ink = terminal.ink();
        told.iter().try_for_each(|entry| terminal.painted(&line(entry, ink)))?;
        if self.follow {
            return self.follow((client, &namespace), (&job, told.into_iter().collect()), terminal).await;
        }
        if told.is_empty() {
            terminal.note("no job of it has begun")?;
        }
        Ok(Exit::Ok)
    }

    /// The tree of the object; empty where it is not there.
    fn tree(&self, objects: &Objects, namespace: &Namespace) -> Tree {
        let tree = Tree::of(objects);
        let SubjectKind::Node(kind) = self.name.kind else { return Tree::default() };
        let is_it = |node: &TreeNode| node.kind == kind && node.namespace == *namespace && node.name == self.name.name;
        let found = tree.roots.iter().find_map(|root| find(root, &is_it)).cloned();
        Tree { roots: found.into_iter().collect() }
    }

    /// Which job is meant, and its records.
    fn job(
        &self,
        tree: &Tree,
        found: Vec<FoundRecord>,
        namespace: &Namespace,
    ) -> Result<(JobId, Vec<ShownRecord>), CommandError> {
        let last = tree.roots.first().map(|node| node.job.clone());
        let found = of_subject(tree, found, &self.name);
        let asked = match (&self.id, &last) {
            (Some(asked), Some(last)) if !asked.is_empty() && last.starts_with(asked.as_str()) => last.to_string(),
            (Some(asked), _) => asked.clone(),
            (None, Some(last)) => last.to_string(),
            (None, None) => {
                let newest = found.iter().max_by(|one, other| one.record.begun.cmp(&other.record.begun));
                newest.map(|found| found.record.job_id.to_string()).ok_or_else(|| self.missing(namespace))?
            }
        };
        match records::of_job(&found, namespace, &asked, None) {
            Ok(records) => {
                let job = records.first().map_or_else(|| asked.as_str().into(), |record| record.job.clone());
                Ok((job, records))
            }
            // What runs, or was never to be recorded, has a status all the same.
            Err(JobRecordError::NoJob { .. }) if last.as_ref().is_some_and(|last| *last == *asked) => {
                Ok((asked.as_str().into(), Vec::new()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn missing(&self, namespace: &Namespace) -> CommandError {
        let kind = match self.name.kind {
            SubjectKind::Node(kind) => kind.as_str().to_lowercase(),
            SubjectKind::Used(_) => "installation, execution or deploy item".to_owned(),
        };
        CallError::NotFound { kind: kind.into(), namespace: namespace.clone(), name: self.name.name.clone() }.into()
    }

    /// Tells what happens, until the job has ended.
    async fn follow(
        &self,
        (client, namespace): (&Client, &Namespace),
        (job, mut told): (&JobId, BTreeSet<TimelineEntry>),
        terminal: &mut Terminal,
    ) -> Result<Exit, CommandError> {
        let mut trees = TreeWatch::of(client, namespace);
        let mut events = EventWatch::of(client, namespace);
        trees.changed().await?;
        loop {
            let objects = trees.objects();
            let tree = self.tree(&objects, namespace);
            let is_over = tree.roots.first().is_none_or(|node| node.standing.is_final() || node.job != *job);
            let mut of_now = events.about(&tree);
            if is_over {
                // What was told last may not have come by the watch yet. Whoever may not list events has the other sources.
                of_now = listed_events(client, namespace, &tree).await.unwrap_or(of_now);
            }
            let sources = TimelineSources { tree: &tree, objects: &objects, events: &of_now, records: &[], job };
            let ink = terminal.ink();
            for entry in entries(sources) {
                if !told.contains(&entry) {
                    terminal.painted(&line(&entry, ink))?;
                    told.insert(entry);
                }
            }
            if is_over {
                return Ok(Exit::Ok);
            }
            tokio::select! {
                changed = trees.changed() => changed?,
                () = events.changed() => {}
            }
            sleep(PACE).await;
        }
    }
}

/// Events of a namespace as they are told.
struct EventWatch {
    changes: BoxStream<'static, watcher::Result<watcher::Event<Event>>>,
    events: BTreeMap<String, Event>,
}

impl EventWatch {
    /// Nothing is known yet.
    fn of(client: &Client, namespace: &Namespace) -> Self {
        let api: Api<Event> = Api::namespaced(client.clone(), namespace);
        let changes = watcher(api, watcher::Config::default()).default_backoff().boxed();
        Self { changes, events: BTreeMap::new() }
    }

    /// Waits until something is told, and takes in all that is told already.
    async fn changed(&mut self) {
        let Some(mut change) = self.changes.next().await else { return future::pending().await };
        loop {
            match change {
                Ok(watcher::Event::Apply(event) | watcher::Event::InitApply(event)) => {
                    self.events.insert(event.name_any(), event);
                }
                Ok(watcher::Event::Delete(event)) => {
                    self.events.remove(&event.name_any());
                }
                // Whoever may not watch events has the other sources.
                Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => {}
            }
            match self.changes.next().now_or_never().flatten() {
                Some(next) => change = next,
                None => return,
            }
        }
    }

    /// Those about objects of a tree; the others are not kept.
    fn about(&mut self, tree: &Tree) -> Vec<Event> {
        let mut about = BTreeSet::new();
        tree.roots.iter().for_each(|root| names(root, &mut about));
        self.events.retain(|_, event| is_about(event, &about));
        self.events.values().cloned().collect()
    }
}

fn is_about(event: &Event, names: &BTreeSet<String>) -> bool {
    let name = event.regarding.as_ref().and_then(|regarding| regarding.name.as_ref());
    name.is_some_and(|name| names.contains(name))
}

/// Events about objects of a tree.
async fn events_of(
    client: &Client,
    namespace: &Namespace,
    tree: &Tree,
    terminal: &mut Terminal,
) -> Result<Vec<Event>, CommandError> {
    match listed_events(client, namespace, tree).await {
        Ok(events) => Ok(events),
        Err(refused @ CallError::Forbidden { .. }) => {
            terminal.note(format_args!("without events: {refused}"))?;
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

async fn listed_events(client: &Client, namespace: &Namespace, tree: &Tree) -> Result<Vec<Event>, CallError> {
    let (mut events, mut about) = (Vec::new(), BTreeSet::new());
    tree.roots.iter().for_each(|root| names(root, &mut about));
    let take = |event: Event| events.extend(Some(event).filter(|event| is_about(event, &about)));
    listed::each(client, Some(namespace), ("events.k8s.io", PAGE), take).await?;
    Ok(events)
}

/// The records of what is asked about, with what is below it.
fn of_subject(tree: &Tree, found: Vec<FoundRecord>, name: &ObjectArgument) -> Vec<FoundRecord> {
    let mut items = BTreeSet::new();
    tree.roots.iter().for_each(|root| names(root, &mut items));
    let is_meant = |found: &FoundRecord| {
        items.contains(&found.item.name) || found.item.name == *name.name || found.installation == *name.name
    };
    found.into_iter().filter(is_meant).collect()
}

fn names(node: &TreeNode, items: &mut BTreeSet<String>) {
    items.insert(node.name.to_string());
    node.children.iter().for_each(|child| names(child, items));
}

fn find<'t>(node: &'t TreeNode, is_it: &impl Fn(&TreeNode) -> bool) -> Option<&'t TreeNode> {
    if is_it(node) { Some(node) } else { node.children.iter().find_map(|child| find(child, is_it)) }
}

/// An entry for people: time, kind and place, what happened. Whoever may write events says what they like in one, so that it is marked, and
/// never painted as a status.
fn line(entry: &TimelineEntry, ink: Ink) -> String {
    let TimelineEntry { time, source, kind, path, reason, message, is_warning, count, .. } = entry;
    let paint = match (source, is_warning, reason.as_str()) {
        (EntrySource::Event | EntrySource::Record, ..) => Paint::Plain,
        (EntrySource::Status, true, _) => Paint::Bad,
        (EntrySource::Status, false, "Succeeded") => Paint::Good,
        (EntrySource::Status, false, "Waits") => Paint::Busy,
        (EntrySource::Status, false, _) => Paint::Plain,
    };
    let mark = if *source == EntrySource::Event { "event: " } else { "" };
    let message = cleaned(message, usize::MAX);
    let times = if *count > 1 { format!(" (x{count})") } else { String::new() };
    let gap = if message.is_empty() { "" } else { "  " };
    format!(
        "{}  {:<12}  {}  {mark}{}{gap}{message}{times}",
        ink.paint(Paint::Dim, &time.to_string()),
        kind.as_str(),
        cleaned(path, usize::MAX),
        ink.paint(paint, reason)
    )
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use serde_json::json;

    use super::*;
    use crate::{timeline::JobStage, tree::NodeKind};

    #[tokio::test]
    async fn c_399_all_events_that_are_told_are_taken_at_once_and_those_about_others_are_not_kept() {
        let installation = json!({"metadata": {"name": "web", "namespace": "n"}, "spec": {"blueprint": {}}});
        let installations = vec![std::sync::Arc::new(serde_json::from_value(installation).unwrap())];
        let tree = Tree::of(&Objects { installations, ..Objects::default() });
        let event = |name: &str, about: &str| -> Event {
            let regarding = json!({"kind": "Installation", "namespace": "n", "name": about});
            serde_json::from_value(json!({"metadata": {"name": name}, "eventTime": null, "regarding": regarding}))
                .unwrap()
        };
        let changes = [
            watcher::Event::Init,
            watcher::Event::InitApply(event("a", "web")),
            watcher::Event::InitApply(event("b", "other")),
            watcher::Event::InitDone,
            watcher::Event::Apply(event("c", "web")),
            watcher::Event::Apply(event("d", "web")),
            watcher::Event::Delete(event("a", "web")),
        ];
        let changes = stream::iter(changes.map(Ok)).chain(stream::pending()).boxed();
        let mut watch = EventWatch { changes, events: BTreeMap::new() };
        watch.changed().await;
        assert_eq!(watch.events.len(), 3);
        let names: Vec<String> = watch.about(&tree).iter().map(Event::name_any).collect();
        assert_eq!((names, watch.events.len()), (vec!["c".to_owned(), "d".to_owned()], 2));
    }

    #[test]
    fn c_399_an_event_is_marked_and_painted_as_no_status() {
        let entry = |source: EntrySource| TimelineEntry {
            time: jiff::Timestamp::UNIX_EPOCH,
            stage: JobStage::AtWork,
            source,
            kind: NodeKind::Installation,
            namespace: "n".into(),
            name: "web".into(),
            path: "web".to_owned(),
            reason: "Succeeded".to_owned(),
            message: String::new(),
            is_warning: false,
            count: 1,
        };
        let told = |source: EntrySource| line(&entry(source), Ink::Colours);
        let end = |line: String| line.split("  web  ").nth(1).map(str::to_owned);
        assert_eq!(end(told(EntrySource::Status)), Some(Ink::Colours.paint(Paint::Good, "Succeeded")));
        assert_eq!(end(told(EntrySource::Event)), Some("event: Succeeded".to_owned()));
        assert_eq!(end(told(EntrySource::Record)), Some("Succeeded".to_owned()));
    }
}
