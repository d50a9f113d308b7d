//! The words of the wire, and what a selection takes in.

use super::*;

#[test]
fn every_policy_has_its_word_and_an_unknown_word_means_manage() {
    let words = [
        (InventoryPolicy::Manage, "manage"),
        (InventoryPolicy::Fallback, "fallback"),
        (InventoryPolicy::Keep, "keep"),
        (InventoryPolicy::Immutable, "immutable"),
        (InventoryPolicy::Ephemeral, "ephemeral"),
    ];
    for (policy, word) in words {
        assert_eq!((policy.word(), InventoryPolicy::read(word)), (word, policy));
    }
    for word in ["", "Keep", "ignore", "keep "] {
        assert_eq!(InventoryPolicy::read(word), InventoryPolicy::Manage, "{word:?}");
    }
}

#[test]
fn only_a_managed_object_that_is_never_updated_is_immutable() {
    let ways = [Write::Apply, Write::Replace, Write::Patch, Write::Merge(json!({})), Write::Fill, Write::Overlay];
    for how in ways {
        assert_eq!(InventoryPolicy::of(&write(Ownership::Managed, how.clone())), InventoryPolicy::Manage, "{how:?}");
        assert_eq!(InventoryPolicy::of(&write(Ownership::Kept, how.clone())), InventoryPolicy::Keep, "{how:?}");
    }
    assert_eq!(InventoryPolicy::of(&write(Ownership::Managed, Write::Create)), InventoryPolicy::Immutable);
    assert_eq!(InventoryPolicy::of(&write(Ownership::Fallback, Write::Create)), InventoryPolicy::Fallback);
}

#[test]
fn a_located_object_names_its_cluster_only_where_it_is_another() {
    let wire = |on: Option<Value>| {
        let mut wire = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"});
        wire.as_object_mut().unwrap().extend(on.map(|on| ("on".to_owned(), on)));
        wire
    };
    let cases = [
        (ClusterRef::Target, None),
        (ClusterRef::Host, Some(json!("host"))),
        (ClusterRef::Named("b".into()), Some(json!({"named": "b"}))),
    ];
    for (on, word) in cases {
        let located = LocatedObject { on, ..config_map("x") };
        assert_eq!(json!(located), wire(word.clone()));
        assert_eq!(serde_json::from_value::<LocatedObject>(wire(word)).unwrap(), located);
    }
}

#[test]
fn what_others_added_to_a_reference_is_no_hindrance() {
    let wire = json!([{"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "a",
        "resourceVersion": "7", "fieldPath": "spec"}, "mine": true}]);
    let expected = Inventory(BTreeMap::from([(config_map("x"), InventoryEntry::default())]));
    assert_eq!(Inventory::read(Some(&wire)), Ok(expected));
}

#[test]
fn annotations_before_deletion_become_a_patch() {
    let wire = json!([{"policy": "keep", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x",
        "namespace": "a"}, "annotateBeforeDelete": {"k": "v"}}]);
    let patch = json!({"metadata": {"annotations": {"k": "v"}}});
    let entry = InventoryEntry { policy: InventoryPolicy::Keep, uid: None, before_deletion: Some(patch.clone()) };
    let inventory = Inventory::read(Some(&wire)).unwrap();
    assert_eq!(inventory, Inventory(BTreeMap::from([(config_map("x"), entry)])));
    let written = inventory.list().unwrap();
    assert_eq!(written[0].get("annotateBeforeDelete"), None);
    assert_eq!(written[0]["patchBeforeDelete"], patch);
}

#[test]
fn an_unreadable_list_is_told_in_one_sentence_with_a_way_out() {
    let message = |wire: Value| Inventory::read(Some(&wire)).unwrap_err().to_string();
    assert_eq!(
        message(json!([{"resource": {"apiVersion": "v1", "kind": "X"}}])),
        "status.providerStatus.managedResources cannot be read: missing field `name`; mend it, or delete the item \
         without uninstall"
    );
    for wire in [json!({}), json!("x"), json!([null]), json!([{"resource": {"apiVersion": 1}}])] {
        assert!(message(wire.clone()).starts_with("status.providerStatus.managedResources cannot be read: "), "{wire}");
    }
}

#[test]
fn a_second_plan_of_an_object_replaces_its_policy_and_its_last_change() {
    let mut inventory = Inventory::default();
    let last = ObjectWrite { before_deletion: Some(json!({"a": 1})), ..write(Ownership::Kept, Write::Apply) };
    inventory.plan(config_map("x"), &last);
    let kept = InventoryEntry { policy: InventoryPolicy::Keep, uid: None, before_deletion: Some(json!({"a": 1})) };
    assert_eq!(inventory.0, BTreeMap::from([(config_map("x"), kept)]));
    inventory.plan(config_map("x"), &write(Ownership::Managed, Write::Apply));
    assert_eq!(inventory.0, BTreeMap::from([(config_map("x"), InventoryEntry::default())]));
}

fn selection() -> Selection {
    Selection {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: None,
        names: vec![],
        labels: None,
        fields: None,
    }
}

#[test]
fn a_selection_takes_in_what_has_all_that_it_names() {
    let taken = |selection: &Selection| {
        let order = [DeletionGroup {
            on: ClusterRef::Target,
            what: vec![DeletionScope::Managed(selection.clone())],
            force: false,
        }];
        groups(&order, &BTreeSet::from([config_map("x")])).len() == 1
    };
    assert!(taken(&selection()));
    assert!(
        taken(&Selection { api_version: "v2".into(), ..selection() }),
        "the version is no part of what an object is"
    );
    assert!(taken(&Selection { namespace: Some("a".into()), names: vec!["y".into(), "x".into()], ..selection() }));
    for other in [
        Selection { api_version: "apps/v1".into(), ..selection() },
        Selection { kind: "Secret".into(), ..selection() },
        Selection { namespace: Some("b".into()), ..selection() },
        Selection { names: vec!["y".into()], ..selection() },
    ] {
        assert!(!taken(&other), "{other:?}");
    }
}

#[test]
fn what_is_deleted_unmanaged_takes_members_in_only_where_it_is_sure_to_select_them() {
    let group = |selection: Selection| {
        let what = vec![DeletionScope::Matching(selection)];
        let order = [DeletionGroup { on: ClusterRef::Target, what, force: false }];
        groups(&order, &BTreeSet::from([config_map("x")]))
    };
    let expected = |selection: Selection, members: &[&str]| {
        let members = members.iter().map(|name| config_map(name)).collect();
        [Group { on: ClusterRef::Target, members, matching: vec![selection], force: false }]
    };
    assert_eq!(group(selection()), expected(selection(), &["x"]));
    let labelled = Selection { labels: Some("a=b".into()), ..selection() };
    assert_eq!(group(labelled.clone()), expected(labelled, &[]));
    let picked = Selection { fields: Some("metadata.name=x".into()), ..selection() };
    assert_eq!(group(picked.clone()), expected(picked, &[]));
}

#[test]
fn only_a_definition_of_the_api_server_defines_a_kind() {
    assert!(is_definition(&key("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", None, "c")));
    assert!(!is_definition(&key("example.org/v1", "CustomResourceDefinition", None, "c")));
    assert!(!is_definition(&key("apiextensions.k8s.io/v1", "Other", None, "c")));
}
