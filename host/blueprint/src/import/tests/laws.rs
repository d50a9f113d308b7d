//! Laws of hashes and of what templates see.

use proptest::{collection, prelude::*};

use super::*;

fn drawn() -> impl Strategy<Value = BTreeMap<String, i64>> {
    collection::btree_map("[a-d]", 0..5_i64, 0..4)
}

fn hash_of(of: &BTreeMap<String, i64>, hash: impl Fn(i64) -> Option<String>) -> String {
    let import = |(name, number): (&String, &i64)| {
        (name.clone(), Imported::Data(DataValue { value: json!(number), hash: hash(*number), ..DataValue::default() }))
    };
    imports_hash(&of.iter().map(import).collect())
}

proptest! {
    #[test]
    fn ins_23_the_hash_differs_exactly_where_the_imports_do(one in drawn(), other in drawn()) {
        prop_assert_eq!(hash_of(&one, |_| None) == hash_of(&other, |_| None), one == other);
    }

    /// The annotation counts where there is one, whatever the data.
    #[test]
    fn ins_23_a_hash_annotation_stands_for_the_data(one in drawn(), more in 1..9_i64) {
        let annotated = |number| Some(format!("h{}", number));
        let changed: BTreeMap<String, i64> = one.iter().map(|(name, number)| (name.clone(), number + more)).collect();
        prop_assert_eq!(hash_of(&one, annotated), hash_of(&changed, |number| annotated(number - more)));
    }

    #[test]
    fn templates_see_targets_as_objects_in_the_order_of_list_and_map(names in collection::btree_set("[a-z]{1,3}", 0..4)) {
        let objects: Vec<Value> = names.iter().map(|name| target(name).object).collect();
        let list = names.iter().rev().map(|name| target(name)).collect();
        prop_assert_eq!(Imported::TargetList(list).value(), objects.iter().rev().cloned().collect::<Value>());
        let map = names.iter().map(|name| (name.clone(), target(name))).collect();
        let expected = names.iter().cloned().zip(objects).collect();
        prop_assert_eq!(Imported::TargetMap(map).value(), Value::Object(expected));
    }
}
