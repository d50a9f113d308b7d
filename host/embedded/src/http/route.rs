//! What a resource path names.

/// The subresources that there are.
pub(super) const SUBRESOURCES: [&str; 6] = ["eviction", "finalize", "log", "scale", "status", "token"];

/// The parts of a path below `/api` or `/apis`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: Option<String>,
    /// Empty for the version itself.
    pub(super) plural: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

impl Route {
    /// Reads a path; none if it is not one of a resource, a version or a group.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let decoded: Vec<String> = path.trim_matches('/').split('/').map(decode).collect::<Option<_>>()?;
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group] => (*group, "", [].as_slice()),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // `namespaces/x/status` is about the namespace, `namespaces/x/pods` about what lies in it.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [] => ("", None, None),
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some((*name).to_owned()), None),
            [plural, name, subresource] => (*plural, Some((*name).to_owned()), Some((*subresource).to_owned())),
            _ => return None,
        };
        let (group, version, plural) = (group.to_owned(), version.to_owned(), plural.to_owned());
        Some(Self { group, version, namespace, plural, name, subresource })
    }
}

/// Undoes percent encoding.
fn decode(part: &str) -> Option<String> {
    if !part.contains('%') {
        return Some(part.to_owned());
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: [&str; 6]) {
        let route = Route::parse(path).unwrap();
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let found = [
            route.group,
            route.version,
            text(&route.namespace),
            route.plural,
            text(&route.name),
            text(&route.subresource),
        ];
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn a_path_names_a_resource() {
        check("/api/v1", ["", "v1", "", "", "", ""]);
        check("/apis/apps", ["apps", "", "", "", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check("/api/v1/namespaces/x", ["", "v1", "", "namespaces", "x", ""]);
        check("/api/v1/namespaces/x/finalize", ["", "v1", "", "namespaces", "x", "finalize"]);
        check("/api/v1/namespaces/x/pods", ["", "v1", "x", "pods", "", ""]);
        check("/apis/a.b/v1/namespaces/x/cs/n%3Am/status", ["a.b", "v1", "x", "cs", "n:m", "status"]);
    }

    #[test]
    fn another_path_names_none() {
        assert_eq!(Route::parse("/"), None);
        assert_eq!(Route::parse("/other/v1"), None);
        assert_eq!(Route::parse("/api/v1/pods/%zz"), None);
    }
}
