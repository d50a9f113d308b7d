//! Which operators write the status of objects. Two with different Leases over the same objects do everything twice, and neither
//! would notice: each finds what it wants to write. The names by which they write it tell them apart (C-330).

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::Time};
use orangery_core::{
    digest,
    name::{Namespace, ObjectName},
};
use serde::Deserialize;
use tokio::time::Instant;

/// The field manager of writes to our own kinds.
pub(crate) const FIELD_MANAGER: &str = "orangery";
/// The most bytes of the name of a field manager, as API servers have it.
const LONGEST_AUTHOR: usize = 128;
/// Other operators that are known: whoever may write a status may write it under any name.
const MOST_OTHERS: usize = 64;
/// How often one is told of that goes on.
const TOLD_EVERY: Duration = Duration::from_secs(60 * 60);

/// An operator that wrote the status of an object, and when, by the clock of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusAuthor {
    manager: String,
    at: Timestamp,
}

/// Is told of a write of another operator: the object, and the Lease of who wrote.
type TellOfAuthor = Box<dyn Fn(&ObjectReference, &str) + Send + Sync>;

/// Those that are seen, by an operator that has a Lease.
pub struct StatusAuthors {
    own: String,
    /// When it got its Lease.
    since: Timestamp,
    /// Protects what is known of the others. Held for one look.
    others: Mutex<BTreeMap<String, OtherOperator>>,
    writes: AtomicU64,
    tell: TellOfAuthor,
}

/// Another operator.
struct OtherOperator {
    /// Its newest write that is known.
    newest: Timestamp,
    told: Option<Instant>,
}

impl StatusAuthors {
    /// The name of the operator that holds a Lease is that of the Lease: whoever takes that over goes on as the same. `since` is when
    /// it was got, by the clock of the API server, as far as that is known. `tell` is told of writes of others after that, with the
    /// object and the Lease of who wrote.
    pub fn of_lease(
        (namespace, lease): (&Namespace, &ObjectName),
        since: Option<Timestamp>,
        tell: impl Fn(&ObjectReference, &str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let named = format!("{FIELD_MANAGER}/{namespace}/{lease}");
        let own = if named.len() <= LONGEST_AUTHOR {
            named
        } else {
            format!("{FIELD_MANAGER}/{}", digest::sha256(named.as_bytes()))
        };
        let since = since.unwrap_or(Timestamp::MIN);
        Arc::new(Self { own, since, others: Mutex::default(), writes: AtomicU64::new(0), tell: Box::new(tell) })
    }

    /// The field manager of this operator's writes of status.
    pub(crate) fn name(&self) -> &str {
        &self.own
    }

    /// How often others have written while this operator did.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// What stands in a list may be of long ago.
    pub(crate) fn listed(&self, authors: &[StatusAuthor]) {
        let mut others = self.others();
        for StatusAuthor { manager, at } in self.without_own(authors) {
            if let Some(other) = others.get_mut(manager) {
                other.newest = other.newest.max(*at);
            } else if others.len() < MOST_OTHERS {
                others.insert(manager.clone(), OtherOperator { newest: *at, told: None });
            }
        }
    }

    /// An object has changed. What is newer than all that was listed was written since this operator is active, unless it was copied
    /// from elsewhere, as out of a backup: then it is older than the Lease.
    pub(crate) fn changed(&self, authors: &[StatusAuthor], object: impl FnOnce() -> ObjectReference) {
        let mut to_tell = None;
        {
            let mut others = self.others();
            for StatusAuthor { manager, at } in self.without_own(authors) {
                let is_known = others.contains_key(manager);
                if !is_known && others.len() >= MOST_OTHERS {
                    continue;
                }
                let never = OtherOperator { newest: self.since, told: None };
                let other = others.entry(manager.clone()).or_insert(never);
                if *at <= other.newest.max(self.since) {
                    continue;
                }
                other.newest = *at;
                self.writes.fetch_add(1, Ordering::Relaxed);
                if other.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
                    other.told = Some(Instant::now());
                    to_tell = Some(manager.clone());
                }
            }
        }
        if let Some(manager) = to_tell {
            let lease = manager.strip_prefix(FIELD_MANAGER).unwrap_or_default().trim_start_matches('/');
            (self.tell)(&object(), lease);
        }
    }

    fn without_own<'a>(&self, authors: &'a [StatusAuthor]) -> impl Iterator<Item = &'a StatusAuthor> {
        authors.iter().filter(|author| author.manager != self.own)
    }

    fn others(&self) -> MutexGuard<'_, BTreeMap<String, OtherOperator>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry of the managed fields of an object, without the fields.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ManagedFieldsHead {
    manager: Option<String>,
    subresource: Option<String>,
    time: Option<Time>,
}

