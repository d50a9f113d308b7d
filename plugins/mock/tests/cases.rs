//! The golden cases, natively.

use orangery_mock::Mock;

#[test]
fn every_case_answers_as_recorded() {
    orangery_sdk::cases::check_deployer::<Mock>(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
}
