//! What is known of the objects of one manifest, and the decisions about what is told of them. What is compared is compared outside.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use jiff::Timestamp;
use orangery_core::port::Clock;
use orangery_proposal::{drift_rules::Corrections, inventory::LocatedObject, overlay::Ignored};
use serde_json::Value;

use super::{
    DriftFinding,
    changed_by::changed_by,
    compare,
    packed::{PackedObject, WrittenObject},
    unasked_baseline,
    versions::{SeenVersions, Told},
};
use crate::Owner;

/// One object that is not as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftedSince {
    /// How it differs.
    pub finding: DriftFinding,
    /// When that was seen.
    pub since: Timestamp,
    /// The field manager that changed it last.
    pub manager: Option<String>,
    /// Why it was not written again.
    pub refused: Option<String>,
    /// How often it was written again in a row.
    pub corrected: u32,
}

#[derive(Default)]
pub(super) struct KnownDrift {
    objects: BTreeMap<LocatedObject, TrackedObject>,
    /// How many of them nothing is known of yet.
    pub(super) unseen: usize,
    /// Those that differ from what was written, while the server was not asked what it makes of that.
    pub(super) unasked: BTreeSet<LocatedObject>,
    pub(super) drifted: BTreeMap<LocatedObject, DriftedSince>,
    pub(super) corrections: BTreeMap<LocatedObject, Corrections>,
    /// Those that were found to be another's, or on their way out, when they were about to be written, and those that are compared
    /// meanwhile: what is found then tells of them.
    pub(super) paused: BTreeSet<LocatedObject>,
    /// Those that were written again since the last list of their kind has begun: it may have been too early for them.
    pub(super) written: BTreeSet<LocatedObject>,
    /// Why kinds cannot be watched, by the numbers of their feeds.
    pub(super) troubles: BTreeMap<usize, String>,
}

struct TrackedObject {
    packed: PackedObject,
    versions: SeenVersions,
    is_asked: bool,
    /// How often something was told of it that was news.
    told: u64,
    /// How often that was when something was found last; 0 where nothing was found yet.
    found: u64,
}

/// An object that is to be compared, as it was when something was told of it.
pub(super) struct DriftComparison<'t> {
    packed: PackedObject,
    is_asked: bool,
    told: u64,
    /// `None` where there is none.
    live: Option<&'t Value>,
}

/// What was found.
pub(super) struct FoundDrift {
    finding: DriftFinding,
    /// The field manager that has changed it last.
    manager: Option<String>,
}

