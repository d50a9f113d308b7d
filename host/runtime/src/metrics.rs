//! The figures of an operator as metrics of Prometheus (`docs/metrics.md`), and the endpoint that serves them.
//!
//! Counted where it happens (queues, clients, calls of components) or from what is known (stores) at the moment of asking; nothing
//! is collected in between. Labels have values of closed sets, or a bounded number of them (C-390).

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::IntoResponse as _,
    routing::get,
};
use orangery_cluster::ClusterFigures;
use orangery_controllers::Stores;
use orangery_plugin::{MemoryShares, SandboxFigures};
use orangery_reconcile::{LeaseDeadline, Queue};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, prometheus_text, text},
    registry::Registry,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::reader::MetricsReaders;
use self::{bounded::BoundedListener, jobs::JobFigures, page::MetricsPage};
use crate::{operator::Operator, requests::Requests};

mod bounded;
mod families;
mod family;
mod jobs;
mod objects;
mod page;
mod process;
mod reader;

/// Where figures come from. Clones show the same.
#[derive(Clone)]
pub struct Figures {
    /// Not there as long as this process waits for its lease.
    active: Arc<OnceLock<Active>>,
    requests: Requests,
    sandbox: Arc<dyn Fn() -> SandboxFigures + Send + Sync>,
    /// Memory that the process may have, in bytes; 0 where nothing says it.
    memory_limit: u64,
}

/// What an active operator has.
struct Active {
    stores: Stores,
    queues: Vec<(&'static str, Queue)>,
    writes_of_others: Box<dyn Fn() -> u64 + Send + Sync>,
    clusters: Box<dyn Fn() -> ClusterFigures + Send + Sync>,
    /// Bytes of memory that objects of clusters may take.
    object_memory: u64,
    /// Bytes of memory that answers of executions take, and may take.
    rendered: Box<dyn Fn() -> (u64, u64) + Send + Sync>,
    /// Until when it may write; `None` for ever.
    term: Option<LeaseDeadline>,
    jobs: JobFigures,
}

/// Why the endpoint cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be served at {address}: {source}; choose another --metrics-address")]
pub struct ServeError {
    address: SocketAddr,
    source: std::io::Error,
}

impl Figures {
    /// Those of a client, of calls of components, and soon of an operator.
    pub fn new(requests: Requests, sandbox: impl Fn() -> SandboxFigures + Send + Sync + 'static) -> Self {
        let memory_limit = MemoryShares::of_machine().total.unwrap_or_default();
        Self { active: Arc::default(), requests, sandbox: Arc::new(sandbox), memory_limit }
    }

    /// From now on the figures of the operator are shown, and it has to be ready. There is one in a process.
    pub fn show(&self, operator: &Operator) {
        let jobs = JobFigures::default();
        jobs.follow(operator.stores());
        let active = Active {
            stores: operator.stores().clone(),
            queues: operator.queues().to_vec(),
            writes_of_others: Box::new(operator.writes_of_others()),
            clusters: Box::new(operator.cluster_figures()),
            object_memory: operator.object_memory(),
            rendered: Box::new(operator.rendered()),
            term: operator.lease_deadline(),
            jobs,
        };
        drop(self.active.set(active));
    }

    /// Serves `/metrics`, `/healthz` (the process answers) and `/readyz` (the first lists are in, or another operator is
    /// the active one) until `stop`; metrics to these readers, health to everybody.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve(
        self,
        address: SocketAddr,
        readers: MetricsReaders,
        stop: CancellationToken,
    ) -> Result<SocketAddr, ServeError> {
        listen(self.router(readers), address, stop).await
    }

    /// The same without `/metrics`: what is served says nothing about any object.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve_health(self, address: SocketAddr, stop: CancellationToken) -> Result<SocketAddr, ServeError> {
        listen(self.health(), address, stop).await
    }

    fn router(self, readers: MetricsReaders) -> Router {
        let health = self.clone().health();
        let text = move |headers: HeaderMap| async move {
            match readers.check(&headers).await {
                Ok(()) => {
                    let format = TextFormat::accepted(&headers);
                    ([(CONTENT_TYPE, format.content_type())], self.text(format)).into_response()
                }
                Err(refused) => refused.into_response(),
            }
        };
        health.route("/metrics", get(text))
    }

    fn health(self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(move || async move { self.ready() }))
    }

    fn ready(&self) -> (StatusCode, &'static str) {
        let Some(active) = self.active.get() else { return (StatusCode::OK, "waits for the lease") };
        let Stores {
            installations,
            executions,
            deploy_items,
            targets,
            data_objects,
            contexts,
            secrets: _,
            config_maps: _,
            target_syncs: _,
        } = &active.stores;
        let synced = [
            installations.is_synced(),
            executions.is_synced(),
            deploy_items.is_synced(),
            targets.is_synced(),
            data_objects.is_synced(),
            contexts.is_synced(),
        ];
        if synced.into_iter().all(|synced| synced) {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "the first lists are not in yet")
        }
    }

    /// All figures, in a format.
    fn text(&self, format: TextFormat) -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        registry.register_collector(Box::new(self.clone()));
        let written = match format {
            TextFormat::Prometheus => prometheus_text::encode(&mut page, &registry),
            TextFormat::OpenMetrics => text::encode(&mut page, &registry),
        };
        // Writing to a string cannot fail, and half a page would be taken for a whole one.
        if written.is_err() { String::new() } else { page }
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Figures").field("is_active", &self.active.get().is_some()).finish_non_exhaustive()
    }
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.write(&mut MetricsPage(encoder))
    }
}

/// The formats that figures are answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextFormat {
    /// The text format of Prometheus, for whoever names no other.
    Prometheus,
    /// OpenMetrics, which tells units, for whoever names it.
    OpenMetrics,
}

impl TextFormat {
    fn accepted(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut names = accepts.flat_map(|value| value.split([',', ';'])).map(str::trim);
        if names.any(|name| name == "application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    fn content_type(self) -> &'static str {
        match self {
            TextFormat::Prometheus => prometheus_text::CONTENT_TYPE,
            TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Serves pages in the background until `stop`.
async fn listen(pages: Router, address: SocketAddr, stop: CancellationToken) -> Result<SocketAddr, ServeError> {
    let unusable = |source| ServeError { address, source };
    let listener = TcpListener::bind(address).await.map_err(unusable)?;
    let bound = listener.local_addr().map_err(unusable)?;
    let served = axum::serve(BoundedListener::new(listener), pages).with_graceful_shutdown(stop.cancelled_owned());
    tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!(%error, "health and metrics are no longer served");
        }
    });
    Ok(bound)
}

#[cfg(test)]
mod tests;
