mod wire;

use std::time::{Duration, Instant};

use super::*;

fn key(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}

fn located(key: ObjectKey) -> LocatedObject {
    LocatedObject { on: ClusterRef::Target, key }
}

fn config_map(name: &str) -> LocatedObject {
    located(key("v1", "ConfigMap", Some("a"), name))
}

fn write(owned: Ownership, how: Write) -> ObjectWrite {
    ObjectWrite { owned, ..ObjectWrite::new(json!({}), how) }
}

/// `tests/golden/manifest-policies`.
#[test]
fn the_wire_form_is_that_of_landscaper() {
    let wire = json!([
        {"policy": "fallback", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "fallback-own",
            "namespace": "a", "uid": "u1"}},
        {"policy": "immutable", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "immutable-new",
            "namespace": "a"}},
        {"policy": "keep", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "namespace": "a"}},
        {"policy": "manage", "resource": {"apiVersion": "v1", "kind": "Namespace", "name": "n"}},
    ]);
    let inventory = Inventory::read(Some(&wire)).unwrap();
    let policies: Vec<_> = inventory.0.values().map(|entry| entry.policy).collect();
    assert_eq!(
        policies,
        [InventoryPolicy::Fallback, InventoryPolicy::Immutable, InventoryPolicy::Keep, InventoryPolicy::Manage]
    );
    assert_eq!(inventory.list(), Some(wire));
    assert_eq!(Inventory::default().list(), None);
    assert_eq!(Inventory::read(None), Ok(Inventory::default()));
    assert_eq!(Inventory::read(Some(&Value::Null)), Ok(Inventory::default()));
}

#[test]
fn additions_of_ours_stand_beside() {
    let host = LocatedObject { on: ClusterRef::Host, ..config_map("a") };
    let named = LocatedObject { on: ClusterRef::Named("other".into()), ..config_map("a") };
    let ephemeral = InventoryEntry { policy: InventoryPolicy::Ephemeral, ..InventoryEntry::default() };
    let inventory = Inventory(BTreeMap::from([(host, ephemeral), (named, InventoryEntry::default())]));
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "a"});
    let wire = json!([
        {"policy": "ephemeral", "resource": resource, "cluster": "host"},
        {"policy": "manage", "resource": resource, "cluster": {"named": "other"}},
    ]);
    assert_eq!(inventory.list(), Some(wire.clone()));
    assert_eq!(Inventory::read(Some(&wire)), Ok(inventory));
}

#[test]
fn both_ways_of_changing_before_deletion_are_adopted() {
    let wire = json!([{"policy": "", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "a"},
        "annotateBeforeDelete": {"x": "1"}, "patchBeforeDelete": {"metadata": {"annotations": {"y": "2"}}, "data": {"k": "v"}}}]);
    let inventory = Inventory::read(Some(&wire)).unwrap();
    let expected = json!({"metadata": {"annotations": {"x": "1", "y": "2"}}, "data": {"k": "v"}});
    assert_eq!(
        inventory,
        Inventory(BTreeMap::from([(
            config_map("a"),
            InventoryEntry { policy: InventoryPolicy::Manage, uid: None, before_deletion: Some(expected) }
        )]))
    );
}

#[test]
fn an_unreadable_list_is_an_error_and_not_an_empty_inventory() {
    let error = Inventory::read(Some(&json!([{"policy": "manage"}]))).unwrap_err();
    assert!(error.to_string().contains("missing field `resource`"), "{error}");
}

#[test]
fn a_planned_write_joins_what_is_known() {
    let known = InventoryEntry { policy: InventoryPolicy::Keep, uid: Some("u".into()), before_deletion: None };
    let mut inventory = Inventory(BTreeMap::from([(config_map("a"), known)]));
    inventory.plan(config_map("a"), &write(Ownership::Managed, Write::Create));
    inventory.plan(config_map("b"), &write(Ownership::Fallback, Write::Replace));
    let expected = BTreeMap::from([
        (
            config_map("a"),
            InventoryEntry { policy: InventoryPolicy::Immutable, uid: Some("u".into()), before_deletion: None },
        ),
        (config_map("b"), InventoryEntry { policy: InventoryPolicy::Fallback, uid: None, before_deletion: None }),
    ]);
    assert_eq!(inventory.0, expected);
    assert_eq!(InventoryPolicy::of(&write(Ownership::Kept, Write::Create)), InventoryPolicy::Keep);
    assert_eq!(InventoryPolicy::of(&write(Ownership::Ephemeral, Write::Create)), InventoryPolicy::Ephemeral);
}

