//! Resources on web servers: files (`wget`), charts of chart repositories (`helm`), commits of GitHub (`gitHub`).
//!
//! What a digest in the descriptor names is kept in the cache, for the same address and credentials.

use std::collections::BTreeMap;

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    lenient,
};
use orangery_ocm::{Digest, ResourceContent, media};
use serde::Deserialize;
use serde_json::Value;

use super::{Fetched, ResourceAccess, compare::algorithm};
use crate::{
    charts::ChartLocation,
    oci::{ArtifactReference, CHART, Consumer, FileRequest, PROVENANCE, ReservedContent},
};

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
    #[serde(alias = "helmChartRepoUrl")]
    helm_repository: String,
    #[serde(alias = "helmChartName")]
    helm_chart: String,
    #[serde(alias = "helmChartVersion")]
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

impl ResourceAccess {
    /// A file of any web server.
    pub(super) async fn wget(&self, access: &Value, digest: Option<&Digest>) -> Result<Fetched, Fault> {
        let access: Wget = decoded(access)?;
        if !matches!(access.verb.as_str(), "" | "GET") || access.body.is_some_and(|body| !body.is_null()) {
            return Err(invalid("only GET without a body is supported".to_owned()));
        }
        let file = FileRequest::new(&access.url, Consumer::Files).map_err(|why| invalid(format!("its URL {why}")))?;
        let file = file.following(!access.no_redirect).with_headers(&access.header);
        let file = file.map_err(|why| invalid(format!("its header {why}")))?;
        let media_type = Some(access.media_type).filter(|message| !message.is_empty());
        self.file(file, digest, media_type.as_deref()).await
    }

    /// A chart in a chart repository, or in a registry.
    pub(super) async fn helm(&self, access: &Value, digest: Option<&Digest>) -> Result<Fetched, Fault> {
        let access: Helm = decoded(access)?;
        let (chart, version) = access.named().map_err(invalid)?;
        if access.helm_repository.starts_with("oci://") {
            let content = self.chart_of_registry(&access.helm_repository, chart, version).await?;
            return Ok(Fetched::of(content, CHART.to_owned()));
        }
        let fault = |why: String| invalid(format!("its helmRepository {why}"));
        let content = self.chart(&access.helm_repository, chart, version, digest_of(digest), fault).await?;
        Ok(Fetched::of(content, CHART.to_owned()))
    }

    /// A chart of a classic repository. `unusable` makes the fault of an address that is none, of the end of a sentence.
    pub(crate) async fn chart(
        &self,
        repository: &str,
        chart: &str,
        version: &str,
        digest: Option<ContentDigest>,
        unusable: impl Fn(String) -> Fault,
    ) -> Result<ReservedContent, Fault> {
        self.keyring.can_ask_charts()?;
        let index = index_of(repository).map_err(unusable)?;
        index.is_allowed(&self.keyring)?;
        let question = format!("{} {chart}:{version}", index.identity());
        let asker = index.fingerprint(&self.keyring);
        // Where the digest is known before, the cache may have the chart, and nothing is asked.
        let place = match &digest {
            Some(_) => None,
            None => Some(self.registries.chart(&index, chart, version, &self.keyring).await?),
        };
        let digest = digest.or_else(|| place.as_ref()?.digest.clone());
        let fetch = || async {
            let place = match place {
                Some(place) => place,
                None => self.registries.chart(&index, chart, version, &self.keyring).await?,
            };
            self.chart_at(&index, chart, &place).await
        };
        self.registries.file(&question, (&asker, &self.keyring), digest, fetch).await
    }

    /// The provenance file beside a chart of a classic repository.
    pub(crate) async fn provenance(
        &self,
        repository: &str,
        chart: &str,
        version: &str,
    ) -> Result<ResourceContent, Fault> {
        let index = index_of(repository).map_err(invalid)?;
        let found = self.registries.chart(&index, chart, version, &self.keyring).await?;
        let place = ChartLocation { url: format!("{}.prov", found.url), digest: None };
        let bytes = self.chart_at(&index, chart, &place).await?.into_bytes();
        Ok(ResourceContent { media_type: PROVENANCE.to_owned(), bytes })
    }

