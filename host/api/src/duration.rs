//! Lengths of time on the wire (`docs/wire.md` §1).

use std::fmt;

pub use orangery_core::duration::{InvalidDuration, TimeLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time as Go's `time.ParseDuration` reads it, such as `1h30m` or `1.5s`; `none` means no limit.
///
/// The text is kept as it was given and read by [`Duration::limit`], so that an object with an unreadable duration can
/// still be read, shown and mended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// What the text says.
    pub fn limit(&self) -> Result<TimeLimit, InvalidDuration> {
        orangery_core::duration::limit(&self.0)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_survives_whatever_it_says() {
        for text in ["5m0s", "none", "abc"] {
            let json = serde_json::json!(text);
            let duration: Duration = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(duration).unwrap(), json);
        }
        assert_eq!(Duration("none".to_owned()).limit(), Ok(TimeLimit::Unlimited));
        assert!(Duration("abc".to_owned()).limit().is_err());
    }
}
