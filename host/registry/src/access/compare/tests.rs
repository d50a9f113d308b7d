use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    cache::Bytes,
    held_manifest::HeldManifest,
    oci::{Manifest, OciDescriptor},
};

const ARCHIVE: &str = "application/vnd.oci.image.manifest.v1+tar+gzip";

fn manifest(artifact: &ContentDigest) -> Manifest {
    let config =
        OciDescriptor { media_type: String::new(), digest: artifact.clone(), size: 2, annotations: Default::default() };
    Manifest {
        digest: artifact.clone(),
        artifact: artifact.clone(),
        media_type: "application/vnd.oci.image.manifest.v1+json".to_owned(),
        artifact_type: None,
        config,
        layers: Vec::new(),
        annotations: Default::default(),
    }
}

fn blob(bytes: &[u8], media_type: &str) -> Fetched {
    Fetched::of(bytes.to_vec().into(), media_type.to_owned())
}

fn artifact(by: Algorithm) -> Fetched {
    let manifest = Arc::new(manifest(&ContentDigest::of(by, b"content")));
    Fetched::Artifact { reference: "registry.example/app:1".parse().unwrap(), manifest: HeldManifest::small(manifest) }
}

fn packed() -> (Fetched, ContentDigest) {
    let document = br#"{"schemaVersion":2}"#;
    let main = ContentDigest::of(Algorithm::Sha256, document);
    let bytes = image::pack(&manifest(&main), None, &[(main.clone(), Bytes::new(document.to_vec()))]).unwrap();
    (blob(&bytes, ARCHIVE), main)
}

fn digest(kind: &str, hash: &str, value: &str) -> Digest {
    Digest { hash_algorithm: hash.to_owned(), normalisation_algorithm: kind.to_owned(), value: value.to_owned() }
}

#[test]
fn signatures_every_pair_of_what_an_access_gives_and_a_digest_is_compared_or_told() {
    let (archive, main) = packed();
    let Fetched::Blob(content, _) = &archive else { panic!("a blob") };
    let whole = [Algorithm::Sha256, Algorithm::Sha512].map(|by| ContentDigest::of(by, &content.bytes).hex().to_owned());
    let [whole_short, whole_long] = whole;
    let of = |by| ContentDigest::of(by, b"content").hex().to_owned();
    let (short, long) = (Algorithm::Sha256, Algorithm::Sha512);
    // What is given, and its digest by each kind and hash, where it has one.
    let given = [
        ("blob", blob(b"content", "text/plain"), [Some(of(short)), Some(of(long)), None, None]),
        ("archive", archive, [Some(whole_short), Some(whole_long), Some(main.hex().to_owned()), None]),
        ("artifact", artifact(short), [None, None, Some(of(short)), None]),
        ("artifact by SHA-512", artifact(long), [None, None, None, Some(of(long))]),
    ];
    let mut seen = Vec::new();
    for (name, fetched, digests) in &given {
        for (index, kind) in [GENERIC_BLOB, OCI_ARTIFACT, EXCLUDED, "other/v1", ""].into_iter().enumerate() {
            for (other, hash) in ["SHA-256", "SHA-512", "MD5", "NO-DIGEST"].into_iter().enumerate() {
                let right = digests.get(index * 2 + other).filter(|_| other < 2).cloned().flatten();
                let value = right.clone().unwrap_or_else(|| of(short));
                let found = compare(Some(&digest(kind, hash, &value)), fetched);
                match (&right, &found) {
                    (Some(_), Comparison::Same) | (None, Comparison::NotCompared(_)) => {}
                    _ => panic!("{name} {kind} {hash}: {found:?}"),
                }
                if let Some(right) = right {
                    let evil = compare(Some(&digest(kind, hash, &"0".repeat(right.len()))), fetched);
                    assert_eq!(evil, Comparison::Other(right), "{name} {kind} {hash}");
                    seen.push(format!("{name}, {kind}, {hash}"));
                }
            }
        }
        assert!(matches!(compare(None, fetched), Comparison::NotCompared(_)), "{name}");
    }
    assert_eq!(
        seen,
        [
            "blob, genericBlobDigest/v1, SHA-256",
            "blob, genericBlobDigest/v1, SHA-512",
            "archive, genericBlobDigest/v1, SHA-256",
            "archive, genericBlobDigest/v1, SHA-512",
            "archive, ociArtifactDigest/v1, SHA-256",
            "artifact, ociArtifactDigest/v1, SHA-256",
            "artifact by SHA-512, ociArtifactDigest/v1, SHA-512",
        ]
    );
    let broken = compare(Some(&digest(OCI_ARTIFACT, "SHA-256", &of(short))), &blob(b"content", ARCHIVE));
    assert!(matches!(broken, Comparison::Broken(_)), "{broken:?}");
}

#[test]
fn signatures_only_the_field_of_its_own_kind_tells_what_an_access_gives() {
    let hex = ContentDigest::of(Algorithm::Sha256, b"content").hex().to_owned();
    let (plain, at) = (format!("sha256:{hex}"), format!("registry.example/app:1@sha256:{hex}"));
    // Every field names the digest, so that only the kind decides.
    let access = |type_: &str, [local, file, digest, image, relative]: [&str; 5]| -> Value {
        json!({"type": type_, "localReference": local, "filename": file, "digest": digest, "imageReference": image,
               "reference": relative, "url": "https://evil.example", "helmRepository": "https://evil.example"})
    };
    let told = |access: Value, kind: &str| {
        let resource = Resource { access: Some(access), ..Resource::default() };
        is_told_by_access(&resource, &digest(kind, "SHA-256", &hex))
    };
    let all = [plain.as_str(), &plain, &plain, &at, &at];
    let kinds = [
        ("localBlob/v1", Some((0, GENERIC_BLOB))),
        ("localFilesystemBlob", Some((1, GENERIC_BLOB))),
        ("localOciBlob", Some((2, GENERIC_BLOB))),
        ("ociBlob", Some((2, GENERIC_BLOB))),
        ("ociArtifact", Some((3, OCI_ARTIFACT))),
        ("relativeOciReference", Some((4, OCI_ARTIFACT))),
        ("wget", None),
        ("helm", None),
        ("gitHub", None),
        ("none", None),
        ("", None),
    ];
    for (type_, tells) in kinds {
        for kind in [GENERIC_BLOB, OCI_ARTIFACT, EXCLUDED, "other/v1"] {
            let expected = tells.is_some_and(|(_, told)| told == kind);
            assert_eq!(told(access(type_, all), kind), expected, "{type_} {kind}");
        }
        if let Some((own, kind)) = tells {
            let mut without = all;
            without[own] = "registry.example/evil:1";
            assert!(!told(access(type_, without), kind), "{type_} without its own field");
        }
    }
}
