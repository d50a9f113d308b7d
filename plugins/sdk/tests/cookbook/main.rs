//! The recipes of `docs/plugins/cookbook.md`: each is compiled as it stands there, and answers its cases.
#![expect(unreachable_pub, reason = "a recipe is written as in a crate of its own")]

mod export;
mod hooks;
mod recover;
mod secret_by_name;
mod wait_for_job;

use std::{collections::BTreeSet, fs, path::PathBuf};

use orangery_sdk::cases::{check_deployer, check_deployer_with_uninstall};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cookbook")
}

fn cases(recipe: &str) -> PathBuf {
    here().join("cases").join(recipe)
}

#[test]
fn c_223_the_cookbook_has_each_recipe_as_it_is_compiled() {
    let page = fs::read_to_string(here().join("../../../../docs/plugins/cookbook.md")).expect("the page is there");
    let blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
    let written: BTreeSet<String> = blocks.map(str::to_owned).collect();
    let files = fs::read_dir(here()).expect("the recipes are there").map(|entry| entry.expect("an entry").path());
    let recipes =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("main.rs"));
    let compiled: BTreeSet<String> = recipes.map(|path| fs::read_to_string(path).expect("a recipe is text")).collect();
    assert_eq!(written, compiled);
}

#[test]
fn c_223_a_job_is_waited_for_before_what_needs_it() {
    check_deployer::<wait_for_job::Migrated>(cases("wait-for-job"));
}

#[test]
fn c_223_a_secret_is_used_by_its_name_and_never_read() {
    check_deployer::<secret_by_name::Certified>(cases("secret-by-name"));
}

#[test]
fn c_223_exports_are_known_or_read_by_the_host() {
    check_deployer::<export::Served>(cases("export"));
}

#[test]
fn c_223_what_failed_is_taken_away_before_the_item_fails() {
    check_deployer::<recover::Canary>(cases("recover"));
}

#[test]
fn c_223_hooks_run_before_after_and_before_the_deletion() {
    check_deployer_with_uninstall::<hooks::Hooked>(cases("hooks"));
}
