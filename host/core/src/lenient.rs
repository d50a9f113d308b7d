//! Decoding documents of users as Go decodes them (`docs/wire.md` §4.3, §17): field names match whatever their case,
//! an exact match wins; unknown fields are ignored; null means absent.
//!
//! Errors name the place and the sort of value found, never the value.

mod access;

use std::{cell::RefCell, fmt};

use serde::{
    de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};
use serde_json::Value;

use self::access::{Fields, ListItems, ObjectEntries};

/// Why a document does not have the form wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The place, such as `deployItems[0].name`; empty for the document itself.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.reason) } else { write!(f, "{}: {}", self.path, self.reason) }
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: String::new(), reason: message.to_string() }
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("expected {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("expected {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("`{field}` is missing"))
    }
}

/// Decodes a document.
pub fn decode<T: DeserializeOwned>(document: &Value) -> Result<T, DecodeError> {
    T::deserialize(Lenient { value: document, path: &ValuePath::Root(None) })
}

/// As [`decode`], with the paths of the fields that are ignored because nobody knows them, as far as decoding came.
pub fn decode_noting<T: DeserializeOwned>(document: &Value) -> (Result<T, DecodeError>, Vec<String>) {
    let unknown = RefCell::default();
    let decoded = T::deserialize(Lenient { value: document, path: &ValuePath::Root(Some(&unknown)) });
    (decoded, unknown.into_inner())
}

/// Where a value stands in its document.
enum ValuePath<'p> {
    /// With the list of fields that nobody knows, where it is wanted.
    Root(Option<&'p RefCell<Vec<String>>>),
    Field(&'p ValuePath<'p>, &'p str),
    Index(&'p ValuePath<'p>, usize),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Root(_) => Ok(()),
            ValuePath::Field(ValuePath::Root(_), name) => f.write_str(name),
            ValuePath::Field(parent, name) => write!(f, "{parent}.{name}"),
            ValuePath::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl ValuePath<'_> {
    /// The list of fields that nobody knows, where it is wanted.
    fn unknown(&self) -> Option<&RefCell<Vec<String>>> {
        let mut above = self;
        loop {
            match above {
                ValuePath::Root(unknown) => return *unknown,
                ValuePath::Field(parent, _) | ValuePath::Index(parent, _) => above = parent,
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Lenient<'d, 'p> {
    value: &'d Value,
    path: &'p ValuePath<'p>,
}

impl<'d> Lenient<'d, '_> {
    fn expected(&self, what: &str) -> DecodeError {
        let found = match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        DecodeError { path: self.path.to_string(), reason: format!("expected {what}, found {found}") }
    }

    /// Names the place of an error that has none yet.
    fn place<T>(&self, result: Result<T, DecodeError>) -> Result<T, DecodeError> {
        result.map_err(|mut error| {
            if error.path.is_empty() {
                error.path = self.path.to_string();
            }
            error
        })
    }

    fn number<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Number(number) => self.place(number.deserialize_any(visitor).map_err(narrow)),
            Value::Null => self.place(visitor.visit_u64(0)),
            Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Err(self.expected("a number")),
        }
    }
}

/// Messages of `serde_json` may show the number; ours do not.
fn narrow(_: serde_json::Error) -> DecodeError {
    DecodeError { path: String::new(), reason: "the number does not fit here".to_owned() }
}

macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.number(visitor)
        })*
    };
}

macro_rules! texts {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            match self.value {
                Value::String(text) => self.place(visitor.visit_borrowed_str(text)),
                Value::Null => self.place(visitor.visit_borrowed_str("")),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    Err(self.expected("a text; write it in quotes"))
                }
            }
        })*
    };
}

impl<'d> Deserializer<'d> for Lenient<'d, '_> {
    type Error = DecodeError;

    /// Free JSON: kept as it is, names included.
    fn deserialize_any<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.place(self.value.deserialize_any(visitor).map_err(de::Error::custom))
    }

    fn deserialize_option<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_bool<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Bool(bool) => self.place(visitor.visit_bool(*bool)),
            Value::Null => self.place(visitor.visit_bool(false)),
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.expected("true or false"))
            }
        }
    }

    numbers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64);

    texts!(deserialize_str deserialize_string deserialize_char);

    fn deserialize_seq<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Array(items) => self.place(visitor.visit_seq(ListItems::new(items, self.path))),
            Value::Null => self.place(visitor.visit_seq(ListItems::new(&[], self.path))),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Err(self.expected("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Object(map) => self.place(visitor.visit_map(ObjectEntries::new(map, self.path))),
            Value::Null => self.place(visitor.visit_map(ObjectEntries::empty(self.path))),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(self.expected("an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Object(map) => self.place(visitor.visit_map(Fields::new(map, fields, self.path))),
            Value::Null => self.place(visitor.visit_map(ObjectEntries::empty(self.path))),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(self.expected("an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'d>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::String(text) => self.place(visitor.visit_enum(text.as_str().into_deserializer())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.expected("a word"))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'d>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { <V: Visitor<'d>> bytes byte_buf unit unit_struct tuple tuple_struct identifier i128 u128 }
}

#[cfg(test)]
mod tests;
