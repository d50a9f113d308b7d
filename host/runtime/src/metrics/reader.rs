//! Readers of metrics: they show a bearer token whose user may get `/metrics`, as the API server says (C-147).

use std::sync::Arc;

use axum::http::{
    HeaderMap, StatusCode,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;

/// The most tokens that the API server is asked about at once.
pub(super) const MOST_REVIEWS: usize = 4;

/// The longest token that it is asked about, in bytes.
pub(super) const LONGEST_TOKEN: usize = 8 << 10;

/// Those who may read metrics. Clones ask together.
#[derive(Clone)]
pub enum MetricsReaders {
    /// Whoever reaches the port.
    Anybody,
    /// Whose token the API server knows, and whom it lets `get` the path `/metrics`.
    Authorized(TokenReviewer),
}

/// Asks the API server about tokens.
#[derive(Clone)]
pub struct TokenReviewer {
    client: Client,
    turns: Arc<Semaphore>,
}

/// Why metrics are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedReader {
    /// No token, or one that the API server does not know.
    Unknown,
    /// A user who may not.
    Forbidden,
    /// The API server does not say.
    Unanswered,
}

impl MetricsReaders {
    /// Those whom the API server of this client lets read `/metrics`.
    pub fn authorized(client: Client) -> Self {
        Self::Authorized(TokenReviewer { client, turns: Arc::new(Semaphore::new(MOST_REVIEWS)) })
    }

    /// Whether whoever sends these headers may read metrics.
    pub(super) async fn check(&self, headers: &HeaderMap) -> Result<(), RefusedReader> {
        match self {
            MetricsReaders::Anybody => Ok(()),
            MetricsReaders::Authorized(reviewer) => reviewer.check(token(headers).ok_or(RefusedReader::Unknown)?).await,
        }
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_one = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN;
    is_one.then_some(token)
}

impl TokenReviewer {
    async fn check(&self, token: &str) -> Result<(), RefusedReader> {
        let _turn = self.turns.acquire().await.map_err(|_| RefusedReader::Unanswered)?;
        let answer = self.review(token).await;
        answer.unwrap_or_else(|error| {
            tracing::warn!(%error, "the API server does not say who may read metrics; see the rules of the chart");
            Err(RefusedReader::Unanswered)
        })
    }

    async fn review(&self, token: &str) -> kube::Result<Result<(), RefusedReader>> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = Api::<TokenReview>::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        let status = review.status.unwrap_or_default();
        let (true, Some(user)) = (status.authenticated == Some(true), status.user) else {
            return Ok(Err(RefusedReader::Unknown));
        };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some("/metrics".to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await?;
        let is_allowed = review.status.is_some_and(|status| status.allowed && status.denied != Some(true));
        Ok(if is_allowed { Ok(()) } else { Err(RefusedReader::Forbidden) })
    }
}

impl IntoResponse for RefusedReader {
    fn into_response(self) -> Response {
        match self {
            RefusedReader::Unknown => {
                let why = "metrics are shown for the bearer token of a user whom the API server lets get /metrics";
                (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], why).into_response()
            }
            RefusedReader::Forbidden => {
                let why = "this user may not get /metrics; bind a ClusterRole with nonResourceURLs: [/metrics] and verbs: [get]";
                (StatusCode::FORBIDDEN, why).into_response()
            }
            RefusedReader::Unanswered => {
                let why =
                    "the API server does not say whether this user may get /metrics; the log of the operator says why";
                (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
            }
        }
    }
}
