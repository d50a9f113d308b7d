//! What guests answer: a proposal, or rendered text. Nothing of it is believed before it is checked.

use orangery_blueprint::{
    gate::GateResult,
    rendering::{Output, Rendered},
};
use orangery_core::{name::Namespace, workflow::Answer};
use orangery_proposal::{
    Completion, DeletionGroup, DeletionScope, ExportRule, ExportSource, Follow, Gate, Injection, Next, ObjectKey,
    ObjectRemoval, ObjectWrite, Ownership, PathSource, Proposal, Readiness, ReadinessRule, ReadinessScope, Requirement,
    SecretContent, Selection, Stage, Write,
};
use serde_json::Value;

use super::{
    cluster_ref,
    place::{Allowance, AnswerPosition},
    problem,
};
use crate::{
    bindings::{
        deployer::orangery::deployer::{plan, types},
        gate::exports::orangery::gate::gate,
        template::exports::orangery::template::template,
    },
    budget::Budget,
    error::Error,
    transcript::Transcript,
};

/// A deployer's answer, checked: objects are objects with a kind and a name, names are not empty, JSON parses, the whole is
/// within the budget.
pub(crate) fn proposal(of: plan::Proposal, budget: &Budget) -> Result<Proposal, Error> {
    let allowance = Allowance::new(budget);
    let root = &AnswerPosition::root("", &allowance);
    let plan::Proposal { stages, next: then, recover, status, deletion_order, pruning_order } = of;
    Ok(Proposal {
        stages: root.each("stages", stages, stage)?,
        next: next(&root.field("next"), then)?,
        recover: recover.map(|checkpoint| root.field("recover").bytes(checkpoint)).transpose()?,
        status: root.field("status").optional_json(status.as_deref())?,
        deletion_order: root.each("deletion-order", deletion_order, deletion_group)?,
        pruning_order: root.each("pruning-order", pruning_order, deletion_group)?,
    })
}

/// The longest warning of an engine.
const MOST_WARNING: usize = 1 << 10;

/// An engine's answer, checked.
pub(crate) fn rendered(of: template::Rendered, budget: &Budget, transcript: &Transcript) -> Result<Rendered, Error> {
    let allowance = Allowance::new(budget);
    let root = &AnswerPosition::root("", &allowance);
    let template::Rendered { output, state, warnings } = of;
    let place = root.field("output");
    Ok(Rendered {
        output: match output {
            template::Output::Text(text) => {
                place.spend(text.len())?;
                Output::Text(text)
            }
            template::Output::Document(text) => Output::Document(place.json(&text)?),
        },
        state: root.field("state").optional_json(state.as_deref())?,
        warnings: root.each("warnings", warnings, |at, warning| {
            at.spend(warning.len())?;
            Ok(transcript.message_of(&warning, MOST_WARNING))
        })?,
    })
}

/// The longest reason of a gate expression.
const MOST_REASON: usize = 64;

/// The longest sentence of a gate expression.
const MOST_MESSAGE: usize = 1 << 10;

/// The longest details of a gate expression.
const MOST_DETAILS: usize = 4 << 10;

/// A gate expression's answer, checked: it is shown in a status.
pub(crate) fn answered(of: gate::Answer, budget: &Budget, transcript: &Transcript) -> Result<GateResult, Error> {
    let allowance = Allowance::new(budget);
    let root = &AnswerPosition::root("", &allowance);
    let gate::Answer { verdict, reason, message, details } = of;
    let word = |c: char| c.is_ascii_alphanumeric();
    if reason.is_empty() || reason.len() > MOST_REASON || !reason.chars().all(word) {
        return Err(root.field("reason").nonsense(format!("is no CamelCase word of at most {MOST_REASON} letters")));
    }
    if details.as_ref().is_some_and(|details| details.len() > MOST_DETAILS) {
        return Err(root.field("details").nonsense(format!("has more than {MOST_DETAILS} bytes")));
    }
    let answer = match verdict {
        gate::Verdict::Met => Answer::Met,
        gate::Verdict::NotMet => Answer::NotMet,
        gate::Verdict::Unknown => Answer::Unknown,
    };
    let details = root.field("details").optional_json(details.as_deref())?;
    Ok(GateResult { answer, reason, message: transcript.message_of(&message, MOST_MESSAGE), details })
}

fn stage(at: &AnswerPosition<'_>, of: plan::Stage) -> Result<Stage, Error> {
    let plan::Stage { name, removals, writes, gate: then, timeout } = of;
    Ok(Stage {
        name: at.field("name").name(name)?,
        removals: at.each("removals", removals, removal)?,
        writes: at.each("writes", writes, write)?,
        gate: gate(&at.field("gate"), then)?,
        timeout,
    })
}

