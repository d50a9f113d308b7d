use serde_json::{Value, json};

use super::*;
use orangery_core::name::Namespace;

fn context(content: Value) -> Context {
    let mut object = json!({"metadata": {"name": "private", "namespace": "ns"}});
    object.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn full() -> Context {
    context(json!({
        "repositoryContext": {"type": "local", "filePath": "x"},
        "registryPullSecrets": [{"name": "pull"}],
        "ocmConfig": {"name": "ocm"},
        "componentVersionOverwrites": "over",
        "verificationSignatures": {
            "ours": {"publicKeySecretReference": {"name": "keys", "namespace": "ns", "key": "pem"}},
            "theirs": {"caCertificateSecretReference": {"name": "ca", "key": "crt"}},
        },
    }))
}

fn signature(name: &str) -> installation::Verification {
    installation::Verification { signature_name: name.to_owned() }
}

fn pair(namespace: &str, name: &str) -> (Namespace, ObjectName) {
    (namespace.into(), name.into())
}

fn secret(key: &str, content: &str) -> BTreeMap<String, Secret> {
    BTreeMap::from([(key.to_owned(), Secret(content.as_bytes().to_vec()))])
}

fn objects() -> ContextObjects {
    ContextObjects {
        secrets: BTreeMap::from([
            (pair("ns", "pull"), secret(".dockerconfigjson", "{}")),
            (pair("ns", "keys"), secret("pem", "KEY")),
            (pair("ns", "ca"), secret("crt", "CA")),
        ]),
        ocm_config: Some(BTreeMap::from([(".ocmconfig".to_owned(), "type: x".to_owned())])),
        overwrites: Some(
            serde_json::from_value(json!({
                "metadata": {"name": "over"},
                "overwrites": [{"source": {"componentName": "a"}, "substitution": {"version": "2"}}],
            }))
            .unwrap(),
        ),
    }
}

fn reference() -> ComponentSource {
    let (name, version) = ("example.org/a".to_owned(), "1.0.0".to_owned());
    ComponentSource::Reference(VersionReference { repository_context: None, name, version })
}

#[test]
fn exactly_one_form_of_a_component_descriptor_is_a_source() {
    for source in [reference(), ComponentSource::Inline(json!({"component": {}}).into())] {
        assert_eq!(ComponentSource::try_from(&ComponentDescriptorSource::from(&source)), Ok(source));
    }
    let both = ComponentDescriptorSource { inline: Some(json!({})), ..(&reference()).into() };
    for wrong in [both, ComponentDescriptorSource::default()] {
        assert_eq!(ComponentSource::try_from(&wrong), Err(NotOneSource));
    }
}

#[test]
fn a_context_names_what_one_installation_needs() {
    let credentials = ContextNames {
        secrets: BTreeSet::from([pair("ns", "pull")]),
        ocm_config: Some("ocm".to_owned()),
        overwrites: None,
    };
    assert_eq!(ContextNames::of_credentials(&full(), &"ns".into()), credentials);
    let unsigned = ContextNames { overwrites: Some("over".to_owned()), ..credentials };
    assert_eq!(ContextNames::of(&full(), &"ns".into(), None), unsigned);
    let signed = |more| ContextNames { secrets: BTreeSet::from([pair("ns", "pull"), more]), ..unsigned.clone() };
    assert_eq!(ContextNames::of(&full(), &"ns".into(), Some(&signature("ours"))), signed(pair("ns", "keys")));
    assert_eq!(ContextNames::of(&full(), &"ns".into(), Some(&signature("theirs"))), signed(pair("ns", "ca")));
    assert_eq!(ContextNames::of(&context(json!({})), &"ns".into(), Some(&signature("ours"))), ContextNames::default());
}

#[test]
fn a_request_has_all_that_the_context_says() {
    let (context, objects) = (full(), objects());
    let inputs = ContextInputs { context: &context, namespace: &"ns".into(), objects: &objects };
    let expected = ComponentRequest {
        source: reference(),
        repository_context: Some(json!({"type": "local", "filePath": "x"}).into()),
        overwrites: vec![Overwrite {
            source: OverwriteSide { component_name: "a".to_owned(), ..OverwriteSide::default() },
            substitution: OverwriteSide { version: "2".to_owned(), ..OverwriteSide::default() },
        }],
        credentials: Credentials {
            pull_secrets: vec![("pull".to_owned(), secret(".dockerconfigjson", "{}"))],
            ocm_config: Some(("ocm".to_owned(), Secret(b"type: x".to_vec()))),
            namespace: Some("ns".into()),
            ..Credentials::default()
        },
        verification: Some(Verification {
            signature: "ours".to_owned(),
            public_key: Some(b"KEY".to_vec()),
            ca_certificate: None,
            keyless: None,
            keys_of: KeySource::Context,
            above: Some(ComponentSource::Inline(json!({"above": true}).into())),
        }),
    };
    let above = ComponentSource::Inline(json!({"above": true}).into());
    assert_eq!(inputs.request(reference(), Some(&signature("ours")), Some(above)), Ok(expected));
    let theirs = inputs.request(reference(), Some(&signature("theirs")), None).unwrap().verification.unwrap();
    assert_eq!((theirs.public_key, theirs.ca_certificate, theirs.above), (None, Some(b"CA".to_vec()), None));
}

#[test]
fn what_a_context_names_and_is_not_there_is_told() {
    let message = |change: fn(&mut ContextObjects), wanted: &str| {
        let (context, mut objects) = (full(), objects());
        change(&mut objects);
        let inputs = ContextInputs { context: &context, namespace: &"ns".into(), objects: &objects };
        inputs.request(reference(), Some(&signature(wanted)), None).unwrap_err().to_string()
    };
    let missing =
        |what: &str| format!("{what}, which Context private names, does not exist; create it or correct the Context");
    let gone = |name: &'static str| missing(&format!("Secret {name}"));
    assert_eq!(message(|of| drop(of.secrets.remove(&pair("ns", "pull"))), "ours"), gone("ns/pull"));
    assert_eq!(message(|of| drop(of.secrets.remove(&pair("ns", "keys"))), "ours"), gone("ns/keys"));
    assert_eq!(message(|of| of.ocm_config = None, "ours"), missing("ConfigMap ns/ocm"));
    assert_eq!(message(|of| of.overwrites = None, "ours"), missing("ComponentVersionOverwrites ns/over"));
    assert_eq!(
        message(|of| of.ocm_config = Some(BTreeMap::new()), "ours"),
        "ConfigMap ns/ocm, which Context private names as ocmConfig, has no key .ocmconfig; add it"
    );
    assert_eq!(
        message(|of| drop(of.secrets.insert(pair("ns", "keys"), BTreeMap::new())), "ours"),
        "Secret ns/keys, which Context private names for a signature, has no key \"pem\"; correct the Context"
    );
    assert_eq!(
        message(|_| {}, "nobody"),
        "spec.verification asks for the signature \"nobody\", but Context private has no verificationSignatures of that \
         name; known are: ours, theirs"
    );
}

#[test]
fn the_key_of_a_signature_is_of_the_namespace_of_the_context() {
    for field in ["publicKeySecretReference", "caCertificateSecretReference"] {
        let reference_of = json!({"name": "keys", "namespace": "trust", "key": "pem"});
        let context = context(json!({"verificationSignatures": {"ours": {field: reference_of}}}));
        assert_eq!(ContextNames::of(&context, &"ns".into(), Some(&signature("ours"))), ContextNames::default());
        let objects = ContextObjects {
            secrets: BTreeMap::from([(pair("trust", "keys"), secret("pem", "KEY"))]),
            ..ContextObjects::default()
        };
        let inputs = ContextInputs { context: &context, namespace: &"ns".into(), objects: &objects };
        let refused = inputs.request(reference(), Some(&signature("ours")), None).unwrap_err().to_string();
        assert_eq!(
            refused,
            "Context private names the Secret trust/keys for a signature, which is of another namespace; put the key into a \
             Secret of the namespace ns, and leave the namespace of the reference out"
        );
    }
}

#[test]
fn c_280_what_a_context_names_often_is_there_once_and_headers_have_a_sum() {
    let pull = vec![json!({"name": "pull"}); 3];
    let header = json!({"url": "a.example", "secretRef": {"name": "keys", "key": "pem"}});
    let of = |auths: Vec<Value>, length: usize| {
        let auths = json!({"helmChartRepoCredentials": {"auths": auths}});
        let context = context(json!({"registryPullSecrets": pull, "configurations": auths}));
        let mut objects = objects();
        objects.secrets.insert(pair("ns", "keys"), secret("pem", &"x".repeat(length)));
        let inputs = ContextInputs { context: &context, namespace: &"ns".into(), objects: &objects };
        inputs.credentials().unwrap()
    };
    let most = MOST_CREDENTIAL_BYTES as usize;
    let credentials = of(vec![header.clone(); 2], most / 2);
    assert_eq!(credentials.pull_secrets, [("pull".to_owned(), secret(".dockerconfigjson", "{}"))]);
    let charts = credentials.chart_repositories;
    assert_eq!((charts.logins.len(), charts.unusable), (2, None));
    let charts = of(vec![header; 2], most / 2 + 1).chart_repositories;
    let why = "helmChartRepoCredentials of Context ns/private have headers of more than 2097152 bytes together; a Secret that \
               several entries name counts for each of them";
    assert_eq!((charts.logins.len(), charts.unusable.as_deref()), (0, Some(why)));
}

#[test]
fn limits_context_so_many_signatures_are_listed() {
    let signatures: BTreeMap<String, Value> = (0..25).map(|n| (format!("s{n:02}"), json!({}))).collect();
    let context = context(json!({"verificationSignatures": signatures}));
    let objects = ContextObjects::default();
    let inputs = ContextInputs { context: &context, namespace: &"ns".into(), objects: &objects };
    let refused = inputs.request(reference(), Some(&signature("nobody")), None).unwrap_err().to_string();
    assert!(refused.ends_with("known are: s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13, s14, s15, s16, s17, s18, s19 and 5 more"), "{refused}");
}
