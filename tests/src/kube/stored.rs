//! What a kube-apiserver has stored in its etcd, remembered and put back: the next test finds the server as the first one did.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use http::Request;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, ListParams},
    discovery::Discovery,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{DEADLINE, loopback};

/// Where kube-apiserver keeps its objects.
const PREFIX: &str = "/registry/";
/// The first key after them.
const END: &str = "/registry0";

/// What the server writes by itself, and at any time.
const OF_THE_SERVER: [&str; 6] = [
    "/registry/apiregistration.k8s.io/",
    "/registry/configmaps/kube-system/",
    "/registry/flowschemas/",
    "/registry/leases/kube-system/",
    "/registry/masterleases/",
    "/registry/prioritylevelconfigurations/",
];

/// Requests in one transaction; etcd takes 128.
const MOST_CHANGES: usize = 100;

/// The objects of a server at one time.
pub(super) struct Stored {
    /// The port of etcd.
    etcd: u16,
    /// By key, in base64 as etcd answers it.
    values: BTreeMap<String, String>,
    /// The kinds that the server had, by their plural names.
    kinds: BTreeMap<String, ApiResource>,
}

impl Stored {
    /// Those of the server now, whose etcd listens at this port.
    pub(super) async fn now(etcd: u16, server: Client) -> Stored {
        let discovered = Discovery::new(server).run().await.expect("the server tells its kinds");
        let groups = discovered.groups().flat_map(|group| group.recommended_resources());
        let kinds = groups.map(|(kind, _)| (kind.plural.clone(), kind)).collect();
        let mut stored = Stored { etcd, values: BTreeMap::new(), kinds };
        stored.values = stored.read().await;
        stored
    }

    /// Makes them what they were; answers when the server knows it. Whoever wrote has ended.
    pub(super) async fn restore(&self, server: &Client) {
        let mut changed = BTreeSet::new();
        let until = Instant::now() + DEADLINE;
        loop {
            let present = self.read().await;
            let added = present.keys().filter(|key| !self.values.contains_key(*key));
            let lost = self.values.iter().filter(|(key, value)| present.get(*key) != Some(value));
            let changes: Vec<(&String, Value)> = added
                .map(|key| (key, json!({"requestDeleteRange": {"key": BASE64.encode(key.as_bytes())}})))
                .chain(lost.map(|(key, value)| {
                    (key, json!({"requestPut": {"key": BASE64.encode(key.as_bytes()), "value": value}}))
                }))
                .collect();
            if changes.is_empty() {
                break;
            }
            assert!(Instant::now() < until, "somebody still writes: {:?}", changes.first());
            changed.extend(changes.iter().filter_map(|(key, _)| self.kind(key)).cloned());
            for some in changes.chunks(MOST_CHANGES) {
                let success: Vec<&Value> = some.iter().map(|(_, change)| change).collect();
                self.ask("txn", &json!({"success": success})).await;
            }
        }
        // A list without a version is answered when the server has seen what etcd has: what is served from memory after
        // it is not older.
        for plural in changed {
            let Some(kind) = self.kinds.get(&plural) else { continue };
            let api: Api<DynamicObject> = Api::all_with(server.clone(), kind);
            api.list(&ListParams::default()).await.expect("the server lists its objects");
        }
    }

    /// The plural name of the kind of an object: after the group, where that is not one of the server's own.
    fn kind(&self, key: &str) -> Option<&String> {
        let mut parts = key.strip_prefix(PREFIX)?.split('/').take(2);
        parts.find_map(|part| self.kinds.get_key_value(part)).map(|(plural, _)| plural)
    }

    async fn read(&self) -> BTreeMap<String, String> {
        let range = json!({"key": BASE64.encode(PREFIX.as_bytes()), "range_end": BASE64.encode(END.as_bytes())});
        let answer = self.ask("range", &range).await;
        let entries = answer.pointer("/kvs").and_then(Value::as_array).into_iter().flatten();
        let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let entries = entries.map(|entry| {
            let key = BASE64.decode(text(entry, "key").as_bytes()).expect("etcd answers base64");
            (String::from_utf8_lossy(&key).into_owned(), text(entry, "value"))
        });
        entries.filter(|(key, _)| !OF_THE_SERVER.iter().any(|own| key.starts_with(own))).collect()
    }

    /// Asks etcd by its gateway for JSON.
    async fn ask(&self, what: &str, question: &Value) -> Value {
        // A client ends with the runtime that it was made in, which is that of one test.
        let config = Config::new(loopback(self.etcd).parse().expect("an address is one of an URL"));
        let client = Client::try_from(config).expect("a client can be made of it");
        let request = Request::post(format!("/v3/kv/{what}")).body(question.to_string().into_bytes());
        let answer = client.request_text(request.expect("a request")).await;
        let answer = answer.unwrap_or_else(|error| crate::fail(&format!("etcd refuses {what}: {error}")));
        serde_json::from_str(&answer).expect("etcd answers JSON")
    }
}
