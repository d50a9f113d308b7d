//! What is secret in each namespace, as far as this process has read it, so that nothing of it is shown (C-41).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use k8s_openapi::ByteString;
use orangery_api::{execution::Records, label, marks::Marks as _};
use orangery_blueprint::import::SecretData;
use orangery_core::{
    digest::sha256,
    masking::{MOST_MASKED_BYTES, Masker, SHORTEST_MASKED, leaves, secret_texts},
    name::{Namespace, ObjectName},
    yaml,
};
use orangery_reconcile::{Key, ObjectChange, Watched};
use orangery_turns::room_of_one;
use serde_json::Value;

mod cluster_reads;
mod with_more;

pub(crate) use self::cluster_reads::reader;
use crate::{cache_memory::MOST_KNOWN_BYTES, encryption::EncryptionKey, secret_data::clear_data, stores::Stores};

/// The members of a kubeconfig that are credentials.
const CREDENTIALS: [&str; 3] = ["token", "password", "client-key-data"];

/// The target under which the host logs what components say, as it stands in a line.
const GUEST_LOG: &str = "orangery::guest";

/// Bytes that are counted for each place that a value was read from.
const REFERENCE: usize = 32;

/// The secret values of all namespaces. Clones know the same.
#[derive(Clone, Debug, Default)]
pub struct SecretValues {
    /// Protects what is known; held for one look-up or one change, never while a masker is made.
    known: Arc<Mutex<KnownNamespaces>>,
}

#[derive(Debug)]
struct KnownNamespaces {
    /// The most bytes of all of them.
    most: usize,
    by_namespace: BTreeMap<Namespace, KnownValues>,
    /// Of all of them, with what refers to them.
    bytes: usize,
}

impl Default for KnownNamespaces {
    fn default() -> Self {
        Self { most: MOST_KNOWN_BYTES, by_namespace: BTreeMap::new(), bytes: 0 }
    }
}

/// The values of one namespace.
#[derive(Debug, Default)]
struct KnownValues {
    /// By what they were read from; what is read again takes the place of what it was.
    by_source: BTreeMap<SecretSource, KnownSource>,
    /// How many sources have each.
    counts: BTreeMap<Arc<str>, usize>,
    /// The same of sources that mark what holds their values.
    marking: BTreeMap<Arc<str>, usize>,
    /// Of all of them.
    bytes: usize,
    /// The same with what refers to them.
    taken: usize,
    /// Of all of them, once they are asked for.
    maskers: Option<Arc<Maskers>>,
}

/// What secret values of a namespace are read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSource {
    /// A Secret.
    Secret(ObjectName),
    /// A copy that the host has made of one.
    DataObject(ObjectName),
    /// The kubeconfig of a Target.
    Target(ObjectName),
    /// The kubeconfig that was kept of a Target, in the Secret of this name.
    Kept(ObjectName),
    /// The kubeconfig that was issued for a cluster: the digest of what was asked for.
    Issued(String),
    /// A Secret in a cluster that was read for an object of the namespace.
    Read {
        /// The object: kind and name.
        reader: String,
        /// Which Secret in which cluster.
        secret: String,
    },
    /// What an item of this name has exported of Secrets.
    Exports(ObjectName),
}

impl SecretSource {
    /// Whether what holds its values is data of Secrets. What a chart looks up in its cluster may stand anywhere by chance, so only
    /// what is exported of it counts.
    fn marks(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }

    fn is_read_by(&self, by: &str) -> bool {
        matches!(self, Self::Read { reader, .. } if reader == by)
    }
}

/// What was read from one place.
#[derive(Debug, Default)]
struct KnownSource {
    texts: BTreeSet<Arc<str>>,
    /// Where not all of them had room.
    without_room: Option<WithoutRoom>,
}

/// Texts that had no room.
#[derive(Debug)]
struct WithoutRoom {
    /// The digest of all texts of the source.
    digest: String,
    /// The bytes that there were for the source.
    room: usize,
}

