//! Strings that name something, each a type of its own, so that none is passed for another.

use std::{
    borrow::{Borrow, Cow},
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    str::FromStr,
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{is_label, is_path_segment};

/// The most characters of a namespace (RFC 1123).
const LONGEST_NAMESPACE: usize = 63;
/// The most characters of an object's name.
const LONGEST_NAME: usize = 253;

/// The text of a name: a clone copies no characters.
#[derive(Clone)]
enum Characters {
    /// Of the program.
    Static(&'static str),
    /// Read or made.
    Shared(Arc<str>),
}

impl Characters {
    fn as_str(&self) -> &str {
        match self {
            Characters::Static(text) => text,
            Characters::Shared(text) => text,
        }
    }
}

/// Defines a string that is a type of its own: on the wire, in maps, in messages and in `Debug` it is its text.
macro_rules! string_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name(Characters);

        impl $name {
            /// The empty one: on the wire it says that there is none.
            pub const EMPTY: &'static Self = &Self(Characters::Static(""));

            /// Of a text of the program; it is not checked.
            pub const fn from_static(text: &'static str) -> Self {
                Self(Characters::Static(text))
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_static("")
            }
        }

        /// Of a text that was checked where it comes from, as everything that an API server answers.
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Characters::Shared(text.into()))
            }
        }

        /// Of a text that was checked where it comes from, as everything that an API server answers.
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Characters::Shared(text.into()))
            }
        }

        /// Of a text that was checked where it comes from, as everything that an API server answers.
        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                text.as_str().into()
            }
        }

        /// Of what a type says of itself.
        impl From<Cow<'static, str>> for $name {
            fn from(text: Cow<'static, str>) -> Self {
                match text {
                    Cow::Borrowed(text) => Self::from_static(text),
                    Cow::Owned(text) => text.into(),
                }
            }
        }

        /// Of one that is borrowed.
        impl From<&$name> for $name {
            fn from(other: &$name) -> Self {
                other.clone()
            }
        }

        /// For what has strings on the wire.
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        /// For what has strings on the wire.
        impl From<&$name> for String {
            fn from(name: &$name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                self.as_str()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl Eq for $name {}

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        /// As its text, which it is looked up by in maps.
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self.as_str(), f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

string_type! {
    /// The id of one run of a tree, the same from root to leaf (INS-07). An empty one, on the wire, is none.
    ///
    /// It is no other string, though it can be read as one:
    ///
    /// ```compile_fail,E0308
    /// use orangery_core::name::{JobId, Namespace};
    /// fn ended(_: &JobId) {}
    /// ended(&Namespace::from_static("default"));
    /// ```
    JobId
}

string_type! {
    /// The namespace of an object. An empty one, on the wire, is none: the object is of the cluster.
    Namespace
}

string_type! {
    /// The name of an object of Kubernetes.
    ObjectName
}

string_type! {
    /// The kind of an object, such as `Deployment`.
    Kind
}

string_type! {
    /// Group and version of an object, such as `apps/v1`, or `v1` for the core group.
    ///
    /// It is no kind, though both are texts that stand beside each other:
    ///
    /// ```compile_fail,E0308
    /// use orangery_core::name::{ApiVersion, Kind};
    /// fn served(_: &ApiVersion, _: &Kind) {}
    /// served(&Kind::from_static("Pod"), &ApiVersion::from_static("v1"));
    /// ```
    ApiVersion
}

impl ApiVersion {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version without its group.
    pub fn version(&self) -> &str {
        self.split_once('/').map_or(self.as_str(), |(_, version)| version)
    }
}

/// Why a text that a user gave names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It cannot be a namespace.
    #[error(
        "{0:?} cannot be a namespace: at most {LONGEST_NAMESPACE} lower case letters, digits and `-`, the first and the \
         last a letter or a digit"
    )]
    Namespace(String),
    /// It cannot be the name of an object.
    #[error(
        "{0:?} cannot be the name of an object: at most {LONGEST_NAME} characters, none of them `/`, `%` or a blank, and \
         neither `.` nor `..`"
    )]
    Object(String),
}

/// Of what a user gave: a DNS label (RFC 1123).
impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_label(text, LONGEST_NAMESPACE) { Ok(text.into()) } else { Err(NameError::Namespace(text.to_owned())) }
    }
}

/// Of what a user gave: anything that can stand in the path of a request; what more a kind asks for, the server says.
impl FromStr for ObjectName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let good = text.len() <= LONGEST_NAME && is_path_segment(text);
        if good { Ok(text.into()) } else { Err(NameError::Object(text.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_its_text_on_the_wire_and_in_messages() {
        let name = ObjectName::from_static("a\"b");
        assert_eq!(json!(name), json!("a\"b"));
        assert_eq!((format!("{name:>5}"), format!("{name:?}")), ("  a\"b".to_owned(), r#""a\"b""#.to_owned()));
        assert_eq!(serde_json::from_value::<ObjectName>(json!("a\"b")).unwrap(), name);
        assert_eq!(
            serde_json::from_value::<ObjectName>(json!(1)).unwrap_err().to_string(),
            serde_json::from_value::<String>(json!(1)).unwrap_err().to_string()
        );
    }

    #[test]
    fn a_name_is_found_and_ordered_by_its_text_wherever_it_is_from() {
        let read = JobId::from("b".to_owned());
        assert_eq!((&read, read.as_str()), (&JobId::from_static("b"), "b"));
        assert_eq!(HashMap::from([(read.clone(), 1)]).get("b"), Some(&1));
        assert_eq!(BTreeMap::from([(read.clone(), 1), (JobId::from_static("a"), 2)]).get("b"), Some(&1));
        assert!(read > JobId::from_static("a") && read < JobId::from_static("ba"));
        assert!(JobId::default().is_empty() && *JobId::EMPTY == JobId::default());
    }

    #[test]
    fn an_api_version_is_a_group_and_a_version() {
        let parts = |text: &'static str| {
            let api_version = ApiVersion::from_static(text);
            (api_version.group().to_owned(), api_version.version().to_owned())
        };
        assert_eq!(parts("v1"), (String::new(), "v1".to_owned()));
        assert_eq!(parts("apps/v1"), ("apps".to_owned(), "v1".to_owned()));
    }

    #[test]
    fn a_clone_shares_its_characters() {
        let name = ObjectName::from("long-enough-to-be-copied");
        assert!(std::ptr::eq(name.as_str(), name.clone().as_str()));
    }

    #[test]
    fn what_a_user_gives_as_a_namespace_is_a_label() {
        assert_eq!("kube-system".parse(), Ok(Namespace::from_static("kube-system")));
        for bad in ["", "a.b", "A", "-a", "a/b", &"a".repeat(64)] {
            assert_eq!(bad.parse::<Namespace>(), Err(NameError::Namespace(bad.to_owned())));
        }
        let message = NameError::Namespace("a b".to_owned()).to_string();
        assert!(message.starts_with("\"a b\" cannot be a namespace: at most 63 lower case letters"), "{message}");
    }

    #[test]
    fn what_a_user_gives_as_a_name_leads_nowhere_else() {
        assert_eq!("system:node".parse(), Ok(ObjectName::from_static("system:node")));
        for bad in ["", "..", "a/b", "a b", "a%2fb", &"a".repeat(254)] {
            assert_eq!(bad.parse::<ObjectName>(), Err(NameError::Object(bad.to_owned())));
        }
        let message = NameError::Object("..".to_owned()).to_string();
        assert!(message.starts_with("\"..\" cannot be the name of an object: at most 253 characters"), "{message}");
    }
}
