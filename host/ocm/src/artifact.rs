//! Content by reference, as deployers ask for it (`wit/deployer/0.1.0/artifacts.wit`).

use std::{collections::BTreeMap, sync::Arc};

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::Value;

use super::{ComponentReference, ComponentSource};
use orangery_core::{digest, error::Fault, lenient, port::BoxFuture, yaml};

/// Content that was found. What it is called never has another content; it is fetched when it is asked for.
pub trait Artifact: Send + Sync {
    /// `sha256:…` of the content.
    fn digest(&self) -> &str;
    /// Its media type, as the registry or the server gives it; may be empty.
    fn media_type(&self) -> &str;
    /// Its length in bytes.
    fn size(&self) -> u64;
    /// All of it, compared with its digest.
    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>>;
    /// The same where it is on this machine, without waiting for a server or for memory: for those who have memory for it.
    fn at_hand(&self) -> BoxFuture<'_, Option<Arc<Vec<u8>>>> {
        Box::pin(async { self.content().await.ok() })
    }
    /// Whether all of it is in memory already, for as long as this is.
    fn is_in_memory(&self) -> bool {
        false
    }
    /// Another layer of the same artifact, such as the provenance of a chart; `None` where it has none of this media type.
    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a>;
}

/// What a search for a layer ends with.
pub type LayerFuture<'a> = BoxFuture<'a, Result<Option<Arc<dyn Artifact>>, Fault>>;

/// What a search for content ends with.
pub type ArtifactFuture<'a> = BoxFuture<'a, Result<Arc<dyn Artifact>, Fault>>;

/// Content of registries and web servers, asked for with the credentials of one Context. Grants are checked by the caller.
pub trait Artifacts: Send + Sync {
    /// The WebAssembly component of an artifact: its layer of media type `application/wasm`. The manifest has the digest
    /// of the reference, or the answer is a fault.
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a>;
    /// An artifact of a registry, as it is now: a chart where it has one, else its first layer.
    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a>;
    /// A file of a web server.
    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a>;
    /// A chart of a classic repository, or of the registry where the address begins with `oci://`.
    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a>;
}

/// Resources of component versions, by the key that the template function `getResourceKey` gives.
pub trait Resources: Send + Sync {
    /// The content of a resource. Of an artifact in a registry it is the layer that [`Artifacts::oci`] gives.
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a>;
    /// The descriptors of a component version and of all that it refers to, as one JSON document: what [`crate::list`] makes of
    /// them in schema v2.
    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a>;
}

/// A document that was made here and not fetched.
#[derive(Debug)]
pub struct Document {
    digest: String,
    bytes: Arc<Vec<u8>>,
}

impl Document {
    /// A JSON document.
    pub fn json(value: &Value) -> Self {
        let bytes = value.to_string().into_bytes();
        Self { digest: digest::sha256(&bytes), bytes: Arc::new(bytes) }
    }
}

impl Artifact for Document {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn media_type(&self) -> &str {
        "application/json"
    }

    fn size(&self) -> u64 {
        self.bytes.len().try_into().unwrap_or(u64::MAX)
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        Box::pin(async { Ok(Arc::clone(&self.bytes)) })
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn layer<'a>(&'a self, _: &'a str) -> LayerFuture<'a> {
        Box::pin(async { Ok(None) })
    }
}

/// The global identity of a resource (`docs/wire.md` §4.5): what [`crate::resource_key`] writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResourceKey {
    /// The component version that has it.
    pub component: KeyComponent,
    /// The identity of the resource in it; always with `name`.
    pub resource: BTreeMap<String, String>,
}

/// The component version of a [`ResourceKey`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyComponent {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The longest key, in bytes.
const LONGEST: usize = 4096;

impl ResourceKey {
    /// Reads a key: YAML in base64. The error is one sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        let unusable = |why: String| {
            format!(
                "the resource key {:?} cannot be used: {why}; write what the template function getResourceKey gives",
                text.chars().take(200).collect::<String>()
            )
        };
        if text.len() > LONGEST {
            return Err(unusable(format!("it is longer than {LONGEST} bytes")));
        }
        let bytes = BASE64.decode(text.trim().as_bytes()).map_err(|_| unusable("it is no base64".to_owned()))?;
        let document = String::from_utf8(bytes).map_err(|_| unusable("it is no UTF-8".to_owned()))?;
        let value = yaml::decode(&document).map_err(|error| unusable(format!("it is no YAML: {error}")))?;
        let key: Self = lenient::decode(&value).map_err(|error| unusable(error.to_string()))?;
        if !key.resource.contains_key("name") {
            return Err(unusable("it names no resource".to_owned()));
        }
        Ok(key)
    }
}

impl std::fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.resource.get("name").map_or("", String::as_str);
        write!(f, "the resource {name} of {}:{}", self.component.name, self.component.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Descriptor, resource_key};

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let descriptor = serde_json::json!({
            "meta": {"schemaVersion": "v2"},
            "component": {"name": "example.org/shop", "version": "1.0.0", "provider": "me", "repositoryContexts": [],
                "sources": [], "componentReferences": [], "resources": [
                {"name": "chart", "version": "1.2.3", "type": "helmChart", "relation": "external",
                 "extraIdentity": {"flavour": "large"}, "access": {"type": "none"}}]},
        });
        let descriptor = Descriptor::parse(&descriptor).unwrap();
        let key = ResourceKey::read(&resource_key(&descriptor, &descriptor.resources[0])).unwrap();
        let expected = ResourceKey {
            component: KeyComponent { name: "example.org/shop".to_owned(), version: "1.0.0".to_owned() },
            resource: [("flavour", "large"), ("name", "chart")].map(|(name, value)| (name.into(), value.into())).into(),
        };
        assert_eq!(key, expected);
        assert_eq!(key.to_string(), "the resource chart of example.org/shop:1.0.0");
    }

    #[test]
    fn what_is_no_key_is_told() {
        let message = |text: &str| ResourceKey::read(text).unwrap_err();
        let end = "; write what the template function getResourceKey gives";
        assert_eq!(message("%"), format!("the resource key \"%\" cannot be used: it is no base64{end}"));
        let of = |text: &str| BASE64.encode(text.as_bytes());
        let no_name = of("component: {name: a, version: '1'}\nresource: {}");
        assert_eq!(
            message(&no_name),
            format!("the resource key {no_name:?} cannot be used: it names no resource{end}")
        );
        for text in [of("a: ["), of("resource: {name: a}"), BASE64.encode(b"\xff")] {
            assert!(message(&text).ends_with(end), "{text}");
        }
    }

    #[test]
    fn limits_resource_key_a_key_has_a_length() {
        // What stands after it is no part of it, and its length counts.
        let key = BASE64.encode(b"component: {name: a, version: '1'}\nresource: {name: b}");
        let of = |length: usize| ResourceKey::read(&format!("{key:<length$}")).map(|key| key.to_string());
        assert_eq!(of(LONGEST), Ok("the resource b of a:1".to_owned()));
        assert!(of(LONGEST + 1).unwrap_err().contains("cannot be used: it is longer than 4096 bytes; write"));
    }
}
