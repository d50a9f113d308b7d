//! Laws of sources and of the wire form.

use proptest::{collection, option, prelude::*};

use super::*;

fn text() -> impl Strategy<Value = String> {
    "[a-z]{0,3}"
}

fn reference() -> impl Strategy<Value = Option<KeyReference>> {
    option::of((text(), text()).prop_map(|(name, key)| KeyReference { name, key }))
}

fn data_import() -> impl Strategy<Value = DataImport> {
    (text(), text(), reference(), reference()).prop_map(|(name, data_ref, secret_ref, config_map_ref)| DataImport {
        name,
        data_ref,
        secret_ref,
        config_map_ref,
    })
}

fn target_import() -> impl Strategy<Value = TargetImport> {
    let list = option::of(collection::vec(text(), 0..3));
    let map = option::of(collection::btree_map(text(), text(), 0..3));
    (text(), text(), list, text(), map, text()).prop_map(
        |(name, target, targets, target_list_ref, target_map, target_map_ref)| TargetImport {
            name,
            target,
            targets,
            target_list_ref,
            target_map,
            target_map_ref,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_the_same(
        data in collection::vec(data_import(), 0..3),
        targets in collection::vec(target_import(), 0..3),
    ) {
        let of = ImportBindings { data, targets };
        prop_assert_eq!(imports(serde_json::to_value(&of).unwrap()), of);
    }

    /// The wire form has the sources as fields beside `name`: one field, one source.
    #[test]
    fn a_source_is_known_exactly_where_one_field_is_written(data in data_import(), target in target_import()) {
        let fields = |written: Value| written.as_object().unwrap().len() - 1;
        prop_assert_eq!(data.source().is_some(), fields(serde_json::to_value(&data).unwrap()) == 1);
        prop_assert_eq!(target.source().is_some(), fields(serde_json::to_value(&target).unwrap()) == 1);
    }

    /// Whatever passes has names that are set and stand once, over data and targets.
    #[test]
    fn sound_imports_have_their_own_names(
        data in collection::vec(data_import(), 0..3),
        targets in collection::vec(target_import(), 0..3),
    ) {
        let of = ImportBindings { data, targets };
        if check(&of, &ExportBindings::default()).is_ok() {
            let names: Vec<&str> = of.data.iter().map(|import| import.name.as_str())
                .chain(of.targets.iter().map(|import| import.name.as_str()))
                .collect();
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
            prop_assert!(!names.contains(&""));
        }
    }
}

#[test]
fn the_first_fault_of_several_is_told_data_before_targets_before_exports() {
    let data = json!({"imports": {"data": [{"name": "a"}], "targets": [{"name": "b"}]}, "exports": {"data": [{}]}});
    refuses(data, "imports.data[0]", BindingFault::NotOne(DATA_SOURCES));
    let targets = json!({"imports": {"targets": [{"name": "b"}]}, "exports": {"data": [{}]}});
    refuses(targets, "imports.targets[0]", BindingFault::NotOne(TARGET_SOURCES));
    let exports = json!({"exports": {"data": [{}], "targets": [{}]}});
    refuses(exports, "exports.data[0].name", BindingFault::Empty);
    refuses(json!({"exports": {"targets": [{}]}}), "exports.targets[0].name", BindingFault::Empty);
}

#[test]
fn references_inside_sources_are_set() {
    let map = json!({"imports": {"data": [{"name": "a", "configMapRef": {"key": "x"}}]}});
    refuses(map, "imports.data[0].configMapRef.name", BindingFault::Empty);
    let entry = json!({"imports": {"targets": [{"name": "a", "targetMap": {"red": ""}}]}});
    refuses(entry, "imports.targets[0].targetMap.red", BindingFault::Empty);
    let twice = json!({"exports": {"targets": [{"name": "e", "target": "x"}, {"name": "e", "target": "y"}]}});
    refuses(twice, "exports.targets[1].name", BindingFault::Duplicate("e".to_owned()));
}
