//! What counts for one namespace, and its check.

use std::sync::Arc;

use orangery_proposal::{ObjectKey, Selection};

use crate::{
    pattern::Pattern,
    profile::Profile,
    read::Policy,
    request::{PolicyRequest, PolicySubject},
    spec::{Approval, ItemTypeRule, KindPattern, PolicySpec, SecretDataRule},
    trust::TrustedSigner,
    violation::Violation,
};

/// The policies that count for one namespace: each has to allow what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectivePolicy {
    policies: Vec<Arc<Policy>>,
}

/// A key or an identity that an administrator trusts, by which a signature is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey<'p> {
    /// By what it is verified.
    pub signer: TrustedSigner<'p>,
    /// Where it stands, such as `NamespacePolicy team-a, line spec.signatures.trustedKeys[0]`.
    pub line: String,
}

impl EffectivePolicy {
    pub(crate) fn new(policies: Vec<Arc<Policy>>) -> Self {
        Self { policies }
    }

    /// The policies, by name.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().map(AsRef::as_ref)
    }

    /// Whether something may be read or written: the first line of the first policy that refuses it.
    ///
    /// # Errors
    /// The violation.
    pub fn check(&self, subject: PolicySubject<'_>, request: PolicyRequest<'_>) -> Result<(), Violation> {
        self.policies().try_for_each(|policy| check(policy, subject, request))
    }

    /// Whether jobs write nothing that nobody has approved (C-49).
    pub fn requires_approval(&self) -> bool {
        let required = |lines: &PolicySpec| lines.approval == Some(Approval::Required);
        self.policies().any(|policy| policy.lines().map_or(true, required))
    }

    /// Whether somebody else has to approve than has made the change (C-367).
    pub fn requires_other_approver(&self) -> bool {
        let required = |lines: &PolicySpec| lines.plans.require_other_approver == Some(true);
        self.policies().any(|policy| policy.lines().map_or(true, required))
    }

    /// Whether everything has to be covered by a signature (C-47, C-75).
    pub fn requires_signatures(&self) -> bool {
        self.policies().any(|policy| policy.lines().map_or(true, requires_signatures))
    }

    /// Whether keys of a policy count, and not those that Contexts name (C-47): where there are any, and where signatures are
    /// required, whether there are any or not.
    pub fn decides_on_keys(&self) -> bool {
        self.policies().any(|policy| policy.lines().map_or(true, decides_on_keys))
    }

    /// The key by which a signature of a component version is verified; `None` where no policy has keys.
    ///
    /// # Errors
    /// A policy has no key for it, or another one than another policy.
    pub fn trusted_key(&self, component: &str, signature: &str) -> Result<Option<FoundKey<'_>>, Violation> {
        let request = PolicyRequest::Signature { component, signature };
        self.check(PolicySubject::Installation, request)?;
        let mut found: Option<(&Policy, FoundKey<'_>)> = None;
        for policy in self.policies() {
            let key = policy.lines().ok().and_then(|lines| lines.key_for(component, signature));
            let Some((number, signer)) = key else { continue };
            match found {
                Some((other, known)) if known.signer.text() != signer.text() => {
                    return Err(Violation {
                        policy: policy.origin().clone(),
                        line: TRUSTED_KEYS.to_owned(),
                        of_profile: None,
                        asked: request.to_string(),
                        why: Some(format!("{} has another key for it", other.origin()).into()),
                        remedy: None,
                    });
                }
                Some(_) | None => {
                    let line = format!("{}, line {TRUSTED_KEYS}[{number}]", policy.origin());
                    found = Some((policy, FoundKey { signer, line }));
                }
            }
        }
        Ok(found.map(|(_, key)| key))
    }

    /// What becomes of data of Secrets in DataObjects: of several policies what the strictest says (C-81).
    pub fn secret_data(&self) -> SecretDataRule {
        let rules = self.policies().map(|policy| match policy.lines() {
            Ok(lines) => secret_data(lines).map_or(SecretDataRule::Readable, |line| *line.value),
            Err(_) => SecretDataRule::Refused,
        });
        rules.max().unwrap_or(SecretDataRule::Refused)
    }

    /// Which clusters items may reach and as whom, as one text for whoever keeps a connection: it is another one where the lines are
    /// others.
    pub fn cluster_lines(&self) -> String {
        let lines = self.policies().map(|policy| {
            let lines = policy.lines().map(|lines| {
                let profile = lines.profile.spec();
                (
                    &lines.targets.host_cluster,
                    &lines.targets.servers,
                    &profile.targets.host_cluster,
                    &profile.targets.servers,
                )
            });
            format!("{} {lines:?}", policy.origin())
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    /// Whether clusters may be anywhere, so that their addresses need not be asked for.
    pub fn allows_any_server(&self) -> bool {
        self.policies().all(|policy| {
            let servers = policy
                .lines()
                .ok()
                .and_then(|lines| lines.targets.servers.as_ref().or(lines.profile.spec().targets.servers.as_ref()));
            servers.is_some_and(|servers| servers.iter().any(Pattern::is_any))
        })
    }
}

/// The line that everything unsigned is refused by.
pub(crate) const SIGNATURES_REQUIRED: &str = "spec.signatures.required";
const TRUSTED_KEYS: &str = "spec.signatures.trustedKeys";

fn decides_on_keys(lines: &PolicySpec) -> bool {
    requires_signatures(lines) || lines.trusted_keys().next().is_some()
}

/// No profile requires any.
pub(crate) fn requires_signatures(lines: &PolicySpec) -> bool {
    lines.signatures.required == Some(true)
}

/// A line with its value: of the policy, else of its profile.
struct PolicyLine<'p, T> {
    path: &'static str,
    value: &'p T,
    of_profile: Option<Profile>,
}

impl<'p, T> PolicyLine<'p, T> {
    fn of(policy: &'p PolicySpec, path: &'static str, get: fn(&PolicySpec) -> Option<&T>) -> Option<Self> {
        match get(policy) {
            Some(value) => Some(Self { path, value, of_profile: None }),
            None => get(policy.profile.spec()).map(|value| Self { path, value, of_profile: Some(policy.profile) }),
        }
    }
}

/// What a line refuses, before it is told of which policy it is.
struct RefusedLine {
    line: String,
    of_profile: Option<Profile>,
    /// `None` where to leave out what was asked would not help.
    remedy: Option<String>,
}

fn secret_data(lines: &PolicySpec) -> Option<PolicyLine<'_, SecretDataRule>> {
    PolicyLine::of(lines, "spec.dataObjects.secretData", |spec| spec.data_objects.secret_data.as_ref())
}

