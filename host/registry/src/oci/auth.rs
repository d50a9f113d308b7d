//! What a registry wants to see before it answers: a user and a password, or a token of its token service.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use data_encoding::BASE64;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use orangery_core::digest::content::ContentDigest;
use orangery_ocm::SourceNetworks;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use super::{
    connection::{Ask, Deadline, RegistryConnections, RegistryResponse, is_another, led_to},
    keyring::Login,
    reference::OciRepository,
    refusal::{ExchangeRefusal, is_passing},
};

/// A token service answers with a small document.
const MOST_OF_A_TOKEN: u64 = 256 * 1024;
/// The most bytes of a token: servers take no longer headers.
const LONGEST_TOKEN: usize = 16 << 10;
/// How long a token lasts whose service does not say so (the specification's own words).
const USUAL_LIFE: Duration = Duration::from_secs(60);
/// The longest time that a token is used, whatever its service says.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// A token is used for the last time this long before it ends.
const MARGIN: Duration = Duration::from_secs(10);
/// Basic credentials do not end, but a registry may want others later.
const BASIC_LIFE: Duration = Duration::from_secs(15 * 60);
/// Sessions kept at the same time.
const MOST_SESSIONS: usize = 4096;

/// What was accepted, for whom and where.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) repository: OciRepository,
    /// Of the credentials; `None` without.
    pub(super) login: Option<ContentDigest>,
    /// The networks that may be connected to: a token is of a service that is not in all of them (C-102).
    pub(super) networks: SourceNetworks,
    /// Whether it is for pushing: a token for reading is no answer to that.
    pub(super) pushes: bool,
}

struct Session {
    header: HeaderValue,
    until: Instant,
}

/// The headers that were accepted lately, so that most requests are answered at once.
#[derive(Default)]
pub(super) struct Sessions {
    kept: Mutex<HashMap<SessionKey, Session>>,
}

impl Sessions {
    pub(super) fn header(&self, key: &SessionKey) -> Option<HeaderValue> {
        let now = Instant::now();
        self.lock().get(key).filter(|session| session.until > now).map(|session| session.header.clone())
    }

    pub(super) fn forget(&self, key: &SessionKey) {
        self.lock().remove(key);
    }

