//! `configurations.helmChartRepoCredentials` of a Context: credentials of classic chart repositories (`docs/wire.md`
//! §8.2).
//!
//! An entry is for the addresses that begin with its own: for the index, and for the charts that the index names. The
//! original gives every entry to every repository; that is not repeated.

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_ocm::{ChartLogin, ChartRepositories};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use url::Url;

use super::{Consumer, CredentialScope, Keyring, KeyringEntry, Login, Scheme};

impl Keyring {
    /// Adds the credentials of chart repositories. What is wrong with them is told when such a repository is asked: others
    /// are none of their business.
    pub(super) fn with_chart_repositories(mut self, given: &ChartRepositories) -> Self {
        let read: Result<Vec<KeyringEntry>, String> = given.logins.iter().map(key).collect();
        match given.unusable.clone().map_or(read, Err) {
            Ok(keys) => self.keys.extend(keys),
            Err(why) => self.unusable_charts = Some(why.into()),
        }
        self
    }
}

fn key(of: &ChartLogin) -> Result<KeyringEntry, String> {
    let unusable = |why: String| {
        format!(
            "{} has an entry for {:?} in helmChartRepoCredentials that cannot be used: {why}",
            of.origin,
            display(&of.url)
        )
    };
    let scope =
        scope(&of.url).ok_or_else(|| unusable("its url is no address, such as https://charts.example.org".into()))?;
    let login = match &of.authorization {
        None => Login::Anonymous,
        Some(header) => login(&header.0).map_err(&unusable)?,
    };
    let certificates = match of.certificates.as_deref().filter(|pem| !pem.trim().is_empty()) {
        None => Vec::new(),
        Some(pem) => certificates(pem).map_err(unusable)?,
    };
    Ok(KeyringEntry { consumer: Consumer::Charts, scope, login, origin: Arc::from(of.origin.as_str()), certificates })
}

/// Letters of an address that a message has.
const MOST_SHOWN: usize = 253;

/// An address without what may be secret in it.
pub(super) fn display(url: &str) -> String {
    let (scheme, rest) =
        url.split_once("://").map_or((String::new(), url), |(scheme, rest)| (format!("{scheme}://"), rest));
    // A password may have this sign as well.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}{rest}").chars().take(MOST_SHOWN).collect()
}

/// `host`, `host:port`, `host/path`, each also as a URL.
fn scope(url: &str) -> Option<CredentialScope> {
    let scheme = match url.split_once("://") {
        None => None,
        Some(("https", _)) => Some(Scheme::Https),
        Some(("http", _)) => Some(Scheme::Http),
        Some(_) => return None,
    };
    let parsed = if scheme.is_some() { Url::parse(url) } else { Url::parse(&format!("https://{url}")) }.ok()?;
    let host = parsed.host_str()?.to_owned();
    let path = parsed.path().trim_matches('/').to_owned();
    Some(CredentialScope { host: Some(host), port: parsed.port(), scheme, path })
}

