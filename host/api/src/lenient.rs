//! Reading fields that others may have written: what is not of their form reads as absent, so that the object around it can
//! still be read.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// A list without the entries that cannot be read.
pub(crate) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let entries = match Value::deserialize(deserializer)? {
        Value::Array(entries) => entries,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Vec::new(),
    };
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// A number of things; zero where there is none.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or_default())
}
