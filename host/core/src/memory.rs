//! How much memory values of JSON take, told from above: what others wrote is measured by it before it is decoded.
//!
//! A short text can be a large value: `{"":0},` has seven bytes and takes over six hundred, for an object keeps room for
//! eleven fields.

use serde_json::Value;

/// The place of a value in a list that has room for twice as many.
const ITEM: u64 = 64;
/// A field of an object, beside its name.
const FIELD: u64 = 128;
/// An object that is not empty.
const OBJECT: u64 = 640;
/// What an allocation needs beside its content.
const ALLOCATION: u64 = 16;

/// Bytes of a text.
pub fn of_text(length: usize) -> u64 {
    length as u64 + ALLOCATION
}

/// Bytes of a value without what is in it.
pub(crate) const fn of_item() -> u64 {
    ITEM
}

/// Bytes of a field of an object with a name of this length, without its value.
pub(crate) fn of_field(name: usize) -> u64 {
    FIELD + of_text(name)
}

/// Bytes of a list or an object without what is in it.
pub(crate) const fn of_container() -> u64 {
    OBJECT
}

/// Bytes of a value with all that is in it.
pub fn of(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => ITEM,
        Value::String(text) => ITEM + of_text(text.len()),
        Value::Array(items) => items.iter().fold(ITEM + ALLOCATION, |sum, item| sum.saturating_add(of(item))),
        Value::Object(fields) => fields.iter().fold(ITEM + OBJECT, |sum, (name, value)| {
            sum.saturating_add(of_field(name.len())).saturating_add(of(value))
        }),
    }
}

/// Bytes of the value that a text of JSON is decoded to, at most; what is no JSON has a number as well.
pub fn of_json(text: impl AsRef<[u8]>) -> u64 {
    let mut meter = JsonMeter::default();
    meter.read(text.as_ref());
    meter.bytes()
}

/// The same of a text that comes in piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonMeter {
    bytes: u64,
    is_quoted: bool,
    is_escaped: bool,
}

impl JsonMeter {
    /// Reads the next piece.
    pub fn read(&mut self, piece: &[u8]) {
        for byte in piece {
            let more = self.cost(*byte);
            self.bytes = self.bytes.saturating_add(1 + more);
        }
    }

    /// Bytes of the value so far, at most.
    pub fn bytes(&self) -> u64 {
        self.bytes.saturating_add(ITEM)
    }

    /// What a byte stands for beside itself.
    fn cost(&mut self, byte: u8) -> u64 {
        if std::mem::take(&mut self.is_escaped) {
            return 0;
        }
        match byte {
            b'\\' if self.is_quoted => {
                self.is_escaped = true;
                0
            }
            b'"' => {
                self.is_quoted = !self.is_quoted;
                // Half of it at each end.
                ALLOCATION / 2
            }
            _ if self.is_quoted => 0,
            b'{' => OBJECT + ITEM,
            b':' => FIELD,
            b'[' => ALLOCATION + ITEM,
            b',' => ITEM,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_json_is_measured_by_the_memory_of_its_value() {
        let bomb = format!("[{}{{}}]", "{\"\":0},".repeat(1000));
        let bytes = of_json(&bomb);
        assert!(bytes > 90 * bomb.len() as u64, "{bytes} of {}", bomb.len());
        assert!(of_json(format!("\"{}\"", "x".repeat(1 << 20))) < (1 << 20) + 200);
        assert!(of_json(r#""{{{{\"{{{{""#) < 200, "what stands in quotes is text");
    }

    #[test]
    fn limits_json_a_text_is_never_measured_below_its_value() {
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!([[], {}, "", 1.5, true]),
            json!({"a": {"b": {"c": [1, 2, 3]}}, "text": "x\"y\\z"}),
            json!([{"": 0}, {"": 0}, {"": [{"": {}}]}]),
        ] {
            let text = value.to_string();
            assert!(of_json(&text) >= of(&value), "{text}: {} and {}", of_json(&text), of(&value));
        }
    }
}
