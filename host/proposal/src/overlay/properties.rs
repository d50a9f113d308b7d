//! What holds for every document.

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
};

use super::*;

/// Documents with few keys, so that two of them meet.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        "[a-b]{0,2}".prop_map(Value::from),
    ];
    let inner = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-d]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    btree_map("[a-d]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// The keys of a document that are not empty, as pointers to leaves.
fn leaves(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(value, &format!("{at}/{key}"), found);
            }
        }
        leaf => found.push((at.to_owned(), leaf.clone())),
    }
}

fn leaves_of(value: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    leaves(value, "", &mut found);
    found
}

proptest! {
    #[test]
    fn a_merge_patch_always_arrives(from in document(), to in document()) {
        let mut patched = from.clone();
        if let Some(patch) = merge_patch(&from, &to) {
            apply_merge_patch(&mut patched, &patch);
        }
        prop_assert_eq!(merge_patch(&patched, &to), None, "{} -> {}", from, to);
    }

    #[test]
    fn a_document_is_no_change_of_itself(document in document()) {
        prop_assert_eq!(merge_patch(&document, &document), None);
        prop_assert!(is_unchanged(&document, &document));
    }

    #[test]
    fn filling_and_overlaying_twice_is_once(live in document(), source in document()) {
        for merge in [fill, overlay] {
            let mut once = live.clone();
            merge(&mut once, &source);
            let mut twice = once.clone();
            merge(&mut twice, &source);
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn filling_never_changes_what_was_there(live in document(), source in document()) {
        let mut filled = live.clone();
        fill(&mut filled, &source);
        for (at, value) in leaves_of(&live).into_iter().filter(|(_, value)| !is_empty(value)) {
            prop_assert_eq!(filled.pointer(&at), Some(&value), "{}", at);
        }
    }

    #[test]
    fn after_overlaying_nothing_that_says_something_is_missing(live in document(), source in document()) {
        let mut laid = live.clone();
        overlay(&mut laid, &source);
        for (at, value) in leaves_of(&source).into_iter().filter(|(_, value)| !is_empty(value)) {
            prop_assert_eq!(laid.pointer(&at), Some(&value), "{}", at);
        }
    }

    #[test]
    fn a_three_way_merge_has_all_that_is_desired(earlier in document(), live in document(), desired in document()) {
        let merged = three_way(&earlier, &live, &desired);
        for (at, value) in leaves_of(&desired).into_iter().filter(|(_, value)| !is_empty(value)) {
            prop_assert_eq!(merged.pointer(&at), Some(&value), "{}", at);
        }
    }

    #[test]
    fn a_three_way_merge_removes_at_the_top_what_is_wanted_no_more(
        earlier in document(),
        live in document(),
        desired in document(),
    ) {
        let merged = three_way(&earlier, &live, &desired);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
        let foreign = &keys(&live) - &keys(&earlier);
        prop_assert_eq!(keys(&merged), &(&foreign | &keys(&desired)) | &(&keys(&live) & &keys(&desired)));
    }

    #[test]
    fn a_replacement_repeated_changes_nothing(live in document(), desired in document()) {
        let body = replacement(&live, &desired);
        prop_assert_eq!(replacement(&body, &desired), body);
    }
}
