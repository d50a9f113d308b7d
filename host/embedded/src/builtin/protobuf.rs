//! Bodies in protobuf, as typed Go clients (and `kubectl create`) send them: decoded into JSON at the door.

use std::cell::Cell;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldType, Many, Presence, fields_of, is_union, message_of};

/// What stands before every object of Kubernetes in protobuf.
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may nest.
const DEEPEST: usize = 64;
/// How many values a body may have: in memory each of them takes much more than its two bytes on the wire.
const MOST_VALUES: usize = 1 << 18;

/// Why a body does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("the body is not protobuf of Kubernetes: it does not begin with its four bytes")]
    NoMagic,
    #[error("the protobuf body ends too early or is damaged")]
    Damaged,
    #[error("the protobuf body has more than {MOST_VALUES} values; send less at once")]
    TooMany,
    #[error("the kind {kind} of {api_version} is not known in protobuf; send JSON")]
    UnknownKind { api_version: String, kind: String },
}

/// The object in a body.
pub(crate) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
    let (mut type_meta, mut raw) = (&[][..], &[][..]);
    let budget = &Budget(Cell::new(MOST_VALUES));
    for part in parts(envelope, budget)? {
        match part {
            (1, WireValue::Bytes(bytes)) => type_meta = bytes,
            (2, WireValue::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for part in parts(type_meta, budget)? {
        match part {
            (1, WireValue::Bytes(bytes)) => api_version = text(bytes)?,
            (2, WireValue::Bytes(bytes)) => kind = text(bytes)?,
            _ => {}
        }
    }
    let Some(name) = message_of(&api_version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut object = message(name, raw, DEEPEST, budget)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// How many values may still be read.
#[derive(Debug)]
struct Budget(Cell<usize>);

impl Budget {
    fn spend(&self) -> Result<(), ProtobufError> {
        self.0.set(self.0.get().checked_sub(1).ok_or(ProtobufError::TooMany)?);
        Ok(())
    }
}

/// A value as it is on the wire.
#[derive(Clone, Copy, Debug)]
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The numbered values of a message.
fn parts<'a>(mut bytes: &'a [u8], budget: &Budget) -> Result<Vec<(u64, WireValue<'a>)>, ProtobufError> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        budget.spend()?;
        let tag = varint(&mut bytes)?;
        let fixed = |bytes: &mut &[u8], width: usize| {
            let number = take(bytes, width)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            Ok(WireValue::Number(number))
        };
        let value = match tag & 7 {
            0 => WireValue::Number(varint(&mut bytes)?),
            1 => fixed(&mut bytes, 8)?,
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| ProtobufError::Damaged)?;
                WireValue::Bytes(take(&mut bytes, length)?)
            }
            5 => fixed(&mut bytes, 4)?,
            _ => return Err(ProtobufError::Damaged),
        };
        parts.push((tag >> 3, value));
    }
    Ok(parts)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], ProtobufError> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(ProtobufError::Damaged)?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(bytes, 1)? else { return Err(ProtobufError::Damaged) };
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ProtobufError::Damaged)
}

fn text(bytes: &[u8]) -> Result<String, ProtobufError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ProtobufError::Damaged)
}

fn message(name: &str, bytes: &[u8], depth: usize, budget: &Budget) -> Result<Map<String, Value>, ProtobufError> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::Damaged)?;
    let fields = fields_of(name).unwrap_or_default();
    let mut object = Map::new();
    for (number, wire) in parts(bytes, budget)? {
        // Fields of a newer version of Kubernetes than the table's are not known, and left out.
        let Some(field) = fields.iter().find(|field| field.number == number) else { continue };
        put(&mut object, field, wire, depth, budget)?;
    }
    Ok(object)
}

fn put(
    object: &mut Map<String, Value>,
    field: &Field,
    wire: WireValue<'_>,
    depth: usize,
    budget: &Budget,
) -> Result<(), ProtobufError> {
    match field.many {
        Many::Map => {
            let WireValue::Bytes(bytes) = wire else { return Err(ProtobufError::Damaged) };
            let (mut key, mut value) = (String::new(), None);
            for (number, wire) in parts(bytes, budget)? {
                match (number, wire) {
                    (1, WireValue::Bytes(bytes)) => key = text(bytes)?,
                    (2, wire) => value = Some(one(field.of, wire, depth, budget)?),
                    _ => {}
                }
            }
            let value = value.unwrap_or_else(|| json!(""));
            let map = object.entry(field.name).or_insert_with(|| json!({}));
            crate::object::fields(map).insert(key, value);
        }
        Many::List => {
            let value = one(field.of, wire, depth, budget)?;
            if let Value::Array(entries) = object.entry(field.name).or_insert_with(|| json!([])) {
                entries.push(value);
            }
        }
        Many::One => {
            let value = one(field.of, wire, depth, budget)?;
            match value {
                Value::Object(inner) if field.name.is_empty() => object.extend(inner),
                Value::Null => {}
                value if field.presence == Presence::Filled && is_empty(&value) => {}
                value => {
                    object.insert(field.name.to_owned(), value);
                }
            }
        }
    }
    Ok(())
}

