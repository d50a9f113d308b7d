//! The sentence of every refusal, and the wire form of what the operator writes.

use serde_json::json;

use super::*;

/// All clusters, nothing else.
fn clusters_only() -> Grants {
    grants(json!({"clusters": {"target": true, "host": true, "named": ["*"]}}))
}

#[test]
fn a_refusal_names_the_grant_that_is_missing() {
    let none = Grants::default();
    let some = clusters_only();
    let lister = Grants { delete_unmanaged: true, ..clusters_only() };
    let add = |what: &str| {
        format!("is not granted to this component; have an administrator add {what} registration, or of its Plugin")
    };
    let cases = [
        (
            none.cluster(&ClusterRef::Target),
            format!("the target cluster {}", add("`clusters.target` to the grants of its")),
        ),
        (none.cluster(&ClusterRef::Host), format!("the host cluster {}", add("`clusters.host` to the grants of its"))),
        (
            none.cluster(&ClusterRef::Named("b".into())),
            format!("the cluster of target b {}", add("`clusters.named: [b]` to the grants of its")),
        ),
        (
            some.read(&ClusterRef::Host, &key("v1", "Namespace", None)),
            format!("v1 Namespace in all namespaces or cluster-wide {}", add("it to `reads` in the grants of its")),
        ),
        (
            some.list(&ClusterRef::Target, &selection(Some("a"))),
            format!("v1 Secret in namespace a {}", add("it to `reads` in the grants of its")),
        ),
        (
            some.write(&ClusterRef::Named("b".into()), &key("apps/v1", "Deployment", Some("a"))),
            format!("apps/v1 Deployment in namespace a {}", add("it to `writes` in the grants of its")),
        ),
        (
            some.delete_unmanaged(&ClusterRef::Target, &selection(None)),
            format!("deleting every Secret whoever made it {}", add("`deleteUnmanaged: true` to the grants of its")),
        ),
        (
            lister.delete_unmanaged(&ClusterRef::Target, &selection(None)),
            format!("v1 Secret in all namespaces or cluster-wide {}", add("it to `writes` in the grants of its")),
        ),
        (
            none.artifact("ghcr.io/a:1"),
            format!("the artifact ghcr.io/a:1 {}", add("it, or a prefix of it, to `artifacts` in the grants of its")),
        ),
        (none.host("example.org"), format!("the host example.org {}", add("it to `hosts` in the grants of its"))),
    ];
    for (answer, sentence) in cases {
        assert_eq!(answer, Err(Refusal(sentence)));
    }
}

#[test]
fn every_question_asks_for_the_cluster_first() {
    let everything_but_a_cluster = grants(json!({"reads": [{}], "writes": [{}], "deleteUnmanaged": true}));
    let object = key("v1", "Secret", Some("a"));
    for on in [ClusterRef::Target, ClusterRef::Host, ClusterRef::Named("b".into())] {
        let refused = everything_but_a_cluster.cluster(&on);
        assert!(refused.is_err(), "{on}");
        assert_eq!(everything_but_a_cluster.read(&on, &object), refused);
        assert_eq!(everything_but_a_cluster.write(&on, &object), refused);
        assert_eq!(everything_but_a_cluster.list(&on, &selection(None)), refused);
        assert_eq!(everything_but_a_cluster.delete_unmanaged(&on, &selection(None)), refused);
    }
}

#[test]
fn a_star_stands_for_all_and_only_when_it_stands_alone() {
    let with = |pattern: &str| {
        let whole = json!({"clusters": {"target": true, "named": [pattern]}, "hosts": [pattern],
            "reads": [{"groups": [pattern], "kinds": [pattern], "namespaces": [pattern]}]});
        grants(whole)
    };
    let granted = |grants: &Grants| {
        [
            grants.cluster(&ClusterRef::Named("ab".into())).is_ok(),
            grants.host("ab").is_ok(),
            grants.read(&ClusterRef::Target, &key("ab/v1", "ab", Some("ab"))).is_ok(),
            grants.read(&ClusterRef::Target, &key("ab/v1", "ab", None)).is_ok(),
        ]
    };
    assert_eq!(granted(&with("*")), [true; 4]);
    assert_eq!(granted(&with("ab")), [true, true, true, false]);
    assert_eq!(granted(&with("a*")), [false; 4]);
    assert_eq!(granted(&with("")), [false; 4]);
}

#[test]
fn no_grant_follows_from_two_halves_of_others() {
    let halves = grants(json!({"clusters": {"target": true}, "reads": [
        {"kinds": ["Secret"], "namespaces": ["a"]}, {"kinds": ["ConfigMap"], "namespaces": ["b"]}, {"kinds": []}]}));
    let may = |kind: &str, namespace: &str| halves.read(&ClusterRef::Target, &key("v1", kind, Some(namespace))).is_ok();
    assert!(may("Secret", "a") && may("ConfigMap", "b"));
    assert!(!may("Secret", "b") && !may("ConfigMap", "a"));
}

#[test]
fn the_wire_form_is_complete_there_and_back() {
    let wire = json!({
        "clusters": {"target": true, "host": false, "named": ["b"]},
        "reads": [{"groups": [""], "kinds": ["Secret"], "namespaces": ["a"]}],
        "writes": [{"groups": ["*"], "kinds": ["*"], "namespaces": ["*"]}],
        "deleteUnmanaged": true,
        "artifacts": ["ghcr.io/acme/"],
        "hosts": ["charts.example.org"],
        "kubeconfigs": ["serviceAccount"],
    });
    assert_eq!(serde_json::to_value(grants(wire.clone())).unwrap(), wire);
    assert_eq!(grants(json!({})), Grants::default());
    let star = || vec!["*".to_owned()];
    let any = KindGrant { groups: star(), kinds: star(), namespaces: star() };
    assert_eq!(grants(json!({"writes": [{}]})), Grants { writes: vec![any], ..Grants::default() });
}

#[test]
fn a_misspelt_field_is_refused_wherever_it_stands() {
    for wire in [
        json!({"deleteunmanaged": true}),
        json!({"clusters": {"targets": true}}),
        json!({"reads": [{"namespace": ["a"]}]}),
        json!({"writes": [{"kinds": "Secret"}]}),
    ] {
        assert!(serde_json::from_value::<Grants>(wire.clone()).is_err(), "{wire}");
    }
}

#[test]
fn an_empty_artifact_prefix_grants_nothing() {
    let empty = grants(json!({"artifacts": [""]}));
    assert!(empty.artifact("ghcr.io/acme").is_err());
    assert!(grants(json!({"artifacts": ["ghcr.io/*"]})).artifact("ghcr.io/acme").is_err());
}
