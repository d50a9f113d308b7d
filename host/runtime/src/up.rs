//! `orangery up`: a server and the operator in one process, a folder applied, and what becomes of it.
//!
//! What a user may expect of a second `up` on the same data: the server comes back as it was left, what was under way
//! goes on, and the folder is applied again as `kubectl apply` would. Installations whose manifest carries the
//! annotation `landscaper.gardener.cloud/operation: reconcile` therefore get a new job at every `up FOLDER`, which
//! repairs drift and changes nothing where nothing differs; those without it are left to be triggered by hand.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use kube::{Client, api::DynamicObject};
use orangery_cli::{Exit, Terminal, Up, apply::apply, components::RegistrationSource, folder, repositories::folders};
use orangery_controllers::{ActingAccounts, OwnAddress};
use orangery_core::port::Clock;
use orangery_embedded::{Options, Server};
use tracing_subscriber::filter::LevelFilter;

pub use self::error::UpError;
use self::{
    place::ServerLocation,
    reload::WatchedFolder,
    view::{LiveView, ViewScope},
};
use crate::{
    components::{self, Bundled, ContainerItems},
    logging,
    machine::SystemClock,
    operator::{Operator, OperatorConfig},
    recordings,
    requests::{Requests, in_process},
    stop::StopSignal,
};

mod error;
mod place;
mod planted;
mod reload;
mod target;
mod view;

/// Carries `orangery up` out: returns when everything is final with `--once`, else when the process is told to stop.
///
/// # Errors
/// [`UpError`], whose [`exit`](UpError::exit) is the exit code. What really failed in a tree is told on the terminal
/// and is no error of this function.
pub async fn execute(arguments: Up, terminal: &mut Terminal) -> Result<Exit, UpError> {
    logging::start(&arguments.logging, LevelFilter::WARN)?;
    let manifests = folder::read(&arguments.paths)?;
    let mut stop = StopSignal::new()?;
    let place = ServerLocation::choose(&arguments)?;
    // The server runs no pods.
    let containers = if arguments.simulate_workloads { ContainerItems::simulated() } else { ContainerItems::Refused };
    let source = |folder: &PathBuf| RegistrationSource::of(folder, Bundled::WithMock, containers.clone());
    let watched = arguments.plugins.as_ref().map(source).map(WatchedFolder::of);
    let plugins =
        components::load(arguments.plugins.as_deref(), Bundled::WithMock, containers, arguments.call_processes)?;
    let server = serve(&arguments, &place).await?;
    let client = in_process(server.router(), &Requests::default());
    let components = arguments.repositories.open(&folders(&arguments.paths))?;
    let pick_up_timeout = arguments.pickup_timeout.after();
    let authority = data_encoding::BASE64.encode(server.ca_pem().as_bytes());
    let own_address = Some(OwnAddress { server: server.url(), authority: Some(authority) });
    let config = OperatorConfig {
        components,
        pick_up_timeout,
        own_address,
        // One trusted team, and the Targets of Landscaper as they are.
        accounts: ActingAccounts::compatible(),
        guards: arguments.guards,
        default_policy: arguments.default_policy,
        max_parallel: arguments.max_parallel,
        job_records: NonZeroUsize::new(arguments.job_records.into()),
        records: recordings::open(&arguments.record, place.lasting().as_deref())?,
        journal: place.lasting(),
        ..OperatorConfig::new(client.clone(), plugins.clone())
    };
    let ready = tokio::select! {
        ready = until_ready(config, &client, &server, &place) => Some(ready?),
        () = stop.asked() => None,
    };
    let Some(operator) = ready else {
        server.stop().await;
        return Ok(Exit::Ok);
    };
    terminal.line(format_args!("Server and operator are ready at {} ({place}). To reach it:", server.url()))?;
    terminal.line(format_args!("  export KUBECONFIG={}", place.kubeconfig().display()))?;
    if arguments.simulate_workloads {
        terminal.line("Workloads are simulated: they are marked ready or complete, and no container runs.")?;
    }
    let running = Running { arguments, client, operator };
    let follow = async {
        match watched {
            Some(watched) => watched.follow(&plugins, &running.operator).await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        outcome = running.deploy(manifests, terminal) => outcome,
        () = follow => Ok(Exit::Ok),
        () = stop.asked() => Ok(Exit::Ok),
    };
    running.operator.stop().await;
    server.stop().await;
    outcome
}

/// Starts the operator, and waits until it knows everything. Dropping the future ends it at once.
async fn until_ready(
    config: OperatorConfig,
    client: &Client,
    server: &Server,
    place: &ServerLocation,
) -> Result<Operator, UpError> {
    let operator = Operator::start(config).await?;
    target::put(client, &server.kubeconfig()).await?;
    place.write_kubeconfig(&server.kubeconfig())?;
    operator.ready().await;
    Ok(operator)
}

async fn serve(arguments: &Up, place: &ServerLocation) -> Result<Server, UpError> {
    let clock = SystemClock;
    let options = Options {
        storage: place.storage(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port)),
        clock: Arc::new(move || clock.now()),
    };
    let mut server = orangery_embedded::start(options).await?;
    if arguments.simulate_workloads {
        server.simulate_workloads();
    }
    Ok(server)
}

/// Server and operator are up.
struct Running {
    arguments: Up,
    client: Client,
    operator: Operator,
}

impl Running {
    async fn deploy(&self, manifests: Vec<folder::FolderManifest>, terminal: &mut Terminal) -> Result<Exit, UpError> {
        let applies = !manifests.is_empty();
        let applied = apply(&self.client, &self.arguments.namespace, manifests).await?;
        self.upsert(&applied);
        let scope = if applies { ViewScope::of(&applied) } else { ViewScope::All };
        let mut view = LiveView::new(self.operator.stores().clone(), scope, &self.arguments.namespace);
        if self.arguments.once {
            return self.once(view, terminal).await;
        }
        loop {
            view.until_final(terminal).await?;
            view.tell_outcome(terminal);
            if view.shows_anything() {
                terminal.line("Everything is final. Server and operator stay until Ctrl-C.")?;
            }
            view.changed().await;
        }
    }

    async fn once(&self, mut view: LiveView, terminal: &mut Terminal) -> Result<Exit, UpError> {
        let patience = self.arguments.timeout.after().unwrap_or(Duration::MAX);
        match tokio::time::timeout(patience, view.until_final(terminal)).await {
            Ok(drawn) => {
                drawn?;
                Ok(view.tell_outcome(terminal))
            }
            Err(_) => Err(UpError::TimedOut { timeout: self.arguments.timeout.to_string() }),
        }
    }

    /// Makes what was applied known at once, so that nothing looks final before its watch has spoken.
    fn upsert(&self, applied: &[DynamicObject]) {
        let stores = self.operator.stores();
        for object in applied {
            match object.types.as_ref().map(|types| types.kind.as_str()) {
                Some("Installation") => absorb_into(&stores.installations, object),
                Some("Execution") => absorb_into(&stores.executions, object),
                Some("DeployItem") => absorb_into(&stores.deploy_items, object),
                Some(_) | None => {}
            }
        }
    }
}

fn absorb_into<K: orangery_reconcile::Watched>(store: &orangery_reconcile::Store<K>, object: &DynamicObject) {
    // What does not decode is told by the watch, which hears of it as well.
    if let Ok(object) = object.clone().try_parse::<K>() {
        store.upsert(object);
    }
}
