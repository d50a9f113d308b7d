//! Filters besides Jinja's own, for templates of YAML.

use data_encoding::BASE64;
use minijinja::{Environment, Error, ErrorKind, value::Value};

use crate::{format::json, yaml};

/// Adds them.
pub(crate) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("toyaml", toyaml);
    environment.add_filter("tojson", tojson);
    environment.add_filter("fromjson", fromjson);
    environment.add_filter("b64encode", b64encode);
    environment.add_filter("b64decode", b64decode);
    environment.add_filter("quote", quote);
    environment.add_filter("squote", squote);
    environment.add_filter("nindent", nindent);
}

fn toyaml(value: Value) -> Result<String, Error> {
    yaml::write(&document(&value)?).map_err(|too_deep| Error::new(ErrorKind::BadSerialization, too_deep.to_string()))
}

/// Jinja's own escapes `<`, `>`, `&` and `'` for HTML, which no YAML needs.
fn tojson(value: Value) -> Result<String, Error> {
    json(&value)
}

fn document(value: &Value) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, format!("the value cannot be written as a document: {error}"))
    })
}

fn fromjson(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(ErrorKind::CannotDeserialize, format!("the text is no JSON: {}", place(&error))))
}

/// What is wrong with a JSON text, without a word of the text.
fn place(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Data | serde_json::error::Category::Io => {
            "it is malformed"
        }
    };
    format!("{what} at line {} column {}", error.line(), error.column())
}

fn b64encode(value: Value) -> Result<String, Error> {
    match value.as_bytes() {
        Some(bytes) => Ok(BASE64.encode(bytes)),
        None => Err(Error::new(
            ErrorKind::InvalidOperation,
            "b64encode takes a string; add `| tojson` or `| string` before it",
        )),
    }
}

fn b64decode(text: &str) -> Result<String, Error> {
    let bytes = BASE64
        .decode(text.trim().as_bytes())
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "b64decode was given a string that is no base64"))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "b64decode was given base64 of something that is no text"))
}

/// In double quotes, escaped as in JSON, which YAML reads alike.
fn quote(value: Value) -> Result<String, Error> {
    json(&Value::from(text(&value)?))
}

/// In single quotes.
fn squote(value: Value) -> Result<String, Error> {
    Ok(format!("'{}'", text(&value)?.replace('\'', "''")))
}

fn text(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => json(value),
    }
}

/// On a line of its own, every line indented.
fn nindent(text: &str, width: usize) -> String {
    let margin = " ".repeat(width.min(200));
    text.lines().map(|line| format!("\n{}{line}", if line.is_empty() { "" } else { margin.as_str() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, expected: &str) {
        let mut environment = Environment::new();
        add(&mut environment);
        assert_eq!(environment.render_str(template, ()).unwrap(), expected, "{template}");
    }

    #[test]
    fn text_is_quoted_and_indented_for_yaml() {
        check(r#"{{ 'a"b' | quote }}"#, r#""a\"b""#);
        check(r#"{{ 3 | quote }}"#, r#""3""#);
        check(r#"{{ "it's" | squote }}"#, "'it''s'");
        check(r#"{{ "a\n\nb" | nindent(2) }}"#, "\n  a\n\n  b");
        check(r#"{{ {"a": "<&>'"} | tojson }}"#, r#"{"a":"<&>'"}"#);
        check(r#"{{ ('{"a": [1]}' | fromjson).a[0] }}"#, "1");
    }

    #[test]
    fn base64_goes_there_and_back() {
        check("{{ 'gr\u{fc}n' | b64encode }}", "Z3LDvG4=");
        check("{{ 'Z3LDvG4=' | b64decode }}", "gr\u{fc}n");
    }

    #[test]
    fn a_filter_given_the_wrong_thing_says_so_without_showing_it() {
        let environment = {
            let mut environment = Environment::new();
            add(&mut environment);
            environment
        };
        let error = |template: &str| environment.render_str(template, ()).unwrap_err().detail().unwrap().to_owned();
        assert_eq!(error("{{ '%%' | b64decode }}"), "b64decode was given a string that is no base64");
        assert_eq!(error("{{ '/w==' | b64decode }}"), "b64decode was given base64 of something that is no text");
        assert_eq!(error("{{ 3 | b64encode }}"), "b64encode takes a string; add `| tojson` or `| string` before it");
        assert_eq!(error("{{ '{secret' | fromjson }}"), "the text is no JSON: it is malformed at line 1 column 2");
    }
}
