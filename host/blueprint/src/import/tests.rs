use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::{
    FileSystem, ImportDefinition, ImportKind,
    binding::ImportBindings,
    record::{Purpose, Record, RecordContent, RecordWriter, TargetContent, TargetPosition, UndecryptableData},
    schema::Schemas,
};
use orangery_core::name::{JobId, Kind, Namespace};

mod laws;
mod memory;
mod messages;
mod recorded;

const ROOT: RecordWriter<'static> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "x",
    parent: None,
    job: &JobId::from_static("j2"),
};
const CHILD: RecordWriter<'static> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "sub",
    parent: Some("x"),
    job: &JobId::from_static("j2"),
};

#[derive(Default)]
struct Gathered {
    data_objects: BTreeMap<String, DataValue>,
    targets: BTreeMap<String, TargetObject>,
    kept: Vec<(String, String, TargetObject)>,
    secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    config_maps: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    installations: BTreeSet<String>,
}

impl Sources for Gathered {
    fn data_object(&self, name: &str) -> Result<Option<DataValue>, UndecryptableData> {
        if name == "encrypted" {
            return Err(UndecryptableData { name: name.to_owned(), source_label: Some("Exec.b".to_owned()) });
        }
        Ok(self.data_objects.get(name).cloned())
    }
    fn target(&self, name: &str) -> Option<TargetObject> {
        self.targets.get(name).cloned()
    }
    fn kept_targets<'a>(&'a self, context: &'a str, key: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a> {
        let of = self.kept.iter().filter(move |(at, under, _)| at == context && under == key);
        Box::new(of.map(|(_, _, target)| target.clone()))
    }
    fn secret(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        self.secrets.get(name).cloned()
    }
    fn config_map(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        self.config_maps.get(name).cloned()
    }
    fn installation_exists(&self, name: &str) -> bool {
        self.installations.contains(name)
    }
}

fn imports(json: Value) -> ImportBindings {
    serde_json::from_value(json).unwrap()
}

fn secret(content: Value) -> DataValue {
    DataValue { secret: Some(SecretData::Whole), ..value(content) }
}

fn value(value: Value) -> DataValue {
    DataValue { value, ..DataValue::default() }
}

fn target(name: &str) -> TargetObject {
    TargetObject {
        name: name.to_owned(),
        generation: 1,
        target_type: "x/cluster".to_owned(),
        job: Some("j2".into()),
        object: json!({"metadata": {"name": name}, "spec": {"type": "x/cluster", "config": {"k": name}}}),
        ..TargetObject::default()
    }
}

fn gathered() -> Gathered {
    let bytes = |entries: &[(&str, &str)]| {
        entries.iter().map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_vec())).collect::<BTreeMap<_, _>>()
    };
    let kept = |name: &str, index, map_key: Option<&str>, job: &str| TargetObject {
        index,
        map_key: map_key.map(str::to_owned),
        job: Some(job.into()),
        ..target(name)
    };
    let in_parent = |key: &str, target| ("Inst.x".to_owned(), key.to_owned(), target);
    Gathered {
        data_objects: BTreeMap::from([
            ("cfg".to_owned(), DataValue { hash: Some("h".to_owned()), ..value(json!({"a": 1})) }),
            ("from-sibling".to_owned(), DataValue { owner: Some("sibling".to_owned()), ..value(json!(1)) }),
            ("from-nobody".to_owned(), DataValue { owner: Some("gone".to_owned()), ..value(json!(1)) }),
            (
                orangery_core::name::object_name("Inst.x", "cfg").into(),
                DataValue { owner: Some("x".to_owned()), ..value(json!("child")) },
            ),
        ]),
        targets: BTreeMap::from([("t-a".to_owned(), target("t-a")), ("t-b".to_owned(), target("t-b"))]),
        kept: vec![
            in_parent("list", kept("hash-1", Some(10), None, "j2")),
            in_parent("list", kept("hash-2", Some(2), None, "j2")),
            in_parent("list", kept("hash-3", Some(0), None, "j1")),
            in_parent("map", kept("hash-4", None, Some("red"), "j2")),
        ],
        secrets: BTreeMap::from([("s".to_owned(), bytes(&[("n", "42"), ("t", "x\ny"), ("bad", "a: b: c")]))]),
        config_maps: BTreeMap::from([("m".to_owned(), bytes(&[("o", "k: [1]")]))]),
        installations: BTreeSet::from(["sibling".to_owned(), "x".to_owned()]),
    }
}