fn removal(at: &AnswerPosition<'_>, of: plan::ObjectRemoval) -> Result<ObjectRemoval, Error> {
    Ok(ObjectRemoval { key: key(&at.field("key"), of.key)?, on: cluster_ref(of.on), force: of.force })
}

fn write(at: &AnswerPosition<'_>, of: plan::ObjectWrite) -> Result<ObjectWrite, Error> {
    let plan::ObjectWrite { object, inject, on, how, owned, at_creation, before_deletion } = of;
    let place = at.field("object");
    let object = place.json(&object)?;
    check_object(&place, &object)?;
    Ok(ObjectWrite {
        object,
        inject: at.each("inject", inject, injection)?,
        on: cluster_ref(on),
        how: match how {
            plan::Write::Apply => Write::Apply,
            plan::Write::Replace => Write::Replace,
            plan::Write::Patch => Write::Patch,
            plan::Write::Merge(earlier) => Write::Merge(at.field("how").json(&earlier)?),
            plan::Write::Fill => Write::Fill,
            plan::Write::Overlay => Write::Overlay,
            plan::Write::Create => Write::Create,
            plan::Write::ApplyAs(manager) => Write::ApplyAs(manager),
        },
        owned: match owned {
            plan::Ownership::Managed => Ownership::Managed,
            plan::Ownership::Fallback => Ownership::Fallback,
            plan::Ownership::Kept => Ownership::Kept,
            plan::Ownership::Ephemeral => Ownership::Ephemeral,
        },
        at_creation: at.field("at-creation").optional_json(at_creation.as_deref())?,
        before_deletion: at.field("before-deletion").optional_json(before_deletion.as_deref())?,
    })
}

pub(super) fn check_object(at: &AnswerPosition<'_>, object: &Value) -> Result<(), Error> {
    if !object.is_object() {
        return Err(at.nonsense("is not a JSON object"));
    }
    for (pointer, name) in [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")] {
        if object.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(at.nonsense(format!("has no {name}")));
        }
    }
    Ok(())
}

fn injection(at: &AnswerPosition<'_>, of: plan::Injection) -> Result<Injection, Error> {
    if !of.at.starts_with('/') {
        return Err(at.field("at").nonsense("is not a JSON pointer"));
    }
    Ok(Injection {
        at: of.at,
        content: match of.content {
            plan::SecretContent::TargetDocument(on) => SecretContent::TargetDocument(cluster_ref(on)),
            plan::SecretContent::Kubeconfig(on) => SecretContent::Kubeconfig(cluster_ref(on)),
        },
    })
}

fn gate(at: &AnswerPosition<'_>, of: plan::Gate) -> Result<Gate, Error> {
    Ok(match of {
        plan::Gate::Accepted => Gate::Accepted,
        plan::Gate::Ready(checks) => Gate::Ready(at.each("ready", checks, readiness)?),
        plan::Gate::Completed(keys) => Gate::Completed(at.each("completed", keys, key)?),
        plan::Gate::Gone => Gate::Gone,
    })
}

fn readiness(at: &AnswerPosition<'_>, of: plan::Readiness) -> Result<Readiness, Error> {
    let plan::Readiness { name, on, scope, rule, timeout } = of;
    Ok(Readiness {
        name,
        on: cluster_ref(on),
        scope: match scope {
            plan::Scope::Stage => ReadinessScope::Stage,
            plan::Scope::Keys(keys) => ReadinessScope::Keys(at.each("scope", keys, key)?),
            plan::Scope::Matching(what) => ReadinessScope::Matching(selection(&at.field("scope"), what)?),
        },
        rule: match rule {
            plan::ReadinessRule::Usual => ReadinessRule::Usual,
            plan::ReadinessRule::Requirements(all) => ReadinessRule::Requirements(at.each("rule", all, requirement)?),
            plan::ReadinessRule::Expression(text) => ReadinessRule::Expression(at.field("rule").name(text)?),
        },
        timeout,
    })
}

fn requirement(at: &AnswerPosition<'_>, of: plan::Requirement) -> Result<Requirement, Error> {
    let plan::Requirement { path, operator, values } = of;
    Ok(Requirement { path, operator, values: at.each("values", values, |at, value| at.json(&value))? })
}

fn next(at: &AnswerPosition<'_>, of: plan::Next) -> Result<Next, Error> {
    Ok(match of {
        plan::Next::Finish(plan::Completion { exports, afterwards }) => Next::Finish(Completion {
            exports: at.each("exports", exports, export)?,
            afterwards: at.each("afterwards", afterwards, stage)?,
        }),
        plan::Next::Fail(of) => Next::Fail(problem(of)),
        plan::Next::ContinueWith(checkpoint) => Next::ContinueWith(at.bytes(checkpoint)?),
        plan::Next::AgainIn((after, checkpoint)) => Next::AgainIn { after, checkpoint: at.bytes(checkpoint)? },
    })
}

