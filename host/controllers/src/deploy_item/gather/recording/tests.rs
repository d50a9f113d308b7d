use orangery_core::error::Code;
use orangery_ocm::{Document, KeyComponent, VersionReference};
use orangery_turns::SharedBytes;

use super::*;

/// A cluster that answers the name of what is asked for, and nothing of a kind that is not served; content is its own address.
struct Echo;

fn refused() -> Fault {
    Fault::invalid(Code::ConfigurationProblem, "not served")
}

fn found(name: &str) -> Result<Arc<dyn Artifact>, Fault> {
    if name.contains("missing") { Err(refused()) } else { Ok(Arc::new(Document::json(&json!(name)))) }
}

impl Clusters for Echo {
    fn get<'a>(&'a self, _: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move {
            match key.name.as_str() {
                "nobody" => Ok(None),
                "refused" => Err(refused()),
                "large" => Ok(Some(json!("x".repeat(1 << 20)))),
                name => Ok(Some(json!(name))),
            }
        })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(futures::future::try_join_all(keys.iter().map(|key| self.get(on, key))))
    }

    fn list<'a>(&'a self, _: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move { Ok(vec![json!(what.kind)]) })
    }

    fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { Ok("v1.33.0".to_owned()) })
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        let kind =
            ApiResource { api_version: "v1".into(), kind: "Pod".into(), plural: "pods".into(), namespaced: true };
        Box::pin(async move { Ok(vec![kind]) })
    }
}

impl Artifacts for Echo {
    fn component<'a>(&'a self, _: &'a ComponentReference) -> ArtifactFuture<'a> {
        Box::pin(async { Err(refused()) })
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move { found(reference) })
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move { found(url) })
    }

    fn helm_repository<'a>(&'a self, _: &'a str, chart: &'a str, _: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move { found(chart) })
    }
}

impl Resources for Echo {
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        Box::pin(async move { found(&key.component.name) })
    }

    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        Box::pin(async move { found(of.name()) })
    }
}

fn recording() -> (Arc<RecordingReads>, Reads) {
    recording_within(64 << 20)
}

/// The same where all calls have so many bytes together, of which one namespace has half.
fn recording_within(bytes: u64) -> (Arc<RecordingReads>, Reads) {
    let echo = Arc::new(Echo);
    let reads = Reads { clusters: echo.clone(), artifacts: echo.clone(), resources: echo };
    let recording = RecordingReads::over(reads, SharedBytes::new(bytes).none_of(&None));
    let reads = recording.reads();
    (recording, reads)
}

fn key(name: &str) -> ObjectKey {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": name})).unwrap()
}