/// The maskers of one namespace, as its values are at one time: each is made by who asks for it first, and nobody else waits.
#[derive(Debug)]
struct Maskers {
    values: Vec<Arc<str>>,
    withholds: bool,
    /// Those of sources that mark what holds their values, and whether all of them are known; `None` where all sources do.
    marking: Option<(Vec<Arc<str>>, bool)>,
    /// For what is about the namespace.
    of_namespace: OnceLock<Arc<Masker>>,
    /// For lines that are about no namespace (C-52).
    of_others: OnceLock<Arc<Masker>>,
    /// For what is to be marked.
    of_data: OnceLock<Arc<Masker>>,
}

impl SecretValues {
    /// Keeps no more bytes than these from now on (C-88).
    pub fn keep_at_most(&self, bytes: usize) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).most = bytes;
    }

    /// Takes in the texts of something that was read. Short ones do not count. What has no room is not kept, and its
    /// namespace is withheld.
    pub fn learn(&self, namespace: &Namespace, source: SecretSource, texts: impl IntoIterator<Item = String>) {
        let texts: BTreeSet<String> =
            texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| text.len() >= SHORTEST_MASKED).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownNamespaces { by_namespace, bytes, most } = &mut *known;
        let of = by_namespace.entry(namespace.clone()).or_default();
        // A namespace has at most half, so that it blinds none of the others (C-84).
        let room = |bytes: usize, of: &KnownValues| {
            let room = room_of_one(*most as u64, bytes as u64, of.taken as u64);
            usize::try_from(room).unwrap_or(usize::MAX)
        };
        if !of.has(&source, &texts, room(*bytes, of)) {
            *bytes -= of.forget(&source);
            let room = room(*bytes, of);
            *bytes += of.keep(source, texts, room);
        }
        if of.by_source.is_empty() {
            by_namespace.remove(namespace);
        }
    }

    /// Forgets what only matters while there are Installations and deploy items in a namespace: all but its DataObjects.
    fn leave(&self, namespace: &Namespace) {
        self.forget(namespace, |source| !matches!(source, SecretSource::DataObject(_)));
    }

    /// Forgets what was read from such sources.
    fn forget(&self, namespace: &Namespace, leaves: impl Fn(&SecretSource) -> bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownNamespaces { by_namespace, bytes, .. } = &mut *known;
        let Some(of) = by_namespace.get_mut(namespace) else { return };
        let sources: Vec<SecretSource> = of.by_source.keys().filter(|source| leaves(source)).cloned().collect();
        for source in sources {
            *bytes -= of.forget(&source);
        }
        if of.by_source.is_empty() {
            by_namespace.remove(namespace);
        }
    }

    /// The same of the entries of a Secret.
    pub(crate) fn learn_secret<'a>(&self, secret: &Key, entries: impl IntoIterator<Item = &'a Vec<u8>>) {
        let texts = entries.into_iter().flat_map(|bytes| secret_texts(&String::from_utf8_lossy(bytes)));
        self.learn(&secret.namespace, SecretSource::Secret(secret.name.clone()), texts);
    }

    /// The same of the credentials in a kubeconfig.
    pub(crate) fn learn_kubeconfig(&self, namespace: &Namespace, source: SecretSource, kubeconfig: &str) {
        let mut texts = Vec::new();
        if let Ok(kubeconfig) = yaml::decode(kubeconfig) {
            credentials(&kubeconfig, &mut texts);
        }
        self.learn(namespace, source, texts);
    }

    /// What is read of copies that the host has made of Secrets, now and whenever they change; until nothing is left in a
    /// namespace that could say what is secret.
    pub(crate) fn follow(&self, stores: &Stores, encryption: &EncryptionKey) {
        let (values, encryption) = (self.clone(), encryption.clone());
        stores.data_objects.subscribe(move |change| {
            let Some(key) = change.key() else { return };
            let copy = change.after.filter(|object| object.label(label::SECRET_DATA) == Some(label::SECRET_DATA_WHOLE));
            let mut texts = Vec::new();
            if let Some(data) = copy.and_then(|copy| clear_data(&encryption, copy).ok()) {
                leaves(&data, &mut texts);
            }
            values.learn(&key.namespace, SecretSource::DataObject(key.name), texts);
        });
        let (values, of) = (self.clone(), stores.clone());
        stores.installations.subscribe(move |change| values.leave_if_empty(&of, change));
        let (values, of) = (self.clone(), stores.clone());
        stores.deploy_items.subscribe(move |change| {
            values.forget_item(change);
            values.leave_if_empty(&of, change);
        });
    }

    fn leave_if_empty<K: Watched>(&self, stores: &Stores, change: &ObjectChange<'_, K>) {
        let Some(Key { namespace, .. }) = change.key().filter(|_| change.after.is_none()) else { return };
        let within = Some(&namespace);
        if stores.installations.keys(within).is_empty() && stores.deploy_items.keys(within).is_empty() {
            self.leave(&namespace);
        }
    }

    fn maskers(&self, namespace: &Namespace) -> Option<Arc<Maskers>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.by_namespace.get_mut(namespace).map(KnownValues::maskers)
    }

    /// What masks the values of a namespace.
    pub fn masker(&self, namespace: &Namespace) -> Arc<Masker> {
        self.maskers(namespace).map(|maskers| maskers.of_namespace()).unwrap_or_default()
    }

    /// How much of a value is secret in a namespace.
    pub(crate) fn secret_data(&self, namespace: &Namespace, value: &Value) -> Option<SecretData> {
        if !self.maskers(namespace)?.of_data().finds(&value.to_string()) {
            return None;
        }
        let mut texts = Vec::new();
        leaves(value, &mut texts);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of = known.by_namespace.get(namespace)?;
        let is_known = |text: &str| of.marking.contains_key(text);
        let mut texts = texts.iter().map(|text| text.trim()).filter(|text| text.len() >= SHORTEST_MASKED);
        let is_copy = texts.all(|text| is_known(text) || decoded(text).is_some_and(|clear| is_known(clear.trim())));
        Some(if is_copy { SecretData::Whole } else { SecretData::Partly })
    }

    /// A line of a log without the secret values of the namespaces that it names; one that names none is without those of
    /// all. What a namespace holds as secret hides nothing in the lines about others, and lines of the operator that name
    /// none are never withheld whole: more values than can be looked for are a matter of their namespace (C-52). Lines of
    /// components ([`GUEST_LOG`]) are, as anything may stand in them.
    pub fn mask_line(&self, line: &str) -> String {
        let names = |namespace: &Namespace| is_named(line, namespace);
        let is_of_a_component = line.contains(GUEST_LOG);
        let (is_about_some, maskers) = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let is_about_some = known.by_namespace.keys().any(names);
            let counting = known.by_namespace.iter_mut().filter(|(namespace, _)| !is_about_some || names(namespace));
            (is_about_some, counting.map(|(_, of)| of.maskers()).collect::<Vec<_>>())
        };
        maskers.iter().fold(line.to_owned(), |line, maskers| {
            let masker = if is_about_some || is_of_a_component { maskers.of_namespace() } else { maskers.of_others() };
            masker.mask(&line).into_owned()
        })
    }
}

