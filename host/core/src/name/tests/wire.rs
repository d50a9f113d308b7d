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

/// All that is made of names which are as long as names can be, with how long it may be and what it was before.
fn made_of_long_names(long: &str) -> Vec<(String, usize)> {
    let (uid, job) = ("9d1f3a76-0000-4000-8000-000000000000", JobId::from("3b0c1d9e-0000-4000-8000-000000000000"));
    vec![
        (installation_context(long), LABEL_LENGTH),
        (execution_context(long), LABEL_LENGTH),
        (object_name(&installation_context(long), long).into(), LABEL_LENGTH),
        (object_name("", long).into(), NAME_LENGTH),
        (object_name(&installation_context(long), &element_key(long, 17)).into(), LABEL_LENGTH),
        (object_name(&installation_context(long), &entry_key(long, long)).into(), LABEL_LENGTH),
        (execution_export(long).into(), LABEL_LENGTH),
        (state_secret(long, StateOwner::Export, long).into(), LABEL_LENGTH),
        (subinstallation(long, uid, &job).into(), LONGEST_INSTALLATION),
        (subinstallation_prefix(long), LONGEST_INSTALLATION - 5),
        (deploy_item(long, uid, long, &job), LABEL_LENGTH),
        (deploy_item_prefix(long, long), NAME_LENGTH),
        (export_secret(&deploy_item(long, uid, long, &job)).into(), NAME_LENGTH),
        (ownership_label(long), LABEL_LENGTH),
    ]
}

#[test]
fn c_40_nothing_that_is_made_of_long_names_is_longer_than_it_may_be() {
    for length in 50..=63 {
        for (name, longest) in made_of_long_names(&"x".repeat(length)) {
            assert!(name.len() <= longest, "{length}: {name} has {} characters, not {longest}", name.len());
            let is_prefix = name.ends_with('-');
            assert!(is_prefix || name.ends_with(|end: char| end.is_ascii_alphanumeric()), "{name}");
        }
    }
    // Users may give DeployItems names of 253 characters.
    let longest = "x".repeat(NAME_LENGTH);
    assert_eq!(ownership_label(&longest).len(), LABEL_LENGTH);
    assert_eq!(export_secret(&longest).len(), NAME_LENGTH);
    assert_eq!(proposal_secret(&longest, "0123456789").len(), NAME_LENGTH);
    // Items may have them as well.
    let prefix = deploy_item_prefix(&"e".repeat(LONGEST_INSTALLATION), &longest);
    assert_eq!((prefix.len(), prefix.ends_with("x-")), (NAME_LENGTH, true));
}

#[test]
fn c_150_the_value_of_a_label_is_the_name_itself_where_it_can_be_one() {
    for name in ["", "a", "a_B.c-9", &"x".repeat(LABEL_LENGTH)] {
        assert_eq!(label_value(name), name);
    }
    let ended = |begin: &str, name: &str| format!("{begin}-{}", generated_suffix(&[name]));
    let long = "x".repeat(LABEL_LENGTH + 1);
    assert_eq!(label_value(&long), ended(&"x".repeat(54), &long));
    assert_eq!(label_value(&"x".repeat(NAME_LENGTH)).len(), LABEL_LENGTH);
    // What stands in no label is told apart by the hash.
    assert_eq!(label_value("#a"), ended("a", "#a"));
    assert_eq!(label_value("a b/ä"), ended("a-b", "a b/ä"));
    assert_eq!(label_value("a."), ended("a", "a."));
    assert_eq!(label_value("ä#"), generated_suffix(&["ä#"]));
}

#[test]
fn c_40_names_that_fit_are_as_they_were_and_long_ones_are_told_apart_by_their_ends() {
    let (job, name) = (JobId::from("j"), |fill: usize| format!("{}-{}", "i".repeat(fill), "e"));
    assert_eq!(
        deploy_item("hello", "u", "item", &job),
        format!("hello-item-{}", generated_suffix(&["u", "item", "j"]))
    );
    assert_eq!(subinstallation("sub", "u", &job).as_str(), format!("sub-{}", generated_suffix(&["u", "sub", "j"])));
    assert_eq!(subinstallation(&"x".repeat(49), "u", &job).len(), LONGEST_INSTALLATION);
    assert_eq!(ownership_label(&name(61)), name(61));
    assert_eq!(shortened(name(62), 63), format!("{}-{}", "i".repeat(54), generated_suffix(&[&name(62)])));
    assert_ne!(
        installation_context(&format!("{}a", "x".repeat(62))),
        installation_context(&format!("{}b", "x".repeat(62)))
    );
    // No two separators in a row, and no half of a character.
    assert_eq!(shortened(format!("{}--{}", "x".repeat(53), "y".repeat(20)), 63).matches("--").count(), 0);
    assert!(shortened("ä".repeat(40), 63).len() <= 63);
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