impl RefusedLine {
    fn by<T>(line: &PolicyLine<'_, T>, remedy: String) -> Self {
        Self { line: line.path.to_owned(), of_profile: line.of_profile, remedy: Some(remedy) }
    }
}

fn check(policy: &Policy, subject: PolicySubject<'_>, request: PolicyRequest<'_>) -> Result<(), Violation> {
    let violation = |line: String, of_profile, why, remedy| Violation {
        policy: policy.origin().clone(),
        line,
        of_profile,
        asked: request.to_string(),
        why,
        remedy,
    };
    match policy.lines() {
        Err(why) => Err(violation("spec".to_owned(), None, Some(format!("it cannot be used: {why}").into()), None)),
        Ok(lines) => check_lines(lines, subject, request)
            .map_err(|RefusedLine { line, of_profile, remedy }| violation(line, of_profile, None, remedy)),
    }
}

fn check_lines(lines: &PolicySpec, subject: PolicySubject<'_>, request: PolicyRequest<'_>) -> Result<(), RefusedLine> {
    let yes = |path, get: fn(&PolicySpec) -> Option<&bool>, remedy: &str| {
        let line = PolicyLine::of(lines, path, get);
        line.filter(|line| !*line.value).map_or(Ok(()), |line| Err(RefusedLine::by(&line, remedy.to_owned())))
    };
    match request {
        PolicyRequest::Unapproved => approved(lines),
        PolicyRequest::PluginMemory { plugin: _, mib } => within_memory(lines, mib),
        PolicyRequest::ItemType(of) => item_rule(lines, of).map(drop),
        PolicyRequest::InlineBlueprint => {
            yes("spec.blueprints.inline", |spec| spec.blueprints.inline.as_ref(), "inline: true")
        }
        PolicyRequest::UnsignedBlueprint
        | PolicyRequest::UnsignedComponent(_)
        | PolicyRequest::UnsignedItem(_)
        | PolicyRequest::UnpinnedPlugin(_) => unsigned(lines),
        PolicyRequest::Signature { component, signature } => has_key(lines, component, signature),
        PolicyRequest::BlueprintComponent => {
            yes("spec.blueprints.components", |spec| spec.blueprints.components.as_ref(), "components: true")
        }
        PolicyRequest::UnsealedState(_) => {
            let remedy = "unsealedStates: true";
            yes("spec.blueprints.unsealedStates", |spec| spec.blueprints.unsealed_states.as_ref(), remedy)
        }
        PolicyRequest::HostCluster => {
            yes("spec.targets.hostCluster.allow", |spec| spec.targets.host_cluster.allow.as_ref(), "allow: true")
        }
        PolicyRequest::Template(of) => {
            listed(lines, "spec.blueprints.templates", |spec| spec.blueprints.templates.as_ref(), of)
        }
        PolicyRequest::Server(address) => {
            listed(lines, "spec.targets.servers", |spec| spec.targets.servers.as_ref(), address)
        }
        PolicyRequest::SecretData(_) | PolicyRequest::SecretDataOfGates(_) => allows_secret_data(lines),
        PolicyRequest::Credential(of) => {
            listed(lines, "spec.targets.credentials", |spec| spec.targets.credentials.as_ref(), of)
        }
        PolicyRequest::Object(ObjectKey { api_version, kind, namespace, .. })
        | PolicyRequest::Selection(Selection { api_version, kind, namespace, .. }) => {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            match namespace.as_deref() {
                Some(namespace) => {
                    listed(lines, "spec.targets.namespaces", |spec| spec.targets.namespaces.as_ref(), namespace)?;
                    narrowed(lines, subject, "namespaces", |rule| rule.namespaces.as_ref(), namespace)?;
                }
                // A selection without a namespace reaches into all of them.
                None => {
                    let remedy = "clusterScoped: true";
                    yes("spec.targets.clusterScoped", |spec| spec.targets.cluster_scoped.as_ref(), remedy)?;
                }
            }
            kinds(lines, subject, group, kind)
        }
    }
}

