//! Installations that the original ran, from `tests/golden/`: what is read, bound, kept and exported, name by name and
//! hash by hash.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    Blueprint, FileSystem,
    binding::{ExportBindings, ImportBindings},
    export,
    import::{DataValue, Imported, Sources, TargetObject, bind, copies, imports_hash, read},
    record::{Record, RecordContent, RecordWriter, TargetPosition, UndecryptableData},
    schema::Schemas,
};
use orangery_core::name::{self, JobId};

const NS: &name::Namespace = &name::Namespace::from_static("ns");
const JOB: &JobId = &JobId::from_static("job");

/// The objects of one namespace.
#[derive(Default)]
struct Namespace {
    data: BTreeMap<&'static str, DataValue>,
    targets: BTreeMap<String, TargetObject>,
    kept: Vec<TargetObject>,
}

impl Sources for Namespace {
    fn data_object(&self, name: &str) -> Result<Option<DataValue>, UndecryptableData> {
        Ok(self.data.get(name).cloned())
    }
    fn target(&self, name: &str) -> Option<TargetObject> {
        self.targets.get(name).cloned()
    }
    fn kept_targets<'a>(&'a self, _: &'a str, _: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a> {
        Box::new(self.kept.iter().cloned())
    }
    fn secret(&self, _: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        None
    }
    fn config_map(&self, _: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        None
    }
    fn installation_exists(&self, _: &str) -> bool {
        true
    }
}

fn data(value: Value) -> DataValue {
    DataValue { value, ..DataValue::default() }
}

const CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";

fn target(name: &str) -> TargetObject {
    TargetObject {
        name: name.to_owned(),
        generation: 1,
        target_type: CLUSTER.to_owned(),
        job: Some("job".into()),
        object: json!({"metadata": {"name": name}, "spec": {"type": CLUSTER, "config": {"kubeconfig": name}}}),
        ..TargetObject::default()
    }
}

fn named<const N: usize>(names: [&str; N]) -> BTreeMap<String, TargetObject> {
    names.map(|name| (name.to_owned(), target(name))).into()
}

fn root(installation: &str) -> RecordWriter<'_> {
    RecordWriter { namespace: NS, installation, parent: None, job: JOB }
}

/// What the golden files show of a record: its name, its context and its hash.
fn display(records: &[Record]) -> Vec<(&str, &str, &str)> {
    records.iter().map(|record| (record.name.as_str(), record.context.as_str(), record.hash.as_str())).collect()
}

struct Run {
    imported: BTreeMap<String, Imported>,
    values: Map<String, Value>,
    kept: Vec<Record>,
    blueprint: Blueprint,
    files: FileSystem,
}

#[track_caller]
fn run(blueprint: &str, imports: Value, mapped: Value, scope: &RecordWriter<'_>, of: &Namespace) -> Run {
    let files = FileSystem::parse(&json!({"blueprint.yaml": blueprint})).unwrap();
    let blueprint = Blueprint::parse(&files).unwrap();
    let imports: ImportBindings = serde_json::from_value(imports).unwrap();
    let imported = read(&imports, scope, of).unwrap();
    let schemas = Schemas { local_types: &blueprint.local_types, files: &files, resources: &BTreeMap::new() };
    let values = bind(&blueprint.imports, &imported, mapped.as_object().unwrap(), &schemas, scope).unwrap();
    let kept = copies(&blueprint.imports, &values, &imported, scope).unwrap();
    Run { imported, values, kept, blueprint, files }
}

