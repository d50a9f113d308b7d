//! The wire form of proposals: what is kept in Secrets by one version is read by the next, and the golden cases of the
//! components speak it too.

mod words;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use orangery_core::error::Code;

/// The value reads from this JSON and is written as it.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(value: T, wire: Value) {
    assert_eq!(serde_json::to_value(&value).unwrap(), wire);
    assert_eq!(serde_json::from_value::<T>(wire).unwrap(), value);
}

fn key(namespace: Option<&str>) -> ObjectKey {
    ObjectKey {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: namespace.map(Into::into),
        name: "x".into(),
    }
}

fn selection() -> Selection {
    Selection {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some("a".into()),
        names: vec!["p".into()],
        labels: Some("app=x".into()),
        fields: Some("status.phase=Running".into()),
    }
}

#[test]
fn keys_know_their_group_and_version() {
    assert_eq!((key(None).group().to_owned(), key(None).version().to_owned()), ("apps".into(), "v1".into()));
    let core = ObjectKey { api_version: "v1".into(), ..key(Some("a")) };
    assert_eq!((core.group(), core.version()), ("", "v1"));
    assert_eq!((key(None).to_string(), key(Some("a")).to_string()), ("Deployment x".into(), "Deployment a/x".into()));
}

#[test]
fn keys_and_selections() {
    check(key(None), json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}));
    check(key(Some("a")), json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "a", "name": "x"}));
    check(
        selection(),
        json!({"apiVersion": "v1", "kind": "Pod", "namespace": "a", "names": ["p"], "labels": "app=x",
            "fields": "status.phase=Running"}),
    );
    let all = Selection { namespace: None, names: vec![], labels: None, fields: None, ..selection() };
    check(all, json!({"apiVersion": "v1", "kind": "Pod"}));
}

#[test]
fn clusters_are_named_in_messages_and_on_the_wire() {
    check(ClusterRef::Target, json!("target"));
    check(ClusterRef::Host, json!("host"));
    check(ClusterRef::Named("n".into()), json!({"named": "n"}));
    let text: Vec<String> =
        [ClusterRef::Target, ClusterRef::Host, ClusterRef::Named("n".into())].iter().map(ToString::to_string).collect();
    assert_eq!(text, ["the target cluster", "the host cluster", "the cluster of target n"]);
}

#[test]
fn every_way_of_writing() {
    for (how, wire) in [
        (Write::Apply, json!("apply")),
        (Write::Replace, json!("replace")),
        (Write::Patch, json!("patch")),
        (Write::Merge(json!({"k": 1})), json!({"merge": {"k": 1}})),
        (Write::Fill, json!("fill")),
        (Write::Overlay, json!("overlay")),
        (Write::Create, json!("create")),
        (Write::ApplyAs("helm".into()), json!({"applyAs": "helm"})),
    ] {
        check(how, wire);
    }
    for (owned, wire) in [
        (Ownership::Managed, "managed"),
        (Ownership::Fallback, "fallback"),
        (Ownership::Kept, "kept"),
        (Ownership::Ephemeral, "ephemeral"),
    ] {
        check(owned, json!(wire));
    }
}

#[test]
fn a_write_leaves_out_what_it_does_not_say() {
    let plain = ObjectWrite::new(json!({"kind": "X"}), Write::Apply);
    check(plain.clone(), json!({"object": {"kind": "X"}, "on": "target", "how": "apply", "owned": "managed"}));
    let short: ObjectWrite = serde_json::from_value(json!({"object": {"kind": "X"}, "how": "apply"})).unwrap();
    assert_eq!(short, plain);
    let full = ObjectWrite {
        inject: vec![
            Injection { at: "/data/k".into(), content: SecretContent::Kubeconfig(ClusterRef::Target) },
            Injection { at: "/data/t".into(), content: SecretContent::TargetDocument(ClusterRef::Host) },
        ],
        at_creation: Some(json!({"a": 1})),
        before_deletion: Some(json!({"b": 2})),
        ..plain
    };
    check(
        full,
        json!({"object": {"kind": "X"}, "on": "target", "how": "apply", "owned": "managed",
            "inject": [{"at": "/data/k", "content": {"kubeconfig": "target"}},
                {"at": "/data/t", "content": {"targetDocument": "host"}}],
            "atCreation": {"a": 1}, "beforeDeletion": {"b": 2}}),
    );
}

#[test]
fn every_gate() {
    check(Gate::Accepted, json!("accepted"));
    check(Gate::Gone, json!("gone"));
    check(Gate::Completed(vec![]), json!({"completed": []}));
    let readiness = |scope, rule| Readiness { name: "r".into(), on: ClusterRef::Target, scope, rule, timeout: Some(5) };
    let requirement = Requirement { path: ".a".into(), operator: "in".into(), values: vec![json!(1)] };
    check(
        Gate::Ready(vec![
            readiness(ReadinessScope::Stage, ReadinessRule::Usual),
            readiness(ReadinessScope::Keys(vec![]), ReadinessRule::Requirements(vec![requirement])),
            readiness(
                ReadinessScope::Matching(Selection {
                    namespace: None,
                    names: vec![],
                    labels: None,
                    fields: None,
                    ..selection()
                }),
                ReadinessRule::Expression("object.ok".into()),
            ),
        ]),
        json!({"ready": [
            {"name": "r", "on": "target", "scope": "stage", "rule": "usual", "timeout": 5},
            {"name": "r", "on": "target", "scope": {"keys": []}, "timeout": 5,
                "rule": {"requirements": [{"path": ".a", "operator": "in", "values": [1]}]}},
            {"name": "r", "on": "target", "scope": {"matching": {"apiVersion": "v1", "kind": "Pod"}}, "timeout": 5,
                "rule": {"expression": "object.ok"}},
        ]}),
    );
}

