//! Content by reference, as deployers ask for it: with whose credentials, how often, and what is refused.

use std::sync::Arc;

use axum::{
    extract::Request,
    http::{StatusCode, header},
};
use orangery_core::{
    digest::sha256,
    error::{Code, Fault},
};
use orangery_ocm::{
    AllowedSources, Artifact, Artifacts, ChartLogin, ChartRepositories, ComponentVersions, Credentials, FetchQuota,
    KeyComponent, ResourceKey, Secret,
};
use orangery_registry::{Repositories, oci};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    filled_registry::{FilledRegistry, local, start, start_with},
    keeping::inline,
    server::{Server, endless, limits, status, with},
};

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// A host whose operator names these servers, and what these credentials may read there.
fn reading(servers: &[&Server], credentials: &Credentials) -> (Arc<dyn Artifacts>, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let plain_http = servers.iter().map(|server| server.address.to_string()).collect();
    let settings = oci::RegistrySettings { limits: limits(), plain_http, ..oci::RegistrySettings::default() };
    (start_with(&folder, settings).artifacts(credentials).expect("artifacts"), folder)
}

fn login(url: &str, header: &str) -> ChartLogin {
    let origin = "Context team/usual".to_owned();
    ChartLogin { url: url.to_owned(), authorization: Some(Secret(header.into())), certificates: None, origin }
}

fn of_charts(logins: Vec<ChartLogin>) -> Credentials {
    Credentials { chart_repositories: ChartRepositories { logins, unusable: None }, ..Credentials::default() }
}

/// Media type and text.
async fn read(found: Result<Arc<dyn Artifact>, Fault>) -> Result<(String, String), Fault> {
    let found = found?;
    let content = found.content().await?;
    assert_eq!((found.size(), found.digest()), (content.len() as u64, sha256(&content).as_str()));
    Ok((found.media_type().to_owned(), String::from_utf8_lossy(&content).into_owned()))
}

fn chart(text: &str) -> Result<(String, String), Fault> {
    Ok((CHART.to_owned(), text.to_owned()))
}

/// An artifact with a chart and its provenance, which stands first.
fn push(filled: &FilledRegistry, tag: &str, text: &[u8]) {
    let config = filled.blob("charts/shop", "application/vnd.cncf.helm.config.v1+json", b"{}");
    let layers = [filled.blob("charts/shop", PROVENANCE, b"signed"), filled.blob("charts/shop", CHART, text)];
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string();
    filled.put(&format!("/v2/charts/shop/manifests/{tag}"), StatusCode::OK, manifest.as_bytes());
}

#[tokio::test]
async fn a_chart_of_a_registry_is_its_chart_layer_and_a_tag_that_moved_is_seen() {
    let filled = FilledRegistry::open().await;
    push(&filled, "1.0.0", b"one");
    let (artifacts, _folder) = reading(&[], &Credentials::default());
    let reference = format!("{}/charts/shop:1.0.0", filled.server.address);
    assert_eq!(read(artifacts.oci(&reference).await).await, chart("one"));
    let found = artifacts.oci(&reference).await.expect("found");
    let signed = found.layer(PROVENANCE).await.expect("an answer").expect("a layer");
    assert_eq!(read(Ok(signed)).await, Ok((PROVENANCE.to_owned(), "signed".to_owned())));
    assert!(found.layer("text/plain").await.expect("an answer").is_none());

    push(&filled, "1.0.0", b"two");
    assert_eq!(read(artifacts.oci(&reference).await).await, chart("two"));
    assert_eq!(read(Ok(found)).await, chart("one"), "what was found stays what it is");
    let contents = filled.server.seen().iter().filter(|seen| seen.path.contains(&sha256(b"one"))).count();
    assert_eq!(contents, 1, "content is fetched once");

    let as_repository = format!("oci://{}/charts/", filled.server.address);
    push(&filled, "1.0.0_b1", b"three");
    assert_eq!(read(artifacts.helm_repository(&as_repository, "shop", "1.0.0+b1").await).await, chart("three"));
    let missing = artifacts.oci(&format!("{}/charts/shop:9", filled.server.address)).await.err().expect("missing");
    assert!(matches!(&missing, Fault::Later(of) if of.message.contains("/charts/shop:9")), "C-148: {missing}");
}