#[track_caller]
fn reads(of: Value, scope: &RecordWriter<'_>, expected: Imported) {
    assert_eq!(read(&imports(of), scope, &gathered()), Ok(BTreeMap::from([("i".to_owned(), expected)])));
}

#[track_caller]
fn fails(of: Value, scope: &RecordWriter<'_>, fault: ImportFault, message: &str) {
    let error = read(&imports(of), scope, &gathered()).unwrap_err();
    let installation = format!("ns/{}", scope.installation);
    assert_eq!(error, ImportError { import: "i".to_owned(), installation, fault: Box::new(fault) });
    assert_eq!(error.to_string(), message);
}

fn data_import(source: Value) -> Value {
    let mut import = json!({"name": "i"});
    import.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    json!({"data": [import]})
}

fn target_import(source: Value) -> Value {
    json!({"targets": data_import(source)["data"]})
}

#[test]
fn ins_22_data_is_read_from_the_context_of_the_installation() {
    let root = DataValue { hash: Some("h".to_owned()), ..value(json!({"a": 1})) };
    reads(data_import(json!({"dataRef": "cfg"})), &ROOT, Imported::Data(root.clone()));
    let child = DataValue { owner: Some("x".to_owned()), ..value(json!("child")) };
    reads(data_import(json!({"dataRef": "cfg"})), &CHILD, Imported::Data(child));
    reads(data_import(json!({"dataRef": "#cfg"})), &CHILD, Imported::Data(root));
    let sibling = DataValue { owner: Some("sibling".to_owned()), ..value(json!(1)) };
    reads(data_import(json!({"dataRef": "from-sibling"})), &ROOT, Imported::Data(sibling));
}

#[test]
fn c_81_data_that_cannot_be_decrypted_fails_its_import() {
    let data = UndecryptableData { name: "encrypted".to_owned(), source_label: Some("Exec.b".to_owned()) };
    let message = "import \"i\" of installation ns/x: DataObject encrypted is encrypted, and this operator cannot decrypt it: it \
                   was copied, renamed or edited, or written under another key of the operator; run Installation b again, \
                   which writes it anew";
    fails(data_import(json!({"dataRef": "encrypted"})), &ROOT, ImportFault::Undecryptable(data), message);
}

#[test]
fn ins_22_secrets_and_config_maps_are_read_as_yaml() {
    reads(data_import(json!({"secretRef": {"name": "s", "key": "n"}})), &ROOT, Imported::Data(secret(json!(42))));
    let whole = secret(json!({"n": 42, "t": "x y", "bad": "a: b: c"}));
    reads(data_import(json!({"secretRef": {"name": "s"}})), &ROOT, Imported::Data(whole));
    reads(data_import(json!({"configMapRef": {"name": "m"}})), &ROOT, Imported::Data(value(json!({"o": {"k": [1]}}))));
}

#[test]
fn ins_22_targets_are_read_one_by_one_in_lists_and_in_maps() {
    reads(target_import(json!({"target": "t-a"})), &ROOT, Imported::Target(target("t-a")));
    let list = Imported::TargetList(vec![target("t-b"), target("t-a")]);
    reads(target_import(json!({"targets": ["t-b", "t-a"]})), &ROOT, list);
    reads(target_import(json!({"targets": []})), &ROOT, Imported::TargetList(Vec::new()));
    let map = Imported::TargetMap(BTreeMap::from([("red".to_owned(), target("t-a"))]));
    reads(target_import(json!({"targetMap": {"red": "t-a"}})), &ROOT, map);
}

