//! `orangery run`: its arguments. Carried out by `runtime`.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf};

use clap::{Args, ValueEnum, value_parser};
use orangery_core::name::{Namespace, ObjectName};
use orangery_policy::Profile;

use crate::{
    command::logging::Logging, components::CallProcesses, connection::Connection, default_policy::profile,
    record_flags::RecordFlags, repositories::RepositoryFlags, timeout::Timeout,
};

const EXAMPLES: &str = "\
Examples:
  orangery run                           against the current context, or inside a cluster
  orangery run -n team-a -n team-b       only what lives in two namespaces
  orangery run --plugins /etc/orangery/plugins --metrics-address 0.0.0.0:8080
  orangery run --observe                 what it would do, before it takes over, or after a restore or an upgrade

Of several operators with one Lease one is active; the others wait, and the next takes over when it stops or no longer answers.

The cluster must have the custom resource definitions:
  orangery crd | kubectl apply --server-side -f -";

/// Runs the operator against the current kubeconfig, or the cluster it runs in, until it is told to stop.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct RunArguments {
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// Which components are called in processes of their own, without credentials: those of blueprints and of --plugins, or
    /// the built-in ones as well
    #[arg(long, value_name = "WHICH", default_value = "untrusted")]
    pub call_processes: CallProcesses,
    /// Also work on items of type landscaper.gardener.cloud/mock, which deploy nothing and do what they say: for tests
    #[arg(long)]
    pub mock_deployer: bool,
    /// Also work on items of type landscaper.gardener.cloud/container, whose programs run in pods of this cluster, as this file
    /// configures it (kind Configuration of container.deployer.landscaper.gardener.cloud/v1alpha1)
    #[arg(long, value_name = "FILE")]
    pub container_deployer: Option<PathBuf>,
    /// Serve metrics (/metrics) and health (/healthz, /readyz) over plain HTTP here, such as 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_address: Option<SocketAddr>,
    /// Readers of metrics: those whose bearer token the API server knows, and whom it lets get /metrics (nonResourceURLs), or
    /// whoever reaches the port
    #[arg(long, value_name = "HOW", default_value = "token")]
    pub metrics_authentication: MetricsAuthentication,
    /// Serve health alone (/healthz, /readyz) over plain HTTP here, for probes from outside of the machine
    #[arg(long, value_name = "ADDRESS")]
    pub health_address: Option<SocketAddr>,
    /// Write an LsHealthCheck of this name in the operator's namespace once a minute: whether the Deployments below run as they should
    #[arg(long, value_name = "NAME", value_parser = str::parse::<ObjectName>)]
    pub health_check: Option<ObjectName>,
    /// A Deployment of the operator's namespace that the LsHealthCheck is about; may be given several times
    #[arg(
        long = "health-check-deployment", value_name = "NAME", value_parser = str::parse::<ObjectName>, requires = "health_check"
    )]
    pub health_check_deployments: Vec<ObjectName>,
    /// Look only into this namespace; may be given several times [default: all namespaces]
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_parser = str::parse::<Namespace>, help_heading = "Cluster")]
    pub namespaces: Vec<Namespace>,
    /// How long a deploy item that no component claims waits for a deployer elsewhere, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub pickup_timeout: Timeout,
    /// Service account of each namespace that the operator acts as for it, where a component writes to, reads or watches the
    /// cluster that the operator runs against
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = str::parse::<ObjectName>, help_heading = "Cluster")]
    pub default_service_account: ObjectName,
    /// Which service accounts of their namespace Targets with selfConfig or oidcConfig may name: those with the annotation
    /// orangery.dev/allow-targets: "true" for which the service account above may create serviceaccounts/token, or any
    #[arg(long, value_name = "WHICH", default_value = "opted-in", help_heading = "Cluster")]
    pub target_accounts: AllowedAccounts,
    /// Whether Targets, the Secrets behind them, Contexts and imported ConfigMaps stay as long as they are in use
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub guards: bool,
    /// What objects may do in namespaces that no NamespacePolicy selects
    #[arg(long, value_name = "PROFILE", default_value = "restricted", value_parser = profile())]
    pub default_policy: Profile,
    /// How many deploy items of components may be under way at once; the others wait for a place [default: any number]
    #[arg(long, value_name = "NUMBER")]
    pub max_parallel: Option<NonZeroU32>,
    /// How many jobs of each deploy item are kept on record, in objects of kind JobHistory, for orangery history; 0 for none
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = value_parser!(u8).range(0..=100))]
    pub job_records: u8,
    /// Name of the Lease, in the operator's namespace, whose holder is active: of several operators of one name one works
    #[arg(long, value_name = "NAME", default_value = "orangery", help_heading = "Cluster")]
    pub lease: String,
    /// Seconds after which another operator takes over from one that no longer renews the Lease
    #[arg(long, value_name = "SECONDS", default_value = "15", help_heading = "Cluster", value_parser = value_parser!(u32).range(3..=3600))]
    pub lease_duration: u32,
    /// Write nothing: say what the next job of every root would do, as orangery plan does of one, and end
    #[arg(long)]
    pub observe: bool,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
    /// Where component versions come from.
    #[command(flatten)]
    pub repositories: RepositoryFlags,
    /// Where calls of components are kept.
    #[command(flatten)]
    pub record: RecordFlags,
    /// What is logged.
    #[command(flatten)]
    pub logging: Logging,
}

/// How readers of metrics show who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricsAuthentication {
    /// By a bearer token of the cluster.
    Token,
    /// Not at all.
    None,
}

/// Which service accounts Targets may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AllowedAccounts {
    /// Those that have opted in.
    OptedIn,
    /// Any of the namespace, as with Landscaper.
    Any,
}
