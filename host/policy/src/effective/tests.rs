//! Every line of a policy: what it allows, what it refuses, and what stands beside that.

use std::collections::BTreeMap;

use orangery_core::error::Code;
use serde_json::{Value, json};

use super::*;
use crate::{read::PolicyOrigin, set::PolicySet};

/// What counts where these policies select the namespace.
fn effective(specs: &[Value]) -> EffectivePolicy {
    let policies = specs.iter().enumerate().map(|(number, spec)| {
        let mut spec = spec.clone();
        if spec.get("namespaces").is_none() {
            spec["namespaces"] = json!({"names": ["a"]});
        }
        Policy::read(format!("p{number}"), &spec)
    });
    PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new())
}

/// The line that refuses a request of an Installation; `None` where it is allowed.
fn refused(spec: Value, request: PolicyRequest<'_>) -> Option<String> {
    effective(&[spec]).check(PolicySubject::Installation, request).err().map(|violation| violation.line)
}

/// The same of an item.
fn refused_item(spec: Value, item_type: &str, request: PolicyRequest<'_>) -> Option<String> {
    effective(&[spec]).check(PolicySubject::Item(item_type), request).err().map(|violation| violation.line)
}

fn key(api_version: &str, kind: &str, namespace: Option<&str>) -> ObjectKey {
    ObjectKey {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        name: "x".into(),
    }
}

fn selection(kind: &str, namespace: Option<&str>) -> Selection {
    Selection {
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        names: vec![],
        labels: None,
        fields: None,
    }
}

/// The requests that the profiles tell apart, then those that both allow.
fn profiles_tell_apart(profile: &str) -> Vec<Option<String>> {
    let (namespace, config_map) = (key("v1", "Namespace", None), key("v1", "ConfigMap", Some("b")));
    let everywhere = selection("Secret", None);
    let requests = [
        PolicyRequest::BlueprintComponent,
        PolicyRequest::UnsealedState("s"),
        PolicyRequest::HostCluster,
        PolicyRequest::Object(&namespace),
        PolicyRequest::Selection(&everywhere),
        PolicyRequest::Credential("shootAdmin"),
        PolicyRequest::Credential("serviceAccount"),
        PolicyRequest::InlineBlueprint,
        PolicyRequest::Template("GoTemplate"),
        PolicyRequest::ItemType("landscaper.gardener.cloud/helm"),
        PolicyRequest::Server("https://example.org:443"),
        PolicyRequest::Object(&config_map),
    ];
    requests.into_iter().map(|request| refused(json!({"profile": profile}), request)).collect()
}

#[test]
fn the_restricted_profile_refuses_what_reaches_beyond_a_tenant_and_the_compatible_one_nothing() {
    let restricted = [
        Some("spec.blueprints.components"),
        Some("spec.blueprints.unsealedStates"),
        Some("spec.targets.hostCluster.allow"),
        Some("spec.targets.clusterScoped"),
        Some("spec.targets.clusterScoped"),
        Some("spec.targets.credentials"),
    ];
    let restricted = restricted.into_iter().chain([None; 6]).map(|line| line.map(str::to_owned));
    assert_eq!(profiles_tell_apart("restricted"), restricted.collect::<Vec<_>>());
    assert_eq!(profiles_tell_apart("compatible"), vec![None; 12]);
}

#[test]
fn switches_are_on_or_off() {
    let both = |section: &str, spec: fn(bool) -> Value, request: PolicyRequest<'_>| {
        assert_eq!(refused(spec(true), request), None, "{section}");
        assert_eq!(refused(spec(false), request).as_deref(), Some(section));
    };
    both("spec.blueprints.inline", |on| json!({"blueprints": {"inline": on}}), PolicyRequest::InlineBlueprint);
    both(
        "spec.blueprints.components",
        |on| json!({"blueprints": {"components": on}}),
        PolicyRequest::BlueprintComponent,
    );
    both(
        "spec.blueprints.unsealedStates",
        |on| json!({"blueprints": {"unsealedStates": on}}),
        PolicyRequest::UnsealedState("s"),
    );
    both(
        "spec.targets.hostCluster.allow",
        |on| json!({"targets": {"hostCluster": {"allow": on}}}),
        PolicyRequest::HostCluster,
    );
    let role = key("rbac.authorization.k8s.io/v1", "ClusterRole", None);
    both("spec.targets.clusterScoped", |on| json!({"targets": {"clusterScoped": on}}), PolicyRequest::Object(&role));
}

