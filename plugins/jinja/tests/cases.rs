//! The golden cases, natively.

use orangery_jinja::Jinja;

#[test]
fn every_case_answers_as_recorded() {
    orangery_sdk::cases::check_engine::<Jinja>(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
}

#[test]
fn every_check_finds_what_was_recorded() {
    orangery_sdk::cases::check_findings::<Jinja>(concat!(env!("CARGO_MANIFEST_DIR"), "/checks"));
}
