//! Bodies in JSON and YAML, read with an eye on fields that are there twice: the last one counts, and the author is told.

use std::{cell::RefCell, collections::BTreeSet, fmt};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How many doubled fields are told.
const MOST_TOLD: usize = 16;

/// A body, with the paths of the fields that are there twice.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CheckedBody {
    pub(super) value: Value,
    pub(super) doubled: Vec<String>,
}

/// Reads JSON.
pub(super) fn json(bytes: &[u8]) -> Result<CheckedBody, serde_json::Error> {
    let doubled = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Place { doubled: &doubled, way: &Way::Root }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(CheckedBody { value, doubled: doubled.into_inner() })
}

/// The first key of a YAML text that is there twice in one map, as the real server says it; none if there is none.
pub(super) fn doubled_key(bytes: &[u8]) -> Option<String> {
    let doubled = RefCell::new(Vec::new());
    let reader = yaml_serde::Deserializer::from_slice(bytes);
    Keys { doubled: &doubled }.deserialize(reader).err().and_then(|error| {
        let key = doubled.into_inner().pop()?;
        let line = error.location()?.line();
        Some(format!("yaml: unmarshal errors:\n  line {line}: key {} already set in map", Value::from(key)))
    })
}

/// The way from the body to a value.
enum Way<'a> {
    Root,
    Field(&'a Way<'a>, &'a str),
    Entry(&'a Way<'a>, usize),
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Entry(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// A value that is read.
struct Place<'a> {
    doubled: &'a RefCell<Vec<String>>,
    way: &'a Way<'a>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let way = Way::Entry(self.way, list.len());
            match entries.next_element_seed(Place { doubled: self.doubled, way: &way })? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let way = Way::Field(self.way, &name);
            let value = entries.next_value_seed(Place { doubled: self.doubled, way: &way })?;
            if fields.contains_key(&name) && self.doubled.borrow().len() < MOST_TOLD {
                self.doubled.borrow_mut().push(way.to_string());
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// A value of which the keys alone are looked at. A key that is there twice is an error, which knows its line.
struct Keys<'a> {
    doubled: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_element_seed(Keys { doubled: self.doubled })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = entries.next_key_seed(Key { doubled: self.doubled, seen: &seen })? {
            seen.insert(name);
            entries.next_value_seed(Keys { doubled: self.doubled })?;
        }
        Ok(())
    }
}

/// A key that has to be a new one.
struct Key<'a> {
    doubled: &'a RefCell<Vec<String>>,
    seen: &'a BTreeSet<String>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<String, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<String, E> {
        if self.seen.contains(key) {
            self.doubled.borrow_mut().push(key.to_owned());
            return Err(E::custom("the key is there already"));
        }
        Ok(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_are_there_twice_are_told_and_the_last_one_counts() {
        let body = json(br#"{"a": 1, "b": [{"c": 1, "c": 2.5, "d": null}], "a": "x"}"#).unwrap();
        let value = json!({"a": "x", "b": [{"c": 2.5, "d": null}]});
        assert_eq!(body, CheckedBody { value, doubled: vec!["b[0].c".to_owned(), "a".to_owned()] });
        assert!(json(b"{} {}").is_err() && json(b"{").is_err());
    }

    #[test]
    fn a_yaml_key_that_is_there_twice_is_told_with_its_line() {
        let told = doubled_key(b"\na: 1\nb:\n  foo: x\n  foo: y\n");
        let line = "yaml: unmarshal errors:\n  line 5: key \"foo\" already set in map";
        assert_eq!(told.as_deref(), Some(line));
        assert_eq!(doubled_key(b"a: {b: 1}\nc: {b: 1}\nd: [{b: 1}, {b: true, e: null, f: 1.5}]\n"), None);
    }
}
