//! Digests of component versions that stand in the descriptor of a signed one above them (`nestedDigests`): whoever signs
//! what others have made cannot write into their descriptors.

use super::{Descriptor, Digest, Element, NestedDigests};

impl Descriptor {
    /// The digests of a component version below.
    pub fn nested_digests_of(&self, below: &Descriptor) -> Option<&NestedDigests> {
        let is_same = |one: &&NestedDigests| one.name == below.name && one.version == below.version;
        self.nested_digests.iter().find(is_same)
    }

    /// The descriptor as it was signed from above: with the digests of its resources that stand there, which go before
    /// its own, and with those of the component versions that it refers to, in the order of its references.
    pub fn completed(&self, above: Option<&NestedDigests>, references: &[Digest]) -> Self {
        let mut completed = self.clone();
        for resource in &mut completed.resources {
            let Element { name, version, extra_identity, .. } = &resource.element;
            if let Some(digest) = above.and_then(|above| above.of(name, version, extra_identity)) {
                resource.digest = Some(digest.clone());
            }
        }
        for (reference, digest) in completed.references.iter_mut().zip(references) {
            reference.digest = Some(digest.clone());
        }
        completed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::ResourceDigest;

    fn digest(value: &str) -> Value {
        json!({ "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "n", "value": value })
    }

    fn signed() -> Descriptor {
        let resource = |name: &str, extra: Value, digest: Value| json!({ "name": name, "version": "1", "type": "t", "extraIdentity": extra, "digest": digest });
        let resources = json!([
            resource("a", json!({ "arch": "x" }), Value::Null),
            resource("a", json!({ "arch": "y" }), digest("own")),
            resource("b", json!({}), digest("own")),
        ]);
        let above = json!([
            { "name": "a", "version": "1", "extraIdentity": { "arch": "x" }, "digest": digest("above-x") },
            { "name": "a", "version": "1", "extraIdentity": { "arch": "y" }, "digest": digest("above-y") },
            { "name": "b", "version": "2", "digest": digest("of another version") },
        ]);
        let component = json!({
            "name": "example.com/a", "version": "1", "resources": resources,
            "componentReferences": [{ "name": "r", "componentName": "example.com/r", "version": "1" }],
        });
        let nested = json!([{ "name": "example.com/a", "version": "1", "resourceDigests": above }]);
        let document = json!({ "meta": { "schemaVersion": "v2" }, "component": component, "nestedDigests": nested });
        Descriptor::parse(&document).unwrap()
    }

    #[test]
    fn digests_from_above_go_before_those_of_the_descriptor() {
        let signed = signed();
        let of: Digest = serde_json::from_value(digest("reference")).unwrap();
        let completed = signed.completed(signed.nested_digests_of(&signed), std::slice::from_ref(&of));
        let values: Vec<_> =
            completed.resources.iter().map(|one| one.digest.as_ref().map(|digest| digest.value.as_str())).collect();
        assert_eq!(values, [Some("above-x"), Some("above-y"), Some("own")]);
        assert_eq!(completed.references[0].digest, Some(of));
        let other = Descriptor { version: "2".to_owned(), ..signed.clone() };
        assert_eq!(signed.nested_digests_of(&other), None);
        assert_eq!(signed.completed(None, &[]), signed);
    }

    #[test]
    fn digests_for_those_below_are_read_in_both_schemas_and_are_none_where_there_are_none() {
        let nested = json!([{
            "name": "example.com/b",
            "version": "2",
            "digest": digest("below"),
            "resourceDigests": [{ "name": "a", "version": "1", "digest": digest("content") }],
        }]);
        let v2 = json!({
            "meta": { "schemaVersion": "v2" },
            "component": { "name": "example.com/a", "version": "1" },
        });
        let v3 = json!({
            "apiVersion": "ocm.software/v3alpha1",
            "kind": "ComponentVersion",
            "metadata": { "name": "example.com/a", "version": "1" },
        });
        let expected = NestedDigests {
            name: "example.com/b".to_owned(),
            version: "2".to_owned(),
            digest: serde_json::from_value(digest("below")).unwrap(),
            resource_digests: vec![ResourceDigest {
                name: "a".to_owned(),
                version: "1".to_owned(),
                extra_identity: BTreeMap::new(),
                digest: serde_json::from_value(digest("content")).unwrap(),
            }],
        };
        for mut document in [v2, v3] {
            assert_eq!(Descriptor::parse(&document).unwrap().nested_digests, []);
            document["nestedDigests"] = nested.clone();
            assert_eq!(Descriptor::parse(&document).unwrap().nested_digests, std::slice::from_ref(&expected));
        }
    }
}
