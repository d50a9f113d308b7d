//! Writing a document as YAML in block style, so that readers of YAML 1.1 and 1.2 read the same.

use std::fmt;

use serde_json::Value;

/// How deep a document may nest: the writer is recursive.
const DEPTH: usize = 100;

/// The document nests deeper than the writer goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value nests more than {DEPTH} levels deep")
    }
}

/// The document without a final line break.
pub(crate) fn write(document: &Value) -> Result<String, TooDeep> {
    let mut out = String::new();
    block(&mut out, document, 0)?;
    Ok(out)
}

/// Writes a value whose first line starts where `out` ends, and whose others are indented.
fn block(out: &mut String, value: &Value, indent: usize) -> Result<(), TooDeep> {
    if indent > DEPTH * 2 {
        return Err(TooDeep);
    }
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                begin(out, index, indent);
                out.push_str("- ");
                block(out, item, indent + 2)?;
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            for (index, (key, field)) in fields.iter().enumerate() {
                begin(out, index, indent);
                out.push_str(&scalar(key));
                out.push(':');
                entry(out, field, indent)?;
            }
        }
        Value::String(text) => out.push_str(&scalar(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            out.push_str(&value.to_string());
        }
    }
    Ok(())
}

fn begin(out: &mut String, index: usize, indent: usize) {
    if index > 0 {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
}

/// The value of a field: a list or object with content starts on a line of its own.
fn entry(out: &mut String, value: &Value, indent: usize) -> Result<(), TooDeep> {
    let nests = match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if nests {
        out.push('\n');
        out.push_str(&" ".repeat(indent + 2));
    } else {
        out.push(' ');
    }
    block(out, value, indent + 2)
}

/// A string, plain where no reader can take it for anything else, else in double quotes as in JSON.
fn scalar(text: &str) -> String {
    let inside = |c: char| c.is_ascii_alphanumeric() || ['_', '.', '/', '-'].contains(&c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    if starts && text.chars().all(inside) && !is_a_word_of_yaml(text) {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

fn is_a_word_of_yaml(text: &str) -> bool {
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_written_in_block_style() {
        let document = json!({
            "empty": {"list": [], "object": {}},
            "list": [1, [2, "x"], {"a": null, "b": {"c": 1.5}}],
            "text": ["plain/text.x-1", "yes", "NULL", "12", "a: b", "", "l1\nl2", "-x", "~"],
        });
        let expected = r#"empty:
  list: []
  object: {}
list:
  - 1
  - - 2
    - x
  - a: null
    b:
      c: 1.5
text:
  - plain/text.x-1
  - "yes"
  - "NULL"
  - "12"
  - "a: b"
  - ""
  - "l1\nl2"
  - "-x"
  - "~""#;
        assert_eq!(write(&document), Ok(expected.to_owned()));
    }

    #[test]
    fn a_scalar_is_one_line() {
        assert_eq!(write(&json!("on")), Ok("\"on\"".to_owned()));
        assert_eq!(write(&json!(null)), Ok("null".to_owned()));
    }

    #[test]
    fn a_document_that_nests_too_deep_is_refused() {
        let mut document = json!(1);
        for _ in 0..200 {
            document = json!([document]);
        }
        assert_eq!(write(&document), Err(TooDeep));
    }
}
