//! The HTTP surface: from a request to an operation, and from its result to a response.

mod answers;
mod discovery;
mod openapi;
mod request;
mod resources;
mod respond;
mod route;
mod serve;
mod strict;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::header,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};

use self::serve::ShownToken;
pub(crate) use self::serve::accept;
use crate::{
    cluster::EmbeddedCluster,
    identity::User,
    refusal::{Refusal, RefusalReason},
};

/// Names the user that a request is of.
const IMPERSONATE_USER: &str = "impersonate-user";

/// The API for callers that are known to be the admin.
pub(crate) fn trusted(cluster: Arc<EmbeddedCluster>) -> Router {
    routes(cluster).layer(middleware::from_fn(impersonate)).layer(Extension(User::admin()))
}

/// The API for callers that have to show a token.
pub(crate) fn guarded(cluster: Arc<EmbeddedCluster>) -> Router {
    let guard = middleware::from_fn_with_state(Arc::clone(&cluster), authenticate);
    routes(cluster).layer(middleware::from_fn(impersonate)).layer(guard)
}

fn routes(cluster: Arc<EmbeddedCluster>) -> Router {
    Router::new()
        .route("/healthz", get(healthy))
        .route("/livez", get(healthy))
        .route("/readyz", get(healthy))
        .route("/metrics", get(metrics))
        .route("/version", get(discovery::version))
        .route("/api", get(discovery::core_versions))
        .route("/api/", get(discovery::core_versions))
        .route("/apis", get(discovery::groups))
        .route("/apis/", get(discovery::groups))
        .route("/openapi/v2", get(openapi::v2))
        .route("/openapi/v3", get(openapi::index))
        .route("/openapi/v3/{*path}", get(openapi::document))
        .fallback(resources::resources)
        .with_state(cluster)
}

async fn healthy() -> &'static str {
    "ok"
}

async fn metrics(State(cluster): State<Arc<EmbeddedCluster>>) -> Response {
    let text = cluster.metrics.text(&cluster.store.census());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// A request in the name of another user is that user's. Everybody with a token may do everything, so also this.
async fn impersonate(mut request: Request, next: Next) -> Response {
    let named = request.headers().get(IMPERSONATE_USER).and_then(|value| value.to_str().ok());
    if let Some(user) = named.map(User::named) {
        request.extensions_mut().insert(user);
    }
    next.run(request).await
}

/// Lets through who bears a known token. Health is everybody's.
async fn authenticate(State(cluster): State<Arc<EmbeddedCluster>>, mut request: Request, next: Next) -> Response {
    if matches!(request.uri().path(), "/healthz" | "/livez" | "/readyz") {
        return next.run(request).await;
    }
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    match token.and_then(|token| cluster.identity.user(token.trim(), cluster.now())) {
        Some(user) => {
            if let Some(shown) = request.extensions().get::<ShownToken>() {
                shown.accept();
            }
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        None => respond::refused(&Refusal::new(RefusalReason::Unauthorized, "Unauthorized")),
    }
}
