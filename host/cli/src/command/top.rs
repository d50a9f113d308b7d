//! `orangery top`: what costs most of deploy items, components and clusters (C-398).

use clap::{Args, ValueEnum};
use kube::Client;
use orangery_api::target::Target;
use orangery_core::{
    error::cleaned,
    name::{ApiVersion, Kind, Namespace},
};
use serde::Serialize;

use super::inspect;
use crate::{
    call::CallError,
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    costs::{self, ComponentCalls, ItemCost, PooledClusters, SumOfCosts},
    exit::Exit,
    form::OutputFormat,
    operator_metrics::{MetricsFlags, OperatorFigures},
    table,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery top                       the deploy items of the namespace: those at work, then those whose last job took longest
  orangery top clusters -A           what is deployed to which cluster, of all namespaces
  orangery top plugins -A            the components: their items, and what their calls cost
  orangery top items -o json | jq '.items[] | select(.seconds > 60).name'

Items and clusters are told from the status of deploy items: how long their last job took, and how many objects they have deployed.
Targets of a namespace that lead to one cluster by the same credentials are one, by the name of the Target that was not copied.

Calls of components and the sums of all clusters are figures of the operator since it began. They are read from the port metrics of its pod
through the API server, which needs the rights to list and watch leases, get pods and get pods/proxy, and an operator whose metrics ask for no token. Where
they ask for one, forward the port, and write a token of a service account that may get /metrics:
  kubectl -n orangery-system port-forward deployment/orangery 8080
  orangery top plugins --metrics http://127.0.0.1:8080/metrics --metrics-token token.txt
Without them the figures are left out, and why is said on stderr.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion    orangery.dev/v1alpha1
  kind          ItemCosts, PluginCosts or ClusterCosts
  total         how many there are, also those that --limit leaves out
  items         of ItemCosts: {namespace, name, type, cluster, plugin, phase, standing, job, seconds, since, objects, hasMoreObjects}
                of the others: {name, namespace, items, running, failed, objects, seconds, calls {ended, unanswered, stoppedAtLimits,
                seconds}}
  clusters      of ClusterCosts: {kept, silent, watches, mostWatches, requests}
  measuredAt    where figures of the operator were read
  notMeasured   why figures of the operator are left out";

/// Shows what costs most.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Top {
    /// What is looked at
    #[arg(value_enum, value_name = "WHAT", default_value_t)]
    pub what: CostSubject,
    /// Look into all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// How many are shown at most; 0 for all
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub limit: usize,
    /// How it is written [default: a table]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
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

/// Whose cost is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CostSubject {
    /// Deploy items
    #[default]
    Items,
    /// Components
    Plugins,
    /// The clusters that are deployed to
    Clusters,
}

/// The output of `-o json` and `-o yaml`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CostsOutput<'a, C> {
    api_version: ApiVersion,
    kind: Kind,
    total: usize,
    items: &'a [C],
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<PooledClusters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_measured: Option<&'a str>,
}

