//! Where the content of one object may come from, as the policies of its namespace say.

use std::sync::Arc;

use orangery_core::{
    error::{Code, Fault, Problem},
    name::Namespace,
    network::AllowedNetworks,
    pattern::matches,
};

/// Where content may come from: every list has to have what is asked for. Without lists it may come from anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllowedSources {
    /// Repositories of registries: host and path.
    pub registries: Vec<SourceList>,
    /// Hosts of chart repositories and web servers.
    pub hosts: Vec<SourceList>,
    /// Hosts that a registry or server that is asked may lead to, by a redirect or to its token service (C-104).
    pub redirects: Vec<SourceList>,
    /// What refuses content that no digest names, such as `NamespacePolicy team, line spec.signatures.required`; empty where
    /// such content may be read.
    pub digests_required_by: Vec<String>,
    /// What keeps credentials that name no port for the usual one (C-214), such as `NamespacePolicy team, line
    /// spec.sources.registries`; empty where they are for every port of their host.
    pub usual_port_by: Vec<String>,
    /// How much may come from there within an hour; `None` for any number.
    pub fetched: Option<FetchQuota>,
    /// Which networks may be connected to (C-101).
    pub networks: SourceNetworks,
}

/// Which networks may be connected to for content: each with the servers that the list names by their address which allows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceNetworks {
    /// For registries.
    pub registries: Arc<AllowedNetworks>,
    /// For chart repositories and web servers.
    pub hosts: Arc<AllowedNetworks>,
    /// For whoever these lead to.
    pub redirects: Arc<AllowedNetworks>,
}

impl SourceNetworks {
    /// What is allowed, without where it stands: what was fetched under the same text may be shown to each other. Empty where
    /// all networks may be connected to.
    pub fn extent(&self) -> String {
        let Self { registries, hosts, redirects } = self;
        if [registries, hosts, redirects].iter().all(|networks| networks.rules.is_empty()) {
            return String::new();
        }
        format!("{}|{}|{}", registries.extent(), hosts.extent(), redirects.extent())
    }
}

/// How much of others a namespace may have fetched within an hour.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchQuota {
    /// For which namespace.
    pub namespace: Namespace,
    /// How much, in MiB.
    pub most_mib: u32,
    /// What refuses what is beyond that, such as `NamespacePolicy team, line spec.quotas.fetchedMiBPerHour`.
    pub line: String,
}

/// One list of sources.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceList {
    /// Patterns ([`matches`]), one of which has to match.
    pub patterns: Vec<String>,
    /// What refuses everything else, such as `NamespacePolicy team, line spec.sources.hosts`.
    pub line: String,
}

impl AllowedSources {
    /// Whether content may come from a repository of a registry.
    ///
    /// # Errors
    /// A denial that names the line.
    pub fn registry(&self, repository: &str) -> Result<(), Fault> {
        check(&self.registries, repository)
    }

    /// Whether content may come from a host.
    ///
    /// # Errors
    /// A denial that names the line.
    pub fn host(&self, host: &str) -> Result<(), Fault> {
        check(&self.hosts, host)
    }

    /// Whether who is asked may lead to a host, by a redirect or to a token service (C-104).
    ///
    /// # Errors
    /// A sentence that names the line.
    pub fn redirect(&self, host: &str) -> Result<(), String> {
        refusing(&self.redirects, host).map_or(Ok(()), |SourceList { line, .. }| {
            let host = quoted(host);
            Err(format!(
                "it leads to {host}, which is refused by {line}; take it from elsewhere, or have an administrator add {host} to \
                 that line"
            ))
        })
    }

    /// What keeps credentials that name no port from this one of a source, where that is not the usual one; `None` where
    /// nothing does, or where a list of registries has the source and names its port (C-214).
    pub fn withholds_from_port(&self, source: &str, port: u16) -> Option<&str> {
        let line = self.usual_port_by.first()?;
        let mut patterns = self.registries.iter().flat_map(|list| &list.patterns);
        let is_named = patterns.any(|pattern| names_port(pattern, port) && matches(pattern, source));
        (!is_named).then_some(line)
    }

    /// Whether content may be read that is named by a tag, a version or an address, and not by its digest (C-76).
    ///
    /// # Errors
    /// A denial that names the line.
    pub fn without_digest(&self, content: &str) -> Result<(), Fault> {
        let Some(line) = self.digests_required_by.first() else { return Ok(()) };
        let message = format!(
            "{}, which is not named by its digest, is refused by {line}; take it from the component version of the \
             Installation, or name it as in repository@sha256:…",
            quoted(content)
        );
        Err(denied(message))
    }
}

/// Whether a pattern of repositories has this port, and no `*` in its place.
fn names_port(pattern: &str, port: u16) -> bool {
    let (host, _) = pattern.split_once('/').unwrap_or((pattern, ""));
    host.rsplit_once(':').is_some_and(|(_, named)| named == port.to_string())
}

/// What others wrote, as a message has it.
fn quoted(text: &str) -> String {
    text.escape_debug().take(256).collect()
}

fn denied(message: String) -> Fault {
    Fault::Denied(Problem { code: Code::PolicyViolation, message, at: None })
}