/// Whether Go leaves a value out that is left out when it is empty.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn one(kind: FieldType, wire: WireValue<'_>, depth: usize, budget: &Budget) -> Result<Value, ProtobufError> {
    let value = match (kind, wire) {
        (FieldType::Text, WireValue::Bytes(bytes)) => json!(text(bytes)?),
        (FieldType::Bool, WireValue::Number(number)) => json!(number != 0),
        (FieldType::Int, WireValue::Number(number)) => json!(number.cast_signed()),
        (FieldType::Float, WireValue::Number(number)) => float(f64::from_bits(number)),
        (FieldType::Bytes, WireValue::Bytes(bytes)) => json!(data_encoding::BASE64.encode(bytes)),
        (FieldType::Time, WireValue::Bytes(bytes)) => time(bytes, 1_000_000_000, budget)?,
        (FieldType::MicroTime, WireValue::Bytes(bytes)) => time(bytes, 1_000, budget)?,
        (FieldType::Duration, WireValue::Bytes(bytes)) => {
            json!(format!("{}ns", number_at(bytes, 1, budget)?.unwrap_or(0)))
        }
        (FieldType::Quantity, WireValue::Bytes(bytes)) => json!(text_at(bytes, 1, budget)?),
        (FieldType::IntOrText, WireValue::Bytes(bytes)) => match number_at(bytes, 1, budget)? {
            Some(1) => json!(text_at(bytes, 3, budget)?),
            _ => json!(number_at(bytes, 2, budget)?.unwrap_or(0)),
        },
        (FieldType::Raw, WireValue::Bytes(bytes)) => {
            let raw = parts(bytes, budget)?.into_iter().find_map(|(number, wire)| match wire {
                WireValue::Bytes(raw) if number == 1 => serde_json::from_slice(raw).ok(),
                _ => None,
            });
            raw.unwrap_or(Value::Null)
        }
        (FieldType::Message(name), WireValue::Bytes(bytes)) => {
            let inner = message(name, bytes, depth, budget)?;
            if is_union(name) { alternative(name, inner) } else { Value::Object(inner) }
        }
        _ => return Err(ProtobufError::Damaged),
    };
    Ok(value)
}

/// What JSON has in the place of a message that holds one of several things: a list, a schema, or whether anything is allowed.
fn alternative(name: &str, mut inner: Map<String, Value>) -> Value {
    let found =
        ["items", "schema", "jSONSchemas", "property", "allows"].into_iter().find_map(|name| inner.remove(name));
    let nothing = if name.ends_with(".ExtraValue") { json!([]) } else { Value::Bool(false) };
    found.unwrap_or(nothing)
}

/// A whole number where it is one, as JSON of Go has it.
fn float(number: f64) -> Value {
    const WHOLE: f64 = (1_i64 << 53) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and below 2^53")]
    if number.fract() == 0.0 && number.abs() < WHOLE { json!(number as i64) } else { json!(number) }
}

fn number_at(bytes: &[u8], wanted: u64, budget: &Budget) -> Result<Option<i64>, ProtobufError> {
    let number = |(number, wire): (u64, WireValue<'_>)| match wire {
        WireValue::Number(value) if number == wanted => Some(value.cast_signed()),
        _ => None,
    };
    Ok(parts(bytes, budget)?.into_iter().find_map(number))
}

fn text_at(bytes: &[u8], wanted: u64, budget: &Budget) -> Result<String, ProtobufError> {
    let found = parts(bytes, budget)?.into_iter().find_map(|(number, wire)| match wire {
        WireValue::Bytes(bytes) if number == wanted => Some(bytes),
        _ => None,
    });
    text(found.unwrap_or_default())
}

