//! The words of the contract have one JSON form: what the SDK writes, the host's own types read, and the other way round.

use orangery_blueprint::rendering as host_template;
use orangery_proposal as host;
use orangery_sdk::{
    ClusterRef, Completion, DeletionGroup, DeletionScope, Execution, ExportRule, ExportSource, Fault, Follow, Gate,
    Injection, InputStep, Item, Next, ObjectKey, ObjectRemoval, ObjectWrite, Output, Ownership, PathSource, Problem,
    Proposal, Readiness, ReadinessRule, RenderFailure, RenderRequest, Rendered, Requirement, Scope, SecretContent,
    Selection, Stage, StageFailure, Write,
    cases::{PlanRequest, PlanResponse},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Takes a value of the SDK through the host's type and back.
#[track_caller]
fn check<Host: Serialize + DeserializeOwned, Guest: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    guest: &Guest,
) {
    let written = serde_json::to_value(guest).expect("the SDK writes its values as JSON");
    let host: Host = serde_json::from_value(written).expect("the host reads what the SDK writes");
    let written = serde_json::to_value(&host).expect("the host writes its values as JSON");
    let back: Guest = serde_json::from_value(written).expect("the SDK reads what the host writes");
    assert_eq!(&back, guest);
}

fn key() -> ObjectKey {
    ObjectKey {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("ns".into()),
        name: "d".into(),
    }
}

fn selection() -> Selection {
    Selection {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: None,
        names: vec!["a".into()],
        labels: Some("a=b".into()),
        fields: Some("spec.nodeName=n".into()),
    }
}

fn problem() -> Problem {
    Problem { code: "ERR_CONFIGURATION_PROBLEM".into(), message: "no".into(), at: Some("/a".into()) }
}

fn write(how: Write, owned: Ownership) -> ObjectWrite {
    ObjectWrite {
        inject: vec![
            Injection { at: "/data/a".into(), content: SecretContent::Kubeconfig(ClusterRef::Target) },
            Injection { at: "/data/b".into(), content: SecretContent::TargetDocument(ClusterRef::Host) },
        ],
        on: ClusterRef::Named("other".into()),
        owned,
        at_creation: Some(json!({"metadata": {}}).to_string()),
        before_deletion: Some(json!({"data": {}}).to_string()),
        ..ObjectWrite::new(&json!({"kind": "ConfigMap"}), how)
    }
}

fn writes() -> Vec<ObjectWrite> {
    vec![
        write(Write::Apply, Ownership::Managed),
        write(Write::Replace, Ownership::Fallback),
        write(Write::Patch, Ownership::Kept),
        write(Write::Merge(json!({"earlier": 1}).to_string()), Ownership::Ephemeral),
        write(Write::Fill, Ownership::Managed),
        write(Write::Overlay, Ownership::Managed),
        write(Write::Create, Ownership::Managed),
    ]
}

fn checks() -> Vec<Readiness> {
    let requirement = Requirement { path: ".a".into(), operator: "in".into(), values: vec!["1".into(), "null".into()] };
    let check = |scope, rule| Readiness { name: "r".into(), on: ClusterRef::Host, scope, rule, timeout: Some(5) };
    vec![
        check(Scope::Stage, ReadinessRule::Usual),
        check(Scope::Keys(vec![key()]), ReadinessRule::Requirements(vec![requirement])),
        check(Scope::Matching(selection()), ReadinessRule::Expression("object.spec".into())),
    ]
}

fn stages() -> Vec<Stage> {
    let gates = [Gate::Accepted, Gate::Ready(checks()), Gate::Completed(vec![key()]), Gate::Gone];
    let stage = |gate| Stage {
        name: "s".into(),
        removals: vec![ObjectRemoval { key: key(), on: ClusterRef::Target, force: true }],
        writes: writes(),
        gate,
        timeout: Some(7),
    };
    gates.map(stage).into()
}

fn completion() -> Completion {
    let then = Some(Follow { api_version: "v1".into(), kind: "Secret".into(), path: ".data".into() });
    let path = PathSource { on: ClusterRef::Target, key: key(), path: ".status".into(), then };
    Completion {
        exports: vec![
            ExportRule { key: "a.b".into(), source: ExportSource::Value(json!({"x": [1]}).to_string()) },
            ExportRule { key: String::new(), source: ExportSource::Path(path) },
        ],
        afterwards: stages(),
    }
}

fn groups() -> Vec<DeletionGroup> {
    let what = vec![
        DeletionScope::Namespaced,
        DeletionScope::ClusterScoped,
        DeletionScope::CustomResourceDefinitions,
        DeletionScope::Managed(selection()),
        DeletionScope::Matching(selection()),
    ];
    vec![DeletionGroup { on: ClusterRef::Named("other".into()), what, force: true }]
}

