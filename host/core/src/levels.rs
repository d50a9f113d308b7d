//! How deep lists and objects of JSON stand in each other. What others wrote is measured by it before it is decoded: decoders go
//! down as deep as a text is, and end at some depth.

use serde_json::Value;

/// The most levels of lists and objects in each other that an object of an API server has, its managed fields aside. A decoder of JSON
/// ends at 127, and lists and events stand around an object (C-153).
pub const DEEPEST_OBJECT: usize = 120;

/// The levels of a value.
pub fn of(value: &Value) -> usize {
    let below = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
        Value::Array(items) => items.iter().map(of).max(),
        Value::Object(fields) => fields.values().map(of).max(),
    };
    below.unwrap_or_default().saturating_add(1)
}

/// The levels of a text of JSON, however many there are; what is no JSON has a number as well.
pub fn of_json(text: &str) -> usize {
    let (mut scan, mut deepest) = (JsonScan::default(), 0);
    for byte in text.bytes() {
        scan.read(byte);
        deepest = deepest.max(scan.level);
    }
    deepest
}

/// A text of JSON with `null` in place of what stands deeper than so many levels.
pub fn cut(text: &str, deepest: usize) -> String {
    let (mut scan, mut kept, mut from) = (JsonScan::default(), String::new(), 0);
    for (at, byte) in text.bytes().enumerate() {
        let before = scan.level;
        scan.read(byte);
        if before == deepest && scan.level > deepest {
            kept.push_str(text.get(from..at).unwrap_or_default());
            kept.push_str("null");
        } else if before > deepest && scan.level == deepest {
            from = at.saturating_add(1);
        }
    }
    if scan.level <= deepest {
        kept.push_str(text.get(from..).unwrap_or_default());
    }
    kept
}

/// Where a text of JSON that comes in byte by byte stands.
#[derive(Default)]
struct JsonScan {
    level: usize,
    is_quoted: bool,
    is_escaped: bool,
}

impl JsonScan {
    fn read(&mut self, byte: u8) {
        if std::mem::take(&mut self.is_escaped) {
            return;
        }
        match byte {
            b'\\' if self.is_quoted => self.is_escaped = true,
            b'"' => self.is_quoted = !self.is_quoted,
            _ if self.is_quoted => {}
            b'{' | b'[' => self.level = self.level.saturating_add(1),
            b'}' | b']' => self.level = self.level.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_of_values_and_of_their_texts_are_the_same() {
        for (value, levels) in [
            (json!(null), 0),
            (json!("{[{["), 0),
            (json!([]), 1),
            (json!({"a": 1, "b": [1, {"c": "]}\\\""}], "d": {}}), 3),
            (json!([[], [[[]]], {}]), 4),
        ] {
            assert_eq!((of(&value), of_json(&value.to_string())), (levels, levels), "{value}");
        }
    }

    #[test]
    fn c_153_a_text_of_any_depth_is_measured_and_cut() {
        let deep = format!("{{\"a\": {}1{}, \"é\": 2}}", "[".repeat(500_000), "]".repeat(500_000));
        assert_eq!(of_json(&deep), 500_001);
        assert_eq!(cut(&deep, 3), "{\"a\": [[null]], \"é\": 2}");
        assert_eq!(cut(&deep, 1), "{\"a\": null, \"é\": 2}");
        assert_eq!(cut(&deep, 0), "null");
        assert_eq!(cut(&deep, 500_001), deep);
        assert_eq!(cut("[[1], [[2]], [3, [4]]]", 2), "[[1], [null], [3, null]]");
    }

    #[test]
    fn what_is_cut_can_be_decoded() {
        let text = json!([{"a": [{"b": "}]"}]}, [[[]]], "\\"]).to_string();
        let cut: Value = serde_json::from_str(&cut(&text, 2)).unwrap();
        assert_eq!(cut, json!([{"a": null}, [null], "\\"]));
    }
}
