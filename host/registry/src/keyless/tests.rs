//! Bundles that hold, and every way in which one may not.

mod strict;
mod world;

use data_encoding::{BASE64, HEXLOWER};
use orangery_core::digest::content::{Algorithm, ContentDigest};
use orangery_ocm::{
    ComponentRequest, ComponentSource, ComponentVersions, Descriptor, KeySource, Normalisation, SignaturePolicy,
    SignerIdentity, Verification,
};
use rcgen::{ExtendedKeyUsagePurpose, SanType};
use serde_json::{Value, json};

use self::world::{IDENTITY, ISSUER, NOON, Signing, World};
use super::*;
use crate::{Repositories, RepositorySettings, oci};

const MESSAGE: &[u8] = b"what is signed";

/// What becomes of a bundle.
fn answer(bundle: &Value, signer: &KeylessSigner) -> String {
    check(bundle.to_string().as_bytes(), MESSAGE, signer).err().unwrap_or_else(|| "holds".to_owned())
}

#[test]
fn c_48_a_bundle_of_the_public_instance_holds_without_a_network() {
    let bundle = include_bytes!("../../tests/sigstore/bundle.json");
    let signer = |identity: &str, issuer: &str, root: &str| KeylessSigner {
        issuer: issuer.to_owned(),
        identity: SignerIdentity::Expression(identity.to_owned()),
        trusted_root: root.to_owned(),
    };
    let root = include_str!("../../tests/sigstore/trusted-root.json");
    let github = "https://github.com/login/oauth";
    let text = b"test content for cosign\n";
    assert_eq!(check(bundle, text, &signer(r"w\..*@gmail\.com", github, root)), Ok(()));
    for refused in [
        check(bundle, b"test content for cosign", &signer(".*", github, root)),
        check(bundle, text, &signer("w", github, root)),
        check(bundle, text, &signer(".*", "https://accounts.google.com", root)),
        check(bundle, text, &signer(".*", github, &World::new().root().to_string())),
        check(bundle, text, &signer(".*", github, "{}")),
    ] {
        assert!(refused.is_err());
    }
    // Each value is needed: a bundle in which a letter of one differs does not hold.
    let whole: Value = serde_json::from_slice(bundle).expect("JSON");
    let mut places = Vec::new();
    leaves(&whole, String::new(), &mut places);
    let not_read = ["timestampVerificationData"];
    for place in places.iter().filter(|place| not_read.iter().all(|not| !place.contains(not))) {
        let mut changed = whole.clone();
        let value = changed.pointer_mut(place).expect("it is there");
        let text = value.as_str().expect("a text").to_owned();
        for at in [0, text.len() * 3 / 4] {
            let old = text.as_bytes()[at];
            let new = if old == b'A' {
                "B"
            } else if old == b'1' {
                "2"
            } else if old.is_ascii_digit() {
                "1"
            } else {
                "A"
            };
            let mut text = text.clone();
            text.replace_range(at..=at, new);
            *changed.pointer_mut(place).expect("it is there") = json!(text);
            let found =
                check(changed.to_string().as_bytes(), b"test content for cosign\n", &signer(".*", github, root));
            assert!(found.is_err(), "{place} {at}");
        }
    }
    assert!(places.len() > 20, "{places:?}");
}

fn leaves(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| leaves(value, format!("{at}/{name}"), into)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(n, value)| leaves(value, format!("{at}/{n}"), into))
        }
        Value::String(_) => into.push(at),
        _ => {}
    }
}

#[test]
fn c_48_the_identity_that_signed_is_the_one_that_is_trusted() {
    let world = World::new();
    let bundle = world.sign(MESSAGE, &Signing::default());
    let by = |issuer: &str, identity: SignerIdentity| {
        answer(&bundle, &KeylessSigner { issuer: issuer.to_owned(), identity, ..world.signer() })
    };
    let pattern = |text: &str| SignerIdentity::Pattern(text.to_owned());
    let expression = |text: &str| SignerIdentity::Expression(text.to_owned());
    assert_eq!(by(ISSUER, pattern(IDENTITY)), "holds");
    assert_eq!(by(ISSUER, pattern("https://ci.example.org/acme/*")), "holds");
    assert_eq!(by(ISSUER, expression(r"https://ci\.example\.org/acme/.*@refs/tags/v[0-9]+")), "holds");
    let made = format!("was made by {IDENTITY:?} as {ISSUER:?} knows it, and trusted is ");
    let refused = |who: &str| format!("{made}{who}");
    assert_eq!(
        by(ISSUER, pattern("https://ci.example.org/acme/")),
        refused("https://ci.example.org/acme/ as https://issuer.example.org knows it")
    );
    assert_eq!(by(ISSUER, expression("https://ci")), refused("/https://ci/ as https://issuer.example.org knows it"));
    assert_eq!(by("https://issuer", pattern("*")), refused("* as https://issuer knows it"));
    assert_eq!(by("https://issuer.example.org/", pattern("*")), refused("* as https://issuer.example.org/ knows it"));
}

fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = value.pointer_mut(parent).expect("it is there");
    match parent {
        Value::Array(list) => list[name.parse::<usize>().expect("a number")] = new,
        _ => parent[name] = new,
    }
}

const ENTRY: &str = "/verificationMaterial/tlogEntries/0";

/// A bundle that is made otherwise, or changed afterwards, or held against another root; what is said of it then.
struct Case {
    signing: Signing,
    bundle: Option<(String, Value)>,
    root: Option<(&'static str, Value)>,
    expected: &'static str,
}

fn made(signing: Signing, expected: &'static str) -> Case {
    Case { signing, bundle: None, root: None, expected }
}

fn changed(at: &str, value: Value, expected: &'static str) -> Case {
    Case { bundle: Some((at.to_owned(), value)), ..made(usual(), expected) }
}

fn entry(at: &str, value: Value, expected: &'static str) -> Case {
    changed(&format!("{ENTRY}/{at}"), value, expected)
}

fn held_against(at: &'static str, value: Value, expected: &'static str) -> Case {
    Case { root: Some((at, value)), ..made(usual(), expected) }
}

fn usual() -> Signing {
    Signing::default()
}

/// Each case is answered by what it says; but for what holds, by what that begins with.
#[track_caller]
fn play(world: &World, cases: impl IntoIterator<Item = Case>) {
    for (number, Case { signing, bundle, root, expected }) in cases.into_iter().enumerate() {
        let (mut forged, mut trusted) = (world.sign(MESSAGE, &signing), world.root());
        for (value, change) in [
            (&mut forged, bundle.as_ref().map(|(at, new)| (at.as_str(), new))),
            (&mut trusted, root.as_ref().map(|(at, new)| (*at, new))),
        ] {
            if let Some((at, new)) = change {
                set(value, at, new.clone());
            }
        }
        let found = answer(&forged, &KeylessSigner { trusted_root: trusted.to_string(), ..world.signer() });
        let is_expected = if expected == "holds" { found == expected } else { found.starts_with(expected) };
        assert!(is_expected, "{number}: {found}\n{expected}");
    }
}

const UNKNOWN: &str = "has a certificate that nobody trusted gave: ";
const NOT_LOGGED: &str = "has a certificate of which no trusted log was told (SCT): ";
const NOT_PROVEN: &str = "has an entry that is not in the log: its proof does not hold";

#[test]
fn c_48_a_certificate_says_one_identity_and_was_given_for_signing_at_that_time() {
    let email = |text: &str| SanType::Rfc822Name(text.to_owned().try_into().expect("a text"));
    let host = SanType::DnsName("example.org".to_owned().try_into().expect("a text"));
    let of = |identities| Signing { identities, ..usual() };
    let one = "has a certificate without exactly one identity that is a URI or an email address";
    let nobody = "has a certificate that does not say who knows its identity (its OpenID Connect issuer)";
    let read = "has a bundle that cannot be read: a value is not in base64: ";
    let certificate = "/verificationMaterial/certificate";
    let none = "has a bundle without a certificate, so nothing says by whom it was made";
    play(
        &World::new(),
        [
            made(usual(), "holds"),
            made(of(Vec::new()), one),
            made(of(vec![email("a@example.org"), email("b@example.org")]), one),
            made(of(vec![host]), one),
            made(of(vec![email("a@example.org")]), "was made by \"a@example.org\" as "),
            made(Signing { issuer: None, ..usual() }, nobody),
            made(Signing { usage: ExtendedKeyUsagePurpose::ServerAuth, ..usual() }, UNKNOWN),
            made(Signing { is_told: false, ..usual() }, NOT_LOGGED),
            made(Signing { at: NOON - 86_400, ..usual() }, UNKNOWN),
            made(Signing { at: NOON + 86_400, ..usual() }, UNKNOWN),
            changed(certificate, Value::Null, none),
            changed(&format!("{certificate}/rawBytes"), json!("AA=="), "has a certificate that cannot be read"),
            changed(&format!("{certificate}/rawBytes"), json!("?"), read),
        ],
    );
}

#[test]
fn c_48_a_log_has_the_entry_and_has_signed_its_time() {
    let no_time =
        "has an entry of a log that does not say when it was made; sign it with a log of the first version (Rekor v1)";
    let not_signed = "has an entry whose time the log did not sign (SET)";
    let checkpoint = "has an entry with a proof that the log did not sign (its checkpoint)";
    let none = "has a bundle that has not exactly one entry of a log; sign it again, with a log";
    play(
        &World::new(),
        [
            entry("integratedTime", json!((NOON + 1).to_string()), not_signed),
            entry("logIndex", json!("12"), not_signed),
            entry("integratedTime", Value::Null, no_time),
            entry("inclusionPromise", Value::Null, no_time),
            entry("inclusionProof", Value::Null, "has an entry without a proof that it is in the log; sign it again"),
            entry("inclusionProof/logIndex", json!("0"), NOT_PROVEN),
            entry("inclusionProof/logIndex", json!("3"), NOT_PROVEN),
            entry("inclusionProof/treeSize", json!("0"), NOT_PROVEN),
            entry("inclusionProof/treeSize", json!("-1"), NOT_PROVEN),
            entry("inclusionProof/hashes", json!([]), NOT_PROVEN),
            entry("inclusionProof/checkpoint/envelope", json!("log.example.org\n3\nAA==\n\n"), checkpoint),
            entry("inclusionProof/checkpoint/envelope", json!(""), checkpoint),
            changed("/verificationMaterial/tlogEntries", json!([]), none),
        ],
    );
}

#[test]
fn c_48_the_entry_is_of_this_signature_over_this_content() {
    let logged = |entry| Signing { entry, ..usual() };
    let of_another = "has an entry of a log that is of another signature or certificate";
    let other = "is for other content: the log has it for ";
    let format = "has an entry of a log of the kind \"intoto\" \"0.0.1\"; known is hashedrekord 0.0.1";
    let digest = "/messageSignature/messageDigest";
    let dsse = "is an attestation (DSSE); sign the digest itself, as `cosign sign-blob` does";
    let version = json!("application/vnd.dev.sigstore.bundle+json;version=0.2");
    let media_type = "has a bundle of the media type \"application/vnd.dev.sigstore.bundle+json;version=0.2\"; known is \
                      application/vnd.dev.sigstore.bundle.v0.3+json";
    play(
        &World::new(),
        [
            made(logged(|body| set(body, "/spec/data/hash/value", json!("00"))), other),
            made(logged(|body| set(body, "/spec/data/hash/algorithm", json!("sha1"))), other),
            made(logged(|body| set(body, "/spec/signature/content", json!("AA=="))), of_another),
            made(logged(|body| set(body, "/spec/signature/publicKey/content", json!("AA=="))), of_another),
            made(logged(|body| set(body, "/kind", json!("intoto"))), format),
            made(logged(|body| set(body, "/spec", json!({}))), "has an entry of a log that cannot be read: "),
            changed("/messageSignature/signature", json!("AA=="), of_another),
            changed(&format!("{digest}/digest"), json!("AA=="), "is for other content: its bundle is for SHA-256 00, "),
            changed(
                &format!("{digest}/algorithm"),
                json!("SHA2_512"),
                "is for a digest of \"SHA2_512\"; known is SHA2_256",
            ),
            changed(digest, Value::Null, "holds"),
            changed("/mediaType", version, media_type),
            changed("/messageSignature", Value::Null, "has a bundle without a signature; sign it again"),
            changed("/dsseEnvelope", json!({}), dsse),
            changed("/messageSignature", json!([]), "has a bundle that cannot be read: "),
        ],
    );
}

#[test]
fn c_48_what_the_trusted_root_does_not_have_for_that_time_does_not_count() {
    let world = World::new();
    let (later, before) = (
        json!({"start": "2026-02-01T00:00:00Z"}),
        json!({"start": "2025-01-01T00:00:00Z", "end": "2025-12-31T00:00:00Z"}),
    );
    let noon = json!({"start": "2025-01-01T00:00:00Z", "end": "2026-01-01T12:00:00Z"});
    let root = world.root();
    let log_key = root["tlogs"][0]["publicKey"]["rawBytes"].clone();
    let certificates = &root["certificateAuthorities"][0]["certChain"]["certificates"];
    let chain = "/certificateAuthorities/0/certChain/certificates";
    let curve = "cannot be checked: the key of the log in the trusted root is not on P-256 or P-384";
    let unreadable = "cannot be checked: the trusted root is \"x\", and not a trusted root of Sigstore";
    let (of_authority, of_log) = ("/certificateAuthorities/0/validFor", "/tlogs/0/publicKey/validFor");
    let of_certificates = "/ctlogs/0/publicKey/validFor";
    play(
        &world,
        [
            held_against("/tlogs", json!([]), "is in the log "),
            held_against(of_log, later.clone(), "is in the log "),
            held_against(of_log, before.clone(), "is in the log "),
            held_against(of_log, json!({}), "is in the log "),
            held_against(of_log, noon.clone(), "holds"),
            held_against("/tlogs/0/publicKey/rawBytes", json!("AA=="), curve),
            held_against("/ctlogs", json!([]), NOT_LOGGED),
            held_against("/ctlogs/0/publicKey/rawBytes", log_key, NOT_LOGGED),
            held_against(of_certificates, later.clone(), NOT_LOGGED),
            held_against(of_certificates, before.clone(), NOT_LOGGED),
            held_against("/certificateAuthorities", json!([]), UNKNOWN),
            held_against(of_authority, later, UNKNOWN),
            held_against(of_authority, before, UNKNOWN),
            held_against(of_authority, noon, "holds"),
            held_against(chain, json!([]), UNKNOWN),
            held_against(chain, json!([certificates[1]]), UNKNOWN),
            held_against(chain, json!([certificates[0]]), "holds"),
            held_against("/mediaType", json!("x"), unreadable),
        ],
    );
}

/// Parts of two bundles that hold, put together: none of them is of the other.
#[test]
fn c_48_parts_of_two_bundles_make_none() {
    let world = World::new();
    let (one, other) = (world.sign(MESSAGE, &Signing::default()), world.sign(MESSAGE, &Signing::default()));
    let foreign = World::new().sign(MESSAGE, &Signing::default());
    for (number, from) in [other, foreign].iter().enumerate() {
        for place in [
            "/verificationMaterial/certificate",
            ENTRY,
            "/messageSignature",
            &format!("{ENTRY}/inclusionProof"),
            &format!("{ENTRY}/inclusionPromise"),
            &format!("{ENTRY}/canonicalizedBody"),
        ] {
            let mut mixed = one.clone();
            set(&mut mixed, place, from.pointer(place).expect("it is there").clone());
            assert_ne!(answer(&mixed, &world.signer()), "holds", "{number} {place}");
        }
    }
    let another = world.sign(b"something else", &Signing::default());
    assert!(answer(&another, &world.signer()).starts_with("is for other content"));
}

/// Opens a component version that is written in an Installation, signed by a bundle over its normal form.
async fn opened(
    change: impl FnOnce(&mut Value),
    wanted: impl FnOnce(&World) -> (Option<KeylessSigner>, Option<Vec<u8>>),
) -> Result<(), String> {
    let world = World::new();
    let mut document = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": "example.com/shop", "version": "1.0.0", "provider": "us", "repositoryContexts": [], "sources": [],
            "componentReferences": [], "resources": [],
        },
    });
    let form = Normalisation::named("jsonNormalisation/v3").unwrap();
    let normal = Descriptor::parse(&document).unwrap().normalised(form);
    let digest = ContentDigest::of(Algorithm::Sha256, normal.as_bytes());
    let bundle = world.sign(&HEXLOWER.decode(digest.hex().as_bytes()).unwrap(), &Signing::default());
    document["signatures"] = json!([{
        "name": "release",
        "digest": {"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "jsonNormalisation/v3", "value": digest.hex()},
        "signature": {
            "algorithm": "sigstore", "mediaType": BUNDLE, "value": BASE64.encode(bundle.to_string().as_bytes()),
            "issuer": ISSUER,
        },
    }]);
    change(&mut document);
    let folder = tempfile::tempdir().unwrap();
    let settings = RepositorySettings {
        folders: Vec::new(),
        cache: folder.path().to_owned(),
        cache_bytes: 1 << 20,
        oci: oci::RegistrySettings::default(),
        signatures: SignaturePolicy::default(),
    };
    let mut request = ComponentRequest::of(ComponentSource::Inline(document.into()));
    let (keyless, public_key) = wanted(&world);
    request.verification = Some(Verification {
        signature: "release".to_owned(),
        public_key,
        ca_certificate: None,
        keyless,
        keys_of: KeySource::Policy("NamespacePolicy team, line spec.signatures.trustedKeys[0]".to_owned()),
        above: None,
    });
    let opened = Repositories::new(settings).unwrap().open(&request).await;
    opened.map(drop).map_err(|fault| fault.to_string())
}

