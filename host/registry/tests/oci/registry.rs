//! Debian's `docker-registry` on loopback, with TLS and with a user and a password, and a client that pushes to it.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use bytes::Bytes;
use data_encoding::BASE64;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use orangery_core::digest::sha256;
use orangery_registry::oci::{DockerConfig, Keyring, RegistrySettings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

pub(crate) const USER: &str = "puller";
pub(crate) const PASSWORD: &str = "a password: with a colon";
/// `perl -e 'print crypt("a password: with a colon", "\$2b\$04\$orangeryorangeryorange")'`
const ENTRY: &str = "puller:$2b$04$orangeryorangeryorangeTuJATEDBhE2Iqm.1IfIytXKUVuy.8TW\n";

/// Serves until it is dropped.
pub(crate) struct RealRegistry {
    /// `localhost:…`
    pub(crate) host: String,
    /// The certificate authority that signed its certificate.
    authority: String,
    pusher: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    process: Child,
    folder: TempDir,
}

impl RealRegistry {
    /// A test that starts it says that it needs it, and is ignored where the package is not installed.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = write_files(folder.path());
        let mut process = Command::new("docker-registry")
            .arg("serve")
            .arg(folder.path().join("config.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("docker-registry starts");
        let port = port(&mut process).await;
        let pusher = pusher(&authority);
        Self { host: format!("localhost:{port}"), authority, pusher, process, folder }
    }

    /// What an operator writes to trust it.
    pub(crate) fn settings(&self) -> RegistrySettings {
        RegistrySettings::default().with_certificates(self.authority().as_bytes()).expect("a certificate")
    }

    /// The certificate authority that signed its certificate, in PEM.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// What a user writes into a Secret to pull from it.
    pub(crate) fn docker_config(&self, password: &str) -> String {
        json!({"auths": {&self.host: {"username": USER, "password": password}}}).to_string()
    }

    /// The same, read.
    pub(crate) fn keyring(&self, password: &str) -> Keyring {
        let config = DockerConfig::read(&self.docker_config(password), "Secret team/pull").expect("a configuration");
        Keyring::default().with_docker_config(config)
    }

    /// Ends it: whoever asks it from now on gets nothing.
    pub(crate) async fn stop(&mut self) {
        self.process.kill().await.expect("it ran until now");
    }

    /// Pushes a blob; the answer is its descriptor.
    pub(crate) async fn push_blob(&self, repository: &str, media_type: &str, content: &[u8]) -> Value {
        let uploads = format!("https://{}/v2/{repository}/blobs/uploads/", self.host);
        let (status, location) = self.send(Method::POST, &uploads, "", Vec::new()).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let digest = sha256(content);
        let upload = format!("{}&digest={digest}", location.expect("where to upload"));
        let (status, _) = self.send(Method::PUT, &upload, "application/octet-stream", content.to_vec()).await;
        assert_eq!(status, StatusCode::CREATED);
        json!({"mediaType": media_type, "digest": digest, "size": content.len()})
    }

    /// Pushes a manifest of blobs that are there; the answer is its digest.
    pub(crate) async fn push_manifest(&self, repository: &str, tag: &str, config: &Value, layers: &[Value]) -> String {
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers});
        self.put_manifest(repository, tag, media_type, manifest.to_string().into_bytes()).await
    }

    /// Pushes a manifest, or an index of manifests, as it is; the answer is its digest.
    pub(crate) async fn put_manifest(&self, repository: &str, tag: &str, media_type: &str, bytes: Vec<u8>) -> String {
        let digest = sha256(&bytes);
        let url = format!("https://{}/v2/{repository}/manifests/{tag}", self.host);
        let (status, _) = self.send(Method::PUT, &url, media_type, bytes).await;
        assert_eq!(status, StatusCode::CREATED);
        digest
    }

    /// Has it give something else for a blob that it has, from now on, as a registry does whose storage somebody has changed.
    pub(crate) fn replace_blob(&self, digest: &str, content: &[u8]) {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let of_two = hex.get(..2).expect("a digest");
        let blob = format!("storage/docker/registry/v2/blobs/sha256/{of_two}/{hex}/data");
        let blob = self.folder.path().join(blob);
        assert!(blob.is_file(), "it has no blob {digest}");
        std::fs::write(blob, content).expect("it can be written");
    }

    async fn send(&self, method: Method, url: &str, content_type: &str, body: Vec<u8>) -> (StatusCode, Option<String>) {
        let login = BASE64.encode(format!("{USER}:{PASSWORD}").as_bytes());
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(header::AUTHORIZATION, format!("Basic {login}"))
            .header(header::CONTENT_TYPE, content_type)
            .body(Full::from(body))
            .expect("a request");
        let answer = self.pusher.request(request).await.expect("an answer");
        let location = answer.headers().get(header::LOCATION).map(|value| value.to_str().expect("text").to_owned());
        (answer.status(), location)
    }
}

/// Configuration, password file, certificate and key; the answer is the authority's certificate.
fn write_files(folder: &Path) -> String {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
    let rendered = |name: &str| folder.join(name).display().to_string();
    let authority_key = KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("an authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&authority_key).expect("a certificate");
    let key = KeyPair::generate().expect("a key");
    let own = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    let own = own.signed_by(&key, &Issuer::new(authority, authority_key)).expect("a certificate");
    write("certificate.pem", &own.pem());
    write("key.pem", &key.serialize_pem());
    write("htpasswd", ENTRY);
    let config = json!({
        "version": 0.1,
        "log": {"accesslog": {"disabled": true}},
        "storage": {"filesystem": {"rootdirectory": rendered("storage")}},
        "http": {"addr": "127.0.0.1:0", "tls": {"certificate": rendered("certificate.pem"), "key": rendered("key.pem")}},
        "auth": {"htpasswd": {"realm": "test", "path": rendered("htpasswd")}},
    });
    write("config.yml", &config.to_string());
    certificate.pem()
}

/// The port that it says it listens on.
async fn port(process: &mut Child) -> u16 {
    let mut lines = BufReader::new(process.stderr.take().expect("its log")).lines();
    let listening = async {
        let mut log = Vec::new();
        while let Some(line) = lines.next_line().await.expect("its log") {
            if let Some((_, rest)) = line.split_once("listening on 127.0.0.1:") {
                return rest.split(',').next().and_then(|port| port.parse().ok()).expect("a port");
            }
            log.push(line);
        }
        assert_eq!(log.join("\n"), "", "docker-registry ended before it listened");
        0
    };
    let port = timeout(Duration::from_secs(30), listening).await.expect("it listens within 30 s");
    // The writer of a log waits for its reader.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    port
}

fn pusher(authority: &str) -> Client<HttpsConnector<HttpConnector>, Full<Bytes>> {
    use rustls::pki_types::pem::PemObject;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
    Client::builder(TokioExecutor::new()).build(connector)
}
