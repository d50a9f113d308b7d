//! What a table shows of events, which have two groups with other words for the same, and older fields beside newer ones.

use jiff::Timestamp;
use serde_json::Value;

use super::age::since;
use crate::object;

/// The cell of an event that `columns` calls by a word.
pub(super) fn cell(event: &Value, word: &str, now: Timestamp) -> String {
    let field = |names: [&str; 2]| names.iter().find_map(|name| event.get(*name).filter(|value| !value.is_null()));
    let text = |names: [&str; 2], below: &str| {
        field(names).and_then(|value| object::text(value, &[below])).unwrap_or_default().to_owned()
    };
    let series = |name: &str| object::at(event, &["series", name]);
    let ago = |at: Option<&Value>| at.map_or_else(|| "<unknown>".to_owned(), |at| since(at, now));
    let first = field(["firstTimestamp", "deprecatedFirstTimestamp"]).or_else(|| field(["eventTime", "eventTime"]));
    match word {
        "last seen" => {
            let last = field(["lastTimestamp", "deprecatedLastTimestamp"]);
            ago(series("lastObservedTime").or(last).or(first))
        }
        "first seen" => ago(first),
        "object" => {
            let (kind, name) = (text(REGARDING, "kind").to_lowercase(), text(REGARDING, "name"));
            format!("{kind}/{name}")
        }
        "part" => text(REGARDING, "fieldPath"),
        "source" => {
            let (component, host) = (text(SOURCE, "component"), text(SOURCE, "host"));
            let reporting = field(["reportingComponent", "reportingController"]).and_then(Value::as_str);
            match (component.as_str(), host.as_str()) {
                ("", _) => reporting.unwrap_or_default().to_owned(),
                (_, "") => component,
                (_, _) => format!("{component}, {host}"),
            }
        }
        "message" => field(["message", "note"]).and_then(Value::as_str).unwrap_or_default().trim().to_owned(),
        _ => {
            let count = series("count").or_else(|| field(["count", "deprecatedCount"])).and_then(Value::as_i64);
            count.filter(|count| *count > 0).unwrap_or(1).to_string()
        }
    }
}

const REGARDING: [&str; 2] = ["involvedObject", "regarding"];
const SOURCE: [&str; 2] = ["source", "deprecatedSource"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(event: &Value, expected: [&str; 5]) {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let words = ["last seen", "first seen", "object", "source", "count"];
        assert_eq!(words.map(|word| cell(event, word, now)), expected);
    }

    #[test]
    fn an_event_without_older_fields_was_seen_when_it_happened() {
        let regarding = json!({"kind": "Pod", "name": "p"});
        let at = "2027-01-15T07:59:00.000000Z";
        let core =
            json!({"involvedObject": regarding, "eventTime": at, "reportingComponent": "c", "lastTimestamp": null});
        check(&core, ["60s", "60s", "pod/p", "c", "1"]);
        let events = json!({"regarding": regarding, "eventTime": at, "reportingController": "c"});
        check(&events, ["60s", "60s", "pod/p", "c", "1"]);
    }

    #[test]
    fn older_fields_and_series_say_when_it_was_seen_last() {
        let core = json!({"involvedObject": {"kind": "Pod", "name": "p"}, "firstTimestamp": "2027-01-15T07:00:00Z",
            "lastTimestamp": "2027-01-15T07:50:00Z", "source": {"component": "c", "host": "h"}, "count": 3});
        check(&core, ["10m", "60m", "pod/p", "c, h", "3"]);
        let mut series = core;
        series["series"] = json!({"count": 5, "lastObservedTime": "2027-01-15T07:59:59.000000Z"});
        check(&series, ["1s", "60m", "pod/p", "c, h", "5"]);
    }
}
