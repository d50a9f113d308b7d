//! The fields of the built-in kinds: what they are called, of what type they are, under which number protobuf has them.

use std::{collections::HashMap, sync::LazyLock};

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u64,
    /// Empty for a message whose fields belong to the one around it.
    pub(super) name: &'static str,
    pub(super) presence: Presence,
    pub(super) many: Many,
    pub(super) of: FieldType,
}

/// When a field is in the answers of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Where it was set, also to an empty value.
    Set,
    /// Where it is not empty.
    Filled,
    /// Always: an empty value where nothing was set.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Many {
    One,
    List,
    Map,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    Text,
    Bool,
    Int,
    Float,
    Bytes,
    /// Seconds and nanoseconds, shown as RFC 3339 in whole seconds.
    Time,
    /// The same with microseconds.
    MicroTime,
    /// Nanoseconds.
    Duration,
    /// A number or a text with a unit.
    Quantity,
    IntOrText,
    /// JSON of any form.
    Raw,
    Message(&'static str),
}

static MESSAGES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let lines = include_str!("fields.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            (words.next().unwrap_or_default(), words.filter_map(field).collect())
        })
        .collect()
});

fn field(word: &'static str) -> Option<Field> {
    let mut parts = word.splitn(3, ':');
    let (number, name, of) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let (many, of) = match (of.strip_prefix('['), of.strip_prefix('{')) {
        (Some(of), _) => (Many::List, of),
        (_, Some(of)) => (Many::Map, of),
        (None, None) => (Many::One, of),
    };
    let presence = match name.as_bytes().first() {
        Some(b'~') => Presence::Filled,
        Some(b'=') => Presence::Always,
        _ => Presence::Set,
    };
    Some(Field { number, name: name.trim_start_matches(['~', '=']), presence, many, of: kind(of) })
}

fn kind(of: &'static str) -> FieldType {
    match of {
        "string" => FieldType::Text,
        "bool" => FieldType::Bool,
        "int" => FieldType::Int,
        "float" => FieldType::Float,
        "bytes" => FieldType::Bytes,
        "time" => FieldType::Time,
        "microtime" => FieldType::MicroTime,
        "duration" => FieldType::Duration,
        "quantity" => FieldType::Quantity,
        "intstr" => FieldType::IntOrText,
        "raw" => FieldType::Raw,
        message => FieldType::Message(message),
    }
}

/// The fields of a message; none if the table does not have it.
pub(super) fn fields_of(message: &str) -> Option<&'static [Field]> {
    MESSAGES.get(message).map(Vec::as_slice)
}

/// The fields of a message with those of the messages inlined in it, as JSON has them; none for a message that the table does
/// not have.
pub(super) fn members_of(message: &str) -> &'static [&'static Field] {
    MEMBERS.get(inner(message)).map(Vec::as_slice).unwrap_or_default()
}

static MEMBERS: LazyLock<HashMap<&'static str, Vec<&'static Field>>> =
    LazyLock::new(|| MESSAGES.keys().map(|message| (*message, members(message))).collect());

fn members(message: &str) -> Vec<&'static Field> {
    let fields = fields_of(message).unwrap_or_default().iter();
    let each = |field: &'static Field| match field.of {
        FieldType::Message(inlined) if field.name.is_empty() => members(inlined),
        _ => vec![field],
    };
    fields.flat_map(each).collect()
}

/// Whether JSON has a message as something else as well: a schema or a word, a schema or a list of them, a bare list.
pub(super) fn is_union(message: &str) -> bool {
    message.starts_with(SCHEMA_OR) || message.ends_with(".ExtraValue")
}

/// The message whose fields an object has in JSON.
fn inner(message: &str) -> &str {
    if message.starts_with(SCHEMA_OR) { SCHEMA } else { message }
}

/// A schema of a custom kind.
const SCHEMA: &str = "apiextensions.JSONSchemaProps";
/// The messages of places that hold a schema or something else.
const SCHEMA_OR: &str = "apiextensions.JSONSchemaPropsOr";

/// What field selectors compare with where an object of a built-in kind does not have the field: the empty value of its type.
pub(crate) fn unset(api_version: &str, kind: &str, path: &[&str]) -> &'static str {
    let mut message = message_of(api_version, kind).unwrap_or_default();
    for (place, name) in path.iter().enumerate() {
        match members_of(message).iter().find(|member| member.name == *name).map(|member| member.of) {
            Some(FieldType::Message(inner)) => message = inner,
            Some(FieldType::Bool) if place + 1 == path.len() => return "false",
            Some(FieldType::Int) if place + 1 == path.len() => return "0",
            _ => return "",
        }
    }
    ""
}

/// The message of a kind.
pub(super) fn message_of(api_version: &str, kind: &str) -> Option<&'static str> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let short = group.split('.').next().unwrap_or_default();
    let short = if short == "autoscaling" && version == "v2" { "autoscaling2" } else { short };
    let exact = MESSAGES.get_key_value(format!("{short}.{kind}").as_str());
    exact.or_else(|| MESSAGES.get_key_value(format!("meta.{kind}").as_str())).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_a_field_names_is_in_the_table() {
        for field in MESSAGES.values().flatten() {
            if let FieldType::Message(message) = field.of {
                assert!(fields_of(message).is_some(), "{message}");
            }
        }
    }

    #[test]
    fn a_kind_is_found_by_its_version() {
        assert_eq!(message_of("v1", "ConfigMap"), Some("core.ConfigMap"));
        assert_eq!(message_of("rbac.authorization.k8s.io/v1", "Role"), Some("rbac.Role"));
        assert_eq!(
            message_of("autoscaling/v2", "HorizontalPodAutoscaler"),
            Some("autoscaling2.HorizontalPodAutoscaler")
        );
        assert_eq!(message_of("v1", "DeleteOptions"), Some("meta.DeleteOptions"));
        assert_eq!(message_of("example.com/v1", "Thing"), None);
    }
}
