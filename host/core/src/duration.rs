//! Lengths of time in Go's notation (`docs/wire.md` §1): `1h30m`, `1.5s`, or `none`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What a text says about a length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// `none`, and what equals it on the wire of the original: zero.
    Unlimited,
    /// This long. Never zero.
    After(Duration),
}

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no length of time; write a number with a unit (ns, us, ms, s, m, h) such as 90s or 1h30m, or none"
)]
pub struct InvalidDuration {
    /// The text.
    pub text: String,
}

/// Nanoseconds of each unit that Go knows.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a text as Go's `time.ParseDuration` does. A negative length is refused: nothing can end before it began.
pub fn limit(text: &str) -> Result<TimeLimit, InvalidDuration> {
    if text == "none" {
        return Ok(TimeLimit::Unlimited);
    }
    match nanoseconds(text) {
        Some(0) => Ok(TimeLimit::Unlimited),
        Some(nanoseconds) => Ok(TimeLimit::After(Duration::from_nanos(nanoseconds))),
        None => Err(InvalidDuration { text: text.to_owned() }),
    }
}

/// A length of time as a person writes it.
pub fn display(limit: Duration) -> String {
    match limit.as_secs() {
        0 => format!("{}ms", limit.as_millis()),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if text == "0" {
        return Some(0);
    }
    if text.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, *scale)?)?;
        rest = after;
    }
    // Go counts nanoseconds in a signed 64-bit number.
    (total <= i64::MAX.unsigned_abs()).then_some(total)
}

/// `number` units of `scale` nanoseconds, cut off below a nanosecond.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // An hour has fewer than 10^13 nanoseconds: digits beyond the eighteenth weigh nothing.
    let fraction: String = fraction.chars().take(18).collect();
    let digits: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let rest = u64::try_from(digits.checked_mul(u128::from(scale))?.checked_div(parts)?).ok()?;
    whole.checked_mul(scale)?.checked_add(rest)
}

/// When a job that began at `begun` runs out of time; `None` for never (C-08, `docs/wire.md` §3.6).
pub fn deadline(begun: Timestamp, limit: Option<Duration>) -> Option<Timestamp> {
    let limit = SignedDuration::try_from(limit?).ok()?;
    begun.checked_add(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    mod notation;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("90s", 90_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("5m0s", 300_000_000_000),
            ("1.5s", 1_500_000_000),
            ("+.5m", 30_000_000_000),
            ("1us1\u{b5}s1\u{3bc}s", 3_000),
            ("100ms10ns", 100_000_010),
            ("0.000000001h", 3_600),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(limit(text), Ok(TimeLimit::After(Duration::from_nanos(nanoseconds))), "{text}");
        }
    }

    #[test]
    fn none_and_zero_mean_no_limit() {
        for text in ["none", "0", "0s", "0h0m"] {
            assert_eq!(limit(text), Ok(TimeLimit::Unlimited), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused_with_a_hint() {
        for text in ["", "abc", "10", "1d", "1.2.3s", ".s", "-5s", "s", "1 s", "9999999999h"] {
            assert_eq!(limit(text), Err(InvalidDuration { text: text.to_owned() }), "{text}");
        }
        assert_eq!(
            limit("abc").unwrap_err().to_string(),
            "\"abc\" is no length of time; write a number with a unit (ns, us, ms, s, m, h) such as 90s or 1h30m, or none"
        );
    }

    #[test]
    fn c_08_the_clock_starts_at_pick_up_and_none_never_ends() {
        let begun = Timestamp::from_second(100).unwrap();
        assert_eq!(deadline(begun, Some(Duration::from_secs(8))), Timestamp::from_second(108).ok());
        assert_eq!(deadline(begun, None), None);
        assert_eq!(deadline(begun, Some(Duration::MAX)), None);
    }
}