/// Better than `tests/golden/target-list-ref-order`, where the order is that of hashed names.
#[test]
fn lists_of_the_parent_are_read_in_the_order_of_their_indexes_and_of_this_job_only() {
    let in_list = |name: &str, index| TargetObject { index: Some(index), ..target(name) };
    let list = Imported::TargetList(vec![in_list("hash-2", 2), in_list("hash-1", 10)]);
    reads(target_import(json!({"targetListRef": "list"})), &CHILD, list);
    let red = TargetObject { map_key: Some("red".to_owned()), ..target("hash-4") };
    let map = Imported::TargetMap(BTreeMap::from([("red".to_owned(), red)]));
    reads(target_import(json!({"targetMapRef": "map"})), &CHILD, map);
}

#[test]
fn ins_22_what_does_not_exist_is_named_with_the_fix() {
    let not_found =
        |kind, name: &str, key: &str| ImportFault::NotFound { kind, name: name.to_owned(), key: key.to_owned() };
    fails(
        data_import(json!({"dataRef": "nothere"})),
        &ROOT,
        not_found(Kind::from_static("DataObject"), "nothere", "nothere"),
        "import \"i\" of installation ns/x: DataObject nothere does not exist; create it, or let another installation export it",
    );
    let hashed = orangery_core::name::object_name("Inst.x", "t-a");
    let message = format!(
        "import \"i\" of installation ns/sub: Target {hashed}, which stands for the key \"t-a\", does not exist; let the parent import \"t-a\" or a sibling export it"
    );
    fails(
        target_import(json!({"targets": ["t-a", "gone"]})),
        &CHILD,
        not_found(Kind::from_static("Target"), &hashed, "t-a"),
        &message,
    );
    fails(
        data_import(json!({"secretRef": {"name": "s", "key": "zzz"}})),
        &ROOT,
        ImportFault::NoKey {
            kind: Kind::from_static("Secret"),
            name: "s".to_owned(),
            key: "zzz".to_owned(),
            known: "bad, n, t".to_owned(),
        },
        "import \"i\" of installation ns/x: Secret s has no key \"zzz\"; its keys are: bad, n, t",
    );
    fails(
        data_import(json!({"dataRef": "from-nobody"})),
        &ROOT,
        ImportFault::OwnerGone {
            kind: Kind::from_static("DataObject"),
            name: "from-nobody".to_owned(),
            owner: "gone".to_owned(),
        },
        "import \"i\" of installation ns/x: DataObject from-nobody was exported by installation gone, which does not exist any more; delete the DataObject or install gone again",
    );
    fails(
        target_import(json!({"targetListRef": "list"})),
        &ROOT,
        ImportFault::NoParent,
        "import \"i\" of installation ns/x: targetListRef and targetMapRef name an import of the parent, and a root installation has none; use targets or targetMap",
    );
    let both = data_import(json!({"dataRef": "cfg", "secretRef": {"name": "s"}}));
    assert_eq!(read(&imports(both), &ROOT, &gathered()).unwrap_err().fault, Box::new(ImportFault::NoSource));
}

#[test]
fn ins_23_the_hash_of_the_imports_is_the_one_recorded_from_the_original() {
    let one = |import| BTreeMap::from([("cluster".to_owned(), import)]);
    assert_eq!(imports_hash(&BTreeMap::new()), "0f87657555a176d70ad8a275ca4141af0f720a11");
    assert_eq!(imports_hash(&one(Imported::Target(target("t")))), "e33d3b041a7833ac77c1dea46466e2adb9980dd5");
    let stored = Imported::Data(value(json!({"a": "x", "n": 3, "l": [1, 2]})));
    assert_eq!(imports_hash(&BTreeMap::from([("cfg".to_owned(), stored)])), "61b2c15b2557b5912ef42f7299d18d635ebd983d");
    let list = Imported::TargetList(vec![target("b"), target("a"), target("c")]);
    let lists = BTreeMap::from([("clusters".to_owned(), list), ("none".to_owned(), Imported::TargetList(Vec::new()))]);
    assert_eq!(imports_hash(&lists), "7ef2e8dca919f47ebd3b8b978844f4b67c1b824b");
}