#[test]
fn what_left_the_plan_goes_but_for_what_is_kept() {
    let entry = |policy| InventoryEntry { policy, ..InventoryEntry::default() };
    let inventory = Inventory(BTreeMap::from([
        (config_map("a"), entry(InventoryPolicy::Manage)),
        (config_map("b"), entry(InventoryPolicy::Manage)),
        (config_map("c"), entry(InventoryPolicy::Keep)),
        (config_map("d"), entry(InventoryPolicy::Ephemeral)),
    ]));
    assert_eq!(
        inventory.leaving(&BTreeSet::from([config_map("a")])),
        BTreeSet::from([config_map("b"), config_map("d")])
    );
    assert_eq!(inventory.ending(), BTreeSet::from([config_map("a"), config_map("b"), config_map("d")]));
    assert_eq!(inventory.ephemeral(), BTreeSet::from([config_map("d")]));
}

fn all() -> BTreeSet<LocatedObject> {
    BTreeSet::from([
        config_map("a"),
        config_map("b"),
        located(key("v1", "Namespace", None, "n")),
        located(key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "c")),
    ])
}

fn display(groups: &[Group]) -> Vec<String> {
    let names =
        |group: &Group| group.members.iter().map(|member| member.key.name.clone()).collect::<Vec<_>>().join(" ");
    groups.iter().map(|group| format!("{}: {}", group.on, names(group))).collect()
}

#[test]
fn the_default_order_is_namespaced_cluster_scoped_definitions_on_every_cluster() {
    let mut leaving = all();
    leaving.insert(LocatedObject { on: ClusterRef::Host, ..config_map("h") });
    assert_eq!(
        display(&groups(&[], &leaving)),
        ["the target cluster: a b", "the target cluster: n", "the target cluster: c", "the host cluster: h"]
    );
    assert_eq!(groups(&[], &BTreeSet::new()), []);
}

#[test]
fn the_first_group_that_takes_an_object_in_has_it_and_what_none_takes_stays() {
    let selection = |names: &[&str]| Selection {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: None,
        names: names.iter().map(|name| (*name).into()).collect(),
        labels: None,
        fields: None,
    };
    let group = |what| DeletionGroup { on: ClusterRef::Target, what: vec![what], force: true };
    let order = [
        group(DeletionScope::Managed(selection(&["b"]))),
        group(DeletionScope::Namespaced),
        group(DeletionScope::Matching(selection(&["z"]))),
    ];
    let groups = groups(&order, &all());
    assert_eq!(display(&groups), ["the target cluster: b", "the target cluster: a", "the target cluster: "]);
    assert_eq!(groups.last().unwrap().matching, [selection(&["z"])]);
    assert!(groups.iter().all(|group| group.force));
}

#[test]
fn a_group_of_another_cluster_takes_nothing_in() {
    let order = [DeletionGroup { on: ClusterRef::Host, what: vec![DeletionScope::Namespaced], force: false }];
    assert_eq!(groups(&order, &all()), []);
}

/// More than looking each object up takes, on the slowest machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn c_291_objects_are_looked_up_among_the_groups_and_names_of_an_order() {
    let leaving: BTreeSet<LocatedObject> = (0..20_000).map(|n| config_map(&format!("x{n}"))).collect();
    let selection = |names: Vec<String>| {
        let (api_version, kind) = ("v1".into(), "ConfigMap".into());
        let names = names.into_iter().map(ObjectName::from).collect();
        Selection { api_version, kind, namespace: None, names, labels: None, fields: None }
    };
    let group = |what| DeletionGroup { on: ClusterRef::Target, what, force: false };
    let one = |n: usize| DeletionScope::Managed(selection(vec![format!("x{n}")]));
    let many_names = (20_000..80_000).map(|n| format!("x{n}")).chain(["x1".to_owned()]).collect();
    let many_scopes = (2..10_000).map(one).collect();
    let many_groups = (10_000..20_000).map(|n| group(vec![one(n)]));
    let order: Vec<DeletionGroup> = [group(vec![DeletionScope::Managed(selection(many_names))]), group(many_scopes)]
        .into_iter()
        .chain(many_groups)
        .collect();
    let began = Instant::now();
    let groups = groups(&order, &leaving);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let members: Vec<usize> = groups.iter().map(|group| group.members.len()).collect();
    assert_eq!((members.len(), members[0], members[1], members[2]), (10_002, 1, 9_998, 1));
}
