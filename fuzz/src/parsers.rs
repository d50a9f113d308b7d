//! Parsers and evaluators of what others wrote, each as a fuzzer calls it: bytes in, no answer. What has to hold of every
//! answer is asserted.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use orangery_blueprint::{
    BlueprintReading, FileSystem, decode_exports, decode_imports, decode_items, decode_subinstallations,
    schema::Schemas,
};
use orangery_core::{
    automatic::Schedule,
    digest::content::{Algorithm, ContentDigest},
    jsonpath::{ParsedPath, StepBudget},
    masking::{MASK, Masker, SHORTEST_MASKED},
    memory,
    name::Namespace,
    network::{self, Network},
    pattern,
    yaml::{self, MOST_ALIASED_BYTES, MOST_YAML_BYTES, MOST_YAML_DEPTH},
};
use orangery_expression::{Expression, ExpressionScope, Type};
use orangery_ocm::{Descriptor, KeylessSigner, Normalisation, ResourceKey, ResourceReference, SignerIdentity};
use orangery_policy::{Policy, PolicySet, Profile};
use orangery_proposal::{
    Proposal,
    check::{self, Bounds},
    executor::writes,
    grant::Grants,
    inventory::Inventory,
    overlay::{Ignored, drift},
    recorded::{RecordedAnswer, RecordedRequest, differences},
};
use orangery_registry::oci::{DockerConfig, ManifestDocument, OcmConfig, manifest};
use serde_json::{Map, Value, json};

/// Calls a parser.
pub type Parser = fn(&[u8]);

/// All parsers by name: that of the target and of the folder of its corpus.
pub const ALL: [(&str, Parser); 30] = [
    ("address", address),
    ("archive", archive),
    ("blueprint", blueprint),
    ("bundle", bundle),
    ("certificate", certificate),
    ("component", component),
    ("credentials", credentials),
    ("definition", definition),
    ("descriptor", descriptor),
    ("event", event),
    ("expression", expression),
    ("frame", frame),
    ("index", index),
    ("inventory", inventory),
    ("json", json_text),
    ("jsonpath", jsonpath),
    ("kubeconfig", kubeconfig),
    ("manifest", manifest),
    ("masking", masking),
    ("output", output),
    ("pattern", name_pattern),
    ("policy", policy),
    ("proposal", proposal),
    ("recorded", recorded),
    ("reference", reference),
    ("root", trusted_root),
    ("schedule", schedule),
    ("schema", schema),
    ("scope", scope),
    ("yaml", yaml_text),
];

/// Runs the parser of a name.
pub fn run(name: &str, bytes: &[u8]) {
    let found = ALL.iter().find(|(own, _)| *own == name);
    let (_, parser) = found.unwrap_or_else(|| panic!("there is no parser {name}"));
    parser(bytes);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A YAML document of any sort.
fn yaml_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let decoded = yaml::decode(text);
    let located = yaml::locate(text).map(|located| located.value);
    assert_eq!(decoded, located, "it is the same with places");
    if let Ok(value) = decoded {
        assert!(depth(&value) <= MOST_YAML_DEPTH, "it is too deep");
        assert!(memory::of(&value) <= 2 * (MOST_YAML_BYTES + MOST_ALIASED_BYTES), "it is too large");
    }
    let _ = yaml::documents(text);
}

/// A JSON answer: it is never measured below what it takes.
fn json_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let most = memory::of_json(text);
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        assert!(memory::of(&value) <= most, "{most} is below {}", memory::of(&value));
    }
}

/// A JSONPath over an object with a little of everything.
fn jsonpath(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(path) = ParsedPath::parse(text) else { return };
    let conditions: Vec<Value> =
        (0..50).map(|at| json!({"type": format!("T{at}"), "status": "True", "n": at})).collect();
    let document = json!({
        "a": {"a": {"a": {"a": [1, 2, [3, [4, [5]]]]}}}, "status": {"conditions": conditions}, "list": [0, "x", null, true],
    });
    let budget = StepBudget::default();
    let _ = path.all(&document, &budget);
    let _ = path.one(&document, &budget);
}