/// A line with a list: what it allows, its neighbours that it refuses, and the empty list, which allows nothing.
fn check_list(line: &str, spec: fn(Value) -> Value, request: for<'a> fn(&'a str) -> PolicyRequest<'a>) {
    let list = json!(["one", "some-*"]);
    for allowed in ["one", "some-", "some-thing"] {
        assert_eq!(refused(spec(list.clone()), request(allowed)), None, "{line} {allowed}");
    }
    for neighbour in ["", "on", "one2", "xone", "some", "ONE"] {
        assert_eq!(refused(spec(list.clone()), request(neighbour)).as_deref(), Some(line), "{neighbour}");
    }
    assert_eq!(refused(spec(json!([])), request("one")).as_deref(), Some(line));
}

#[test]
fn lists_allow_what_matches_and_nothing_beside_it() {
    check_list(
        "spec.blueprints.templates",
        |list| json!({"blueprints": {"templates": list}}),
        |name| PolicyRequest::Template(name),
    );
    check_list(
        "spec.targets.servers",
        |list| json!({"targets": {"servers": list}}),
        |name| PolicyRequest::Server(name),
    );
    check_list(
        "spec.targets.credentials",
        |list| json!({"targets": {"credentials": list}}),
        |name| PolicyRequest::Credential(name),
    );
    let types = |list: Value| {
        let types: Vec<Value> = list.as_array().unwrap().iter().map(|one| json!({"type": one})).collect();
        json!({"items": {"types": types}})
    };
    check_list("spec.items.types", types, |name| PolicyRequest::ItemType(name));
}

#[test]
fn namespaces_of_targets_hold_for_writes_and_for_selections() {
    let spec = || json!({"targets": {"namespaces": ["apps-*"]}});
    for (namespace, line) in
        [("apps-1", None), ("apps", Some("spec.targets.namespaces")), ("kube-system", Some("spec.targets.namespaces"))]
    {
        let (object, every) = (key("v1", "ConfigMap", Some(namespace)), selection("ConfigMap", Some(namespace)));
        assert_eq!(refused(spec(), PolicyRequest::Object(&object)).as_deref(), line, "{namespace}");
        assert_eq!(refused(spec(), PolicyRequest::Selection(&every)).as_deref(), line, "{namespace}");
    }
}

#[test]
fn kinds_are_denied_first_and_have_to_be_allowed() {
    let spec = || {
        json!({"targets": {"clusterScoped": true, "kinds": {
            "allow": [{"group": "core"}, {"group": "apps", "kind": "Deployment"}, {"group": "*.acme.org"}],
            "deny": [{"group": "core", "kind": "Secret"}, {"kind": "*Role*"}],
        }}})
    };
    let table = [
        ("v1", "ConfigMap", None),
        ("v1", "Secret", Some("spec.targets.kinds.deny")),
        ("apps/v1", "Deployment", None),
        ("apps/v1", "StatefulSet", Some("spec.targets.kinds.allow")),
        ("core/v1", "ConfigMap", None),
        ("db.acme.org/v1", "Secret", None),
        ("db.acme.org/v1", "UserRole", Some("spec.targets.kinds.deny")),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", Some("spec.targets.kinds.deny")),
    ];
    for (api_version, kind, line) in table {
        let object = key(api_version, kind, Some("b"));
        assert_eq!(refused(spec(), PolicyRequest::Object(&object)).as_deref(), line, "{api_version} {kind}");
    }
}

