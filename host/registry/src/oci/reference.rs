//! What names an artifact: registry, repository, tag and digest, as in `registry.example/team/app:1.0@sha256:…`.

use std::{fmt, str::FromStr};

use orangery_core::digest::content::ContentDigest;

/// How a registry is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// With TLS.
    Https,
    /// Without.
    Http,
}

impl Scheme {
    /// The word before `://`.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
        }
    }

    /// The port where none is given.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Https => 443,
            Scheme::Http => 80,
        }
    }
}

/// A registry's host, with port and scheme where they are given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Registry {
    /// Lower case; an IPv6 address stands in brackets. `docker.io` also where another of its names was written.
    pub host: String,
    /// As written.
    pub port: Option<u16>,
    /// As written before `://`.
    pub scheme: Option<Scheme>,
}

/// One repository of a registry: the artifacts under one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OciRepository {
    /// Where.
    pub registry: Registry,
    /// Slash-separated, such as `team/app`.
    pub path: String,
}

/// Which artifact of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactSelector {
    /// The one that a name stands for now.
    Tag(String),
    /// The one with this content.
    Digest(ContentDigest),
}

/// One artifact. A tag beside a digest is for people: the digest decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactReference {
    /// Where.
    pub repository: OciRepository,
    /// Which; the tag `latest` where neither tag nor digest was written.
    pub selector: ArtifactSelector,
}

/// Why a text is no reference: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no reference to an OCI {what}: {why}")]
pub struct NotAReference {
    text: String,
    what: &'static str,
    why: String,
}

const DOCKER: &str = "docker.io";

impl Registry {
    /// Host and port as they are written, without the scheme.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Host and port that are connected to. Docker Hub answers the API under another name than its own.
    pub(super) fn endpoint(&self) -> String {
        if self.host == DOCKER { "registry-1.docker.io".to_owned() } else { self.authority() }
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    fn read(authority: &str, scheme: Option<Scheme>) -> Result<Self, String> {
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, port)) => (format!("[{address}]"), port.strip_prefix(':')),
            None => match authority.split_once(':') {
                Some((host, port)) => (host.to_ascii_lowercase(), Some(port)),
                None => (authority.to_ascii_lowercase(), None),
            },
        };
        let is_host = match host.strip_prefix('[') {
            Some(address) => address.trim_end_matches(']').parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
                let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
                is_plain && host.len() <= 253 && host.split('.').all(is_label)
            }
        };
        if !is_host {
            return Err(format!("{host:?} is no host name"));
        }
        let port = match port {
            Some(text) => Some(text.parse::<u16>().map_err(|_| format!("{text:?} is no port"))?),
            None => None,
        };
        let host = if host == "index.docker.io" || host == "registry-1.docker.io" { DOCKER.to_owned() } else { host };
        Ok(Self { host, port, scheme })
    }
}

impl FromStr for Registry {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, NotAReference> {
        let (scheme, rest) = scheme(text);
        Self::read(rest.trim_end_matches('/'), scheme).map_err(|why| refused(text, "registry", why))
    }
}

impl OciRepository {
    /// As policies name it: host and path.
    pub(crate) fn source(&self) -> String {
        format!("{}/{}", self.registry.authority(), self.path)
    }

    /// The repository of this name below another name of the same registry; the names are joined by a slash.
    pub fn new(registry: Registry, names: &[&str]) -> Result<Self, NotAReference> {
        let names: Vec<_> = names.iter().map(|name| name.trim_matches('/')).filter(|name| !name.is_empty()).collect();
        let path = names.join("/");
        let text = || format!("{}/{path}", registry.authority());
        is_path(&path).map_err(|why| refused(&text(), "repository", why))?;
        Ok(Self { registry, path })
    }

    /// One artifact of it.
    pub fn artifact(&self, selector: ArtifactSelector) -> ArtifactReference {
        ArtifactReference { repository: self.clone(), selector }
    }
}

impl FromStr for OciRepository {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, NotAReference> {
        repository(text).map_err(|why| refused(text, "repository", why))
    }
}

impl FromStr for ArtifactSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            return text.parse().map(ArtifactSelector::Digest).map_err(|error| format!("{error}"));
        }
        let is_first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_next = |byte: u8| is_first(byte) || matches!(byte, b'.' | b'-');
        if text.len() <= 128 && text.bytes().next().is_some_and(is_first) && text.bytes().all(is_next) {
            return Ok(ArtifactSelector::Tag(text.to_owned()));
        }
        Err(format!("{text:?} is no tag: expected at most 128 letters, digits, dots, hyphens and underscores"))
    }
}

impl FromStr for ArtifactReference {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, NotAReference> {
        reference(text).map_err(|why| refused(text, "artifact", why))
    }
}

fn reference(text: &str) -> Result<ArtifactReference, String> {
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(digest.parse().map_err(|error| format!("{error}"))?)),
        None => (text, None),
    };
    // A colon before the last slash belongs to the scheme or to the port.
    let last = named.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match named.get(last..).and_then(|rest| rest.split_once(':')) {
        Some((name, tag)) => (named.get(..last + name.len()).unwrap_or_default(), Some(tag)),
        None => (named, None),
    };
    let tag = tag.map(str::parse::<ArtifactSelector>).transpose()?;
    let selector = match (digest, tag) {
        (Some(digest), _) => ArtifactSelector::Digest(digest),
        (None, Some(tag)) => tag,
        (None, None) => ArtifactSelector::Tag("latest".to_owned()),
    };
    Ok(ArtifactReference { repository: repository(name)?, selector })
}

