//! The `manifests` of a configuration: objects, each with its policy and patches.

use std::collections::BTreeMap;

use orangery_sdk::{ObjectWrite, Ownership, Problem, Write, lenient::Place};
use serde_json::{Map, Value, json};

use crate::objects::{self, Object};

/// The versions of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Manifests are plain objects, all of policy `manage`.
    V1Alpha1,
    /// Manifests have a policy and patches.
    V1Alpha2,
}

/// What happens to an object (`docs/wire.md` §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Manage,
    Fallback,
    Keep,
    Immutable,
    Ignore,
}

const POLICIES: [(&str, Policy); 5] = [
    ("manage", Policy::Manage),
    ("fallback", Policy::Fallback),
    ("keep", Policy::Keep),
    ("immutable", Policy::Immutable),
    ("ignore", Policy::Ignore),
];

/// One object and what the configuration says of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    object: Object,
    terms: Terms,
}

/// What an entry of `manifests` says of its object, or of every object of its `List`.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    policy: Policy,
    at_creation: Option<Value>,
    before_deletion: Option<Value>,
    after_deployment: Option<Value>,
}

/// The manifests of a configuration, lists expanded, in order. Objects of policy `ignore` are left out.
pub(crate) fn manifests(config: &Place<'_>, version: Version) -> Result<Vec<Manifest>, Problem> {
    let mut manifests: Vec<Manifest> = Vec::new();
    let mut places = BTreeMap::new();
    for entry in config.items_of("manifests")? {
        let (object, terms) = match version {
            Version::V1Alpha1 => (entry, Terms::plain()),
            Version::V1Alpha2 => (entry.required("manifest")?, Terms::read(&entry)?),
        };
        if terms.policy == Policy::Ignore {
            continue;
        }
        for object in objects::expand(&object)? {
            let manifest = Manifest { object, terms: terms.clone() };
            let identity = manifest.object.identity();
            match places.get(&identity).and_then(|index: &usize| manifests.get(*index)) {
                Some(earlier) if earlier.says_the_same_as(&manifest) => {}
                Some(earlier) => return Err(manifest.object.contradicts(&earlier.object)),
                None => {
                    places.insert(identity, manifests.len());
                    manifests.push(manifest);
                }
            }
        }
    }
    Ok(manifests)
}

impl Terms {
    fn plain() -> Self {
        Terms { policy: Policy::Manage, at_creation: None, before_deletion: None, after_deployment: None }
    }

    fn read(entry: &Place<'_>) -> Result<Self, Problem> {
        let policy = match entry.text_of("policy")? {
            Some(_) => entry.required("policy")?.one_of(&POLICIES)?,
            None => Policy::Manage,
        };
        let annotated = |name: &str| {
            let annotations = entry.texts_of(name)?;
            Ok(annotations.map(|annotations| json!({"metadata": {"annotations": annotations}})))
        };
        let patch = |name: &str| entry.field(name)?.map(|patch| patch.object()).transpose();
        let mut before_deletion = annotated("annotateBeforeDelete")?;
        if let Some(patch) = patch("patchBeforeDelete")? {
            overlay(before_deletion.get_or_insert_with(|| json!({})), patch);
        }
        Ok(Terms {
            policy,
            at_creation: annotated("annotateBeforeCreate")?,
            before_deletion,
            after_deployment: patch("patchAfterDeployment")?.cloned().map(Value::Object),
        })
    }
}

impl Manifest {
    fn says_the_same_as(&self, other: &Self) -> bool {
        self.object.value == other.object.value && self.terms == other.terms
    }

    fn owned(&self) -> Option<Ownership> {
        match self.terms.policy {
            Policy::Manage | Policy::Immutable => Some(Ownership::Managed),
            Policy::Fallback => Some(Ownership::Fallback),
            Policy::Keep => Some(Ownership::Kept),
            Policy::Ignore => None,
        }
    }

    /// The write of the object; `strategy` is for objects that exist already.
    pub(crate) fn write(&self, strategy: Write) -> Option<ObjectWrite> {
        let how = if self.terms.policy == Policy::Immutable { Write::Create } else { strategy };
        let mut write = ObjectWrite::new(&self.object.value, how);
        write.owned = self.owned()?;
        write.at_creation = self.terms.at_creation.as_ref().map(Value::to_string);
        write.before_deletion = self.terms.before_deletion.as_ref().map(Value::to_string);
        Some(write)
    }

    /// The overlay after readiness and exports. An immutable object is never touched again.
    pub(crate) fn patch_after_deployment(&self) -> Option<ObjectWrite> {
        let patch = self.terms.after_deployment.as_ref()?.as_object()?;
        if self.terms.policy == Policy::Immutable {
            return None;
        }
        let mut object = Value::Object(patch.clone());
        overlay(&mut object, &self.object.identifying_fields());
        let mut write = ObjectWrite::new(&object, Write::Overlay);
        write.owned = self.owned()?;
        write.before_deletion = self.terms.before_deletion.as_ref().map(Value::to_string);
        Some(write)
    }
}

/// Lays a document over another: objects field by field, anything else replaced.
fn overlay(below: &mut Value, above: &Map<String, Value>) {
    if !below.is_object() {
        *below = Value::Object(Map::new());
    }
    let Some(fields) = below.as_object_mut() else { return };
    for (name, value) in above {
        match (fields.get_mut(name), value) {
            (Some(field), Value::Object(value)) if field.is_object() => overlay(field, value),
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}
