//! What a bundle, a certificate or a trusted root may not leave open: what another reader could take for another thing, and what
//! an authority does not allow.

use rcgen::{BasicConstraints, CertificateParams, CustomExtension, IsCa, KeyUsagePurpose, date_time_ymd};

use super::{
    world::{CertificateTimestamp, ISSUED_BY, authority},
    *,
};

/// Changes of a certificate, and of what the log of certificates says.
fn given(certificate: fn(&mut CertificateParams), expected: &'static str) -> Case {
    made(Signing { certificate, ..usual() }, expected)
}

fn logged(timestamp: fn(&mut CertificateTimestamp), expected: &'static str) -> Case {
    made(Signing { timestamp, ..usual() }, expected)
}

/// What is answered to a usual bundle under a root with these authorities.
fn under(authorities: impl IntoIterator<Item = CertificateParams>) -> String {
    let world = World::of(authorities);
    answer(&world.sign(MESSAGE, &usual()), &world.signer())
}

fn with(change: impl FnOnce(&mut CertificateParams), name: &str) -> CertificateParams {
    let mut params = authority(name);
    change(&mut params);
    params
}

#[test]
fn c_105_an_authority_counts_while_its_own_certificate_does_and_as_far_as_that_says() {
    let valid = |from: i32, to: i32| {
        move |params: &mut CertificateParams| {
            (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        }
    };
    let length =
        |most: u8| move |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(most));
    let of = |why: &str| format!("{UNKNOWN}the certificate of an authority of the trusted root {why}");
    let (root, between) = (|| authority("root"), || authority("between"));
    assert_eq!(under([root(), between()]), "holds");
    assert_eq!(under([root()]), "holds");
    assert_eq!(under([root(), authority("first"), between()]), "holds", "the log was told who gave it");
    assert_eq!(under([with(valid(2025, 2027), "root"), between()]), "holds");
    assert_eq!(under([with(valid(2020, 2026), "root"), between()]), of("is not valid at 2026-01-01T12:00:00Z"));
    assert_eq!(under([with(valid(2027, 2030), "root"), between()]), of("is not valid at 2026-01-01T12:00:00Z"));
    assert!(under([root(), with(valid(2020, 2026), "between")]).starts_with(UNKNOWN));
    let no_authority = |params: &mut CertificateParams| params.is_ca = IsCa::ExplicitNoCa;
    assert_eq!(under([with(no_authority, "root"), between()]), of("is not one of an authority"));
    assert_eq!(under([with(|params| params.is_ca = IsCa::NoCa, "root"), between()]), of("is not one of an authority"));
    assert!(under([root(), with(no_authority, "between")]).starts_with(UNKNOWN));
    let more = format!("{UNKNOWN}there are more certificates below an authority than it allows (its path length)");
    assert_eq!(under([with(length(1), "root"), between()]), "holds");
    assert_eq!(under([with(length(0), "root"), between()]), more);
    assert_eq!(under([with(length(1), "root"), authority("first"), between()]), more);
    assert!(under([root(), with(length(0), "first"), between()]).starts_with(UNKNOWN));
}

#[test]
fn c_105_a_certificate_is_one_for_signatures_and_says_each_thing_once() {
    let not_for = "has a certificate that is not for signatures (its key usage)";
    let twice = "has a certificate in which an extension stands twice";
    let critical = |params: &mut CertificateParams| {
        let mut unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 57264, 9], vec![5, 0]);
        unknown.set_criticality(true);
        params.custom_extensions.push(unknown);
    };
    play(
        &World::new(),
        [
            given(|params| params.key_usages = Vec::new(), not_for),
            given(|params| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment], not_for),
            given(|params| params.extended_key_usages = Vec::new(), UNKNOWN),
            given(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained), UNKNOWN),
            given(critical, UNKNOWN),
            given(
                |params| {
                    let again = params.custom_extensions[0].clone();
                    params.custom_extensions.push(again);
                },
                twice,
            ),
        ],
    );
}

#[test]
fn c_105_an_identity_has_letters_that_are_seen() {
    let uri = |text: &str| SanType::URI(text.to_owned().try_into().expect("a text"));
    let one = "has a certificate without exactly one identity that is a URI or an email address";
    let world = World::new();
    let any = |identity: &str| {
        let bundle = world.sign(MESSAGE, &Signing { identities: vec![uri(identity)], ..usual() });
        answer(&bundle, &KeylessSigner { identity: SignerIdentity::Pattern("*".to_owned()), ..world.signer() })
    };
    assert_eq!(any("https://ci.example.org/x"), "holds");
    for identity in ["", " ", "https://ci.example.org/\n", "https://ci.example.org/a b", "https://ci.example.org/\u{0}"]
    {
        assert_eq!(any(identity), one, "{identity:?}");
    }
}

