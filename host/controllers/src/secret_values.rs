//! What is secret in each namespace, as far as this process has read it, so that nothing of it is shown (C-41).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::ByteString;
use orangery_api::{data_object::DataObject, execution::Records, label, marks::Marks as _};
use orangery_core::{
    masking::{Masker, SHORTEST_MASKED, leaves, secret_texts},
    name::Namespace,
    yaml,
};
use orangery_reconcile::{Key, Store};
use serde_json::Value;

/// The members of a kubeconfig that are credentials.
const CREDENTIALS: [&str; 3] = ["token", "password", "client-key-data"];

/// The target under which the host logs what components say, as it stands in a line.
const GUEST_LOG: &str = "orangery::guest";

/// The secret values of all namespaces. Clones know the same.
#[derive(Clone, Debug, Default)]
pub struct SecretValues {
    /// Protects what is known; held for one look-up or one change, and while a masker is made.
    known: Arc<Mutex<BTreeMap<Namespace, KnownValues>>>,
}

/// Those of one namespace.
#[derive(Debug, Default)]
struct KnownValues {
    /// By what they were read from; what is read again takes the place of what it was.
    by_source: BTreeMap<String, BTreeSet<String>>,
    /// Of all of them, once it is asked for.
    masker: Option<Arc<Masker>>,
    /// For lines that are about no namespace, once one is written (C-52).
    masker_of_others: Option<Arc<Masker>>,
}

/// How much of a DataObject is secret: the values of its label [`label::SECRET_DATA`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretData {
    /// Every text in it is one of a Secret: it is a copy.
    Whole,
    /// Some of it.
    Partly,
}

impl SecretData {
    /// The value of the label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            SecretData::Whole => label::SECRET_DATA_WHOLE,
            SecretData::Partly => label::SECRET_DATA_PARTLY,
        }
    }
}

impl SecretValues {
    /// Takes in the texts of something that was read. Short ones do not count.
    pub fn learn(&self, namespace: &Namespace, source: String, texts: impl IntoIterator<Item = String>) {
        let texts: BTreeSet<String> =
            texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| text.len() >= SHORTEST_MASKED).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of = known.entry(namespace.clone()).or_default();
        let before = of.by_source.get(&source);
        if before.map_or(texts.is_empty(), |before| *before == texts) {
            return;
        }
        of.by_source.insert(source, texts);
        (of.masker, of.masker_of_others) = (None, None);
    }

    /// The same of the entries of a Secret.
    pub(crate) fn learn_secret<'a>(&self, secret: &Key, entries: impl IntoIterator<Item = &'a Vec<u8>>) {
        let texts = entries.into_iter().flat_map(|bytes| secret_texts(&String::from_utf8_lossy(bytes)));
        self.learn(&secret.namespace, format!("Secret {}", secret.name), texts);
    }

    /// The same of the credentials in a kubeconfig.
    pub(crate) fn learn_kubeconfig(&self, namespace: &Namespace, source: String, kubeconfig: &str) {
        let mut texts = Vec::new();
        if let Ok(kubeconfig) = yaml::decode(kubeconfig) {
            credentials(&kubeconfig, &mut texts);
        }
        self.learn(namespace, source, texts);
    }

    /// What is read of copies that the host has made of Secrets, now and whenever they change.
    pub(crate) fn follow(&self, data_objects: &Store<DataObject>) {
        let values = self.clone();
        data_objects.subscribe(move |change| {
            let Some(key) = change.key() else { return };
            let copy = change.after.filter(|object| object.label(label::SECRET_DATA) == Some(label::SECRET_DATA_WHOLE));
            let mut texts = Vec::new();
            if let Some(copy) = copy {
                leaves(&copy.spec.data, &mut texts);
            }
            let Key { namespace, name } = key;
            values.learn(&namespace, format!("DataObject {name}"), texts);
        });
    }

    /// What masks the values of a namespace.
    pub fn masker(&self, namespace: &Namespace) -> Arc<Masker> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_mut(namespace).map(KnownValues::masker).unwrap_or_default()
    }

    /// How much of a value is secret in a namespace.
    pub(crate) fn secret_data(&self, namespace: &Namespace, value: &Value) -> Option<SecretData> {
        if !self.masker(namespace).finds(&value.to_string()) {
            return None;
        }
        let mut texts = Vec::new();
        leaves(value, &mut texts);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of = known.get(namespace)?;
        let is_known = |text: &str| of.by_source.values().any(|texts| texts.contains(text.trim()));
        let is_copy = texts.iter().filter(|text| text.trim().len() >= SHORTEST_MASKED).all(|text| is_known(text));
        Some(if is_copy { SecretData::Whole } else { SecretData::Partly })
    }

    /// A line of a log without the secret values of the namespaces that it names; one that names none is without those of
    /// all. What a namespace holds as secret hides nothing in the lines about others, and lines of the operator that name
    /// none are never withheld whole: more values than can be looked for are a matter of their namespace (C-52). Lines of
    /// components ([`GUEST_LOG`]) are, as anything may stand in them.
    pub fn mask_line(&self, line: &str) -> String {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = |namespace: &Namespace| is_named(line, namespace);
        let is_about_some = known.keys().any(names);
        let is_of_a_component = line.contains(GUEST_LOG);
        let mut masked = line.to_owned();
        for (namespace, of) in known.iter_mut() {
            if names(namespace) || (!is_about_some && is_of_a_component) {
                masked = of.masker().mask(&masked).into_owned();
            } else if !is_about_some {
                masked = of.masker_of_others().mask(&masked).into_owned();
            }
        }
        masked
    }
}

