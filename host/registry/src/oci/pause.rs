//! The pauses that registries ask for (`Retry-After`).

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, header};
use orangery_ocm::SourceNetworks;
use tokio::time::Instant;

use super::{auth::SessionKey, refusal::ExchangeRefusal};

/// The longest pause that a registry gets.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// When a registry wants to be asked again: by nobody who would come with the same credentials.
#[derive(Default)]
pub(super) struct Pauses {
    /// Until when, and how long that was when it began: a refusal says the same as long as the pause lasts.
    until: Mutex<HashMap<SessionKey, (Instant, Duration)>>,
}

impl Pauses {
    /// A refusal while the registry has a pause.
    pub(super) fn is_over(&self, key: &SessionKey) -> Result<(), ExchangeRefusal> {
        let now = Instant::now();
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, (until, _)| *until > now);
        match until.get(&whole_registry(key)) {
            Some((_, wait)) => Err(ExchangeRefusal::Limited(*wait)),
            None => Ok(()),
        }
    }

    /// Begins the pause that an answer asks for; nothing where it asks for none.
    pub(super) fn begin(&self, key: SessionKey, headers: &HeaderMap) -> Result<(), ExchangeRefusal> {
        let Some(wait) = retry_after(headers) else { return Ok(()) };
        let wait = round_up(wait.min(LONGEST));
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.insert(whole_registry(&key), (Instant::now() + wait, wait));
        Err(ExchangeRefusal::Limited(wait))
    }
}

/// The pause of a registry is for all of its repositories, whatever networks may be connected to beside it.
fn whole_registry(key: &SessionKey) -> SessionKey {
    let mut key = SessionKey { networks: SourceNetworks::default(), pushes: false, ..key.clone() };
    key.repository.path.clear();
    key
}

fn round_up(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

/// Seconds, or a date, which is told apart from the answer's own date: the clocks of two machines differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let wanted = text(header::RETRY_AFTER)?.trim();
    if let Ok(seconds) = wanted.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    let wait = date(wanted)?.duration_since(date(text(header::DATE)?)?);
    Duration::try_from(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_as_seconds_and_as_a_date() {
        let headers = |values: &[(header::HeaderName, &str)]| -> HeaderMap {
            let value = |text: &str| HeaderValue::from_str(text).expect("a header");
            values.iter().map(|(name, text)| (name.clone(), value(text))).collect()
        };
        let date = (header::DATE, "Wed, 21 Oct 2026 07:28:00 GMT");
        let cases = [
            (headers(&[(header::RETRY_AFTER, "30")]), Some(30)),
            (headers(&[(header::RETRY_AFTER, "Wed, 21 Oct 2026 07:29:30 GMT"), date.clone()]), Some(90)),
            (headers(&[(header::RETRY_AFTER, "Wed, 21 Oct 2026 07:27:30 GMT"), date.clone()]), None),
            (headers(&[(header::RETRY_AFTER, "Wed, 21 Oct 2026 07:29:30 GMT")]), None),
            (headers(&[(header::RETRY_AFTER, "-1"), date.clone()]), None),
            (headers(&[date]), None),
        ];
        for (headers, expected) in cases {
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{headers:?}");
        }
    }
}
