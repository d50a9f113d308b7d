//! What an item says about drift: what is done about it, and what counts as none (C-57, C-58).

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ObjectKey, overlay::Ignored};

/// What is done about drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftPolicy {
    /// Nothing: nobody looks.
    Ignore,
    /// It is told.
    #[default]
    Report,
    /// It is told, and what was written is written again.
    Correct,
}

/// `spec.drift` of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftRules {
    /// What is done about drift.
    #[serde(default)]
    pub policy: DriftPolicy,
    /// What is no drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<DriftExemption>,
}

/// Fields of some objects of an item whose changes are no drift. What is not said selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftExemption {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ObjectName>,
    /// Fields by JSON pointer, each with all that lies below it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub json_pointers: BTreeSet<String>,
    /// Field managers: what one of them manages is its own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub managed_fields_managers: BTreeSet<String>,
}

impl DriftExemption {
    fn selects(&self, key: &ObjectKey) -> bool {
        self.group.as_ref().is_none_or(|group| group == key.group())
            && self.kind.as_ref().is_none_or(|kind| *kind == key.kind)
            && self.namespace.as_ref().is_none_or(|namespace| Some(namespace) == key.namespace.as_ref())
            && self.name.as_ref().is_none_or(|name| *name == key.name)
    }
}

impl DriftRules {
    /// The rules that hold for an item: its own, else those of its provider configuration, where `continuousReconcile` asks
    /// for corrections; `None` where nobody looks.
    pub fn of(own: Option<&DriftRules>, configuration: Option<&Value>) -> Option<Self> {
        let continuous = configuration.and_then(|configuration| configuration.get("continuousReconcile"));
        let asked = || Self { policy: DriftPolicy::Correct, ignore: Vec::new() };
        let rules = own.cloned().or_else(|| continuous.filter(|asked| !asked.is_null()).map(|_| asked()));
        rules.filter(|rules| rules.policy != DriftPolicy::Ignore)
    }

    /// What is no drift of one object.
    pub fn ignored(&self, key: &ObjectKey) -> Ignored {
        let mut ignored = Ignored::default();
        for exemption in self.ignore.iter().filter(|exemption| exemption.selects(key)) {
            ignored.pointers.extend(exemption.json_pointers.iter().cloned());
            ignored.managers.extend(exemption.managed_fields_managers.iter().cloned());
        }
        ignored
    }
}

/// How often one object was written again, so that nobody who changes it back keeps the host busy (C-60).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrections {
    /// How often in a row.
    pub count: u32,
    /// When last.
    pub last: Timestamp,
}

/// How long an object is left alone after its second correction in a row, in seconds; twice as long after each further one.
const FIRST_PAUSE: i64 = 1;

/// The most of that.
const LONGEST_PAUSE: i64 = 300;

/// After this long, in seconds, corrections begin to count anew.
const QUIET: i64 = 600;

impl Corrections {
    /// One more.
    pub fn another(before: Option<Self>, now: Timestamp) -> Self {
        let in_a_row = before.filter(|before| now.duration_since(before.last).as_secs() < QUIET);
        Self { count: in_a_row.map_or(0, |before| before.count).saturating_add(1), last: now }
    }

    /// When the object may be written again. The first correction is followed by another one at once.
    pub fn next(self) -> Timestamp {
        let pause = match self.count {
            0 | 1 => 0,
            count => FIRST_PAUSE.saturating_mul(2_i64.saturating_pow(count - 2)).min(LONGEST_PAUSE),
        };
        self.last.checked_add(SignedDuration::from_secs(pause)).unwrap_or(self.last)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(value: Value) -> DriftRules {
        serde_json::from_value(value).unwrap()
    }

    fn key(api_version: &str, kind: &str, name: &str) -> ObjectKey {
        ObjectKey { api_version: api_version.into(), kind: kind.into(), namespace: Some("n".into()), name: name.into() }
    }

    #[test]
    fn c_57_an_exemption_selects_by_what_it_says_and_those_that_select_add_up() {
        let rules = rules(json!({"ignore": [
            {"jsonPointers": ["/all"]},
            {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]},
            {"group": "", "managedFieldsManagers": ["core"]},
            {"namespace": "other", "jsonPointers": ["/other"]},
            {"name": "a", "managedFieldsManagers": ["a"]},
        ]}));
        let found = |api_version: &str, kind: &str, name: &str| {
            let Ignored { pointers, managers } = rules.ignored(&key(api_version, kind, name));
            (pointers.into_iter().collect::<Vec<_>>().join(" "), managers.into_iter().collect::<Vec<_>>().join(" "))
        };
        let text = |pointers: &str, managers: &str| (pointers.to_owned(), managers.to_owned());
        assert_eq!(found("apps/v1", "Deployment", "a"), text("/all /spec/replicas", "a"));
        assert_eq!(found("v1", "ConfigMap", "b"), text("/all", "core"));
        assert_eq!(found("example.org/v1", "Deployment", "b"), text("/all", ""));
    }

    #[test]
    fn c_58_the_rules_of_an_item_win_over_its_provider_configuration() {
        let continuous = json!({"continuousReconcile": {"every": "1h"}});
        let policy = |own: Option<Value>, configuration: &Value| {
            let own = own.map(rules);
            DriftRules::of(own.as_ref(), Some(configuration)).map(|rules| rules.policy)
        };
        assert_eq!(policy(None, &json!({})), None);
        assert_eq!(policy(None, &json!({"continuousReconcile": null})), None);
        assert_eq!(policy(None, &continuous), Some(DriftPolicy::Correct));
        assert_eq!(policy(Some(json!({"policy": "Ignore"})), &continuous), None);
        assert_eq!(policy(Some(json!({"policy": "Report"})), &continuous), Some(DriftPolicy::Report));
        assert_eq!(policy(Some(json!({})), &json!({})), Some(DriftPolicy::Report));
        assert_eq!(policy(Some(json!({"policy": "Correct"})), &json!({})), Some(DriftPolicy::Correct));
        assert_eq!(DriftRules::of(None, None), None);
    }

    #[test]
    fn c_60_an_object_that_is_changed_back_again_and_again_is_written_less_and_less_often() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut corrections = None;
        let mut pauses = Vec::new();
        for _ in 0..11 {
            let now = corrections.map_or(at(0), Corrections::next);
            let another = Corrections::another(corrections, now);
            pauses.push(another.next().duration_since(now).as_secs());
            corrections = Some(another);
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        let last = corrections.unwrap();
        let later = |seconds| Corrections::another(Some(last), last.last + SignedDuration::from_secs(seconds)).count;
        assert_eq!((later(599), later(600)), (12, 1));
        for count in [64, 65, 66, 200, u32::MAX] {
            assert_eq!(Corrections { count, last: at(0) }.next(), at(300), "{count}");
        }
    }
}