#[test]
fn ins_38_every_change_of_an_import_changes_the_hash() {
    let hash = |import| imports_hash(&BTreeMap::from([("i".to_owned(), import)]));
    let newer = TargetObject { generation: 2, ..target("t") };
    let map = |target| Imported::TargetMap(BTreeMap::from([("red".to_owned(), target)]));
    let hashes: BTreeSet<String> = [
        hash(Imported::Data(value(json!(1)))),
        hash(Imported::Data(value(json!(2)))),
        hash(Imported::Target(target("t"))),
        hash(Imported::Target(newer.clone())),
        hash(Imported::TargetList(vec![target("t")])),
        hash(Imported::TargetList(vec![newer.clone()])),
        hash(map(target("t"))),
        hash(map(newer)),
        hash(Imported::TargetMap(BTreeMap::new())),
        hash(Imported::TargetList(Vec::new())),
    ]
    .into();
    assert_eq!(hashes.len(), 10);
}

#[test]
fn orc_33_what_starts_a_job_is_any_other_content_and_whatever_a_running_job_would_notice() {
    let hash = |import| content_hash(&BTreeMap::from([("i".to_owned(), import)]));
    let data = |data, hash: &str| Imported::Data(DataValue { hash: Some(hash.to_owned()), ..value(data) });
    let spec = |config: &str| json!({"spec": {"type": "x/cluster", "config": config}});
    let with = |object, generation| TargetObject { object, generation, ..target("t") };
    let map = |target| Imported::TargetMap(BTreeMap::from([("red".to_owned(), target)]));
    let imports = [
        data(json!(1), "h"),
        data(json!(2), "h"),
        data(json!(1), "g"),
        Imported::Data(value(json!(1))),
        Imported::Target(with(spec("a"), 1)),
        Imported::Target(with(spec("b"), 1)),
        Imported::Target(with(spec("a"), 2)),
        Imported::TargetList(vec![with(spec("a"), 1)]),
        Imported::TargetList(vec![with(spec("b"), 1)]),
        map(with(spec("a"), 1)),
        map(with(spec("b"), 1)),
    ];
    let hashes: BTreeSet<String> = imports.iter().cloned().map(hash).collect();
    assert_eq!(hashes.len(), imports.len());
    let labelled = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec("a")["spec"]});
    assert_eq!(hash(Imported::Target(with(labelled, 1))), hash(Imported::Target(with(spec("a"), 1))));
}

fn definition(name: &str, kind: ImportKind) -> ImportDefinition {
    ImportDefinition { name: name.to_owned(), kind, required: true, default: None, conditional: Vec::new() }
}

fn text(name: &str) -> ImportDefinition {
    definition(name, ImportKind::Data { schema: json!({"type": "string"}) })
}

fn optional(of: ImportDefinition) -> ImportDefinition {
    ImportDefinition { required: false, ..of }
}

fn bind_all(definitions: &[ImportDefinition], imported: Value, mapped: Value) -> Result<Value, ImportFault> {
    let files = FileSystem::default();
    let schemas = Schemas { local_types: &BTreeMap::new(), files: &files, resources: &BTreeMap::new() };
    let imported: BTreeMap<String, Imported> = imported
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, data)| (name.clone(), Imported::Data(value(data.clone()))))
        .chain([
            ("cluster".to_owned(), Imported::Target(target("t"))),
            ("list".to_owned(), Imported::TargetList(vec![target("a"), target("b")])),
            ("map".to_owned(), Imported::TargetMap(BTreeMap::from([("red".to_owned(), target("r"))]))),
        ])
        .collect();
    let mapped = mapped.as_object().unwrap().clone();
    bind(definitions, &imported, &mapped, &schemas, &ROOT).map(Value::Object).map_err(|error| *error.fault)
}

#[test]
fn a_mapping_wins_over_the_import_and_the_import_over_the_default() {
    let with_default = ImportDefinition { default: Some(json!("default")), ..optional(text("a")) };
    let bound = |imported: Value, mapped: Value| bind_all(std::slice::from_ref(&with_default), imported, mapped);
    assert_eq!(bound(json!({"a": "import"}), json!({"a": "mapping"})), Ok(json!({"a": "mapping"})));
    assert_eq!(bound(json!({"a": "import"}), json!({})), Ok(json!({"a": "import"})));
    assert_eq!(bound(json!({}), json!({})), Ok(json!({"a": "default"})));
    assert_eq!(bind_all(&[optional(text("a"))], json!({}), json!({})), Ok(json!({})));
    let required = ImportDefinition { default: Some(json!("default")), ..text("a") };
    assert_eq!(bind_all(&[required], json!({}), json!({})), Err(ImportFault::Unsatisfied { expected: "data" }));
    assert_eq!(bind_all(&[], json!({"undefined": 1}), json!({"too": 1})), Ok(json!({})));
}

