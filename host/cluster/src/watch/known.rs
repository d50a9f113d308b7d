//! What one watch knows: the newest version of each object, and who waits for which of them. No I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_core::{memory, name::Namespace};
use serde_json::Value;

use super::{NamespacedName, Waiter};

/// Places whose removal is remembered until the next list. Older ones are forgotten: words about them that come late are
/// taken for new.
const MOST_EMPTIED: usize = 10_000;

/// What is known of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// The first list is not in yet.
    Unknown,
    /// The server does not let it be watched, and why.
    Forbidden(String),
    /// It is not watched now, and why: there is no room for it, or the server cannot be reached.
    Unwatched(String),
    /// It does not exist.
    Absent,
    /// It went while it was waited for: its last known version.
    Gone(Arc<Value>),
    /// Its newest known version.
    Present(Arc<Value>),
}

#[derive(Default)]
pub(crate) struct KnownObjects {
    /// The namespace that is watched; `None` for all.
    namespace: Option<Namespace>,
    synced: bool,
    trouble: Option<WatchTrouble>,
    /// The follower that counts.
    follower: u64,
    objects: BTreeMap<NamespacedName, Arc<Value>>,
    /// The last versions of those that went while somebody waited for them, until they are there again or nobody waits (C-107).
    gone: BTreeMap<NamespacedName, Arc<Value>>,
    /// What both take, in bytes.
    bytes: u64,
    /// The list that is coming in.
    listing: Option<Listing>,
    /// Whether it knows nothing, for want of room, until it is listed anew.
    pub(super) is_given_up: bool,
    /// The version at which a place was last emptied: older words about it are ignored.
    emptied: BTreeMap<NamespacedName, u64>,
    /// The objects that wait for a place, or for anything, and how many times.
    waiters: BTreeMap<Option<NamespacedName>, BTreeMap<Waiter, usize>>,
}

/// Why a watch does not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WatchTrouble {
    why: String,
    /// Whether the server says so, and would say so again.
    is_lasting: bool,
}

impl WatchTrouble {
    fn observed(&self) -> Observed {
        let why = self.why.clone();
        if self.is_lasting { Observed::Forbidden(why) } else { Observed::Unwatched(why) }
    }
}

/// A list that is coming in. It says what there was when it began, whatever was known before: a server whose storage was
/// restored has older versions of objects, and objects that were gone (C-91). Only what a write answered since may be newer.
#[derive(Default)]
struct Listing {
    /// The places it has named.
    named: BTreeSet<NamespacedName>,
    /// Those where it found something new.
    news: BTreeSet<NamespacedName>,
    /// Those that a write has told of meanwhile.
    written: BTreeSet<NamespacedName>,
}

impl KnownObjects {
    pub(crate) fn of(namespace: Option<Namespace>) -> Self {
        Self { namespace, ..Self::default() }
    }

    pub(crate) fn wait(&mut self, place: Option<NamespacedName>, waiter: Waiter) {
        *self.waiters.entry(place).or_default().entry(waiter).or_default() += 1;
    }

