//! Resources on web servers: files (`wget`), charts of chart repositories (`helm`), commits of GitHub (`gitHub`).
//!
//! What a digest in the descriptor names is kept in the cache, for the same address and credentials.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::{
    component::{Content, Digest, media},
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    lenient, yaml,
};
use serde::Deserialize;
use serde_json::Value;

use super::{Reach, algorithm};
use crate::oci::{Consumer, File, Reference};

/// Bytes of the index of a chart repository; the greatest known ones have about 20 MiB.
const MOST_OF_AN_INDEX: u64 = 64 << 20;
/// A chart, as registries and the original call it.
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const TGZ: &str = "application/x-tgz";
const GITHUB: &str = "github.com";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Wget {
    url: String,
    media_type: String,
    header: BTreeMap<String, Vec<String>>,
    verb: String,
    body: Option<Value>,
    no_redirect: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Helm {
    helm_repository: String,
    helm_chart: String,
    version: String,
    ca_cert: String,
    keyring: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GitHub {
    repo_url: String,
    api_hostname: String,
    commit: String,
}

/// A version of a chart in the index of its repository.
#[derive(Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
struct Chart {
    version: String,
    urls: Vec<String>,
    digest: String,
}

impl Reach {
    /// A file of any web server.
    pub(super) async fn wget(&self, access: &Value, digest: Option<&Digest>) -> Result<Content, Fault> {
        let access: Wget = decoded(access)?;
        if !matches!(access.verb.as_str(), "" | "GET") || access.body.is_some_and(|body| !body.is_null()) {
            return Err(invalid("only GET without a body is supported".to_owned()));
        }
        let file = File::new(&access.url, Consumer::Files).map_err(|why| invalid(format!("its URL {why}")))?;
        let file = file.following(!access.no_redirect).with_headers(&access.header);
        let file = file.map_err(|why| invalid(format!("its header {why}")))?;
        let media_type = Some(access.media_type).filter(|told| !told.is_empty());
        self.file(file, digest, media_type.as_deref()).await
    }

    /// A chart in a chart repository, or in a registry.
    pub(super) async fn helm(&self, access: &Value, digest: Option<&Digest>) -> Result<Content, Fault> {
        let access: Helm = decoded(access)?;
        let (chart, version) = access.named().map_err(invalid)?;
        if access.helm_repository.starts_with("oci://") {
            return self.chart_of_registry(&access.helm_repository, chart, version).await;
        }
        let index = format!("{}/index.yaml", access.helm_repository.trim_end_matches('/'));
        let index = File::new(&index, Consumer::Charts).map_err(|why| invalid(format!("its helmRepository {why}")))?;
        // The chart is the same as long as its digest is: then nothing is asked.
        let fetch = || async {
            let found = self.registries.client().file(&index.clone().at_most(MOST_OF_AN_INDEX), &self.keyring).await?;
            let shown = index.shown();
            let (named, wanted) = (chart.to_owned(), version.to_owned());
            let read = tokio::task::spawn_blocking(move || chart_in(&found.bytes, &named, &wanted)).await;
            let read = read.map_err(|error| crate::interrupted(&shown, &error))?;
            let told = |why: String| Fault::invalid(Code::ConfigurationProblem, format!("the index {shown} {why}"));
            let (url, digest) = read.map_err(told)?;
            let file =
                index.beside(&url).map_err(|why| told(format!("has the address {url:?} for {chart}, which {why}")))?;
            Ok(self.registries.client().file(&file.with_digest(digest), &self.keyring).await?.bytes)
        };
        let question = format!("{} {chart}:{version}", index.identity());
        let bytes =
            self.registries.file(&question, &index.fingerprint(&self.keyring), digest_of(digest), fetch).await?;
        Ok(Content { media_type: CHART.to_owned(), bytes })
    }

    async fn chart_of_registry(&self, repository: &str, chart: &str, version: &str) -> Result<Content, Fault> {
        // A tag cannot have the `+` of a version; helm writes `_`.
        let named = format!("{}/{chart}:{}", repository.trim_end_matches('/'), version.replace('+', "_"));
        let reference: Reference = named.parse().map_err(|error| invalid(format!("{error}")))?;
        let manifest = self.registries.manifest(&reference, &self.keyring).await?;
        let bytes = self.layer(&reference, &manifest, |media_type| media_type == CHART).await?;
        Ok(Content { media_type: CHART.to_owned(), bytes })
    }

    /// All files of a commit, as an archive.
    pub(super) async fn github(&self, access: &Value, digest: Option<&Digest>) -> Result<Content, Fault> {
        let access: GitHub = decoded(access)?;
        let file = access.archive().map_err(invalid)?;
        self.file(file, digest, Some(TGZ)).await
    }

    async fn file(&self, file: File, digest: Option<&Digest>, media_type: Option<&str>) -> Result<Content, Fault> {
        // Without a media type in the access the server has to say it each time.
        let Some(media_type) = media_type else {
            let got = self.registries.client().file(&file, &self.keyring).await?;
            let media_type = if got.media_type.is_empty() { media::OCTET_STREAM.to_owned() } else { got.media_type };
            return Ok(Content { media_type, bytes: Arc::new(got.bytes) });
        };
        let fetch = || async { Ok(self.registries.client().file(&file, &self.keyring).await?.bytes) };
        let asker = file.fingerprint(&self.keyring);
        let bytes = self.registries.file(&file.identity(), &asker, digest_of(digest), fetch).await?;
        Ok(Content { media_type: media_type.to_owned(), bytes })
    }
}

impl Helm {
    /// Chart and version. The error is a sentence about the access.
    fn named(&self) -> Result<(&str, &str), String> {
        if !self.ca_cert.is_empty() {
            return Err("it names a caCert; certificate authorities are for the operator to name, with --registry-ca"
                .to_owned());
        }
        if !self.keyring.is_empty() {
            return Err(
                "it names a keyring, and provenance files are not verified; sign the component instead".to_owned()
            );
        }
        let (chart, version) = match self.helm_chart.split_once(':') {
            Some((chart, version)) if self.version.is_empty() || self.version == version => (chart, version),
            Some(_) => {
                return Err(format!("its helmChart {:?} and its version {:?} differ", self.helm_chart, self.version));
            }
            None => (self.helm_chart.as_str(), self.version.as_str()),
        };
        if chart.is_empty() || version.is_empty() || version.contains(':') {
            return Err(format!(
                "its helmChart {:?} names no chart and version, such as mariadb:12.2.7",
                self.helm_chart
            ));
        }
        Ok((chart, version))
    }
}

impl GitHub {
    /// The archive of the commit, in the API of the host. The error is a sentence about the access.
    fn archive(&self) -> Result<File, String> {
        let is_commit = self.commit.len() == 40 && self.commit.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_commit {
            return Err("its commit is no commit: expected 40 hexadecimal digits".to_owned());
        }
        let (scheme, rest) = self.repo_url.split_once("://").unwrap_or(("https", self.repo_url.as_str()));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let names: Vec<&str> = path.trim_matches('/').split('/').collect();
        let is_name = |name: &&str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        };
        let (2, true) = (names.len(), names.iter().all(is_name)) else {
            return Err(format!(
                "its repoUrl {:?} is no address of a repository, such as github.com/owner/name",
                self.repo_url
            ));
        };
        let (api, base) = match (host, self.api_hostname.as_str()) {
            (GITHUB, _) => (format!("api.{GITHUB}"), ""),
            (host, "") => (host.to_owned(), "/api/v3"),
            (_, api) => (api.to_owned(), "/api/v3"),
        };
        let url = format!("{scheme}://{api}{base}/repos/{}/tarball/{}", names.join("/"), self.commit);
        let file = File::new(&url, Consumer::GitHub).map_err(|why| format!("its repoUrl {why}"))?;
        // The component names the host of the API: the token for a repository goes to no stranger.
        let is_theirs = api == host || api.strip_suffix(host).is_some_and(|before| before.ends_with('.'));
        let repository = format!("{scheme}://{host}/{}", names.join("/")).parse();
        Ok(match repository {
            Ok(repository) if is_theirs => file.with_credentials_of(repository),
            Ok(_) | Err(_) => file,
        })
    }
}

/// Where a chart is, and its digest. The error is the end of a sentence about the index.
fn chart_in(index: &[u8], chart: &str, version: &str) -> Result<(String, Option<ContentDigest>), String> {
    let text = std::str::from_utf8(index).map_err(|_| "is no UTF-8".to_owned())?;
    let index = yaml::decode(text).map_err(|error| format!("is no YAML: {error}"))?;
    let versions = index.get("entries").and_then(|entries| entries.get(chart)).and_then(Value::as_array);
    let versions = versions.ok_or_else(|| format!("has no chart {chart}; check its name"))?;
    let mut known = Vec::new();
    for entry in versions {
        let Ok(entry) = lenient::decode::<Chart>(entry) else { continue };
        if entry.version != version {
            known.push(entry.version);
            continue;
        }
        let url = entry.urls.into_iter().next().ok_or_else(|| format!("has no address for {chart}:{version}"))?;
        let hex = entry.digest.trim_start_matches("sha256:");
        let digest = (!hex.is_empty()).then(|| format!("sha256:{hex}").parse()).transpose();
        return Ok((url, digest.map_err(|error| format!("has an unusable digest for {chart}:{version}: {error}"))?));
    }
    let shown = known.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    Err(format!(
        "has no version {version} of the chart {chart}; it has {shown}{}",
        if known.len() > 5 { ", …" } else { "" }
    ))
}

/// The digest of the bytes themselves, where the descriptor has one.
fn digest_of(digest: Option<&Digest>) -> Option<ContentDigest> {
    let digest = digest.filter(|digest| digest.normalisation_algorithm == "genericBlobDigest/v1")?;
    let algorithm: Algorithm = algorithm(&digest.hash_algorithm)?;
    format!("{}:{}", algorithm.name(), digest.value).parse().ok()
}

fn decoded<T: serde::de::DeserializeOwned>(access: &Value) -> Result<T, Fault> {
    lenient::decode(access).map_err(|error| invalid(format!("its access is invalid: {error}")))
}

fn invalid(why: String) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "
apiVersion: v1
entries:
  shop:
  - {name: shop, version: 1.1.0, urls: [shop-1.1.0.tgz], digest: 4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a}
  - {name: shop, version: 1.0.0, urls: ['https://elsewhere.example/shop.tgz', 'other']}
  - {name: shop, version: 0.9.0, urls: []}
  - {name: shop, version: 0.8.0, urls: [x], digest: abc}
  - nonsense
";

    #[test]
    fn a_chart_is_found_by_name_and_version_in_its_index() {
        let found = |chart: &str, version: &str| chart_in(INDEX.as_bytes(), chart, version);
        let digest = ContentDigest::of(Algorithm::Sha256, &[1]);
        assert_eq!(found("shop", "1.1.0"), Ok(("shop-1.1.0.tgz".to_owned(), Some(digest))));
        assert_eq!(found("shop", "1.0.0"), Ok(("https://elsewhere.example/shop.tgz".to_owned(), None)));
        let told = |chart, version| found(chart, version).unwrap_err();
        assert_eq!(told("other", "1"), "has no chart other; check its name");
        assert_eq!(told("shop", "2"), "has no version 2 of the chart shop; it has 1.1.0, 1.0.0, 0.9.0, 0.8.0");
        assert_eq!(told("shop", "0.9.0"), "has no address for shop:0.9.0");
        assert!(told("shop", "0.8.0").starts_with("has an unusable digest for shop:0.8.0: "));
        assert_eq!(chart_in(b"\xff", "a", "1"), Err("is no UTF-8".to_owned()));
        assert!(chart_in(b"a: [", "a", "1").unwrap_err().starts_with("is no YAML: line 1"));
    }

    #[test]
    fn a_chart_has_its_version_in_its_name_or_beside_it() {
        let named = |chart: &str, version: &str| {
            let helm = Helm { helm_chart: chart.to_owned(), version: version.to_owned(), ..Helm::default() };
            helm.named().map(|(chart, version)| format!("{chart} {version}"))
        };
        for (chart, version) in [("shop:1.0.0", ""), ("shop", "1.0.0"), ("shop:1.0.0", "1.0.0")] {
            assert_eq!(named(chart, version), Ok("shop 1.0.0".to_owned()));
        }
        assert_eq!(
            named("shop:1.0.0", "2"),
            Err("its helmChart \"shop:1.0.0\" and its version \"2\" differ".to_owned())
        );
        for chart in ["shop", "", ":1", "a:b:c"] {
            let expected = format!("its helmChart {chart:?} names no chart and version, such as mariadb:12.2.7");
            assert_eq!(named(chart, ""), Err(expected));
        }
    }

    #[test]
    fn a_commit_is_in_the_api_of_its_host() {
        let commit = "0123456789012345678901234567890123456789";
        let url = |repo_url: &str, api: &str, commit: &str| {
            let (repo_url, api_hostname, commit) = (repo_url.to_owned(), api.to_owned(), commit.to_owned());
            GitHub { repo_url, api_hostname, commit }.archive().map(|file| file.shown())
        };
        let cases = [
            ("github.com/a/b", "", "https://api.github.com/repos/a/b/tarball/"),
            ("https://github.com/a/b/", "", "https://api.github.com/repos/a/b/tarball/"),
            ("https://git.example/a/b", "", "https://git.example/api/v3/repos/a/b/tarball/"),
            ("git.example:8443/a/b", "api.git.example", "https://api.git.example/api/v3/repos/a/b/tarball/"),
        ];
        for (repo, api, expected) in cases {
            assert_eq!(url(repo, api, commit), Ok(format!("{expected}{commit}")));
        }
        for repo in ["github.com/a", "github.com/a/b/c", "github.com/a/..%2f", ""] {
            let expected = format!("its repoUrl {repo:?} is no address of a repository, such as github.com/owner/name");
            assert_eq!(url(repo, "", commit), Err(expected));
        }
        assert_eq!(
            url("github.com/a/b", "", "main"),
            Err("its commit is no commit: expected 40 hexadecimal digits".to_owned())
        );
    }
}
