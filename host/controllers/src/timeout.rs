//! How long an item may take.

use std::time::Duration;

use orangery_api::duration::{self, InvalidDuration, TimeLimit};

/// How long an item without a timeout of its own may take.
pub(crate) const USUAL_TIMEOUT: Duration = Duration::from_secs(600);

/// What a timeout says, or the lack of one; `None` for ever.
pub(crate) fn limit_of(timeout: Option<&duration::Duration>) -> Result<Option<Duration>, InvalidDuration> {
    Ok(match timeout.map(duration::Duration::limit).transpose()? {
        Some(TimeLimit::Unlimited) => None,
        Some(TimeLimit::After(limit)) => Some(limit),
        None => Some(USUAL_TIMEOUT),
    })
}