/// The text that stands in base64, as in the data of a Secret.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(data_encoding::BASE64.decode(text.as_bytes()).ok()?).ok()
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
    /// Whether a source has these texts, as far as they were taken in, and there is no more room for others of it.
    fn has(&self, source: &SecretSource, texts: &BTreeSet<String>, room: usize) -> bool {
        let Some(known) = self.by_source.get(source) else { return texts.is_empty() };
        match &known.without_room {
            Some(without) => room <= without.room && without.digest == digest_of(texts),
            None => known.texts.iter().map(AsRef::as_ref).eq(texts.iter().map(String::as_str)),
        }
    }

    /// Forgets a source, and answers how many bytes less are kept.
    fn forget(&mut self, source: &SecretSource) -> usize {
        let Some(known) = self.by_source.remove(source) else { return 0 };
        self.maskers = None;
        let mut bytes = REFERENCE * known.texts.len();
        for text in known.texts {
            if source.marks() {
                less(&mut self.marking, &text);
            }
            if less(&mut self.counts, &text) {
                self.bytes -= text.len();
                bytes += text.len();
            }
        }
        self.taken -= bytes;
        bytes
    }

    /// Keeps what has room of the texts of a source, short ones first, and answers how many bytes more are kept.
    fn keep(&mut self, source: SecretSource, texts: BTreeSet<String>, room: usize) -> usize {
        if texts.is_empty() {
            return 0;
        }
        self.maskers = None;
        let digest = digest_of(&texts);
        let (mut known, mut bytes) = (KnownSource::default(), 0);
        let mut texts: Vec<String> = texts.into_iter().collect();
        texts.sort_by_key(String::len);
        for text in texts {
            let text: Arc<str> = self.counts.get_key_value(text.as_str()).map_or(text.into(), |(text, _)| text.clone());
            let more = if self.counts.contains_key(&text) { 0 } else { text.len() };
            if self.bytes + more > MOST_MASKED_BYTES || bytes + more + REFERENCE > room {
                known.without_room = Some(WithoutRoom { digest, room: room.saturating_sub(bytes) });
                break;
            }
            (self.bytes, bytes) = (self.bytes + more, bytes + more + REFERENCE);
            *self.counts.entry(Arc::clone(&text)).or_default() += 1;
            if source.marks() {
                *self.marking.entry(Arc::clone(&text)).or_default() += 1;
            }
            known.texts.insert(text);
        }
        self.taken += bytes;
        self.by_source.insert(source, known);
        bytes
    }

    fn maskers(&mut self) -> Arc<Maskers> {
        let Self { by_source, counts, marking, .. } = &*self;
        let made = || {
            let mut without_room = by_source.iter().filter(|(_, known)| known.without_room.is_some()).map(|(of, _)| of);
            let withholds = without_room.clone().next().is_some();
            let of_marking = || (marking.keys().cloned().collect(), !without_room.any(SecretSource::marks));
            Maskers {
                values: counts.keys().cloned().collect(),
                withholds,
                marking: by_source.keys().any(|source| !source.marks()).then(of_marking),
                of_namespace: OnceLock::new(),
                of_others: OnceLock::new(),
                of_data: OnceLock::new(),
            }
        };
        let maskers = self.maskers.clone().unwrap_or_else(|| Arc::new(made()));
        self.maskers = Some(Arc::clone(&maskers));
        maskers
    }
}