#[test]
fn conditional_imports_count_only_where_the_import_above_has_a_value() {
    let inner = ImportDefinition { conditional: vec![text("deep")], ..optional(text("inner")) };
    let outer = ImportDefinition { conditional: vec![inner], ..optional(text("outer")) };
    let bound = |imported: Value| bind_all(std::slice::from_ref(&outer), imported, json!({}));
    assert_eq!(bound(json!({"inner": "i", "deep": "d"})), Ok(json!({})));
    assert_eq!(bound(json!({"outer": "o"})), Ok(json!({"outer": "o"})));
    assert_eq!(bound(json!({"outer": "o", "inner": "i"})), Err(ImportFault::Unsatisfied { expected: "data" }));
    let all = json!({"outer": "o", "inner": "i", "deep": "d"});
    assert_eq!(bound(all.clone()), Ok(all));
    let by_default = ImportDefinition { default: Some(json!("v")), ..outer };
    assert_eq!(
        bind_all(&[by_default], json!({"inner": "i", "deep": "d"}), json!({})),
        Ok(json!({"outer": "v", "inner": "i", "deep": "d"}))
    );
}

#[test]
fn targets_are_bound_as_whole_objects() {
    let target_type = || "x/cluster".to_owned();
    let definitions = [
        definition("cluster", ImportKind::Target { target_type: target_type() }),
        definition("list", ImportKind::TargetList { target_type: target_type() }),
        definition("map", ImportKind::TargetMap { target_type: target_type() }),
    ];
    assert_eq!(
        bind_all(&definitions, json!({}), json!({})),
        Ok(json!({
            "cluster": target("t").object,
            "list": [target("a").object, target("b").object],
            "map": {"red": target("r").object},
        }))
    );
}

#[test]
fn what_does_not_fit_the_blueprint_is_told() {
    let other = || "x/other".to_owned();
    let (expected, found) = (other(), "x/cluster".to_owned());
    let mismatch = |place: &str| ImportFault::TargetType {
        place: place.to_owned(),
        expected: expected.clone(),
        found: found.clone(),
    };
    let bound = |definition| bind_all(&[definition], json!({"n": 5}), json!({})).unwrap_err();
    assert_eq!(bound(definition("cluster", ImportKind::Target { target_type: other() })), mismatch(""));
    assert_eq!(bound(definition("list", ImportKind::TargetList { target_type: other() })), mismatch("at index 0"));
    assert_eq!(bound(definition("map", ImportKind::TargetMap { target_type: other() })), mismatch("at key \"red\""));
    assert_eq!(
        mismatch("at index 0").to_string(),
        "the target at index 0 is of type x/cluster, and the blueprint asks for x/other"
    );
    assert_eq!(bound(text("cluster")), ImportFault::WrongSort { expected: "data", found: "a target" });
    assert_eq!(
        bound(optional(definition("n", ImportKind::Target { target_type: other() }))),
        ImportFault::WrongSort { expected: "a target", found: "data" }
    );
    // Recorded in `tests/golden/schema-fail`.
    let fault = bound(text("n"));
    assert_eq!(fault.reason(), "SchemaValidationFailed");
    assert_eq!(
        fault.to_string(),
        "the value does not follow the schema: at /: value is not of type \"string\", found number"
    );
}

