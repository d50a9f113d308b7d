//! References to resources, relative to a component version: `cd://componentReferences/…/resources/…`, or the YAML form
//! of the Open Component Model (`docs/wire.md` §4.2, §4.5).

use std::collections::BTreeMap;

use serde::Deserialize;

use orangery_core::{
    lenient::{self, DecodeError},
    yaml::{self, YamlError},
};

/// A resource, relative to a component version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceReference {
    /// The identity of the resource; always with `name`.
    pub resource: BTreeMap<String, String>,
    /// The identities of the component references to follow, from the component version on.
    pub reference_path: Vec<BTreeMap<String, String>>,
}

/// The longest reference, in bytes.
const LONGEST: usize = 2083;
/// The most component references to follow.
const DEEPEST: usize = 64;

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Too long, or too deep.
    #[error("the resource reference is longer than {LONGEST} bytes or {DEEPEST} component references")]
    TooLong,
    /// Not the path that it should be.
    #[error(
        "the resource reference {reference:?} {fault}; write cd://resources/<name> or cd://componentReferences/<reference>/resources/<name>"
    )]
    Path {
        /// The reference.
        reference: String,
        /// What is wrong.
        fault: String,
    },
    /// Not YAML.
    #[error("the resource reference is not YAML: {0}")]
    Yaml(YamlError),
    /// YAML of another form.
    #[error("the resource reference has a wrong form: {0}")]
    Form(DecodeError),
    /// No name.
    #[error("the resource reference has no resource.name; set it")]
    NoName,
}

impl ResourceReference {
    /// A resource of the component version itself.
    pub fn named(name: &str) -> Self {
        Self { resource: named(name), reference_path: Vec::new() }
    }

    /// The name of the resource.
    pub fn name(&self) -> &str {
        self.resource.get("name").map_or("", String::as_str)
    }

    /// Reads either form.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > LONGEST {
            return Err(ReferenceError::TooLong);
        }
        let reference = match text.strip_prefix("cd://") {
            Some(path) => Self::path(text, path)?,
            None => {
                let value = yaml::decode(text).map_err(ReferenceError::Yaml)?;
                lenient::decode(&value).map_err(ReferenceError::Form)?
            }
        };
        if reference.reference_path.len() > DEEPEST {
            return Err(ReferenceError::TooLong);
        }
        if reference.name().is_empty() {
            return Err(ReferenceError::NoName);
        }
        Ok(reference)
    }

    fn path(text: &str, path: &str) -> Result<Self, ReferenceError> {
        let fault = |fault: &str| ReferenceError::Path { reference: text.to_owned(), fault: fault.to_owned() };
        let path = path.split('#').next().unwrap_or_default();
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let mut reference = Self::default();
        let mut pairs = steps.chunks(2).peekable();
        while let Some(pair) = pairs.next() {
            let [keyword, name] = pair else {
                return Err(fault("has a keyword without a name"));
            };
            match *keyword {
                "componentReferences" => reference.reference_path.push(named(name)),
                "resources" if pairs.peek().is_none() => {
                    reference.resource = named(name);
                    return Ok(reference);
                }
                "resources" => return Err(fault("goes on after a resource")),
                other => return Err(fault(&format!("has an unknown keyword {other:?}"))),
            }
        }
        Err(fault("names a component, where a resource is wanted"))
    }
}

fn named(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("name".to_owned(), name.to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_reference_a_reference_has_a_length_and_a_depth() {
        let of = |depth: usize, length: usize| {
            let path = format!("cd://{}resources/", "componentReferences/a/".repeat(depth));
            let filling = "x".repeat(length - path.len());
            ResourceReference::parse(&(path + &filling)).map(|reference| reference.reference_path.len())
        };
        assert_eq!(of(DEEPEST, LONGEST), Ok(DEEPEST));
        assert_eq!(of(DEEPEST + 1, LONGEST), Err(ReferenceError::TooLong));
        assert_eq!(of(0, LONGEST + 1), Err(ReferenceError::TooLong));
    }
}
