//! The golden cases, natively.

use orangery_container::Container;

#[test]
fn every_case_answers_as_recorded() {
    orangery_sdk::cases::check_deployer_with_uninstall::<Container>(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
}
