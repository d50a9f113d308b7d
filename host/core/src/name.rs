//! Names that must be the same to the bit in every implementation (`docs/wire.md` §2.4).

pub use self::types::{ApiVersion, JobId, Kind, NameError, Namespace, ObjectName};
use crate::digest;

mod types;

/// The longest name of an Installation: 63 less the length of `Inst.`.
pub const LONGEST_INSTALLATION: usize = 58;
/// The longest name of an installation template.
pub const LONGEST_TEMPLATE: usize = 52;

/// The longest value of a label, and so the longest name that becomes one.
pub const LABEL_LENGTH: usize = 63;
/// The longest name of an object.
pub const NAME_LENGTH: usize = 253;

/// A name that is no longer than it may be: one that is keeps its begin, and ends with a hash of all of it.
pub fn shortened(name: String, longest: usize) -> String {
    if name.len() <= longest { name } else { with_ending(&name, &generated_suffix(&[&name]), longest) }
}

/// As much of the begin of a name as fits before an ending.
fn with_ending(begin: &str, ending: &str, longest: usize) -> String {
    let room = longest.saturating_sub(ending.len() + 1);
    let cut = begin.get(..begin.floor_char_boundary(room)).unwrap_or_default();
    format!("{}-{ending}", cut.trim_end_matches(['-', '.', '_']))
}

/// The name that a server would make up, fixed instead by what the object stands for, so that a create whose answer was lost
/// is not repeated under another name (C-31). The prefix is cut where both together were longer than a name may be.
fn generated(prefix: &str, stands_for: &[&str], longest: usize) -> String {
    let suffix = generated_suffix(stands_for);
    if prefix.len() + suffix.len() <= longest {
        return format!("{prefix}{suffix}");
    }
    with_ending(prefix, &suffix, longest)
}

/// The name of the sub-installation of a template in a job. It can be the name of an Installation.
pub fn subinstallation(template: &str, parent_uid: &str, job: &JobId) -> ObjectName {
    generated(&subinstallation_prefix(template), &[parent_uid, template, job], LONGEST_INSTALLATION).into()
}

/// The name of the DeployItem of an item in a job. It can be the value of a label, as it is on all that the item deploys.
pub fn deploy_item(execution: &str, execution_uid: &str, item: &str, job: &JobId) -> String {
    generated(&deploy_item_prefix(execution, item), &[execution_uid, item, job], LABEL_LENGTH)
}

/// What a DeployItem is called in the labels of its objects: its name, which others may have given it.
pub fn ownership_label(deploy_item: &str) -> String {
    shortened(deploy_item.to_owned(), LABEL_LENGTH)
}

/// A text as the value of a label: itself where it can be one, else as much of its begin as can, and a hash of all of it.
pub fn label_value(text: &str) -> String {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let is_inside = |c: char| ends(c) || matches!(c, '-' | '_' | '.');
    let can_be_one =
        text.len() <= LABEL_LENGTH && text.starts_with(ends) && text.ends_with(ends) && text.chars().all(is_inside);
    if text.is_empty() || can_be_one {
        return text.to_owned();
    }
    let ending = generated_suffix(&[text]);
    let begin = text.trim_start_matches(|c: char| !ends(c));
    let begin: String = begin.chars().map(|c| if is_inside(c) { c } else { '-' }).collect();
    if begin.is_empty() { ending } else { with_ending(&begin, &ending, LABEL_LENGTH) }
}

/// The name of a DataObject or Target that stands for `key` in `context`; the context of roots is empty.
///
/// `#name` is the object `name` whatever the context. In the empty context a key that can be a name is one. All others
/// are hashed.
pub fn object_name(context: &str, key: &str) -> ObjectName {
    if let Some(global) = key.strip_prefix('#') {
        return global.into();
    }
    if context.is_empty() && can_be_name(key) {
        return key.into();
    }
    digest::name_hash(&format!("{context}/{key}")).into()
}

/// Whether an object can have this name: `[a-z0-9]` at both ends, and `.` and `-` between.
pub fn can_be_name(key: &str) -> bool {
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    key.starts_with(ends) && key.ends_with(ends) && key.chars().all(|c| ends(c) || c == '.' || c == '-')
}