fn repository(text: &str) -> Result<OciRepository, String> {
    let (scheme, rest) = scheme(text);
    let (first, path) = rest.split_once('/').unwrap_or(("", rest));
    let is_host = scheme.is_some() || text.starts_with("oci://") || first.contains(['.', ':']) || first == "localhost";
    let (registry, path) = match (first.is_empty(), is_host) {
        (false, true) => (Registry::read(first, scheme)?, path),
        (_, false) => (Registry::read(DOCKER, scheme)?, rest),
        (true, true) => return Err("the name of the repository is missing behind the host".to_owned()),
    };
    // Docker Hub keeps its official images in a folder that nobody writes.
    let is_official = registry.host == DOCKER && !path.contains('/');
    let path = if is_official { format!("library/{path}") } else { path.to_owned() };
    is_path(&path)?;
    Ok(OciRepository { registry, path })
}

/// The registry and the path of an address below which there are repositories, such as `registry.example/team`.
pub(super) fn split_base(text: &str) -> Result<(Registry, String), NotAReference> {
    let (scheme, rest) = scheme(text);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_matches('/');
    let registry = Registry::read(authority, scheme).map_err(|why| refused(text, "registry", why))?;
    if !path.is_empty() {
        is_path(path).map_err(|why| refused(text, "registry", why))?;
    }
    Ok((registry, path.to_owned()))
}

/// Takes the scheme off; `oci://` says nothing about it.
fn scheme(text: &str) -> (Option<Scheme>, &str) {
    let schemes = [("https://", Some(Scheme::Https)), ("http://", Some(Scheme::Http)), ("oci://", None)];
    let found = schemes.into_iter().find_map(|(prefix, scheme)| Some((scheme, text.strip_prefix(prefix)?)));
    found.unwrap_or((None, text))
}

/// The grammar of the distribution specification: nothing in it has a meaning in a URL.
fn is_path(path: &str) -> Result<(), String> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_component = |name: &str| {
        let ends = name.bytes().next().is_some_and(is_letter) && name.bytes().next_back().is_some_and(is_letter);
        let inside = name.bytes().all(|byte| is_letter(byte) || matches!(byte, b'.' | b'_' | b'-'));
        ends && inside && !name.contains("..")
    };
    if path.len() <= 255 && path.split('/').all(is_component) {
        return Ok(());
    }
    Err(format!("{path:?} is no name of a repository: expected lower case letters, digits, '.', '_', '-' and '/'"))
}

fn refused(text: &str, what: &'static str, why: String) -> NotAReference {
    NotAReference { text: text.chars().take(300).collect(), what, why }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only what is unusual is worth the room in a message.
        let scheme = if self.scheme == Some(Scheme::Http) { "http://" } else { "" };
        write!(f, "{scheme}{}", self.authority())
    }
}

impl fmt::Display for OciRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

impl fmt::Display for ArtifactSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArtifactSelector::Tag(tag) => f.write_str(tag),
            ArtifactSelector::Digest(digest) => fmt::Display::fmt(digest, f),
        }
    }
}

impl fmt::Display for ArtifactReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if matches!(self.selector, ArtifactSelector::Tag(_)) { ':' } else { '@' };
        write!(f, "{}{separator}{}", self.repository, self.selector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn display(text: &str) -> String {
        match text.parse::<ArtifactReference>() {
            Ok(reference) => reference.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn references_are_read_as_the_tools_of_the_field_read_them() {
        let cases = [
            ("registry.example/a/b:1.0", "registry.example/a/b:1.0".to_owned()),
            ("Registry.Example:5000/a", "registry.example:5000/a:latest".to_owned()),
            ("oci://registry.example/a:1", "registry.example/a:1".to_owned()),
            ("https://registry.example/a:1", "registry.example/a:1".to_owned()),
            ("http://registry.example/a:1", "http://registry.example/a:1".to_owned()),
            ("oci://registry/a", "registry/a:latest".to_owned()),
            ("localhost/a", "localhost/a:latest".to_owned()),
            ("[::1]:5000/a:1", "[::1]:5000/a:1".to_owned()),
            ("alpine", "docker.io/library/alpine:latest".to_owned()),
            ("team/app:1", "docker.io/team/app:1".to_owned()),
            ("index.docker.io/alpine", "docker.io/library/alpine:latest".to_owned()),
            (&format!("registry.example/a:1@{DIGEST}"), format!("registry.example/a@{DIGEST}")),
            ("registry.example/component-descriptors/example.org/a:1.0.build-3", {
                "registry.example/component-descriptors/example.org/a:1.0.build-3".to_owned()
            }),
        ];
        for (text, expected) in cases {
            assert_eq!(display(text), expected);
        }
    }

    #[test]
    fn what_could_leave_its_place_in_a_url_is_refused() {
        let bad = [
            "registry.example/a/../b:1",
            "registry.example/a/..",
            "registry.example/a%2e:1",
            "registry.example/a?x=1",
            "registry.example/A",
            "registry.example/",
            "registry.example//a",
            "oci://registry.example",
            "registry.example:99999/a",
            "user:password@registry.example/a",
            "regi stry.example/a",
            "-a.example/a",
            "[::zz]/a",
            "registry.example/a:",
            "registry.example/a:b/",
            "registry.example/a:-b",
            "registry.example/a@sha256:12",
        ];
        for text in bad {
            assert!(text.parse::<ArtifactReference>().is_err(), "{text} is {}", display(text));
        }
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        let is_loopback = |text: &str| text.parse::<Registry>().expect("a registry").is_loopback();
        assert!(
            ["localhost:5000", "127.0.0.1", "127.9.9.9:1", "[::1]:5000", "a.localhost"].into_iter().all(is_loopback)
        );
        assert!(!["127.0.0.1.example", "localhost.example", "10.0.0.1"].into_iter().any(is_loopback));
    }
}