/// A schema, a line break, and a value; the schema is a local type as well.
fn schema(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (schema, value) = text.split_once('\n').unwrap_or((text, "{}"));
    let (Ok(schema), Ok(value)) = (serde_json::from_str::<Value>(schema), serde_json::from_str::<Value>(value)) else {
        return;
    };
    let types = match schema.get("localTypes").and_then(Value::as_object) {
        Some(types) => types.iter().map(|(name, of)| (name.clone(), of.clone())).collect(),
        None => BTreeMap::from([("t".to_owned(), schema.clone())]),
    };
    let Ok(files) = FileSystem::parse(&json!({})) else { return };
    let schemas = Schemas { local_types: &types, files: &files, resources: &BTreeMap::new() };
    let _ = schemas.check(&schema, &value);
}

/// An expression in CEL: compiled, checked, its cost told, evaluated.
fn expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(expression) = Expression::compile(text) else { return };
    let document: Map<String, Value> =
        [("imports".to_owned(), json!({"list": [1, 2, 3], "text": "abc", "map": {"a": 1}}))].into_iter().collect();
    let _ = expression.check(&[("imports", Type::Any)]);
    let _ = expression.reads();
    let _ = expression.holds_of(&document);
}

/// Expressions of admission, one a line: each but the last has a name for those behind it.
fn scope(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let expressions: Vec<Expression> = text.lines().filter_map(|line| Expression::compile(line).ok()).collect();
    let Some((last, others)) = expressions.split_last() else { return };
    let mut scope = ExpressionScope::new();
    scope.name(
        "object",
        &json!({"metadata": {"name": "a"}, "spec": {"list": [1, 2, 3], "text": "abc", "map": {"a": 1}}}),
    );
    scope.name("oldObject", &Value::Null);
    for (number, expression) in others.iter().enumerate() {
        scope.define(&format!("v{number}"), expression);
    }
    let _ = last.holds(&scope);
    let _ = last.text(&scope);
}

/// The schema of a version of a custom kind.
fn definition(bytes: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
    let _ = orangery_embedded::schema_problems(schema);
}

/// What the server of a Target tells a watch, one event a line.
fn event(bytes: &[u8]) {
    let _ = orangery_cluster::read_events(bytes);
}

/// What a worker says, and the proposal in it.
fn frame(bytes: &[u8]) {
    let _ = orangery_plugin::read_worker_frame(bytes);
}

/// A proposal in JSON: what was read is the same when it is read again, and drift from it is told within its limits.
fn proposal(bytes: &[u8]) {
    let Ok(proposal) = serde_json::from_slice::<Proposal>(bytes) else { return };
    let grants = json!({"clusters": {"host": true}, "reads": [{}], "writes": [{}]});
    let grants: Grants = serde_json::from_value(grants).expect("grants");
    let _ = check::check(&proposal, &grants, Bounds::default());
    let written = serde_json::to_value(&proposal).expect("a proposal is JSON");
    assert_eq!(serde_json::from_value::<Proposal>(written).ok().as_ref(), Some(&proposal), "it is the same");
    for (_, write) in writes(&proposal) {
        assert_eq!(drift(&write.object, &write.object, &Ignored::default()), [], "nothing has drifted");
        let told = drift(&write.object, &json!({}), &Ignored::default());
        assert!(told.iter().map(|one| one.pointer().len()).sum::<usize>() <= 1 << 20, "pointers share a megabyte");
    }
}

/// A recorded call of a case, or its answer: what was read is the same when it is read again, and as many places are shown at most as
/// are asked for.
fn recorded(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<RecordedRequest>(bytes) {
        let written = serde_json::to_value(&request).expect("a call is JSON");
        assert_eq!(serde_json::from_value::<RecordedRequest>(written).ok(), Some(request), "it is the same");
    }
    if let Ok(answer) = serde_json::from_slice::<RecordedAnswer>(bytes) {
        let written = serde_json::to_value(&answer).expect("an answer is JSON");
        assert_eq!(differences(&written, &written, 12), [""; 0], "it is no other than itself");
        assert!(differences(&written, &Value::Null, 12).len() <= 13, "there is a sentence more for the rest");
        assert_eq!(serde_json::from_value::<RecordedAnswer>(written).ok(), Some(answer), "it is the same");
    }
}