#[test]
fn c_105_the_issuer_is_one_text_and_the_older_form_counts_without_the_newer() {
    let world = World::new();
    let of = |certificate: fn(&mut CertificateParams)| {
        answer(&world.sign(MESSAGE, &Signing { issuer: None, certificate, ..usual() }), &world.signer())
    };
    const OLD: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 1];
    let nobody = "has a certificate that does not say who knows its identity (its OpenID Connect issuer)";
    fn push(params: &mut CertificateParams, oid: &[u64], content: Vec<u8>) {
        params.custom_extensions.push(CustomExtension::from_oid_content(oid, content));
    }
    assert_eq!(of(|params| push(params, OLD, ISSUER.into())), "holds");
    let other = |params: &mut CertificateParams| {
        push(params, OLD, ISSUER.into());
        push(params, ISSUED_BY, der::wrap(0x0c, b"https://other.example.org"));
    };
    assert!(of(other).starts_with("was made by "), "the newer form counts");
    let broken = |params: &mut CertificateParams| {
        push(params, OLD, ISSUER.into());
        push(params, ISSUED_BY, ISSUER.into());
    };
    assert_eq!(of(broken), nobody);
    assert_eq!(of(|params| push(params, ISSUED_BY, der::wrap(0x16, ISSUER.as_bytes()))), nobody);
    let longer = |params: &mut CertificateParams| {
        push(params, ISSUED_BY, [der::wrap(0x0c, ISSUER.as_bytes()), vec![0]].concat());
    };
    assert_eq!(of(longer), nobody);
    let ended =
        |params: &mut CertificateParams| push(params, ISSUED_BY, der::wrap(0x0c, b"https://issuer.example.org\0"));
    assert!(of(ended).starts_with("was made by "), "a text does not end before its end");
}

#[test]
fn c_105_what_the_log_of_certificates_says_is_signed_whole_and_of_this_certificate() {
    play(
        &World::new(),
        [
            logged(|_| {}, "holds"),
            logged(|says| says.extensions = vec![1, 2, 3], "holds"),
            logged(|says| says.times = 2, NOT_LOGGED),
            logged(|says| says.times = 0, NOT_LOGGED),
            logged(|says| says.version = 1, NOT_LOGGED),
            logged(|says| says.algorithms = [4, 1], NOT_LOGGED),
            logged(|says| says.algorithms = [5, 3], NOT_LOGGED),
            logged(|says| says.issuer = vec![0; 32], NOT_LOGGED),
            logged(|says| says.log = vec![0; 32], NOT_LOGGED),
            logged(|says| says.time = u64::MAX, NOT_LOGGED),
            logged(|says| says.time = 0, NOT_LOGGED),
        ],
    );
}