/// `tests/golden/data-mappings`
#[test]
fn data_mappings() {
    let scope = root("m");
    let namespace = Namespace {
        data: BTreeMap::from([("cfg", data(json!({"a": "x", "n": 3, "l": [1, 2]})))]),
        ..Namespace::default()
    };
    let run = run(
        concat!(
            "imports:\n",
            "- {name: s, type: data, schema: {type: string}}\n",
            "- {name: o, type: data, schema: {type: object}}\n",
            "exports:\n",
            "- {name: e, type: data, schema: {type: string}}\n",
        ),
        json!({"data": [{"name": "cfg", "dataRef": "cfg"}]}),
        json!({"s": "pre-x", "o": {"sum": 7, "list": [1, 2]}}),
        &scope,
        &namespace,
    );
    assert_eq!(imports_hash(&run.imported), "61b2c15b2557b5912ef42f7299d18d635ebd983d");
    assert_eq!(Value::Object(run.values), json!({"s": "pre-x", "o": {"sum": 7, "list": [1, 2]}}));
    assert_eq!(
        display(&run.kept),
        [
            ("2vccf37whp2x3ez6dadfjqzcy4sz3zku", "Inst.m", "c9c6985bda49781ffc66d2f8766ca9ac75bc3019"),
            ("wop3adl3irj33a3mlo6zbhmsryinqbdp", "Inst.m", "398562065302b8b6b68b170efac3c816c2e335c4"),
        ]
    );
    let mut answered = json!({"e": "pre-x", "undefined": 1}).as_object().unwrap().clone();
    let schemas = Schemas { local_types: &run.blueprint.local_types, files: &run.files, resources: &BTreeMap::new() };
    assert_eq!(
        export::check(&run.blueprint.exports, &mut answered, &schemas, &scope),
        Ok(vec!["undefined".to_owned()])
    );
    answered.insert("mapped".to_owned(), json!({"from": "pre-x-suffix"}));
    let listed = json!({"data": [{"name": "e", "dataRef": "e-out"}, {"name": "mapped", "dataRef": "m-out"}]});
    let exports: ExportBindings = serde_json::from_value(listed).unwrap();
    assert_eq!(
        display(&export::records(&exports, &answered, &scope).unwrap()),
        [
            ("e-out", "", "c9c6985bda49781ffc66d2f8766ca9ac75bc3019"),
            ("m-out", "", "feace104181cdfcd9617d9f4be1a35b2d66d8da0"),
        ]
    );
}

/// `tests/golden/target-list`
#[test]
fn target_list() {
    let namespace = Namespace { targets: named(["t-a", "t-b", "t-c"]), ..Namespace::default() };
    let run = run(
        concat!(
            "imports:\n",
            "- {name: clusters, type: targetList, targetType: landscaper.gardener.cloud/kubernetes-cluster}\n",
            "- {name: none, type: targetList, targetType: kubernetes-cluster}\n",
        ),
        json!({"targets": [{"name": "clusters", "targets": ["t-b", "t-a", "t-c"]}, {"name": "none", "targets": []}]}),
        json!({}),
        &root("tl"),
        &namespace,
    );
    assert_eq!(imports_hash(&run.imported), "7ef2e8dca919f47ebd3b8b978844f4b67c1b824b");
    assert_eq!(run.values["none"], json!([]));
    let positions: Vec<_> = run.kept.iter().map(|record| (record.name.as_str(), record.place.clone())).collect();
    assert_eq!(
        positions,
        [
            ("nktqvqovojenu5rxkhlbsrgpeytkmqum", Some(TargetPosition::Index(0))),
            ("67v6j6wkfbqxtmnsjavaptwzonkkwo2q", Some(TargetPosition::Index(1))),
            ("gwlggjlqpsqpaqvl3pakz7ubj6nxbjst", Some(TargetPosition::Index(2))),
        ]
    );
    let kubeconfigs: Vec<_> = run
        .kept
        .iter()
        .map(|record| match &record.content {
            RecordContent::Target(target) => target.spec["config"]["kubeconfig"].clone(),
            RecordContent::Data(_) => Value::Null,
        })
        .collect();
    assert_eq!(kubeconfigs, [json!("t-b"), json!("t-a"), json!("t-c")]);
}