/// Where keys of the policy count, one of them has to be for a signature.
fn has_key(lines: &PolicySpec, component: &str, signature: &str) -> Result<(), RefusedLine> {
    let line = PolicyLine::of(lines, TRUSTED_KEYS, |spec| spec.signatures.trusted_keys.as_ref());
    match line.filter(|_| decides_on_keys(lines) && lines.key_for(component, signature).is_none()) {
        Some(line) => Err(RefusedLine::by(&line, format!("an entry for {:?}", cut(component)))),
        None => Ok(()),
    }
}

fn allows_secret_data(lines: &PolicySpec) -> Result<(), RefusedLine> {
    match secret_data(lines).filter(|line| *line.value == SecretDataRule::Refused) {
        Some(line) => Err(RefusedLine::by(&line, "secretData: Encrypted".to_owned())),
        None => Ok(()),
    }
}

/// What an external deployer writes nobody can approve (C-49).
fn approved(lines: &PolicySpec) -> Result<(), RefusedLine> {
    let line = PolicyLine::of(lines, "spec.approval", |spec| spec.approval.as_ref());
    let line = line.filter(|line| *line.value == Approval::Required);
    line.map_or(Ok(()), |line| Err(RefusedLine { remedy: None, ..RefusedLine::by(&line, String::new()) }))
}

/// A component may take no more memory than the calls of the namespace together (C-53).
fn within_memory(lines: &PolicySpec, mib: u64) -> Result<(), RefusedLine> {
    let line = PolicyLine::of(lines, "spec.quotas.memoryMiB", |spec| spec.quotas.memory_mib.as_ref());
    let line = line.filter(|line| *line.value > 0 && u64::from(*line.value) < mib);
    line.map_or(Ok(()), |line| Err(RefusedLine::by(&line, format!("memoryMiB: {mib}"))))
}

