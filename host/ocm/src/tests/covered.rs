//! Which parts of a descriptor its normal forms cover, part by part: what is covered cannot be changed under a signature,
//! and what is not may differ between repositories.

use super::*;

const FORMS: [Normalisation; 3] = [Normalisation::V1, Normalisation::V2, Normalisation::V3];

/// Every form covers the part.
const ALL: [bool; 3] = [true; 3];
/// Those over the model behind both schemas do: version 1 of schema v2 knows no sources.
const MODEL: [bool; 3] = [false, true, true];
/// No form does.
const NONE: [bool; 3] = [false; 3];

/// Whether each normal form changes when the part at a pointer becomes another.
#[track_caller]
fn covers(document: &Value, pointer: &str, changed: Value) -> [bool; 3] {
    let mut other = document.clone();
    *other.pointer_mut(pointer).expect("the part is there") = changed;
    let (before, after) = (Descriptor::parse(document).unwrap(), Descriptor::parse(&other).unwrap());
    FORMS.map(|form| before.normalised(form) != after.normalised(form))
}

#[test]
fn a_signature_over_schema_v2_covers_what_is_deployed_and_not_where_it_lies() {
    let document = version_2();
    let cases = [
        ("/component/name", json!("example.com/other"), ALL),
        ("/component/version", json!("1.2.1"), ALL),
        ("/component/provider", json!("them"), ALL),
        ("/component/creationTime", json!("2027-01-02T03:04:05Z"), ALL),
        ("/component/labels/0/name", json!("crew"), ALL),
        ("/component/labels/0/value", json!({ "of": ["b"] }), ALL),
        ("/component/labels/0/signing", json!(false), ALL),
        ("/component/sources/0/name", json!("sources"), MODEL),
        ("/component/sources/0/version", json!("2"), MODEL),
        ("/component/sources/0/type", json!("hg"), MODEL),
        ("/component/sources/0/access", json!({ "type": "git", "repoUrl": "y" }), NONE),
        ("/component/componentReferences/0/name", json!("data"), ALL),
        ("/component/componentReferences/0/version", json!("3.1"), ALL),
        ("/component/componentReferences/0/componentName", json!("example.com/data"), ALL),
        ("/component/componentReferences/0/extraIdentity/zone", json!("us"), ALL),
        ("/component/componentReferences/0/digest/value", json!("ac"), ALL),
        ("/component/componentReferences/0/digest/hashAlgorithm", json!("SHA-512"), ALL),
        ("/component/resources/0/name", json!("site"), ALL),
        ("/component/resources/0/version", json!("1.2.1"), ALL),
        ("/component/resources/0/type", json!("ociArtifact"), ALL),
        ("/component/resources/0/relation", json!("local"), ALL),
        ("/component/resources/0/extraIdentity/arch", json!("riscv"), ALL),
        ("/component/resources/0/access/imageReference", json!("r.example.com/web@sha256:00"), NONE),
        ("/component/resources/0/srcRefs", json!([]), NONE),
        ("/component/resources/2/access", json!({ "type": "ociBlob" }), NONE),
        ("/component/repositoryContexts", json!([]), NONE),
        ("/component/repositoryContexts/0/baseUrl", json!("moved.example.com"), NONE),
        ("/signatures", json!([]), NONE),
        ("/signatures/0/digest/value", json!("ce"), NONE),
        ("/nestedDigests", json!([{ "name": "n" }]), NONE),
    ];
    for (pointer, changed, covered) in cases {
        assert_eq!(covers(&document, pointer, changed), covered, "{pointer}");
    }
}

#[test]
fn a_label_counts_only_where_it_says_so() {
    let document = version_2();
    let with = |label: Value| {
        covers(&document, "/component/resources/0", {
            let mut resource = document["component"]["resources"][0].clone();
            resource["labels"] = json!([label]);
            resource
        })
    };
    assert_eq!(with(json!({ "name": "hint", "value": 1 })), NONE);
    assert_eq!(with(json!({ "name": "hint", "value": 1, "signing": false })), NONE);
    assert_eq!(with(json!({ "name": "hint", "value": 1, "signing": true })), ALL);
}

#[test]
fn a_digest_counts_unless_there_is_no_content() {
    let document = version_2();
    let digest = json!({ "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": "00" });
    let with = |access: Value| {
        let mut before = document.clone();
        before["component"]["resources"][0]["access"] = access.clone();
        let mut resource = before["component"]["resources"][0].clone();
        resource["digest"] = digest.clone();
        covers(&before, "/component/resources/0", resource)
    };
    assert_eq!(with(json!({ "type": "localBlob" })), ALL);
    assert_eq!(with(json!({ "type": "none" })), NONE);
    assert_eq!(with(json!({ "type": "None" })), NONE);
}

#[test]
fn resources_that_are_alike_are_told_apart_by_their_version_until_one_is_left() {
    let identities = |form| {
        let text = shop().normalised(form);
        text.matches("{\"version\":\"1.10\"}").count() + text.matches("{\"version\":\"1.20\"}").count()
    };
    // The last one of its name needs no more to be told apart.
    assert_eq!([Normalisation::V2, Normalisation::V3].map(identities), [1, 0]);
}

#[test]
fn the_names_of_normal_forms_are_those_in_digests() {
    let names =
        ["jsonNormalisation/v1", "jsonNormalisation/v2", "jsonNormalisation/v3", "jsonNormalisation/v4", "v1", ""];
    assert_eq!(
        names.map(Normalisation::named),
        [Some(Normalisation::V1), Some(Normalisation::V2), Some(Normalisation::V3), None, None, None]
    );
}

#[test]
fn a_descriptor_has_the_same_model_in_both_schemas() {
    let two = shop();
    let three = Descriptor { schema: DescriptorSchema::V3Alpha1, ..two.clone() };
    for form in [Normalisation::V2, Normalisation::V3] {
        assert_eq!(two.normalised(form), three.normalised(form));
    }
    assert_ne!(two.normalised(Normalisation::V1), three.normalised(Normalisation::V1));
}

#[test]
fn reading_a_normal_form_twice_gives_the_same_text() {
    for form in FORMS {
        assert_eq!(shop().normalised(form), shop().normalised(form));
        let text = shop().normalised(form);
        assert!(
            serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_array() || value.is_object()),
            "{text}"
        );
    }
}
