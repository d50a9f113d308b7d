//! What holds for every inventory and every order.

use proptest::{
    collection::{btree_map, btree_set, vec},
    option,
    prelude::*,
};

use super::*;

fn cluster() -> impl Strategy<Value = ClusterRef> {
    prop_oneof![Just(ClusterRef::Target), Just(ClusterRef::Host), "[a-b]".prop_map(ClusterRef::Named)]
}

fn located() -> impl Strategy<Value = LocatedObject> {
    let kinds = prop_oneof![
        Just(("v1", "ConfigMap")),
        Just(("apps/v1", "Deployment")),
        Just(("apiextensions.k8s.io/v1", "CustomResourceDefinition")),
    ];
    (cluster(), kinds, option::of("[a-b]"), "[a-e]").prop_map(|(on, (api_version, kind), namespace, name)| {
        LocatedObject {
            on,
            key: ObjectKey {
                api_version: api_version.into(),
                kind: kind.into(),
                namespace: namespace.map(Into::into),
                name: name.into(),
            },
        }
    })
}

fn entry() -> impl Strategy<Value = InventoryEntry> {
    let policy = prop_oneof![
        Just(InventoryPolicy::Manage),
        Just(InventoryPolicy::Fallback),
        Just(InventoryPolicy::Keep),
        Just(InventoryPolicy::Immutable),
        Just(InventoryPolicy::Ephemeral),
    ];
    (policy, option::of("[a-f0-9]{4}"), option::of(Just(json!({"data": {"k": "v"}}))))
        .prop_map(|(policy, uid, before_deletion)| InventoryEntry { policy, uid, before_deletion })
}

fn scope() -> impl Strategy<Value = DeletionScope> {
    let selection =
        (option::of("[a-b]"), vec("[a-e]".prop_map(ObjectName::from), 0..3)).prop_map(|(namespace, names)| Selection {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: namespace.map(Into::into),
            names,
            labels: None,
            fields: None,
        });
    prop_oneof![
        Just(DeletionScope::Namespaced),
        Just(DeletionScope::ClusterScoped),
        Just(DeletionScope::CustomResourceDefinitions),
        selection.prop_map(DeletionScope::Managed),
    ]
}

fn order() -> impl Strategy<Value = Vec<DeletionGroup>> {
    let group = (cluster(), vec(scope(), 1..3), any::<bool>());
    vec(group.prop_map(|(on, what, force)| DeletionGroup { on, what, force }), 0..4)
}

proptest! {
    #[test]
    fn an_inventory_survives_its_wire_form(entries in btree_map(located(), entry(), 0..8)) {
        let inventory = Inventory(entries);
        let list = inventory.list();
        prop_assert_eq!(Inventory::read(list.as_ref()), Ok(inventory.clone()));
        prop_assert_eq!(Inventory::read(list.as_ref()).unwrap().list(), list);
    }

    #[test]
    fn no_object_is_in_two_groups_and_none_comes_from_nowhere(order in order(), leaving in btree_set(located(), 0..10)) {
        let mut seen = BTreeSet::new();
        for group in groups(&order, &leaving) {
            for member in group.members {
                prop_assert!(leaving.contains(&member));
                prop_assert_eq!(&member.on, &group.on);
                prop_assert!(seen.insert(member));
            }
        }
    }

    #[test]
    fn the_default_order_forgets_nothing_and_keeps_its_steps(leaving in btree_set(located(), 0..10)) {
        let groups = groups(&[], &leaving);
        let all: BTreeSet<LocatedObject> = groups.iter().flat_map(|group| group.members.clone()).collect();
        // A definition with a namespace is no definition that a server could hold: it counts as namespaced.
        prop_assert_eq!(all, leaving);
        let step = |located: &LocatedObject| match (&located.key.namespace, is_definition(&located.key)) {
            (Some(_), _) => 0,
            (None, false) => 1,
            (None, true) => 2,
        };
        for on in [ClusterRef::Target, ClusterRef::Host] {
            let steps: Vec<i32> = groups.iter().filter(|group| group.on == on).flat_map(|group| group.members.iter().map(step)).collect();
            prop_assert!(steps.is_sorted());
        }
    }

    #[test]
    fn what_is_kept_never_leaves_and_what_is_planned_stays(
        entries in btree_map(located(), entry(), 0..8),
        planned in btree_set(located(), 0..8),
    ) {
        let inventory = Inventory(entries);
        let leaving = inventory.leaving(&planned);
        for (located, entry) in &inventory.0 {
            let expected = entry.policy != InventoryPolicy::Keep && !planned.contains(located);
            prop_assert_eq!(leaving.contains(located), expected);
        }
        prop_assert!(leaving.is_subset(&inventory.ending()));
        prop_assert!(inventory.ephemeral().is_subset(&inventory.ending()));
    }
}