#[tokio::test]
async fn a_reference_that_names_nothing_is_told() {
    let (artifacts, _folder) = reading(&[], &Credentials::default());
    for reference in ["", "r.example/a:b:c", "r.example/A"] {
        let fault = artifacts.oci(reference).await.err().expect("refused");
        assert!(matches!(fault, Fault::Invalid(_)) && fault.to_string().starts_with(reference), "{fault}");
    }
    let fault = artifacts.url("https://u:hunter2@r.example/a").await.err().expect("refused").to_string();
    let user = "has a user in it; put the credentials into the ocmConfig of the Context";
    assert_eq!(fault, format!("the address of the file {user}"));
    let fault = artifacts.helm_repository("ftp://r.example", "a", "1").await.err().expect("refused").to_string();
    assert_eq!(
        fault,
        "the address of the chart repository is no address of a web server: it has to begin with https://"
    );
    let fault = artifacts.helm_repository("https://r.example", "a", "").await.err().expect("refused").to_string();
    assert_eq!(fault, "the chart a has no version; say which one, such as 1.2.3");
}

#[tokio::test]
async fn a_file_of_a_web_server_has_the_digest_of_what_came() {
    let server = Server::start(|request: Request| async move {
        match request.uri().path() {
            "/chart.tgz" => with(status(200, "packed"), header::CONTENT_TYPE, "application/gzip"),
            "/endless" => status(200, endless()),
            _ => status(404, ""),
        }
    })
    .await;
    // Credentials of chart repositories are for these alone.
    let url = |path: &str| format!("http://{}/{path}", server.address);
    let (artifacts, _folder) = reading(&[&server], &of_charts(vec![login(&url(""), "Bearer hunter2")]));
    let packed = Ok(("application/gzip".to_owned(), "packed".to_owned()));
    assert_eq!(read(artifacts.url(&url("chart.tgz")).await).await, packed);
    assert_eq!(server.seen().first().and_then(|seen| seen.headers.get(header::AUTHORIZATION).cloned()), None);
    let fault = artifacts.url(&url("endless")).await.err().expect("too much").to_string();
    let most = limits().blob;
    assert_eq!(
        fault,
        format!("cannot get the file {}: it has more than {most} bytes, which is the limit", url("endless"))
    );
    let fault = artifacts.url(&url("gone")).await.err().expect("missing");
    assert!(matches!(&fault, Fault::Later(problem) if problem.code == Code::ConfigurationProblem), "C-148: {fault:?}");
}

/// A repository with one chart that only the bearer of a token reads.
async fn guarded(token: &'static str, chart: &'static str) -> Server {
    Server::start(move |request: Request| async move {
        let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        match request.uri().path() {
            _ if sent != Some(token) => status(401, ""),
            "/stable/index.yaml" => status(
                200,
                format!(
                    "entries: {{shop: [{{version: 1.0.0, urls: [shop.tgz], digest: {}}}]}}",
                    sha256(chart.as_bytes()).replacen("sha256:", "", 1)
                ),
            ),
            "/stable/shop.tgz" => status(200, chart),
            "/stable/shop.tgz.prov" if chart == "ours" => status(200, "signed"),
            _ => status(404, ""),
        }
    })
    .await
}

