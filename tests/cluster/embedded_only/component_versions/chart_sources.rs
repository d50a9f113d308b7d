//! Where charts come from: a registry, a repository, a web server and a component version, read with the credentials of the
//! item's Context.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use data_encoding::BASE64;
use orangery_core::digest::sha256;
use orangery_tests::{
    chart::{deploy, item, packed},
    cluster::Cluster,
    repository,
    tree::{API, any, in_phase},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const USER: &str = "reader:hunter2";

/// What a server answers to everything, and for how many seconds it wants to be left alone then.
type Refusal = Arc<Mutex<Option<(StatusCode, Option<u32>)>>>;

/// A web server, repository and registry that only the reader reads.
pub(super) struct ChartServer {
    pub(super) address: SocketAddr,
    answers: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// The paths of what was served.
    served: Arc<Mutex<Vec<String>>>,
    refusal: Refusal,
    task: JoinHandle<()>,
}

impl Drop for ChartServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChartServer {
    async fn start() -> Self {
        let answers: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let refusal = Refusal::default();
        let served: Arc<Mutex<Vec<String>>> = Arc::default();
        let (known, refused, noted) = (Arc::clone(&answers), Arc::clone(&refusal), Arc::clone(&served));
        let wanted = format!("Basic {}", BASE64.encode(USER.as_bytes()));
        let app = Router::new().fallback(move |request: Request| {
            let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
            let is_known = sent == Some(&wanted) || request.uri().path().starts_with("/open/");
            let answer = known.lock().expect("a lock").get(request.uri().path()).cloned();
            let refusal = *refused.lock().expect("a lock");
            if is_known && refusal.is_none() && answer.is_some() {
                noted.lock().expect("a lock").push(request.uri().path().to_owned());
            }
            async move {
                let mut headers = HeaderMap::new();
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"charts\""));
                match (refusal, answer) {
                    (Some((status, pause)), _) => {
                        headers.extend(pause.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))));
                        (status, headers, Vec::new())
                    }
                    _ if !is_known => (StatusCode::UNAUTHORIZED, headers, Vec::new()),
                    (None, Some(answer)) => (StatusCode::OK, headers, answer),
                    (None, None) => (StatusCode::NOT_FOUND, headers, Vec::new()),
                }
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Self { address, answers, served, refusal, task }
    }

    /// How often something was served whose path has this in it.
    pub(super) fn served(&self, part: &str) -> usize {
        self.served.lock().expect("a lock").iter().filter(|path| path.contains(part)).count()
    }

    /// From now on everything is answered so; `None` for as before.
    fn refuse(&self, refusal: Option<(StatusCode, Option<u32>)>) {
        *self.refusal.lock().expect("a lock") = refusal;
    }

    pub(super) fn put(&self, path: &str, content: &[u8]) {
        self.answers.lock().expect("a lock").insert(path.to_owned(), content.to_vec());
    }

    /// Pushes a chart under a tag.
    pub(super) fn push(&self, tag: &str, chart: &[u8]) {
        self.push_signed(tag, chart, None);
    }

    /// The same with its provenance.
    fn push_signed(&self, tag: &str, chart: &[u8], provenance: Option<&[u8]>) {
        let blob = |media_type: &str, content: &[u8]| self.blob("charts/app", media_type, content);
        let config = blob("application/vnd.cncf.helm.config.v1+json", b"{}");
        let provenance = provenance.map(|file| blob("application/vnd.cncf.helm.chart.provenance.v1.prov", file));
        let layers: Vec<_> = [blob(CHART, chart)].into_iter().chain(provenance).collect();
        self.manifest("charts/app", tag, &config, &layers);
    }

    /// A blob; the answer is its descriptor.
    pub(super) fn blob(&self, repository: &str, media_type: &str, content: &[u8]) -> Value {
        let digest = sha256(content);
        self.put(&format!("/v2/{repository}/blobs/{digest}"), content);
        json!({"mediaType": media_type, "digest": digest, "size": content.len()})
    }

    /// The manifest of a tag.
    pub(super) fn manifest(&self, repository: &str, tag: &str, config: &Value, layers: &[Value]) {
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
        self.put(&format!("/v2/{repository}/manifests/{tag}"), manifest.to_string().as_bytes());
    }
}

/// A chart with one ConfigMap, whose text says where it came from.
pub(super) fn chart(from: &str) -> Vec<u8> {
    let config = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {from}}}\ndata: {{version: {{{{ .Capabilities.KubeVersion.Version }}}}}}\n"
    );
    BASE64.decode(packed("1.0.0", &[("config.yaml", &config)]).as_bytes()).expect("a packed chart is base64")
}

/// An item that installs a chart as a release of the same name.
pub(super) fn release(name: &str, chart: &Value) -> Value {
    let mut item = item("", &json!({"config": {"chart": chart, "name": name}}));
    item["metadata"]["name"] = json!(name);
    item["spec"]["context"] = json!("charts");
    item
}