/// Whether a line names an object of a namespace: `NAMESPACE/NAME`.
fn is_named(line: &str, namespace: &Namespace) -> bool {
    let in_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let mut found = line.match_indices(namespace.as_str());
    found.any(|(at, name)| {
        let (before, after) = (line.get(..at).unwrap_or_default(), line.get(at + name.len()..).unwrap_or_default());
        after.starts_with('/') && !before.ends_with(in_a_name)
    })
}

impl KnownValues {
    fn masker(&mut self) -> Arc<Masker> {
        let values = self.by_source.values().flatten().map(String::as_str);
        Arc::clone(self.masker.get_or_insert_with(|| Arc::new(Masker::of(values))))
    }

    /// The same masker where all of its values can be looked for.
    fn masker_of_others(&mut self) -> Arc<Masker> {
        let masker = self.masker();
        let values = self.by_source.values().flatten().map(String::as_str);
        let others = || if masker.withholds() { Arc::new(Masker::of_as_many_as_can_be(values)) } else { masker };
        Arc::clone(self.masker_of_others.get_or_insert_with(others))
    }
}

/// Answers of gate expressions without the values that a masker finds.
pub(crate) fn masked(records: &Records, masker: &Masker) -> Records {
    let mut records = records.clone();
    for record in records.values_mut().flat_map(BTreeMap::values_mut) {
        record.answered.message = masker.mask(&record.answered.message).into_owned();
        if let Some(details) = &mut record.answered.details {
            masker.mask_value(details);
        }
    }
    records
}

