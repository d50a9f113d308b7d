//! The objects of `docs/wire.md` §2.2: names, contexts and hashes for every purpose and place.

use proptest::{collection, prelude::*};

use super::*;
use orangery_core::name::{JobId, Namespace};

const ROOT: RecordWriter<'static> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "root",
    parent: None,
    job: &JobId::from_static("j"),
};
const CHILD: RecordWriter<'static> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "sub",
    parent: Some("root"),
    job: &JobId::from_static("j"),
};

#[test]
fn contexts_are_the_parent_s_for_exports_and_its_own_for_imports() {
    let contexts = |scope: &RecordWriter<'_>| (scope.context(), scope.own_context());
    assert_eq!(contexts(&ROOT), (String::new(), "Inst.root".to_owned()));
    assert_eq!(contexts(&CHILD), ("Inst.root".to_owned(), "Inst.sub".to_owned()));
}

#[test]
fn places_are_part_of_the_name_and_not_of_the_key() {
    let target = || RecordContent::Target(TargetContent { spec: json!({"config": 1}), ..TargetContent::default() });
    for (place, key) in [
        (None, "k"),
        (Some(TargetPosition::Index(0)), "k[0]"),
        (Some(TargetPosition::Index(12)), "k[12]"),
        (Some(TargetPosition::Key("red".to_owned())), "k[red]"),
    ] {
        let expected = Record {
            name: name::object_name("Inst.sub", key),
            context: "Inst.sub".to_owned(),
            source: "Inst.sub".to_owned(),
            purpose: Some(Purpose::Import),
            key: "k".to_owned(),
            place: place.clone(),
            job: "j".into(),
            hash: digest::target_hash(&json!({"config": 1})),
            content: target(),
        };
        assert_eq!(CHILD.record(Purpose::Import, "k", place, target()), expected);
    }
}

#[test]
fn a_global_key_names_the_object_and_loses_its_mark_in_the_label() {
    for scope in [ROOT, CHILD] {
        let record = scope.record(Purpose::Export, "#shared", None, RecordContent::Data(json!(1)));
        assert_eq!((record.name.as_str(), record.key.as_str()), ("shared", "shared"));
    }
}

#[test]
fn the_hash_of_a_target_is_that_of_its_configuration_alone() {
    let hash = |content: TargetContent| ROOT.record(Purpose::Export, "k", None, RecordContent::Target(content)).hash;
    let with = |spec: Value| TargetContent { spec, ..TargetContent::default() };
    let plain = hash(with(json!({"type": "t", "config": {"k": 1}})));
    let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    let spec = json!({"type": "u", "config": {"k": 1}});
    assert_eq!(
        hash(TargetContent { spec, labels: labels.clone(), annotations: labels, original: Some("t".into()) }),
        plain
    );
    assert_ne!(hash(with(json!({"type": "t", "config": {"k": 2}}))), plain);
    assert_ne!(hash(with(json!({"type": "t", "secretRef": {"name": "s"}}))), plain);
}

#[test]
fn a_target_without_spec_or_metadata_is_an_empty_one() {
    let empty = TargetContent { spec: json!({}), ..TargetContent::default() };
    for object in
        [json!({}), json!(null), json!({"metadata": {"labels": null}}), json!({"metadata": {"labels": {"a": 1}}})]
    {
        assert_eq!(TargetContent::of(&object), empty, "{object}");
    }
}

#[test]
fn an_execution_without_items_exports_an_empty_object() {
    let record = execution_exports("e", Map::new());
    assert_eq!(record.content, RecordContent::Data(json!({})));
    assert_eq!(record.hash, digest::data_hash(&json!({})));
    assert_eq!(record.name, name::execution_export("e"));
}

proptest! {
    /// Installations, keys and places that differ never share an object of a context.
    #[test]
    fn different_keys_and_places_have_different_names(
        keys in collection::btree_set("[a-z]{1,4}", 2..5),
        index in 0..9_usize,
        map_key in "[a-z]{1,4}",
    ) {
        let mut names = std::collections::BTreeSet::new();
        for key in &keys {
            for place in [None, Some(TargetPosition::Index(index)), Some(TargetPosition::Key(map_key.clone()))] {
                for scope in [ROOT, CHILD] {
                    let record = scope.record(Purpose::Import, key, place.clone(), RecordContent::Data(json!(1)));
                    prop_assert!(names.insert(record.name.clone()), "{} stands twice", record.name);
                }
            }
        }
    }
}