/// The first list that does not have a source.
fn refusing<'l>(lists: &'l [SourceList], source: &str) -> Option<&'l SourceList> {
    let has = |list: &SourceList| list.patterns.iter().any(|pattern| matches(pattern, source));
    lists.iter().find(|list| !has(list))
}

fn check(lists: &[SourceList], source: &str) -> Result<(), Fault> {
    refusing(lists, source).map_or(Ok(()), |SourceList { line, .. }| {
        Err(denied(format!(
            "content of {} is refused by {line}; take it from elsewhere, or have an administrator add a pattern for it to \
             that line",
            quoted(source)
        )))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use orangery_core::network::NetworkRule;

    use super::*;

    fn list(patterns: &[&str], line: &str) -> SourceList {
        SourceList { patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(), line: line.to_owned() }
    }

    #[test]
    fn every_list_has_to_have_a_source_and_without_lists_all_is_allowed() {
        let everywhere = AllowedSources::default();
        assert_eq!((everywhere.registry("any.example/x"), everywhere.host("any.example")), (Ok(()), Ok(())));
        let registries = vec![list(&["ghcr.io/*"], "line a"), list(&["ghcr.io/acme/*", "docker.io/*"], "line b")];
        let allowed = AllowedSources { registries, hosts: vec![list(&[], "line c")], ..AllowedSources::default() };
        let refused = |answer: Result<(), Fault>| answer.err().map(|fault| fault.problem().clone());
        assert_eq!(refused(allowed.registry("ghcr.io/acme/app")), None);
        let lines =
            ["docker.io/app", "ghcr.io/other/app"].map(|source| refused(allowed.registry(source)).unwrap().message);
        assert!(lines[0].starts_with("content of docker.io/app is refused by line a; "), "{lines:?}");
        assert!(lines[1].starts_with("content of ghcr.io/other/app is refused by line b; "), "{lines:?}");
        let host = refused(allowed.host("a\nb")).unwrap();
        assert_eq!(host.code, Code::PolicyViolation);
        assert!(host.message.starts_with("content of a\\nb is refused by line c; "), "{host}");
    }

    #[test]
    fn c_214_credentials_without_a_port_are_for_another_one_where_a_list_names_it() {
        let registries = vec![list(&["r.example:5000/*", "r.example*", "*:5001/a"], "line a")];
        let usual_port_by = vec!["line a".to_owned(), "line b".to_owned()];
        let allowed = AllowedSources { registries, usual_port_by, ..AllowedSources::default() };
        for (source, port, expected) in [
            ("r.example:5000/a", 5000, None),
            ("r.example:5001/a", 5001, None),
            ("r.example:5001/b", 5001, Some("line a")),
            ("r.example:50000/a", 50000, Some("line a")),
            ("s.example:5000/a", 5000, Some("line a")),
        ] {
            assert_eq!(allowed.withholds_from_port(source, port), expected, "{source}");
        }
        assert_eq!(AllowedSources::default().withholds_from_port("r.example:5000/a", 5000), None);
    }

    #[test]
    fn c_104_every_list_has_to_have_a_host_that_is_led_to() {
        let redirects = vec![list(&["*.a.example", "b.example"], "line a"), list(&["*.example"], "line b")];
        let allowed = AllowedSources { redirects, ..AllowedSources::default() };
        let refused = |host: &str, line: &str| {
            let sentence = format!(
                "it leads to {host}, which is refused by {line}; take it from elsewhere, or have an administrator add {host} to \
                 that line"
            );
            (host.to_owned(), Err(sentence))
        };
        let answered = |host: &str| (host.to_owned(), allowed.redirect(host));
        assert_eq!(
            ["x.a.example", "b.example", "c.example", "x.a.elsewhere"].map(answered),
            [
                ("x.a.example".to_owned(), Ok(())),
                ("b.example".to_owned(), Ok(())),
                refused("c.example", "line a"),
                refused("x.a.elsewhere", "line a"),
            ]
        );
        assert_eq!(AllowedSources::default().redirect("c.example"), Ok(()));
    }

    #[test]
    fn c_102_the_extent_of_networks_tells_registries_hosts_and_redirects_apart() {
        let rule = |line: &str| NetworkRule { networks: Vec::new(), servers: Vec::new(), line: line.to_owned() };
        let networks = |line: &str| Arc::new(AllowedNetworks { rules: vec![rule(line)] });
        let all = [
            SourceNetworks::default(),
            SourceNetworks { registries: networks("line a"), ..SourceNetworks::default() },
            SourceNetworks { hosts: networks("line a"), ..SourceNetworks::default() },
            SourceNetworks { redirects: networks("line a"), ..SourceNetworks::default() },
        ];
        let extents: BTreeSet<String> = all.iter().map(SourceNetworks::extent).collect();
        assert_eq!((extents.len(), extents.first().map(String::as_str)), (all.len(), Some("")));
        let elsewhere = SourceNetworks { hosts: networks("line b"), ..SourceNetworks::default() };
        assert_eq!(elsewhere.extent(), all[2].extent(), "where it stands makes no difference");
    }
}
