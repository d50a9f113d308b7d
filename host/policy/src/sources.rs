//! Where the content of one object may come from: lists for the transport, which asks for nothing else.

use orangery_ocm::{AllowedSources, SourceList};

use crate::{
    effective::{EffectivePolicy, SIGNATURES_REQUIRED, requires_signatures},
    pattern::Pattern,
    request::PolicySubject,
    spec::{ItemTypeRule, PolicySpec},
};

impl EffectivePolicy {
    /// The lists of all policies that count, and of the entry of an item's type. A policy that cannot be used has an empty
    /// one.
    pub fn sources(&self, subject: PolicySubject<'_>) -> AllowedSources {
        let mut allowed = AllowedSources::default();
        for policy in self.policies() {
            let origin = policy.origin();
            let Ok(lines) = policy.lines() else {
                let nothing =
                    || SourceList { patterns: Vec::new(), line: format!("{origin}, line spec (it cannot be used)") };
                allowed.registries.push(nothing());
                allowed.hosts.push(nothing());
                allowed.digests_required_by.push(format!("{origin}, line spec (it cannot be used)"));
                continue;
            };
            if requires_signatures(lines) {
                allowed.digests_required_by.push(format!("{origin}, line {SIGNATURES_REQUIRED}"));
            }
            let rule = rule(lines, subject);
            let own = |field: &str| rule.as_ref().map(|(path, _)| format!("{origin}, line {path}.{field}"));
            let of_rule = |get: fn(&ItemTypeRule) -> &Option<Vec<Pattern>>| {
                rule.as_ref().and_then(|(_, rule)| get(rule).as_ref())
            };
            let registries = (lines.sources.registries.as_ref(), lines.profile.spec().sources.registries.as_ref());
            let hosts = (lines.sources.hosts.as_ref(), lines.profile.spec().sources.hosts.as_ref());
            allowed.registries.extend(section(registries, format!("{origin}, line spec.sources.registries"), lines));
            allowed.registries.extend(list(of_rule(|rule| &rule.registries), own("registries")));
            allowed.hosts.extend(section(hosts, format!("{origin}, line spec.sources.hosts"), lines));
            allowed.hosts.extend(list(of_rule(|rule| &rule.hosts), own("hosts")));
        }
        allowed
    }
}

/// The entry for the type of an item, with its place.
fn rule<'p>(lines: &'p PolicySpec, subject: PolicySubject<'_>) -> Option<(String, &'p ItemTypeRule)> {
    let PolicySubject::Item(of) = subject else { return None };
    let rules = lines.items.types.as_ref()?;
    let (number, rule) = rules.iter().enumerate().find(|(_, rule)| rule.item_type.matches(of))?;
    Some((format!("spec.items.types[{number}]"), rule))
}

fn section(
    (own, profile): (Option<&Vec<Pattern>>, Option<&Vec<Pattern>>),
    line: String,
    lines: &PolicySpec,
) -> Option<SourceList> {
    match own {
        Some(patterns) => list(Some(patterns), Some(line)),
        None => list(profile, Some(format!("{line} of its profile {}", lines.profile))),
    }
}

/// A list that does not allow everything.
fn list(patterns: Option<&Vec<Pattern>>, line: Option<String>) -> Option<SourceList> {
    let patterns = patterns.filter(|patterns| !patterns.iter().any(Pattern::is_any))?;
    Some(SourceList { patterns: patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect(), line: line? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::{Policy, Profile, set::PolicySet};

    fn sources(spec: Value, subject: PolicySubject<'_>) -> AllowedSources {
        let mut spec = spec;
        spec["namespaces"] = json!({"names": ["a"]});
        let set = PolicySet::new(Profile::Compatible, [Policy::read("team", &spec)]);
        set.of(&"a".into(), &BTreeMap::new()).sources(subject)
    }

    fn source(patterns: &[&str], line: &str) -> SourceList {
        SourceList { patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(), line: line.to_owned() }
    }

    #[test]
    fn profiles_allow_every_source() {
        for profile in ["restricted", "compatible"] {
            let allowed = sources(json!({"profile": profile}), PolicySubject::Item("t"));
            assert_eq!(allowed, AllowedSources::default(), "{profile}");
        }
    }

    #[test]
    fn the_lists_are_those_of_the_section_and_of_the_type_of_the_item() {
        let spec = || {
            json!({
                "sources": {"registries": ["ghcr.io/acme/*"]},
                "items": {"types": [{"type": "x/helm", "registries": ["ghcr.io/acme/charts/*"], "hosts": ["h"]}, {"type": "*"}]},
            })
        };
        let section = source(&["ghcr.io/acme/*"], "NamespacePolicy team, line spec.sources.registries");
        let registries =
            source(&["ghcr.io/acme/charts/*"], "NamespacePolicy team, line spec.items.types[0].registries");
        let hosts = source(&["h"], "NamespacePolicy team, line spec.items.types[0].hosts");
        let plain = AllowedSources { registries: vec![section.clone()], ..AllowedSources::default() };
        assert_eq!(sources(spec(), PolicySubject::Installation), plain);
        assert_eq!(sources(spec(), PolicySubject::Item("x/manifest")), plain);
        let registries = vec![section, registries];
        let narrowed = AllowedSources { registries, hosts: vec![hosts], ..AllowedSources::default() };
        assert_eq!(sources(spec(), PolicySubject::Item("x/helm")), narrowed);
    }

    #[test]
    fn c_76_where_signatures_are_required_content_is_named_by_digest() {
        let digests = |spec| sources(spec, PolicySubject::Item("t")).digests_required_by;
        assert_eq!(digests(json!({"signatures": {"trustedKeys": []}})), Vec::<String>::new());
        let line = "NamespacePolicy team, line spec.signatures.required";
        assert_eq!(digests(json!({"signatures": {"required": true}})), [line]);
    }

    #[test]
    fn a_policy_that_cannot_be_used_allows_no_source() {
        let allowed = sources(json!({"sources": 5}), PolicySubject::Installation);
        let nothing = vec![source(&[], "NamespacePolicy team, line spec (it cannot be used)")];
        let digests_required_by = vec!["NamespacePolicy team, line spec (it cannot be used)".to_owned()];
        assert_eq!(allowed, AllowedSources { registries: nothing.clone(), hosts: nothing, digests_required_by });
    }
}