#[test]
fn the_first_entry_of_an_item_type_narrows_what_the_namespace_may() {
    let spec = || {
        json!({
            "items": {"types": [
                {"type": "x/helm", "namespaces": ["apps"], "kinds": [{"group": "apps"}]},
                {"type": "x/*"},
            ]},
        })
    };
    let (mine, beside) = (key("apps/v1", "Deployment", Some("apps")), key("apps/v1", "Deployment", Some("b")));
    let other = key("v1", "ConfigMap", Some("apps"));
    let table = [
        (PolicyRequest::Object(&mine), None),
        (PolicyRequest::Object(&beside), Some("spec.items.types[0].namespaces")),
        (PolicyRequest::Object(&other), Some("spec.items.types[0].kinds")),
    ];
    for (request, line) in table {
        assert_eq!(refused_item(spec(), "x/helm", request).as_deref(), line, "{request}");
    }
    for request in [PolicyRequest::Object(&beside), PolicyRequest::Object(&other)] {
        assert_eq!(refused_item(spec(), "x/manifest", request), None, "the other entry counts: {request}");
        assert_eq!(refused(spec(), request), None, "an Installation is no item: {request}");
    }
    assert_eq!(refused_item(spec(), "y", PolicyRequest::Object(&mine)).as_deref(), Some("spec.items.types"));
}

#[test]
fn of_several_policies_each_has_to_allow_what_is_asked() {
    let open = json!({"targets": {"namespaces": ["*"]}});
    let narrow = json!({"targets": {"namespaces": ["apps"]}});
    let object = key("v1", "ConfigMap", Some("b"));
    for (specs, policy) in [([open.clone(), narrow.clone()], "p1"), ([narrow, open], "p0")] {
        let violation = effective(&specs).check(PolicySubject::Item("t"), PolicyRequest::Object(&object)).unwrap_err();
        assert_eq!(violation.policy, PolicyOrigin::Named(policy.to_owned()));
    }
}

#[test]
fn a_policy_that_cannot_be_used_allows_nothing() {
    let violation = effective(&[json!({"targets": {"nets": []}})])
        .check(PolicySubject::Item("t"), PolicyRequest::ItemType("t"))
        .unwrap_err();
    assert_eq!(violation.line, "spec");
    let text = violation.to_string();
    assert!(
        text.starts_with(
            "an item of type t is refused by NamespacePolicy p0, line spec (it cannot be used: spec cannot be read:"
        ) && text.ends_with("; have an administrator correct that policy"),
        "{text}"
    );
}

#[test]
fn a_violation_names_policy_line_request_and_remedy() {
    let object = key("v1", "Namespace", None);
    let text = |set: PolicySet| {
        let effective = set.of(&"a".into(), &BTreeMap::new());
        effective.check(PolicySubject::Item("t"), PolicyRequest::Object(&object)).unwrap_err()
    };
    let own = json!({"namespaces": {"names": ["a"]}, "targets": {"clusterScoped": false}});
    let own = text(PolicySet::new(Profile::Compatible, [Policy::read("team", &own)]));
    assert_eq!(
        own.to_string(),
        "v1 Namespace x outside of namespaces is refused by NamespacePolicy team, line spec.targets.clusterScoped; leave it \
         out, or have an administrator set clusterScoped: true there"
    );
    let based =
        text(PolicySet::new(Profile::Compatible, [Policy::read("team", &json!({"namespaces": {"names": ["a"]}}))]));
    assert_eq!(
        based.to_string(),
        "v1 Namespace x outside of namespaces is refused by NamespacePolicy team, line spec.targets.clusterScoped of its \
         profile restricted; leave it out, or have an administrator set clusterScoped: true there"
    );
    let default = text(PolicySet::new(Profile::Restricted, []));
    assert_eq!(
        default.to_string(),
        "v1 Namespace x outside of namespaces is refused by the default policy, line spec.targets.clusterScoped; leave it \
         out, or have an administrator set clusterScoped: true in a NamespacePolicy for the namespace"
    );
    let failure = default.failure("CheckPolicy");
    assert_eq!(
        (failure.reason.as_str(), failure.codes.iter().next()),
        ("PolicyViolation", Some(&Code::PolicyViolation))
    );
    assert_eq!(default.fault().problem().code, Code::PolicyViolation);
}

