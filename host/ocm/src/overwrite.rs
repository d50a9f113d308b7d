//! ComponentVersionOverwrites: component references replaced by others (`docs/wire.md` §10).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{NameMapping, Repository, VersionReference};

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overwrite {
    /// What is replaced.
    pub source: OverwriteSide,
    /// By what.
    pub substitution: OverwriteSide,
}

/// One side of a rule; what is absent matches all, or stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverwriteSide {
    /// The repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_context: Option<Arc<Value>>,
    /// The component's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub component_name: String,
    /// The component's version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// What the rules made of a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaced {
    /// The reference to open.
    pub reference: VersionReference,
    /// Whether any rule matched (condition `ComponentReferenceOverwrite`).
    pub matched: bool,
}

/// Applies the rules, in their order, to a reference. A rule matches by the original reference; it gives what it has,
/// unless an earlier rule gave one of the same: then it gives nothing.
pub fn replace(rules: &[Overwrite], original: &VersionReference) -> Replaced {
    let mut given = OverwriteSide::default();
    let mut matched = false;
    for rule in rules.iter().filter(|rule| rule.source.matches(original)) {
        matched = true;
        given.take(&rule.substitution);
        if given.repository_context.is_some() && !given.component_name.is_empty() && !given.version.is_empty() {
            break;
        }
    }
    let or = |given: String, original: &str| if given.is_empty() { original.to_owned() } else { given };
    Replaced {
        reference: VersionReference {
            repository_context: given.repository_context.or_else(|| original.repository_context.clone()),
            name: or(given.component_name, &original.name),
            version: or(given.version, &original.version),
        },
        matched,
    }
}

impl Replaced {
    /// What the condition `ComponentReferenceOverwrite` says, in the words of the original: the error is that no rule
    /// matched.
    pub fn report(&self, original: &VersionReference) -> Result<String, String> {
        if !self.matched {
            return Err("component reference has not been overwritten".to_owned());
        }
        let message_of = |what: &str, before: &str, after: &str| match before == after {
            true => format!("{what} has not been overwritten"),
            false => format!("{before} -> {after}"),
        };
        let display = |context: &Option<Arc<Value>>| context.as_deref().map(display).unwrap_or_default();
        let lines = [
            "Component reference has been overwritten:".to_owned(),
            message_of(
                "RepositoryContext",
                &display(&original.repository_context),
                &display(&self.reference.repository_context),
            ),
            message_of("ComponentName", &original.name, &self.reference.name),
            message_of("Version", &original.version, &self.reference.version),
        ];
        Ok(lines.join("\n"))
    }
}

/// A registry by address and mapping; anything else as it is written.
fn display(context: &Value) -> String {
    match Repository::parse(context) {
        Ok(Repository::Oci { base_url, mapping: NameMapping::UrlPath }) => format!("{base_url} (urlPath)"),
        Ok(Repository::Oci { base_url, mapping: NameMapping::Sha256Digest }) => format!("{base_url} (sha256-digest)"),
        Ok(_) | Err(_) => context.to_string(),
    }
}

impl OverwriteSide {
    fn matches(&self, reference: &VersionReference) -> bool {
        (self.component_name.is_empty() || self.component_name == reference.name)
            && (self.version.is_empty() || self.version == reference.version)
            && (self.repository_context.is_none() || self.repository_context == reference.repository_context)
    }

