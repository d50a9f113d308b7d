//! `orangery:deployer/cluster`: reads of granted clusters. The grants are asked before the port is.

use orangery_core::error::Fault;
use orangery_proposal::{
    deployer::{ApiResource, Clusters},
    grant::{Grants, Refusal},
};
use serde_json::Value;
use wasmtime::component::{HasData, Linker};

use super::{Capabilities, Guest};
use crate::{
    bindings::deployer::orangery::deployer::{
        cluster::{self, Host},
        types::{self, ClusterRef, ObjectKey, Selection},
    },
    convert,
    meter::Meter,
};

/// The most objects of one `get-many`.
const MOST_KEYS: usize = 1_000;

/// What `cluster` can see of a guest.
pub(crate) struct ClusterView<'a> {
    port: Option<&'a dyn Clusters>,
    grants: &'a Grants,
    meter: &'a mut Meter,
}

struct HasCluster;

impl HasData for HasCluster {
    type Data<'a> = ClusterView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    cluster::add_to_linker::<Guest, HasCluster>(linker, |guest| guest.capabilities.cluster())
}

impl Capabilities {
    /// What is behind `cluster`.
    pub(crate) fn cluster(&mut self) -> ClusterView<'_> {
        ClusterView {
            port: self.reads.as_ref().map(|reads| reads.clusters.as_ref()),
            grants: &self.grants,
            meter: &mut self.meter,
        }
    }
}

type ClusterCallResult<T> = wasmtime::Result<Result<T, types::Fault>>;

impl<'a> ClusterView<'a> {
    fn granted(&self, verdict: Result<(), Refusal>) -> Result<&'a dyn Clusters, Fault> {
        verdict.map_err(|refusal| Fault::denied(refusal.to_string()))?;
        self.port.ok_or_else(|| Fault::denied("there is no cluster in this call; only deployers read clusters"))
    }

    /// An object as text, counted.
    fn text(&mut self, object: &Value) -> wasmtime::Result<String> {
        let text = object.to_string();
        self.meter.carry(text.len())?;
        Ok(text)
    }
}

