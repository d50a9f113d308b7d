//! No value of a Secret leaves the operator: at the end of a case everything that others can read is searched for the values of
//! its Secrets, and for the credentials of its Target (C-82).

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use data_encoding::{BASE64, BASE64_NOPAD};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use orangery_core::yaml;
use serde_json::Value;

use crate::tree::API;

/// Values below this many bytes are no canaries: they may stand anywhere for other reasons.
const SHORTEST: usize = 12;

/// What of a document with several values is secret.
const CREDENTIALS: [&str; 5] = ["token", "password", "client-key-data", "auth", "identitytoken"];

/// Commands whose answer has what somebody asks to be rendered.
const RENDERING: [&str; 2] = ["render", "blueprint"];

/// Of each kind, which part of its objects the operator alone fills: of what templates made of imports, the rest is.
const SEARCHED: [(&str, &str, Option<&str>); 9] = [
    (API, "Installation", Some("/status")),
    (API, "Execution", Some("/status")),
    (API, "DeployItem", Some("/status")),
    (API, "Target", Some("/status")),
    (API, "Context", None),
    (API, "DataObject", None),
    ("orangery.dev/v1alpha1", "NamespacePolicy", Some("/status")),
    ("events.k8s.io/v1", "Event", None),
    ("coordination.k8s.io/v1", "Lease", None),
];

/// The values that nothing may show. Clones know the same.
#[derive(Clone, Debug, Default)]
pub struct Canaries {
    values: Arc<Mutex<BTreeSet<String>>>,
}

impl Canaries {
    /// Takes in what is secret of an object that a case applies: the values of a Secret.
    pub fn learn(&self, object: &Value) {
        if object.get("kind").is_none_or(|kind| kind != "Secret") {
            return;
        }
        let entries = |field: &str| object.get(field).and_then(Value::as_object).into_iter().flatten();
        let plain = entries("stringData").filter_map(|(_, text)| Some(text.as_str()?.to_owned()));
        let decoded = entries("data").filter_map(|(_, text)| BASE64.decode(text.as_str()?.as_bytes()).ok());
        let texts = plain.chain(decoded.filter_map(|bytes| String::from_utf8(bytes).ok()));
        texts.for_each(|text| self.learn_text(&text));
    }

    /// The same of one text: all of it, or the credentials in it where it is a document.
    pub fn learn_text(&self, text: &str) {
        let mut found = Vec::new();
        let is_document = text.contains('\n') || text.trim_start().starts_with('{');
        if !is_document {
            found.push(text.trim().to_owned());
        } else if !text.contains("-----BEGIN") {
            let documents = yaml::documents(text).unwrap_or_default();
            documents.iter().for_each(|document| credentials(&document.value, &mut found));
        } else if text.contains("PRIVATE KEY") {
            found.extend(text.lines().map(str::to_owned).filter(|line| !line.contains("-----")));
        }
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.extend(found.into_iter().filter(|value| value.len() >= SHORTEST));
    }

    /// Which value a text shows, with what stands around it.
    pub fn find(&self, text: &str) -> Option<String> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let forms = values.iter().flat_map(|value| forms(value));
        let at = forms.filter_map(|form| text.find(&form)).min()?;
        let begin =
            text.char_indices().map(|(index, _)| index).take_while(|index| *index <= at.saturating_sub(300)).last();
        Some(text.get(begin.unwrap_or_default()..)?.chars().take(600).collect())
    }

    /// Fails where one of the texts shows a value.
    ///
    /// # Panics
    /// One does.
    #[track_caller]
    pub fn check(&self, texts: &[ShownText]) {
        for ShownText { what, text } in texts {
            assert_eq!(self.find(text), None, "{what} shows a value of a Secret");
        }
    }
}

/// Something that others can read.
#[derive(Clone, Debug)]
pub struct ShownText {
    /// What it is of.
    pub what: String,
    /// All of it.
    pub text: String,
}