    pub(super) fn keep(&self, key: SessionKey, granted: Granted) {
        let now = Instant::now();
        let mut kept = self.lock();
        if kept.len() >= MOST_SESSIONS {
            kept.retain(|_, session| session.until > now);
            if kept.len() >= MOST_SESSIONS {
                kept.clear();
            }
        }
        kept.insert(key, Session { header: granted.header, until: now + granted.life });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Session>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A header to send, and for how long.
pub(super) struct Granted {
    pub(super) header: HeaderValue,
    pub(super) life: Duration,
}

/// What a 401 asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Answers a 401: `None` where the credentials, or their lack, are no answer to what it asks for.
pub(super) async fn answer(
    connections: &RegistryConnections,
    repository: &OciRepository,
    challenged: &RegistryResponse,
    login: Option<&Login>,
    (asked_first, until): (&Ask, Deadline),
) -> Result<Option<Granted>, ExchangeRefusal> {
    match (challenge(&challenged.headers)?, login) {
        (_, Some(Login::Elsewhere(_))) => Ok(None),
        (_, Some(Login::Bearer(token))) => Ok(Some(Granted { header: bearer(token)?, life: BASIC_LIFE })),
        (Challenge::Basic, Some(Login::Basic { user, password })) => {
            Ok(Some(Granted { header: basic(user, password)?, life: BASIC_LIFE }))
        }
        (Challenge::Basic, None | Some(Login::Identity(_) | Login::Anonymous)) => Ok(None),
        (Challenge::Bearer { realm, service, scope }, login) => {
            let actions = if asked_first.is_push() { "pull,push" } else { "pull" };
            let scope = scope.unwrap_or_else(|| format!("repository:{}:{actions}", repository.path));
            let asked = token_request(&realm, service, scope, login)?;
            connections.permitted(&asked.url, Some(&challenged.url))?;
            let networks = match is_another(&asked.url, &challenged.url) {
                true => led_to(&asked.url, &asked_first.sources)?,
                false => Arc::clone(&asked_first.sources.networks.registries),
            };
            let (sources, tenant) = (Arc::clone(&asked_first.sources), asked_first.tenant.clone());
            let ask = Ask { sources, networks, tenant, ..asked };
            token(connections, &ask, until).await
        }
    }
}

/// The challenge that is best answered: a token before a password.
fn challenge(headers: &HeaderMap) -> Result<Challenge, ExchangeRefusal> {
    let mut found = None;
    for value in headers.get_all(header::WWW_AUTHENTICATE) {
        let text = value.to_str().unwrap_or_default();
        let Ok(challenges) = http_auth::parse_challenges(text) else { continue };
        for challenge in challenges {
            let parameter = |name: &str| {
                let of_name = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                of_name.map(|(_, value)| value.to_unescaped())
            };
            if challenge.scheme.eq_ignore_ascii_case("bearer") {
                let realm = parameter("realm").unwrap_or_default();
                return Ok(Challenge::Bearer { realm, service: parameter("service"), scope: parameter("scope") });
            }
            if challenge.scheme.eq_ignore_ascii_case("basic") {
                found = Some(Challenge::Basic);
            }
        }
    }
    found.ok_or_else(|| {
        let why = "the registry answered 401 and asks neither for a token nor for a password, the two that are known";
        ExchangeRefusal::Malformed(why.to_owned())
    })
}

/// The request for a token: with the identity token as OAuth 2 has it, else as the distribution specification has it.
fn token_request(
    realm: &str,
    service: Option<String>,
    scope: String,
    login: Option<&Login>,
) -> Result<Ask, ExchangeRefusal> {
    let no_address = || ExchangeRefusal::TokenService("has no usable address".to_owned());
    let mut url = Url::parse(realm).map_err(|_| no_address())?;
    if url.host_str().is_none() || !url.username().is_empty() || url.password().is_some() {
        return Err(no_address());
    }
    let mut fields = vec![("scope", scope)];
    fields.extend(service.map(|service| ("service", service)));
    let mut ask = Ask::get(url.clone(), "application/json", Default::default());
    if let Some(Login::Identity(token)) = login {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields).append_pair("grant_type", "refresh_token").append_pair("client_id", "orangery");
        ask.form = Some(form.append_pair("refresh_token", token.expose_secret()).finish());
        return Ok(ask);
    }
    url.query_pairs_mut().extend_pairs(fields);
    ask.url = url;
    if let Some(Login::Basic { user, password }) = login {
        ask.authorization = Some(basic(user, password)?);
    }
    Ok(ask)
}

/// Asked as its address says: a registry with TLS leads to no service without, also where that is on this machine.
async fn token(
    connections: &RegistryConnections,
    ask: &Ask,
    until: Deadline,
) -> Result<Option<Granted>, ExchangeRefusal> {
    let answer = connections.follow(ask, until).await.map_err(|refusal| match refusal {
        ExchangeRefusal::Unreachable(why) => ExchangeRefusal::Unreachable(format!("its token service: {why}")),
        other => other,
    })?;
    match answer.status {
        StatusCode::OK => {}
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Ok(None),
        status if is_passing(status.as_u16()) => {
            return Err(ExchangeRefusal::Unreachable(format!("its token service answered {}", status.as_u16())));
        }
        status => return Err(ExchangeRefusal::TokenService(format!("answered {}", status.as_u16()))),
    }
    let bytes = answer.bytes(MOST_OF_A_TOKEN).await?;
    let no_token = || ExchangeRefusal::TokenService("answered without a token".to_owned());
    let token: Token = serde_json::from_slice(&bytes).map_err(|_| no_token())?;
    let life = token.expires_in.map_or(USUAL_LIFE, Duration::from_secs).min(LONGEST_LIFE).saturating_sub(MARGIN);
    let token = SecretString::from(token.token.or(token.access_token).ok_or_else(no_token)?);
    if token.expose_secret().len() > LONGEST_TOKEN {
        return Err(ExchangeRefusal::TokenService(format!("answered with a token of more than {LONGEST_TOKEN} bytes")));
    }
    let header = bearer(&token)?;
    Ok(Some(Granted { header, life }))
}

pub(super) fn basic(user: &str, password: &SecretString) -> Result<HeaderValue, ExchangeRefusal> {
    let pair = format!("{user}:{}", password.expose_secret());
    hidden(&format!("Basic {}", BASE64.encode(pair.as_bytes())))
}

pub(super) fn bearer(token: &SecretString) -> Result<HeaderValue, ExchangeRefusal> {
    hidden(&format!("Bearer {}", token.expose_secret()))
}

/// A header whose debug output hides it.
fn hidden(text: &str) -> Result<HeaderValue, ExchangeRefusal> {
    let unusable =
        |_| ExchangeRefusal::Malformed("the token for the registry has characters that no header may have".to_owned());
    let mut value = HeaderValue::from_str(text).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let value = |text: &&str| (header::WWW_AUTHENTICATE, HeaderValue::from_str(text).expect("a header"));
        values.iter().map(value).collect()
    }

