//! Digests of values: two have one in common where they are the same, whatever their notation.

use std::{collections::HashMap, marker::PhantomData, ptr};

use orangery_core::digest::sha256_bytes;
use serde_json::Value;

use crate::health::canonical;

pub(super) type ValueDigest = [u8; 32];

/// The digests of lists and objects that were looked at. Each is computed once, also where one is looked at as a part of
/// many (C-295).
#[derive(Default)]
pub(super) struct ValueDigests<'a> {
    known: HashMap<*const Value, ValueDigest>,
    of: PhantomData<&'a Value>,
}

impl<'a> ValueDigests<'a> {
    pub(super) fn of(&mut self, value: &'a Value) -> ValueDigest {
        let at = ptr::from_ref(value);
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let text = match value {
            Value::Array(items) => items.iter().fold(vec![b'['], |mut text, item| {
                text.extend(self.of(item));
                text
            }),
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                fields.into_iter().fold(vec![b'{'], |mut text, (name, value)| {
                    text.extend(sha256_bytes(name.as_bytes()));
                    text.extend(self.of(value));
                    text
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return sha256_bytes(canonical(value).as_bytes());
            }
        };
        let digest = sha256_bytes(&text);
        self.known.insert(at, digest);
        digest
    }
}

/// The digest of one value.
pub(super) fn digest_of(value: &Value) -> ValueDigest {
    ValueDigests::default().of(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::health::same;

    #[test]
    fn c_295_values_have_one_digest_where_they_are_the_same() {
        let values = [
            json!(null),
            json!(1),
            json!(1.0),
            json!("1"),
            json!([]),
            json!({}),
            json!([1, 2]),
            json!([1.0, 2]),
            json!([[1], 2]),
            json!([[1, 2]]),
            json!({"a": 1, "b": 2}),
            json!({"b": 2.0, "a": 1}),
            json!({"a": {"b": 2}}),
            json!("[1,2,]"),
        ];
        for (one, other) in values.iter().flat_map(|one| values.iter().map(move |other| (one, other))) {
            assert_eq!(digest_of(one) == digest_of(other), same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn c_295_what_is_part_of_many_is_gone_through_once() {
        let deep = (0..50).fold(json!("x"), |inner, _| json!([inner]));
        let (mut digests, mut level, mut known) = (ValueDigests::default(), &deep, Vec::new());
        while let Some(inner) = level.get(0) {
            digests.of(level);
            known.push(digests.known.len());
            level = inner;
        }
        assert_eq!(known, [50; 50], "the first has met all others");
    }
}