    async fn chart_at(
        &self,
        index: &FileRequest,
        chart: &str,
        place: &ChartLocation,
    ) -> Result<ReservedContent, Fault> {
        let file = index.beside(&place.url).map_err(|why| {
            let message =
                format!("the index {} has the address {:?} for {chart}, which {why}", index.display(), place.url);
            invalid(message)
        })?;
        self.content(&file.with_digest(place.digest.clone())).await
    }

    /// A file with its room in memory.
    async fn content(&self, file: &FileRequest) -> Result<ReservedContent, Fault> {
        let (got, room) = self.registries.reserved_file(file, &self.keyring).await?;
        Ok(ReservedContent::new(got.bytes, room))
    }

    async fn chart_of_registry(&self, repository: &str, chart: &str, version: &str) -> Result<ReservedContent, Fault> {
        let reference: ArtifactReference =
            pushed_as(repository, chart, version).parse().map_err(|error| invalid(format!("{error}")))?;
        let manifest = self.registries.manifest(&reference, &self.keyring).await?;
        self.layer(&reference, &manifest, |media_type| media_type == CHART).await
    }

    /// All files of a commit, as an archive.
    pub(super) async fn github(&self, access: &Value, digest: Option<&Digest>) -> Result<Fetched, Fault> {
        let access: GitHub = decoded(access)?;
        let file = access.archive().map_err(invalid)?;
        self.file(file, digest, Some(TGZ)).await
    }

    async fn file(
        &self,
        file: FileRequest,
        digest: Option<&Digest>,
        media_type: Option<&str>,
    ) -> Result<Fetched, Fault> {
        // Without a media type in the access the server has to say it each time.
        let Some(media_type) = media_type else {
            let (got, room) = self.registries.reserved_file(&file, &self.keyring).await?;
            let media_type = if got.media_type.is_empty() { media::OCTET_STREAM.to_owned() } else { got.media_type };
            return Ok(Fetched::of(ReservedContent::new(got.bytes, room), media_type));
        };
        // What the cache has is not to be had either.
        file.is_allowed(&self.keyring)?;
        let fetch = || self.content(&file);
        let asker = file.fingerprint(&self.keyring);
        let content = self.registries.file(&file.identity(), (&asker, &self.keyring), digest_of(digest), fetch).await?;
        Ok(Fetched::of(content, media_type.to_owned()))
    }
}

/// The index of a classic repository. The error is the end of a sentence about its address.
fn index_of(repository: &str) -> Result<FileRequest, String> {
    FileRequest::new(&format!("{}/index.yaml", repository.trim_end_matches('/')), Consumer::Charts)
}

/// What `helm push` calls a chart in a registry. A tag cannot have the `+` of a version; helm writes `_`.
pub(crate) fn pushed_as(repository: &str, chart: &str, version: &str) -> String {
    format!("{}/{chart}:{}", repository.trim_end_matches('/'), version.replace('+', "_"))
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
    fn archive(&self) -> Result<FileRequest, String> {
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
        let file = FileRequest::new(&url, Consumer::GitHub).map_err(|why| format!("its repoUrl {why}"))?;
        // The component names the host of the API: the token for a repository goes to no stranger.
        let is_theirs = api == host || api.strip_suffix(host).is_some_and(|before| before.ends_with('.'));
        let repository = format!("{scheme}://{host}/{}", names.join("/")).parse();
        Ok(match repository {
            Ok(repository) if is_theirs => file.with_credentials_of(repository),
            Ok(_) | Err(_) => file,
        })
    }
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
            GitHub { repo_url, api_hostname, commit }.archive().map(|file| file.display())
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
