//! How much of what an installation writes is data of Secrets, as its imports tell (C-81).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Imported, SecretData};

/// How much of a value is data of Secrets that an installation imports: as much as of the import that it is; else some of it,
/// where a text or a number in it is one of an import that is a copy of a Secret, however short.
pub fn secret_data(imported: &BTreeMap<String, Imported>, value: &Value) -> Option<SecretData> {
    let data = imported.values().filter_map(|import| match import {
        Imported::Data(data) => data.secret.map(|secret| (secret, &data.value)),
        Imported::Target(_) | Imported::TargetList(_) | Imported::TargetMap(_) => None,
    });
    let (mut of_copies, mut same) = (BTreeSet::new(), None);
    for (secret, import) in data {
        if import == value {
            same = same.max(Some(secret));
        }
        if secret == SecretData::Whole {
            scalars(import, &mut of_copies);
        }
    }
    let mut own = BTreeSet::new();
    scalars(value, &mut own);
    same.or_else(|| (!own.is_disjoint(&of_copies)).then_some(SecretData::Partly))
}

/// The texts and numbers in a value: what YAML reads as a number is the same as its text.
fn scalars(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => drop(all.insert(text.trim().to_owned())),
        Value::Number(number) => drop(all.insert(number.to_string())),
        Value::Array(elements) => elements.iter().for_each(|element| scalars(element, all)),
        Value::Object(members) => members.values().for_each(|member| scalars(member, all)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::import::DataValue;

    #[test]
    fn c_81_short_values_of_imported_secrets_are_told_by_where_they_come_from() {
        let data = |value, secret| Imported::Data(DataValue { value, secret, ..DataValue::default() });
        let imported = BTreeMap::from([
            ("pin".to_owned(), data(json!(1234), Some(SecretData::Whole))),
            ("login".to_owned(), data(json!({"user": "a", "on": true, "none": ""}), Some(SecretData::Whole))),
            ("mixed".to_owned(), data(json!({"host": "h", "word": "w"}), Some(SecretData::Partly))),
            ("open".to_owned(), data(json!("o"), None)),
        ]);
        let of = |value: Value| secret_data(&imported, &value);
        for copy in [json!(1234), json!({"user": "a", "on": true, "none": ""})] {
            assert_eq!(of(copy.clone()), Some(SecretData::Whole), "{copy}");
        }
        for part in [json!({"host": "h", "word": "w"}), json!(["1234"]), json!({"as": {"name": " a "}})] {
            assert_eq!(of(part.clone()), Some(SecretData::Partly), "{part}");
        }
        for other in [json!("o"), json!(["h"]), json!(true), json!(""), json!(null), json!("12345")] {
            assert_eq!(of(other.clone()), None, "{other}");
        }
        assert_eq!(secret_data(&BTreeMap::new(), &json!("a")), None);
    }
}