#[test]
fn a_proposal_has_one_form_on_both_sides() {
    let nexts = [
        Next::Finish(completion()),
        Next::Fail(problem()),
        Next::ContinueWith(vec![0, 255]),
        Next::AgainIn((5000, vec![1, 2])),
    ];
    for next in nexts {
        check::<host::Proposal, _>(&Proposal {
            stages: stages(),
            next,
            recover: Some(vec![3]),
            status: Some(json!({"kind": "ProviderStatus"}).to_string()),
            deletion_order: groups(),
            pruning_order: groups(),
        });
    }
    check::<host::Proposal, _>(&Proposal::finish(Vec::new(), Completion::default()));
}

#[test]
fn an_item_has_one_form_on_both_sides() {
    check::<host::Item, _>(&Item {
        namespace: "ns".into(),
        name: "i".into(),
        uid: "u".into(),
        item_type: "example.org/mine".into(),
        generation: 3,
        context: "default".into(),
        target: Some("cluster".into()),
        job: "j".into(),
        config: json!({"a": {"b": [null, 1.5, "c"]}}).to_string(),
        annotations: vec![("a".into(), "b".into()), ("c".into(), String::new())],
        configuration: Some(json!({"c": 3}).to_string()),
        status: Some(json!({"s": 1}).to_string()),
        checkpoint: Some(vec![0, 1]),
        failed: Some(StageFailure { stage: "s".into(), key: Some(key()), problem: problem() }),
        now: "2026-11-21T02:10:49Z".into(),
        seed: u64::MAX,
        timeout: u64::MAX,
    });
}

#[test]
fn a_rendering_has_one_form_on_both_sides() {
    let kinds = [
        Execution::Import,
        Execution::Deploy,
        Execution::Subinstallation,
        Execution::Export,
        Execution::ImportMapping,
        Execution::ExportMapping,
    ];
    for execution in kinds {
        check::<host_template::RenderRequest, _>(&RenderRequest {
            execution,
            name: "default".into(),
            file: Some("a.yaml".into()),
            template: "x".into(),
            inputs: json!({"imports": {}}).to_string(),
            state: Some("{}".into()),
        });
    }
    for output in [Output::Text("a: 1".into()), Output::Document(json!({"a": 1}).to_string())] {
        check::<host_template::Rendered, _>(&Rendered { output, state: Some("1".into()), warnings: vec!["w".into()] });
    }
    check::<host_template::RenderFailure, _>(&RenderFailure {
        message: "no".into(),
        file: Some("a.yaml".into()),
        line: Some(1),
        column: Some(2),
        snippet: Some(">".into()),
        reads: vec![vec![InputStep::field("imports"), InputStep::Items, InputStep::Entries], vec![]],
    });
}

#[test]
fn c_250_a_recorded_call_has_one_form_on_both_sides() {
    let key = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a"});
    let request = json!({
        "call": "uninstall",
        "item": {
            "namespace": "ns", "name": "i", "uid": "u", "itemType": "t", "generation": 3, "context": "c", "job": "j",
            "config": {}, "now": "", "seed": 1, "timeout": 1,
        },
        "reads": [
            {"read": {"get": {"on": "host", "key": key}}, "answer": {}},
            {"read": {"list": {"what": {"apiVersion": "v1", "kind": "Pod"}}}, "answer": []},
            {"read": {"version": {}}, "answer": null, "fault": {"denied": {"code": "ERR_FORBIDDEN", "message": "no"}}},
            {"read": {"discover": {}}, "answer": []},
        ],
        "artifacts": [
            {"source": {"oci": "r/a"}, "digest": "sha256:0", "mediaType": "m", "file": "a"},
            {"source": {"url": "https://a"}, "digest": "sha256:0", "mediaType": "m", "file": "a"},
            {"source": {"helmRepository": {"url": "u", "chart": "c", "version": "v"}}, "digest": "", "mediaType": "", "file": ""},
            {"source": {"componentResource": "k"}, "digest": "", "mediaType": "", "file": ""},
            {"source": {"componentDescriptors": {"ref": {}}}, "digest": "", "mediaType": "", "file": ""},
        ],
    });
    let guest: PlanRequest = serde_json::from_value(request.clone()).expect("the SDK reads it");
    let read: host::recorded::RecordedRequest = serde_json::from_value(request).expect("the host reads it");
    assert_eq!(serde_json::to_value(&guest).unwrap(), serde_json::to_value(&read).unwrap());
    for fault in [Fault::Invalid(problem()), Fault::Later(problem()), Fault::Denied(problem())] {
        check::<host::recorded::RecordedAnswer, _>(&PlanResponse::Fault(fault));
    }
    check::<host::recorded::RecordedAnswer, _>(&PlanResponse::Proposal(Proposal::finish(stages(), completion())));
}

#[test]
fn what_is_left_out_is_what_the_host_takes_it_for() {
    let value: Value = serde_json::to_value(ObjectWrite::apply(&json!({"kind": "ConfigMap"}))).unwrap();
    assert_eq!(value, json!({"object": {"kind": "ConfigMap"}, "how": "apply"}));
    let write: host::ObjectWrite = serde_json::from_value(value).unwrap();
    assert_eq!((write.on, write.owned), (host::ClusterRef::Target, host::Ownership::Managed));
}
