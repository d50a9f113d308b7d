//! What holds for every requirement and every object.

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
};
use serde_json::{Value, json};

use super::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![(0_i64..3).prop_map(Value::from), "[a-b]".prop_map(Value::from), any::<bool>().prop_map(Value::from)]
}

fn holds_for(operator: &str, values: &[Value], object: &Value) -> bool {
    let requirement = Requirement { path: ".f".into(), operator: operator.into(), values: values.to_vec() };
    Demand::read(&requirement).unwrap().classify(object, &StepBudget::default()).is_ok()
}

proptest! {
    #[test]
    fn a_field_exists_or_it_does_not(field in proptest::option::of(value())) {
        let object = field.as_ref().map_or(json!({}), |value| json!({"f": value}));
        prop_assert_ne!(holds_for("exists", &[], &object), holds_for("!", &[], &object));
        prop_assert_eq!(holds_for("exists", &[], &object), field.is_some());
    }

    #[test]
    fn a_value_is_among_others_or_it_is_not(found in value(), values in vec(value(), 1..4)) {
        let object = json!({"f": found});
        prop_assert_ne!(holds_for("in", &values, &object), holds_for("notin", &values, &object));
        prop_assert_eq!(holds_for("in", &values, &object), values.contains(&found));
    }

    #[test]
    fn the_two_signs_of_equality_are_one(found in value(), wanted in value()) {
        let object = json!({"f": found});
        let values = [wanted];
        prop_assert_eq!(holds_for("=", &values, &object), holds_for("==", &values, &object));
        prop_assert_eq!(holds_for("==", &values, &object), holds_for("in", &values, &object));
        prop_assert_eq!(holds_for("!=", &values, &object), holds_for("notin", &values, &object));
    }

    #[test]
    fn numbers_are_the_same_in_every_notation(number in -1000_i32..1000) {
        prop_assert!(same(&json!(number), &json!(f64::from(number))));
        let (left, right) = (json!([{"n": number}]), json!([{"n": f64::from(number)}]));
        prop_assert!(same(&left, &right));
        prop_assert!(!same(&json!(number), &json!(number.to_string())));
    }

    #[test]
    fn c_295_values_have_one_text_where_they_are_the_same(
        left in prop_oneof![value(), vec(value(), 0..3).prop_map(Value::from), btree_map("[a-b]", value(), 0..3).prop_map(|map| json!(map))],
        right in prop_oneof![value(), vec(value(), 0..3).prop_map(Value::from), btree_map("[a-b]", value(), 0..3).prop_map(|map| json!(map))],
        number in any::<i64>(),
    ) {
        prop_assert_eq!(canonical(&left) == canonical(&right), same(&left, &right));
        let (whole, fraction) = (json!([number]), json!([number as f64]));
        prop_assert_eq!(canonical(&whole) == canonical(&fraction), same(&whole, &fraction));
    }

    #[test]
    fn no_status_of_a_workload_makes_a_rule_panic(
        kind in prop_oneof!["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job"],
        status in btree_map("[a-z]{1,3}|observedGeneration|replicas|conditions|phase", value(), 0..5),
    ) {
        for api_version in ["v1", "apps/v1", "batch/v1"] {
            let object = json!({"apiVersion": api_version, "kind": kind, "status": status});
            let _judged = (usual(&object), run(&object), established(&object));
        }
    }

    #[test]
    fn a_deployment_is_ready_exactly_when_all_its_counts_agree(
        wanted in 0_i64..3,
        replicas in 0_i64..3,
        updated in 0_i64..3,
        available in 0_i64..3,
        observed in 1_i64..4,
    ) {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2},
            "spec": {"replicas": wanted}, "status": {"observedGeneration": observed, "replicas": replicas,
                "updatedReplicas": updated, "availableReplicas": available}});
        let expected = observed >= 2 && [replicas, updated, available] == [wanted; 3];
        prop_assert_eq!(usual(&object).is_ok(), expected);
    }
}
