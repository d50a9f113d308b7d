//! How values print: as YAML reads them.

use minijinja::{
    Error, Output, State, escape_formatter,
    value::{Value, ValueKind},
};

/// Writes null, booleans, lists and objects as JSON, anything else as Jinja does.
pub(crate) fn write(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => {
            Ok(out.write_str(&json(value)?)?)
        }
        _ => escape_formatter(out, state, value),
    }
}

/// A value as JSON on one line.
pub(crate) fn json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(minijinja::ErrorKind::BadSerialization, format!("the value cannot be written as JSON: {error}"))
    })
}
