//! What the component in use has read in a call, for a candidate to read again (C-344).

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_core::{
    error::{Code, Fault},
    name::{ApiVersion, Kind},
    port::BoxFuture,
};
use orangery_ocm::{
    Artifact, ArtifactFuture, Artifacts, ComponentReference, ComponentSource, ResourceKey, Resources, Unavailable,
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
    recorded::{ReadQuestion, RecordedRead, RecordedSource},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// What the component in use has read in a call: a candidate reads it again, and nothing else, so that it costs no cluster anything and
/// is told nothing that has come of the call meanwhile.
#[derive(Clone, Default)]
pub(super) struct NotedAnswers {
    pub(super) reads: Vec<RecordedRead>,
    pub(super) content: Vec<(RecordedSource, Arc<dyn Artifact>)>,
}

/// A kind as it is noted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotedKind {
    api_version: ApiVersion,
    kind: Kind,
    plural: String,
    namespaced: bool,
}

fn not_read(what: &impl Serialize) -> Fault {
    let what = serde_json::to_string(what).unwrap_or_default();
    Fault::later(Code::Unfinished, format!("the version in use has not read {what}, so its candidate does not either"))
}

impl NotedAnswers {
    fn find<T: DeserializeOwned>(&self, asked: &ReadQuestion) -> Result<T, Fault> {
        let found = self.reads.iter().find(|noted| noted.read == *asked).ok_or_else(|| not_read(asked))?;
        match &found.fault {
            Some(fault) => Err(fault.clone().into()),
            None => serde_json::from_value(found.answer.clone()).map_err(|_| not_read(asked)),
        }
    }

    fn object(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault> {
        self.find(&ReadQuestion::Get { on: on.clone(), key: key.clone() })
    }

    fn content<'a>(&self, asked: &RecordedSource) -> ArtifactFuture<'a> {
        let found = self.content.iter().find(|(source, _)| source == asked).map(|(_, content)| Arc::clone(content));
        let found = found.ok_or_else(|| not_read(asked));
        Box::pin(async move { found })
    }
}

impl Clusters for NotedAnswers {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move { self.object(on, key) })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(async move { keys.iter().map(|key| self.object(on, key)).collect() })
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move { self.find(&ReadQuestion::List { on: on.clone(), what: what.clone() }) })
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move { self.find(&ReadQuestion::Version { on: on.clone() }) })
    }

    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async move {
            let kinds: Vec<NotedKind> = self.find(&ReadQuestion::Discover { on: on.clone() })?;
            let kind = |NotedKind { api_version, kind, plural, namespaced }| ApiResource {
                api_version,
                kind,
                plural,
                namespaced,
            };
            Ok(kinds.into_iter().map(kind).collect())
        })
    }
}

impl Artifacts for NotedAnswers {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        Artifacts::component(&Unavailable, reference)
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        self.content(&RecordedSource::Oci(reference.to_owned()))
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        self.content(&RecordedSource::Url(url.to_owned()))
    }

    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        let [url, chart, version] = [url, chart, version].map(str::to_owned);
        self.content(&RecordedSource::HelmRepository { url, chart, version })
    }
}

impl Resources for NotedAnswers {
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        self.content(&resource_source(key))
    }

    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        self.content(&component_source(of))
    }
}

/// A resource as a recording names it.
pub(super) fn resource_source(key: &ResourceKey) -> RecordedSource {
    let (name, version) = (&key.component.name, &key.component.version);
    let written = json!({"component": {"name": name, "version": version}, "resource": key.resource});
    RecordedSource::ComponentResource(BASE64.encode(written.to_string().as_bytes()))
}

/// A component version as a recording names it.
pub(super) fn component_source(of: &ComponentSource) -> RecordedSource {
    RecordedSource::ComponentDescriptors(match of {
        ComponentSource::Reference(reference) => json!({"ref": {
            "repositoryContext": reference.repository_context.as_deref(),
            "componentName": reference.name,
            "version": reference.version,
        }}),
        ComponentSource::Inline(descriptor) => json!({"inline": descriptor.as_ref()}),
    })
}