#[test]
fn every_end() {
    check(Next::ContinueWith(vec![1, 2]), json!({"continueWith": [1, 2]}));
    check(Next::AgainIn { after: 5, checkpoint: vec![1] }, json!({"againIn": {"after": 5, "checkpoint": [1]}}));
    let problem = Problem { code: Code::Timeout, message: "m".into(), at: Some("/a".into()) };
    check(Next::Fail(problem), json!({"fail": {"code": "ERR_TIMEOUT", "message": "m", "at": "/a"}}));
    let follow = Follow { api_version: "v1".into(), kind: "Secret".into(), path: ".data".into() };
    let source = PathSource { on: ClusterRef::Target, key: key(None), path: ".a".into(), then: Some(follow) };
    let exports = vec![
        ExportRule { key: "v".into(), source: ExportSource::Value(json!(1)) },
        ExportRule { key: "p".into(), source: ExportSource::Path(source) },
    ];
    check(
        Next::Finish(Completion { exports, afterwards: vec![] }),
        json!({"finish": {"afterwards": [], "exports": [{"key": "v", "source": {"value": 1}},
            {"key": "p", "source": {"path": {"on": "target", "path": ".a",
                "key": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "then": {"apiVersion": "v1", "kind": "Secret", "path": ".data"}}}}]}}),
    );
}

#[test]
fn every_part_of_an_order() {
    let scopes = vec![
        DeletionScope::Namespaced,
        DeletionScope::ClusterScoped,
        DeletionScope::CustomResourceDefinitions,
        DeletionScope::Managed(Selection { labels: None, fields: None, ..selection() }),
        DeletionScope::Matching(Selection { names: vec![], labels: None, fields: None, ..selection() }),
    ];
    check(
        DeletionGroup { on: ClusterRef::Named("n".into()), what: scopes, force: true },
        json!({"on": {"named": "n"}, "force": true, "what": ["namespaced", "clusterScoped", "customResourceDefinitions",
            {"managed": {"apiVersion": "v1", "kind": "Pod", "namespace": "a", "names": ["p"]}},
            {"matching": {"apiVersion": "v1", "kind": "Pod", "namespace": "a"}}]}),
    );
    let order: Vec<Vec<DeletionScope>> = default_deletion_order().into_iter().map(|group| group.what).collect();
    assert_eq!(
        order,
        [[DeletionScope::Namespaced], [DeletionScope::ClusterScoped], [DeletionScope::CustomResourceDefinitions]]
    );
}

#[test]
fn a_whole_proposal() {
    let stage = Stage {
        name: "s".into(),
        removals: vec![ObjectRemoval { key: key(None), on: ClusterRef::Target, force: true }],
        writes: vec![],
        gate: Gate::Accepted,
        timeout: Some(1),
    };
    let proposal = Proposal {
        stages: vec![stage],
        next: Next::Finish(Completion::default()),
        recover: Some(vec![7]),
        status: Some(json!({"kind": "Status"})),
        deletion_order: default_deletion_order(),
        pruning_order: vec![],
    };
    let group = |scope: &str| json!({"on": "target", "what": [scope], "force": false});
    check(
        proposal,
        json!({
            "stages": [{"name": "s", "gate": "accepted", "timeout": 1, "removals": [{"on": "target", "force": true,
                "key": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}]}],
            "next": {"finish": {"exports": [], "afterwards": []}},
            "recover": [7],
            "status": {"kind": "Status"},
            "deletionOrder": [group("namespaced"), group("clusterScoped"), group("customResourceDefinitions")],
        }),
    );
}

#[test]
fn what_a_component_is_asked_with() {
    let failed = StageFailure {
        stage: "s".into(),
        key: Some(key(None)),
        problem: Problem { code: Code::from("ERR_MINE"), message: "m".into(), at: None },
    };
    let item = Item {
        namespace: "n".into(),
        name: "i".into(),
        uid: "u".into(),
        item_type: "t".into(),
        generation: 3,
        context: "default".into(),
        target: Some("cluster".into()),
        job: "j".into(),
        config: json!({"k": 1}),
        annotations: [("a".to_owned(), "b".to_owned())].into(),
        configuration: Some(json!({"c": 3})),
        status: Some(json!({"s": 2})),
        checkpoint: Some(vec![1]),
        failed: Some(failed),
        now: "2026-11-21T00:00:00Z".into(),
        seed: 9,
        secret: None,
        timeout: u64::MAX,
    };
    check(
        item,
        json!({"namespace": "n", "name": "i", "uid": "u", "itemType": "t", "generation": 3, "context": "default",
            "target": "cluster", "job": "j", "config": {"k": 1}, "annotations": {"a": "b"}, "configuration": {"c": 3}, "status": {"s": 2}, "checkpoint": [1],
            "failed": {"stage": "s", "key": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "problem": {"code": "ERR_MINE", "message": "m"}},
            "now": "2026-11-21T00:00:00Z", "seed": 9, "timeout": u64::MAX}),
    );
}