    fn take(&mut self, other: &OverwriteSide) {
        let conflict = !other.component_name.is_empty() && !self.component_name.is_empty()
            || !other.version.is_empty() && !self.version.is_empty()
            || other.repository_context.is_some() && self.repository_context.is_some();
        if conflict {
            return;
        }
        if !other.component_name.is_empty() {
            self.component_name.clone_from(&other.component_name);
        }
        if !other.version.is_empty() {
            self.version.clone_from(&other.version);
        }
        if other.repository_context.is_some() {
            self.repository_context.clone_from(&other.repository_context);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{ComponentRequest, ComponentSource},
        *,
    };

    fn reference(context: Option<Value>) -> VersionReference {
        let repository_context = context.map(Arc::new);
        VersionReference { repository_context, name: "example.com/a".to_owned(), version: "1".to_owned() }
    }

    /// What is told where one rule, for all references, gives this.
    fn message_of(original: &VersionReference, substitution: Value) -> Result<String, String> {
        let rule =
            Overwrite { source: OverwriteSide::default(), substitution: serde_json::from_value(substitution).unwrap() };
        replace(&[rule], original).report(original)
    }

    fn lines(context: &str, name: &str, version: &str) -> Result<String, String> {
        Ok(format!("Component reference has been overwritten:\n{context}\n{name}\n{version}"))
    }

    const CONTEXT: &str = "RepositoryContext has not been overwritten";
    const NAME: &str = "ComponentName has not been overwritten";
    const VERSION: &str = "Version has not been overwritten";

    #[test]
    fn a_report_tells_each_part_before_and_after() {
        let original = reference(Some(json!({ "type": "OCIRegistry", "baseUrl": "one.example" })));
        let name = message_of(&original, json!({ "componentName": "example.com/b" }));
        assert_eq!(name, lines(CONTEXT, "example.com/a -> example.com/b", VERSION));
        let version = message_of(&original, json!({ "version": "2" }));
        assert_eq!(version, lines(CONTEXT, NAME, "1 -> 2"));
        let other = json!({ "type": "OCIRegistry", "baseUrl": "two.example", "componentNameMapping": "sha256-digest" });
        let context = message_of(&original, json!({ "repositoryContext": other }));
        let moved = "one.example (urlPath) -> two.example (sha256-digest)";
        assert_eq!(context, lines(moved, NAME, VERSION));
    }

    #[test]
    fn a_report_shows_what_is_no_registry_as_it_is_written() {
        let local = json!({ "type": "local", "filePath": "a" });
        let unknown = json!({ "type": "s3" });
        let message_of = message_of(&reference(Some(local)), json!({ "repositoryContext": unknown }));
        let moved = r#"{"filePath":"a","type":"local"} -> {"type":"s3"}"#;
        assert_eq!(message_of, lines(moved, NAME, VERSION));
    }

    #[test]
    fn a_report_of_a_rule_that_gives_what_was_there_tells_that_nothing_changed() {
        let same = message_of(&reference(None), json!({ "version": "1" }));
        assert_eq!(same, lines(CONTEXT, NAME, VERSION));
    }

    #[test]
    fn a_report_without_a_rule_that_matches_is_the_error_of_the_condition() {
        let original = reference(None);
        let rule = Overwrite {
            source: OverwriteSide { version: "2".to_owned(), ..OverwriteSide::default() },
            substitution: OverwriteSide { version: "3".to_owned(), ..OverwriteSide::default() },
        };
        let expected = Err("component reference has not been overwritten".to_owned());
        assert_eq!(replace(&[rule], &original).report(&original), expected);
        assert_eq!(replace(&[], &original).report(&original), expected);
    }

    #[test]
    fn a_request_reports_where_there_are_overwrites_and_a_reference_to_replace() {
        let context = Arc::new(json!({ "type": "OCIRegistry", "baseUrl": "of-the-context.example" }));
        let rule = Overwrite {
            source: OverwriteSide { repository_context: Some(context.clone()), ..OverwriteSide::default() },
            substitution: OverwriteSide { version: "2".to_owned(), ..OverwriteSide::default() },
        };
        let request = |source: ComponentSource, overwrites: &[Overwrite]| ComponentRequest {
            repository_context: Some(context.clone()),
            overwrites: overwrites.to_vec(),
            ..ComponentRequest::of(source)
        };
        let rules = [rule];
        let referred = ComponentSource::Reference(reference(None));
        // The repository of the Context is that of the reference before it is replaced.
        assert_eq!(request(referred.clone(), &rules).overwritten(), Some(lines(CONTEXT, NAME, "1 -> 2")));
        let own = ComponentSource::Reference(reference(Some(json!({ "type": "local" }))));
        let unmatched = Err("component reference has not been overwritten".to_owned());
        assert_eq!(request(own, &rules).overwritten(), Some(unmatched));
        assert_eq!(request(referred, &[]).overwritten(), None);
        assert_eq!(request(ComponentSource::Inline(json!({}).into()), &rules).overwritten(), None);
    }

    #[test]
    fn c_292_what_is_replaced_shares_its_repository_context() {
        let [own, given] = ["own", "given"].map(|text| Arc::new(Value::from(text)));
        let original = VersionReference { repository_context: Some(Arc::clone(&own)), ..reference(None) };
        let to = OverwriteSide { repository_context: Some(Arc::clone(&given)), ..OverwriteSide::default() };
        let rule = Overwrite { source: OverwriteSide::default(), substitution: to };
        for (rules, expected) in [(Vec::new(), own), (vec![rule], given)] {
            let context = replace(&rules, &original).reference.repository_context;
            assert!(context.is_some_and(|context| Arc::ptr_eq(&context, &expected)), "{expected}");
        }
    }
}
