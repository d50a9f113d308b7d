//! Whether the names of a definition are free, and what its status says about it.

use serde_json::{Value, json};

use crate::object::{self, items, text};

/// Puts the conditions, accepted names and stored versions into a definition's status.
/// `taken` says why the names are not free, if they are not.
pub(crate) fn establish(crd: &mut Value, taken: Option<&str>, now: &str) {
    let conditions = match taken {
        None => [
            ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        Some(why) => [
            ("NamesAccepted", "False", "NameConflict", why),
            ("Established", "False", "NotAccepted", "not all names are accepted"),
        ],
    };
    let mut listed = items(crd, &["status", "conditions"]).to_vec();
    for (of, status, reason, message) in conditions {
        let before = listed.iter().position(|condition| text(condition, &["type"]) == Some(of));
        let since = before.and_then(|at| listed.get(at)).filter(|c| text(c, &["status"]) == Some(status));
        let since = since.and_then(|c| text(c, &["lastTransitionTime"])).unwrap_or(now).to_owned();
        let condition =
            json!({"type": of, "status": status, "reason": reason, "message": message, "lastTransitionTime": since});
        match before.and_then(|at| listed.get_mut(at)) {
            Some(place) => *place = condition,
            None => listed.push(condition),
        }
    }
    object::set(crd, &["status", "conditions"], Value::Array(listed));
    if taken.is_none() {
        let names = object::at(crd, &["spec", "names"]).cloned().unwrap_or_default();
        object::set(crd, &["status", "acceptedNames"], names);
    }
    let mut stored = items(crd, &["status", "storedVersions"]).to_vec();
    let is_storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    let storage = items(crd, &["spec", "versions"]).iter().find(is_storage).and_then(|version| version.get("name"));
    if let Some(storage) = storage.filter(|storage| !stored.contains(storage)) {
        stored.push(storage.clone());
    }
    object::set(crd, &["status", "storedVersions"], Value::Array(stored));
}

/// Orders versions as Kubernetes prefers them: general before beta before alpha, then by number; others last.
pub(super) fn priority(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at_checked(digits)?;
        let major = major.parse().ok()?;
        match rest {
            "" => Some((3, major, 0)),
            rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => Some((2, major, minor.parse().ok()?)),
                (_, Some(minor)) => Some((1, major, minor.parse().ok()?)),
                (None, None) => None,
            },
        }
    };
    let (stability, major, minor) = parse().unwrap_or((0, 0, 0));
    (stability, major, minor, std::cmp::Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn versions_are_preferred_as_kubernetes_does() {
        let mut versions = ["foo1", "v1alpha1", "v1", "v2beta1", "v10", "v1beta2", "foo10", "v11alpha2"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "foo1", "foo10"]);
    }
}
