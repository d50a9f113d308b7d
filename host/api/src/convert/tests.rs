use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use orangery_blueprint::{
    binding,
    import::{DataValue, Imported, TargetObject, copies},
    record::{RecordWriter, execution_exports},
};
use serde_json::json;

use super::*;
use crate::{
    annotation,
    installation::{Exports, Imports},
};
use orangery_core::name::{JobId, Namespace};

fn owner(kind: &str, name: &str) -> OwnerReference {
    let mut owner =
        OwnerReference { kind: kind.to_owned(), name: name.to_owned(), uid: "u".to_owned(), ..Default::default() };
    crate::API_VERSION.clone_into(&mut owner.api_version);
    owner
}

const SCOPE: RecordWriter<'static> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "hello",
    parent: None,
    job: &JobId::from_static("65eb57ff"),
};

#[test]
fn bindings_survive_the_way_there_and_back() {
    let imports: Imports = serde_json::from_value(json!({
        "data": [
            {"name": "a", "dataRef": "k"},
            {"name": "b", "secretRef": {"name": "s", "key": "x"}},
            {"name": "c", "configMapRef": {"name": "m"}},
        ],
        "targets": [
            {"name": "d", "target": "t"},
            {"name": "e", "targets": []},
            {"name": "f", "targetListRef": "l"},
            {"name": "g", "targetMap": {"red": "t"}},
            {"name": "h", "targetMapRef": "m"},
        ],
    }))
    .unwrap();
    assert_eq!(Imports::from(binding::ImportBindings::from(&imports)), imports);
    let exports: Exports = serde_json::from_value(
        json!({"data": [{"name": "a", "dataRef": "k"}], "targets": [{"name": "b", "target": "t"}]}),
    )
    .unwrap();
    assert_eq!(Exports::from(binding::ExportBindings::from(&exports)), exports);
}

/// The recorded copy of `tests/golden/hello-manifest`, with another kubeconfig.
#[test]
fn c_151_a_copy_of_a_guarded_target_is_the_object_recorded_from_the_original() {
    let source = json!({
        "apiVersion": crate::API_VERSION,
        "kind": "Target",
        "metadata": {"name": "my-cluster", "namespace": "ns", "labels": {"team": "a", annotation::GUARD: "true"}},
        "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": "k"}},
    });
    let definition = orangery_blueprint::ImportDefinition {
        name: "cluster".to_owned(),
        kind: orangery_blueprint::ImportKind::Target { target_type: "t".to_owned() },
        required: true,
        default: None,
        conditional: Vec::new(),
    };
    let values = json!({"cluster": source}).as_object().unwrap().clone();
    let imported = TargetObject { name: "my-cluster".to_owned(), object: source.clone(), ..TargetObject::default() };
    let imported = [("cluster".to_owned(), Imported::Target(imported))].into();
    let records = copies(&[definition], &values, &imported, &SCOPE).unwrap();
    let mut target = Target::default();
    write_target(&records[0], &mut target, &owner("Installation", "hello"));
    assert_eq!(
        serde_json::to_value(&target).unwrap(),
        json!({
            "apiVersion": crate::API_VERSION,
            "kind": "Target",
            "metadata": {
                "name": "7ziogpow4xbchhkm45r7f6twabhsgmhc",
                "annotations": {
                    "data.landscaper.gardener.cloud/hash": records[0].hash,
                    // Not in the original (C-171).
                    "orangery.dev/copy-of": "my-cluster",
                },
                "labels": {
                    "data.landscaper.gardener.cloud/context": "Inst.hello",
                    "data.landscaper.gardener.cloud/jobid": "65eb57ff",
                    "data.landscaper.gardener.cloud/key": "cluster",
                    "data.landscaper.gardener.cloud/source": "Inst.hello",
                    "data.landscaper.gardener.cloud/sourceType": "import",
                    "team": "a",
                },
                "ownerReferences": [
                    {"apiVersion": crate::API_VERSION, "kind": "Installation", "name": "hello", "uid": "u"},
                ],
            },
            "spec": source["spec"],
        })
    );
    // Of a copy of an earlier build the label goes, and that of one that is guarded itself stays.
    let again = |finalizers: Option<Vec<String>>| {
        let mut copy = target.clone();
        copy.metadata.labels.get_or_insert_default().insert(annotation::GUARD.to_owned(), "true".to_owned());
        copy.metadata.finalizers = finalizers;
        write_target(&records[0], &mut copy, &owner("Installation", "hello"));
        copy.metadata.labels.unwrap_or_default().contains_key(annotation::GUARD)
    };
    assert_eq!([again(None), again(Some(vec![annotation::GUARD.to_owned()]))], [false, true]);
}

#[test]
fn c_171_only_what_an_installation_keeps_of_its_imports_says_what_it_is_a_copy_of() {
    let target = |source_type: &str| -> Target {
        let metadata = json!({"name": "t", "labels": {(label::SOURCE_TYPE): source_type}, "annotations": {(annotation::COPY_OF): "cluster"}});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}})).unwrap()
    };
    let said = ["import", "export", ""].map(|source_type| original(&target(source_type)).map(str::to_owned));
    assert_eq!(said, [Some("cluster".to_owned()), None, None]);
    // What is written for something else forgets it.
    let definition = orangery_blueprint::ImportDefinition {
        name: "cluster".to_owned(),
        kind: orangery_blueprint::ImportKind::Target { target_type: "t".to_owned() },
        required: true,
        default: None,
        conditional: Vec::new(),
    };
    let values = json!({"cluster": {"metadata": {"name": "cluster"}}}).as_object().unwrap().clone();
    let records = copies(&[definition], &values, &[].into(), &SCOPE).unwrap();
    let mut written = target("import");
    write_target(&records[0], &mut written, &owner("Installation", "hello"));
    assert_eq!(written.annotation(annotation::COPY_OF), None);
}

