//! The numbered rules of the specification: a test pins a rule by beginning its name with the rule's id.
//!
//! `cargo test --workspace --test tidy rules -- --nocapture` prints how many are pinned, and which are not.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::repository::{files_ending, text};

    /// The families of rules, and how many each has; `c` are the decisions where the sources contradict each other.
    const FAMILIES: [(&str, u32); 6] = [("exe", 51), ("ins", 83), ("wf", 55), ("orc", 42), ("flx", 37), ("c", 37)];

    /// Rules that mean nothing here, each with the reason.
    const MOOT: [(&str, u32, &str); 2] = [
        ("flx", 21, "there is no helper with options: a writer has one behaviour"),
        ("flx", 31, "there is no optional builder: one function judges the result of every call"),
    ];

    /// Of these families every rule is pinned, is moot, or is listed here. C-33 belongs to the container deployer.
    const COMPLETE: [(&str, &[u32]); 6] =
        [("exe", &[]), ("ins", &[]), ("wf", &[]), ("orc", &[]), ("flx", &[]), ("c", &[33])];

    /// The rules of one family that tests pin.
    fn pinned(family: &str) -> BTreeSet<u32> {
        let mut pinned = BTreeSet::new();
        for file in files_ending(&[".rs"]) {
            for line in text(&file).lines() {
                pinned.extend(ids(line, family));
            }
        }
        pinned
    }

    /// The ids that a test's name begins with: `exe_25_no…`, `exe_16_to_30_the…`, `ins_37_and_ins_38_changes…`,
    /// `ins_21_ins_43_one…`. A name stands after `fn`, or alone on its line, where a case is listed.
    fn ids(line: &str, family: &str) -> BTreeSet<u32> {
        let line = line.trim().trim_start_matches("async ").trim_start_matches("fn ");
        let (mut ids, mut of, mut last, mut ranges) = (BTreeSet::new(), "", None, false);
        for word in line.split(|c: char| !c.is_ascii_alphanumeric()) {
            let id = word.parse::<u32>().ok().filter(|_| word.len() == 2 && !of.is_empty());
            match (id, word) {
                (Some(id), _) => {
                    let first = last.filter(|_| ranges).unwrap_or(id);
                    ids.extend((first..=id).filter(|_| of == family));
                    (last, ranges) = (Some(id), false);
                }
                (None, "to") if last.is_some() => ranges = true,
                (None, "and") if last.is_some() => {}
                (None, word) => match FAMILIES.iter().find(|(name, _)| *name == word) {
                    Some((name, _)) => (of, last) = (name, None),
                    None => break,
                },
            }
        }
        ids
    }

    #[test]
    fn the_ids_of_a_name_are_those_it_begins_with() {
        let ids = |line| ids(line, "ins").into_iter().collect::<Vec<_>>();
        assert_eq!(ids("    fn ins_07_finished_means_both_ids() {"), [7]);
        assert_eq!(ids("async fn ins_21_ins_43_predecessors_export() {"), [21, 43]);
        assert_eq!(ids("fn ins_37_and_ins_38_changes() {"), [37, 38]);
        assert_eq!(ids("    ins_16_to_18_a_flow_starts,"), [16, 17, 18]);
        assert_eq!(ids("fn ins_28_no_orphans_and_ins_29_failed_ones() {"), [28]);
        assert!(ids("fn a_name_of_ins_07() {").is_empty());
        assert!(ids("fn exe_07_finished() {").is_empty());
    }

    #[test]
    fn every_rule_of_a_complete_family_is_pinned_by_a_test() {
        for (family, count) in FAMILIES {
            let pinned = pinned(family);
            let moot = |id: &u32| MOOT.iter().find(|(of, moot, _)| *of == family && moot == id);
            let open = |id: &u32| !pinned.contains(id) && moot(id).is_none();
            let missing: Vec<u32> = (1..=count).filter(open).collect();
            for (_, id, why) in (1..=count).filter_map(|id| moot(&id)) {
                assert!(!pinned.contains(id), "{family}-{id} is pinned, so it is not moot");
                println!("{}-{id} is moot: {why}", family.to_uppercase());
            }
            println!(
                "{}: {} of {count} pinned; missing {missing:?}",
                family.to_uppercase(),
                count as usize - missing.len()
            );
            if let Some((_, known)) = COMPLETE.iter().find(|(name, _)| *name == family) {
                assert_eq!(missing, *known, "{family}: rules without a test whose name begins with their id");
            }
        }
    }
}
