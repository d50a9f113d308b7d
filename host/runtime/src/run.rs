//! `orangery run`: the operator against a cluster, until it is told to stop.

use std::io;

use orangery_cli::{Exit, Run, connection::ConnectionError, repositories::RepositoriesError};
use orangery_controllers::OwnAddress;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    components::{self, ComponentsError},
    definitions::Definitions,
    logging::{self, FilterError},
    metrics::{Figures, ServeError},
    operator::{Operator, OperatorConfig, OperatorError},
    requests::{Requests, remote},
    stop::Stop,
};

/// Why `run` ends: one sentence with the fix, and an exit code.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log filter cannot be read.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A component cannot be registered.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// Component versions cannot be had as the flags say.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// No cluster is meant.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The cluster does not know our kinds, cannot be asked, or does not let the operator keep its key.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The metrics endpoint.
    #[error(transparent)]
    Metrics(#[from] ServeError),
    /// The signals of the process.
    #[error("the process cannot wait for signals: {0}")]
    Signals(#[from] io::Error),
}

impl RunError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            RunError::Filter(_)
            | RunError::Components(_)
            | RunError::Repositories(_)
            | RunError::Metrics(_)
            | RunError::Connection(_) => Exit::Usage,
            RunError::Operator(_) | RunError::Signals(_) => Exit::Failed,
        }
    }
}

/// Carries `orangery run` out: returns when the process is told to stop.
///
/// # Errors
/// [`RunError`], whose [`exit`](RunError::exit) is the exit code.
pub async fn execute(arguments: Run) -> Result<Exit, RunError> {
    logging::start(&arguments.logging, LevelFilter::INFO)?;
    let mut stop = Stop::new()?;
    let plugins = components::load(arguments.plugins.as_deref())?;
    let requests = Requests::default();
    let cluster = arguments.connection.config().await?;
    let own_address = Some(own_address(&cluster));
    let client = remote(cluster, &requests).map_err(ConnectionError::Client)?;
    let config = OperatorConfig {
        namespaces: arguments.namespaces.into_iter().collect(),
        definitions: Definitions::Expect,
        components: arguments.repositories.open(&[])?,
        pick_up_timeout: arguments.pickup_timeout.after(),
        own_address,
        ..OperatorConfig::new(client, plugins)
    };
    let operator = tokio::select! {
        operator = Operator::start(config) => operator?,
        () = stop.asked() => return Ok(Exit::Ok),
    };
    let metrics = CancellationToken::new();
    if let Some(address) = arguments.metrics_address {
        let bound = Figures::new(&operator, requests).serve(address, metrics.clone()).await?;
        tracing::info!(address = %bound, "metrics and health are served");
    }
    tokio::select! {
        () = operator.ready() => {
            tracing::info!("the operator is ready");
            stop.asked().await;
        }
        () = stop.asked() => {}
    }
    tracing::info!("the operator stops");
    operator.stop().await;
    metrics.cancel();
    Ok(Exit::Ok)
}

/// How somebody else reaches the cluster of this connection.
fn own_address(cluster: &kube::Config) -> OwnAddress {
    let pem = |der: &Vec<u8>| {
        let text = data_encoding::BASE64.encode(der);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    let authorities = cluster.root_cert.as_ref().map(|roots| roots.iter().map(pem).collect::<String>());
    OwnAddress {
        server: cluster.cluster_url.to_string().trim_end_matches('/').to_owned(),
        authority: authorities.map(|pem| data_encoding::BASE64.encode(pem.as_bytes())),
    }
}