/// The credentials in a kubeconfig, wherever they stand; keys also as they are inside of their base64.
fn credentials(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if CREDENTIALS.contains(&key.as_str()) => {
                        let decoded = data_encoding::BASE64.decode(text.as_bytes()).ok().map(ByteString);
                        let decoded = decoded.and_then(|ByteString(bytes)| String::from_utf8(bytes).ok());
                        texts.extend([text.clone()].into_iter().chain(decoded));
                    }
                    other => credentials(other, texts),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| credentials(element, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::masking::MOST_MASKED_BYTES;
    use serde_json::json;

    use super::*;

    fn known() -> (SecretValues, Namespace) {
        let (values, namespace) = (SecretValues::default(), Namespace::from_static("a"));
        values.learn_secret(&Key::new(&namespace, "s"), [&b"hunter2-hunter2".to_vec()]);
        (values, namespace)
    }

    #[test]
    fn c_41_what_is_read_again_takes_the_place_of_what_it_was() {
        let (values, namespace) = known();
        assert_eq!(values.masker(&namespace).mask("hunter2-hunter2"), "[masked]");
        values.learn_secret(&Key::new(&namespace, "s"), [&b"another-value".to_vec()]);
        assert_eq!(values.masker(&namespace).mask("hunter2-hunter2, another-value"), "hunter2-hunter2, [masked]");
        assert_eq!(values.masker(&"b".into()).mask("another-value"), "another-value");
    }

    #[test]
    fn c_41_of_a_kubeconfig_the_credentials_are_secret_and_nothing_else() {
        let (values, namespace) = (SecretValues::default(), Namespace::from_static("a"));
        let kubeconfig = "server: https://example.org\nusers: [{name: someone-long, user: {token: abcdefghijk, \
                          client-key-data: c2VjcmV0LWtleS1vZi1taW5l}}]\n";
        values.learn_kubeconfig(&namespace, "Target t".to_owned(), kubeconfig);
        let masked = values
            .masker(&namespace)
            .mask("https://example.org someone-long abcdefghijk secret-key-of-mine")
            .into_owned();
        assert_eq!(masked, "https://example.org someone-long [masked] [masked]");
    }

    #[test]
    fn c_41_a_copy_of_a_secret_is_told_from_what_has_a_value_in_it() {
        let (values, namespace) = known();
        let of = |value: Value| values.secret_data(&namespace, &value);
        assert_eq!(of(json!({"password": "hunter2-hunter2", "short": "x"})), Some(SecretData::Whole));
        assert_eq!(of(json!({"url": "db://hunter2-hunter2@host"})), Some(SecretData::Partly));
        assert_eq!(of(json!({"url": "db://host"})), None);
    }

    #[test]
    fn c_41_a_line_names_a_namespace_by_an_object_in_it() {
        let names = |line: &str| is_named(line, &"team-a".into());
        for line in ["team-a/x", "object=team-a/x", "(team-a/x) and more"] {
            assert!(names(line), "{line}");
        }
        for line in ["team-a", "my-team-a/x", "steam-a/x", "team-ab/x", "a.team-a/x", ""] {
            assert!(!names(line), "{line}");
        }
    }

    #[test]
    fn c_41_a_line_is_masked_by_the_namespaces_that_it_names() {
        let (values, namespace) = known();
        values.learn(&"b".into(), "Secret s".to_owned(), ["reconcile".to_owned()]);
        let lines =
            ["reconcile a/x: hunter2-hunter2", "reconcile b/x: hunter2-hunter2", "reconcile data/x: hunter2-hunter2"];
        let expected = ["reconcile a/x: [masked]", "[masked] b/x: hunter2-hunter2", "[masked] data/x: [masked]"];
        assert_eq!((lines.map(|line| values.mask_line(line)), namespace.as_str()), (expected.map(str::to_owned), "a"));
    }

    #[test]
    fn c_52_a_namespace_with_too_many_values_blinds_no_line_of_the_operator() {
        let (values, _) = known();
        let most = "z".repeat(MOST_MASKED_BYTES);
        values.learn(&"b".into(), "Secret s".to_owned(), [most, "a-short-value".to_owned()]);
        let shown = ["the Lease is held", "reconcile a/x: done", "a-short-value, hunter2-hunter2"];
        let expected = ["the Lease is held", "reconcile a/x: done", "[masked], [masked]"];
        assert_eq!(shown.map(|line| values.mask_line(line)), expected.map(str::to_owned));
        for line in ["reconcile b/x: done", "INFO orangery::guest: it says zz"] {
            assert!(values.mask_line(line).starts_with("[masked: there are more values"), "{line}");
        }
        values.learn(&"b".into(), "Secret s".to_owned(), ["another-value".to_owned()]);
        assert_eq!(values.mask_line("a-short-value, another-value"), "a-short-value, [masked]");
    }
}