/// An index of a repository of charts, below a line with a chart and its version: what is not listed is not found.
fn index(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((wanted, index)) = text.split_once('\n') else { return };
    let (chart, version) = wanted.split_once(' ').unwrap_or((wanted, ""));
    if orangery_registry::chart_in_index(index.as_bytes(), chart, version).is_ok() {
        let document = yaml::decode(index).expect("something was found in it");
        assert!(document["entries"][chart].is_array(), "{chart} is not listed");
    }
}

/// A component descriptor in YAML, and its normal forms.
fn descriptor(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(document) = yaml::decode(text) else { return };
    let Ok(descriptor) = Descriptor::parse(&document) else { return };
    for form in [Normalisation::V1, Normalisation::V2, Normalisation::V3] {
        let _ = descriptor.normalised(form);
    }
}

/// A reference to a resource, or a resource key.
fn reference(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = ResourceReference::parse(text);
    let _ = ResourceKey::read(text);
}

/// A blueprint in an archive.
fn archive(bytes: &[u8]) {
    let _ = orangery_registry::blueprint(bytes);
}

/// The kubeconfig of a target, and the server that it leads to.
fn kubeconfig(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(server) = orangery_cluster::server_of(text) {
        assert!(server.contains("://"), "{server} has no scheme");
        assert_eq!(server, server.to_ascii_lowercase(), "policies compare it letter by letter");
    }
}

