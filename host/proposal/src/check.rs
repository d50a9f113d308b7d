//! The check of a proposal before anything of it is carried out (`docs/contract.md`, "What the host does with a
//! proposal", 1): every object parses and has a kind and a name, everything is granted, sizes and counts are within
//! bounds.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{
    ClusterRef, DeletionGroup, DeletionScope, ExportSource, Gate, Injection, Next, ObjectKey, ObjectWrite, Proposal,
    Readiness, ReadinessRule, ReadinessScope, SecretContent, Selection, Stage,
    grant::{Grants, Refusal},
    health::{Demand, ReadyExpression},
    overlay::overlay,
};
use orangery_core::{
    condition::{ToldCondition, is_of_host},
    error::{Code, Fault, Problem},
    jsonpath::ParsedPath,
    name::{Namespace, is_path_segment},
};

pub use self::configuration::{
    created_namespace, deployed_objects, ignored_objects, is_chart, is_revision, named_objects, release_of,
    taken_over_objects,
};

mod configuration;

/// The most that one proposal may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Writes and removals: what a job carries out within its time, and an inventory can hold.
    pub objects: usize,
    /// Bytes of all objects as JSON.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { objects: 20_000, bytes: 32 * 1024 * 1024 }
    }
}

/// The most rules for exports: each of them may read an object.
const MOST_EXPORTS: usize = 1_000;

/// The most readiness checks of an item.
const MOST_CHECKS: usize = 200;

/// The most requirements of all of them.
const MOST_REQUIREMENTS: usize = 1_000;

/// The most places of an object in which the host puts secret content: each of them gets a copy of it.
const MOST_INJECTIONS: usize = 16;

/// The most conditions that a component tells of its item.
const MOST_CONDITIONS: usize = 8;

/// The longest type and reason of one, in bytes.
const LONGEST_CONDITION_WORD: usize = 128;

/// The key of a provider status under which a component tells conditions of its item (C-209).
pub const CONDITIONS: &str = "conditions";

/// The key of a provider status under which the host keeps the inventory.
pub const MANAGED_RESOURCES: &str = "managedResources";

/// The key of a provider status under which the host keeps everything else.
pub const HOST: &str = "orangery";

/// The identity of an object.
///
/// # Errors
/// One sentence naming what is missing, or a name that no object can have.
pub fn key_of(object: &Value) -> Result<ObjectKey, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let api_version = text("/apiVersion");
    let kind = text("/kind");
    let name = text("/metadata/name");
    let described = || format!("{} {}", kind.unwrap_or("an object"), name.unwrap_or("without a name"));
    let needed = |field: &str| format!("{} needs {field}", described());
    for field in ["name", "namespace"] {
        if let Some(found) = text(&format!("/metadata/{field}")).filter(|found| !is_path_segment(found)) {
            return Err(format!(
                "{} has metadata.{field} {found:?}, which no object can have; use lower-case letters, digits, `-` and `.`",
                kind.unwrap_or("an object")
            ));
        }
    }
    Ok(ObjectKey {
        api_version: api_version.ok_or_else(|| needed("apiVersion"))?.into(),
        kind: kind.ok_or_else(|| needed("kind"))?.into(),
        namespace: text("/metadata/namespace").map(Namespace::from),
        name: name.ok_or_else(|| needed("metadata.name"))?.into(),
    })
}

/// Checks a proposal.
///
/// # Errors
/// [`Fault::Denied`] names a missing grant, [`Fault::Invalid`] everything else; neither is helped by trying again.
pub fn check(proposal: &Proposal, grants: &Grants, bounds: Bounds) -> Result<(), Fault> {
    check_status(proposal.status.as_ref())?;
    let empty = Vec::new();
    let (exports, afterwards) = match &proposal.next {
        Next::Finish(completion) => (&completion.exports, &completion.afterwards),
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => (&Vec::new(), &empty),
    };
    let stages = || proposal.stages.iter().chain(afterwards);
    let objects: usize = stages().map(|stage| stage.writes.len() + stage.removals.len()).sum();
    if objects > bounds.objects {
        return Err(limit(format!("{objects} objects are proposed, but at most {} are carried out", bounds.objects)));
    }
    let mut bytes = 0_usize;
    for stage in stages() {
        check_stage(stage, grants, &mut bytes)?;
    }
    check_number_of_checks(stages())?;
    if bytes > bounds.bytes {
        return Err(limit(format!(
            "{bytes} bytes of objects are proposed, but at most {} are carried out",
            bounds.bytes
        )));
    }
    if exports.len() > MOST_EXPORTS {
        let rules = exports.len();
        return Err(limit(format!("{rules} exports are proposed, but an item has {MOST_EXPORTS} at most")));
    }
    for export in exports {
        if let ExportSource::Path(source) = &export.source {
            granted(grants.read(&source.on, &source.key))?;
            path(&source.path)?;
            if let Some(follow) = &source.then {
                let key = ObjectKey {
                    api_version: follow.api_version.clone(),
                    kind: follow.kind.clone(),
                    ..source.key.clone()
                };
                granted(grants.read(&source.on, &key))?;
                path(&follow.path)?;
            }
        }
    }
    proposal.deletion_order.iter().chain(&proposal.pruning_order).try_for_each(|group| check_group(group, grants))
}

