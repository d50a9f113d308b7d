//! Signatures, made with openssl over normal forms that were written by hand.
//!
//! `signed.json` has the keys and the signatures of the component version that `archive` below makes. Each was made as
//! `openssl dgst -sha256 -sign key` (or -sha512) of the normal form, such as
//! `{"component":{"componentReferences":[{"componentName":"example.com/db","digest":{…},…}],…}}`; the certificates with
//! `openssl x509 -req`: signer (code signing) by middle by authority, and one for servers by authority.

use orangery_core::component::{ComponentVersions, Verification};
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

fn by_key(signature: &str, key: &str) -> Verification {
    Verification { signature: signature.to_owned(), public_key: pem(key), ca_certificate: None }
}

fn by_authority(signature: &str, authority: &str) -> Verification {
    Verification { signature: signature.to_owned(), public_key: None, ca_certificate: pem(authority) }
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
}

const PLACE: &str = "the component example.com/shop:1.0.0 cannot be verified: ";

#[tokio::test]
async fn what_nobody_signed_is_refused() {
    let told = |signature: &str, why: &str| Err(format!("{PLACE}the signature {signature:?} {why}"));
    let other_key = "was not made with the key of the Context (RSA of 2048 to 8192 bits); sign the component with it, or \
                     name the right key in verificationSignatures";
    assert_eq!(verified(unchanged, by_key("v1", "other")).await, told("v1", other_key));
    assert_eq!(
        verified(unchanged, by_key("mine", "public")).await,
        Err(format!("{PLACE}it has no signature \"mine\"; it has v1, v1-sha512, v2, v3, chain, server"))
    );
    let nobody = Verification { public_key: None, ..by_key("v1", "public") };
    let missing =
        "has neither a public key nor a certificate authority in the Context; set verificationSignatures in it";
    assert_eq!(verified(unchanged, nobody).await, told("v1", missing));
    assert_eq!(
        verified(unchanged, by_authority("v1", "ca")).await,
        told("v1", "has no certificate beside it, but the Context has only an authority")
    );
    assert_eq!(
        verified(unchanged, by_authority("chain", "otherca")).await,
        told("chain", "has a certificate that the certificate authority of the Context does not stand behind")
    );
    assert_eq!(
        verified(unchanged, by_authority("server", "ca")).await,
        told("server", "has a certificate that is not for signing code")
    );
}

#[tokio::test]
async fn what_was_changed_after_it_was_signed_is_refused() {
    let wanted = || by_key("v3", "public");
    let changed = |told: Result<(), String>, why: &str| {
        let told = told.unwrap_err();
        assert!(told.contains(why), "{told}");
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
    let told = |path: [&'static str; 2], value: &'static str| async move {
        let set = |all: &mut [Value; 2]| all[0]["signatures"][3][path[0]][path[1]] = json!(value);
        verified(set, by_key("v3", "public")).await.unwrap_err().replace(PLACE, "")
    };
    assert_eq!(
        told(["signature", "algorithm"], "RSASSA-PSS").await,
        "the signature \"v3\" is of the algorithm \"RSASSA-PSS\"; known is RSASSA-PKCS1-V1_5"
    );
    assert_eq!(
        told(["signature", "mediaType"], "x").await,
        "the signature \"v3\" has the media type \"x\"; known are application/vnd.ocm.signature.rsa and \
         application/x-pem-file"
    );
    assert_eq!(
        told(["digest", "hashAlgorithm"], "MD5").await,
        "its signature \"v3\" uses the hash \"MD5\"; known are SHA-256 and SHA-512"
    );
    assert_eq!(
        told(["digest", "normalisationAlgorithm"], "mine/v1").await,
        "its signature \"v3\" uses \"mine/v1\"; known are jsonNormalisation/v1, v2 and v3"
    );
}
