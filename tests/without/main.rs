//! What this machine lacks for the tests, as it was when they were compiled: told in every run with the number of tests that are
//! left out for it, and a failure where everything has to be tested (`orangery_tests::machine`).

use std::{
    env,
    io::{Write as _, stderr},
};

use orangery_tests::{
    machine::{NEEDS, Need, verdict},
    repository,
};

mod counts;

/// Whether the tests were compiled without it.
const LEFT_OUT: [(&str, bool); NEEDS.len()] = [
    ("go", cfg!(without_go)),
    ("kube", cfg!(without_kube)),
    ("helm", cfg!(without_helm)),
    ("docker_registry", cfg!(without_docker_registry)),
    ("npm", cfg!(without_npm)),
    ("python", cfg!(without_python)),
    ("node", cfg!(without_node)),
    ("ipv6", cfg!(without_ipv6)),
    ("recordings", cfg!(without_recordings)),
];

fn missing() -> Vec<Need> {
    let is_missing = |need: &&Need| LEFT_OUT.contains(&(need.name, true));
    NEEDS.iter().filter(is_missing).copied().collect()
}

fn waived() -> String {
    env::var("WITHOUT").unwrap_or_default()
}

#[test]
fn what_is_left_out_is_told_and_nothing_is_where_ci_is_set() {
    let missing = missing();
    let counts = counts::counts(repository(), &missing).expect("the sources of the tests can be read");
    let counted: Vec<(Need, usize)> = missing.into_iter().zip(counts).collect();
    let told = verdict(&counted, env::var_os("CI").is_some(), &waived());
    let told = told.unwrap_or_else(|sentence| panic!("{sentence}"));
    // Past what the runner of tests keeps of a test that passes.
    write!(stderr(), "\n{told}").expect("standard error can be written");
}

/// Tests are left out when they are compiled: what came afterwards would be tested by nobody.
#[test]
fn what_was_left_out_is_still_missing() {
    // A Go that is too old, or without its modules, is there and does not count, nor what needs it; the path is watched.
    let of_go: &[&str] = if cfg!(without_go) { &["go", "helm", "node"] } else { &[] };
    let looked_for = missing().into_iter().filter(|need| !of_go.contains(&need.name) && !need.is_named(&waived()));
    let here: Vec<&str> = looked_for.filter(|need| need.is_met(repository())).map(|need| need.reason).collect();
    assert!(here.is_empty(), "by now there is what a test {here:?}; run `touch tests/build.rs` and test again");
}

#[test]
fn every_need_has_its_condition() {
    assert_eq!(LEFT_OUT.map(|(name, _)| name), NEEDS.map(|need| need.name));
}

#[test]
fn a_verdict_names_what_is_missing_and_how_to_get_it() {
    let missing = [(NEEDS[0], 12), (NEEDS[3], 1)];
    let told = "LEFT OUT here, and counted as ignored: 13 tests\n  12 × needs Go 1.26 or later: https://go.dev/dl\n  \
                1 × needs docker-registry: apt-get install docker-registry\n";
    let refused = "with CI set nothing is left out, and this machine does not have what a test needs Go 1.26 or later: \
                   https://go.dev/dl, what a test needs docker-registry: apt-get install docker-registry; get it, or say \
                   WITHOUT=go,docker_registry";
    let only_go = "with CI set nothing is left out, and this machine does not have what a test needs Go 1.26 or later: \
                   https://go.dev/dl; get it, or say WITHOUT=go";
    assert_eq!(verdict(&[], true, ""), Ok(String::new()));
    assert_eq!(verdict(&missing, false, ""), Ok(told.to_owned()));
    assert_eq!(verdict(&missing, true, ""), Err(refused.to_owned()));
    assert_eq!(verdict(&missing, true, "kube, docker-registry"), Err(only_go.to_owned()));
    assert_eq!(verdict(&missing, true, "go,docker_registry"), Ok(told.to_owned()));
}

/// A count by the sources is one of what is there: each need has tests.
#[test]
fn each_need_has_tests_that_are_left_out_without_it() {
    let counts = counts::counts(repository(), &NEEDS).expect("the sources of the tests can be read");
    let without_tests: Vec<&str> =
        NEEDS.iter().zip(&counts).filter(|(_, count)| **count == 0).map(|(need, _)| need.name).collect();
    assert!(without_tests.is_empty(), "no test needs {without_tests:?}; remove it from tests/src/machine.rs");
}