/// `tests/golden/target-list-ref-order`: the hash of the child is that of the root, and the order is better.
#[test]
fn target_list_of_the_parent() {
    let at = |name: &str, index: usize| TargetObject { index: Some(index), ..target(name) };
    let namespace = Namespace { kept: vec![at("third", 2), at("first", 0), at("second", 1)], ..Namespace::default() };
    let scope = RecordWriter { namespace: NS, installation: "sub-fhlbt", parent: Some("root"), job: JOB };
    let run = run(
        "imports: [{name: clusters, type: targetList, targetType: kubernetes-cluster}]",
        json!({"targets": [{"name": "clusters", "targetListRef": "clusters"}]}),
        json!({}),
        &scope,
        &namespace,
    );
    assert_eq!(imports_hash(&run.imported), "4537fdb5d78986888c79ea857d23b7f781ffc660");
    let names: Vec<_> =
        run.values["clusters"].as_array().unwrap().iter().map(|one| one["metadata"]["name"].clone()).collect();
    assert_eq!(names, [json!("first"), json!("second"), json!("third")]);
}

/// `tests/golden/import-executions`: bindings join the imports; only what the blueprint defines is kept.
#[test]
fn import_executions() {
    let namespace = Namespace { data: BTreeMap::from([("a", data(json!("A")))]), ..Namespace::default() };
    let scope = root("ok");
    let mut run = run(
        "imports: [{name: a, type: data, schema: {type: string}}]",
        json!({"data": [{"name": "a", "dataRef": "a"}]}),
        json!({}),
        &scope,
        &namespace,
    );
    assert_eq!(imports_hash(&run.imported), "dadedc77cef5ebf876a9ca2d489b3a8c2ba960ba");
    run.values.insert("b".to_owned(), json!("A-bound"));
    assert_eq!(
        display(&copies(&run.blueprint.imports, &run.values, &run.imported, &scope).unwrap()),
        [("vlcnpy7vmctuz7ahk4pfa67sbunsn3d3", "Inst.ok", "094ab35edf662b17bd99d42e7eaf2b41ae82766e")]
    );
}

/// `tests/golden/hello-manifest`
#[test]
fn hello_manifest() {
    let namespace = Namespace { targets: named(["my-cluster"]), ..Namespace::default() };
    let run = run(
        "imports: [{name: cluster, type: target, targetType: landscaper.gardener.cloud/kubernetes-cluster}]",
        json!({"targets": [{"name": "cluster", "target": "my-cluster"}]}),
        json!({}),
        &root("hello"),
        &namespace,
    );
    assert_eq!(imports_hash(&run.imported), "e33d3b041a7833ac77c1dea46466e2adb9980dd5");
    assert_eq!(run.values["cluster"]["metadata"]["name"], json!("my-cluster"));
    let names: Vec<&str> = run.kept.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["7ziogpow4xbchhkm45r7f6twabhsgmhc"]);
}

/// `tests/golden/subinst-inline`: the child reads the copy that its parent keeps, and exports into the parent's
/// context.
#[test]
fn sub_installation() {
    let copy = TargetObject { owner: Some("root".to_owned()), ..target("copy") };
    let name = orangery_core::name::object_name("Inst.root", "cluster");
    let namespace = Namespace { targets: BTreeMap::from([(name.into(), copy)]), ..Namespace::default() };
    let scope = RecordWriter { namespace: NS, installation: "sub-pq45q", parent: Some("root"), job: JOB };
    let run = run(
        "imports: [{name: cluster, type: target, targetType: kubernetes-cluster}]",
        json!({"targets": [{"name": "cluster", "target": "cluster"}]}),
        json!({}),
        &scope,
        &namespace,
    );
    assert_eq!(imports_hash(&run.imported), "e33d3b041a7833ac77c1dea46466e2adb9980dd5");
    let exports: ExportBindings =
        serde_json::from_value(json!({"data": [{"name": "res", "dataRef": "subres"}]})).unwrap();
    let values = json!({"res": "value"}).as_object().unwrap().clone();
    let records = export::records(&exports, &values, &scope).unwrap();
    let expected = orangery_core::name::object_name("Inst.root", "subres");
    assert_eq!(display(&records), [(expected.as_str(), "Inst.root", "efede6000ad4e1ff258a38866c71aa351d3c01f6")]);
}