impl Top {
    /// Reads, and shows.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = if self.all_namespaces { Namespace::default() } else { self.scope.namespace(client) };
        let objects = inspect::read(client, &namespace).await?;
        let targets = match inspect::list::<Target>(client, &namespace).await {
            Ok(targets) => targets.iter().map(|target| (**target).clone()).collect(),
            Err(refused @ CallError::Forbidden { .. }) => {
                terminal.note(format_args!("clusters have the names that items give their Targets: {refused}"))?;
                Vec::new()
            }
            Err(error) => return Err(error.into()),
        };
        let items = costs::items(&objects, &targets);
        if self.what == CostSubject::Items {
            return self.show(Kind::from_static("ItemCosts"), &items, (None, None), item_table, terminal);
        }
        let read = self.figures.read(client).await;
        let samples = read.as_ref().ok().map(|figures| &figures.samples);
        if self.what == CostSubject::Plugins {
            let rows = costs::plugins(&items, samples);
            return self.show(Kind::from_static("PluginCosts"), &rows, (None, Some(&read)), plugin_table, terminal);
        }
        let (rows, pooled) = (costs::by_cluster(&items), samples.and_then(costs::cluster_figures));
        self.show(Kind::from_static("ClusterCosts"), &rows, (pooled, Some(&read)), cluster_table, terminal)
    }

    fn show<C: Serialize>(
        &self,
        kind: Kind,
        rows: &[C],
        (clusters, read): (Option<PooledClusters>, Option<&Result<OperatorFigures, String>>),
        table: fn(&[C]) -> Vec<String>,
        terminal: &mut Terminal,
    ) -> Result<Exit, CommandError> {
        let most = if self.limit == 0 { rows.len() } else { self.limit.min(rows.len()) };
        let shown = rows.get(..most).unwrap_or(rows);
        let measured_at = read.and_then(|read| read.as_ref().ok()).map(|figures| &figures.place);
        let not_measured = read.and_then(|read| read.as_ref().err());
        if let Some(form) = self.output {
            let document = CostsOutput {
                api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
                kind,
                total: rows.len(),
                items: shown,
                clusters,
                measured_at: measured_at.map(String::as_str),
                not_measured: not_measured.map(String::as_str),
            };
            form.write(&document, terminal)?;
            return Ok(Exit::Ok);
        }
        if rows.is_empty() {
            terminal.note("there are no deploy items")?;
        } else {
            table(shown).into_iter().try_for_each(|line| terminal.line(line))?;
        }
        if most < rows.len() {
            terminal.note(format_args!("and {} more: --limit 0", rows.len() - most))?;
        }
        if let Some(figures) = clusters {
            terminal.line(summary(figures))?;
        }
        if let Some(place) = measured_at {
            terminal.note(format_args!("figures of the operator are those of {place}"))?;
        }
        if let Some(why) = not_measured {
            terminal.note(why)?;
        }
        Ok(Exit::Ok)
    }
}

fn summary(figures: PooledClusters) -> String {
    let PooledClusters { kept, silent, watches, most_watches, requests } = figures;
    format!(
        "the operator keeps {kept} clusters, of which {silent} are silent, has {watches} of {most_watches} watches open, and has sent \
         {requests} requests"
    )
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!("{seconds:.1}"))
}

/// A cell with words of others.
fn cell(text: &str) -> String {
    cleaned(text, usize::MAX)
}

fn item_table(items: &[ItemCost]) -> Vec<String> {
    let mut rows = vec![["DEPLOY ITEM", "TYPE", "CLUSTER", "PHASE", "SECONDS", "SINCE", "OBJECTS"].map(str::to_owned)];
    rows.extend(items.iter().map(|item| {
        let objects = format!("{}{}", item.objects, if item.has_more_objects { "+" } else { "" });
        [
            format!("{}/{}", item.namespace, item.name),
            cell(item.item_type.rsplit('/').next().unwrap_or(&item.item_type)),
            cell(&item.cluster),
            cell(&item.phase),
            seconds(item.seconds),
            cell(item.since.as_deref().unwrap_or_default()),
            objects,
        ]
    }));
    table::lines(&rows, [false, false, false, false, true, false, true])
}

fn plugin_table(sums: &[SumOfCosts]) -> Vec<String> {
    let heads = ["COMPONENT", "ITEMS", "RUNNING", "FAILED", "CALLS", "SECONDS", "UNANSWERED", "LIMITS"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(sums.iter().map(|sum| {
        let of = |figure: fn(&ComponentCalls) -> f64| sum.calls.as_ref().map(figure);
        let count = |figure| of(figure).map_or_else(|| "-".to_owned(), |count| count.to_string());
        [
            cell(&sum.name),
            sum.items.to_string(),
            sum.running.to_string(),
            sum.failed.to_string(),
            count(|calls| calls.ended),
            of(|calls| calls.seconds).map_or_else(|| "-".to_owned(), |spent| seconds(Some(spent))),
            count(|calls| calls.unanswered),
            count(|calls| calls.stopped_at_limits),
        ]
    }));
    table::lines(&rows, [false, true, true, true, true, true, true, true])
}

fn cluster_table(sums: &[SumOfCosts]) -> Vec<String> {
    let mut rows = vec![["CLUSTER", "ITEMS", "RUNNING", "FAILED", "OBJECTS", "SECONDS"].map(str::to_owned)];
    rows.extend(sums.iter().map(|sum| {
        [
            format!("{}/{}", sum.namespace, cell(&sum.name)),
            sum.items.to_string(),
            sum.running.to_string(),
            sum.failed.to_string(),
            sum.objects.to_string(),
            seconds(Some(sum.seconds)),
        ]
    }));
    table::lines(&rows, [false, true, true, true, true, true])
}
