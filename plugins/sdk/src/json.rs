//! The JSON form of contract types, for `serde`: documents that the contract carries as text stand there as themselves.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::Value;

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The document of a value that is left out.
pub(crate) fn null() -> String {
    "null".to_owned()
}

fn parsed<E: ser::Error>(text: &str) -> Result<Value, E> {
    serde_json::from_str(text).map_err(|error| E::custom(format!("a document of the contract is not JSON: {error}")))
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Value::deserialize(deserializer)?.to_string())
}

/// A document.
pub(crate) mod text {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        parsed::<S::Error>(text)?.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        read(deserializer)
    }
}

/// A document that may be absent.
pub(crate) mod optional_text {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
        match text {
            Some(text) => parsed::<S::Error>(text)?.serialize(serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
        Ok(Option::<Value>::deserialize(deserializer)?.map(|value| value.to_string()))
    }
}

/// Many documents.
pub(crate) mod texts {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(texts: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        let values = texts.iter().map(|text| parsed(text)).collect::<Result<Vec<Value>, S::Error>>()?;
        values.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        Ok(Vec::<Value>::deserialize(deserializer)?.iter().map(Value::to_string).collect())
    }
}

/// The two values of `again-in` by name.
pub(crate) mod again_in {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct AgainIn {
        after: u64,
        checkpoint: Vec<u8>,
    }

    pub(crate) fn serialize<S: Serializer>(pair: &(u64, Vec<u8>), serializer: S) -> Result<S::Ok, S::Error> {
        let (after, checkpoint) = pair;
        AgainIn { after: *after, checkpoint: checkpoint.clone() }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(u64, Vec<u8>), D::Error> {
        let AgainIn { after, checkpoint } = AgainIn::deserialize(deserializer)?;
        Ok((after, checkpoint))
    }
}

/// A map of texts, sorted by its keys.
pub(crate) mod entries {
    use std::collections::BTreeMap;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(entries: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(entries.iter().map(|(name, value)| (name, value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}