impl ShownText {
    /// What a command has answered; `None` where it is to render something.
    pub(crate) fn of_command(arguments: &[&str], text: String) -> Option<Self> {
        let command = arguments.first().filter(|command| !RENDERING.contains(command))?;
        Some(Self { what: format!("the command {command}"), text })
    }
}

/// What the operator has written into objects of all namespaces, as far as it can be read. DataObjects that bear the mark of
/// data of Secrets are left out.
pub async fn published(client: &Client) -> kube::Result<Vec<ShownText>> {
    let mut texts = Vec::new();
    for (api_version, kind, part) in SEARCHED {
        let Some((group, version)) = api_version.split_once('/') else { continue };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list(&Default::default()).await?.items {
            let object = serde_json::to_value(object).expect("an object is JSON");
            let is_marked = object.pointer("/metadata/labels/orangery.dev~1secret-data").is_some();
            let text = match part {
                _ if is_marked => continue,
                Some(part) => object.pointer(part).map(Value::to_string).unwrap_or_default(),
                None => object.to_string(),
            };
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            texts.push(ShownText { what: format!("{kind} {name}"), text });
        }
    }
    Ok(texts)
}

fn credentials(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if CREDENTIALS.contains(&key.as_str()) => found.push(text.clone()),
                    other => credentials(other, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| credentials(element, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A value as it may be found: as it is, escaped as in JSON, percent-encoded, and in base64 at each of the three places.
pub fn forms(value: &str) -> Vec<String> {
    let percent: String = value.bytes().fold(String::new(), |text, byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text + &char::from(byte).to_string(),
        _ => text + &format!("%{byte:02X}"),
    });
    let json = Value::from(value).to_string();
    let json = json.trim_matches('"').to_owned();
    let plus = percent.replace("%20", "+");
    // Letters that belong to the value alone.
    let encoded = [("", 0), ("a", 2), ("ab", 3)].map(|(before, begin)| {
        let encoded = BASE64_NOPAD.encode(format!("{before}{value}").as_bytes());
        let end = encoded.len() - usize::from(!(before.len() + value.len()).is_multiple_of(3));
        encoded.get(begin..end).unwrap_or_default().to_owned()
    });
    [value.to_owned(), json, percent, plus].into_iter().chain(encoded).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canaries(object: Value) -> Canaries {
        let canaries = Canaries::default();
        canaries.learn(&object);
        canaries
    }

    #[test]
    fn c_82_a_value_is_found_in_each_of_its_forms() {
        let value = "Canary \"9f\"+5b of mine";
        let canaries = canaries(json!({"kind": "Secret", "data": {"a": BASE64.encode(value.as_bytes())}}));
        for form in forms(value) {
            assert!(canaries.find(&format!("it says {form}.")).is_some(), "{form}");
        }
        for before in ["", "a", "ab", "abc", "abcd"] {
            let encoded = BASE64.encode(format!("{before}{value}{before}").as_bytes());
            assert!(canaries.find(&encoded).is_some(), "{encoded}");
        }
        assert_eq!(canaries.find("Canary of mine"), None);
        assert_eq!(canaries.find(&BASE64.encode(b"Canary of mine")), None);
    }

    #[test]
    fn c_82_of_a_document_the_credentials_are_secret_and_short_values_are_not() {
        let kubeconfig =
            "clusters: [{cluster: {server: 'https://example.org:6443'}}]\nusers: [{user: {token: abcdefghijklm}}]\n";
        let canaries = canaries(json!({"kind": "Secret", "stringData": {"k": kubeconfig, "short": "elevenchars"}}));
        assert!(canaries.find("token=abcdefghijklm").is_some());
        assert_eq!(canaries.find("https://example.org:6443 elevenchars"), None);
        let other = Canaries::default();
        other.learn(&json!({"kind": "ConfigMap", "data": {"k": "a-long-enough-value"}}));
        assert_eq!(other.find("a-long-enough-value"), None);
    }
}