pub(super) async fn start() -> (ChartServer, Cluster) {
    let shelf = ChartServer::start().await;
    let named = shelf.address.to_string();
    let flags = ["--ephemeral", "--plain-http-registry", &named];
    let cluster = Cluster::start(&crate::binary().await, &flags).await;
    let (user, password) = USER.split_once(':').unwrap_or_default();
    let pull = json!({"auths": {named.clone(): {"username": user, "password": password}}}).to_string();
    let header = format!("Basic {}", BASE64.encode(USER.as_bytes()));
    for (name, key, content) in [("pull", ".dockerconfigjson", pull), ("charts", "authHeader", header)] {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {key: content}});
        cluster.apply(&secret).await;
    }
    let auths = json!([{"url": format!("http://{named}/stable"), "secretRef": {"name": "charts"}}]);
    let context = json!({
        "apiVersion": API, "kind": "Context", "metadata": {"name": "charts"},
        "registryPullSecrets": [{"name": "pull"}], "configurations": {"helmChartRepoCredentials": {"auths": auths}},
    });
    cluster.apply(&context).await;
    (shelf, cluster)
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_chart_comes_from_a_registry_a_repository_a_web_server_and_a_component() {
    let (shelf, cluster) = start().await;
    let address = shelf.address;
    shelf.push("1.0.0", &chart("registry"));
    shelf.push("component", &chart("component"));
    let of_repository = chart("repository");
    let hex = sha256(&of_repository).replacen("sha256:", "", 1);
    let index = format!("entries: {{app: [{{version: 1.0.0, urls: [app-1.0.0.tgz], digest: {hex}}}]}}");
    shelf.put("/stable/index.yaml", index.as_bytes());
    shelf.put("/stable/app-1.0.0.tgz", &of_repository);
    shelf.put("/open/app.tgz", &chart("server"));

    let sources = [
        ("registry", json!({"ref": format!("{address}/charts/app:1.0.0"), "digest": sha256(&chart("registry"))})),
        (
            "repository",
            json!({"helmChartRepo": {"helmChartRepoUrl": format!("http://{address}/stable"), "helmChartName": "app",
                "helmChartVersion": "1.0.0"}}),
        ),
        ("server", json!({"archive": {"remote": {"url": format!("http://{address}/open/app.tgz")}}})),
    ];
    for (name, source) in &sources {
        deploy(&cluster, &release(name, source)).await;
    }
    cluster.apply(&of_component(&format!("{address}/charts/app:component"))).await;
    let version = cluster.client().apiserver_version().await.expect("a server has a version").git_version;
    for name in ["registry", "repository", "server", "component"] {
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"version": version}});
        cluster.expect(&config).await;
    }
    for (name, _) in &sources {
        cluster.expect(&in_phase("DeployItem", name, "Succeeded")).await;
    }
    cluster.expect(&in_phase("Installation", "component", "Succeeded")).await;

    // A tag that moved is another chart for the next job, and none where a digest says which one is meant.
    shelf.push("1.0.0", &chart("moved"));
    deploy(&cluster, &release("registry", &sources[0].1)).await;
    let failed = cluster.expect(&in_phase("DeployItem", "registry", "Failed")).await;
    let message = failed.pointer("/status/lastError/message").and_then(Value::as_str).unwrap_or_default();
    let expected = format!(
        "plugin helm: the chart {address}/charts/app:1.0.0 has the digest {}, and chart.digest asks for {}; the chart was \
         replaced, or the digest is of another one",
        sha256(&chart("moved")),
        sha256(&chart("registry"))
    );
    assert_eq!(message.split(" (at ").next(), Some(expected.as_str()), "{message}");
    deploy(&cluster, &release("registry", &json!({"ref": format!("{address}/charts/app:1.0.0")}))).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "moved"}})).await;
}

/// An installation whose component says where its chart is.
fn of_component(image: &str) -> Value {
    let access = json!({"type": "ociArtifact", "imageReference": image});
    let resource =
        json!({"name": "chart", "version": "1.0.0", "type": "helmChart", "relation": "external", "access": access});
    let component = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": "example.org/shop", "version": "1.0.0", "provider": "us", "repositoryContexts": [], "sources": [],
            "componentReferences": [], "resources": [resource],
        },
    });
    let blueprint = "
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Blueprint
imports:
- {name: cluster, type: target, targetType: landscaper.gardener.cloud/kubernetes-cluster}
deployExecutions:
- name: default
  type: GoTemplate
  template: |
    deployItems:
    - name: chart
      type: landscaper.gardener.cloud/helm
      target: {import: cluster}
      config:
        apiVersion: helm.deployer.landscaper.gardener.cloud/v1alpha1
        kind: ProviderConfiguration
        name: component
        namespace: default
        chart: {resourceRef: {{ getResourceKey `cd://resources/chart` }}}