#[tokio::test]
async fn credentials_of_a_chart_repository_go_to_no_other() {
    let (ours, theirs) = (guarded("Bearer one", "ours").await, guarded("Bearer two", "theirs").await);
    let logins = vec![login(&ours.address.to_string(), "Bearer one"), login(&theirs.address.to_string(), "Bearer two")];
    let (artifacts, _folder) = reading(&[&ours, &theirs], &of_charts(logins));
    for (server, text) in [(&ours, "ours"), (&theirs, "theirs")] {
        let repository = format!("http://{}/stable", server.address);
        let all = (0..4).map(|_| artifacts.helm_repository(&repository, "shop", "1.0.0"));
        for found in futures::future::join_all(all).await {
            assert_eq!(read(found).await, chart(text));
        }
        assert_eq!(read(artifacts.helm_repository(&repository, "shop", "1.0.0").await).await, chart(text));
        let paths: Vec<_> = server.seen().into_iter().map(|seen| seen.path).collect();
        assert_eq!(paths, ["/stable/index.yaml", "/stable/shop.tgz"], "who asks for the same shares one answer");
        let sent: Vec<_> = server.seen().into_iter().map(|seen| seen.headers[header::AUTHORIZATION].clone()).collect();
        let own = if text == "ours" { "Bearer one" } else { "Bearer two" };
        assert_eq!(sent, [own; 2]);
    }
    let repository = format!("http://{}/stable", ours.address);
    let found = artifacts.helm_repository(&repository, "shop", "1.0.0").await.expect("found");
    let beside = found.layer(PROVENANCE).await.expect("an answer").expect("a layer");
    assert_eq!(read(Ok(beside)).await, Ok((PROVENANCE.to_owned(), "signed".to_owned())));
    let repository = format!("http://{}/stable", theirs.address);
    let found = artifacts.helm_repository(&repository, "shop", "1.0.0").await.expect("found");
    let missing = found.layer(PROVENANCE).await.err().expect("no such file").to_string();
    assert!(missing.starts_with(&format!("cannot get the file {repository}/shop.tgz.prov: ")), "{missing}");

    let (without, _folder) = reading(&[&ours], &Credentials::default());
    let repository = format!("http://{}/stable", ours.address);
    let fault = without.helm_repository(&repository, "shop", "1.0.0").await.err().expect("no credentials");
    assert_eq!(fault.problem().code, Code::Unauthorized, "{fault}");

    let unusable = ChartRepositories { logins: Vec::new(), unusable: Some("the Secret is gone".to_owned()) };
    let credentials = Credentials { chart_repositories: unusable, ..Credentials::default() };
    let (broken, _folder) = reading(&[&ours], &credentials);
    let fault = broken.helm_repository(&repository, "shop", "1.0.0").await.err().expect("unusable");
    assert_eq!(fault, Fault::invalid(Code::ConfigurationProblem, "the Secret is gone"));
}

#[tokio::test]
async fn an_authority_of_a_chart_repository_is_trusted_for_it_alone() {
    let index = "entries: {shop: [{version: 1.0.0, urls: [shop.tgz]}]}";
    let answer = move |request: Request| async move {
        if request.uri().path().ends_with("index.yaml") { status(200, index) } else { status(200, "packed") }
    };
    let (server, settings) = Server::start_with_tls(answer).await;
    let pem = pem_of(&settings);
    let trusted = ChartLogin { authorization: None, certificates: Some(pem), ..login(&server.address.to_string(), "") };
    let (artifacts, _folder) = reading(&[], &of_charts(vec![trusted]));
    let repository = format!("https://{}", server.address);
    assert_eq!(read(artifacts.helm_repository(&repository, "shop", "1.0.0").await).await, chart("packed"));
    let fault = artifacts.url(&format!("{repository}/shop.tgz")).await.err().expect("not trusted").to_string();
    assert!(fault.contains("certificate"), "{fault}");
}