    #[test]
    fn a_token_is_chosen_before_a_password_and_nothing_else_is_understood() {
        let both = headers(&["Basic realm=\"r\"", "bearer realm=\"https://t.example/token\",service=\"s\""]);
        let bearer = Challenge::Bearer {
            realm: "https://t.example/token".to_owned(),
            service: Some("s".to_owned()),
            scope: None,
        };
        assert_eq!(challenge(&both).expect("a challenge"), bearer);
        assert_eq!(challenge(&headers(&["Basic realm=\"r\""])).expect("a challenge"), Challenge::Basic);
        for unknown in [headers(&[]), headers(&["Negotiate"]), headers(&["\"broken"])] {
            assert!(challenge(&unknown).is_err());
        }
    }

    #[test]
    fn a_token_is_asked_for_as_the_specifications_say() {
        let ask = |login: Option<&Login>| {
            let service = Some("r.example".to_owned());
            token_request("https://t.example/token?a=b", service, "repository:x/y:pull".to_owned(), login)
                .expect("a request")
        };
        let anonymous = ask(None);
        let expected = "https://t.example/token?a=b&scope=repository%3Ax%2Fy%3Apull&service=r.example";
        assert_eq!((anonymous.url.as_str(), anonymous.authorization, anonymous.form), (expected, None, None));
        let login = Login::Basic { user: "u".to_owned(), password: SecretString::from("p") };
        assert_eq!(ask(Some(&login)).authorization.expect("a header"), "Basic dTpw");
        let refresh = ask(Some(&Login::Identity(SecretString::from("t&t"))));
        let form = "scope=repository%3Ax%2Fy%3Apull&service=r.example&grant_type=refresh_token&client_id=orangery\
                    &refresh_token=t%26t";
        assert_eq!((refresh.url.as_str(), refresh.form.as_deref()), ("https://t.example/token?a=b", Some(form)));
    }

    #[test]
    fn a_realm_that_is_no_address_is_refused() {
        for realm in ["", "token", "https://", "https://u:p@t.example/", "data:x"] {
            assert!(token_request(realm, None, String::new(), None).is_err(), "{realm}");
        }
    }

    #[test]
    fn limits_registry_so_many_sessions_are_kept_and_no_more() {
        let key = |index: usize| SessionKey {
            repository: format!("r.example/{index}").parse().expect("a repository"),
            login: None,
            networks: SourceNetworks::default(),
            pushes: false,
        };
        let sessions = Sessions::default();
        for index in 0..=MOST_SESSIONS {
            let header = HeaderValue::from_static("Bearer x");
            sessions.keep(key(index), Granted { header, life: Duration::from_secs(60) });
            assert!(sessions.lock().len() <= MOST_SESSIONS);
        }
        assert!(sessions.header(&key(MOST_SESSIONS)).is_some());
    }
}