/// The key of one element of a target list.
pub fn element_key(key: &str, index: usize) -> String {
    format!("{key}[{index}]")
}

/// The key of one entry of a target map.
pub fn entry_key(key: &str, map_key: &str) -> String {
    format!("{key}[{map_key}]")
}

/// The context of an Installation's own imports and of its sub-installations' exports; also who wrote them. It is the value
/// of labels.
pub fn installation_context(installation: &str) -> String {
    shortened(format!("Inst.{installation}"), LABEL_LENGTH)
}

/// The context of an Execution's export; also who wrote it.
pub fn execution_context(execution: &str) -> String {
    shortened(format!("Exec.{execution}"), LABEL_LENGTH)
}

/// The DataObject with the exports of an Execution.
pub fn execution_export(execution: &str) -> ObjectName {
    object_name(&execution_context(execution), "")
}

/// `generateName` of a sub-installation.
pub fn subinstallation_prefix(template: &str) -> String {
    let cut: String = template.chars().take(LONGEST_TEMPLATE).collect();
    format!("{cut}-")
}

/// `generateName` of a DeployItem.
pub fn deploy_item_prefix(execution: &str, item: &str) -> String {
    let prefix = format!("{execution}-{item}-");
    if prefix.len() <= NAME_LENGTH {
        return prefix;
    }
    let cut = prefix.get(..prefix.floor_char_boundary(NAME_LENGTH - 1)).unwrap_or_default();
    format!("{}-", cut.trim_end_matches(['-', '.', '_']))
}

/// The end of a name that a server would make up, fixed instead by what the object stands for, so that a create whose
/// answer was lost is not repeated under another name (C-31).
pub fn generated_suffix(parts: &[&str]) -> String {
    digest::name_hash(&parts.join("/")).chars().take(8).collect()
}

/// The Secret with the exports of a DeployItem.
pub fn export_secret(deploy_item: &str) -> ObjectName {
    shortened(format!("{deploy_item}-export"), NAME_LENGTH).into()
}

/// The Secret with a part of a proposal of a DeployItem, which is known by its content.
pub fn proposal_secret(deploy_item: &str, content: &str) -> String {
    shortened(format!("{deploy_item}-{content}"), NAME_LENGTH)
}

/// Which executions a state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateOwner {
    /// Deploy executions; in the original sub-installation executions too.
    Deploy,
    /// Sub-installation executions beside a deploy execution of the same name: the original does not know it.
    Subinstallation,
    /// Export executions.
    Export,
}

/// The Secret with the state of one template execution.
pub fn state_secret(installation: &str, owner: StateOwner, execution: &str) -> ObjectName {
    let prefix = match owner {
        StateOwner::Deploy => "deploy",
        StateOwner::Subinstallation => "subinstallation",
        StateOwner::Export => "export",
    };
    digest::name_hash(&format!("{installation}/{prefix}{execution}")).into()
}

/// Whether a name can stand in the path of a request as it is: anything else could not be asked for, or, as `../x`, would
/// ask for something else than what was granted.
pub fn is_path_segment(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:@!$&'()*+,;=".contains(c);
    !name.is_empty() && name != "." && name != ".." && name.chars().all(allowed)
}

/// Whether group and version can stand in the path of a request: `v1`, or `apps/v1`.
pub fn is_api_version(api_version: &ApiVersion) -> bool {
    api_version.split('/').count() <= 2 && api_version.split('/').all(is_path_segment)
}

