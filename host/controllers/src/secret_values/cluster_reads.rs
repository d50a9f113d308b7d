//! What is read of Secrets in clusters for an object, and what is exported of them (C-195).

use std::sync::{Arc, PoisonError};

use orangery_api::deploy_item::DeployItem;
use orangery_core::{
    masking::{Masker, leaves, secret_texts},
    name::Namespace,
};
use orangery_proposal::ClusterRef;
use orangery_reconcile::{Key, ObjectChange};
use serde_json::Value;

use super::{SecretSource, SecretValues, decoded};

/// Bytes of a value in base64 up to which it is known in base64 as well; of a longer one a last letter may be shown.
const LONGEST_AS_IT_STANDS: usize = 2 << 10;

/// The most places of values of Secrets that are told of the exports of one item; of more, all of them count as such.
const MOST_PLACES: usize = 256;

impl SecretValues {
    /// The same of a Secret that was read in a cluster for an object of the namespace: kind and name (C-195).
    pub(crate) fn learn_read(&self, namespace: &Namespace, reader: &str, on: &ClusterRef, secret: &Value) {
        let entries = secret.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.values());
        let texts = entries.filter_map(Value::as_str).flat_map(|text| {
            let clear = decoded(text);
            // As it stands there to its last letter; what is no text is shown in no other way.
            let as_it_stands = (clear.is_none() || text.len() <= LONGEST_AS_IT_STANDS).then(|| text.to_owned());
            clear.iter().flat_map(|clear| secret_texts(clear)).chain(as_it_stands).collect::<Vec<_>>()
        });
        let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let named = format!("{on:?} {}/{}", text("/metadata/namespace"), text("/metadata/name"));
        self.learn(namespace, SecretSource::Read { reader: reader.to_owned(), secret: named }, texts);
    }

    /// Forgets what was read in clusters for an object: it is read again.
    pub(crate) fn forget_reads(&self, namespace: &Namespace, by: &str) {
        self.forget(namespace, |source| source.is_read_by(by));
    }

    /// Takes in what stands at these places of the exports of an item.
    pub(crate) fn learn_exports(&self, item: &Key, exports: &Value, places: &[String]) {
        let mut texts = Vec::new();
        for value in places.iter().take(MOST_PLACES).filter_map(|place| exports.pointer(place)) {
            leaves(value, &mut texts);
        }
        self.learn(&item.namespace, SecretSource::Exports(item.name.clone()), texts);
    }

    /// The places of what an object exports at which something secret stands, in the namespace or of what was read for the object,
    /// as JSON pointers; the whole, where there are too many.
    pub(crate) fn secret_places(&self, namespace: &Namespace, by: &str, exports: &Value) -> Vec<String> {
        let Some(maskers) = self.maskers(namespace) else { return Vec::new() };
        let (of_data, of_reads) = (maskers.of_data(), self.masker_of_reads(namespace, by));
        let finds = |value: &Value| {
            let text = value.to_string();
            of_data.finds(&text) || of_reads.finds(&text)
        };
        let mut places = Vec::new();
        if finds(exports) {
            add_places(exports, &finds, &mut String::new(), &mut places);
        }
        if places.len() > MOST_PLACES { vec![String::new()] } else { places }
    }

    fn masker_of_reads(&self, namespace: &Namespace, by: &str) -> Masker {
        let texts: Option<Vec<Arc<str>>> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(of) = known.by_namespace.get(namespace) else { return Masker::default() };
            let read = of.by_source.iter().filter(|(source, _)| source.is_read_by(by)).map(|(_, known)| known);
            let is_whole = read.clone().all(|known| known.without_room.is_none());
            is_whole.then(|| read.flat_map(|known| &known.texts).cloned().collect())
        };
        texts.map_or_else(Masker::of_too_many, |texts| Masker::of(texts.iter().map(AsRef::as_ref)))
    }

    /// Forgets what was read for an item that is gone.
    pub(super) fn forget_item(&self, change: &ObjectChange<'_, DeployItem>) {
        let Some(Key { namespace, name }) = change.key().filter(|_| change.after.is_none()) else { return };
        let by = reader(&name);
        self.forget(&namespace, |source| match source {
            SecretSource::Read { reader, .. } => *reader == by,
            SecretSource::Exports(item) => *item == name,
            _ => false,
        });
    }
}

/// What reads Secrets in clusters for an item.
pub(crate) fn reader(item: &str) -> String {
    format!("DeployItem {item}")
}

