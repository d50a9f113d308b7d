//! Whether an object is as expected: it has all that is written down, and may have more.

use serde_json::Value;

/// Where the object differs from what is expected, one line each; empty when it does not.
///
/// Maps may have more fields than expected; lists must be equally long, and their elements match in order. An expected
/// `null` means that the field is absent.
pub fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare(expected, Some(found), &mut String::new(), &mut lines);
    lines
}

fn compare(expected: &Value, found: Option<&Value>, path: &mut String, lines: &mut Vec<String>) {
    match (expected, found) {
        (Value::Null, None | Some(Value::Null)) => {}
        (Value::Object(fields), Some(Value::Object(present))) => {
            for (key, value) in fields {
                inside(path, &format!(".{key}"), |path| compare(value, present.get(key), path, lines));
            }
        }
        (Value::Object(fields), None) => {
            for (key, value) in fields {
                inside(path, &format!(".{key}"), |path| compare(value, None, path, lines));
            }
        }
        (Value::Array(elements), Some(Value::Array(present))) if elements.len() == present.len() => {
            for (index, (value, found)) in elements.iter().zip(present).enumerate() {
                inside(path, &format!("[{index}]"), |path| compare(value, Some(found), path, lines));
            }
        }
        (expected, Some(found)) if expected == found => {}
        (expected, Some(found)) => lines.push(format!("{path}: expected {expected}, found {found}")),
        (expected, None) => lines.push(format!("{path}: expected {expected}, found nothing")),
    }
}

fn inside(path: &mut String, step: &str, visit: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(step);
    visit(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_is_absent_at_any_depth() {
        assert_eq!(differences(&json!({"a": {"b": null}}), &json!({})), Vec::<String>::new());
        assert_eq!(differences(&json!({"a": {"b": 1}}), &json!({})), [".a.b: expected 1, found nothing"]);
    }

    #[test]
    fn more_fields_than_expected_are_no_difference() {
        assert_eq!(differences(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1, "c": 2}, "d": 3})), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_named_with_its_path() {
        let expected = json!({"a": {"b": 1}, "l": [{"x": "y"}], "n": null, "m": 2, "p": [1]});
        let found = json!({"a": {"b": 2}, "l": [{"x": "z"}], "n": 0, "p": [1, 2]});
        assert_eq!(
            differences(&expected, &found),
            [
                ".a.b: expected 1, found 2",
                ".l[0].x: expected \"y\", found \"z\"",
                ".m: expected 2, found nothing",
                ".n: expected null, found 0",
                ".p: expected [1], found [1,2]",
            ]
        );
    }
}
