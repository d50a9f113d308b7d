//! What is told of one object, and whether it counts beside what is known: feeds, reads and answers of writes overtake each other
//! (C-59).

use serde_json::Value;

/// What is told of an object, and by whom.
#[derive(Clone, Copy)]
pub(super) enum Told<'a> {
    /// A list that has begun since the object was written last has it: that counts whatever was known before, for storage may
    /// be restored (C-91).
    Listed(&'a Value),
    /// A list that has begun since the object was written last has it not.
    Unlisted,
    /// A watch, or a list that an answer may have overtaken, has it like this.
    Is(&'a Value),
    /// A watch has seen it deleted, with this version.
    Gone(u64),
    /// It was read, and nothing was told of it since that began.
    Read(Option<&'a Value>),
    /// A write of ours has answered this.
    Written(&'a Value),
}

/// The versions of an object that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenVersions {
    /// What was looked at last: a watch tells nothing older. 0 where a list had no object, so that all counts that a watch tells
    /// after it.
    pub(super) seen: u64,
    /// The newest that was heard of: the answer of a write that comes late brings nothing back.
    newest: u64,
}

impl<'a> Told<'a> {
    /// The object; `None` where there is none.
    pub(super) fn live(self) -> Option<&'a Value> {
        match self {
            Told::Listed(live) | Told::Is(live) | Told::Written(live) => Some(live),
            Told::Read(live) => live,
            Told::Unlisted | Told::Gone(_) => None,
        }
    }
}

impl SeenVersions {
    /// Takes in what is told, unless it is older than what is known; whether it is not. Where nothing is known yet,
    /// everything counts. A version that is no number is always looked at.
    pub(super) fn take(&mut self, told: Told<'_>, is_known: bool) -> bool {
        let version = match told {
            Told::Gone(version) => version,
            Told::Listed(live) | Told::Is(live) | Told::Written(live) | Told::Read(Some(live)) => version_of(live),
            Told::Unlisted | Told::Read(None) => 0,
        };
        let is_old = match told {
            Told::Listed(_) | Told::Unlisted | Told::Read(None) => false,
            Told::Gone(_) => version < self.seen,
            Told::Is(_) | Told::Read(Some(_)) => version <= self.seen,
            Told::Written(_) => version <= self.newest,
        };
        if is_known && version != 0 && is_old {
            return false;
        }
        match told {
            Told::Listed(_) => *self = Self { seen: version, newest: version },
            Told::Unlisted => self.seen = 0,
            Told::Read(None) => {}
            Told::Gone(_) | Told::Is(_) | Told::Read(Some(_)) | Told::Written(_) => {
                self.seen = version;
                self.newest = self.newest.max(version);
            }
        }
        true
    }
}

/// Resource versions are numbers that grow (KEP-5504); 0 for one that is not.
fn version_of(object: &Value) -> u64 {
    let text = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(version: u64) -> Value {
        json!({"metadata": {"resourceVersion": version.to_string()}})
    }

    /// What counts of these that are told one after the other.
    fn counted(told: &[Told<'_>]) -> Vec<bool> {
        let mut versions = SeenVersions::default();
        told.iter().enumerate().map(|(number, told)| versions.take(*told, number > 0)).collect()
    }

    #[test]
    fn c_59_a_deletion_that_is_older_than_what_is_known_says_nothing() {
        let (five, six, nine) = (at(5), at(6), at(9));
        // The watch is behind the answer of the write that has made the object anew.
        assert_eq!(
            counted(&[Told::Is(&five), Told::Written(&nine), Told::Gone(7), Told::Is(&six)]),
            [true, true, false, false]
        );
        assert_eq!(
            counted(&[Told::Is(&five), Told::Gone(5), Told::Is(&five), Told::Is(&six)]),
            [true, true, false, true]
        );
        assert_eq!(counted(&[Told::Is(&nine), Told::Gone(11), Told::Is(&nine)]), [true, true, false]);
        assert_eq!(counted(&[Told::Is(&nine), Told::Gone(0)]), [true, true], "a version that is no number");
    }

    #[test]
    fn c_59_what_a_list_had_not_is_there_as_soon_as_a_watch_tells_it_whatever_was_known() {
        let (ten, twelve) = (at(10), at(12));
        // The answer came before the list ended that had begun before the write.
        assert_eq!(counted(&[Told::Written(&ten), Told::Unlisted, Told::Is(&ten)]), [true; 3]);
        // An answer that comes late brings nothing back.
        assert_eq!(
            counted(&[Told::Is(&ten), Told::Unlisted, Told::Written(&ten), Told::Written(&twelve)]),
            [true, true, false, true]
        );
    }

    #[test]
    fn c_91_a_list_counts_whatever_was_known_and_what_follows_is_held_against_it() {
        let (three, four, nine) = (at(3), at(4), at(9));
        let told = [Told::Is(&nine), Told::Listed(&three), Told::Is(&three), Told::Written(&four), Told::Is(&four)];
        assert_eq!(counted(&told), [true, true, false, true, false]);
        assert_eq!(counted(&[Told::Read(Some(&nine)), Told::Read(None), Told::Is(&nine)]), [true, true, false]);
    }
}