/// Adds the places of the leaves in which something is found; one more than may be told at most.
fn add_places(value: &Value, finds: &dyn Fn(&Value) -> bool, place: &mut String, places: &mut Vec<String>) {
    let length = place.len();
    let mut within = |step: &str, member: &Value| {
        place.push('/');
        place.push_str(step);
        add_places(member, finds, place, places);
        place.truncate(length);
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| within(&key.replace('~', "~0").replace('/', "~1"), member));
        }
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(at, element)| within(&at.to_string(), element));
        }
        leaf if places.len() <= MOST_PLACES && finds(leaf) => places.push(place.clone()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::import::SecretData;
    use serde_json::json;

    use super::*;
    use crate::secret_values::tests::{bytes, known};

    fn read(name: &str, value: &[u8]) -> Value {
        let data = json!({"k": data_encoding::BASE64.encode(value)});
        json!({"metadata": {"namespace": "x", "name": name}, "data": data})
    }

    #[test]
    fn c_195_what_is_read_of_a_secret_in_a_cluster_is_known_in_clear_and_as_it_stands_there() {
        let (values, namespace) = (SecretValues::default(), Namespace::from_static("a"));
        let learn = |secret: &Value| values.learn_read(&namespace, &reader("i"), &ClusterRef::Target, secret);
        learn(&read("s", b"hunter2-hunter2"));
        learn(&read("t", &[0xff, 0x10, 0x83].repeat(4)));
        let shown = "hunter2-hunter2 aHVudGVyMi1odW50ZXIy /xCD/xCD/xCD/xCD";
        assert_eq!(values.masker(&namespace).mask(shown), "[masked] [masked] [masked]");
        // What is read marks nothing but what its reader exports.
        assert_eq!(values.secret_data(&namespace, &json!({"pw": "hunter2-hunter2"})), None);
        // Read anew it takes the place of what it was, and another Secret does not.
        learn(&read("s", b"another-value"));
        assert_eq!(values.masker(&namespace).mask("hunter2-hunter2 another-value"), "hunter2-hunter2 [masked]");
        values.forget_reads(&namespace, &reader("j"));
        assert_eq!(values.masker(&namespace).mask("another-value"), "[masked]");
        values.forget_reads(&namespace, &reader("i"));
        assert_eq!((bytes(&values), values.known.lock().unwrap().by_namespace.len()), (0, 0));
    }

    #[test]
    fn c_195_the_places_of_secrets_in_exports_are_told_and_read_back() {
        let (values, namespace) = (SecretValues::default(), Namespace::from_static("a"));
        values.learn_read(&namespace, &reader("i"), &ClusterRef::Target, &read("s", b"hunter2-hunter2"));
        let exports =
            json!({"a/b": {"pw": "hunter2-hunter2"}, "l": ["x", "db://hunter2-hunter2@host"], "open": "public-value"});
        let places = values.secret_places(&namespace, &reader("i"), &exports);
        assert_eq!(places, ["/a~1b/pw", "/l/1"]);
        let none = Vec::<String>::new();
        assert_eq!(values.secret_places(&namespace, &reader("i"), &json!({"open": "public-value"})), none);
        assert_eq!(values.secret_places(&namespace, &reader("j"), &exports), none);
        let others = SecretValues::default();
        others.learn_exports(&Key::new(&namespace, "i"), &exports, &places);
        let shown = "hunter2-hunter2 db://hunter2-hunter2@host public-value";
        assert_eq!(others.masker(&namespace).mask(shown), "[masked] [masked] public-value");
        // From then on it is data of Secrets wherever it stands.
        let of = |values: &SecretValues, value: Value| values.secret_data(&namespace, &value);
        assert_eq!(of(&others, json!({"x": "hunter2-hunter2"})), Some(SecretData::Whole));
        assert_eq!(of(&others, json!({"x": "aHVudGVyMi1odW50ZXIy"})), Some(SecretData::Whole));
        values.learn_exports(&Key::new(&namespace, "i"), &exports, &places);
        assert_eq!(of(&values, json!({"x": "a hunter2-hunter2"})), Some(SecretData::Partly));
    }

    #[test]
    fn limits_masking_so_many_places_of_exports_are_told_and_of_more_all_of_them_count() {
        let (values, namespace) = known();
        let exports = |number: usize| json!(vec!["hunter2-hunter2"; number]);
        let places = |number: usize| values.secret_places(&namespace, &reader("i"), &exports(number));
        assert_eq!((places(MOST_PLACES).len(), places(MOST_PLACES + 1)), (MOST_PLACES, vec![String::new()]));
        let item = Key::new("b", "i");
        let exports: Vec<String> = (0..=MOST_PLACES).map(|number| format!("value-{number:08}")).collect();
        let places: Vec<String> = (0..=MOST_PLACES).map(|number| format!("/{number}")).collect();
        values.learn_exports(&item, &json!(exports), &places);
        let is_known = |at: usize| values.masker(&item.namespace).finds(&exports[at]);
        assert_eq!([is_known(MOST_PLACES - 1), is_known(MOST_PLACES)], [true, false]);
    }

    #[test]
    fn limits_masking_a_long_value_in_base64_is_known_in_clear_alone() {
        let known = |length: usize| {
            let (values, namespace) = (SecretValues::default(), Namespace::from_static("a"));
            values.learn_read(&namespace, &reader("i"), &ClusterRef::Target, &read("s", &vec![b'x'; length]));
            values.known.lock().unwrap().by_namespace[&namespace].counts.len()
        };
        let longest = LONGEST_AS_IT_STANDS / 4 * 3;
        assert_eq!([known(longest), known(longest + 1)], [2, 1]);
    }
}
