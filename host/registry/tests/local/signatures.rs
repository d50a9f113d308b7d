//! Signatures, made with openssl over normal forms that were written by hand.
//!
//! `signed.json` has the keys and the signatures of the component version that `archive` below makes. Each was made as
//! `openssl dgst -sha256 -sign key` (or -sha512) of the normal form, such as
//! `{"component":{"componentReferences":[{"componentName":"example.com/db","digest":{…},…}],…}}`; the certificates with
//! `openssl x509 -req`: signer (code signing) by middle by authority, and one for servers by authority. Those that begin
//! with `pss` were made with `-sigopt rsa_padding_mode:pss`, salted with as much as fits, as the tools of OCM do, and
//! with 32 bytes.

use orangery_ocm::{ComponentVersions, KeySource, ResourceReference, Verification};
use serde_json::{Value, json};

use crate::kit::*;

fn fixture() -> Value {
    serde_json::from_str(include_str!("signed.json")).unwrap()
}

/// The shop that is signed, and its database.
fn documents(blob: &str) -> [Value; 2] {
    let fixture = fixture();
    let digest = |normalisation: &str, value: &Value| json!({ "hashAlgorithm": "SHA-256", "normalisationAlgorithm": normalisation, "value": value });
    let mut text = resource("text", "plain", local_blob(blob, "text/plain"));
    text["digest"] = digest("genericBlobDigest/v1", &json!(sha256(b"some text").hex()));
    let references = [("db", "example.com/db", "2.0.0")];
    let mut shop = descriptor("example.com/shop", "1.0.0", &references, json!([text]));
    shop["component"]["componentReferences"][0]["digest"] =
        digest("jsonNormalisation/v1", &fixture["references"]["db"]);
    shop["signatures"] = fixture["signatures"].clone();
    [shop, descriptor("example.com/db", "2.0.0", &[], json!([]))]
}

/// Opens the shop with a verification; the sentence of the fault.
async fn verified(change: impl FnOnce(&mut [Value; 2]), wanted: Verification) -> Result<(), String> {
    let host = Host::new();
    let mut archive = Transport::default();
    let blob = archive.blob(b"some text");
    let mut documents = documents(&blob);
    change(&mut documents);
    for document in &documents {
        archive.version(document, false);
    }
    archive.write_folder(&host.components().join("a"));
    let mut request = request(transport("a"), "example.com/shop", "1.0.0");
    request.verification = Some(wanted);
    host.repositories.open(&request).await.map(|_| ()).map_err(|fault| fault.to_string())
}

fn pem(name: &str) -> Option<Vec<u8>> {
    Some(fixture()["keys"][name].as_str().unwrap().as_bytes().to_vec())
}

fn verification(signature: &str, public_key: Option<Vec<u8>>, ca_certificate: Option<Vec<u8>>) -> Verification {
    let (signature, keys_of) = (signature.to_owned(), KeySource::Context);
    Verification { signature, public_key, ca_certificate, keyless: None, keys_of, above: None }
}

fn by_key(signature: &str, key: &str) -> Verification {
    verification(signature, pem(key), None)
}

fn by_authority(signature: &str, authority: &str) -> Verification {
    verification(signature, None, pem(authority))
}

fn unchanged(_: &mut [Value; 2]) {}

#[tokio::test]
async fn a_signature_holds_for_every_normal_form_and_every_form_of_a_key() {
    for signature in ["v1", "v1-sha512", "v2", "v3", "chain"] {
        for key in ["public", "pkcs1", "leaf"] {
            assert_eq!(verified(unchanged, by_key(signature, key)).await, Ok(()), "{signature} {key}");
        }
    }
    assert_eq!(verified(unchanged, by_authority("chain", "ca")).await, Ok(()));
    for signature in ["pss", "pss-sha512", "pss-short", "pss-pem"] {
        assert_eq!(verified(unchanged, by_key(signature, "pss")).await, Ok(()), "{signature}");
    }
}