#[tokio::test]
async fn c_327_why_a_certificate_is_not_accepted_is_told_with_how_to_name_its_authority() {
    let (server, _) = Server::start_with_tls(|_: Request| async { status(200, "") }).await;
    let host = server.address;
    let own = "is of no certificate authority that is trusted here; if it is of an authority of your own, ";
    let of_registry = format!(
        "the certificate of {host} {own}have an administrator name its file with --registry-ca (components.registryCA of the chart)"
    );
    let of_charts = format!(
        "the certificate of {host} {own}write that as customCAData into helmChartRepoCredentials of the Context"
    );
    let (artifacts, _folder) = reading(&[], &Credentials::default());
    let artifact = artifacts.oci(&format!("https://{host}/team/app:1")).await.err().expect("not trusted");
    let expected = format!("cannot get the manifest of {host}/team/app:1: {of_registry}");
    assert_eq!(artifact.to_string(), expected);
    let file = artifacts.url(&format!("https://{host}/a.tgz")).await.err().expect("not trusted");
    assert_eq!(file.to_string(), format!("cannot get the file https://{host}/a.tgz: {of_registry}"));
    let chart =
        artifacts.helm_repository(&format!("https://{host}"), "shop", "1.0.0").await.err().expect("not trusted");
    assert_eq!(chart.to_string(), format!("cannot get the file https://{host}/index.yaml: {of_charts}"));
}