impl KnownDrift {
    /// Nothing is known of these.
    pub(super) fn of(objects: impl Iterator<Item = (LocatedObject, PackedObject)>) -> Self {
        let none =
            |packed| TrackedObject { packed, versions: SeenVersions::default(), is_asked: false, told: 0, found: 0 };
        let objects: BTreeMap<_, _> = objects.map(|(located, packed)| (located, none(packed))).collect();
        Self { unseen: objects.len(), objects, ..Self::default() }
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &LocatedObject> {
        self.objects.keys()
    }

    pub(super) fn packed(&self, located: &LocatedObject) -> Option<&PackedObject> {
        self.objects.get(located).map(|object| &object.packed)
    }

    /// Bytes of memory that the packed objects take.
    pub(super) fn bytes(&self) -> u64 {
        self.objects.values().map(|object| object.packed.bytes()).sum()
    }

    /// The version of an object that was told last.
    pub(super) fn version(&self, located: &LocatedObject) -> u64 {
        self.objects.get(located).map_or(0, |object| object.versions.seen)
    }

    pub(super) fn count(&mut self, located: &LocatedObject, now: Timestamp) {
        let before = self.corrections.get(located).copied();
        self.corrections.insert(located.clone(), Corrections::another(before, now));
    }

    /// What is compared now is due when it is known what that finds.
    pub(super) fn pause_compared(&mut self) {
        let is_compared = |object: &TrackedObject| object.told > object.found;
        let compared = self.objects.iter().filter(|(_, object)| is_compared(object));
        self.paused.extend(compared.map(|(located, _)| located.clone()));
    }

    /// What has to be compared, where what is told is news.
    pub(super) fn begin<'t>(&mut self, located: &LocatedObject, told: Told<'t>) -> Option<DriftComparison<'t>> {
        let object = self.objects.get_mut(located)?;
        let told = match told {
            // What a list says that may have been too early is held against the answer of the write.
            Told::Unlisted if self.written.contains(located) => return None,
            Told::Listed(live) if self.written.contains(located) => Told::Is(live),
            told => told,
        };
        if !object.versions.take(told, object.told > 0) {
            return None;
        }
        object.told += 1;
        let (packed, live) = (object.packed.clone(), told.live());
        Some(DriftComparison { packed, is_asked: object.is_asked, told: object.told, live })
    }

    /// The server has said what it makes of a write, of which this is held as it is packed now; `None` where something was told since
    /// the version `before` was known.
    pub(super) fn asked<'t>(
        &mut self,
        located: &LocatedObject,
        (packed, before): (PackedObject, u64),
        live: &'t Value,
    ) -> Option<DriftComparison<'t>> {
        let object = self.objects.get_mut(located).filter(|object| object.versions.seen == before)?;
        (object.packed, object.versions, object.is_asked) = (packed, SeenVersions::default(), true);
        self.unasked.remove(located);
        self.begin(located, Told::Read(Some(live)))
    }

    /// The object was written again, and is this now.
    pub(super) fn corrected<'t>(
        &mut self,
        located: &LocatedObject,
        live: &'t Value,
        now: Timestamp,
    ) -> Option<DriftComparison<'t>> {
        self.count(located, now);
        self.written.insert(located.clone());
        self.begin(located, Told::Written(live))
    }

    /// Takes in what a comparison has found, unless something was told since it was begun. Whether there is something new to tell or
    /// to do.
    pub(super) fn put(
        &mut self,
        located: &LocatedObject,
        begun: &DriftComparison<'_>,
        FoundDrift { finding, manager }: FoundDrift,
        clock: &dyn Clock,
    ) -> bool {
        let Some(object) = self.objects.get_mut(located).filter(|object| object.told == begun.told) else {
            return false;
        };
        let was_found = mem::replace(&mut object.found, begun.told) > 0;
        let was_paused = self.paused.remove(located);
        self.unseen = self.unseen.saturating_sub(usize::from(!was_found));
        let is_news = match finding {
            DriftFinding::AsWritten => self.unasked.remove(located) | self.drifted.remove(located).is_some(),
            DriftFinding::Different(_) if !begun.is_asked => self.unasked.insert(located.clone()),
            finding => {
                self.unasked.remove(located);
                let before = self.drifted.get(located);
                let is_news = before.is_none_or(|before| before.finding != finding);
                let since = before.map_or_else(|| clock.now(), |before| before.since);
                let refused = before.and_then(|before| before.refused.clone());
                let drifted = DriftedSince { finding, since, manager, refused, corrected: 0 };
                self.drifted.insert(located.clone(), drifted);
                is_news
            }
        };
        self.unseen == 0 && (is_news || !was_found || was_paused)
    }
}

impl DriftComparison<'_> {
    /// Unpacks what was written, and holds it against what is there. Others choose how long that takes.
    pub(super) fn find(&self, (owner, labels): (&Owner, &[String]), ignored: &Ignored) -> Option<FoundDrift> {
        let Some(live) = self.live else {
            let finding = if self.packed.is_cleared_away { DriftFinding::AsWritten } else { DriftFinding::Missing };
            return Some(FoundDrift { finding, manager: None });
        };
        let WrittenObject { write, uid, baseline } = self.packed.unpack()?;
        let kept = baseline.unwrap_or_else(|| unasked_baseline(&write, owner, labels));
        let finding = compare((&write, uid.as_deref(), &kept), Some(live), (owner, labels), ignored);
        let is_told = match finding {
            DriftFinding::AsWritten => false,
            DriftFinding::Different(_) => self.is_asked,
            DriftFinding::Missing | DriftFinding::BeingDeleted | DriftFinding::TakenOver(_) => true,
        };
        let manager = if is_told { changed_by(&finding, live, (&kept, ignored)) } else { None };
        Some(FoundDrift { finding, manager })
    }
}