impl Host for ClusterView<'_> {
    async fn get(&mut self, on: ClusterRef, key: ObjectKey) -> ClusterCallResult<Option<String>> {
        self.meter.host_call(size(&key))?;
        let (on, key) = (convert::cluster_ref(on), convert::object_key(key));
        let port = match self.granted(self.grants.read(&on, &key)) {
            Ok(port) => port,
            Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
        };
        match self.meter.wait(port.get(&on, &key)).await {
            Ok(Some(object)) => Ok(Ok(Some(self.text(&object)?))),
            Ok(None) => Ok(Ok(None)),
            Err(fault) => Ok(Err(convert::fault_for_guest(fault))),
        }
    }

    async fn get_many(&mut self, on: ClusterRef, keys: Vec<ObjectKey>) -> ClusterCallResult<Vec<Option<String>>> {
        self.meter.host_call(keys.iter().map(size).sum())?;
        let on = convert::cluster_ref(on);
        let keys: Vec<orangery_proposal::ObjectKey> = keys.into_iter().map(convert::object_key).collect();
        let verdict = keys.iter().try_for_each(|key| self.grants.read(&on, key));
        let port = match self.granted(self.grants.cluster(&on).and(verdict)) {
            Ok(port) => port,
            Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
        };
        if keys.len() > MOST_KEYS {
            let fault = Fault::invalid(
                "ERR_LIMIT_EXCEEDED".into(),
                format!("`get-many` was asked for {} objects; ask for at most {MOST_KEYS} at once", keys.len()),
            );
            return Ok(Err(convert::fault_for_guest(fault)));
        }
        let mut texts = Vec::with_capacity(keys.len());
        match self.meter.wait(port.get_many(&on, &keys)).await {
            Ok(objects) => {
                for object in objects {
                    texts.push(object.map(|object| self.text(&object)).transpose()?);
                }
            }
            // There may be room for one after the other, each of which is a text by the time the next one comes.
            Err(Fault::Later(_)) => {
                for key in &keys {
                    match self.meter.wait(port.get(&on, key)).await {
                        Ok(object) => texts.push(object.map(|object| self.text(&object)).transpose()?),
                        Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
                    }
                }
            }
            Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
        }
        Ok(Ok(texts))
    }

    async fn list(&mut self, on: ClusterRef, what: Selection) -> ClusterCallResult<Vec<String>> {
        self.meter.host_call(what.names.iter().map(|name| name.len()).sum())?;
        let (on, what) = (convert::cluster_ref(on), convert::selection(what));
        let port = match self.granted(self.grants.list(&on, &what)) {
            Ok(port) => port,
            Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
        };
        match self.meter.wait(port.list(&on, &what)).await {
            Ok(objects) => {
                let mut texts = Vec::with_capacity(objects.len());
                for object in &objects {
                    texts.push(self.text(object)?);
                }
                Ok(Ok(texts))
            }
            Err(fault) => Ok(Err(convert::fault_for_guest(fault))),
        }
    }

    async fn version(&mut self, on: ClusterRef) -> ClusterCallResult<String> {
        self.meter.host_call(0)?;
        let on = convert::cluster_ref(on);
        let port = match self.granted(self.grants.cluster(&on)) {
            Ok(port) => port,
            Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
        };
        let answer = self.meter.wait(port.version(&on)).await;
        Ok(answer.map_err(convert::fault_for_guest))
    }

    async fn discover(&mut self, on: ClusterRef) -> ClusterCallResult<Vec<cluster::ApiResource>> {
        self.meter.host_call(0)?;
        let on = convert::cluster_ref(on);
        let port = match self.granted(self.grants.cluster(&on)) {
            Ok(port) => port,
            Err(fault) => return Ok(Err(convert::fault_for_guest(fault))),
        };
        match self.meter.wait(port.discover(&on)).await {
            Ok(resources) => {
                let bytes = resources.iter().map(|one| one.api_version.len() + one.kind.len() + one.plural.len() + 1);
                self.meter.carry(bytes.sum())?;
                Ok(Ok(resources.into_iter().map(api_resource).collect()))
            }
            Err(fault) => Ok(Err(convert::fault_for_guest(fault))),
        }
    }
}

fn size(key: &ObjectKey) -> usize {
    key.api_version.len()
        + key.kind.len()
        + key.name.len()
        + key.namespace.as_ref().map_or(0, |namespace| namespace.len())
}