#[tokio::test]
async fn c_340_each_read_is_recorded_once_with_what_was_answered_first() {
    let (recording, reads) = recording();
    let (on, host) = (ClusterRef::Target, ClusterRef::Host);
    let what: Selection = serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod"})).unwrap();
    assert_eq!(reads.clusters.get(&on, &key("one")).await, Ok(Some(json!("one"))));
    assert_eq!(reads.clusters.get_many(&on, &[key("one"), key("nobody")]).await, Ok(vec![Some(json!("one")), None]));
    assert!(reads.clusters.get_many(&on, &[key("refused")]).await.is_err());
    assert_eq!(reads.clusters.list(&host, &what).await, Ok(vec![json!("Pod")]));
    assert!(reads.clusters.version(&on).await.is_ok() && reads.clusters.discover(&on).await.is_ok());
    let noted = recording.noted().await.ok().unwrap();
    let get =
        |name: &str| json!({"get": {"key": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": name}}});
    let fault = json!({"invalid": {"code": "ERR_CONFIGURATION_PROBLEM", "message": "not served"}});
    let kind = json!({"apiVersion": "v1", "kind": "Pod", "plural": "pods", "namespaced": true});
    let expected = json!([
        {"read": get("one"), "answer": "one"},
        {"read": get("nobody"), "answer": null},
        {"read": get("refused"), "answer": null, "fault": fault},
        {"read": {"list": {"on": "host", "what": {"apiVersion": "v1", "kind": "Pod"}}}, "answer": ["Pod"]},
        {"read": {"version": {}}, "answer": "v1.33.0"},
        {"read": {"discover": {}}, "answer": [kind]},
    ]);
    assert_eq!(json!(noted.reads), expected);
    assert!(noted.artifacts.is_empty() && noted.content.is_empty());
}

#[tokio::test]
async fn c_340_content_is_recorded_by_what_was_asked_for_and_lies_in_files_beside() {
    let (recording, reads) = recording();
    let component = KeyComponent { name: "example.org/shop".to_owned(), version: "1".to_owned() };
    let resource = ResourceKey { component, resource: [("name".to_owned(), "chart".to_owned())].into() };
    let reference =
        VersionReference { repository_context: None, name: "example.org/shop".to_owned(), version: "1".to_owned() };
    let version = ComponentSource::Reference(reference);
    for _ in 0..2 {
        let content = reads.artifacts.oci("r/a:1").await.unwrap();
        assert_eq!(content.content().await.unwrap().as_slice(), b"\"r/a:1\"");
        assert_eq!((content.size(), content.is_in_memory(), content.at_hand().await.is_some()), (7, true, true));
        assert!(content.layer("x").await.unwrap().is_none());
    }
    assert!(
        reads.artifacts.url("https://a").await.is_ok() && reads.artifacts.helm_repository("u", "c", "v").await.is_ok()
    );
    assert!(reads.resources.resource(&resource).await.is_ok() && reads.resources.descriptors(&version).await.is_ok());
    let NotedCall { artifacts, content, .. } = recording.noted().await.ok().unwrap();
    let sources: Vec<RecordedSource> = artifacts.iter().map(|artifact| artifact.source.clone()).collect();
    let [oci, url, chart, RecordedSource::ComponentResource(written), RecordedSource::ComponentDescriptors(source)] =
        &sources[..]
    else {
        panic!("{sources:?}")
    };
    assert_eq!((oci, url), (&RecordedSource::Oci("r/a:1".into()), &RecordedSource::Url("https://a".into())));
    assert_eq!(*chart, RecordedSource::HelmRepository { url: "u".into(), chart: "c".into(), version: "v".into() });
    assert_eq!(ResourceKey::read(written), Ok(resource));
    assert_eq!(ComponentSource::read(&source.to_string()), Ok(version));
    let files: Vec<&str> = artifacts.iter().map(|artifact| artifact.file.as_str()).collect();
    assert_eq!(files, ["content-0", "content-1", "content-2", "content-3", "content-4"]);
    assert_eq!((content.len(), content[0].1.as_slice()), (5, b"\"r/a:1\"".as_slice()));
}

#[tokio::test]
async fn c_340_limits_recording_a_call_that_reads_more_is_not_recorded_and_neither_is_one_without_its_content() {
    let (recording, reads) = self::recording();
    for number in 0..MOST_RECORDED_BYTES >> 20 {
        let on = ClusterRef::Named(number.to_string());
        assert!(reads.clusters.get(&on, &key("large")).await.is_ok());
        assert!(reads.clusters.get(&on, &key("large")).await.is_ok(), "asked again it counts once");
    }
    assert_eq!(recording.noted().await.err(), Some(TOO_LARGE));
    let (recording, reads) = self::recording();
    assert!(reads.artifacts.oci(&"x".repeat(16 << 20)).await.is_ok());
    assert_eq!(recording.noted().await.err(), Some(TOO_LARGE));
    let (recording, reads) = self::recording();
    assert!(reads.artifacts.oci("missing").await.is_err());
    assert_eq!(recording.noted().await.err(), Some(NO_CONTENT));
}

#[tokio::test]
async fn c_340_limits_recording_all_calls_that_are_recorded_at_once_have_a_sum() {
    let (recording, reads) = recording_within(3 << 20);
    assert!(reads.clusters.get(&ClusterRef::Target, &key("large")).await.is_ok());
    assert!(reads.clusters.get(&ClusterRef::Host, &key("large")).await.is_ok(), "the call goes on");
    assert_eq!(recording.noted().await.err(), Some(NO_ROOM));
    let (recording, reads) = recording_within(3 << 20);
    assert!(reads.clusters.get(&ClusterRef::Target, &key("large")).await.is_ok());
    assert!(reads.artifacts.oci(&"x".repeat(1 << 20)).await.is_ok());
    assert_eq!(recording.noted().await.err(), Some(NO_ROOM));
}