/// The content of a header `Authorization`. The error is the end of a sentence about the entry.
fn login(header: &[u8]) -> Result<Login, String> {
    let text = std::str::from_utf8(header).map_err(|_| "its header is no text".to_owned())?.trim();
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let unusable =
        || "its header is neither `Basic` with user and password in base64, nor `Bearer` with a token".to_owned();
    if kind.eq_ignore_ascii_case("bearer") && !rest.trim().is_empty() {
        return Ok(Login::Bearer(rest.trim().to_owned().into()));
    }
    if !kind.eq_ignore_ascii_case("basic") {
        return Err(unusable());
    }
    let decoded = BASE64.decode(rest.trim().as_bytes()).map_err(|_| unusable())?;
    let decoded = String::from_utf8(decoded).map_err(|_| unusable())?;
    let (user, password) = decoded.split_once(':').ok_or_else(unusable)?;
    Ok(Login::Basic { user: user.to_owned(), password: password.to_owned().into() })
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = read.map_err(|error| format!("its customCAData is no PEM: {error}"))?;
    if found.is_empty() {
        return Err("its customCAData has no certificate; it has to begin with -----BEGIN CERTIFICATE-----".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use orangery_ocm::Secret;

    use super::*;

    fn entry(url: &str, header: Option<&str>) -> ChartLogin {
        ChartLogin {
            url: url.to_owned(),
            authorization: header.map(|header| Secret(header.as_bytes().to_vec())),
            certificates: None,
            origin: "the Context team/usual".to_owned(),
        }
    }

    fn read(logins: Vec<ChartLogin>) -> Keyring {
        Keyring::default().with_chart_repositories(&ChartRepositories { logins, unusable: None })
    }

    fn users(keyring: &Keyring, url: &str) -> Vec<String> {
        let found = keyring.matching_file(Consumer::Charts, &Url::parse(url).expect("an address"));
        let message = |key: &&KeyringEntry| match &key.login {
            Login::Basic { user, .. } => user.clone(),
            other => format!("{other:?}"),
        };
        found.iter().map(message).collect()
    }

    #[test]
    fn limits_registry_an_address_in_a_message_has_no_user_and_so_many_letters() {
        for (url, shown) in [
            ("https://user:hunter2@r.example/x?token=1#y", "https://r.example/x"),
            ("https://user:hun/ter@2@r.example", "https://r.example"),
            ("user:hunter2@r.example", "r.example"),
            ("r.example:5000/x", "r.example:5000/x"),
        ] {
            assert_eq!(display(url), shown);
        }
        assert_eq!(display(&"x".repeat(300)), "x".repeat(MOST_SHOWN));
    }

    #[test]
    fn an_entry_is_for_the_addresses_that_begin_with_its_own() {
        let basic = |user: &str| format!("Basic {}", BASE64.encode(format!("{user}:hunter2").as_bytes()));
        let keyring = read(vec![
            entry("charts.example.org", Some(&basic("host"))),
            entry("https://charts.example.org/team", Some(&basic("team"))),
            entry("http://charts.example.org/team", Some(&basic("plain"))),
            entry("https://charts.example.org:8443", Some(&basic("port"))),
            entry("other.example.org", Some("Bearer hunter3")),
        ]);
        assert_eq!(users(&keyring, "https://charts.example.org/team/index.yaml"), ["team", "host"]);
        assert_eq!(users(&keyring, "https://charts.example.org/teams/index.yaml"), ["host"]);
        assert_eq!(users(&keyring, "https://charts.example.org:8443/index.yaml"), ["port", "host"]);
        assert_eq!(users(&keyring, "https://other.example.org/a").len(), 1);
        assert_eq!(users(&keyring, "https://example.org/a"), Vec::<String>::new());
        assert!(
            keyring.matching_file(Consumer::Files, &Url::parse("https://charts.example.org/a").unwrap()).is_empty()
        );
        assert_eq!(keyring.can_ask_charts(), Ok(()));
    }

    #[test]
    fn what_cannot_be_used_is_told_when_it_is_needed() {
        let message = |login| read(vec![login]).can_ask_charts().expect_err("unusable").to_string();
        let begin = "the Context team/usual has an entry for ";
        for header in ["Basic %", "Basic aHVudGVy", "Digest x", "Bearer ", "hunter2"] {
            let error = message(entry("https://u:hunter2@a.example/x?hunter2", Some(header)));
            let expected = format!(
                "{begin}\"https://a.example/x\" in helmChartRepoCredentials that cannot be used: its header is neither \
                 `Basic` with user and password in base64, nor `Bearer` with a token"
            );
            assert_eq!(error, expected);
        }
        assert!(
            message(entry("ftp://a.example", None))
                .ends_with("its url is no address, such as https://charts.example.org")
        );
        let broken = ChartLogin { certificates: Some("x".to_owned()), ..entry("a.example", None) };
        assert!(message(broken).ends_with("it has to begin with -----BEGIN CERTIFICATE-----"));
        let given = ChartRepositories { logins: Vec::new(), unusable: Some("the Secret is gone".to_owned()) };
        let keyring = Keyring::default().with_chart_repositories(&given);
        assert_eq!(keyring.can_ask_charts().expect_err("unusable").to_string(), "the Secret is gone");
    }
}
