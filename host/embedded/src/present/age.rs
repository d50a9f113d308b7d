//! How long ago something was, as `kubectl` tells it.

use jiff::Timestamp;
use serde_json::Value;

/// The time since then; what is no time is not known.
pub(super) fn since(at: &Value, now: Timestamp) -> String {
    match at.as_str().and_then(|at| at.parse::<Timestamp>().ok()) {
        Some(at) => span(now.as_second().saturating_sub(at.as_second()).max(0)),
        None => "<unknown>".to_owned(),
    }
}

/// Seconds in the two most telling units, in the steps of `kubectl`.
pub(crate) fn span(seconds: i64) -> String {
    let two = |big: i64, unit: char, small: i64, part: char| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{part}"),
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 730 => format!("{days}d"),
        () => two(days / 365, 'y', days % 365, 'd'),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_span_is_told_in_the_steps_of_kubectl() {
        let text: Vec<String> =
            [0, 119, 120, 599, 600, 10_799, 10_800, 28_800, 172_800, 691_200, 63_072_000].map(span).into();
        assert_eq!(text, ["0s", "119s", "2m", "9m59s", "10m", "179m", "3h", "8h", "2d", "8d", "2y"]);
    }
}