#[test]
fn what_somebody_wrote_is_cut_and_escaped() {
    let long = "x\n".repeat(1_000);
    let violation = effective(&[json!({"targets": {"servers": []}})])
        .check(PolicySubject::Installation, PolicyRequest::Server(&long))
        .unwrap_err();
    let text = violation.to_string();
    assert!(text.len() < 2_000 && !text.contains('\n'), "{text}");
}

const PEM: &str = "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n";
const OTHER: &str = "-----BEGIN PUBLIC KEY-----\nAQ==\n-----END PUBLIC KEY-----\n";

fn signatures(rules: Value) -> Value {
    json!({"signatures": rules})
}

#[test]
fn c_47_what_no_signature_covers_is_refused_where_signatures_are_required() {
    for request in [
        PolicyRequest::UnsignedBlueprint,
        PolicyRequest::UnsignedComponent("example.org/app"),
        PolicyRequest::UnsignedItem("item"),
        PolicyRequest::UnpinnedPlugin("plugin"),
    ] {
        let line = |required: bool| refused(signatures(json!({"required": required})), request);
        assert_eq!(line(true).as_deref(), Some("spec.signatures.required"));
        assert_eq!((line(false), refused(json!({}), request)), (None, None));
    }
    let required = effective(&[signatures(json!({"required": true}))]);
    let refusal = required.check(PolicySubject::Installation, PolicyRequest::UnsignedBlueprint).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "a blueprint that no signature covers (a ref into spec.componentDescriptor with spec.verification would be) is \
         refused by NamespacePolicy p0, line spec.signatures.required; leave it out, or have an administrator set \
         required: false there"
    );
}

#[test]
fn c_47_the_first_key_that_matches_component_and_signature_counts() {
    let keys = json!([
        {"components": ["example.org/*"], "signature": "release", "publicKey": PEM},
        {"components": ["example.org/app"], "publicKey": OTHER},
    ]);
    let policy = effective(&[signatures(json!({"trustedKeys": keys}))]);
    let key = |component: &str, signature: &str| {
        policy
            .trusted_key(component, signature)
            .map(|key| key.map(|key| key.signer.text().into_owned()))
            .map_err(|violation| violation.line)
    };
    assert_eq!(key("example.org/app", "release"), Ok(Some(PEM.trim().to_owned())));
    assert_eq!(key("example.org/app", "nightly"), Ok(Some(OTHER.trim().to_owned())));
    let none = Err("spec.signatures.trustedKeys".to_owned());
    assert_eq!((key("example.org/part", "nightly"), key("example.com/app", "release")), (none.clone(), none));
    assert!(policy.decides_on_keys() && !policy.requires_signatures());
}

#[test]
fn c_47_without_keys_those_of_the_context_count_unless_signatures_are_required() {
    let open = effective(&[json!({})]);
    assert_eq!((open.trusted_key("a", "b"), open.decides_on_keys()), (Ok(None), false));
    let required = effective(&[signatures(json!({"required": true}))]);
    assert_eq!(required.trusted_key("a", "b").unwrap_err().line, "spec.signatures.trustedKeys");
    assert!(required.decides_on_keys(), "keys of a Context count for nothing where signatures are required");
    let unusable = effective(&[json!({"quotas": 5})]);
    assert!(unusable.decides_on_keys() && unusable.requires_signatures(), "nothing is open by mistake");
}

#[test]
fn c_47_of_two_policies_neither_replaces_the_key_of_the_other() {
    let with = |key: &str| signatures(json!({"trustedKeys": [{"publicKey": key}]}));
    let same = effective(&[with(PEM), with(PEM)]);
    let line = "NamespacePolicy p1, line spec.signatures.trustedKeys[0]".to_owned();
    assert_eq!(same.trusted_key("a", "b"), Ok(Some(FoundKey { signer: TrustedSigner::PublicKey(PEM), line })));
    let refusal = effective(&[with(PEM), with(OTHER)]).trusted_key("a", "b").unwrap_err().to_string();
    assert_eq!(
        refusal,
        "the signature b of the component a is refused by NamespacePolicy p1, line spec.signatures.trustedKeys \
         (NamespacePolicy p0 has another key for it); have an administrator correct that policy"
    );
}

