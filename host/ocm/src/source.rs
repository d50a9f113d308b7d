//! Which component version an installation asks for (`spec.componentDescriptor`).

use std::{fmt, sync::Arc};

use orangery_core::lenient;
use serde::Deserialize;
use serde_json::Value;

/// A component version by name (`spec.componentDescriptor.ref`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionReference {
    /// Where it is; `None` leaves it to the Context. Shared: each reference of a component version carries that of the version
    /// (C-292).
    pub repository_context: Option<Arc<Value>>,
    /// The component's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl fmt::Display for VersionReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.version)
    }
}

/// `spec.componentDescriptor` of an installation.
#[derive(Clone, Debug, PartialEq)]
pub enum ComponentSource {
    /// By name.
    Reference(VersionReference),
    /// Written in the installation: shared, as each sub-installation may have the same one (C-288).
    Inline(Arc<Value>),
}

/// `componentDescriptor`, as an installation or a deploy item has it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WrittenSource {
    #[serde(rename = "ref")]
    reference: Option<WrittenReference>,
    inline: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WrittenReference {
    repository_context: Option<Arc<Value>>,
    component_name: String,
    version: String,
}

impl ComponentSource {
    /// Reads `{"ref": {"repositoryContext", "componentName", "version"}}` or `{"inline": DESCRIPTOR}`. The error is one sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        let unusable = |why: String| {
            format!(
                "the component version cannot be found: {why}; write what an Installation has in componentDescriptor"
            )
        };
        let value: Value = serde_json::from_str(text).map_err(|_| unusable("it is not said in JSON".to_owned()))?;
        let written: WrittenSource = lenient::decode(&value).map_err(|error| unusable(error.to_string()))?;
        match written {
            WrittenSource {
                reference: Some(WrittenReference { repository_context, component_name, version }),
                inline: None,
            } => {
                for (field, text) in [("componentName", &component_name), ("version", &version)] {
                    if text.is_empty() {
                        return Err(unusable(format!("ref has no {field}")));
                    }
                }
                Ok(Self::Reference(VersionReference { repository_context, name: component_name, version }))
            }
            WrittenSource { reference: None, inline: Some(descriptor) } => Ok(Self::Inline(descriptor.into())),
            WrittenSource { .. } => Err(unusable("it needs exactly one of ref and inline".to_owned())),
        }
    }

    /// The name of the component; empty where an inline descriptor has none.
    pub fn name(&self) -> &str {
        match self {
            Self::Reference(reference) => &reference.name,
            // Schema v2, and v3alpha1.
            Self::Inline(descriptor) => ["/component/name", "/metadata/name"]
                .iter()
                .find_map(|place| descriptor.pointer(place)?.as_str())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_276_a_component_version_is_named_or_written() {
        let read = |value: Value| ComponentSource::read(&value.to_string());
        let named = json!({"ref": {"repositoryContext": {"type": "ociRegistry"}, "componentName": "example.org/a", "version": "1"}});
        let reference = VersionReference {
            repository_context: Some(json!({"type": "ociRegistry"}).into()),
            name: "example.org/a".to_owned(),
            version: "1".to_owned(),
        };
        assert_eq!(read(named), Ok(ComponentSource::Reference(reference)));
        let descriptor = json!({"component": {"name": "example.org/b"}});
        let inline = read(json!({"inline": descriptor})).unwrap();
        assert_eq!((inline.name(), &inline), ("example.org/b", &ComponentSource::Inline(descriptor.into())));
        assert_eq!(ComponentSource::Inline(json!({"metadata": {"name": "c"}}).into()).name(), "c");
        let end = "; write what an Installation has in componentDescriptor";
        for (value, why) in [
            (json!({}), "it needs exactly one of ref and inline"),
            (
                json!({"ref": {"componentName": "a", "version": "1"}, "inline": {}}),
                "it needs exactly one of ref and inline",
            ),
            (json!({"ref": {"componentName": "a"}}), "ref has no version"),
            (json!({"ref": {"version": "1"}}), "ref has no componentName"),
        ] {
            assert_eq!(read(value), Err(format!("the component version cannot be found: {why}{end}")));
        }
        let no_json = ComponentSource::read("{").unwrap_err();
        assert_eq!(no_json, format!("the component version cannot be found: it is not said in JSON{end}"));
    }
}
