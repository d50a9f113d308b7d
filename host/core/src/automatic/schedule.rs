//! Points in time that repeat: after an interval, or as a cron expression says.

use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use jiff::{SignedDuration, Timestamp};

use crate::duration::{self, InvalidDuration, TimeLimit};

/// Points in time that repeat.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// This long after each other.
    Every(SignedDuration),
    /// At the times of a cron expression.
    Cron(Box<Crontab>),
}

/// Why a schedule cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The interval.
    #[error(transparent)]
    Interval(#[from] InvalidDuration),
    /// The cron expression has not five fields.
    #[error(
        "the cron expression {text:?} has {found} fields and needs five: minute, hour, day of month, month, day of week; or write @hourly, @daily, @weekly, @monthly, @yearly or @every 1h30m"
    )]
    Fields {
        /// The expression.
        text: String,
        /// How many it has.
        found: usize,
    },
    /// No time is as the expression says.
    #[error(
        "the cron expression {text:?} never comes: no day is in that month; name a day that there is, such as 28 for the last of February"
    )]
    Never {
        /// The expression.
        text: String,
    },
    /// A field of the cron expression.
    #[error("the cron expression {text:?} cannot be read: {why}")]
    Cron {
        /// The expression.
        text: String,
        /// The parser's own words, on one line.
        why: String,
    },
}

/// What the original's parser knows beside five fields.
const DESCRIPTORS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// An interval shorter than this would keep a host busy with one installation; the original's shortest is the same.
const SHORTEST: Duration = Duration::from_secs(1);

impl Schedule {
    /// The usual interval after a failure.
    pub const AFTER_FAILURE: Duration = Duration::from_secs(5 * 60);
    /// The usual interval after a success.
    pub const AFTER_SUCCESS: Duration = Duration::from_secs(24 * 60 * 60);

