//! Stable names for what is made up in a run: generated names, uids, job ids, and what is hashed from them.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

/// The letters that an API server makes up names of.
const GENERATED: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them it puts behind `generateName`.
const GENERATED_LETTERS: usize = 5;

/// What was seen in a run, each with its stable name. The same thing has the same stable name, and another thing has another.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// Whether this was seen.
    pub fn knows(&self, seen: &str) -> bool {
        self.0.contains_key(seen)
    }

    /// Gives what was seen a stable name, which ends with `>`; where something else is called so already, with a number.
    pub fn add(&mut self, seen: &str, stable: &str) {
        if seen.is_empty() || self.knows(seen) {
            return;
        }
        let body = stable.strip_suffix('>').unwrap_or(stable);
        let numbered = (2..).map(|number| format!("{body}, {number}>"));
        let mut candidates = std::iter::once(stable.to_owned()).chain(numbered);
        let is_taken = |candidate: &String| self.0.values().any(|taken| taken == candidate);
        if let Some(stable) = candidates.find(|candidate| !is_taken(candidate)) {
            self.0.insert(seen.to_owned(), stable);
        }
    }

    /// Gives a generated name the one that is made of its `generateName`.
    pub fn add_generated(&mut self, seen: &str, generate_name: &str) {
        let stable = format!("{}<generated>", self.stable(generate_name));
        self.add(seen, &stable);
    }

    /// The same of an object that has a `generateName`.
    pub fn add_generated_of(&mut self, object: &Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        if let (Some(name), Some(begin)) = (text("/metadata/name"), text("/metadata/generateName")) {
            self.add_generated(name, begin);
        }
    }

    /// A text with stable names for all that was seen.
    pub fn stable(&self, text: &str) -> String {
        let mut seen: Vec<_> = self.0.iter().filter(|(seen, _)| text.contains(seen.as_str())).collect();
        // Names are made up of names.
        seen.sort_by_key(|(seen, _)| Reverse(seen.len()));
        seen.into_iter().fold(text.to_owned(), |text, (seen, stable)| text.replace(seen.as_str(), stable))
    }

    /// What has this stable name in this run; a name that is not made up is itself.
    pub fn seen(&self, stable: &str) -> String {
        let found = self.0.iter().find(|(_, candidate)| *candidate == stable);
        found.map_or(stable, |(seen, _)| seen).to_owned()
    }
}

/// The `generateName` that a name may have been made of.
pub fn generate_name(name: &str) -> Option<&str> {
    let (begin, letters) = name.split_at_checked(name.len().checked_sub(GENERATED_LETTERS)?)?;
    (begin.ends_with('-') && letters.bytes().all(|letter| GENERATED.contains(&letter))).then_some(begin)
}

/// Whether a name is a hash in base32.
pub fn is_hashed(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|letter| matches!(letter, b'a'..=b'z' | b'2'..=b'7'))
}

/// Whether a text is a UUID.
pub fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.bytes().all(|letter| letter == b'-' || letter.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_has_the_same_name_and_another_has_another() {
        let mut names = Names::default();
        names.add_generated("sub-pq45q", "sub-");
        names.add_generated("sub-bbbbb", "sub-");
        names.add_generated("sub-pq45q-item-t4t27", "sub-pq45q-item-");
        names.add("sub-pq45q", "<something else>");
        assert_eq!(
            names.stable("sub-bbbbb, sub-pq45q, sub-pq45q-item-t4t27-export"),
            "sub-<generated, 2>, sub-<generated>, sub-<generated>-item-<generated>-export"
        );
        assert_eq!(names.seen("sub-<generated, 2>"), "sub-bbbbb");
        assert_eq!(names.seen("root"), "root");
    }

    #[test]
    fn a_generated_name_is_told_by_its_letters() {
        assert_eq!(generate_name("hello-item-x8mv6"), Some("hello-item-"));
        assert_eq!(generate_name("hello-item-alpha"), None);
        assert_eq!(generate_name("root"), None);
    }
}
