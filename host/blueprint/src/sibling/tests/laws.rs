//! Laws that hold for any siblings.

use proptest::{collection, prelude::*};

use super::*;

type Drawn = (Vec<String>, Vec<String>);

/// Siblings `s0`, `s1`, …: the keys that each imports and exports.
fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let keys = || collection::vec("[a-e]", 0..3);
    collection::vec((keys(), keys()), 0..6)
}

fn forms(drawn: &[Drawn]) -> Vec<(String, ImportBindings, ExportBindings)> {
    let data = |keys: &[String]| -> Vec<Value> {
        keys.iter().map(|key| json!({"name": format!("n-{key}"), "dataRef": key})).collect()
    };
    drawn
        .iter()
        .enumerate()
        .map(|(index, (wanted, offered))| {
            let (imported, exported) = (json!({"data": data(wanted)}), json!({"data": data(offered)}));
            (format!("s{index}"), imports(imported), exports(exported))
        })
        .collect()
}

fn of(forms: &[(String, ImportBindings, ExportBindings)]) -> Vec<Sibling<'_>> {
    forms.iter().map(|(name, imports, exports)| Sibling { name, imports, exports }).collect()
}

proptest! {
    #[test]
    fn ins_21_ins_43_one_is_the_predecessor_of_its_successors(drawn in drawn()) {
        let forms = forms(&drawn);
        let all = of(&forms);
        for one in &all {
            for other in &all {
                let before = predecessors(*other, &all).contains(&one.name);
                let after = successors(*one, &all).contains(&other.name);
                prop_assert_eq!(before, after, "{} and {}", one.name, other.name);
            }
        }
    }

    #[test]
    fn ins_21_predecessors_are_the_others_that_export_a_key_it_imports_sorted(drawn in drawn()) {
        let forms = forms(&drawn);
        let all = of(&forms);
        for (index, one) in all.iter().enumerate() {
            let expected: Vec<&str> = all
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index)
                .filter(|(other, _)| drawn[*other].1.iter().any(|key| drawn[index].0.contains(key)))
                .map(|(_, other)| other.name)
                .collect();
            prop_assert_eq!(&predecessors(*one, &all), &expected);
            prop_assert_eq!(&edges(&all)[index], &(one.name, expected));
        }
    }

    #[test]
    fn the_order_does_not_depend_on_the_order_of_declaration(drawn in drawn()) {
        let forms = forms(&drawn);
        let all = of(&forms);
        let reversed: Vec<Sibling<'_>> = all.iter().rev().copied().collect();
        prop_assert_eq!(order(&all).is_ok(), order(&reversed).is_ok());
        if let (Ok(one), Ok(other)) = (order(&all), order(&reversed)) {
            for sibling in &all {
                let before = |dag: &Dag| -> BTreeSet<String> {
                    dag.before(sibling.name, orangery_core::dag::Direction::Forward).map(str::to_owned).collect()
                };
                prop_assert_eq!(before(&one), before(&other));
                let named: BTreeSet<String> = predecessors(*sibling, &all).into_iter().map(str::to_owned).collect();
                prop_assert_eq!(before(&one), named);
            }
        }
    }

    #[test]
    fn exporters_are_told_in_the_order_given(drawn in drawn()) {
        let forms = forms(&drawn);
        let mut expected: BTreeMap<SiblingReference, Vec<&str>> = BTreeMap::new();
        for ((name, ..), (_, offered)) in forms.iter().zip(&drawn) {
            for key in offered.iter().collect::<BTreeSet<_>>() {
                expected.entry(SiblingReference::Data(key.clone())).or_default().push(name);
            }
        }
        prop_assert_eq!(exporters(&of(&forms)), expected);
    }
}

#[test]
fn references_are_named_with_their_sort() {
    let key = || "k".to_owned();
    let cases = [
        (SiblingReference::Data(key()), "data k"),
        (SiblingReference::Target(key()), "target k"),
        (SiblingReference::TargetList(key()), "target list k"),
        (SiblingReference::TargetMap(key()), "target map k"),
    ];
    for (reference, message) in cases {
        assert_eq!((reference.to_string().as_str(), reference.key()), (message, "k"));
    }
}
