//! `orangery run`: the operator against a cluster, until it is told to stop.

use std::{io, num::NonZeroUsize, sync::Arc, time::Duration};

use kube::Client;
use orangery_cli::{
    AllowedAccounts, Exit, MetricsAuthentication, RunArguments, connection::ConnectionError,
    repositories::RepositoriesError,
};
use orangery_controllers::{ActingAccounts, OwnAddress, TargetAccounts};
use orangery_core::{
    name::{Namespace, ObjectName},
    port::Rng as _,
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    components::{self, Bundled, ComponentsError, ContainerItems},
    definitions::Definitions,
    health_check::HealthCheckConfig,
    lease::{self, Fence, HeldLease, LeaseConfig, LeaseError},
    logging::{self, FilterError},
    machine::{self, OsChance, SystemClock},
    metrics::{Figures, MetricsReaders, ServeError},
    operator::{Operator, OperatorConfig, OperatorError},
    recordings::{self, RecordError},
    requests::{Requests, remote},
    stop::StopSignal,
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
    /// Calls cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No cluster is meant.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The cluster does not know our kinds, cannot be asked, or does not let the operator keep its key.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// This operator is not the active one.
    #[error(transparent)]
    Lease(#[from] LeaseError),
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
            | RunError::Record(_)
            | RunError::Metrics(_)
            | RunError::Connection(_) => Exit::Usage,
            RunError::Operator(_) | RunError::Lease(_) | RunError::Signals(_) => Exit::Failed,
        }
    }
}

/// How long running reconciles may take to end once the process is told to stop: another operator waits for the Lease, and begins
/// within a second (C-215). What is cut off by then it does again.
const GRACE: Duration = Duration::from_millis(700);

/// Carries `orangery run` out: returns when the process is told to stop.
///
/// # Errors
/// [`RunError`], whose [`exit`](RunError::exit) is the exit code.
pub async fn execute(arguments: RunArguments) -> Result<Exit, RunError> {
    logging::start(&arguments.logging, LevelFilter::INFO)?;
    let mut stop = StopSignal::new()?;
    let bundled = if arguments.mock_deployer { Bundled::WithMock } else { Bundled::Productive };
    let containers = ContainerItems::read(arguments.container_deployer.as_deref())?;
    let plugins = components::load(arguments.plugins.as_deref(), bundled, containers, arguments.call_processes)?;
    let records = recordings::open(&arguments.record, arguments.repositories.cache.as_deref())?;
    let cluster = arguments.connection.config().await?;
    let own_address = Some(own_address(&cluster));
    let components = arguments.repositories.open(&[])?;
    let (requests, held) = (Requests::default(), plugins.clone());
    let (figures, metrics) = (Figures::new(requests.clone(), move || held.figures()), CancellationToken::new());
    let _served_until_the_end = metrics.clone().drop_guard();
    if let Some(address) = arguments.health_address {
        let bound = figures.clone().serve_health(address, metrics.clone()).await?;
        tracing::info!(address = %bound, "health is served");
    }
    if let Some(address) = arguments.metrics_address {
        let readers = match arguments.metrics_authentication {
            MetricsAuthentication::Token => {
                MetricsReaders::authorized(remote(cluster.clone(), &requests, None).map_err(ConnectionError::Client)?)
            }
            MetricsAuthentication::None => MetricsReaders::Anybody,
        };
        let bound = figures.clone().serve(address, readers, metrics).await?;
        tracing::info!(address = %bound, "metrics and health are served");
    }
    let waits_as = remote(cluster.clone(), &requests, None).map_err(ConnectionError::Client)?;
    let lease = lease_of(waits_as, &cluster, arguments.lease.into(), arguments.lease_duration);
    let waits = |holder: &str| tracing::info!(holder, "another operator is active; this one waits for its lease");
    let mut lease = tokio::select! {
        lease = lease::acquire(lease, waits) => lease?,
        () = stop.asked() => return Ok(Exit::Ok),
    };
    let client = fenced(cluster, &requests, &lease)?;
    let config = OperatorConfig {
        namespaces: arguments.namespaces.into_iter().collect(),
        definitions: Definitions::Expect,
        components,
        pick_up_timeout: arguments.pickup_timeout.after(),
        own_address,
        accounts: accounts(arguments.default_service_account, arguments.target_accounts),
        term: Some(lease.deadline().clone()),
        lease: Some(lease.named()),
        guards: arguments.guards,
        default_policy: arguments.default_policy,
        max_parallel: arguments.max_parallel,
        job_records: NonZeroUsize::new(arguments.job_records.into()),
        records,
        health_check: health_check(arguments.health_check, arguments.health_check_deployments),
        grace: GRACE,
        // Below the folder that outlives the process: what lies in it is thrown away when there is no room for more.
        journal: arguments.repositories.cache.map(|folder| folder.join("calls")),
        ..OperatorConfig::new(client, plugins)
    };
    // Dropping what works ends it at once.
    let worked = tokio::select! {
        worked = operate(config, &figures, &mut stop) => worked,
        why = lease.lost() => return Err(why.into()),
    };
    lease.release().await;
    worked?;
    Ok(Exit::Ok)
}

/// A client that writes only as long as this process holds the Lease.
fn fenced(cluster: kube::Config, requests: &Requests, lease: &HeldLease) -> Result<Client, ConnectionError> {
    remote(cluster, requests, Some(Fence(lease.deadline().clone()))).map_err(ConnectionError::Client)
}

fn health_check(name: Option<ObjectName>, deployments: Vec<ObjectName>) -> Option<HealthCheckConfig> {
    name.map(|name| HealthCheckConfig { name, deployments })
}

/// Runs the operator until the process is asked to stop.
async fn operate(config: OperatorConfig, figures: &Figures, stop: &mut StopSignal) -> Result<(), OperatorError> {
    let operator = tokio::select! {
        started = Operator::start(config) => started?,
        () = stop.asked() => return Ok(()),
    };
    figures.show(&operator);
    tokio::select! {
        () = operator.ready() => {
            tracing::info!("the operator is ready");
            stop.asked().await;
        }
        () = stop.asked() => {}
    }
    tracing::info!("the operator stops");
    operator.stop().await;
    Ok(())
}

/// The Lease that this process asks for.
fn lease_of(client: Client, cluster: &kube::Config, name: ObjectName, seconds: u32) -> LeaseConfig {
    let (namespace, duration) =
        (Namespace::from(cluster.default_namespace.as_str()), Duration::from_secs(seconds.into()));
    let before = machine::container();
    let holder = holder(before.as_deref());
    LeaseConfig { client, namespace, name, holder, before, duration, clock: Arc::new(SystemClock) }
}

/// The name of this process: the pod, and no other process of it.
fn holder(container: Option<&str>) -> String {
    let random = OsChance.job_id();
    container.map_or_else(|| format!("{}_{random}", machine::name()), |container| format!("{container}{random}"))
}

/// As whom the operator acts, as the flags say.
fn accounts(default: ObjectName, allowed: AllowedAccounts) -> ActingAccounts {
    let of_targets = match allowed {
        AllowedAccounts::OptedIn => TargetAccounts::OptedIn,
        AllowedAccounts::Any => TargetAccounts::Any,
    };
    ActingAccounts::named(default, of_targets)
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