#[test]
fn every_defined_import_with_a_value_is_kept_as_a_copy() {
    let target_type = || "x/cluster".to_owned();
    let definitions = [
        ImportDefinition { conditional: vec![text("inner")], ..text("s") },
        definition("cluster", ImportKind::Target { target_type: target_type() }),
        definition("clusters", ImportKind::TargetList { target_type: target_type() }),
        definition("map", ImportKind::TargetMap { target_type: target_type() }),
        optional(text("absent")),
    ];
    let values = json!({
        "s": "pre-x",
        "inner": "A",
        "cluster": target("t").object,
        "clusters": [target("a").object],
        "map": {"red": target("r").object},
        "bound-but-undefined": 1,
    });
    let scope = RecordWriter { installation: "m", ..ROOT };
    let one = |name: &str, import| (name.to_owned(), import);
    let imported = BTreeMap::from([
        one("cluster", Imported::Target(target("t"))),
        one("clusters", Imported::TargetList(vec![TargetObject { copy_of: Some("user-s".into()), ..target("a") }])),
        one("map", Imported::TargetMap(BTreeMap::from([("red".to_owned(), target("r"))]))),
    ]);
    let records = copies(&definitions, values.as_object().unwrap(), &imported, &scope).unwrap();
    let record = |key: &str, place: Option<TargetPosition>, address: &str, content: RecordContent, hash: &str| Record {
        name: orangery_core::name::object_name("Inst.m", address),
        context: "Inst.m".to_owned(),
        source: "Inst.m".to_owned(),
        purpose: Some(Purpose::Import),
        key: key.to_owned(),
        place,
        job: "j2".into(),
        hash: hash.to_owned(),
        content,
    };
    let spec = |name: &str, original: &str| {
        let spec = json!({"type": "x/cluster", "config": {"k": name}});
        (
            orangery_core::digest::target_hash(&spec),
            RecordContent::Target(TargetContent { spec, original: Some(original.into()), ..TargetContent::default() }),
        )
    };
    let (t, a, r) = (spec("t", "t"), spec("a", "user-s"), spec("r", "r"));
    assert_eq!(
        records,
        [
            record("s", None, "s", RecordContent::Data(json!("pre-x")), "c9c6985bda49781ffc66d2f8766ca9ac75bc3019"),
            record("inner", None, "inner", RecordContent::Data(json!("A")), "094ab35edf662b17bd99d42e7eaf2b41ae82766e"),
            record("cluster", None, "cluster", t.1, &t.0),
            record("clusters", Some(TargetPosition::Index(0)), "clusters[0]", a.1, &a.0),
            record("map", Some(TargetPosition::Key("red".to_owned())), "map[red]", r.1, &r.0),
        ]
    );
    assert_eq!(records[0].name, "2vccf37whp2x3ez6dadfjqzcy4sz3zku");
}

#[test]
fn c_171_a_target_that_a_blueprint_has_made_or_changed_is_a_copy_of_nothing() {
    let definitions = [definition("cluster", ImportKind::Target { target_type: "x/cluster".to_owned() })];
    let imported = BTreeMap::from([("cluster".to_owned(), Imported::Target(target("t")))]);
    let original = |object: Value| {
        let values = json!({"cluster": object}).as_object().unwrap().clone();
        match copies(&definitions, &values, &imported, &ROOT).unwrap().remove(0).content {
            RecordContent::Target(target) => target.original,
            RecordContent::Data(_) => None,
        }
    };
    assert_eq!(original(target("t").object), Some("t".into()));
    let mut changed = target("t").object;
    changed["spec"]["config"] = json!({"k": "mine"});
    let claims = json!({"metadata": {"name": "admin", "annotations": {"orangery.dev/copy-of": "admin"},
        "labels": {"data.landscaper.gardener.cloud/sourceType": "import"}}, "spec": {"type": "x/cluster"}});
    assert_eq!([original(changed), original(target("admin").object), original(claims)], [None, None, None]);
}

#[test]
fn a_binding_that_turns_a_target_into_something_else_is_refused() {
    let definitions = [definition("cluster", ImportKind::Target { target_type: "t".to_owned() })];
    let values = json!({"cluster": "text"});
    let error = copies(&definitions, values.as_object().unwrap(), &BTreeMap::new(), &ROOT).unwrap_err();
    assert_eq!(*error.fault, ImportFault::WrongSort { expected: "a target", found: "something else" });
}

#[test]
fn mappings_see_every_import_by_its_name() {
    let imported = BTreeMap::from([
        ("cfg".to_owned(), Imported::Data(value(json!({"a": 1})))),
        ("cluster".to_owned(), Imported::Target(target("t"))),
    ]);
    assert_eq!(Value::Object(values(&imported)), json!({"cfg": {"a": 1}, "cluster": target("t").object}));
}