/// One source less has a text; whether none is left.
fn less(counts: &mut BTreeMap<Arc<str>, usize>, text: &Arc<str>) -> bool {
    let Some(count) = counts.get_mut(text) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(text);
        return true;
    }
    false
}

fn digest_of(texts: &BTreeSet<String>) -> String {
    let joined: Vec<&str> = texts.iter().map(String::as_str).collect();
    sha256(joined.join("\0").as_bytes())
}

impl Maskers {
    fn of_namespace(&self) -> Arc<Masker> {
        let values = self.values.iter().map(AsRef::as_ref);
        let of = || if self.withholds { Masker::of_too_many() } else { Masker::of(values) };
        Arc::clone(self.of_namespace.get_or_init(|| Arc::new(of())))
    }

    /// What finds data that is to be marked (C-195).
    fn of_data(&self) -> Arc<Masker> {
        let Some((values, is_whole)) = &self.marking else { return self.of_namespace() };
        let values = values.iter().map(AsRef::as_ref);
        let of = || if *is_whole { Masker::of(values) } else { Masker::of_too_many() };
        Arc::clone(self.of_data.get_or_init(|| Arc::new(of())))
    }

    /// The same masker where all of its values can be looked for.
    fn of_others(&self) -> Arc<Masker> {
        if !self.withholds {
            return self.of_namespace();
        }
        let values = self.values.iter().map(AsRef::as_ref);
        Arc::clone(self.of_others.get_or_init(|| Arc::new(Masker::of_as_many_as_can_be(values))))
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
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(super) fn known() -> (SecretValues, Namespace) {
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
        values.learn_kubeconfig(&namespace, SecretSource::Target("t".into()), kubeconfig);
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
        values.learn(&"b".into(), SecretSource::Secret("s".into()), ["reconcile".to_owned()]);
        let lines =
            ["reconcile a/x: hunter2-hunter2", "reconcile b/x: hunter2-hunter2", "reconcile data/x: hunter2-hunter2"];
        let expected = ["reconcile a/x: [masked]", "[masked] b/x: hunter2-hunter2", "[masked] data/x: [masked]"];
        assert_eq!((lines.map(|line| values.mask_line(line)), namespace.as_str()), (expected.map(str::to_owned), "a"));
    }

    #[test]
    fn c_52_a_namespace_with_too_many_values_blinds_no_line_of_the_operator() {
        let (values, _) = known();
        let most = "z".repeat(MOST_MASKED_BYTES);
        values.learn(&"b".into(), SecretSource::Secret("s".into()), [most, "a-short-value".to_owned()]);
        let shown = ["the Lease is held", "reconcile a/x: done", "a-short-value, hunter2-hunter2"];
        let expected = ["the Lease is held", "reconcile a/x: done", "[masked], [masked]"];
        assert_eq!(shown.map(|line| values.mask_line(line)), expected.map(str::to_owned));
        for line in ["reconcile b/x: done", "INFO orangery::guest: it says zz"] {
            assert!(values.mask_line(line).starts_with("[masked: more was read of Secrets"), "{line}");
        }
        values.learn(&"b".into(), SecretSource::Secret("s".into()), ["another-value".to_owned()]);
        assert_eq!(values.mask_line("a-short-value, another-value"), "a-short-value, [masked]");
    }

    pub(super) fn bytes(values: &SecretValues) -> usize {
        values.known.lock().unwrap().bytes
    }

    #[test]
    fn limits_masking_what_all_namespaces_hold_is_bounded_and_without_room_a_namespace_is_withheld() {
        let (values, first) = known();
        let own = bytes(&values);
        // Each of them has as much as one may have.
        let full = MOST_KNOWN_BYTES / MOST_MASKED_BYTES;
        for number in 0..full {
            let value = format!("{number:08}{}", "x".repeat(MOST_MASKED_BYTES - 8));
            values.learn(&format!("n{number}").into(), SecretSource::Secret("s".into()), [value]);
        }
        assert!(bytes(&values) <= MOST_KNOWN_BYTES, "{}", bytes(&values));
        let last = Namespace::from(format!("n{}", full - 1));
        assert_eq!((values.masker(&last).withholds(), values.masker(&first).withholds()), (true, false));
        assert_eq!(values.masker(&first).mask("hunter2-hunter2"), "[masked]");
        // Nothing of it is left where it is read again without, and one that had no room has it again.
        (0..full - 1)
            .for_each(|number| values.learn(&format!("n{number}").into(), SecretSource::Secret("s".into()), []));
        values.learn(&last, SecretSource::Secret("s".into()), ["another-value".to_owned()]);
        assert_eq!(values.masker(&last).mask("it is another-value"), "it is [masked]");
        values.learn(&last, SecretSource::Secret("s".into()), []);
        assert_eq!((bytes(&values), values.known.lock().unwrap().by_namespace.len()), (own, 1));
    }

    #[test]
    fn c_88_limits_masking_with_less_memory_fewer_values_are_known_and_the_others_are_withheld() {
        let (values, namespaces) = (SecretValues::default(), ["a", "b", "c"].map(Namespace::from_static));
        values.keep_at_most(1_300);
        for namespace in &namespaces {
            values.learn(namespace, SecretSource::Secret("s".into()), [format!("{namespace}-{}", "x".repeat(600))]);
        }
        assert_eq!(namespaces.map(|namespace| values.masker(&namespace).withholds()), [false, false, true]);
        assert!(bytes(&values) <= 1_300);
    }

    #[test]
    fn c_84_a_namespace_has_half_at_most_and_what_had_no_room_is_looked_at_again() {
        let (values, a, b) = (SecretValues::default(), Namespace::from_static("a"), Namespace::from_static("b"));
        values.keep_at_most(4_000);
        // References count as what refers to them does.
        let many = |of: usize| (0..of).map(|number| format!("{number:08}")).collect::<Vec<_>>();
        values.learn(&a, SecretSource::Secret("s".into()), many(40));
        values.learn(&a, SecretSource::Secret("t".into()), many(40));
        assert!(values.masker(&a).withholds() && bytes(&values) <= 2_000, "{}", bytes(&values));
        values.learn(&b, SecretSource::Secret("s".into()), ["hunter2-hunter2".to_owned()]);
        assert_eq!(values.masker(&b).mask("hunter2-hunter2"), "[masked]");
        // The same texts, when there is room.
        values.learn(&a, SecretSource::Secret("s".into()), []);
        assert!(values.masker(&a).withholds());
        values.learn(&a, SecretSource::Secret("t".into()), many(40));
        assert!(!values.masker(&a).withholds() && values.masker(&a).finds("00000039"));
    }

    #[test]
    fn c_84_copies_of_a_value_count_once() {
        let (values, namespace) = (SecretValues::default(), Namespace::from_static("a"));
        let most = "x".repeat(MOST_MASKED_BYTES);
        let copies = ["a", "b"].map(|name| SecretSource::DataObject(name.into()));
        for source in [SecretSource::Secret("s".into())].into_iter().chain(copies) {
            values.learn(&namespace, source, [most.clone()]);
        }
        assert_eq!(bytes(&values), MOST_MASKED_BYTES + 3 * REFERENCE);
        values.learn(&namespace, SecretSource::Secret("s".into()), []);
        assert!(!values.masker(&namespace).withholds() && values.masker(&namespace).finds(&most));
        values.learn(&namespace, SecretSource::Secret("t".into()), ["one-more-value".to_owned()]);
        assert!(values.masker(&namespace).withholds());
    }

    #[test]
    fn c_84_a_namespace_that_nothing_is_left_in_is_forgotten_but_for_its_copies() {
        let (values, namespace) = known();
        values.learn(&namespace, SecretSource::DataObject("d".into()), ["a-copy-of-it".to_owned()]);
        values.leave(&namespace);
        assert_eq!(values.masker(&namespace).mask("hunter2-hunter2, a-copy-of-it"), "hunter2-hunter2, [masked]");
        values.learn(&namespace, SecretSource::DataObject("d".into()), []);
        assert_eq!((bytes(&values), values.known.lock().unwrap().by_namespace.len()), (0, 0));
    }

    #[test]
    fn c_84_a_masker_is_made_while_others_learn() {
        let (values, namespace) = known();
        let maskers = values.maskers(&namespace).unwrap();
        assert!(maskers.of_namespace.get().is_none(), "whoever asks for it makes it");
        let held = values.known.lock().unwrap();
        assert_eq!(maskers.of_namespace().mask("hunter2-hunter2"), "[masked]");
        drop(held);
        assert!(Arc::ptr_eq(&maskers.of_namespace(), &values.masker(&namespace)), "once");
        values.learn(&namespace, SecretSource::Secret("s".into()), ["hunter2-hunter2".to_owned()]);
        assert!(Arc::ptr_eq(&maskers.of_namespace(), &values.masker(&namespace)), "nothing has changed");
        values.learn(&namespace, SecretSource::Secret("s".into()), ["another-value".to_owned()]);
        assert_eq!(values.masker(&namespace).mask("another-value"), "[masked]");
    }
}
