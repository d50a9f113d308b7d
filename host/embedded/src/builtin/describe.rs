//! The built-in kinds as schemas, for `kubectl explain`.

use serde_json::{Map, Value, json};

use super::fields::{Field, FieldType, Many, is_union, members_of, message_of};

/// The schema of a built-in kind; the schemas of what it contains go to `definitions`. None for a kind without fields.
pub(crate) fn describe(api_version: &str, kind: &str, definitions: &mut Map<String, Value>) -> Option<Value> {
    let message = message_of(api_version, kind)?;
    Some(schema_of(message, definitions))
}

fn schema_of(message: &str, definitions: &mut Map<String, Value>) -> Value {
    let fields = members_of(message).iter();
    let properties: Map<String, Value> =
        fields.map(|field| (field.name.to_owned(), field_schema(field, definitions))).collect();
    json!({"type": "object", "properties": properties})
}

fn field_schema(field: &Field, definitions: &mut Map<String, Value>) -> Value {
    let one = match field.of {
        FieldType::Text | FieldType::Duration => json!({"type": "string"}),
        FieldType::Bytes => json!({"type": "string", "format": "byte"}),
        FieldType::Time | FieldType::MicroTime => json!({"type": "string", "format": "date-time"}),
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::Int => json!({"type": "integer"}),
        FieldType::Float => json!({"type": "number"}),
        FieldType::Quantity | FieldType::IntOrText => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        FieldType::Raw => json!({"type": "object"}),
        FieldType::Message(message) if is_union(message) => json!({}),
        FieldType::Message(message) => {
            let name = format!("io.k8s.api.{message}");
            if !definitions.contains_key(&name) {
                // Its place is taken before what is inside of it asks for it again.
                definitions.insert(name.clone(), Value::Null);
                let schema = schema_of(message, definitions);
                definitions.insert(name.clone(), schema);
            }
            json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]})
        }
    };
    match field.many {
        Many::One => one,
        Many::List => json!({"type": "array", "items": one}),
        Many::Map => json!({"type": "object", "additionalProperties": one}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_described_with_all_that_it_contains() {
        let mut definitions = Map::new();
        let schema = describe("apps/v1", "Deployment", &mut definitions).unwrap();
        let spec = json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.DeploymentSpec"}]});
        assert_eq!(schema.pointer("/properties/spec"), Some(&spec));
        let replicas = definitions["io.k8s.api.apps.DeploymentSpec"].pointer("/properties/replicas");
        assert_eq!(replicas, Some(&json!({"type": "integer"})));
        assert!(definitions.values().all(Value::is_object));
    }
}
