//! Walking lists and objects.

use std::slice;

use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::{DecodeError, Lenient, ValuePath};

/// The items of a list.
pub(super) struct ListItems<'d, 'p> {
    items: std::iter::Enumerate<slice::Iter<'d, Value>>,
    path: &'p ValuePath<'p>,
}

impl<'d, 'p> ListItems<'d, 'p> {
    pub(super) fn new(items: &'d [Value], path: &'p ValuePath<'p>) -> Self {
        Self { items: items.iter().enumerate(), path }
    }
}

impl<'d> SeqAccess<'d> for ListItems<'d, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'d>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        let Some((index, value)) = self.items.next() else { return Ok(None) };
        let path = ValuePath::Index(self.path, index);
        let item = Lenient { value, path: &path };
        item.place(seed.deserialize(item)).map(Some)
    }
}

/// The entries of an object whose names are free.
pub(super) struct ObjectEntries<'d, 'p> {
    entries: Box<dyn Iterator<Item = (&'d str, &'d Value)> + 'd>,
    next: Option<(&'d str, &'d Value)>,
    path: &'p ValuePath<'p>,
}

impl<'d, 'p> ObjectEntries<'d, 'p> {
    pub(super) fn new(map: &'d Map<String, Value>, path: &'p ValuePath<'p>) -> Self {
        Self { entries: Box::new(map.iter().map(|(name, value)| (name.as_str(), value))), next: None, path }
    }

    pub(super) fn empty(path: &'p ValuePath<'p>) -> Self {
        Self { entries: Box::new(std::iter::empty()), next: None, path }
    }
}

impl<'d> MapAccess<'d> for ObjectEntries<'d, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'d>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.next = self.entries.next();
        self.next.map(|(name, _)| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'d>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let (name, value) = self.next.take().unwrap_or(("", &Value::Null));
        let path = ValuePath::Field(self.path, name);
        let entry = Lenient { value, path: &path };
        entry.place(seed.deserialize(entry))
    }
}

/// The fields of an object that are known and not null, under their known names.
pub(super) struct Fields<'d, 'p> {
    fields: Vec<(&'static str, &'d Value)>,
    next: Option<(&'static str, &'d Value)>,
    path: &'p ValuePath<'p>,
}

impl<'d, 'p> Fields<'d, 'p> {
    pub(super) fn new(map: &'d Map<String, Value>, known: &'static [&'static str], path: &'p ValuePath<'p>) -> Self {
        let found = |field: &&'static str| {
            let exact = map.get(*field);
            // Go takes the last of several spellings; the order of an object is not kept here, so the first by name.
            let value = exact.or_else(|| {
                map.iter()
                    .filter(|(name, _)| name.to_lowercase() == field.to_lowercase())
                    .map(|(_, value)| value)
                    .next()
            });
            value.filter(|value| !value.is_null()).map(|value| (*field, value))
        };
        if let Some(unknown) = path.unknown() {
            let is_known = |name: &str| known.iter().any(|field| field.to_lowercase() == name.to_lowercase());
            let names = map.keys().filter(|name| !is_known(name));
            unknown.borrow_mut().extend(names.map(|name| ValuePath::Field(path, name).to_string()));
        }
        // Taken from the end.
        Self { fields: known.iter().rev().filter_map(found).collect(), next: None, path }
    }
}

impl<'d> MapAccess<'d> for Fields<'d, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'d>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.next = self.fields.pop();
        self.next.map(|(name, _)| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'d>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let (name, value) = self.next.take().unwrap_or(("", &Value::Null));
        let path = ValuePath::Field(self.path, name);
        let field = Lenient { value, path: &path };
        field.place(seed.deserialize(field))
    }
}