/// Whether a name is a DNS label (RFC 1123) of at most `longest` characters.
pub fn is_label(name: &str, longest: usize) -> bool {
    name.len() <= longest && !name.contains('.') && can_be_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    mod wire;

    #[test]
    fn an_api_version_has_one_or_two_path_segments() {
        for good in ["v1", "apps/v1", "landscaper.gardener.cloud/v1alpha1"] {
            assert!(is_api_version(&good.into()), "{good}");
        }
        for bad in ["", "/", "apps/", "a/b/c", "../v1", "apps/..", "a b/v1"] {
            assert!(!is_api_version(&bad.into()), "{bad}");
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_no_path_segment() {
        for name in ["a", "a.b-c", "system:node:x", "v1.apps", "..a"] {
            assert!(is_path_segment(name), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "a%2fb", "Not A Name", "a?b", "a#b", "ä"] {
            assert!(!is_path_segment(name), "{name}");
        }
    }

    #[test]
    fn object_names_are_those_recorded_from_the_original() {
        let cases = [
            ("Inst.hello", "cluster", "7ziogpow4xbchhkm45r7f6twabhsgmhc"),
            ("Inst.m", "s", "2vccf37whp2x3ez6dadfjqzcy4sz3zku"),
            ("Inst.m", "o", "wop3adl3irj33a3mlo6zbhmsryinqbdp"),
            ("Inst.tl", "clusters[0]", "nktqvqovojenu5rxkhlbsrgpeytkmqum"),
            ("Inst.tl", "clusters[1]", "67v6j6wkfbqxtmnsjavaptwzonkkwo2q"),
            ("Inst.tl", "clusters[2]", "gwlggjlqpsqpaqvl3pakz7ubj6nxbjst"),
            ("", "e-out", "e-out"),
            ("", "a", "a"),
            ("", "a.b-c", "a.b-c"),
            ("Inst.hello", "#cluster", "cluster"),
            ("", "#Any", "Any"),
        ];
        for (context, key, name) in cases {
            assert_eq!(object_name(context, key), name, "{context}/{key}");
        }
    }

    #[test]
    fn keys_that_cannot_be_names_are_hashed_in_the_empty_context() {
        for key in ["", "Upper", "a_b", "-a", "a-", ".a", "list[0]", "ä"] {
            let name = object_name("", key);
            assert!(name.len() == 32 && can_be_name(&name), "{key}: {name}");
        }
    }

    #[test]
    fn derived_names_are_those_recorded_from_the_original() {
        assert_eq!(execution_export("hello"), "5gvu6icmp4eiixm73cgfmq7fcyqoszx4");
        assert_eq!(execution_export("m"), "6me6scdjw4awg74emw5t5dp3eqdnnl5c");
        assert_eq!(state_secret("st", StateOwner::Deploy, "default"), "ohp56oascnzo6ntsmtjn6dgfgwqd6ez2");
        assert_ne!(state_secret("st", StateOwner::Export, "default"), "ohp56oascnzo6ntsmtjn6dgfgwqd6ez2");
        assert_eq!(deploy_item_prefix("hello", "item"), "hello-item-");
        assert_eq!(export_secret("hello-item-x8mv6"), "hello-item-x8mv6-export");
        assert_eq!(element_key("clusters", 1), "clusters[1]");
        assert_eq!(entry_key("clusters", "red"), "clusters[red]");
    }

    #[test]
    fn long_template_names_are_cut_in_generated_names() {
        assert_eq!(subinstallation_prefix("sub"), "sub-");
        assert_eq!(subinstallation_prefix(&"x".repeat(60)), format!("{}-", "x".repeat(52)));
    }

    #[test]
    fn labels_have_no_dots_and_a_greatest_length() {
        assert!(is_label("a-1", 3) && is_label("a", 1));
        for name in ["", "a.b", "A", "-a", "a-", "abcd"] {
            assert!(!is_label(name, 3), "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_object_name_can_be_a_name(context in "(Inst|Exec)[.][a-z0-9-]{1,20}|", key in "[^#]{0,20}") {
            let name = object_name(&context, &key);
            proptest::prop_assert!(can_be_name(&name), "{}", name);
            // In a context nobody's name can be guessed, in none only names are kept.
            let kept = context.is_empty() && can_be_name(&key);
            proptest::prop_assert_eq!(name == key.as_str(), kept);
        }

        #[test]
        fn keys_of_one_context_do_not_share_a_name(one in "[a-zA-Z0-9_]{1,8}", other in "[a-zA-Z0-9_]{1,8}") {
            let same = object_name("Inst.x", &one) == object_name("Inst.x", &other);
            proptest::prop_assert_eq!(same, one == other);
        }
    }
}