/// An address: what is denied is denied in all clothes of IPv6, and what is reserved is reserved.
fn address(bytes: &[u8]) {
    if let Some(four) = bytes.first_chunk::<4>() {
        let plain = Ipv4Addr::from(*four);
        let denied = network::denied(IpAddr::V4(plain)).is_some();
        let reserved = network::reserved(IpAddr::V4(plain)).next();
        let [a, b, c, d] = *four;
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let dressed = [
            plain.to_ipv6_mapped(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
        ];
        for six in dressed {
            assert!(!denied || network::denied(IpAddr::V6(six)).is_some(), "{six} hides {plain}");
            assert_eq!(network::reserved(IpAddr::V6(six)).next(), reserved, "{six} hides {plain}");
        }
    }
    if let Some(six) = bytes.first_chunk::<16>() {
        let six = IpAddr::V6(Ipv6Addr::from(*six));
        let _ = network::denied(six);
        let mut read = network::reserved(six);
        assert!(read.all(|(address, _)| Network::of_one(address).contains(address)), "{six} is no network");
    }
}

/// A bundle of the public instance of Sigstore, what it is for, and the trusted root.
const BUNDLE: &str = include_str!("../../host/registry/tests/sigstore/bundle.json");
const SIGNED: &[u8] = b"test content for cosign\n";
const TRUSTED_ROOT: &str = include_str!("../../host/registry/tests/sigstore/trusted-root.json");

/// Whether a bundle holds for a content, whoever made it.
fn holds(document: &str, content: &[u8], trusted_root: &str) -> bool {
    let identity = SignerIdentity::Pattern("*".to_owned());
    let issuer = "https://github.com/login/oauth".to_owned();
    let signer = KeylessSigner { issuer, identity, trusted_root: trusted_root.to_owned() };
    orangery_registry::check_bundle(document.as_bytes(), content, &signer).is_ok()
}

/// A bundle: it holds for nothing that nobody signed, and for what somebody did only with that signature and certificate.
fn bundle(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(!holds(text, b"nobody signed this", TRUSTED_ROOT), "it holds for another content");
    if holds(text, SIGNED, TRUSTED_ROOT) {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (found, own) = (read(text), read(BUNDLE));
        for place in ["/messageSignature/signature", "/verificationMaterial/certificate"] {
            assert_eq!(found.pointer(place), own.pointer(place), "{place} is not what was signed");
        }
    }
}

/// A certificate, in DER, in the place of the one that signed: no other one holds there.
fn certificate(bytes: &[u8]) {
    let Ok(mut bundle) = serde_json::from_str::<Value>(BUNDLE) else { return };
    let Some(place) = bundle.pointer_mut("/verificationMaterial/certificate/rawBytes") else { return };
    let other = Value::String(data_encoding::BASE64.encode(bytes));
    let is_own = *place == other;
    *place = other;
    assert_eq!(holds(&bundle.to_string(), SIGNED, TRUSTED_ROOT), is_own);
}

/// A trusted root: whatever it has, a bundle holds for its own content alone.
fn trusted_root(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = holds(BUNDLE, SIGNED, text);
    assert!(!holds(BUNDLE, b"nobody signed this", text), "it holds for another content");
}

/// A component's bytes, before anything compiles them.
fn component(bytes: &[u8]) {
    if let Ok(found) = orangery_plugin::inspect(bytes) {
        assert_eq!(found.size, bytes.len() as u64);
    }
}

/// Credentials of registries, in both forms that there are.
fn credentials(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = DockerConfig::read(text, "a fuzzer");
    let _ = OcmConfig::read(text, "a fuzzer");
    let _ = OcmConfig::read_credentials(text, "a fuzzer");
}

/// A manifest of a registry.
fn manifest(bytes: &[u8]) {
    let digest = ContentDigest::of(Algorithm::Sha256, bytes);
    if let Ok(ManifestDocument::Manifest(read)) =
        manifest::read(bytes, digest, "application/vnd.oci.image.manifest.v1+json")
    {
        let _ = read.wasm_layer();
        let _ = read.content_layer();
    }
}

/// A value on the first line, a text on the others: nothing of the value stands in what is shown.
fn masking(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((value, text)) = text.split_once('\n') else { return };
    let value = value.trim();
    let masker = Masker::of([value]);
    let shown = format!("{text}{value}{text}");
    let masked = masker.mask(&shown);
    // One that has the mask in it, or begins or ends as the mask ends or begins, may come about beside a mask.
    let meets = |at: usize| {
        let (begin, end) = MASK.split_at(at);
        value.starts_with(end) || value.ends_with(begin)
    };
    let comes_about = MASK.contains(value) || value.contains(MASK) || (1..MASK.len()).any(meets);
    if value.len() >= SHORTEST_MASKED && !comes_about {
        assert!(!masked.contains(value), "{value:?} stands in {masked:?}");
    }
}

/// The answers of templates.
fn output(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(document) = yaml::decode(text) else { return };
    let _ = decode_items(&document);
    let _ = decode_imports(&document);
    let _ = decode_exports(&document);
    let _ = decode_subinstallations(&document);
}

/// A blueprint's own file, alone in its folder.
fn blueprint(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(files) = FileSystem::parse(&json!({ "blueprint.yaml": text })) else { return };
    let _ = BlueprintReading::of(&files);
}

/// The list of objects in a status: what was read is written as it was read.
fn inventory(bytes: &[u8]) {
    let Ok(list) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(read) = Inventory::read(Some(&list)) {
        let written = read.list();
        assert_eq!(Inventory::read(written.as_ref()), Ok(read), "it is the same when it is read again");
    }
}

/// A pattern of a grant or a policy, a line break, and a name.
fn name_pattern(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (of, name) = text.split_once('\n').unwrap_or((text, text));
    let matched = pattern::matches(of, name);
    assert!(!of.chars().all(|letter| letter == '*') || of.is_empty() || matched, "{of:?} matches all names");
    assert!(of.contains('*') || matched == (of == name), "{of:?} has no wildcard");
}

/// The spec of a NamespacePolicy: one that cannot be used lets nobody reach a server.
fn policy(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<Value>(bytes) else { return };
    let policy = Policy::read("fuzzed", &spec);
    let namespace = Namespace::from("team");
    let usable = policy.lines().is_ok();
    let selects = policy.selects(&namespace, &BTreeMap::new());
    let effective = PolicySet::new(Profile::Compatible, [policy]).of(&namespace, &BTreeMap::new());
    let _ = effective.explain();
    assert!(usable || !selects || !effective.allows_any_server(), "a policy that cannot be used allows nothing");
}

/// When to run again: an expression on the first line, an interval on the next.
fn schedule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (cron, interval) = text.split_once('\n').map_or((text, None), |(cron, interval)| (cron, Some(interval)));
    let _ = Schedule::parse(cron, interval, Duration::from_secs(60));
}
