//! How many requests were answered, as Prometheus text under the names of the real API server.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

/// What a request is counted under.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    /// `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE`, `DELETECOLLECTION`.
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) code: u16,
}

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Guards the counters, one addition at a time.
    requests: Mutex<BTreeMap<Series, u64>>,
}

impl Metrics {
    /// Counts one request; a watch counts once, when it starts.
    pub(crate) fn count(&self, series: Series) {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(series).or_default() += 1;
    }

    /// The text for `/metrics`; `census` is how many objects each collection holds.
    pub(crate) fn text(&self, census: &[(std::sync::Arc<str>, usize)]) -> String {
        let mut text = String::from(
            "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, group, version, resource, subresource and code.\n\
             # TYPE apiserver_request_total counter\n",
        );
        let line = |text: &mut String, line: std::fmt::Arguments<'_>| {
            text.write_fmt(line).expect("writing to a String does not fail");
        };
        for (series, count) in self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let Series { verb, group, version, resource, subresource, code } = series;
            line(
                &mut text,
                format_args!(
                    "apiserver_request_total{{verb=\"{verb}\",group=\"{group}\",version=\"{version}\",resource=\"{resource}\",subresource=\"{subresource}\",code=\"{code}\"}} {count}\n"
                ),
            );
        }
        text.push_str("# HELP apiserver_storage_objects Number of stored objects split by kind.\n# TYPE apiserver_storage_objects gauge\n");
        for (collection, count) in census {
            line(&mut text, format_args!("apiserver_storage_objects{{resource=\"{collection}\"}} {count}\n"));
        }
        text
    }
}