/// The operators that have written the status of an object with these managed fields.
pub(crate) fn authors(managed_fields: Vec<ManagedFieldsHead>) -> Vec<StatusAuthor> {
    let author = |entry: ManagedFieldsHead| {
        let manager = entry.manager.filter(|manager| manager.len() <= LONGEST_AUTHOR)?;
        let of_operator = manager == FIELD_MANAGER || manager.strip_prefix(FIELD_MANAGER)?.starts_with('/');
        let is_status = entry.subresource.as_deref() == Some("status");
        Some(StatusAuthor { at: entry.time?.0, manager }).filter(|_| of_operator && is_status)
    };
    managed_fields.into_iter().filter_map(author).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(manager: &str, second: i64) -> Vec<StatusAuthor> {
        vec![StatusAuthor { manager: manager.to_owned(), at: Timestamp::from_second(second).unwrap() }]
    }

    /// Authors of an operator with the Lease `a/one`, and what it is told.
    fn observed() -> (Arc<StatusAuthors>, Arc<Mutex<Vec<String>>>) {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let to = Arc::clone(&told);
        let tell = move |object: &ObjectReference, lease: &str| {
            to.lock().unwrap().push(format!("{} {lease}", object.name.as_deref().unwrap_or_default()));
        };
        (StatusAuthors::of_lease((&"a".into(), &"one".into()), Timestamp::from_second(5).ok(), tell), told)
    }

    fn object() -> ObjectReference {
        ObjectReference { name: Some("x".to_owned()), ..ObjectReference::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn c_330_an_operator_that_writes_beside_this_one_is_told_once_an_hour() {
        let (authors, told) = observed();
        let changed = |manager: &str, second| authors.changed(&written(manager, second), object);
        authors.listed(&written("orangery/a/two", 10));
        changed("orangery/a/one", 11);
        changed("orangery/a/two", 10);
        changed("orangery/a/two", 9);
        assert_eq!((authors.writes(), told.lock().unwrap().len()), (0, 0), "its own, and what is older than the list");
        changed("orangery/a/two", 11);
        changed("orangery/a/two", 12);
        changed("orangery/a/two", 12);
        changed("orangery", 5);
        changed("orangery", 6);
        assert_eq!(
            (authors.writes(), told.lock().unwrap().as_slice()),
            (3, &["x a/two".to_owned(), "x ".to_owned()][..])
        );
        tokio::time::advance(TOLD_EVERY).await;
        changed("orangery/a/two", 12);
        changed("orangery/a/two", 13);
        assert_eq!((authors.writes(), told.lock().unwrap().len()), (4, 3));
    }

    #[test]
    fn c_330_limits_watch_so_many_other_operators_are_known() {
        let (authors, told) = observed();
        for number in 0..=MOST_OTHERS {
            authors.listed(&written(&format!("orangery/a/l{number}"), 6));
            authors.changed(&written(&format!("orangery/a/c{number}"), 6), object);
        }
        assert_eq!((authors.others().len(), told.lock().unwrap().len()), (MOST_OTHERS, MOST_OTHERS / 2));
    }

    #[test]
    fn c_330_the_author_of_a_status_stands_in_the_managed_fields_of_the_object() {
        let entry = |manager: &str, subresource: &str, time: &str| {
            json!({"manager": manager, "subresource": subresource,
            "time": time, "operation": "Update", "fieldsV1": {"f:status": {}}})
        };
        let fields = json!([
            entry("orangery/a/one", "status", "1970-01-01T00:00:07Z"), entry("orangery", "status", "1970-01-01T00:00:08Z"),
            entry("orangery", "", "1970-01-01T00:00:09Z"), entry("orangeryx", "status", "1970-01-01T00:00:09Z"),
            entry("kubectl", "status", "1970-01-01T00:00:09Z"), {"manager": "orangery", "subresource": "status"}, {},
            entry(&format!("orangery/{}", "x".repeat(LONGEST_AUTHOR)), "status", "1970-01-01T00:00:09Z"),
        ]);
        let found = authors(serde_json::from_value(fields).unwrap());
        assert_eq!(found, [written("orangery/a/one", 7), written("orangery", 8)].concat());
        let long = StatusAuthors::of_lease((&"a".into(), &"x".repeat(200).into()), None, |_, _| {});
        assert!(long.name().len() <= LONGEST_AUTHOR && long.name().starts_with("orangery/sha256:"), "{}", long.name());
    }
}