/// The recorded export of `tests/golden/hello-manifest`.
#[test]
fn the_export_of_an_execution_is_the_object_recorded_from_the_original() {
    let items = json!({"item": null}).as_object().unwrap().clone();
    let mut object = DataObject::default();
    write_data_object(&execution_exports("hello", items), &mut object, &owner("Execution", "hello"));
    assert_eq!(
        serde_json::to_value(&object).unwrap(),
        json!({
            "apiVersion": crate::API_VERSION,
            "kind": "DataObject",
            "metadata": {
                "name": "5gvu6icmp4eiixm73cgfmq7fcyqoszx4",
                "annotations": {"data.landscaper.gardener.cloud/hash": "cbd3229133410c4901821cbeb721d40711de60a0"},
                "labels": {
                    "data.landscaper.gardener.cloud/context": "Exec.hello",
                    "data.landscaper.gardener.cloud/source": "Exec.hello",
                },
                "ownerReferences": [
                    {"apiVersion": crate::API_VERSION, "kind": "Execution", "name": "hello", "uid": "u"},
                ],
            },
            "data": {"item": null},
        })
    );
}

#[test]
fn writing_twice_changes_nothing_and_keeps_what_others_set() {
    let items = json!({"a": 1}).as_object().unwrap().clone();
    let record = execution_exports("hello", items);
    let mut object: DataObject = serde_json::from_value(json!({
        "metadata": {"labels": {"mine": "x", label::JOB_ID: "old"}, "ownerReferences": [owner("Other", "o")]},
        "data": null,
    }))
    .unwrap();
    object.metadata.owner_references.as_mut().unwrap()[0].uid = "v".to_owned();
    write_data_object(&record, &mut object, &owner("Execution", "hello"));
    let once = object.clone();
    write_data_object(&record, &mut object, &owner("Execution", "hello"));
    assert_eq!(object, once);
    assert_eq!(object.label("mine"), Some("x"));
    assert_eq!(object.label(label::JOB_ID), None);
    assert_eq!(object.metadata.owner_references.unwrap().len(), 2);
}

/// The garbage collector is slow: owners that are gone stand before one that is there.
#[test]
fn c_125_an_export_belongs_to_the_first_owner_that_is_there() {
    let with_uid = |name: &str, uid: &str| OwnerReference { uid: uid.to_owned(), ..owner("Installation", name) };
    let owners = [
        owner("Other", "o"),
        with_uid("former", "1"),
        with_uid("again", "2"),
        with_uid("renamed", "3"),
        with_uid("third", "4"),
    ];
    let object: DataObject =
        serde_json::from_value(json!({"metadata": {"ownerReferences": owners}, "data": null})).unwrap();
    let first = |there: &[&str]| export_occupant(&object, |owner| there.contains(&owner.uid.as_str())).owner;
    // One that has come again under its name is another one.
    assert_eq!(first(&["3", "4"]), Some("renamed"));
    assert_eq!([first(&["4"]), first(&["u"]), first(&[])], [Some("third"), None, None]);
}

#[test]
fn c_160_what_is_written_belongs_to_its_last_writer() {
    let record = execution_exports("hello", json!({"a": 1}).as_object().unwrap().clone());
    let with_uid = |kind: &str, uid: &str| OwnerReference { uid: uid.to_owned(), ..owner(kind, uid) };
    let owners = [with_uid("Other", "o"), with_uid("Installation", "former")];
    let mut object: DataObject =
        serde_json::from_value(json!({"metadata": {"ownerReferences": owners}, "data": null})).unwrap();
    write_data_object(&record, &mut object, &with_uid("Installation", "new"));
    let owners: Vec<String> = object.metadata.owner_references.unwrap().into_iter().map(|owner| owner.uid).collect();
    assert_eq!(owners, ["o", "new"]);
}

#[test]
fn found_objects_are_read_with_their_marks() {
    let target: Target = serde_json::from_value(json!({
        "metadata": {
            "name": "t",
            "generation": 3,
            "managedFields": [{"manager": "m"}],
            "labels": {label::INDEX: "2", label::TARGET_MAP_KEY: "red", label::JOB_ID: "j"},
            "ownerReferences": [owner("Installation", "up")],
        },
        "spec": {"type": "x/y", "config": {"k": 1}},
    }))
    .unwrap();
    let found = TargetObject::from(&target);
    let object = json!({
        "apiVersion": crate::API_VERSION,
        "kind": "Target",
        "metadata": {
            "name": "t",
            "generation": 3,
            "labels": {label::INDEX: "2", label::TARGET_MAP_KEY: "red", label::JOB_ID: "j"},
            "ownerReferences": [owner("Installation", "up")],
        },
        "spec": {"type": "x/y", "config": {"k": 1}},
    });
    let expected = TargetObject {
        name: "t".to_owned(),
        generation: 3,
        target_type: "x/y".to_owned(),
        owner: Some("up".to_owned()),
        index: Some(2),
        map_key: Some("red".to_owned()),
        job: Some("j".into()),
        copy_of: None,
        object,
    };
    assert_eq!(found, expected);
    let data: DataObject = serde_json::from_value(json!({
        "metadata": {"name": "d", "annotations": {crate::annotation::HASH: "h"}},
        "data": [1],
    }))
    .unwrap();
    let expected = DataValue { value: json!([1]), hash: Some("h".to_owned()), ..DataValue::default() };
    assert_eq!(data_value(&data, data.spec.data.clone()), expected);
}
