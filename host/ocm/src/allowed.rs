//! Where the content of one object may come from, as the policies of its namespace say.

use orangery_core::{
    error::{Code, Fault, Problem},
    pattern::matches,
};

/// Where content may come from: every list has to have what is asked for. Without lists it may come from anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllowedSources {
    /// Repositories of registries: host and path.
    pub registries: Vec<SourceList>,
    /// Hosts of chart repositories and web servers.
    pub hosts: Vec<SourceList>,
    /// What refuses content that no digest names, such as `NamespacePolicy team, line spec.signatures.required`; empty where
    /// such content may be read.
    pub digests_required_by: Vec<String>,
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

/// What others wrote, as a message has it.
fn quoted(text: &str) -> String {
    text.escape_debug().take(256).collect()
}

fn denied(message: String) -> Fault {
    Fault::Denied(Problem { code: Code::PolicyViolation, message, at: None })
}

fn check(lists: &[SourceList], source: &str) -> Result<(), Fault> {
    let has = |list: &SourceList| list.patterns.iter().any(|pattern| matches(pattern, source));
    lists.iter().find(|list| !has(list)).map_or(Ok(()), |SourceList { line, .. }| {
        Err(denied(format!(
            "content of {} is refused by {line}; take it from elsewhere, or have an administrator add a pattern for it to \
             that line",
            quoted(source)
        )))
    })
}

#[cfg(test)]
mod tests {
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
}