/// What no signature covers (C-75).
fn unsigned(lines: &PolicySpec) -> Result<(), RefusedLine> {
    let line = PolicyLine::of(lines, SIGNATURES_REQUIRED, |spec| spec.signatures.required.as_ref());
    let line = line.filter(|line| *line.value);
    line.map_or(Ok(()), |line| Err(RefusedLine::by(&line, "required: false".to_owned())))
}

/// A list of patterns, one of which has to match.
fn listed(
    lines: &PolicySpec,
    path: &'static str,
    get: fn(&PolicySpec) -> Option<&Vec<Pattern>>,
    name: &str,
) -> Result<(), RefusedLine> {
    match PolicyLine::of(lines, path, get) {
        Some(line) if !line.value.iter().any(|pattern| pattern.matches(name)) => {
            Err(RefusedLine::by(&line, format!("a pattern for {:?}", cut(name))))
        }
        Some(_) | None => Ok(()),
    }
}

/// The entry that counts for an item type, with its place.
fn item_rule<'p>(lines: &'p PolicySpec, of: &str) -> Result<Option<(String, &'p ItemTypeRule)>, RefusedLine> {
    let Some(line) = PolicyLine::of(lines, "spec.items.types", |spec| spec.items.types.as_ref()) else {
        return Ok(None);
    };
    let rules = line.value.iter().enumerate();
    let mut matching = rules.filter(|(_, rule)| rule.item_type.matches(of));
    match matching.next() {
        Some((number, rule)) => Ok(Some((format!("{}[{number}]", line.path), rule))),
        None => Err(RefusedLine::by(&line, format!("an entry with type: {:?}", cut(of)))),
    }
}

/// The same for what the entry of an item's type has beside that.
fn narrowed(
    lines: &PolicySpec,
    subject: PolicySubject<'_>,
    field: &str,
    get: fn(&ItemTypeRule) -> Option<&Vec<Pattern>>,
    name: &str,
) -> Result<(), RefusedLine> {
    let PolicySubject::Item(of) = subject else { return Ok(()) };
    let Some((path, rule)) = item_rule(lines, of)? else { return Ok(()) };
    match get(rule) {
        Some(patterns) if !patterns.iter().any(|pattern| pattern.matches(name)) => Err(RefusedLine {
            line: format!("{path}.{field}"),
            of_profile: None,
            remedy: Some(format!("a pattern for {:?}", cut(name))),
        }),
        Some(_) | None => Ok(()),
    }
}

fn kinds(lines: &PolicySpec, subject: PolicySubject<'_>, group: &str, of_kind: &str) -> Result<(), RefusedLine> {
    let matches = |patterns: &[KindPattern]| patterns.iter().any(|pattern| pattern.matches(group, of_kind));
    let shown = if group.is_empty() { "core" } else { group };
    let entry = || format!("an entry {{group: {:?}, kind: {:?}}}", cut(shown), cut(of_kind));
    if let Some(line) = PolicyLine::of(lines, "spec.targets.kinds.deny", |spec| spec.targets.kinds.deny.as_ref())
        && matches(line.value)
    {
        return Err(RefusedLine::by(&line, format!("no {}", entry().trim_start_matches("an "))));
    }
    if let Some(line) = PolicyLine::of(lines, "spec.targets.kinds.allow", |spec| spec.targets.kinds.allow.as_ref())
        && !matches(line.value)
    {
        return Err(RefusedLine::by(&line, entry()));
    }
    let PolicySubject::Item(of) = subject else { return Ok(()) };
    match item_rule(lines, of)? {
        Some((path, ItemTypeRule { kinds: Some(kinds), .. })) if !matches(kinds) => {
            Err(RefusedLine { line: format!("{path}.kinds"), of_profile: None, remedy: Some(entry()) })
        }
        Some(_) | None => Ok(()),
    }
}

/// A name of somebody's choice, as a message has it.
fn cut(name: &str) -> String {
    name.chars().take(256).collect()
}

#[cfg(test)]
mod tests;