const PLACE: &str = "the component example.com/shop:1.0.0 cannot be verified: ";

#[tokio::test]
async fn what_nobody_signed_is_refused() {
    let message = |signature: &str, why: &str| Err(format!("{PLACE}the signature {signature:?} {why}"));
    let other_key = "was not made with the key of the Context (RSA of 2048 to 8192 bits); sign the component with it, or \
                     name the right key in its verificationSignatures";
    assert_eq!(verified(unchanged, by_key("v1", "other")).await, message("v1", other_key));
    assert_eq!(verified(unchanged, by_key("pss", "public")).await, message("pss", other_key));
    assert_eq!(
        verified(unchanged, by_key("mine", "public")).await,
        Err(format!(
            "{PLACE}it has no signature \"mine\"; it has v1, v1-sha512, v2, v3, chain, server, pss, pss-sha512, pss-short, pss-pem"
        ))
    );
    let nobody = Verification { public_key: None, ..by_key("v1", "public") };
    let missing = "has neither a public key nor a certificate authority in the Context; name the right key in its verificationSignatures";
    assert_eq!(verified(unchanged, nobody).await, message("v1", missing));
    assert_eq!(
        verified(unchanged, by_authority("v1", "ca")).await,
        message("v1", "has no certificate beside it, but the Context has only an authority")
    );
    assert_eq!(
        verified(unchanged, by_authority("chain", "otherca")).await,
        message("chain", "has a certificate that the certificate authority of the Context does not stand behind")
    );
    assert_eq!(
        verified(unchanged, by_authority("server", "ca")).await,
        message("server", "has a certificate that is not for signing code")
    );
}

/// Where the key is an administrator's, its user can correct nothing in the Context.
#[tokio::test]
async fn c_50_a_key_of_a_policy_is_told_with_its_line() {
    let line = "NamespacePolicy team, line spec.signatures.trustedKeys[0]";
    let of_policy = |wanted| Verification { keys_of: KeySource::Policy(line.to_owned()), ..wanted };
    let message = |why: &str| Err(format!("{PLACE}the signature \"v1\" {why}"));
    let other_key = format!(
        "was not made with the key of {line} (RSA of 2048 to 8192 bits); sign the component with it, or have an administrator \
         put the right key there"
    );
    assert_eq!(verified(unchanged, of_policy(by_key("v1", "other"))).await, message(&other_key));
    let none = of_policy(verification("v1", Some(b"none".to_vec()), None));
    let no_pem = format!("cannot be checked: the public key of {line} is no PEM: malformedframing");
    assert_eq!(verified(unchanged, none).await, message(&no_pem));
    assert_eq!(verified(unchanged, of_policy(by_key("v1", "public"))).await, Ok(()));
}

/// Opens a component of the shop, which takes some mebibytes of memory, where there is room for it once.
async fn opened_within(name: &str, version: &str, wanted: Option<Verification>) -> Result<(), String> {
    let limits = orangery_registry::oci::PullLimits { component_versions: 8 << 20, ..Default::default() };
    let folder = tempfile::tempdir().unwrap();
    let host = Host { repositories: repositories_within(folder.path(), limits), folder };
    let mut archive = Transport::default();
    let blob = archive.blob(b"some text");
    let [mut shop, db] = documents(&blob);
    shop["component"]["labels"] = json!([{"name": "note", "value": vec![json!({"": 0}); 2_200]}]);
    [shop, db].iter().for_each(|document| archive.version(document, false));
    archive.write_folder(&host.components().join("a"));
    let mut request = request(transport("a"), name, version);
    request.verification = wanted;
    host.repositories.open(&request).await.map(drop).map_err(|fault| fault.to_string())
}

