//! The golden cases, natively.

use orangery_manifest::Manifest;

#[test]
fn every_case_answers_as_recorded() {
    orangery_sdk::cases::check_deployer::<Manifest>(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
}
