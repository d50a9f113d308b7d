//! What was asked of the server, from its own counters.

use std::{collections::BTreeMap, ops::Sub};

use kube::Client;

/// Requests by verb and resource, such as `patch installations/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<String, u64>);

const COUNTER: &str = "apiserver_request_total{";
/// Verbs as a Kubernetes API server counts them: those of HTTP, but for server-side apply and collections.
const WRITES: [&str; 6] = ["post", "put", "patch", "apply", "delete", "deletecollection"];
const READS: [&str; 2] = ["get", "list"];

impl Requests {
    /// The counts so far.
    pub async fn counted(client: &Client) -> Requests {
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
        Requests::parse(&client.request_text(request).await.expect("the server answers its metrics"))
    }

    fn parse(text: &str) -> Requests {
        let mut counts = BTreeMap::new();
        for line in text.lines().filter_map(|line| line.strip_prefix(COUNTER)) {
            let Some((labels, count)) = line.rsplit_once("} ") else { continue };
            let label = |name: &str| labels.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
            let (verb, resource) = (label("verb").unwrap_or_default(), label("resource").unwrap_or_default());
            let of = match label("subresource").unwrap_or_default() {
                "" => resource.to_owned(),
                subresource => format!("{resource}/{subresource}"),
            };
            let count = count.trim().parse::<u64>().unwrap_or_default();
            *counts.entry(format!("{} {of}", verb.to_lowercase())).or_default() += count;
        }
        Requests(counts)
    }

    /// Writes, events apart.
    pub fn writes(&self) -> u64 {
        self.of(&WRITES)
    }

    /// Reads of single objects and lists; watches are neither.
    pub fn reads(&self) -> u64 {
        self.of(&READS)
    }

    /// Writes to a resource, and to its subresources.
    pub fn writes_to(&self, resource: &str) -> u64 {
        let wanted = |key: &str| {
            let (verb, of) = key.split_once(' ').unwrap_or_default();
            WRITES.contains(&verb) && of.split('/').next() == Some(resource)
        };
        self.0.iter().filter(|(key, _)| wanted(key)).map(|(_, count)| count).sum()
    }

    /// Watches on a resource that were begun.
    pub fn watches(&self, resource: &str) -> u64 {
        self.0.get(&format!("watch {resource}")).copied().unwrap_or_default()
    }

    fn of(&self, verbs: &[&str]) -> u64 {
        let counted = self.0.iter().filter(|(key, _)| {
            let (verb, resource) = key.split_once(' ').unwrap_or_default();
            // Kinds and health are found out once, and a request without a resource is neither read nor write.
            verbs.contains(&verb) && !resource.is_empty() && resource != "events"
        });
        counted.map(|(_, count)| count).sum()
    }
}

impl Sub for Requests {
    type Output = Requests;

    fn sub(self, before: Requests) -> Requests {
        let left = self.0.into_iter().map(|(key, count)| {
            let earlier = before.0.get(&key).copied().unwrap_or_default();
            (key, count.saturating_sub(earlier))
        });
        Requests(left.filter(|(_, count)| *count > 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"# TYPE apiserver_request_total counter
apiserver_request_total{verb="PATCH",group="x",version="v1",resource="things",subresource="status",code="200"} 2
apiserver_request_total{verb="GET",group="",version="",resource="",subresource="",code="200"} 1
"#;
    const AFTER: &str = r#"
apiserver_request_total{verb="PATCH",group="x",version="v1",resource="things",subresource="status",code="200"} 4
apiserver_request_total{verb="PATCH",group="x",version="v1",resource="things",subresource="status",code="409"} 1
apiserver_request_total{verb="GET",group="x",version="v1",resource="things",subresource="",code="200"} 1
apiserver_request_total{verb="GET",group="",version="",resource="",subresource="",code="200"} 9
apiserver_request_total{verb="POST",group="",version="v1",resource="events",subresource="",code="201"} 3
apiserver_request_total{verb="WATCH",group="x",version="v1",resource="things",subresource="",code="200"} 1
"#;

    #[test]
    fn reads_and_writes_are_counted_apart_without_events_and_watches() {
        let during = Requests::parse(AFTER) - Requests::parse(BEFORE);
        assert_eq!((during.writes(), during.reads()), (3, 1));
        assert_eq!((during.writes_to("things"), during.writes_to("events")), (3, 3));
        assert_eq!((during.watches("things"), during.watches("events")), (1, 0));
    }
}