fn pem_of(settings: &oci::RegistrySettings) -> String {
    let text = data_encoding::BASE64.encode(settings.certificates.first().expect("a certificate"));
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[tokio::test]
async fn a_resource_is_found_by_its_key_in_all_that_its_component_refers_to() {
    let filled = FilledRegistry::open().await;
    push(&filled, "1.0.0", b"of the registry");
    let blob = filled.blob("components/component-descriptors/example.org/a", CHART, b"of the component");
    let reference = format!("http://{}/charts/shop:1.0.0", filled.server.address);
    let access = json!({"type": "ociArtifact", "imageReference": reference});
    let far = json!({"name": "far", "version": "1", "type": "helmChart", "relation": "external", "access": access});
    filled.component("example.org/a", &json!([local("near", &blob), far]), std::slice::from_ref(&blob));
    let folder = tempfile::tempdir().expect("a folder");
    let host: Repositories = start(&folder);
    let version = host.open(&filled.request("example.org/a")).await.expect("a component");
    let key = |component: &str, name: &str| ResourceKey {
        component: KeyComponent { name: component.to_owned(), version: "1.0.0".to_owned() },
        resource: [("name".to_owned(), name.to_owned())].into(),
    };
    let found = async |key: ResourceKey| match version.keyed(&key).await {
        Ok(Some(found)) => Some(read(Ok(found)).await),
        Ok(None) => None,
        Err(fault) => Some(Err(fault)),
    };
    assert_eq!(found(key("example.org/a", "near")).await, Some(chart("of the component")));
    assert_eq!(found(key("example.org/a", "far")).await, Some(chart("of the registry")));
    assert_eq!(found(key("example.org/b", "near")).await, None);
    let missing = found(key("example.org/a", "other")).await.expect("an answer").expect_err("no such resource");
    assert!(missing.to_string().contains("has no resource with name=other"), "{missing}");

    // As it was written before access types had the names of today.
    let repository = guarded("Bearer one", "ours").await;
    let access = json!({"type": "helmChartRepository", "helmChartRepoUrl": format!("http://{}/stable", repository.address),
        "helmChartName": "shop", "helmChartVersion": "1.0.0"});
    let mut request = inline(&access);
    request.credentials = of_charts(vec![login(&repository.address.to_string(), "Bearer one")]);
    let plain_http = [repository.address.to_string()].into();
    let folder = tempfile::tempdir().expect("a folder");
    let settings = oci::RegistrySettings { limits: limits(), plain_http, ..oci::RegistrySettings::default() };
    let version = start_with(&folder, settings).open(&request).await.expect("a component");
    let found = version.keyed(&key("example.org/inline", "far")).await.expect("an answer").expect("found");
    assert_eq!(read(Ok(found)).await, chart("ours"));
}

/// Where signatures are required, what may be another thing by tomorrow is not read today either.
#[tokio::test]
async fn c_76_content_that_no_digest_names_is_not_asked_for() {
    let filled = FilledRegistry::open().await;
    push(&filled, "1.0", b"chart");
    let line = "NamespacePolicy team, line spec.signatures.required";
    let allowed = AllowedSources { digests_required_by: vec![line.to_owned()], ..AllowedSources::default() };
    let (artifacts, _folder) = reading(&[&filled.server], &Credentials { allowed, ..Credentials::default() });
    let address = filled.server.address;
    let refused = |fault: Option<Fault>| {
        let problem = fault.expect("refused").problem().clone();
        let text = format!(", which is not named by its digest, is refused by {line}; ");
        assert!(problem.code == Code::PolicyViolation && problem.message.contains(&text), "{problem}");
    };
    refused(artifacts.oci(&format!("{address}/charts/shop:1.0")).await.err());
    refused(artifacts.oci(&format!("{address}/charts/shop")).await.err());
    refused(artifacts.url(&format!("http://{address}/shop.tgz")).await.err());
    refused(artifacts.helm_repository(&format!("http://{address}"), "shop", "1.0").await.err());
    refused(artifacts.helm_repository(&format!("oci://{address}/charts"), "shop", "1.0").await.err());
    assert_eq!(filled.server.seen().len(), 0, "somebody was asked");
    let digest = sha256(filled.body("/v2/charts/shop/manifests/1.0").as_bytes());
    filled.copy("/v2/charts/shop/manifests/1.0", &format!("/v2/charts/shop/manifests/{digest}"));
    // A tag beside it is for people.
    let reference = format!("{address}/charts/shop:1.0@{digest}");
    assert_eq!(read(artifacts.oci(&reference).await).await, chart("chart"));
}

/// What a namespace may have fetched within an hour: its own requests alone meet the limit, and what is in the cache costs
/// nothing.
#[tokio::test]
async fn c_54_what_is_beyond_the_quota_of_a_namespace_is_refused_before_it_comes_and_a_neighbour_gets_it() {
    let filled = FilledRegistry::open().await;
    let texts = ["a", "b"].map(|text| text.repeat(600 << 10));
    push(&filled, "1", texts[0].as_bytes());
    push(&filled, "2", texts[1].as_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let plain_http = [filled.server.address.to_string()].into();
    let pull = oci::PullLimits { blob: 1 << 20, ..limits() };
    let settings = oci::RegistrySettings { limits: pull, plain_http, ..oci::RegistrySettings::default() };
    let repositories = start_with(&folder, settings);
    let of = |namespace: &str| {
        let line = "NamespacePolicy team, line spec.quotas.fetchedMiBPerHour".to_owned();
        let fetched = Some(FetchQuota { namespace: namespace.into(), most_mib: 1, line });
        let allowed = AllowedSources { fetched, ..AllowedSources::default() };
        repositories.artifacts(&Credentials { allowed, ..Credentials::default() }).expect("artifacts")
    };
    let (tenant, neighbour) = (of("a"), of("b"));
    let chart_of = |tag: &str| format!("{}/charts/shop:{tag}", filled.server.address);
    let blobs = || filled.server.seen().iter().filter(|request| request.path.contains("/blobs/")).count();
    assert_eq!(read(tenant.oci(&chart_of("1")).await).await, chart(&texts[0]));
    let Err(Fault::Denied(problem)) = read(tenant.oci(&chart_of("2")).await).await else { panic!("it came") };
    let told = "namespace a would have more than 1 MiB fetched within an hour, which NamespacePolicy team, line \
                spec.quotas.fetchedMiBPerHour refuses; ask again in ";
    assert!(problem.code == Code::PolicyViolation && problem.message.contains(told), "{problem}");
    assert_eq!(blobs(), 2, "the second one was asked for, and its answer not read");
    // At once with one that is refused.
    let (reference, again) = (chart_of("2"), chart_of("2"));
    let (refused, answered) = tokio::join!(async { read(tenant.oci(&reference).await).await }, async {
        read(neighbour.oci(&again).await).await
    },);
    assert!(matches!(refused, Err(Fault::Denied(_))), "{refused:?}");
    assert_eq!(answered, chart(&texts[1]), "what one is refused is told to no other");
    assert_eq!(read(tenant.oci(&reference).await).await, chart(&texts[1]), "it is in the cache now");
}