fn export(at: &AnswerPosition<'_>, of: plan::ExportRule) -> Result<ExportRule, Error> {
    let place = at.field("source");
    let source = match of.source {
        plan::ExportSource::Value(value) => ExportSource::Value(place.json(&value)?),
        plan::ExportSource::Path(plan::PathSource { on, key: of, path, then }) => ExportSource::Path(PathSource {
            on: cluster_ref(on),
            key: key(&place.field("key"), of)?,
            path: place.field("path").name(path)?,
            then: then.map(|plan::Follow { api_version, kind, path }| Follow {
                api_version: api_version.into(),
                kind: kind.into(),
                path,
            }),
        }),
    };
    Ok(ExportRule { key: of.key, source })
}

fn deletion_group(at: &AnswerPosition<'_>, of: plan::DeletionGroup) -> Result<DeletionGroup, Error> {
    let plan::DeletionGroup { on, what, force } = of;
    let what = at.each("what", what, |at, scope| {
        Ok(match scope {
            plan::DeletionScope::Namespaced => DeletionScope::Namespaced,
            plan::DeletionScope::ClusterScoped => DeletionScope::ClusterScoped,
            plan::DeletionScope::CustomResourceDefinitions => DeletionScope::CustomResourceDefinitions,
            plan::DeletionScope::Managed(what) => DeletionScope::Managed(selection(at, what)?),
            plan::DeletionScope::Matching(what) => DeletionScope::Matching(selection(at, what)?),
        })
    })?;
    Ok(DeletionGroup { on: cluster_ref(on), what, force })
}

fn key(at: &AnswerPosition<'_>, of: types::ObjectKey) -> Result<ObjectKey, Error> {
    let types::ObjectKey { api_version, kind, namespace, name } = of;
    Ok(ObjectKey {
        api_version: at.field("api-version").name(api_version)?.into(),
        kind: at.field("kind").name(kind)?.into(),
        namespace: namespace.map(|namespace| at.field("namespace").name(namespace)).transpose()?.map(Namespace::from),
        name: at.field("name").name(name)?.into(),
    })
}

