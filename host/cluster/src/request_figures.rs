//! What requests to clusters came to, counted for metrics.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::Method;
use orangery_figures::{DurationCounts, Durations};

use crate::Error;

/// The methods as metrics name them; the last one stands for all others.
const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "other"];

/// What requests come to, as metrics name it.
const RESULTS: [&str; 4] = ["answered", "refused", "unreachable", "unanswered"];

/// The requests of one method.
#[derive(Debug, Default)]
struct OfMethod {
    results: [AtomicU64; RESULTS.len()],
    durations: Durations,
}

/// The requests to all clusters of a pool. There are too many clusters, and tenants choose them, for each to have figures (C-390).
#[derive(Debug, Default)]
pub(crate) struct RequestFigures {
    by_method: [OfMethod; METHODS.len()],
}

/// The requests of one method to all clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCounts {
    /// The method in small letters; `other` for unusual ones.
    pub method: &'static str,
    /// How many came to what.
    pub results: Vec<(&'static str, u64)>,
    /// How long they took.
    pub durations: DurationCounts,
}

impl RequestFigures {
    /// A request has ended that took so long, its turn and what the server wanted it to wait included.
    pub(crate) fn count<T>(&self, method: &Method, answer: &Result<T, Error>, took: Duration) {
        let known = METHODS.iter().position(|name| name.eq_ignore_ascii_case(method.as_str()));
        let result = match answer {
            Ok(_) => 0,
            Err(Error::Unreachable { .. }) => 2,
            Err(Error::Unanswered { .. }) => 3,
            Err(_) => 1,
        };
        let Some(of) = self.by_method.get(known.unwrap_or(METHODS.len() - 1)) else { return };
        of.results.get(result).into_iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        of.durations.add(took);
    }

    /// Those so far.
    pub(crate) fn counts(&self) -> Vec<RequestCounts> {
        let counts = METHODS.into_iter().zip(&self.by_method).map(|(method, of)| RequestCounts {
            method,
            results: RESULTS
                .into_iter()
                .zip(of.results.each_ref().map(|count| count.load(Ordering::Relaxed)))
                .collect(),
            durations: of.durations.counts(),
        });
        counts.filter(|of| of.durations.count() > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_by_its_method_and_by_what_it_came_to() {
        let figures = RequestFigures::default();
        let key = || {
            Box::new(orangery_proposal::ObjectKey {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: None,
                name: "a".into(),
            })
        };
        let out_of_time = Error::OutOfTime { cluster: "c".to_owned(), key: key() };
        let unanswered = Error::Unanswered { cluster: "c".to_owned(), key: key(), seconds: 30 };
        let second = Duration::from_secs(1);
        figures.count(&Method::GET, &Ok(()), second);
        figures.count(&Method::GET, &Err::<(), _>(out_of_time), second);
        figures.count(&Method::GET, &Err::<(), _>(unanswered), second);
        figures.count(&Method::from_bytes(b"STRANGE").unwrap(), &Ok(()), second);
        let counts = figures.counts();
        let found: Vec<_> = counts.iter().map(|of| (of.method, of.results.clone(), of.durations.count())).collect();
        let got = vec![("answered", 1), ("refused", 1), ("unreachable", 0), ("unanswered", 1)];
        let strange = vec![("answered", 1), ("refused", 0), ("unreachable", 0), ("unanswered", 0)];
        assert_eq!(found, [("get", got, 3), ("other", strange, 1)]);
    }
}
