//! The numbered rules of the specification: a test pins a rule by beginning its name with the rule's id.
//!
//! `cargo test --workspace --test tidy rules -- --nocapture` prints how many are pinned, and which are not.

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        path::PathBuf,
    };

    use syn::{ItemFn, Path, visit::Visit};

    use crate::repository::{files_ending, root, text};

    /// The families of rules; `c` are the decisions where the sources contradict each other.
    const FAMILIES: [&str; 7] = ["exe", "ins", "wf", "orc", "flx", "con", "c"];

    /// Rules that mean nothing here, each with the reason.
    const MOOT: [(&str, u32, &str); 3] = [
        ("ins", 62, "nothing is looked at again in intervals: the end of what is waited for wakes the deletion (C-11)"),
        ("flx", 21, "there is no helper with options: a writer has one behaviour"),
        ("flx", 31, "there is no optional builder: one function judges the result of every call"),
    ];

    /// Of these families every rule is pinned, is moot, or is listed here. C-116 is pinned by the tests of the Helm deployer,
    /// which are in Go.
    const COMPLETE: [(&str, &[u32]); 7] =
        [("exe", &[]), ("ins", &[]), ("wf", &[]), ("orc", &[]), ("flx", &[]), ("con", &[]), ("c", &[116])];

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

    /// The names of all tests, each with whether a range of ids counts in it: where all of it is tried, in the files
    /// `exhaustive.rs`. Elsewhere it says where to look, and pins nothing.
    fn all_tests() -> Vec<(String, bool)> {
        let of = |file: PathBuf| {
            let ranges = file.ends_with("exhaustive.rs");
            tests(&text(&file)).into_iter().map(move |name| (name, ranges))
        };
        files_ending(&[".rs"]).into_iter().flat_map(of).collect()
    }

    /// The names of the tests of a source.
    fn tests(source: &str) -> Vec<String> {
        /// Collects them.
        struct Tests(Vec<String>);

        impl<'ast> Visit<'ast> for Tests {
            fn visit_item_fn(&mut self, item: &'ast ItemFn) {
                let is_test = |path: &Path| path.segments.last().is_some_and(|last| last.ident == "test");
                if item.attrs.iter().any(|attribute| is_test(attribute.path())) {
                    self.0.push(item.sig.ident.to_string());
                }
                syn::visit::visit_item_fn(self, item);
            }
        }

        let mut tests = Tests(Vec::new());
        tests.visit_file(&syn::parse_file(source).expect("a source can be parsed"));
        tests.0
    }

    /// The ids that a test's name begins with: `exe_25_no…`, `ins_37_and_ins_38_changes…`, `ins_21_ins_43_one…`, and
    /// `exe_16_to_30_the…` where ranges count.
    fn ids(name: &str, family: &str, ranges: bool) -> BTreeSet<u32> {
        let (mut ids, mut of, mut last, mut is_range) = (BTreeSet::new(), "", None, false);
        for word in name.split('_') {
            let id = word.parse::<u32>().ok().filter(|_| matches!(word.len(), 2 | 3) && !of.is_empty());
            match (id, word) {
                (Some(id), _) => {
                    match last.filter(|_| is_range) {
                        None => ids.extend((of == family).then_some(id)),
                        Some(first) if ranges => ids.extend((first..=id).filter(|_| of == family)),
                        Some(first) => drop((of == family).then(|| ids.remove(&first))),
                    }
                    (last, is_range) = (Some(id), false);
                }
                (None, "to") if last.is_some() => is_range = true,
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
    fn what_is_run_as_a_test_counts_and_nothing_else() {
        let source = "#[test] fn a() {} fn b() {} mod m { #[tokio::test(flavor = \"x\")] async fn c() {} #[cfg(test)] fn d() {} }";
        assert_eq!(tests(source), ["a", "c"]);
    }

    #[test]
    fn the_ids_of_a_name_are_those_it_begins_with() {
        let of = |name, ranges| ids(name, "ins", ranges).into_iter().collect::<Vec<_>>();
        let ids = |name| of(name, false);
        assert_eq!(ids("ins_07_finished_means_both_ids"), [7]);
        assert_eq!(ids("ins_21_ins_43_predecessors_export"), [21, 43]);
        assert_eq!(ids("ins_37_and_ins_38_changes"), [37, 38]);
        assert_eq!(ids("ins_28_no_orphans_and_ins_29_failed_ones"), [28]);
        assert_eq!(ids("ins_107_a_rule_of_three_digits"), [107]);
        assert!(ids("a_name_of_ins_07").is_empty());
        assert!(ids("exe_07_finished").is_empty());
        assert_eq!(of("ins_05_ins_16_to_18_a_flow_starts", true), [5, 16, 17, 18]);
        assert_eq!(ids("ins_05_ins_16_to_18_ins_20_a_flow_starts"), [5, 20], "a range pins nothing");
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
        assert!(page.contains(&format!(" {sum} rules in six families")), "there are {sum} rules");
    }

    #[test]
    fn every_rule_of_a_complete_family_is_pinned_by_a_test() {
        let tests = all_tests();
        for family in FAMILIES {
            let pinned: BTreeSet<u32> = tests.iter().flat_map(|(name, ranges)| ids(name, family, *ranges)).collect();
            let written = written(family);
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