fn api_resource(of: ApiResource) -> cluster::ApiResource {
    let ApiResource { api_version, kind, plural, namespaced } = of;
    cluster::ApiResource { api_version: api_version.into(), kind: kind.into(), plural, namespaced }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use orangery_core::port::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::{
        budget::{Budget, BudgetLimit},
        epochs::Epochs,
        error::CallStop,
        meter::SharedMemory,
    };

    /// Answers an object for every key, and fails the test when it is asked for Secrets.
    pub(in crate::capability) struct Everything;

    impl Clusters for Everything {
        fn get<'a>(
            &'a self,
            _on: &'a orangery_proposal::ClusterRef,
            key: &'a orangery_proposal::ObjectKey,
        ) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
            assert_ne!(key.kind, "Secret", "the port was asked for what is not granted");
            Box::pin(async move { Ok(Some(json!({"kind": key.kind}))) })
        }

        fn get_many<'a>(
            &'a self,
            on: &'a orangery_proposal::ClusterRef,
            keys: &'a [orangery_proposal::ObjectKey],
        ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
            Box::pin(futures::future::try_join_all(keys.iter().map(|key| self.get(on, key))))
        }

        fn list<'a>(
            &'a self,
            _on: &'a orangery_proposal::ClusterRef,
            what: &'a orangery_proposal::Selection,
        ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
            assert_ne!(what.kind, "Secret", "the port was asked for what is not granted");
            Box::pin(async { Ok(vec![json!({}), json!({})]) })
        }

        fn version<'a>(&'a self, _on: &'a orangery_proposal::ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
            Box::pin(async { Ok("1.33".to_owned()) })
        }

        fn discover<'a>(
            &'a self,
            _on: &'a orangery_proposal::ClusterRef,
        ) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
            Box::pin(async { Ok(vec![]) })
        }
    }

    fn key(kind: &str) -> ObjectKey {
        ObjectKey { api_version: "v1".into(), kind: kind.into(), namespace: Some("a".into()), name: "x".into() }
    }

    fn with_view<T>(budget: Budget, test: impl AsyncFnOnce(&mut ClusterView<'_>) -> T) -> T {
        let grants: Grants = serde_json::from_value(
            json!({"clusters": {"target": true}, "reads": [{"groups": [""], "kinds": ["ConfigMap"]}]}),
        )
        .unwrap();
        let mut meter = Meter::new(budget, Arc::new(SharedMemory::new(0)), Arc::new(Epochs::default()));
        let mut view = ClusterView { port: Some(&Everything), grants: &grants, meter: &mut meter };
        futures::executor::block_on(test(&mut view))
    }

    #[test]
    fn what_is_not_granted_is_denied_before_the_port_is_asked() {
        with_view(Budget::default(), async |view| {
            let denied = |fault: types::Fault| match fault {
                types::Fault::Denied(problem) => (problem.code, problem.message),
                types::Fault::Invalid(problem) | types::Fault::Later(problem) => panic!("{}", problem.message),
            };
            let secret = "v1 Secret in namespace a is not granted to this component; have an administrator add it to `reads` in the grants of its registration, or of its Plugin";
            let expected = ("ERR_FORBIDDEN".to_owned(), secret.to_owned());
            assert_eq!(denied(view.get(ClusterRef::Target, key("Secret")).await.unwrap().unwrap_err()), expected);
            let both = vec![key("ConfigMap"), key("Secret")];
            assert_eq!(denied(view.get_many(ClusterRef::Target, both).await.unwrap().unwrap_err()), expected);
            let all = Selection {
                api_version: "v1".into(),
                kind: "Secret".into(),
                namespace: Some("a".into()),
                names: vec![],
                labels: None,
                fields: None,
            };
            assert_eq!(denied(view.list(ClusterRef::Target, all).await.unwrap().unwrap_err()), expected);
            for on in [ClusterRef::Host, ClusterRef::Named("b".into())] {
                assert_eq!(denied(view.version(on.clone()).await.unwrap().unwrap_err()).0, "ERR_FORBIDDEN");
                assert_eq!(denied(view.discover(on.clone()).await.unwrap().unwrap_err()).0, "ERR_FORBIDDEN");
                assert_eq!(denied(view.get_many(on, vec![]).await.unwrap().unwrap_err()).0, "ERR_FORBIDDEN");
            }
        });
    }

    #[test]
    fn what_is_granted_is_answered_in_the_order_asked() {
        with_view(Budget::default(), async |view| {
            let objects = view.get_many(ClusterRef::Target, vec![key("ConfigMap"); 2]).await.unwrap().unwrap();
            assert_eq!(objects, vec![Some(r#"{"kind":"ConfigMap"}"#.to_owned()); 2]);
            assert_eq!(view.version(ClusterRef::Target).await.unwrap().unwrap(), "1.33");
        });
    }

    #[test]
    fn answers_are_charged_to_the_call() {
        with_view(Budget { host_call_bytes: 25, ..Budget::default() }, async |view| {
            let error = view.get(ClusterRef::Target, key("ConfigMap")).await.unwrap_err();
            assert_eq!(error.downcast_ref::<CallStop>(), Some(&CallStop::Limit(BudgetLimit::HostCallBytes)));
        });
    }

    #[test]
    fn too_many_keys_at_once_are_refused() {
        with_view(Budget::default(), async |view| {
            let fault = view.get_many(ClusterRef::Target, vec![key("ConfigMap"); 1_001]).await.unwrap().unwrap_err();
            let types::Fault::Invalid(problem) = fault else { panic!("{fault:?}") };
            assert_eq!(problem.message, "`get-many` was asked for 1001 objects; ask for at most 1000 at once");
        });
    }
}
