//! The words of proposals are those of the WIT, and what is left out of one has one meaning.

use std::collections::BTreeSet;

use super::*;

const PLAN: &str = include_str!("../../../../wit/deployer/0.1.0/plan.wit");
const TYPES: &str = include_str!("../../../../wit/deployer/0.1.0/types.wit");

/// Reads a short form, in which everything that has a default is left out.
#[track_caller]
fn short<T: DeserializeOwned + PartialEq + fmt::Debug>(text: Value, expected: &T) {
    assert_eq!(&serde_json::from_value::<T>(text).unwrap(), expected);
}

fn object_write() -> ObjectWrite {
    ObjectWrite {
        inject: vec![Injection { at: "/data/k".into(), content: SecretContent::Kubeconfig(ClusterRef::Host) }],
        on: ClusterRef::Named("t".into()),
        owned: Ownership::Kept,
        at_creation: Some(json!({"a": 1})),
        before_deletion: Some(json!({"b": 2})),
        ..ObjectWrite::new(json!({"kind": "Secret"}), Write::Apply)
    }
}

fn removal() -> ObjectRemoval {
    ObjectRemoval { key: key(None), on: ClusterRef::Host, force: true }
}

fn stage() -> Stage {
    Stage {
        name: "one".into(),
        removals: vec![removal()],
        writes: vec![object_write()],
        gate: Gate::Gone,
        timeout: Some(5),
    }
}

fn readiness() -> Readiness {
    Readiness {
        name: "up".into(),
        on: ClusterRef::Host,
        scope: ReadinessScope::Stage,
        rule: ReadinessRule::Usual,
        timeout: Some(7),
    }
}

fn path_source() -> PathSource {
    let then = Follow { api_version: "v1".into(), kind: "Secret".into(), path: "data.k".into() };
    PathSource { on: ClusterRef::Host, key: key(None), path: "spec.ref".into(), then: Some(then) }
}

fn export_rule() -> ExportRule {
    ExportRule { key: "a.b".into(), source: ExportSource::Value(json!([1])) }
}

fn group() -> DeletionGroup {
    DeletionGroup { on: ClusterRef::Host, what: vec![DeletionScope::Namespaced], force: true }
}

fn proposal() -> Proposal {
    Proposal {
        stages: vec![],
        next: Next::Finish(Completion::default()),
        recover: Some(vec![0, 255]),
        status: Some(json!({"s": 1})),
        deletion_order: vec![group()],
        pruning_order: vec![group()],
    }
}

#[test]
fn what_is_left_out_means_the_target_cluster_and_not_by_force() {
    short(json!({"key": key(None)}), &ObjectRemoval { key: key(None), on: ClusterRef::Target, force: false });
    short(
        json!({"name": "s", "gate": "accepted"}),
        &Stage { name: "s".into(), removals: vec![], writes: vec![], gate: Gate::Accepted, timeout: None },
    );
    short(json!({}), &Completion::default());
    short(json!({"what": []}), &DeletionGroup { on: ClusterRef::Target, what: vec![], force: false });
    short(
        json!({"path": "a", "operator": "exists"}),
        &Requirement { path: "a".into(), operator: "exists".into(), values: vec![] },
    );
    for (text, missing) in
        [(json!({"stages": []}), "missing field `next`"), (json!({"next": {"finish": {}}}), "missing field `stages`")]
    {
        assert_eq!(serde_json::from_value::<Proposal>(text).unwrap_err().to_string(), missing);
    }
}

/// The names of the fields or cases of a WIT type, in camel case.
fn wit(text: &str, declaration: &str) -> BTreeSet<String> {
    let start =
        text.find(&format!("{declaration} {{")).unwrap_or_else(|| panic!("{declaration} is no type of the WIT"));
    let body = text[start..].split_once('{').unwrap().1.split_once("\n    }").unwrap().0;
    body.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .map(|line| {
            let name = line.split([':', '(', ',']).next().unwrap();
            let mut words = name.split('-');
            let first = words.next().unwrap().to_owned();
            words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
        })
        .collect()
}

#[test]
fn the_fields_of_every_record_are_those_of_the_wit() {
    let requirement = Requirement { path: String::new(), operator: String::new(), values: vec![] };
    let problem = Problem { code: Code::Timeout, message: String::new(), at: Some(String::new()) };
    let source = path_source();
    for (text, record, value) in [
        (TYPES, "record object-key", json!(key(Some("a")))),
        (TYPES, "record selection", json!(selection())),
        (TYPES, "record problem", json!(problem)),
        (PLAN, "record injection", json!(object_write().inject[0])),
        (PLAN, "record object-write", json!(object_write())),
        (PLAN, "record object-removal", json!(removal())),
        (PLAN, "record requirement", json!(requirement)),
        (PLAN, "record readiness", json!(readiness())),
        (PLAN, "record stage", json!(stage())),
        (PLAN, "record follow", json!(source.then)),
        (PLAN, "record path-source", json!(source)),
        (PLAN, "record export-rule", json!(export_rule())),
        (PLAN, "record completion", json!(Completion::default())),
        (PLAN, "record deletion-group", json!(group())),
        (PLAN, "record proposal", json!(proposal())),
    ] {
        let fields: BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, wit(text, record), "{record}");
    }
}

/// The variants that serde knows, from its message on an unknown one.
fn variants<T: DeserializeOwned + fmt::Debug>() -> BTreeSet<String> {
    let message = serde_json::from_value::<T>(json!("no such variant")).unwrap_err().to_string();
    let (_, known) = message.split_once("expected").unwrap();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_cases_of_every_variant_are_those_of_the_wit() {
    assert_eq!(variants::<ClusterRef>(), wit(TYPES, "variant cluster-ref"));
    assert_eq!(variants::<Write>(), wit(PLAN, "variant write"));
    assert_eq!(variants::<Ownership>(), wit(PLAN, "enum ownership"));
    assert_eq!(variants::<SecretContent>(), wit(PLAN, "variant secret-content"));
    assert_eq!(variants::<ReadinessScope>(), wit(PLAN, "variant scope"));
    assert_eq!(variants::<ReadinessRule>(), wit(PLAN, "variant readiness-rule"));
    assert_eq!(variants::<Gate>(), wit(PLAN, "variant gate"));
    assert_eq!(variants::<ExportSource>(), wit(PLAN, "variant export-source"));
    assert_eq!(variants::<Next>(), wit(PLAN, "variant next"));
    assert_eq!(variants::<DeletionScope>(), wit(PLAN, "variant deletion-scope"));
}