fn selection(at: &AnswerPosition<'_>, of: types::Selection) -> Result<Selection, Error> {
    Ok(super::selection(types::Selection {
        api_version: at.field("api-version").name(of.api_version)?,
        kind: at.field("kind").name(of.kind)?,
        ..of
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write_of(object: &str) -> plan::ObjectWrite {
        plan::ObjectWrite {
            object: object.to_owned(),
            inject: vec![],
            on: types::ClusterRef::Target,
            how: plan::Write::Apply,
            owned: plan::Ownership::Managed,
            at_creation: None,
            before_deletion: None,
        }
    }

    fn proposal_of(writes: Vec<plan::ObjectWrite>, gate: plan::Gate) -> plan::Proposal {
        plan::Proposal {
            stages: vec![plan::Stage { name: "one".into(), removals: vec![], writes, gate, timeout: None }],
            next: plan::Next::Finish(plan::Completion { exports: vec![], afterwards: vec![] }),
            recover: None,
            status: None,
            deletion_order: vec![],
            pruning_order: vec![],
        }
    }

    const OBJECT: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;

    #[track_caller]
    fn check(of: plan::Proposal, message: &str) {
        assert_eq!(proposal(of, &Budget::default()).unwrap_err().to_string(), message);
    }

    #[test]
    fn limits_json_an_answer_is_counted_by_the_memory_of_its_values() {
        let budget = Budget { output_bytes: 1 << 20, ..Budget::default() };
        let bomb = format!("[{}0]", "{\"\":0},".repeat(140_000));
        assert!(bomb.len() < 1 << 20, "its text is within the budget");
        let status = |text: &str| {
            let gate = plan::Gate::Accepted;
            proposal(plan::Proposal { status: Some(text.to_owned()), ..proposal_of(vec![], gate) }, &budget)
        };
        assert_eq!(
            status(&bomb).unwrap_err().to_string(),
            "the component's answer makes no sense: status has so many small values that the answer takes more than the 16777216 bytes of \
             memory that are allowed, 16 for each of outputBytes; answer fewer, or have an administrator raise `limits.outputBytes` of its registration, or of its Plugin"
        );
        let labels: serde_json::Map<String, Value> =
            (0..5_000).map(|at| (format!("example.org/label-{at}"), json!("the value of a label"))).collect();
        assert!(status(&Value::Object(labels).to_string()).is_ok());
    }

    #[test]
    fn limits_json_an_argument_of_a_host_call_is_counted_in_the_same_way() {
        let bomb = format!("[{}0]", "{\"\":0},".repeat(100_000));
        let expected = "takes more than the 33554432 bytes of memory that are allowed; hand in less";
        assert_eq!(super::super::argument(&bomb), Err(expected.to_owned()));
        assert_eq!(super::super::argument("[1]"), Ok(json!([1])));
    }

    #[test]
    fn a_proposal_is_taken_over_whole() {
        let expected = Proposal {
            stages: vec![Stage {
                name: "one".into(),
                removals: vec![],
                writes: vec![ObjectWrite::new(
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
                    Write::Apply,
                )],
                gate: Gate::Accepted,
                timeout: None,
            }],
            next: Next::Finish(Completion::default()),
            recover: None,
            status: None,
            deletion_order: vec![],
            pruning_order: vec![],
        };
        let of = proposal_of(vec![write_of(OBJECT)], plan::Gate::Accepted);
        assert_eq!(proposal(of, &Budget::default()).unwrap(), expected);
    }

    #[test]
    fn nonsense_is_named_with_its_place() {
        check(
            proposal_of(vec![write_of(OBJECT), write_of("{")], plan::Gate::Accepted),
            "the component's answer makes no sense: stages[0].writes[1].object is not JSON: EOF while parsing an object at line 1 column 1",
        );
        check(
            proposal_of(vec![write_of("[]")], plan::Gate::Accepted),
            "the component's answer makes no sense: stages[0].writes[0].object is not a JSON object",
        );
        check(
            proposal_of(
                vec![write_of(r#"{"apiVersion":"v1","kind":"A","metadata":{"name":""}}"#)],
                plan::Gate::Accepted,
            ),
            "the component's answer makes no sense: stages[0].writes[0].object has no metadata.name",
        );
        let nobody =
            types::ObjectKey { api_version: "v1".into(), kind: String::new(), namespace: None, name: "a".into() };
        check(
            proposal_of(vec![], plan::Gate::Completed(vec![nobody])),
            "the component's answer makes no sense: stages[0].gate.completed[0].kind is empty",
        );
        let deep = "[".repeat(200) + &"]".repeat(200);
        check(
            plan::Proposal { status: Some(deep), ..proposal_of(vec![], plan::Gate::Gone) },
            "the component's answer makes no sense: status is not JSON: recursion limit exceeded at line 1 column 128",
        );
    }

    #[test]
    fn an_answer_is_counted_as_a_whole() {
        let of = || plan::Proposal {
            recover: Some(vec![0; 40]),
            status: Some("\"0123456789\"".into()),
            ..proposal_of(vec![], plan::Gate::Gone)
        };
        let budget = |output_bytes| Budget { output_bytes, ..Budget::default() };
        assert!(proposal(of(), &budget(55)).is_ok());
        assert_eq!(
            proposal(of(), &budget(54)).unwrap_err().to_string(),
            "the call was stopped: it needs more than 54 bytes of output; have an administrator raise `limits.outputBytes` of its registration, or of its Plugin, if that is meant to be"
        );
    }

    #[test]
    fn limits_components_warnings_and_answers_of_gate_expressions_are_cut_or_refused() {
        let budget = Budget::default();
        let transcript = Transcript::new("test".into(), &budget);
        let cut = |most: usize| format!("{}…", "a".repeat(most));
        let warned = template::Rendered {
            output: template::Output::Text(String::new()),
            state: None,
            warnings: vec!["a".repeat(MOST_WARNING), "a".repeat(MOST_WARNING + 1)],
        };
        let warnings = rendered(warned, &budget, &transcript).unwrap().warnings;
        assert_eq!(warnings, ["a".repeat(MOST_WARNING), cut(MOST_WARNING)]);

        let answer = |reason: usize, message: usize, details: usize| {
            let (reason, message) = ("a".repeat(reason), "a".repeat(message));
            let details = Some(format!("\"{}\"", "a".repeat(details - 2)));
            let answer = gate::Answer { verdict: gate::Verdict::Met, reason, message, details };
            answered(answer, &budget, &transcript).map(|result| result.message).map_err(|error| error.to_string())
        };
        assert_eq!(answer(MOST_REASON, MOST_MESSAGE, MOST_DETAILS), Ok("a".repeat(MOST_MESSAGE)));
        assert_eq!(answer(MOST_REASON, MOST_MESSAGE + 1, MOST_DETAILS), Ok(cut(MOST_MESSAGE)));
        let sense = "the component's answer makes no sense:";
        let reason = format!("{sense} reason is no CamelCase word of at most 64 letters");
        assert_eq!(answer(MOST_REASON + 1, 1, 2), Err(reason));
        assert_eq!(answer(1, 1, MOST_DETAILS + 1), Err(format!("{sense} details has more than 4096 bytes")));
    }
}