#[tokio::test]
async fn c_320_copies_for_a_verification_count_also_of_what_stands_above() {
    assert_eq!(opened_within("example.com/shop", "1.0.0", None).await, Ok(()));
    let above = request(transport("a"), "example.com/shop", "1.0.0").source;
    let from_above = Verification { above: Some(above), ..by_key("v1", "public") };
    for (name, version, wanted) in
        [("example.com/shop", "1.0.0", by_key("v1", "public")), ("example.com/db", "2.0.0", from_above)]
    {
        let refused = opened_within(name, version, Some(wanted)).await.unwrap_err();
        assert!(
            refused.starts_with("the component version, with what is read of it, takes more than the "),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn what_was_changed_after_it_was_signed_is_refused() {
    let wanted = || by_key("v3", "public");
    let changed = |message: Result<(), String>, why: &str| {
        let message = message.unwrap_err();
        assert!(message.contains(why), "{message}");
    };
    let content = "its content is not what the signature \"v3\" is for";
    changed(verified(|all| all[0]["component"]["provider"] = json!("them"), wanted()).await, content);
    changed(verified(|all| all[0]["component"]["resources"][0]["name"] = json!("evil"), wanted()).await, content);
    changed(
        verified(|all| all[1]["component"]["provider"] = json!("them"), wanted()).await,
        "its component reference db is for another content of example.com/db:2.0.0",
    );
    let evil = sha256(b"evil").to_string();
    changed(
        verified(|all| all[0]["component"]["resources"][0]["access"]["localReference"] = json!(evil), wanted()).await,
        "it has no blob",
    );
    // Where a resource is, and unsigned labels, are no part of it.
    let moved = |all: &mut [Value; 2]| {
        all[0]["component"]["repositoryContexts"] = json!([]);
        all[0]["component"]["resources"][0]["labels"] = json!([{ "name": "note", "value": "x" }]);
        all[0]["component"]["sources"] = json!([]);
    };
    assert_eq!(verified(moved, wanted()).await, Ok(()));
}

#[tokio::test]
async fn algorithms_that_are_not_known_are_told() {
    let message = |path: [&'static str; 2], value: &'static str| async move {
        let set = |all: &mut [Value; 2]| all[0]["signatures"][3][path[0]][path[1]] = json!(value);
        verified(set, by_key("v3", "public")).await.unwrap_err().replace(PLACE, "")
    };
    assert_eq!(
        message(["signature", "algorithm"], "ECDSA").await,
        "the signature \"v3\" is of the algorithm \"ECDSA\"; known are RSASSA-PKCS1-V1_5 and RSASSA-PSS"
    );
    assert!(
        message(["signature", "algorithm"], "RSASSA-PSS").await.contains("was not made with the key of the Context")
    );
    assert_eq!(
        message(["signature", "mediaType"], "x").await,
        "the signature \"v3\" has the media type \"x\"; known are application/vnd.ocm.signature.rsa, \
         application/vnd.ocm.signature.rsa.pss and application/x-pem-file"
    );
    assert_eq!(
        message(["digest", "hashAlgorithm"], "MD5").await,
        "its signature \"v3\" uses the hash \"MD5\"; known are SHA-256 and SHA-512"
    );
    assert_eq!(
        message(["digest", "normalisationAlgorithm"], "mine/v1").await,
        "its signature \"v3\" uses \"mine/v1\"; known are jsonNormalisation/v1, v2 and v3"
    );
}

/// The shop, signed with digests that stand in it alone: its database has a resource, and neither has a digest.
fn nested(blob: &str) -> [Value; 2] {
    let [mut shop, _] = documents(blob);
    let fixture = fixture();
    shop["component"]["componentReferences"][0].as_object_mut().unwrap().remove("digest");
    shop["signatures"] = json!([fixture["nested"]["signature"]]);
    shop["nestedDigests"] = fixture["nested"]["digests"].clone();
    let text = resource("text", "plain", local_blob(blob, "text/plain"));
    [shop, descriptor("example.com/db", "2.0.0", &[], json!([text]))]
}

#[tokio::test]
async fn digests_that_stand_in_the_signed_descriptor_alone_count_for_those_below_it() {
    let signed = |change: fn(&mut [Value; 2])| {
        let all = move |all: &mut [Value; 2]| {
            let blob = all[0]["component"]["resources"][0]["access"]["localReference"].as_str().unwrap().to_owned();
            *all = nested(&blob);
            change(all);
        };
        verified(all, by_key("nested", "pss"))
    };
    assert_eq!(signed(|_| ()).await, Ok(()));
    let evil = signed(|all| all[1]["component"]["provider"] = json!("them")).await.unwrap_err();
    assert!(
        evil.starts_with(&format!("{PLACE}its nestedDigests for example.com/db:2.0.0 are for another content: ")),
        "{evil}"
    );
    let evil = |all: &mut [Value; 2]| {
        let digest = "/nestedDigests/0/resourceDigests/0/digest/value";
        *all[0].pointer_mut(digest).unwrap() = json!(sha256(b"evil").hex());
    };
    let message = signed(evil).await.unwrap_err();
    assert!(message.contains("are for another content: "), "{message}");
    // What nobody gave a digest, and what was given another, is no part of what was signed.
    let gone = |all: &mut [Value; 2]| all[0]["nestedDigests"][0]["digest"] = Value::Null;
    assert_eq!(signed(gone).await, Ok(()), "then the algorithms of the signature count");
    let message = signed(|all| {
        all[0]["nestedDigests"][0]["digest"] = Value::Null;
        all[1]["component"]["provider"] = json!("them");
    });
    let content = format!("{PLACE}its content is not what the signature \"nested\" is for: ");
    assert!(message.await.unwrap_err().starts_with(&content));
    let circle = |all: &mut [Value; 2]| {
        all[1]["component"]["componentReferences"] =
            json!([{ "name": "shop", "componentName": "example.com/shop", "version": "1.0.0" }]);
    };
    let expected = "example.com/shop:1.0.0 refers to itself, directly or through others: no digest is for that";
    assert_eq!(signed(circle).await, Err(format!("{PLACE}{expected}")));
}

#[tokio::test]
async fn the_content_of_a_resource_is_what_was_signed_from_above() {
    let host = Host::new();
    let mut archive = Transport::default();
    let (blob, evil) = (archive.blob(b"some text"), archive.blob(b"evil text"));
    let [shop, mut db] = nested(&blob);
    db["component"]["resources"][0]["access"]["localReference"] = json!(evil);
    archive.version(&shop, false);
    archive.version(&db, false);
    archive.write_folder(&host.components().join("a"));
    let mut request = request(transport("a"), "example.com/shop", "1.0.0");
    request.verification = Some(by_key("nested", "pss"));
    let message = host.repositories.open(&request).await.err().unwrap().to_string();
    let expected = "resource text of example.com/db:2.0.0 has another content than its component says: its digest is ";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test]
async fn below_a_signed_component_version_is_what_it_refers_to_and_nothing_else() {
    let opened = |name: &'static str, above: &'static str, change: fn(&mut Value)| async move {
        let host = Host::new();
        let mut archive = Transport::default();
        let blob = archive.blob(b"some text");
        let [shop, db] = nested(&blob);
        for document in [&shop, &db, &descriptor("example.com/stranger", "2.0.0", &[], json!([]))] {
            archive.version(document, false);
        }
        archive.write_folder(&host.components().join("a"));
        // The same name and version, elsewhere and with another content.
        let mut other = Transport::default();
        other.blob(b"some text");
        let mut changed = db.clone();
        change(&mut changed);
        other.version(&changed, false);
        other.write_folder(&host.components().join("b"));
        let mut wanted = request(transport(if changed == db { "a" } else { "b" }), name, "2.0.0");
        let above = request(transport("a"), above, if above == "example.com/shop" { "1.0.0" } else { "2.0.0" }).source;
        wanted.verification = Some(Verification { above: Some(above), ..by_key("nested", "pss") });
        host.repositories.open(&wanted).await.map(|_| ()).map_err(|fault| fault.to_string())
    };
    let (db, shop) = ("example.com/db", "example.com/shop");
    assert_eq!(opened(db, shop, |_| ()).await, Ok(()));
    let refused = |name: &str| {
        Err(format!(
            "the component {name}:2.0.0 cannot be verified: it has not the signature, and example.com/shop:1.0.0, which has \
             it, refers to no such content of {name}:2.0.0; sign it as well"
        ))
    };
    assert_eq!(opened(db, shop, |db| db["component"]["provider"] = json!("them")).await, refused(db));
    assert_eq!(opened("example.com/stranger", shop, |_| ()).await, refused("example.com/stranger"));
    let message = opened(db, "example.com/stranger", |_| ()).await.unwrap_err();
    assert!(
        message.contains("the component example.com/stranger:2.0.0 cannot be verified: it has no signature \"nested\""),
        "{message}"
    );
}

/// A shop whose text has a signed digest of a kind; its access, which no signature covers, is what `access` makes of the
/// digests of two blobs.
fn of_kind(kind: &str, access: Value) -> Value {
    let mut text = resource("text", "plain", access);
    let value = sha256(b"a manifest").hex().to_owned();
    text["digest"] = json!({ "hashAlgorithm": "SHA-256", "normalisationAlgorithm": kind, "value": value });
    let mut shop = descriptor("example.com/shop", "1.0.0", &[], json!([text]));
    shop["signatures"] = json!([fixture()["kinds"]["signatures"][kind]]);
    shop
}

#[tokio::test]
async fn signatures_an_access_of_another_kind_than_the_signed_digest_is_refused() {
    const NOT_SHOWN: &str = ", so nothing shows that its content is what was signed; sign the component again as it is \
                             where it is kept";
    let (generic, oci, excluded) = ("genericBlobDigest/v1", "ociArtifactDigest/v1", "EXCLUDE-FROM-SIGNATURE");
    // A signed digest of an artifact and a blob that is none; what its maker left out; a digest of others.
    let cases = [
        (generic, b"a manifest".as_slice(), Ok("a manifest".to_owned())),
        (generic, b"evil", Err("has another content than its component says".to_owned())),
        (
            oci,
            b"a manifest",
            Err(format!(
                "has a digest of kind {oci:?}, but its access gives a blob that is no archive of an artifact{NOT_SHOWN}"
            )),
        ),
        (
            oci,
            b"evil",
            Err(format!(
                "has a digest of kind {oci:?}, but its access gives a blob that is no archive of an artifact{NOT_SHOWN}"
            )),
        ),
        (excluded, b"evil", Err(format!("has a digest of kind {excluded:?} by \"SHA-256\"{NOT_SHOWN}"))),
        ("other/v1", b"evil", Err(format!("has a digest of kind \"other/v1\" by \"SHA-256\"{NOT_SHOWN}"))),
    ];
    for (kind, content, expected) in cases {
        let host = Host::new();
        let mut archive = Transport::default();
        let blob = archive.blob(content);
        archive.version(&of_kind(kind, local_blob(&blob, "text/plain")), false);
        archive.write_folder(&host.components().join("a"));
        let mut request = request(transport("a"), "example.com/shop", "1.0.0");
        let key = fixture()["kinds"]["public"].as_str().unwrap().as_bytes().to_vec();
        request.verification = Some(Verification { public_key: Some(key), ..by_key("kinds", "public") });
        let found = match host.repositories.open(&request).await {
            Ok(version) => version.content(&ResourceReference::named("text")).await,
            Err(fault) => Err(fault),
        };
        let found = found.map(|content| String::from_utf8(content.bytes.to_vec()).unwrap());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{kind}"),
            (Err(fault), Err(expected)) => {
                let message = format!("resource text of example.com/shop:1.0.0 {expected}");
                assert!(fault.to_string().starts_with(&message), "{kind}: {fault}");
            }
            (found, expected) => panic!("{kind}: {found:?}, expected {expected:?}"),
        }
    }
}
