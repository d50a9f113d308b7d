//! What templates reach of the component version that a blueprint belongs to, and the blueprint's files.

use serde_json::Value;

use orangery_core::{digest, error::Fault, port::BoxFuture};

/// The files of one blueprint, by slash-separated path without a leading slash.
pub trait Files: Send + Sync {
    /// A file's content. The error is one sentence.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// The `sha256:…` of a file's content, and its length in bytes.
    fn digest(&self, path: &str) -> Result<(String, u64), String> {
        self.read(path).map(|content| (digest::sha256(&content), content.len() as u64))
    }
    /// That there is such a file.
    fn check(&self, path: &str) -> Result<(), String> {
        self.read(path).map(drop)
    }
    /// The names in a folder, sorted; `` is the root.
    fn list(&self, path: &str) -> Result<Vec<String>, String>;
}

/// Names and values that all have to match; several may be alike but for their value.
pub type Identity = [(String, String)];

/// The component version that a blueprint belongs to, as templates reach it (`wit/template/0.1.0/components.wit`). Descriptors
/// are JSON in the schema that the blueprint asks for (`docs/wire.md` §4.4); both schemas are understood.
pub trait Components: Send + Sync {
    /// The descriptor of the component that `from` references under this identity; without `from`, the blueprint's own.
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>>;
    /// The resources of a descriptor that match an identity, in the descriptor's order.
    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>>;
    /// The global identity of a resource, as text that deployers hand back.
    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>>;
    /// A resource's content.
    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>>;
}
