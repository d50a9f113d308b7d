//! `orangery run`: its arguments. Carried out by `runtime`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use crate::{command::logging::Logging, connection::Connection};

const EXAMPLES: &str = "\
Examples:
  orangery run                                      against the current context, or the cluster it runs in
  orangery run -n team-a -n team-b                  only what lives in two namespaces
  orangery run --plugins /etc/orangery/plugins --metrics-address 0.0.0.0:8080

The custom resource definitions must be there: orangery crd | kubectl apply --server-side -f -";

/// Runs the operator against the current kubeconfig, or the cluster it runs in, until it is told to stop.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Run {
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
    /// Look only into this namespace; may be given several times [default: all namespaces]
    #[arg(short, long = "namespace", value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// Serve metrics (/metrics) and health (/healthz, /readyz) over plain HTTP here, such as 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_address: Option<SocketAddr>,
    /// What is logged.
    #[command(flatten)]
    pub logging: Logging,
}