#[test]
fn c_47_a_key_that_is_none_makes_the_policy_unusable() {
    let fault = |key: &str| {
        let policy = Policy::read("p", &signatures(json!({"trustedKeys": [{"publicKey": key}]})));
        policy.lines().map(drop).map_err(str::to_owned)
    };
    assert_eq!(fault(PEM), Ok(()));
    let no_pem =
        "spec.signatures.trustedKeys[0] has no PEM in publicKey; put a public key there, from -----BEGIN to END";
    assert_eq!(fault("release"), Err(no_pem.to_owned()));
    let private = "spec.signatures.trustedKeys[0] has a private key in publicKey; put the public one there, and replace the \
                   pair";
    assert_eq!(fault("-----BEGIN PRIVATE KEY-----\nAA==\n"), Err(private.to_owned()));
}

fn keyless(change: fn(&mut Value)) -> Value {
    let root = json!({"certificateAuthorities": [{}], "ctlogs": [{}], "tlogs": [{}]}).to_string();
    let mut key = json!({"keyless": {"issuer": "https://i", "identity": "https://a/*", "trustedRoot": root}});
    change(&mut key);
    signatures(json!({"trustedKeys": [key]}))
}

#[test]
fn c_48_of_two_policies_neither_replaces_the_signer_of_the_other() {
    let same = effective(&[keyless(|_| {}), keyless(|_| {})]);
    let found = same.trusted_key("a", "b").unwrap().unwrap();
    let TrustedSigner::Keyless(rule) = found.signer else { panic!("it is a key") };
    let signer = rule.signer().unwrap();
    assert_eq!(signer.identity, orangery_ocm::SignerIdentity::Pattern("https://a/*".to_owned()));
    assert!(same.decides_on_keys());
    let others: [fn(&mut Value); 4] = [
        |key| key["keyless"]["issuer"] = json!("https://j"),
        |key| key["keyless"]["identity"] = json!("https://a/b"),
        |key| key["keyless"]["trustedRoot"] = json!(r#"{"certificateAuthorities":[{}],"ctlogs":[{}],"tlogs":[1]}"#),
        |key| *key = json!({"publicKey": PEM}),
    ];
    for other in others {
        let refusal = effective(&[keyless(|_| {}), keyless(other)]).trusted_key("a", "b").unwrap_err();
        assert_eq!(refusal.line, "spec.signatures.trustedKeys");
    }
}

#[test]
fn c_48_an_entry_that_says_nobody_or_two_makes_the_policy_unusable() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 10] = [
        (|_| {}, ""),
        (|key| key["publicKey"] = json!(PEM), "has to have exactly one of publicKey and keyless"),
        (|key| *key = json!({}), "has to have exactly one of publicKey and keyless"),
        (
            |key| key["keyless"]["identityExpression"] = json!("a"),
            "has to have exactly one of keyless.identity and keyless.identityExpression",
        ),
        (
            |key| drop(key["keyless"].as_object_mut().unwrap().remove("identity")),
            "has to have exactly one of keyless.identity and keyless.identityExpression",
        ),
        (
            |key| {
                drop(key["keyless"].as_object_mut().unwrap().remove("identity"));
                key["keyless"]["identityExpression"] = json!("(a");
            },
            "has a keyless.identityExpression that is no regular expression: error: unclosed group",
        ),
        (
            |key| {
                drop(key["keyless"].as_object_mut().unwrap().remove("identity"));
                key["keyless"]["identityExpression"] = json!("a".repeat(513));
            },
            "has a keyless.identityExpression that has 513 bytes, 512 are allowed; write less",
        ),
        (
            |key| key["keyless"]["issuer"] = json!(""),
            "has no keyless.issuer; name who knows the identity, such as https://accounts.google.com",
        ),
        (|key| key["keyless"]["identity"] = json!(""), "has a pattern of 0 letters; it has to have 1 to 512"),
        (
            |key| key["keyless"]["trustedRoot"] = json!(r#"{"certificateAuthorities": [{}], "tlogs": [{}]}"#),
            "has a keyless.trustedRoot without ctlogs; put the content of a trusted_root.json there, as `cosign trusted-root \
             create` makes it",
        ),
    ];
    for (change, expected) in cases {
        let policy = Policy::read("p", &keyless(change));
        let told = policy.lines().map(drop).map_err(str::to_owned);
        let place = format!("spec.signatures.trustedKeys[0] {expected}");
        assert_eq!(told, if expected.is_empty() { Ok(()) } else { Err(place) });
    }
}

