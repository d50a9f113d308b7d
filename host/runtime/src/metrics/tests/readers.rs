//! What is remembered of readers of metrics (C-391).

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{Json, routing::post};

use super::*;
use crate::metrics::reader::{LONGEST_REFUSED, LONGEST_REMEMBERED, MOST_REMEMBERED};

/// Readers whose server knows all tokens but `nobody`, lets all users read but `evil`, and how often it was asked about a token.
fn readers() -> (MetricsReaders, Arc<AtomicUsize>) {
    let reviews = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reviews);
    let tokens = move |Json(mut review): Json<Value>| async move {
        counted.fetch_add(1, Ordering::SeqCst);
        let token = review["spec"]["token"].as_str().unwrap().to_owned();
        review["status"] = json!({"authenticated": token != "nobody", "user": {"username": token}});
        (StatusCode::CREATED, review.to_string())
    };
    let access = |Json(mut review): Json<Value>| async move {
        review["status"] = json!({"allowed": review["spec"]["user"] != "evil"});
        (StatusCode::CREATED, review.to_string())
    };
    let router = Router::new()
        .route("/apis/authentication.k8s.io/v1/tokenreviews", post(tokens))
        .route("/apis/authorization.k8s.io/v1/subjectaccessreviews", post(access));
    (MetricsReaders::authorized(crate::requests::in_process(router, &Requests::default())), reviews)
}

async fn check(readers: &MetricsReaders, token: &str) -> Result<(), RefusedReader> {
    readers.check(&HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])).await
}

#[tokio::test(start_paused = true)]
async fn c_391_limits_metrics_an_answer_about_a_known_user_counts_for_so_long() {
    let (readers, reviews) = readers();
    for _ in 0..3 {
        assert_eq!(check(&readers, "alice").await, Ok(()));
        assert_eq!(check(&readers, "evil").await, Err(RefusedReader::Forbidden));
    }
    assert_eq!(reviews.load(Ordering::SeqCst), 2);
    for _ in 0..3 {
        assert_eq!(check(&readers, "nobody").await, Err(RefusedReader::Unknown));
    }
    assert_eq!(reviews.load(Ordering::SeqCst), 5, "a token may be known a moment later");
    tokio::time::advance(LONGEST_REFUSED).await;
    assert_eq!(check(&readers, "alice").await, Ok(()));
    assert_eq!(check(&readers, "evil").await, Err(RefusedReader::Forbidden));
    assert_eq!(reviews.load(Ordering::SeqCst), 6, "a right may have been given meanwhile");
    tokio::time::advance(LONGEST_REMEMBERED - LONGEST_REFUSED).await;
    assert_eq!(check(&readers, "alice").await, Ok(()));
    assert_eq!(reviews.load(Ordering::SeqCst), 7);
}

#[tokio::test(start_paused = true)]
async fn c_391_limits_metrics_so_many_tokens_are_remembered() {
    let (readers, reviews) = readers();
    for number in 0..=MOST_REMEMBERED {
        assert_eq!(check(&readers, &format!("t{number}")).await, Ok(()));
    }
    let before = reviews.load(Ordering::SeqCst);
    assert_eq!(check(&readers, "t1").await, Ok(()));
    assert_eq!(reviews.load(Ordering::SeqCst), before);
    assert_eq!(check(&readers, "t0").await, Ok(()));
    assert_eq!(reviews.load(Ordering::SeqCst), before + 1, "the first has left");
}