#[cfg(test)]
mod tests {
    use orangery_ocm::{Document, KeyComponent, VersionReference};
    use orangery_proposal::recorded::RecordedFault;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": name}))
            .unwrap()
    }

    fn read(read: Value, answer: Value) -> RecordedRead {
        serde_json::from_value(json!({"read": read, "answer": answer})).unwrap()
    }

    #[tokio::test]
    async fn c_344_a_candidate_is_told_what_the_version_in_use_has_read_and_nothing_else() {
        let on = ClusterRef::Target;
        let get = |name: &str| json!({"get": {"key": key(name)}});
        let what: Selection = serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod"})).unwrap();
        let kind = json!({"apiVersion": "v1", "kind": "Pod", "plural": "pods", "namespaced": true});
        let refused = Fault::denied("no");
        let fault = Some(RecordedFault::from(refused.clone()));
        let noted = NotedAnswers {
            reads: vec![
                read(get("one"), json!({"a": 1})),
                read(get("nobody"), Value::Null),
                RecordedRead { fault, ..read(get("refused"), Value::Null) },
                read(json!({"list": {"what": {"apiVersion": "v1", "kind": "Pod"}}}), json!([1])),
                read(json!({"version": {}}), json!("v1.33.0")),
                read(json!({"discover": {}}), json!([kind])),
            ],
            content: Vec::new(),
        };
        assert_eq!(noted.get(&on, &key("refused")).await, Err(refused));
        assert_eq!(noted.get_many(&on, &[key("one"), key("nobody")]).await, Ok(vec![Some(json!({"a": 1})), None]));
        assert_eq!(noted.list(&on, &what).await, Ok(vec![json!(1)]));
        assert_eq!(noted.version(&on).await, Ok("v1.33.0".to_owned()));
        let pods =
            ApiResource { api_version: "v1".into(), kind: "Pod".into(), plural: "pods".into(), namespaced: true };
        assert_eq!(noted.discover(&on).await, Ok(vec![pods]));
        let not_read = noted.version(&ClusterRef::Host).await.unwrap_err().to_string();
        let expected =
            "the version in use has not read {\"version\":{\"on\":\"host\"}}, so its candidate does not either";
        assert!(not_read.contains(expected), "{not_read}");
        assert!(noted.get_many(&on, &[key("one"), key("other")]).await.is_err());
    }

    #[tokio::test]
    async fn c_344_the_same_of_content() {
        let component = KeyComponent { name: "example.org/shop".to_owned(), version: "1".to_owned() };
        let resource = ResourceKey { component, resource: [("name".to_owned(), "chart".to_owned())].into() };
        let (repository_context, version) = (None, "1".to_owned());
        let name = "example.org/shop".to_owned();
        let of = ComponentSource::Reference(VersionReference { repository_context, name, version });
        let [url, chart, version] = ["u", "c", "v"].map(str::to_owned);
        let sources = [
            RecordedSource::Oci("r".into()),
            RecordedSource::Url("u".into()),
            RecordedSource::HelmRepository { url, chart, version },
            resource_source(&resource),
            component_source(&of),
        ];
        let content = sources.map(|source| (source, Arc::new(Document::json(&json!(1))) as Arc<dyn Artifact>));
        let noted = NotedAnswers { reads: Vec::new(), content: content.to_vec() };
        assert!(noted.oci("r").await.is_ok() && noted.url("u").await.is_ok());
        assert!(
            noted.helm_repository("u", "c", "v").await.is_ok() && noted.helm_repository("u", "c", "w").await.is_err()
        );
        assert!(noted.resource(&resource).await.is_ok() && noted.descriptors(&of).await.is_ok());
        assert!(noted.oci("u").await.is_err() && noted.url("r").await.is_err());
    }
}
