//! How long a command waits.

use std::{fmt, str::FromStr, time};

use orangery_api::duration::{Duration, InvalidDuration, TimeLimit};

/// A length of time as the custom resources write it (`90s`, `1h30m`), or `none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeout {
    text: String,
    after: Option<time::Duration>,
}

impl Timeout {
    /// How long; `None` waits for ever.
    pub fn after(&self) -> Option<time::Duration> {
        self.after
    }
}

impl FromStr for Timeout {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let after = match Duration(text.to_owned()).limit()? {
            TimeLimit::Unlimited => None,
            TimeLimit::After(after) => Some(after),
        };
        Ok(Self { text: text.to_owned(), after })
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Runs a future for at most this long; `None` when the time is over.
pub(crate) async fn within<T>(timeout: &Timeout, future: impl Future<Output = T>) -> Option<T> {
    match timeout.after() {
        None => Some(future.await),
        Some(after) => tokio::time::timeout(after, future).await.ok(),
    }
}
