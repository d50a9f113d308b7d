//! Where the content of one object may come from: lists for the transport, which asks for nothing else.

use orangery_core::name::Namespace;
use orangery_ocm::{AllowedSources, FetchQuota, SourceList};

use crate::{
    effective::{EffectivePolicy, SIGNATURES_REQUIRED, requires_signatures},
    pattern::Pattern,
    profile::Profile,
    quota::QuotaKind,
    request::PolicySubject,
    spec::{ItemTypeRule, PolicySpec},
};

impl EffectivePolicy {
    /// The lists of all policies that count, and of the entry of an item's type, with the quota of the namespace and the networks
    /// that may be connected to. A policy that cannot be used has an empty list.
    pub fn sources(&self, namespace: &Namespace, subject: PolicySubject<'_>) -> AllowedSources {
        let quota = self.quota(QuotaKind::FetchedMibPerHour);
        let fetched = quota.map(|quota| FetchQuota {
            namespace: namespace.clone(),
            most_mib: quota.most,
            line: quota.to_string(),
        });
        let networks = self.source_networks(subject);
        let mut allowed = AllowedSources { fetched, networks, ..AllowedSources::default() };
        for policy in self.policies() {
            let origin = policy.origin();
            let Ok(lines) = policy.lines() else {
                let nothing =
                    || SourceList { patterns: Vec::new(), line: format!("{origin}, line spec (it cannot be used)") };
                allowed.registries.push(nothing());
                allowed.hosts.push(nothing());
                allowed.redirects.push(nothing());
                allowed.digests_required_by.push(format!("{origin}, line spec (it cannot be used)"));
                allowed.usual_port_by.push(format!("{origin}, line spec (it cannot be used)"));
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
            let redirects = lines.sources.redirects.as_deref().or(lines.profile.spec().sources.redirects.as_deref());
            let redirects = redirects.unwrap_or_default();
            let led = |hosts: SourceList| led_to(hosts, redirects, format!("{origin}, line spec.sources.redirects"));
            let registries = (lines.sources.registries.as_ref(), lines.profile.spec().sources.registries.as_ref());
            let hosts = (lines.sources.hosts.as_ref(), lines.profile.spec().sources.hosts.as_ref());
            let line = format!("{origin}, line spec.sources.registries");
            let registries = section(registries, line.clone(), lines);
            let of_type = list(of_rule(|rule| &rule.registries), own("registries"));
            let by_list = registries.as_ref().or(of_type.as_ref()).map(|list| list.line.clone());
            let by_profile =
                (lines.profile == Profile::Restricted).then(|| format!("{line} of its profile {}", lines.profile));
            allowed.usual_port_by.extend(by_list.or(by_profile));
            allowed.registries.extend(registries.into_iter().chain(of_type));
            let hosts = section(hosts, format!("{origin}, line spec.sources.hosts"), lines);
            let hosts: Vec<_> = hosts.into_iter().chain(list(of_rule(|rule| &rule.hosts), own("hosts"))).collect();
            allowed.redirects.extend(hosts.iter().cloned().filter_map(led));
            allowed.hosts.extend(hosts);
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

/// What servers may lead to: hosts that may be asked anyway, and those that the line has beside them; `None` for all.
fn led_to(hosts: SourceList, redirects: &[Pattern], line: String) -> Option<SourceList> {
    let beside = redirects.iter().map(|pattern| pattern.as_str().to_owned());
    let patterns = hosts.patterns.into_iter().chain(beside).collect();
    (!redirects.iter().any(Pattern::is_any)).then_some(SourceList { patterns, line })
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
    use crate::{Policy, set::PolicySet};

    fn sources(spec: Value, subject: PolicySubject<'_>) -> AllowedSources {
        let mut spec = spec;
        spec["quotas"] = json!({"fetchedMiBPerHour": 0});
        spec["egress"] = json!({"networks": ["0.0.0.0/0", "::/0"]});
        spec["namespaces"] = json!({"names": ["a"]});
        let set = PolicySet::new(Profile::Compatible, [Policy::read("team", &spec)]);
        set.of(&"a".into(), &BTreeMap::new()).sources(&"a".into(), subject)
    }

    fn source(patterns: &[&str], line: &str) -> SourceList {
        SourceList { patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(), line: line.to_owned() }
    }

    #[test]
    fn profiles_allow_every_source() {
        for profile in ["restricted", "compatible"] {
            let allowed = sources(json!({"profile": profile}), PolicySubject::Item("t"));
            let line = "NamespacePolicy team, line spec.sources.registries of its profile restricted".to_owned();
            let usual_port_by = if profile == "restricted" { vec![line] } else { Vec::new() };
            assert_eq!(allowed, AllowedSources { usual_port_by, ..AllowedSources::default() }, "{profile}");
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
        let usual_port_by = vec![section.line.clone()];
        let plain = AllowedSources { registries: vec![section.clone()], usual_port_by, ..AllowedSources::default() };
        assert_eq!(sources(spec(), PolicySubject::Installation), plain);
        assert_eq!(sources(spec(), PolicySubject::Item("x/manifest")), plain);
        let registries = vec![section, registries];
        let redirects = vec![source(&["h"], "NamespacePolicy team, line spec.sources.redirects")];
        let narrowed = AllowedSources { registries, hosts: vec![hosts], redirects, ..plain };
        assert_eq!(sources(spec(), PolicySubject::Item("x/helm")), narrowed);
    }

    #[test]
    fn c_214_credentials_without_a_port_are_for_the_usual_one_where_a_line_or_the_profile_says_so() {
        let by = |spec: Value| sources(spec, PolicySubject::Item("x/helm")).usual_port_by;
        let line = |line: &str| vec![format!("NamespacePolicy team, line {line}")];
        let narrowed = |profile: &str, section: &[&str], of_type: &[&str]| {
            let types = json!([{"type": "x/helm", "registries": of_type}]);
            json!({"profile": profile, "sources": {"registries": section}, "items": {"types": types}})
        };
        assert_eq!(by(narrowed("compatible", &["*"], &["*"])), Vec::<String>::new());
        assert_eq!(by(narrowed("compatible", &["r/*"], &["r/a"])), line("spec.sources.registries"));
        assert_eq!(by(narrowed("compatible", &["*"], &["r/a"])), line("spec.items.types[0].registries"));
        let of_profile = line("spec.sources.registries of its profile restricted");
        assert_eq!(by(narrowed("restricted", &["*"], &["*"])), of_profile);
    }

    #[test]
    fn c_104_servers_lead_to_hosts_that_may_be_asked_and_to_those_of_the_line() {
        let redirects = |spec: Value| sources(spec, PolicySubject::Item("x/helm")).redirects;
        let line = "NamespacePolicy team, line spec.sources.redirects";
        assert_eq!(redirects(json!({"sources": {"registries": ["r/*"]}})), []);
        assert_eq!(redirects(json!({"sources": {"redirects": ["c"]}})), []);
        assert_eq!(redirects(json!({"sources": {"hosts": ["h"]}})), [source(&["h"], line)]);
        assert_eq!(redirects(json!({"sources": {"hosts": ["h"], "redirects": ["*"]}})), []);
        let both = json!({
            "sources": {"hosts": ["h", "i"], "redirects": ["c"]},
            "items": {"types": [{"type": "x/helm", "hosts": ["i"]}, {"type": "*"}]},
        });
        assert_eq!(redirects(both), [source(&["h", "i", "c"], line), source(&["i", "c"], line)]);
    }

    #[test]
    fn c_76_where_signatures_are_required_content_is_named_by_digest() {
        let digests = |spec| sources(spec, PolicySubject::Item("t")).digests_required_by;
        assert_eq!(digests(json!({"signatures": {"trustedKeys": []}})), Vec::<String>::new());
        let line = "NamespacePolicy team, line spec.signatures.required";
        assert_eq!(digests(json!({"signatures": {"required": true}})), [line]);
    }

    #[test]
    fn c_54_the_quota_on_fetched_bytes_is_of_the_namespace() {
        let spec = json!({"namespaces": {"names": ["a"]}, "quotas": {"fetchedMiBPerHour": 5}});
        let set = PolicySet::new(Profile::Compatible, [Policy::read("team", &spec)]);
        let fetched = set.of(&"a".into(), &BTreeMap::new()).sources(&"a".into(), PolicySubject::Installation).fetched;
        let line = "NamespacePolicy team, line spec.quotas.fetchedMiBPerHour".to_owned();
        assert_eq!(fetched, Some(FetchQuota { namespace: "a".into(), most_mib: 5, line }));
    }

    #[test]
    fn a_policy_that_cannot_be_used_allows_no_source() {
        let allowed = sources(json!({"sources": 5}), PolicySubject::Installation);
        let nothing = vec![source(&[], "NamespacePolicy team, line spec (it cannot be used)")];
        let digests_required_by = vec!["NamespacePolicy team, line spec (it cannot be used)".to_owned()];
        assert_eq!(
            allowed,
            AllowedSources {
                registries: nothing.clone(),
                hosts: nothing.clone(),
                redirects: nothing,
                usual_port_by: digests_required_by.clone(),
                digests_required_by,
                fetched: None,
                networks: allowed.networks.clone(),
            }
        );
        let lines: Vec<_> = allowed.networks.hosts.rules.iter().map(|rule| rule.line.as_str()).collect();
        assert_eq!(lines, ["NamespacePolicy team, line spec (it cannot be used)"]);
    }
}