    /// Reads a schedule. An expression wins over an interval (`docs/wire.md` §3.4); without both it is the usual one,
    /// as for an interval of zero. Times are UTC unless the expression begins with `TZ=Area/City`.
    ///
    /// # Errors
    /// [`ScheduleError`]
    pub fn parse(cron: &str, interval: Option<&str>, usual: Duration) -> Result<Self, ScheduleError> {
        let cron = cron.trim();
        if cron.is_empty() {
            let interval = match interval.map(duration::limit).transpose()? {
                Some(TimeLimit::After(interval)) => interval,
                Some(TimeLimit::Unlimited) | None => usual,
            };
            return Ok(Self::every(interval));
        }
        if let Some(interval) = cron.strip_prefix("@every ") {
            return Ok(match duration::limit(interval.trim())? {
                TimeLimit::After(interval) => Self::every(interval),
                TimeLimit::Unlimited => Self::every(SHORTEST),
            });
        }
        let (zone, fields) = match cron.strip_prefix("CRON_TZ=").or_else(|| cron.strip_prefix("TZ=")) {
            Some(rest) => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            None => ("UTC", cron),
        };
        let fields = DESCRIPTORS.iter().find(|(name, _)| *name == fields).map_or(fields, |(_, fields)| fields);
        let found = fields.split_whitespace().count();
        if found != 5 {
            return Err(ScheduleError::Fields { text: cron.to_owned(), found });
        }
        // The original takes `?` for `*`.
        let expression = format!("{} {zone}", fields.replace('?', "*"));
        let crontab = cronexpr::parse_crontab(&expression).map_err(|error| {
            let why = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            ScheduleError::Cron { text: cron.to_owned(), why }
        })?;
        let schedule = Self::Cron(Box::new(crontab));
        // What comes at all comes after any time: calendars repeat.
        match schedule.after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never { text: cron.to_owned() }),
        }
    }

    fn every(interval: Duration) -> Self {
        let interval = Duration::from_secs(interval.as_secs()).max(SHORTEST);
        Self::Every(SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX))
    }

    /// The first point after a time; `None` where none comes before the end of time.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(interval) => time.checked_add(*interval).ok(),
            Self::Cron(crontab) => crontab.find_next(MakeTimestamp(time)).ok().map(|zoned| zoned.timestamp()),
        }
    }

    /// The first point that is no sooner after a time than `least` (C-184). An interval is stretched to it. Of cron expressions the
    /// first point that is late enough counts, from the minute of the time on, as their points are whole minutes.
    pub fn no_sooner_after(&self, time: Timestamp, least: SignedDuration) -> Option<Timestamp> {
        let first = self.after(time)?;
        let begin = match self {
            Self::Every(_) => time,
            Self::Cron(_) => {
                let second = time.as_second();
                Timestamp::from_second(second.checked_sub(second.rem_euclid(60))?).ok()?
            }
        };
        let earliest = begin.checked_add(least).ok()?;
        match self {
            _ if first >= earliest => Some(first),
            Self::Every(_) => Some(earliest),
            Self::Cron(_) => self.after(earliest.checked_sub(SignedDuration::from_secs(1)).ok()?),
        }
    }

    /// The same where intervals follow each other from `begin` on: whoever does not remember when the last one ended finds the
    /// same ends.
    pub fn after_begin(&self, begin: Timestamp, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(interval) => {
                let seconds = interval.as_secs().max(1);
                let passed = time.duration_since(begin).as_secs().div_euclid(seconds).checked_add(1)?;
                begin.checked_add(SignedDuration::from_secs(seconds.checked_mul(passed)?)).ok()
            }
            Self::Cron(_) => self.after(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_61_intervals_that_follow_each_other_from_a_begin_have_the_same_ends_whenever_one_looks() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let schedule = Schedule::parse("", Some("100s"), Schedule::AFTER_SUCCESS).unwrap();
        let ends = [-1, 0, 99, 100, 101, 250].map(|time| schedule.after_begin(at(50), at(50 + time)));
        assert_eq!(ends, [50, 150, 150, 250, 250, 350].map(|end| Some(at(end))));
        let hourly = Schedule::parse("@hourly", None, Schedule::AFTER_SUCCESS).unwrap();
        assert_eq!(hourly.after_begin(at(50), at(60)), Some(at(3600)));
        let never = Schedule::Every(SignedDuration::MAX);
        assert_eq!(never.after_begin(at(50), at(60)), None);
    }

    #[test]
    fn c_184_points_are_no_sooner_than_the_least_time_and_cron_expressions_keep_their_grid() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let check = |cron: &str, last: i64, least: i64, expected: i64| {
            let schedule = Schedule::parse(cron, None, Schedule::AFTER_SUCCESS).unwrap();
            let found = schedule.no_sooner_after(at(last), SignedDuration::from_secs(least));
            assert_eq!(found, Some(at(expected)), "{cron} after {last}, {least}");
        };
        for (cron, last, least, expected) in [
            ("@every 1s", 7, 0, 8),
            ("@every 1s", 7, 60, 67),
            ("@every 60s", 7, 60, 67),
            ("@every 61s", 7, 60, 68),
            // Every minute, also where a job begins some seconds after the point that started it.
            ("* * * * *", 123, 0, 180),
            ("* * * * *", 120, 60, 180),
            ("* * * * *", 123, 60, 180),
            ("* * * * *", 123, 61, 240),
            ("* * * * *", 123, 120, 240),
            ("@hourly", 3601, 3600, 7200),
            ("@hourly", 3601, 3601, 10800),
        ] {
            check(cron, last, least, expected);
        }
        let hourly = Schedule::parse("@hourly", None, Schedule::AFTER_SUCCESS).unwrap();
        assert_eq!(hourly.no_sooner_after(at(0), SignedDuration::MAX), None);
    }

    /// Saturday, noon and a bit.
    const NOW: &str = "2026-11-21T12:34:56Z";

    #[track_caller]
    fn next(cron: &str, expected: &str) {
        let schedule = Schedule::parse(cron, None, Schedule::AFTER_SUCCESS).unwrap();
        assert_eq!(schedule.after(NOW.parse().unwrap()).unwrap().to_string(), expected, "{cron}");
    }

    #[test]
    fn expressions_mean_what_they_mean_to_the_original() {
        next("*/5 * * * *", "2026-11-21T12:35:00Z");
        next("20/10 * * * *", "2026-11-21T12:40:00Z");
        next("0 3 ? * MON-FRI", "2026-11-23T03:00:00Z");
        next("0 3 1 * 0", "2026-11-22T03:00:00Z");
        next("TZ=Asia/Tokyo 0 3 * * *", "2026-11-21T18:00:00Z");
        next("CRON_TZ=Asia/Tokyo @daily", "2026-11-21T15:00:00Z");
    }

    #[test]
    fn descriptors_stand_for_expressions() {
        next("@hourly", "2026-11-21T13:00:00Z");
        next("@daily", "2026-11-22T00:00:00Z");
        next("@midnight", "2026-11-22T00:00:00Z");
        next("@weekly", "2026-11-22T00:00:00Z");
        next("@monthly", "2026-12-01T00:00:00Z");
        next("@yearly", "2027-01-01T00:00:00Z");
        next("@annually", "2027-01-01T00:00:00Z");
        next("@every 1h30m", "2026-11-21T14:04:56Z");
        next("@every 10ms", "2026-11-21T12:34:57Z");
    }

    #[test]
    fn an_expression_wins_over_an_interval_and_both_have_their_default() {
        let next = |cron, interval| {
            let schedule = Schedule::parse(cron, interval, Schedule::AFTER_FAILURE).unwrap();
            schedule.after(NOW.parse().unwrap()).unwrap().to_string()
        };
        assert_eq!(next("", None), "2026-11-21T12:39:56Z");
        assert_eq!(next("", Some("0s")), "2026-11-21T12:39:56Z");
        assert_eq!(next("", Some("10s")), "2026-11-21T12:35:06Z");
        assert_eq!(next("@hourly", Some("10s")), "2026-11-21T13:00:00Z");
    }

    #[test]
    fn usual_is_five_minutes_after_a_failure_and_a_day_after_a_success() {
        let usual = [Schedule::AFTER_FAILURE, Schedule::AFTER_SUCCESS].map(|usual| {
            let schedule = Schedule::parse("", None, usual).unwrap();
            schedule.after(NOW.parse().unwrap()).unwrap().to_string()
        });
        assert_eq!(usual, ["2026-11-21T12:39:56Z", "2026-11-22T12:34:56Z"]);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let message = |cron| Schedule::parse(cron, None, Schedule::AFTER_FAILURE).unwrap_err().to_string();
        assert_eq!(
            message("* * * *"),
            "the cron expression \"* * * *\" has 4 fields and needs five: minute, hour, day of month, month, day of week; or \
             write @hourly, @daily, @weekly, @monthly, @yearly or @every 1h30m"
        );
        let field = message("61 * * * *");
        assert!(field.starts_with("the cron expression \"61 * * * *\" cannot be read: "), "{field}");
        assert_eq!(field.lines().count(), 1);
        assert!(message("@every day").contains("\"day\" is no length of time"));
        assert!(message("TZ=Nowhere/City @daily").contains("cannot be read"));
    }

    #[test]
    fn c_198_an_expression_that_never_comes_is_refused_and_a_leap_day_comes() {
        let message = |cron| Schedule::parse(cron, None, Schedule::AFTER_FAILURE).unwrap_err().to_string();
        for cron in ["0 0 30 2 *", "0 0 31 4,6 *", "TZ=Asia/Tokyo 0 0 31 2 *"] {
            let expected = format!(
                "the cron expression {cron:?} never comes: no day is in that month; name a day that there is, such as 28 for the last \
                 of February"
            );
            assert_eq!(message(cron), expected);
        }
        next("0 0 29 2 *", "2028-02-29T00:00:00Z");
    }
}
