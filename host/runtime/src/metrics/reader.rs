//! Readers of metrics: they show a bearer token whose user may get `/metrics`, as the API server says (C-147). What it says is remembered for a short
//! time (C-391).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

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
use orangery_core::digest::sha256;
use tokio::{sync::Semaphore, time::Instant};

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

/// How long the answer counts that a user may read: a right that was taken away holds for so long (C-391).
pub(super) const LONGEST_REMEMBERED: Duration = Duration::from_secs(60);

/// How long the answer counts that a user may not: who is given the right waits for so long (C-391).
pub(super) const LONGEST_REFUSED: Duration = Duration::from_secs(5);

/// The most tokens whose answers are remembered; the one that was asked about first leaves (C-391).
pub(super) const MOST_REMEMBERED: usize = 64;

/// Asks the API server about tokens.
#[derive(Clone)]
pub struct TokenReviewer {
    client: Client,
    turns: Arc<Semaphore>,
    /// Protects what was answered about known users, the oldest first, by digests of their tokens. Held for one look or one change.
    remembered: Arc<Mutex<VecDeque<RememberedAnswer>>>,
}

/// What was answered about a known user.
struct RememberedAnswer {
    /// Of the token.
    digest: String,
    asked: Instant,
    answer: Result<(), RefusedReader>,
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
        Self::Authorized(TokenReviewer {
            client,
            turns: Arc::new(Semaphore::new(MOST_REVIEWS)),
            remembered: Arc::default(),
        })
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
        let digest = sha256(token.as_bytes());
        if let Some(answer) = self.remembered(&digest) {
            return answer;
        }
        let _turn = self.turns.acquire().await.map_err(|_| RefusedReader::Unanswered)?;
        // Another request with the token may have had its answer meanwhile.
        if let Some(answer) = self.remembered(&digest) {
            return answer;
        }
        let answer = self.review(token).await;
        let answer = answer.unwrap_or_else(|error| {
            tracing::warn!(%error, "the API server does not say who may read metrics; see the rules of the chart");
            Err(RefusedReader::Unanswered)
        });
        self.remember(digest, answer);
        answer
    }

    fn remembered(&self, digest: &str) -> Option<Result<(), RefusedReader>> {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered
            .retain(|of| of.asked.elapsed() < if of.answer.is_ok() { LONGEST_REMEMBERED } else { LONGEST_REFUSED });
        remembered.iter().find(|of| of.digest == digest).map(|of| of.answer)
    }

    /// Of tokens that nobody has, whoever tries some could fill the memory; and what was not answered is asked again.
    fn remember(&self, digest: String, answer: Result<(), RefusedReader>) {
        if matches!(answer, Err(RefusedReader::Unknown | RefusedReader::Unanswered)) {
            return;
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.pop_front();
        }
        remembered.push_back(RememberedAnswer { digest, asked: Instant::now(), answer });
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