";
    json!({
        "apiVersion": API, "kind": "Installation",
        "metadata": {"name": "component", "annotations": {"landscaper.gardener.cloud/operation": "reconcile"}},
        "spec": {
            "context": "charts",
            "componentDescriptor": {"inline": component},
            "imports": {"targets": [{"name": "cluster", "target": "cluster"}]},
            "blueprint": {"inline": {"filesystem": {"blueprint.yaml": blueprint}}},
        },
    })
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_chart_is_held_against_its_provenance_where_that_is_asked_for() {
    let (shelf, cluster) = start().await;
    let read = |file: &str| fs::read(repository().join("tests/charts/signed").join(file)).expect("the file is there");
    let (packed, file) = (read("signed-1.0.0.tgz"), read("signed-1.0.0.tgz.prov"));
    let keyring = String::from_utf8(read("keyring.asc")).expect("a keyring is text");
    shelf.push_signed("signed", &packed, Some(&file));
    shelf.push_signed("other", &chart("other"), Some(&file));
    shelf.push("plain", &packed);
    let of =
        |tag: &str| json!({"ref": format!("{}/charts/app:{tag}", shelf.address), "provenance": {"keyring": keyring}});
    for tag in ["signed", "other", "plain"] {
        deploy(&cluster, &release(tag, &of(tag))).await;
    }
    cluster.expect(&in_phase("DeployItem", "signed", "Succeeded")).await;
    for (tag, expected) in [("other", "is not what its provenance file says: "), ("plain", "has no provenance file; ")]
    {
        let failed = cluster.expect(&in_phase("DeployItem", tag, "Failed")).await;
        let message = failed.pointer("/status/lastError/message").and_then(Value::as_str).unwrap_or_default();
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn an_unavailable_chart_is_reported_in_one_sentence_and_nothing_is_written() {
    let (shelf, cluster) = start().await;
    let address = shelf.address;
    shelf.put("/open/large.tgz", &vec![0; (32 << 20) + 1]);
    shelf.put("/open/none.tgz", b"no archive");
    let message = async |name: &str, chart: &Value| {
        deploy(&cluster, &release(name, chart)).await;
        let failed = cluster.expect(&in_phase("DeployItem", name, "Failed")).await;
        failed.pointer("/status/lastError/message").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let url = |path: &str| format!("http://{address}/{path}");
    let remote = |path: &str| json!({"archive": {"remote": {"url": url(path)}}});
    let of_repository = |place: &str, version: &str| json!({"helmChartRepo": {"helmChartRepoUrl": url(place), "helmChartName": "app", "helmChartVersion": version}});
    shelf.put("/open/index.yaml", b"entries: {app: [{version: 1.0.0, urls: [a.tgz]}]}");
    let cases = [
        ("none", remote("open/none.tgz"), "cannot be used: it is no archive; pack it with helm package"),
        ("large", remote("open/large.tgz"), "has 32 MiB; at most 32 MiB are read"),
        ("closed", remote("closed.tgz"), "the server answered 401 to a request without credentials"),
        ("stranger", of_repository("other", "1.0.0"), "the server answered 401 to a request without credentials"),
        ("key", json!({"resourceRef": "%"}), "the resource key \"%\" cannot be used: it is no base64"),
    ];
    for (name, chart, expected) in &cases {
        let message = message(name, chart).await;
        assert!(message.contains(expected) && !message.contains("hunter2"), "{name}: {message}");
    }
    let secrets = cluster.list(&json!({"apiVersion": "v1", "kind": "Secret"})).await;
    let releases: Vec<_> = secrets.iter().filter(|secret| secret["type"] == "helm.sh/release.v1").collect();
    assert_eq!(releases, Vec::<&Value>::new());
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_123_c_09_a_registry_that_is_down_is_waited_for_within_the_time_of_its_item() {
    let (shelf, cluster) = start().await;
    shelf.push("1.0.0", &chart("late"));
    let says = async |why: &str| {
        let message =
            format!("plugin helm: cannot get the manifest of {}/charts/app:1.0.0: the registry {why}", shelf.address);
        let is_so = |item: &Value| {
            let (status, error) = (&item["status"], &item["status"]["lastError"]);
            let progress = status["conditions"].as_array().into_iter().flatten();
            let progress = progress.filter(|condition| condition["type"] == "Progressing");
            let reasons: Vec<&Value> = progress.map(|condition| &condition["reason"]).collect();
            (&status["phase"], &error["message"]) == (&json!("Progressing"), &json!(message))
                && (&error["reason"], &error["codes"], reasons.as_slice())
                    == (&json!("PluginTryLater"), &Value::Null, [&json!("TransientError")].as_slice())
        };
        cluster.expect_that(&any("DeployItem", "late"), "does not say that its registry is down", is_so).await;
    };
    shelf.refuse(Some((StatusCode::SERVICE_UNAVAILABLE, None)));
    let mut item = release("late", &json!({"ref": format!("{}/charts/app:1.0.0", shelf.address)}));
    item["spec"]["timeout"] = json!("100s");
    deploy(&cluster, &item).await;
    says("is not available at the moment: it answered 503").await;
    shelf.refuse(Some((StatusCode::TOO_MANY_REQUESTS, Some(3))));
    says("takes no more requests for 3 s, as it has asked for (Retry-After)").await;
    shelf.refuse(None);
    let done = cluster.expect(&in_phase("DeployItem", "late", "Succeeded")).await;
    assert_eq!(done["status"]["lastError"], Value::Null);
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})).await;
}