#[tokio::test]
async fn c_48_a_component_version_is_verified_by_the_trusted_identity_and_told_with_the_line() {
    let signer = |world: &World| (Some(world.signer()), None);
    assert_eq!(opened(|_| {}, signer).await, Ok(()));
    let place = "the component example.com/shop:1.0.0 cannot be verified: the signature \"release\"";
    let line = "NamespacePolicy team, line spec.signatures.trustedKeys[0]";
    let refused = |why: &str| Err(format!("{place} {why}; {line} says by whom it has to be made"));
    let somebody = |world: &World| {
        let identity = SignerIdentity::Pattern("https://ci.example.org/acme/other/*".to_owned());
        (Some(KeylessSigner { identity, ..world.signer() }), None)
    };
    let made = format!(
        "was made by {IDENTITY:?} as {ISSUER:?} knows it, and trusted is https://ci.example.org/acme/other/* as {ISSUER} knows it"
    );
    assert_eq!(opened(|_| {}, somebody).await, refused(&made));
    let value = |value: Value| move |document: &mut Value| document["signatures"][0]["signature"]["value"] = value;
    assert_eq!(opened(value(json!("?")), signer).await, refused("has a bundle that is not in base64"));
    let rsa = |document: &mut Value| document["signatures"][0]["signature"]["algorithm"] = json!("RSASSA-PSS");
    let known = "is of the algorithm \"RSASSA-PSS\" with the media type \"application/vnd.dev.sigstore.bundle.v0.3+json\"; known \
                 is sigstore with application/vnd.dev.sigstore.bundle.v0.3+json";
    assert_eq!(opened(rsa, signer).await, refused(known));
    let renamed = |document: &mut Value| document["component"]["provider"] = json!("them");
    let other = opened(renamed, signer).await.unwrap_err();
    assert!(other.contains("its content is not what the signature \"release\" is for"), "{other}");
    // Of other content that has its own digest, the bundle is for the first one.
    let moved = |document: &mut Value| {
        document["component"]["provider"] = json!("them");
        let form = Normalisation::named("jsonNormalisation/v3").unwrap();
        let normal = Descriptor::parse(document).unwrap().normalised(form);
        document["signatures"][0]["digest"]["value"] =
            json!(ContentDigest::of(Algorithm::Sha256, normal.as_bytes()).hex());
    };
    let other = opened(moved, signer).await.unwrap_err();
    assert!(other.contains("the signature \"release\" is for other content"), "{other}");
    // A key is no identity, and an identity is no key.
    let key = |_: &World| (None, Some(b"-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n".to_vec()));
    let unknown = "is of the algorithm \"sigstore\"; known are RSASSA-PKCS1-V1_5 and RSASSA-PSS";
    assert_eq!(opened(|_| {}, key).await, Err(format!("{place} {unknown}")));
}

#[test]
fn limits_keyless_a_bundle_of_more_bytes_is_not_read() {
    let world = World::new();
    let mut bundle = world.sign(MESSAGE, &Signing::default()).to_string();
    bundle.extend(std::iter::repeat_n(' ', MOST_OF_A_BUNDLE - bundle.len()));
    assert_eq!(check(bundle.as_bytes(), MESSAGE, &world.signer()), Ok(()), "as many as there may be");
    bundle.push(' ');
    let size = bundle.len();
    let refused = format!("has a bundle of {size} bytes, and the limit is {MOST_OF_A_BUNDLE}; sign it again");
    assert_eq!(check(bundle.as_bytes(), MESSAGE, &world.signer()), Err(refused));
}