    pub(crate) fn leave(&mut self, place: &Option<NamespacedName>, waiter: &Waiter) {
        let Some(waiters) = self.waiters.get_mut(place) else { return };
        match waiters.get_mut(waiter) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => {
                waiters.remove(waiter);
            }
        }
        if waiters.is_empty() {
            self.waiters.remove(place);
            if let Some(place) = place {
                self.forget_gone(place);
            }
        }
    }

    pub(crate) fn observed(&self, place: &NamespacedName) -> Observed {
        match (self.synced, &self.trouble) {
            (false, Some(trouble)) => trouble.observed(),
            (false, None) => Observed::Unknown,
            (true, _) => match self.objects.get(place) {
                Some(object) => Observed::Present(Arc::clone(object)),
                None => self.gone.get(place).map_or(Observed::Absent, |last| Observed::Gone(Arc::clone(last))),
            },
        }
    }

    pub(crate) fn all(&self) -> Result<Vec<Arc<Value>>, Observed> {
        match (self.synced, &self.trouble) {
            (false, Some(trouble)) => Err(trouble.observed()),
            (false, None) => Err(Observed::Unknown),
            (true, _) => Ok(self.objects.values().cloned().collect()),
        }
    }

    /// The answer of a write of ours: wakes nobody, as whoever wrote looks at it himself, and the watch tells the rest.
    pub(crate) fn upsert(&mut self, object: &Value) {
        let place = place_of(object);
        if self.namespace.is_none() || self.namespace == place.namespace {
            if let Some(listing) = &mut self.listing {
                listing.written.insert(place.clone());
            }
            self.put(place, object.clone());
        }
    }

    /// The number of a new follower.
    pub(crate) fn begin_follower(&mut self) -> u64 {
        self.follower += 1;
        self.follower
    }

    /// Whether no other one has begun since.
    pub(crate) fn is_followed_by(&self, number: u64) -> bool {
        self.follower == number
    }

    pub(crate) fn begin_list(&mut self) {
        self.listing = Some(Listing::default());
        self.is_given_up = false;
    }

    pub(crate) fn listed(&mut self, object: Value) {
        let place = place_of(&object);
        let is_written = self.listing.as_ref().is_some_and(|listing| listing.written.contains(&place));
        let news = if is_written { self.put(place.clone(), object) } else { self.replace(place.clone(), object) };
        if let Some(listing) = &mut self.listing {
            if news {
                listing.news.insert(place.clone());
            }
            listing.named.insert(place);
        }
    }

    /// The list is complete: what it did not name is gone. After the first list everybody may go on, after a later one
    /// those whom its news concern.
    pub(crate) fn end_list(&mut self) -> Vec<Waiter> {
        // One that never began has named nothing, and takes nothing away.
        let Some(Listing { named, mut news, written }) = self.listing.take() else { return Vec::new() };
        self.emptied.clear();
        let is_there = |place: &NamespacedName| named.contains(place) || written.contains(place);
        let gone: Vec<NamespacedName> = self.objects.keys().filter(|place| !is_there(place)).cloned().collect();
        for place in gone {
            self.remove(&place, None);
            news.insert(place);
        }
        self.trouble = None;
        if !std::mem::replace(&mut self.synced, true) {
            return self.all_waiters();
        }
        let woken: BTreeSet<Waiter> = news.iter().flat_map(|place| self.concerned(place)).collect();
        woken.into_iter().collect()
    }

    fn all_waiters(&self) -> Vec<Waiter> {
        let all: BTreeSet<&Waiter> = self.waiters.values().flat_map(BTreeMap::keys).collect();
        all.into_iter().cloned().collect()
    }

    pub(crate) fn changed(&mut self, object: Value) -> Vec<Waiter> {
        let place = place_of(&object);
        let woken = self.concerned(&place);
        self.put(place, object);
        woken
    }

    pub(crate) fn removed(&mut self, object: &Value) -> Vec<Waiter> {
        let place = place_of(object);
        let version = version_of(object);
        if self.objects.get(&place).is_some_and(|known| version_of(known) <= version) {
            self.remove(&place, Some(object));
        }
        let woken = self.concerned(&place);
        if self.emptied.len() >= MOST_EMPTIED {
            self.emptied.clear();
        }
        self.emptied.insert(place, version);
        woken
    }

    /// Takes an object away. Whoever waits for it can still ask for its last version: that of the deletion, or the known one.
    fn remove(&mut self, place: &NamespacedName, last: Option<&Value>) {
        let Some(known) = self.objects.remove(place) else { return };
        self.bytes = self.bytes.saturating_sub(memory::of(&known));
        self.forget_gone(place);
        if self.waiters.contains_key(&Some(place.clone())) {
            let last = last.map_or(known, |last| Arc::new(stripped(last.clone())));
            self.bytes = self.bytes.saturating_add(memory::of(&last));
            self.gone.insert(place.clone(), last);
        }
    }

    fn forget_gone(&mut self, place: &NamespacedName) {
        let last = self.gone.remove(place);
        self.bytes = self.bytes.saturating_sub(last.map_or(0, |object| memory::of(&object)));
    }

    /// The memory that the objects take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets all objects for good, and why.
    pub(crate) fn give_up(&mut self, trouble: String) -> Vec<Waiter> {
        self.objects.clear();
        self.gone.clear();
        self.emptied.clear();
        (self.bytes, self.synced, self.listing) = (0, false, None);
        self.is_given_up = true;
        self.failed(trouble, false)
    }

    /// It is followed from now on: why it was not does not count any more.
    pub(crate) fn begun(&mut self) {
        self.trouble = None;
    }

    /// The watch does not come about, or broke off, for as long as the server says so or for now. What waits for the first list is
    /// woken.
    pub(crate) fn failed(&mut self, why: String, is_lasting: bool) -> Vec<Waiter> {
        let trouble = WatchTrouble { why, is_lasting };
        if self.synced || self.trouble.as_ref() == Some(&trouble) {
            return Vec::new();
        }
        self.trouble = Some(trouble);
        self.all_waiters()
    }

    /// The server does not let it be watched any more: what is known may not be true by now, until the next list says so (C-181).
    /// Whether it was known until now, and whom that concerns.
    pub(crate) fn refused(&mut self, trouble: String) -> (bool, Vec<Waiter>) {
        let was_synced = std::mem::replace(&mut self.synced, false);
        (was_synced, self.failed(trouble, true))
    }

    /// Takes a version in, unless it is older than what is known; whether it is newer.
    fn put(&mut self, place: NamespacedName, object: Value) -> bool {
        let version = version_of(&object);
        let known = self.objects.get(&place).map(|known| version_of(known));
        if self.emptied.get(&place).is_some_and(|emptied| version <= *emptied)
            || known.is_some_and(|known| known > version)
        {
            return false;
        }
        self.replace(place, object)
    }

    /// Takes a version in, whatever is known; whether it is another one.
    fn replace(&mut self, place: NamespacedName, object: Value) -> bool {
        let version = version_of(&object);
        let known = self.objects.get(&place).map(|known| version_of(known));
        let object = stripped(object);
        self.forget_gone(&place);
        let more = memory::of(&object);
        let before = self.objects.insert(place, Arc::new(object)).map_or(0, |object| memory::of(&object));
        self.bytes = self.bytes.saturating_sub(before).saturating_add(more);
        known != Some(version)
    }

    fn concerned(&self, place: &NamespacedName) -> Vec<Waiter> {
        let of = |place: Option<NamespacedName>| self.waiters.get(&place).into_iter().flat_map(BTreeMap::keys);
        let both: BTreeSet<&Waiter> = of(Some(place.clone())).chain(of(None)).collect();
        both.into_iter().cloned().collect()
    }
}

/// Without `managedFields`, which nobody here reads and which double an object's size, and without the schemas of a
/// definition, which are nearly all of it: a watch on definitions knows all of them.
fn stripped(mut object: Value) -> Value {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
    if object.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
        let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten().filter_map(Value::as_object_mut) {
            version.remove("schema");
        }
    }
    object
}

pub(crate) fn place_of(object: &Value) -> NamespacedName {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    NamespacedName {
        namespace: text("/metadata/namespace").map(Namespace::from),
        name: text("/metadata/name").unwrap_or_default().into(),
    }
}

/// Resource versions are numbers that grow (KEP-5504); one that is not counts as the oldest.
pub(crate) fn version_of(object: &Value) -> u64 {
    let text = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