/// A time cut to a unit of so many nanoseconds; nothing for the time that is not set.
fn time(bytes: &[u8], unit: i32, budget: &Budget) -> Result<Value, ProtobufError> {
    let Some(seconds) = number_at(bytes, 1, budget)? else { return Ok(Value::Null) };
    let nanos = i32::try_from(number_at(bytes, 2, budget)?.unwrap_or(0)).map_err(|_| ProtobufError::Damaged)?;
    let time = Timestamp::new(seconds, nanos - nanos % unit).map_err(|_| ProtobufError::Damaged)?;
    Ok(json!(if unit < 1_000_000_000 { format!("{time:.6}") } else { time.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn a_config_map_is_decoded() {
        let meta = [field(1, b"one"), field(2, b""), field(8, b"")].concat();
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &meta), field(2, &entry)].concat();
        let expected =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"k": "v"}});
        assert_eq!(decode(&body("v1", "ConfigMap", &raw)), Ok(expected));
    }

    /// A field whose length takes more than a byte.
    fn long(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut tag = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length >= 0x80 {
            tag.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        tag.push(u8::try_from(length).unwrap());
        [tag.as_slice(), bytes].concat()
    }

    #[test]
    fn a_schema_is_decoded_with_what_stands_for_several_things() {
        // additionalProperties is field 30: its tag takes two bytes.
        let extra = |inner: &[u8]| [&[0xf2, 0x01, u8::try_from(inner.len()).unwrap()], inner].concat();
        let text = field(5, b"string");
        let number = [&[9 << 3 | 1][..], &2.0_f64.to_le_bytes()].concat();
        let allows = |schema: &[u8]| extra(&[&[1 << 3, 1][..], schema].concat());
        let property = |name: &[u8], schema: &[u8]| {
            let entry = [field(1, name), field(2, schema)].concat();
            [&[0xea, 0x01, u8::try_from(entry.len()).unwrap()], entry.as_slice()].concat()
        };
        let items = [&[0xc2, 0x01, u8::try_from(text.len() + 2).unwrap()], field(1, &text).as_slice()].concat();
        let root = [
            field(5, b"object"),
            field(8, &field(1, b"{\"a\":[1]}")),
            property(b"any", &allows(b"")),
            property(b"list", &items),
            property(b"map", &allows(&field(2, &text))),
            property(b"number", &number),
        ]
        .concat();
        let budget = Budget(Cell::new(MOST_VALUES));
        let decoded = message("apiextensions.JSONSchemaProps", &root, DEEPEST, &budget).map(Value::Object);
        let expected = json!({"type": "object", "default": {"a": [1]}, "properties": {
            "any": {"additionalProperties": true}, "list": {"items": {"type": "string"}},
            "map": {"additionalProperties": {"type": "string"}}, "number": {"maximum": 2},
        }});
        assert_eq!(decoded, Ok(expected));
    }

    #[test]
    fn every_kind_that_is_served_is_known_in_protobuf() {
        for resource in crate::builtin::resources() {
            for version in &resource.versions {
                let api_version = resource.api_version(&version.name);
                let decoded = decode(&body(&api_version, &resource.kind, b""));
                assert_eq!(decoded, Ok(json!({"apiVersion": api_version, "kind": resource.kind})), "{}", resource.kind);
            }
        }
    }

    #[test]
    fn hostile_bytes_are_refused() {
        assert_eq!(decode(b"{}"), Err(ProtobufError::NoMagic));
        assert_eq!(decode(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Err(ProtobufError::Damaged));
        assert_eq!(decode(&body("v1", "ConfigMap", b"\x0a\x05a")), Err(ProtobufError::Damaged));
        let unknown = ProtobufError::UnknownKind { api_version: "x/v1".to_owned(), kind: "Y".to_owned() };
        assert_eq!(decode(&body("x/v1", "Y", b"")), Err(unknown));
    }

    #[test]
    fn a_body_that_is_cut_off_anywhere_is_no_other_object() {
        let meta = [field(1, b"one"), field(12, &[field(1, b"a"), field(2, b"b")].concat())].concat();
        let whole =
            body("v1", "Secret", &[field(1, &meta), field(2, &[field(1, b"k"), field(2, b"v")].concat())].concat());
        assert!(decode(&whole).is_ok());
        for length in 0..whole.len() {
            // What is left out at the end of the envelope leaves the object empty; it is never another one.
            let object = decode(whole.get(..length).unwrap());
            let none = json!({"apiVersion": "v1", "kind": "Secret"});
            assert!(object.is_err() || object == Ok(none), "{length}");
        }
    }

    #[test]
    fn depth_and_number_of_values_are_limited() {
        let schema = |depth: usize| {
            // `not` is field 28 of a schema: a schema again.
            let nested = (0..depth).fold(Vec::new(), |inner, _| {
                let length = long(1, &inner).split_off(1);
                [vec![0xe2, 0x01], length].concat()
            });
            let version = long(4, &long(1, &nested));
            let meta = [field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")].concat();
            let raw = long(2, &long(7, &version));
            decode(&[MAGIC.to_vec(), field(1, &meta), long(2, &raw)].concat()).map(|_| ())
        };
        assert_eq!(schema(30), Ok(()));
        assert_eq!(schema(DEEPEST), Err(ProtobufError::Damaged));
        assert_eq!(schema(20_000), Err(ProtobufError::Damaged));
        let secrets = field(2, b"").repeat(MOST_VALUES);
        let meta = [field(1, b"v1"), field(2, b"ServiceAccount")].concat();
        let many = [MAGIC.to_vec(), field(1, &meta), long(2, &secrets)].concat();
        assert_eq!(decode(&many), Err(ProtobufError::TooMany));
    }
}
