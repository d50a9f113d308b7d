//! An object of a built-in kind as the real server has it in memory and answers it: defaults filled in, what is empty left out,
//! what is always there put in.

use serde_json::{Map, Value, json};

use super::{
    defaults::DEFAULTS,
    derived::{derive, json_of},
    fields::{Field, FieldType, Many, Presence, is_union, members_of, message_of},
    protobuf::is_empty,
    quantity::canonical,
};

/// Completes an object. One of a kind that is not built in stays as it is.
pub(crate) fn complete(object: &mut Value) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let message = message_of(text("apiVersion"), text("kind"));
    if let (Some(message), Value::Object(fields)) = (message, object) {
        complete_message(message, fields);
    }
}

fn complete_message(message: &str, fields: &mut Map<String, Value>) {
    let members = members_of(message);
    fields.retain(|_, value| !value.is_null());
    drop_empty(members, fields);
    for member in members.iter().filter(|member| is_structure(member) && member.presence == Presence::Always) {
        fields.entry(member.name).or_insert_with(|| json!({}));
    }
    for (field, value) in DEFAULTS.iter().filter(|(of, _)| *of == message).flat_map(|(_, defaults)| *defaults) {
        let pointer = members.iter().any(|member| member.name == *field && member.presence == Presence::Set);
        if fields.get(*field).is_none_or(|found| !pointer && is_empty(found)) {
            fields.insert((*field).to_owned(), json_of(value));
        }
    }
    derive(message, fields);
    for member in members {
        if let Some(value) = fields.get_mut(member.name) {
            complete_member(member, value);
        }
        if member.presence == Presence::Always {
            let value = fields.entry(member.name).or_insert(Value::Null);
            // The real server's store does not tell lists and maps without entries from none.
            if value.is_null() || (member.many != Many::One && is_empty(value)) {
                *value = empty(member);
            }
        }
    }
    drop_empty(members, fields);
}

fn drop_empty(members: &[&Field], fields: &mut Map<String, Value>) {
    for member in members.iter().filter(|member| member.presence == Presence::Filled) {
        if fields.get(member.name).is_some_and(is_empty) {
            fields.remove(member.name);
        }
    }
}

/// Whether a member is a message that every object has, be it empty.
fn is_structure(member: &Field) -> bool {
    member.many == Many::One && matches!(member.of, FieldType::Message(_))
}

fn complete_member(member: &Field, value: &mut Value) {
    match (member.many, value) {
        (Many::One, value) => complete_value(member.of, value),
        (Many::List, Value::Array(entries)) => entries.iter_mut().for_each(|entry| complete_value(member.of, entry)),
        (Many::Map, Value::Object(entries)) => entries.values_mut().for_each(|entry| complete_value(member.of, entry)),
        _ => {}
    }
}

fn complete_value(of: FieldType, value: &mut Value) {
    let message = match of {
        FieldType::Message(message) => message,
        FieldType::Quantity => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Some(usual) = canonical(&text) {
                *value = json!(usual);
            }
            return;
        }
        _ => return,
    };
    match value {
        Value::Object(fields) => complete_message(message, fields),
        Value::Array(entries) if is_union(message) => {
            entries.iter_mut().filter(|entry| entry.is_object()).for_each(|entry| complete_value(of, entry));
        }
        _ => {}
    }
}

/// What Go writes for a value that was never set.
fn empty(member: &Field) -> Value {
    match (member.many, member.of) {
        (Many::List | Many::Map, _) => Value::Null,
        (Many::One, FieldType::Text) => json!(""),
        (Many::One, FieldType::Bool) => json!(false),
        (Many::One, FieldType::Int | FieldType::Float | FieldType::IntOrText) => json!(0),
        (Many::One, FieldType::Duration) => json!("0s"),
        (Many::One, FieldType::Quantity) => json!("0"),
        (Many::One, FieldType::Message(_)) => json!({}),
        (Many::One, FieldType::Bytes | FieldType::Time | FieldType::MicroTime | FieldType::Raw) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_of_a_field_that_exists() {
        for (message, defaults) in DEFAULTS {
            for (field, value) in *defaults {
                assert!(members_of(message).iter().any(|member| member.name == *field), "{message} {field}");
                json_of(value);
            }
        }
    }

    #[test]
    fn what_is_complete_stays_as_it_is() {
        let container = json!({"name": "c", "image": "i", "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}}, "env": [], "resources": null});
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "volumes": [{"name": "v"}]}});
        let mut once = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
        complete(&mut once);
        let mut twice = once.clone();
        complete(&mut twice);
        assert_eq!(once, twice);
        let container = json!({"name": "c", "image": "i", "imagePullPolicy": "Always", "resources": {},
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1,
                "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
        assert_eq!(once.pointer("/spec/template/spec/containers/0"), Some(&container));
        assert_eq!(once.pointer("/spec/template/spec/volumes/0"), Some(&json!({"name": "v", "emptyDir": {}})));
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
        assert_eq!(once.pointer("/spec/strategy"), Some(&strategy));
    }
}