#[test]
fn limits_keyless_a_trusted_root_of_more_bytes_makes_the_policy_unusable() {
    let fault = |size: usize| {
        let mut spec = keyless(|_| {});
        let root = &mut spec["signatures"]["trustedKeys"][0]["keyless"]["trustedRoot"];
        let text = root.as_str().unwrap().to_owned();
        *root = json!(format!("{text}{}", " ".repeat(size - text.len())));
        Policy::read("p", &spec).lines().map(drop).map_err(str::to_owned)
    };
    assert_eq!(fault(65_536), Ok(()));
    let refused = "spec.signatures.trustedKeys[0] has a keyless.trustedRoot of 65537 bytes; it may have 65536";
    assert_eq!(fault(65_537), Err(refused.to_owned()));
}

#[test]
fn c_49_where_an_approval_is_required_no_external_deployer_works_since_nobody_could_give_one() {
    assert_eq!(refused(json!({}), PolicyRequest::Unapproved), None);
    assert_eq!(refused(json!({"approval": "None"}), PolicyRequest::Unapproved), None);
    let both = effective(&[json!({}), json!({"approval": "Required"})]);
    let refusal = both.check(PolicySubject::Item("x/y"), PolicyRequest::Unapproved).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "an item of an external deployer, whose writes nobody can approve (approval: None asks for none), is refused by \
         NamespacePolicy p1, line spec.approval; have an administrator correct that policy"
    );
    let requires = |policies: &[Value]| effective(policies).requires_approval();
    assert!(both.requires_approval() && !requires(&[json!({}), json!({"approval": "None"})]));
    let unknown = effective(&[json!({"approval": "Perhaps"})]);
    assert!(unknown.requires_approval(), "a policy that cannot be used asks for everything");
    assert_eq!(unknown.check(PolicySubject::Installation, PolicyRequest::Unapproved).unwrap_err().line, "spec");
}

#[test]
fn c_81_of_several_policies_the_strictest_says_what_becomes_of_data_of_secrets() {
    let says = |rule: &str| json!({"dataObjects": {"secretData": rule}});
    let of = |policies: &[Value]| effective(policies).secret_data();
    let (readable, encrypted, refused) = (says("Readable"), says("Encrypted"), says("Refused"));
    assert_eq!(of(std::slice::from_ref(&readable)), SecretDataRule::Readable);
    assert_eq!(of(&[readable.clone(), json!({})]), SecretDataRule::Encrypted, "of the profile restricted");
    assert_eq!(of(&[refused.clone(), encrypted.clone()]), SecretDataRule::Refused);
    assert_eq!(of(&[json!({"dataObjects": {"secretData": "Open"}})]), SecretDataRule::Refused, "it cannot be used");
    let asked = |policies: &[Value]| {
        effective(policies)
            .check(PolicySubject::Installation, PolicyRequest::SecretData("d"))
            .map_err(|it| it.to_string())
    };
    assert_eq!(asked(&[readable, encrypted]), Ok(()));
    let sentence = "data of Secrets in the DataObject d is refused by NamespacePolicy p0, line spec.dataObjects.secretData; leave \
                    it out, or have an administrator set secretData: Encrypted there";
    assert_eq!(asked(&[refused]), Err(sentence.to_owned()));
}
