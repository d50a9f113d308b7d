//! Content of container items in Secrets, which is not looked for in messages.

use serde_json::Value;

/// The label of what container deployers make for an item.
const OF_CONTAINER_ITEM: &str = "container.deployer.landscaper.gardener.cloud/name";

/// The most bytes, in base64, of what a program has exported that are looked for in messages (CON-31).
const MOST_EXPORTS_SOUGHT: usize = 32 << 10;

/// Whether a Secret is content of a container item, which no message hides: its configuration, which stands in the item as well, or
/// many exports, which a program hands out and which would take the room of what is secret (CON-31).
pub(crate) fn is_content_of_program(secret: &Value) -> bool {
    let of_item = secret.pointer("/metadata/labels").and_then(|labels| labels.get(OF_CONTAINER_ITEM));
    let Some(data) = secret.get("data").and_then(Value::as_object).filter(|data| of_item.is_some() && !data.is_empty())
    else {
        return false;
    };
    let has_but = |keys: [&str; 2]| data.keys().all(|key| keys.contains(&key.as_str()));
    let bytes: usize = data.values().filter_map(Value::as_str).map(str::len).sum();
    has_but(["configuration.json", "part"]) || has_but(["config", "result"]) && bytes > MOST_EXPORTS_SOUGHT
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn con_31_limits_masking_many_exports_of_a_program_and_its_configuration_are_not_looked_for() {
        let secret = |label: &str, entries: &[(&str, usize)]| {
            let data = entries.iter().map(|(key, bytes)| ((*key).to_owned(), json!("x".repeat(*bytes))));
            json!({"metadata": {"labels": {label: "i"}}, "data": Value::Object(data.collect())})
        };
        let of = |entries: &[(&str, usize)]| is_content_of_program(&secret(OF_CONTAINER_ITEM, entries));
        let most = MOST_EXPORTS_SOUGHT;
        assert_eq!([of(&[("config", most)]), of(&[("config", most + 1)])], [false, true]);
        assert_eq!([of(&[("config", most), ("result", 1)]), of(&[("result", 1)])], [true, false]);
        assert_eq!([of(&[("part", 1)]), of(&[("configuration.json", 1)])], [true, true]);
        // Nothing else is passed over, however it is labelled: not a target, nor credentials for images.
        for key in ["target.json", ".dockerconfigjson", "token"] {
            assert!(!of(&[(key, most + 1)]) && !of(&[("config", most + 1), (key, 1)]), "{key}");
        }
        assert!(!is_content_of_program(&secret("other", &[("config", most + 1)])));
        assert!(!of(&[]) && !is_content_of_program(&json!({"metadata": {}})));
    }
}
