//! The numbered rules of the specification: a test pins a rule by beginning its name with the rule's id.
//!
//! `cargo test --workspace --test tidy rules -- --nocapture` prints how many are pinned, and which are not.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::repository::{files_ending, root, text};

    /// The families of rules; `c` are the decisions where the sources contradict each other.
    const FAMILIES: [&str; 6] = ["exe", "ins", "wf", "orc", "flx", "c"];

    /// Rules that mean nothing here, each with the reason.
    const MOOT: [(&str, u32, &str); 2] = [
        ("flx", 21, "there is no helper with options: a writer has one behaviour"),
        ("flx", 31, "there is no optional builder: one function judges the result of every call"),
    ];

    /// Of these families every rule is pinned, is moot, or is listed here. C-33 belongs to the container deployer, C-116 is
    /// pinned by the tests of the Helm deployer, which are in Go.
    const COMPLETE: [(&str, &[u32]); 6] =
        [("exe", &[]), ("ins", &[]), ("wf", &[]), ("orc", &[]), ("flx", &[]), ("c", &[33, 116])];

    /// The rules of a family, as `docs/rules.md` has them: each once.
    fn written(family: &str) -> BTreeSet<u32> {
        let begin = format!("- **{}-", family.to_uppercase());
        let mut written = BTreeSet::new();
        for line in text(&root().join("docs/rules.md")).lines().filter_map(|line| line.strip_prefix(begin.as_str())) {
            let id: u32 = line.split('*').next().and_then(|id| id.parse().ok()).expect("a rule has a number");
            assert!(written.insert(id), "{family}-{id} stands twice in docs/rules.md");
        }
        written
    }

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
            let id = word.parse::<u32>().ok().filter(|_| matches!(word.len(), 2 | 3) && !of.is_empty());
            match (id, word) {
                (Some(id), _) => {
                    let first = last.filter(|_| ranges).unwrap_or(id);
                    ids.extend((first..=id).filter(|_| of == family));
                    (last, ranges) = (Some(id), false);
                }
                (None, "to") if last.is_some() => ranges = true,
                (None, "and") if last.is_some() => {}
                (None, word) => match FAMILIES.iter().find(|name| **name == word) {
                    Some(name) => (of, last) = (name, None),
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
        assert_eq!(ids("fn ins_107_a_rule_of_three_digits() {"), [107]);
        assert!(ids("fn a_name_of_ins_07() {").is_empty());
        assert!(ids("fn exe_07_finished() {").is_empty());
    }

    #[test]
    fn the_numbers_of_rules_are_those_that_stand_there() {
        let counts: BTreeMap<&str, usize> = FAMILIES.iter().map(|family| (*family, written(family).len())).collect();
        let page = text(&root().join("docs/rules.md"));
        let mut sum = 0;
        for (family, count) in counts.iter().filter(|(family, _)| **family != "c") {
            let is_row = |line: &&str| line.starts_with(&format!("| {} |", family.to_uppercase()));
            let row = page.lines().find(is_row).expect("a row of the table");
            assert!(row.ends_with(&format!("| {count} |")), "{family} has {count} rules: {row}");
            assert_eq!(written(family).last(), Some(&(*count as u32)), "{family}: a number is missing");
            sum += count;
        }
        assert!(page.contains(&format!(" {sum} rules in five families")), "there are {sum} rules");
    }

    #[test]
    fn every_rule_of_a_complete_family_is_pinned_by_a_test() {
        for family in FAMILIES {
            let (pinned, written) = (pinned(family), written(family));
            let unknown: Vec<&u32> = pinned.difference(&written).collect();
            assert_eq!(
                unknown,
                Vec::<&u32>::new(),
                "{family}: tests are named by rules that docs/rules.md does not have"
            );
            let moot = |id: &u32| MOOT.iter().find(|(of, moot, _)| *of == family && moot == id);
            let open = |id: &u32| !pinned.contains(id) && moot(id).is_none();
            let missing: Vec<u32> = written.iter().copied().filter(open).collect();
            for (_, id, why) in written.iter().filter_map(moot) {
                assert!(!pinned.contains(id), "{family}-{id} is pinned, so it is not moot");
                println!("{}-{id} is moot: {why}", family.to_uppercase());
            }
            println!(
                "{}: {} of {} pinned; missing {missing:?}",
                family.to_uppercase(),
                written.len() - missing.len(),
                written.len()
            );
            if let Some((_, known)) = COMPLETE.iter().find(|(name, _)| *name == family) {
                assert_eq!(missing, *known, "{family}: rules without a test whose name begins with their id");
            }
        }
    }
}
