//! Names that other programs compute too: SHA-1 and base32 were computed apart from this code.

use super::*;

#[test]
fn hashed_names_are_sha1_in_base32_over_context_and_key() {
    let cases = [
        (object_name("Inst.hello", ""), "ntqo35docei4bp7abm6lyccdscyvzt2v"),
        (object_name("Inst.", ""), "4nuisms77cykcrecmigxf4skzel3qhtz"),
        (object_name("", "a_b"), "ggtk3hl3hbu6jtb4watetm27qwlzekgt"),
        (object_name("Inst.x", &entry_key("m", "red")), "qx6hjw2ouxgdn5felo47r5l5hft25p7v"),
        (execution_export("e"), "u5tt2psqleotj4hiktlpxvctxpohllhz"),
        (state_secret("st", StateOwner::Export, "default"), "pc5yhi2qy7fqe2a5xjmypqf3fmx5ncqp"),
        (state_secret("st", StateOwner::Deploy, "default"), "ohp56oascnzo6ntsmtjn6dgfgwqd6ez2"),
    ];
    for (name, recorded) in cases {
        assert_eq!(name, recorded);
    }
}

#[test]
fn a_global_key_is_taken_as_it_is_after_its_first_sign() {
    assert_eq!(object_name("Inst.x", "##a"), "#a");
    assert_eq!(object_name("", "#"), "");
    assert_ne!(object_name("Inst.x", "a#b"), "a#b");
}

#[test]
fn contexts_name_their_writer() {
    assert_eq!(installation_context("a"), "Inst.a");
    assert_eq!(execution_context("a"), "Exec.a");
    // The writer of a DataObject is a label, whose value has 63 characters at most.
    assert_eq!(installation_context(&"x".repeat(LONGEST_INSTALLATION)).len(), 63);
    // A `generateName` has 53 characters at most (§2.4).
    assert_eq!(subinstallation_prefix(&"x".repeat(LONGEST_TEMPLATE)).len(), 53);
}

#[test]
fn c_31_a_made_up_ending_depends_on_all_that_the_object_stands_for() {
    assert_eq!(generated_suffix(&["root", "sub", "0"]), "2ryu5pch");
    assert_eq!(generated_suffix(&["root"]), "3r3ot4ga");
    assert_ne!(generated_suffix(&["root", "sub", "1"]), generated_suffix(&["root", "sub", "0"]));
    assert_ne!(generated_suffix(&["sub", "root"]), generated_suffix(&["root", "sub"]));
}

#[test]
fn template_names_are_cut_by_characters_and_not_by_bytes() {
    assert_eq!(subinstallation_prefix(&"ä".repeat(53)), format!("{}-", "ä".repeat(52)));
    assert_eq!(subinstallation_prefix(""), "-");
}

#[test]
fn a_label_has_at_most_as_many_characters_as_told() {
    assert!(is_label(&"a".repeat(63), 63) && !is_label(&"a".repeat(64), 63));
    assert!(!is_label("a_b", 63) && !is_label("ä", 63) && !is_label("a b", 63));
}

#[test]
fn every_sign_of_a_path_segment_is_allowed_and_every_delimiter_is_not() {
    for allowed in "-._~:@!$&'()*+,;=aZ09".chars() {
        assert!(is_path_segment(&format!("x{allowed}")), "{allowed}");
    }
    for refused in "/\\%?#[]{}<>\"|^` \t\n\u{0}\u{7f}é".chars() {
        assert!(!is_path_segment(&format!("x{refused}")), "{refused:?}");
    }
    assert!(is_path_segment("...") && is_path_segment(".a"));
}

proptest::proptest! {
    #[test]
    fn generated_endings_can_stand_in_a_name(parts in proptest::collection::vec(".{0,8}", 0..4)) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let suffix = generated_suffix(&parts);
        proptest::prop_assert!(suffix.len() == 8 && is_label(&suffix, 8), "{}", suffix);
        proptest::prop_assert_eq!(generated_suffix(&parts), suffix);
    }
}