#[test]
fn c_105_a_bundle_that_could_be_read_in_two_ways_is_not_read() {
    let read = "has a bundle that cannot be read: ";
    let chain = "has a bundle with a chain of certificates or a public key; known is one certificate";
    let material = "/verificationMaterial";
    let signature = "/messageSignature/signature";
    let body = |written: fn(String) -> String, expected| made(Signing { written, ..usual() }, expected);
    play(
        &World::new(),
        [
            changed(&format!("{material}/x509CertificateChain"), json!({"certificates": []}), chain),
            changed(&format!("{material}/publicKey"), json!({"hint": "x"}), chain),
            changed(&format!("{material}/Certificate"), json!({}), read),
            changed("/message_signature", json!({}), read),
            changed("/messageSignature/Signature", json!("AA=="), read),
            changed("/messageSignature/messageDigest/value", json!("AA=="), read),
            changed(&format!("{ENTRY}/body"), json!("AA=="), read),
            changed(&format!("{ENTRY}/inclusionPromise/set"), json!("AA=="), read),
            changed(&format!("{ENTRY}/inclusionProof/root"), json!("AA=="), read),
            changed(&format!("{ENTRY}/inclusionProof/checkpoint/text"), json!(""), read),
            changed(
                &format!("{ENTRY}/kindVersion"),
                json!({"kind": "dsse", "version": "0.0.1"}),
                "has an entry of a log of the kind \"dsse\" \"0.0.1\"; known is hashedrekord 0.0.1",
            ),
            changed(&format!("{ENTRY}/kindVersion"), Value::Null, "holds"),
            changed(signature, json!("AA"), read),
            changed(signature, json!("AB=="), read),
            changed(signature, json!("A-__"), read),
            changed(signature, json!("AA==\n"), read),
            changed(signature, json!([0]), read),
            changed(&format!("{ENTRY}/logIndex"), json!(11), read),
            changed(&format!("{ENTRY}/logIndex"), json!("1e1"), read),
            body(
                |text| text.replacen("{", r#"{"kind":"hashedrekord","#, 1),
                "has an entry of a log that cannot be read: duplicate field `kind`",
            ),
            body(|text| format!("{text} {{}}"), "has an entry of a log that cannot be read: trailing characters"),
        ],
    );
    // Members that stand twice: the first reader takes one, the second the other.
    let world = World::new();
    let bundle = world.sign(MESSAGE, &usual()).to_string();
    let foreign = world.sign(b"other", &usual());
    for (name, value) in [
        ("messageSignature", &foreign["messageSignature"]),
        ("certificate", &foreign["verificationMaterial"]["certificate"]),
        ("canonicalizedBody", &foreign["verificationMaterial"]["tlogEntries"][0]["canonicalizedBody"]),
        ("keyId", &json!("AA==")),
        ("signature", &json!("AA==")),
    ] {
        let member = format!("\"{name}\":");
        let twice = bundle.replacen(&member, &format!("{member}{value},{member}"), 1);
        let found = check(twice.as_bytes(), MESSAGE, &world.signer()).unwrap_err();
        assert_eq!(found.split(" at line").next(), Some(format!("{read}duplicate field `{name}`").as_str()));
    }
    let found = check(format!("{bundle} {{}}").as_bytes(), MESSAGE, &world.signer()).unwrap_err();
    assert!(found.starts_with(&format!("{read}trailing characters")), "{found}");
}

#[test]
fn c_48_the_signature_is_by_the_key_of_the_certificate() {
    let expected = "does not hold: it was not made with the key of its certificate";
    play(&World::new(), [made(Signing { is_own: false, ..usual() }, expected)]);
}

#[test]
fn c_48_the_log_has_signed_its_tree_as_the_proof_has_it() {
    let refused = "has an entry with a proof that the log did not sign (its checkpoint)";
    let says = |checkpoint, expected| made(Signing { checkpoint, ..usual() }, expected);
    play(
        &World::new(),
        [
            says(|tree| tree.text.push_str("another line\n"), "holds"),
            says(|tree| tree.text = tree.text.replace("\n3\n", "\n4\n"), refused),
            says(|tree| tree.text = format!("log.example.org\n3\n{}\n", BASE64.encode(&[0; 32])), refused),
            says(|tree| tree.text.insert_str(0, "log.example.org\n"), refused),
            says(|tree| tree.hint = vec![0; 4], refused),
            says(|tree| tree.hint.truncate(3), refused),
        ],
    );
}

#[test]
fn c_105_the_entry_has_one_certificate_and_as_one() {
    let of_another = "has an entry of a log that is of another signature or certificate";
    fn rewritten(body: &mut Value, change: impl FnOnce(String) -> String) {
        let place = "/spec/signature/publicKey/content";
        let text = body.pointer(place).and_then(Value::as_str).expect("a text");
        let text = String::from_utf8(BASE64.decode(text.as_bytes()).expect("base64")).expect("PEM");
        set(body, place, json!(BASE64.encode(change(text).as_bytes())));
    }
    let logged = |entry| made(Signing { entry, ..usual() }, of_another);
    play(
        &World::new(),
        [
            logged(|body| rewritten(body, |pem| pem.replace("CERTIFICATE", "PUBLIC KEY"))),
            logged(|body| rewritten(body, |pem| format!("{pem}{pem}"))),
            logged(|body| rewritten(body, |_| "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned())),
        ],
    );
}

#[test]
fn c_105_a_trusted_root_is_of_a_known_form_and_says_when_it_ends() {
    let media_type = |text: &str| json!(text);
    let refused = "cannot be checked: the trusted root is \"application/vnd.dev.sigstore.trustedroot";
    let read = "cannot be checked: the trusted root cannot be read: unknown field `End`";
    play(
        &World::new(),
        [
            held_against("/mediaType", media_type("application/vnd.dev.sigstore.trustedroot.v0.2+json"), "holds"),
            held_against(
                "/mediaType",
                media_type("application/vnd.dev.sigstore.trustedroot+json;version=0.9"),
                refused,
            ),
            held_against("/mediaType", media_type("application/vnd.dev.sigstore.trustedroot"), refused),
            held_against(
                "/tlogs/0/publicKey/validFor",
                json!({"start": "2025-01-01T00:00:00Z", "End": "2025-02-01T00:00:00Z"}),
                read,
            ),
        ],
    );
}

#[test]
fn c_105_a_message_has_little_of_what_somebody_wrote() {
    let world = World::new();
    let long = json!("x".repeat(200 << 10));
    let mut bundle = world.sign(MESSAGE, &usual());
    for place in ["/verificationMaterial", "/mediaType", "/messageSignature/signature", ENTRY] {
        set(&mut bundle, place, long.clone());
        let found = answer(&bundle, &world.signer());
        assert!(found.starts_with("has ") && found.len() < 1_024, "{place}: {}", found.len());
        bundle = world.sign(MESSAGE, &usual());
    }
    let deep = "[".repeat(MOST_OF_A_BUNDLE);
    let found = check(deep.as_bytes(), MESSAGE, &world.signer()).unwrap_err();
    assert!(found.starts_with("has a bundle that cannot be read: "), "{found}");
    let root = KeylessSigner { trusted_root: long.to_string(), ..world.signer() };
    let found = answer(&bundle, &root);
    assert!(found.starts_with("cannot be checked: the trusted root cannot be read: ") && found.len() < 1_024);
}
