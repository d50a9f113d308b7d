//! Laws of merging where nulls and empty values are about, and what is kept for whom.

use proptest::{collection, prelude::*};

use super::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..3).prop_map(Value::from),
        "[xy]{0,1}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            collection::btree_map("[abcd]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Few keys, so that documents meet.
fn any_object() -> impl Strategy<Value = Value> {
    collection::btree_map("[abcd]", any_value(), 0..5).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Without null members: a merge patch cannot tell them from absent ones.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value.clone(),
    }
}

fn laid(target: &Value, source: &Value) -> Value {
    let mut target = target.clone();
    overlay(&mut target, source);
    target
}

/// Whether all that `first` says, but for what is empty, still stands in `second`.
fn keeps(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            first.iter().all(|(key, value)| is_empty(value) || second.get(key).is_some_and(|other| keeps(value, other)))
        }
        (first, second) => first == second,
    }
}

proptest! {
    #[test]
    fn the_patch_of_a_difference_gives_the_target(from in any_object(), to in any_object()) {
        let patch = merge_patch(&from, &to);
        let mut patched = from.clone();
        if let Some(patch) = &patch {
            apply_merge_patch(&mut patched, patch);
        }
        prop_assert_eq!(without_nulls(&patched), without_nulls(&to));
        prop_assert_eq!(patch.is_none(), without_nulls(&from) == without_nulls(&to));
    }

    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(target in any_value(), patch in any_value()) {
        let mut once = target;
        apply_merge_patch(&mut once, &patch);
        let mut twice = once.clone();
        apply_merge_patch(&mut twice, &patch);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn a_patch_holds_no_more_than_what_differs(common in any_object(), value in 5_i64..9) {
        let mut changed = common.clone();
        changed["e"] = json!(value);
        prop_assert_eq!(merge_patch(&common, &changed), Some(json!({"e": value})));
        prop_assert_eq!(merge_patch(&changed, &common), Some(json!({"e": null})));
    }

    #[test]
    fn an_overlay_replaces_everything_but_a_map_by_a_map(mut target in any_object(), value in any_value()) {
        target["a"] = value;
        for source in [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({})] {
            let mut expected = target.clone();
            if !(source.is_object() && target["a"].is_object()) {
                source.clone_into(&mut expected["a"]);
            }
            prop_assert_eq!(laid(&target, &json!({"a": source})), expected);
        }
    }

    #[test]
    fn a_three_way_merge_has_what_is_desired(earlier in any_value(), live in any_object(), desired in any_object()) {
        let merged = three_way(&earlier, &live, &desired);
        prop_assert_eq!(laid(&merged, &desired), merged.clone());
        // A second merge has nothing left to do, and nobody else's change is undone by it.
        prop_assert_eq!(three_way(&desired, &merged, &desired), merged.clone());
        for (key, value) in live.as_object().unwrap() {
            if desired.get(key).is_none() {
                let expected = earlier.get(key).is_none().then_some(value);
                prop_assert_eq!(merged.get(key), expected, "{} of {}", key, live);
            }
        }
    }

    #[test]
    fn a_three_way_merge_over_an_untouched_object_is_a_replacement(earlier in any_value(), desired in any_value()) {
        prop_assert_eq!(three_way(&earlier, &earlier, &desired), desired);
    }

    #[test]
    fn a_replacement_of_an_unknown_kind_is_the_desired_form(live in any_object(), desired in any_object()) {
        prop_assert_eq!(replacement(&live, &desired), desired);
    }
}

#[test]
fn what_only_the_server_writes_is_no_change() {
    let server = json!({"uid": "u", "resourceVersion": "1", "generation": 2, "creationTimestamp": "t",
        "managedFields": [1], "selfLink": "/x", "deletionTimestamp": "t", "deletionGracePeriodSeconds": 3});
    let bare = json!({"metadata": {"name": "a"}, "spec": {"uid": "kept"}});
    for (field, value) in server.as_object().unwrap() {
        let mut written = bare.clone();
        written["metadata"][field] = value.clone();
        assert_eq!(without_server_owned(&written), bare, "{field}");
        assert!(is_unchanged(&written, &bare) && is_unchanged(&bare, &written), "{field}");
    }
    assert_eq!(without_server_owned(&json!({"spec": 1})), json!({"spec": 1}));
}

#[test]
fn a_replacement_keeps_finalizers_and_owners_only_where_none_are_named() {
    let live = json!({"metadata": {"resourceVersion": "7", "finalizers": ["theirs"], "ownerReferences": [1]}});
    for (named, finalizers) in [(json!([]), json!(["theirs"])), (json!(["mine"]), json!(["mine"]))] {
        let desired = json!({"metadata": {"resourceVersion": "3", "finalizers": named, "ownerReferences": [2]}});
        let expected = json!({"metadata": {"resourceVersion": "7", "finalizers": finalizers, "ownerReferences": [2]}});
        assert_eq!(replacement(&live, &desired), expected);
    }
}

#[test]
fn fields_are_kept_for_the_kinds_of_their_group_alone() {
    let kept = [
        ("batch/v1", "Job", json!({"spec": {"selector": {"a": "b"}}})),
        ("v1", "Service", json!({"spec": {"clusterIP": "10.0.0.1"}})),
        ("v1", "Service", json!({"spec": {"healthCheckNodePort": 30001}})),
        ("v1", "ServiceAccount", json!({"secrets": [{"name": "s"}]})),
        ("v1", "PersistentVolumeClaim", json!({"spec": {"volumeName": "pv"}})),
    ];
    for (api_version, kind, field) in kept {
        let replaced = |api_version: &str| {
            let named = json!({"apiVersion": api_version, "kind": kind});
            replacement(&laid(&named, &field), &named)
        };
        assert!(keeps(&field, &replaced(api_version)), "{api_version} {kind}");
        let foreign = json!({"apiVersion": "example.org/v1", "kind": kind});
        assert_eq!(replaced("example.org/v1"), foreign);
    }
}