/// What the host keeps in the provider status is the host's (C-37). The rest is an object within an object, and a name in it
/// that no resource can have would be taken with the status and then refuse every other write of the item (C-97).
fn check_status(status: Option<&Value>) -> Result<(), Fault> {
    let Some(status) = status.and_then(Value::as_object) else { return Ok(()) };
    let wrong = |what: String| Err(invalid(format!("the provider status that is proposed has the {what}")));
    if let Some(key) = [MANAGED_RESOURCES, HOST].into_iter().find(|key| status.contains_key(*key)) {
        return wrong(format!("key {key:?}, which the host keeps for itself; leave it out"));
    }
    if status.contains_key("metadata") {
        return wrong(
            "key \"metadata\", which API servers hold to the rules for objects; call it otherwise".to_owned(),
        );
    }
    read_conditions(status.get(CONDITIONS))?;
    let text = |field: &str| status.get(field).map(|value| (value, value.as_str().unwrap_or_default()));
    if let Some((value, text)) = text("apiVersion")
        && !is_api_version(text)
    {
        return wrong(format!("apiVersion {value}, which no object can have; write GROUP/VERSION, or leave it out"));
    }
    match text("kind") {
        Some((value, text)) if !is_kind(text) => {
            wrong(format!("kind {value}, which no object can have; write letters and digits, or leave it out"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Conditions of an item that its component tells are few, and none of them is the host's (C-209).
fn read_conditions(told: Option<&Value>) -> Result<Vec<ToldCondition>, Fault> {
    let Some(told) = told else { return Ok(Vec::new()) };
    let wrong = |what: String| Err(invalid(format!("the provider status that is proposed has conditions {what}")));
    let told = match Vec::<ToldCondition>::deserialize(told) {
        Ok(told) => told,
        Err(error) => {
            return wrong(format!("of another form ({error}); write a list of type, status, reason and message"));
        }
    };
    if told.len() > MOST_CONDITIONS {
        return wrong(format!("of which there are {}, and {MOST_CONDITIONS} are the most; tell fewer", told.len()));
    }
    if told.iter().any(|condition| !is_condition_type(&condition.type_)) {
        return wrong(format!(
            "whose type is no word of letters, digits and \"-_./\" of at most {LONGEST_CONDITION_WORD} bytes; write such a word"
        ));
    }
    if told.iter().any(|condition| condition.reason.is_empty() || condition.reason.len() > LONGEST_CONDITION_WORD) {
        return wrong(format!("whose reason is empty or has more than {LONGEST_CONDITION_WORD} bytes; shorten it"));
    }
    let types: BTreeSet<&str> = told.iter().map(|condition| condition.type_.as_str()).collect();
    if types.len() < told.len() {
        return wrong("of which two have the same type; tell one of each type".to_owned());
    }
    if let Some(type_) = types.into_iter().find(|type_| is_of_host(type_)) {
        return wrong(format!("of type {type_:?}, which the host tells itself; call it otherwise"));
    }
    Ok(told)
}

fn is_condition_type(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    (1..=LONGEST_CONDITION_WORD).contains(&text.len()) && text.bytes().all(is_letter)
}

/// The conditions of its item that a component tells with its provider status; none where they could not be told.
pub fn told_conditions(status: Option<&Value>) -> Vec<ToldCondition> {
    read_conditions(status.and_then(|status| status.get(CONDITIONS))).unwrap_or_default()
}

fn is_api_version(text: &str) -> bool {
    !text.is_empty() && text.matches('/').count() <= 1
}

/// A label of the DNS that begins with a letter, but for its case.
fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

fn check_stage(stage: &Stage, grants: &Grants, bytes: &mut usize) -> Result<(), Fault> {
    for removal in &stage.removals {
        granted(grants.write(&removal.on, &removal.key))?;
    }
    for write in &stage.writes {
        check_write(write, grants)?;
        let parts = [Some(&write.object), write.at_creation.as_ref(), write.before_deletion.as_ref()];
        let length: usize = parts.into_iter().flatten().map(|part| part.to_string().len()).sum();
        *bytes = bytes.saturating_add(length);
    }
    match &stage.gate {
        Gate::Accepted | Gate::Gone => Ok(()),
        Gate::Completed(keys) => keys.iter().try_for_each(|key| granted(grants.read(&ClusterRef::Target, key))),
        Gate::Ready(checks) => {
            for check in checks {
                check_scope(&check.scope, &check.on, grants)?;
                check_rule(&check.rule, &check.name)?;
            }
            Ok(())
        }
    }
}

/// Readiness is looked at with each change of an object (C-297).
fn check_number_of_checks<'p>(stages: impl Iterator<Item = &'p Stage>) -> Result<(), Fault> {
    let checks: Vec<&Readiness> = stages
        .filter_map(|stage| match &stage.gate {
            Gate::Ready(checks) => Some(checks),
            Gate::Accepted | Gate::Gone | Gate::Completed(_) => None,
        })
        .flatten()
        .collect();
    let requirements = |check: &&Readiness| match &check.rule {
        ReadinessRule::Requirements(requirements) => requirements.len(),
        ReadinessRule::Usual | ReadinessRule::Expression(_) => 0,
    };
    let counted = [
        ("readiness checks", checks.len(), MOST_CHECKS),
        ("requirements of readiness checks", checks.iter().map(requirements).sum(), MOST_REQUIREMENTS),
    ];
    match counted.into_iter().find(|(_, count, most)| count > most) {
        Some((what, count, most)) => Err(limit(format!("{count} {what} are proposed, but an item has {most} at most"))),
        None => Ok(()),
    }
}

fn check_write(write: &ObjectWrite, grants: &Grants) -> Result<(), Fault> {
    let key = key_of(&write.object).map_err(invalid)?;
    granted(grants.write(&write.on, &key))?;
    check_stays_itself(write, &key)?;
    let places = write.inject.len();
    if places > MOST_INJECTIONS {
        return Err(limit(format!(
            "{key} is to have secret content at {places} places, but has {MOST_INJECTIONS} at most"
        )));
    }
    for injection in &write.inject {
        let (SecretContent::TargetDocument(on) | SecretContent::Kubeconfig(on)) = &injection.content;
        granted(grants.cluster(on))?;
    }
    Ok(())
}

/// What is laid over an object, or placed in it, makes no other object of it: it would be written unchecked (C-119).
fn check_stays_itself(write: &ObjectWrite, key: &ObjectKey) -> Result<(), Fault> {
    let changes =
        [("merged in at creation", &write.at_creation), ("laid over it before its deletion", &write.before_deletion)];
    for (when, change) in changes {
        if change.as_ref().is_some_and(|change| !stays_itself(key, change)) {
            return Err(invalid(format!(
                "{key} would be another object with what is {when}; leave apiVersion, kind, metadata.name and \
                 metadata.namespace out of that"
            )));
        }
    }
    match write.inject.iter().find(|injection| is_what_an_object_is_called_by(&injection.at)) {
        Some(Injection { at, .. }) => Err(invalid(format!(
            "{key} is to have secret content at {at:?}, where an object says what it is; place it in its data"
        ))),
        None => Ok(()),
    }
}

/// Whether an object of this key is still the same with a change laid over it.
fn stays_itself(key: &ObjectKey, change: &Value) -> bool {
    let mut identity = json!({"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}});
    if let Some(namespace) = &key.namespace {
        overlay(&mut identity, &json!({"metadata": {"namespace": namespace}}));
    }
    overlay(&mut identity, change);
    key_of(&identity).is_ok_and(|changed| changed == *key)
}

fn is_what_an_object_is_called_by(pointer: &str) -> bool {
    ["/apiVersion", "/kind", "/metadata"]
        .iter()
        .any(|place| pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn check_scope(scope: &ReadinessScope, on: &ClusterRef, grants: &Grants) -> Result<(), Fault> {
    match scope {
        ReadinessScope::Stage => Ok(()),
        ReadinessScope::Keys(keys) => keys.iter().try_for_each(|key| granted(grants.read(on, key))),
        ReadinessScope::Matching(selection) => granted(grants.list(on, selection)),
    }
}

fn check_rule(rule: &ReadinessRule, name: &str) -> Result<(), Fault> {
    match rule {
        ReadinessRule::Usual => Ok(()),
        ReadinessRule::Requirements(requirements) => requirements.iter().try_for_each(|requirement| {
            let message = |error| invalid(format!("readiness check {name}: {error}"));
            Demand::read(requirement).map(drop).map_err(message)
        }),
        ReadinessRule::Expression(source) => {
            ReadyExpression::read(source).map(drop).map_err(|error| invalid(format!("readiness check {name}: {error}")))
        }
    }
}

fn check_group(group: &DeletionGroup, grants: &Grants) -> Result<(), Fault> {
    group.what.iter().try_for_each(|scope| match scope {
        DeletionScope::Namespaced | DeletionScope::ClusterScoped | DeletionScope::CustomResourceDefinitions => Ok(()),
        DeletionScope::Managed(Selection { labels: None, fields: None, .. }) => Ok(()),
        DeletionScope::Managed(selection) => Err(invalid(format!(
            "a deletion group selects managed {} objects by labels or fields, which the inventory does not know; \
             select them by name and namespace",
            selection.kind
        ))),
        DeletionScope::Matching(selection) => granted(grants.delete_unmanaged(&group.on, selection)),
    })
}

fn path(text: &str) -> Result<(), Fault> {
    ParsedPath::parse(text).map(drop).map_err(|error| invalid(error.to_string()))
}

fn granted(answer: Result<(), Refusal>) -> Result<(), Fault> {
    answer.map_err(|refusal| Fault::denied(refusal.0))
}

fn invalid(message: String) -> Fault {
    Fault::Invalid(Problem { code: Code::ConfigurationProblem, message, at: None })
}

fn limit(message: String) -> Fault {
    Fault::Invalid(Problem { code: Code::LimitExceeded, message, at: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    mod faults;

    fn grants() -> Grants {
        serde_json::from_value(json!({
            "clusters": {"target": true},
            "reads": [{"kinds": ["ConfigMap"]}],
            "writes": [{"kinds": ["ConfigMap"], "namespaces": ["a"]}],
        }))
        .unwrap()
    }

    fn proposal(fields: Value) -> Proposal {
        let mut whole = json!({"stages": [], "next": {"finish": {}}});
        crate::overlay::overlay(&mut whole, &fields);
        serde_json::from_value(whole).unwrap()
    }

    fn stage(fields: Value) -> Value {
        let mut whole = json!({"name": "s", "gate": "accepted"});
        crate::overlay::overlay(&mut whole, &fields);
        whole
    }

    fn write(namespace: &str) -> Value {
        json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}},
            "how": "replace"})
    }

    #[track_caller]
    fn check_denied(fields: Value, missing: &str) {
        match check(&proposal(fields), &grants(), Bounds::default()) {
            Err(Fault::Denied(problem)) => assert!(problem.message.contains(missing), "{problem}"),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check_invalid(fields: Value, message: &str) {
        match check(&proposal(fields), &grants(), Bounds::default()) {
            Err(Fault::Invalid(problem)) => assert!(problem.message.contains(message), "{problem}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_granted_passes() {
        let fields = json!({
            "stages": [stage(json!({"writes": [write("a")], "gate": {"ready": [
                {"name": "r", "scope": "stage", "rule": "usual"}]}}))],
            "next": {"finish": {"exports": [{"key": "k", "source": {"path":
                {"key": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "b", "name": "y"}, "path": ".data.k"}}}]}},
            "deletionOrder": [{"what": ["namespaced"]}],
        });
        assert_eq!(check(&proposal(fields), &grants(), Bounds::default()), Ok(()));
    }

    #[test]
    fn writes_removals_reads_and_clusters_need_their_grants() {
        let key = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "b", "name": "x"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "x"});
        check_denied(json!({"stages": [stage(json!({"writes": [write("b")]}))]}), "`writes`");
        check_denied(json!({"stages": [stage(json!({"removals": [{"key": key}]}))]}), "`writes`");
        check_denied(json!({"stages": [stage(json!({"gate": {"completed": [secret]}}))]}), "`reads`");
        check_denied(
            json!({"stages": [stage(json!({"gate": {"ready": [
                {"name": "r", "scope": {"keys": [secret]}, "rule": "usual"}]}}))]}),
            "`reads`",
        );
        check_denied(
            json!({"stages": [stage(json!({"gate": {"ready": [{"name": "r", "rule": "usual",
                "scope": {"matching": {"apiVersion": "v1", "kind": "Secret"}}}]}}))]}),
            "`reads`",
        );
        check_denied(
            json!({"next": {"finish": {"exports": [{"key": "k", "source": {"path": {"key": secret, "path": "."}}}]}}}),
            "`reads`",
        );
        check_denied(json!({"next": {"finish": {"afterwards": [stage(json!({"writes": [write("b")]}))]}}}), "`writes`");
        let mut on_host = write("a");
        on_host["on"] = json!("host");
        check_denied(json!({"stages": [stage(json!({"writes": [on_host]}))]}), "clusters.host");
        let mut injected = write("a");
        injected["inject"] = json!([{"at": "/data/k", "content": {"kubeconfig": {"named": "other"}}}]);
        check_denied(json!({"stages": [stage(json!({"writes": [injected]}))]}), "clusters.named: [other]");
        check_denied(
            json!({"deletionOrder": [{"what": [{"matching": {"apiVersion": "v1", "kind": "ConfigMap"}}]}]}),
            "deleteUnmanaged",
        );
    }

    #[test]
    fn objects_need_a_kind_and_a_name() {
        let check_object = |object: Value, message: &str| {
            check_invalid(
                json!({"stages": [stage(json!({"writes": [{"object": object, "how": "create"}]}))]}),
                message,
            );
        };
        check_object(json!({"kind": "X", "metadata": {"name": "n"}}), "X n needs apiVersion");
        check_object(json!({"apiVersion": "v1", "metadata": {"name": "n"}}), "an object n needs kind");
        check_object(json!({"apiVersion": "v1", "kind": "X"}), "X without a name needs metadata.name");
        check_object(json!("text"), "an object without a name needs apiVersion");
        let named = |name: &str, namespace: &str| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": name, "namespace": namespace}});
        check_object(named("Not A Name", "a"), "X has metadata.name \"Not A Name\", which no object can have");
        check_object(named("a", "../b"), "X has metadata.namespace \"../b\", which no object can have");
    }

    #[test]
    fn what_can_never_be_judged_is_refused_before_anything_is_written() {
        let ready = |rule: Value| json!({"stages": [stage(json!({"gate": {"ready": [{"name": "mine", "scope": "stage", "rule": rule}]}}))]});
        check_invalid(ready(json!({"requirements": [{"path": ".a", "operator": "gt"}]})), "readiness check mine");
        check_invalid(
            ready(json!({"expression": "object.ok +"})),
            "readiness check mine: the expression cannot be used",
        );
        let key = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "b", "name": "x"});
        check_invalid(
            json!({"next": {"finish": {"exports": [{"key": "k", "source": {"path": {"key": key, "path": ".a["}}}]}}}),
            "is no JSONPath",
        );
        check_invalid(
            json!({"pruningOrder": [{"what": [{"managed": {"apiVersion": "v1", "kind": "ConfigMap", "labels": "a=b"}}]}]}),
            "by name and namespace",
        );
    }

    #[test]
    fn c_37_a_component_does_not_write_what_the_host_keeps() {
        for key in ["managedResources", "orangery"] {
            let message = format!("the provider status that is proposed has the key {key:?}");
            check_invalid(json!({"status": {"kind": "K", key: []}}), &message);
        }
        let own = proposal(json!({"status": {"kind": "K", "mine": {"orangery": 1}}}));
        assert_eq!(check(&own, &grants(), Bounds::default()), Ok(()));
    }

    #[test]
    fn counts_and_sizes_are_bounded() {
        let fields = json!({"stages": [stage(json!({"writes": [write("a"), write("a")]}))]});
        let checked =
            |bounds| check(&proposal(fields.clone()), &grants(), bounds).map_err(|fault| fault.problem().code.clone());
        assert_eq!(checked(Bounds { objects: 2, bytes: 1000 }), Ok(()));
        assert_eq!(checked(Bounds { objects: 1, bytes: 1000 }), Err(Code::LimitExceeded));
        assert_eq!(checked(Bounds { objects: 2, bytes: 100 }), Err(Code::LimitExceeded));
    }
}
