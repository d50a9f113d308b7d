//! Whole faults: the sort, the code and the sentence; and what is counted.

use orangery_core::name::ObjectName;

use super::*;

fn key(kind: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name})
}

fn checked(fields: Value) -> Result<(), Fault> {
    check(&proposal(fields), &grants(), Bounds::default())
}

fn message_of(code: Code, message: &str) -> Result<(), Fault> {
    Err(Fault::invalid(code, message))
}

fn denied(what: &str) -> Result<(), Fault> {
    let rest = "in the grants of its registration, or of its Plugin";
    Err(Fault::denied(format!(
        "{what} is not granted to this component; have an administrator add it to `reads` {rest}"
    )))
}

fn export(source: Value) -> Value {
    json!({"next": {"finish": {"exports": [{"key": "k", "source": {"path": source}}]}}})
}

fn ready(rule: Value) -> Value {
    json!({"stages": [stage(json!({"gate": {"ready": [{"name": "mine", "scope": "stage", "rule": rule}]}}))]})
}

#[test]
fn the_key_of_an_object_is_all_that_identifies_it() {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n", "namespace": "a"}});
    let expected = ObjectKey {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("a".into()),
        name: "n".into(),
    };
    assert_eq!(key_of(&object), Ok(expected.clone()));
    let mut cluster_scoped = object;
    cluster_scoped["metadata"]["namespace"] = json!("");
    assert_eq!(key_of(&cluster_scoped), Ok(ObjectKey { namespace: None, ..expected }));
}

#[test]
fn empty_texts_count_as_missing() {
    let object = |api_version: &str, kind: &str, name: Value| {
        key_of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})).unwrap_err()
    };
    assert_eq!(object("", "X", json!("n")), "X n needs apiVersion");
    assert_eq!(object("v1", "", json!("n")), "an object n needs kind");
    assert_eq!(object("v1", "X", json!("")), "X without a name needs metadata.name");
    assert_eq!(object("v1", "X", json!(7)), "X without a name needs metadata.name");
    assert_eq!(
        object("v1", "", json!("a/b")),
        "an object has metadata.name \"a/b\", which no object can have; use lower-case letters, digits, `-` and `.`"
    );
}

#[test]
fn what_is_invalid_is_told_in_one_whole_sentence() {
    let problem = |message: &str| message_of(Code::ConfigurationProblem, message);
    assert_eq!(
        checked(ready(
            json!({"requirements": [{"path": ".a", "operator": "exists"}, {"path": ".a", "operator": "in"}]})
        )),
        problem(
            "readiness check mine: the operator in of a readiness requirement takes at least one value, but 0 are given"
        )
    );
    assert_eq!(
        checked(ready(json!({"expression": "subject.ok"}))),
        problem(
            "readiness check mine: the expression cannot be used: there is no subject; known are: object; it is CEL over `object`, and true or false"
        )
    );
    let syntax = problem(
        "\".a[0\" is no JSONPath: a bracket is not closed; write it as in `kubectl -o jsonpath`, without braces",
    );
    assert_eq!(checked(export(json!({"key": key("ConfigMap", "b", "x"), "path": ".a[0"}))), syntax);
    let followed = json!({"key": key("ConfigMap", "b", "x"), "path": ".a",
        "then": {"apiVersion": "v1", "kind": "ConfigMap", "path": ".a[0"}});
    assert_eq!(checked(export(followed)), syntax);
    for fields in [json!({"labels": "a=b"}), json!({"fields": "a=b"})] {
        let mut selection = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        crate::overlay::overlay(&mut selection, &fields);
        assert_eq!(
            checked(json!({"deletionOrder": [{"what": [{"managed": selection}]}]})),
            problem(
                "a deletion group selects managed ConfigMap objects by labels or fields, which the inventory does not \
                 know; select them by name and namespace"
            )
        );
    }
}

#[test]
fn whatever_is_read_later_is_checked_before_anything_is_written() {
    let (map, secret) = (key("ConfigMap", "b", "x"), key("Secret", "b", "x"));
    let refused = denied("v1 Secret in namespace b");
    let gate = |gate: Value| json!({"stages": [stage(json!({"gate": gate}))]});
    assert_eq!(checked(gate(json!({"completed": [map, secret]}))), refused);
    let keys = |keys: Value| gate(json!({"ready": [{"name": "r", "scope": {"keys": keys}, "rule": "usual"}]}));
    assert_eq!(checked(keys(json!([map, secret]))), refused);
    assert_eq!(checked(keys(json!([map, map]))), Ok(()));
    let follow = |kind: &str| json!({"key": map, "path": ".", "then": {"apiVersion": "v1", "kind": kind, "path": "."}});
    assert_eq!(checked(export(follow("Secret"))), refused);
    assert_eq!(checked(export(follow("ConfigMap"))), Ok(()));
    assert_eq!(checked(json!({"next": {"finish": {"exports": [{"key": "k", "source": {"value": 1}}]}}})), Ok(()));
}

#[test]
fn both_sorts_of_secret_content_need_their_cluster() {
    for content in ["targetDocument", "kubeconfig"] {
        let injected = |on: Value| {
            let mut write = write("a");
            write["inject"] = json!([{"at": "/data/k", "content": {content: on}}]);
            checked(json!({"stages": [stage(json!({"writes": [write]}))]}))
        };
        assert_eq!(injected(json!("target")), Ok(()), "{content}");
        let refusal = "the host cluster is not granted to this component; have an administrator add `clusters.host` to the grants of its registration, or of its Plugin";
        assert_eq!(injected(json!("host")), Err(Fault::denied(refusal)), "{content}");
    }
}

#[test]
fn c_119_what_is_laid_over_an_object_makes_no_other_of_it() {
    let with = |fields: Value| {
        let mut write = write("a");
        crate::overlay::overlay(&mut write, &fields);
        checked(json!({"stages": [stage(json!({"writes": [write]}))]}))
    };
    let moments = [("atCreation", "merged in at creation"), ("beforeDeletion", "laid over it before its deletion")];
    for (field, when) in moments {
        let whole = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a"}});
        for same in [json!({"metadata": {"annotations": {"name": "y"}}}), json!({"data": {"k": "v"}}), whole] {
            assert_eq!(with(json!({field: same})), Ok(()), "{same}");
        }
        for other in [
            json!({"metadata": {"name": "y"}}),
            json!({"metadata": {"name": null, "generateName": "y-"}}),
            json!({"metadata": {"namespace": "b"}}),
            json!({"metadata": {"namespace": ""}}),
            json!({"metadata": "x"}),
            json!({"kind": "Secret"}),
            json!({"apiVersion": "v2"}),
            json!("x"),
        ] {
            let message = format!(
                "ConfigMap a/x would be another object with what is {when}; leave apiVersion, kind, metadata.name and \
                 metadata.namespace out of that"
            );
            assert_eq!(with(json!({field: other})), message_of(Code::ConfigurationProblem, &message), "{other}");
        }
    }
    let placed = |at: &str| with(json!({"inject": [{"at": at, "content": {"kubeconfig": "target"}}]}));
    for at in ["/metadata/name", "/metadata", "/metadata/annotations/orangery.dev~1owner", "/kind", "/apiVersion"] {
        let message = format!(
            "ConfigMap a/x is to have secret content at {at:?}, where an object says what it is; place it in its data"
        );
        assert_eq!(placed(at), message_of(Code::ConfigurationProblem, &message));
    }
    for at in ["/data/k", "/metadatas/k", "/spec/metadata/name"] {
        assert_eq!(placed(at), Ok(()), "{at}");
    }
}

#[test]
fn c_119_what_is_laid_over_an_object_counts_as_bytes_of_it() {
    let mut write = write("a");
    let bytes = write["object"].to_string().len();
    write["atCreation"] = json!({"data": {"a": "1"}});
    write["beforeDeletion"] = json!({"data": {"b": "2"}});
    let bytes = bytes + 2 * write["atCreation"].to_string().len();
    let whole = proposal(json!({"stages": [stage(json!({"writes": [write]}))]}));
    assert_eq!(check(&whole, &grants(), Bounds { objects: 1, bytes }), Ok(()));
    let refused = check(&whole, &grants(), Bounds { objects: 1, bytes: bytes - 1 });
    assert_eq!(refused.map_err(|fault| fault.problem().code.clone()), Err(Code::LimitExceeded));
}

#[test]
fn a_managed_group_needs_no_grant_and_an_unmanaged_one_its_own() {
    let selection = json!({"apiVersion": "v1", "kind": "Secret"});
    for order in ["deletionOrder", "pruningOrder"] {
        let group = |what: Value| json!({order: [{"what": ["namespaced", "clusterScoped", "customResourceDefinitions", what]}]});
        assert_eq!(checked(group(json!({"managed": selection}))), Ok(()), "{order}");
        let refusal = "deleting every Secret whoever made it is not granted to this component; \
            have an administrator add `deleteUnmanaged: true` to the grants of its registration, or of its Plugin";
        assert_eq!(checked(group(json!({"matching": selection}))), Err(Fault::denied(refusal)), "{order}");
    }
}

#[test]
fn every_ending_is_checked_with_the_stages_before_it() {
    let endings = [
        json!({"finish": {}}),
        json!({"fail": {"code": "ERR_MINE", "message": "m"}}),
        json!({"continueWith": [1]}),
        json!({"againIn": {"after": 1, "checkpoint": [1]}}),
    ];
    for next in endings {
        let whole = |namespace: &str| {
            let wire = json!({"stages": [stage(json!({"writes": [write(namespace)]}))], "next": next});
            check(&serde_json::from_value(wire).unwrap(), &grants(), Bounds::default()).is_ok()
        };
        assert!(whole("a") && !whole("b"), "{next}");
    }
}

#[test]
fn removals_and_later_stages_count_as_objects_and_the_bounds_are_met_exactly() {
    let fields = json!({
        "stages": [stage(json!({"removals": [{"key": key("ConfigMap", "a", "x")}], "writes": [write("a")]}))],
        "next": {"finish": {"afterwards": [stage(json!({"writes": [write("a")]}))]}},
    });
    let bytes = 2 * write("a")["object"].to_string().len();
    let within = |objects, bytes| check(&proposal(fields.clone()), &grants(), Bounds { objects, bytes });
    assert_eq!(within(3, bytes), Ok(()));
    assert_eq!(
        within(2, bytes),
        message_of(Code::LimitExceeded, "3 objects are proposed, but at most 2 are carried out")
    );
    let less = bytes - 1;
    assert_eq!(
        within(3, less),
        message_of(
            Code::LimitExceeded,
            &format!("{bytes} bytes of objects are proposed, but at most {less} are carried out")
        )
    );
    assert_eq!(Bounds::default(), Bounds { objects: 20_000, bytes: 33_554_432 });
}

#[test]
fn c_297_limits_proposal_readiness_checks_and_their_requirements_have_a_number() {
    let checks = |count: usize, requirements: usize| {
        let requirement = json!({"path": ".a", "operator": "exists", "values": []});
        let check = json!({"name": "c", "scope": "stage", "rule": {"requirements": vec![requirement; requirements]}});
        checked(json!({"stages": [stage(json!({"gate": {"ready": vec![check; count]}}))], "next": {"finish": {}}}))
    };
    assert_eq!((checks(200, 5), checks(1, 1_000)), (Ok(()), Ok(())));
    let message = "201 readiness checks are proposed, but an item has 200 at most";
    assert_eq!(checks(201, 1), message_of(Code::LimitExceeded, message));
    let message = "1002 requirements of readiness checks are proposed, but an item has 1000 at most";
    assert_eq!(checks(2, 501), message_of(Code::LimitExceeded, message));
}

#[test]
fn c_287_limits_proposal_exports_and_places_of_secret_content_have_a_number() {
    let exports = |rules: usize| {
        let rule = json!({"key": "k", "source": {"path": {"key": key("ConfigMap", "a", "x"), "path": ".data"}}});
        checked(json!({"next": {"finish": {"exports": vec![rule; rules]}}}))
    };
    let message = "1001 exports are proposed, but an item has 1000 at most";
    assert_eq!((exports(1_000), exports(1_001)), (Ok(()), message_of(Code::LimitExceeded, message)));
    let injects = |places: usize| {
        let mut write = write("a");
        write["inject"] = json!(vec![json!({"at": "/data/k", "content": {"kubeconfig": "target"}}); places]);
        checked(json!({"stages": [stage(json!({"writes": [write]}))], "next": {"finish": {}}}))
    };
    let refused = injects(17).unwrap_err().to_string();
    assert_eq!(injects(16), Ok(()));
    assert!(refused.ends_with("is to have secret content at 17 places, but has 16 at most"), "{refused}");
}

#[test]
fn c_209_limits_proposal_conditions_of_an_item_are_few_and_none_is_the_hosts() {
    let proposed = |conditions: Value| checked(json!({"status": {"conditions": conditions}, "next": {"finish": {}}}));
    let told =
        |type_: &str, reason: &str| json!({"type": type_, "status": "Progressing", "reason": reason, "message": "m"});
    let refused = |conditions: Value, what: &str| {
        let sentence = format!("the provider status that is proposed has conditions {what}");
        assert_eq!(proposed(conditions), message_of(Code::ConfigurationProblem, &sentence));
    };
    let all = |count: usize| json!((0..count).map(|number| told(&format!("T{number}"), "R")).collect::<Vec<_>>());
    assert_eq!(proposed(all(8)), Ok(()));
    refused(all(9), "of which there are 9, and 8 are the most; tell fewer");
    let word = |length: usize| "a".repeat(length);
    assert_eq!(proposed(json!([told(&word(128), &word(128)), told("example.org/a-b_c.D2", "R")])), Ok(()));
    for type_ in [word(129).as_str(), "", "two words", "\u{e9}"] {
        let why = "whose type is no word of letters, digits and \"-_./\" of at most 128 bytes; write such a word";
        refused(json!([told(type_, "R")]), why);
    }
    for reason in [word(129), word(0)] {
        refused(json!([told("T", &reason)]), "whose reason is empty or has more than 128 bytes; shorten it");
    }
    refused(json!([told("T", "R"), told("T", "S")]), "of which two have the same type; tell one of each type");
    for type_ in ["Ready", "Progressing", "Drifted", "Suspended"] {
        refused(
            json!([told(type_, "R")]),
            &format!("of type {type_:?}, which the host tells itself; call it otherwise"),
        );
    }
    let status = json!([{"type": "T", "status": "Yes", "reason": "R"}]);
    for wrong in [json!("a"), json!([1]), json!([{"type": "T"}]), status.clone()] {
        let why = proposed(wrong).unwrap_err().to_string();
        let rest = "; write a list of type, status, reason and message";
        assert!(why.contains("conditions of another form (") && why.ends_with(rest), "{why}");
    }
    // What others have written into a status is read as carefully.
    let told_in = |conditions: Value| told_conditions(Some(&json!({"conditions": conditions}))).len();
    assert_eq!([told_in(all(8)), told_in(all(9)), told_in(status), told_conditions(None).len()], [8, 0, 0, 0]);
}

#[test]
fn c_97_a_provider_status_is_called_as_an_object_can_be_called() {
    let proposed = |status: Value| checked(json!({"status": status, "next": {"finish": {}}}));
    let fails = |status: Value, what: &str| {
        let sentence = format!("the provider status that is proposed has the {what}");
        assert_eq!(proposed(status), message_of(Code::ConfigurationProblem, &sentence));
    };
    let version = |value: Value| json!({"apiVersion": value, "kind": "K"});
    let kind = |value: Value| json!({"apiVersion": "a/v1", "kind": value});
    for status in
        [json!({}), json!({"mine": 1}), version(json!("v1")), version(json!("a.b/v1")), kind(json!("Provider-Status2"))]
    {
        assert_eq!(proposed(status), Ok(()));
    }
    let rest = "which no object can have; write GROUP/VERSION, or leave it out";
    for (value, shown) in [(json!(""), "\"\""), (json!("a/b/c"), "\"a/b/c\""), (json!(1), "1"), (Value::Null, "null")] {
        fails(version(value), &format!("apiVersion {shown}, {rest}"));
    }
    let rest = "which no object can have; write letters and digits, or leave it out";
    let long = "k".repeat(64);
    for (value, shown) in [
        (json!(""), "\"\"".to_owned()),
        (json!("A b"), "\"A b\"".to_owned()),
        (json!("1K"), "\"1K\"".to_owned()),
        (json!("K-"), "\"K-\"".to_owned()),
        (json!(long), format!("{long:?}")),
        (json!({}), "{}".to_owned()),
    ] {
        fails(kind(value), &format!("kind {shown}, {rest}"));
    }
    let rest = "which API servers hold to the rules for objects; call it otherwise";
    fails(json!({"metadata": {"name": "x"}}), &format!("key \"metadata\", {rest}"));
}

#[test]
fn c_163_a_configuration_names_the_objects_that_it_has_whole() {
    let object = |name: &str, namespace: Value| {
        let metadata = json!({"name": name, "namespace": namespace});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [object("listed", json!("n"))]});
    let config = json!({
        "manifests": [{"policy": "manage", "manifest": object("a", json!("n"))}, {"manifest": list}],
        "exports": {"fromResource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "read", "namespace": "n"}},
        "values": {"deep": [[object("deep", Value::Null)]]},
    });
    let named: Vec<String> = named_objects(&config).iter().map(ToString::to_string).collect();
    assert_eq!(named, ["ConfigMap deep", "ConfigMap n/a", "ConfigMap n/listed"]);
}

#[test]
fn c_210_what_stands_in_an_object_or_in_values_of_a_chart_is_not_named() {
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "work"},
        "spec": {"workload": {"manifests": [object("inside")]}}});
    let named = |version: &str, manifests: Value| {
        let config = json!({"apiVersion": format!("manifest.deployer.landscaper.gardener.cloud/{version}"), "manifests": manifests,
            "exports": {"exports": [object("exported")]}});
        named_objects(&config).iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
    };
    let list = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "items": [object("listed"), work]});
    let within =
        json!({"policy": "ignore", "manifest": {"apiVersion": "v1", "kind": "List", "items": [list("ConfigMapList")]}});
    assert_eq!(named("v1alpha2", json!([{"manifest": work}, within])), ["listed", "work"]);
    assert_eq!(named("v1alpha1", json!([object("a"), work, list("List")])), ["a", "listed", "work"]);
    let mut with_name = list("ConfigMapList");
    with_name["metadata"] = json!({"name": "mine"});
    assert_eq!(named("v1alpha2", json!([{"manifest": with_name}])), ["mine"]);
    let config =
        json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "manifests": [within.clone()]});
    let ignored: Vec<String> = ignored_objects(&config).iter().map(|key| key.name.to_string()).collect();
    assert_eq!(ignored, ["listed", "work"]);
    let chart = json!({"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "values": {"extra": [object("extra")]}});
    assert_eq!(named_objects(&chart), std::collections::BTreeSet::new());
}

#[test]
fn c_162_a_configuration_of_manifests_says_what_is_ignored() {
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [object("listed")]});
    let config = json!({"Manifests": [
        {"policy": "ignore", "manifest": object("a")},
        {"Policy": "ignore", "MANIFEST": list},
        {"policy": "manage", "manifest": object("b")},
        {"manifest": object("c")},
        object("d"),
    ]});
    let ignored: Vec<String> = ignored_objects(&config).iter().map(ToString::to_string).collect();
    assert_eq!(ignored, ["ConfigMap a", "ConfigMap listed"]);
    assert!(ignored_objects(&json!({"manifests": "none"})).is_empty() && ignored_objects(&Value::Null).is_empty());
}

#[test]
fn c_204_an_object_is_deployed_that_stands_under_ignore_and_under_another_policy() {
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let config = json!({"manifests": [
        {"policy": "ignore", "manifest": object("ignored")},
        {"policy": "ignore", "manifest": object("twice")},
        {"policy": "keep", "manifest": object("twice")},
        {"manifest": object("plain")},
        object("bare"),
    ]});
    let names =
        |keys: std::collections::BTreeSet<ObjectKey>| keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(deployed_objects(&config)), ["bare", "plain", "twice"]);
    assert_eq!(names(ignored_objects(&config)), ["ignored", "twice"]);
}

#[test]
fn c_205_a_chart_says_which_namespace_is_made_with_it() {
    let of = |config: Value| (is_chart(&config), created_namespace(&config).map(|key| key.to_string()));
    let chart = |version: &str, create: Value| {
        json!({"apiVersion": format!("{version}.deployer.landscaper.gardener.cloud/v1alpha1"), "Namespace": "n",
            "createNamespace": create})
    };
    assert_eq!(of(chart("helm", json!(true))), (true, Some("Namespace n".to_owned())));
    assert_eq!(of(chart("helm", json!(false))), (true, None));
    assert_eq!(of(chart("helm", Value::Null)), (true, None));
    assert_eq!(of(chart("manifest", json!(true))), (false, None));
}

#[test]
fn c_207_a_revision_is_a_secret_that_is_called_as_helm_calls_it() {
    let is = |api_version: &str, kind: &str, name: &str| {
        let key = json!({"apiVersion": api_version, "kind": kind, "namespace": "n", "name": name});
        is_revision(&serde_json::from_value(key).unwrap())
    };
    assert!(is("v1", "Secret", "sh.helm.release.v1.app.v3"));
    assert!(!is("v1", "Secret", "app") && !is("v1", "ConfigMap", "sh.helm.release.v1.app.v3"));
    assert!(!is("example.org/v1", "Secret", "sh.helm.release.v1.app.v3"));
}

#[test]
fn c_174_objects_of_a_configuration_that_are_taken_over() {
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let config = json!({"manifests": [
        {"policy": "manage", "manifest": object("managed")},
        {"policy": "keep", "manifest": object("kept")},
        {"policy": "ignore", "manifest": object("ignored")},
        {"policy": "fallback", "manifest": object("another's")},
        {"policy": "immutable", "manifest": object("created")},
        {"manifest": object("plain")},
        object("bare"),
    ]});
    let taken: Vec<String> = taken_over_objects(&config).iter().map(|key| key.name.to_string()).collect();
    assert_eq!(taken, ["bare", "ignored", "kept", "managed", "plain"]);
}

#[test]
fn c_175_a_configuration_says_which_release_it_makes() {
    let config = |more: Value| {
        let mut config = json!({"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1"});
        crate::overlay::overlay(&mut config, &more);
        release_of(&config)
    };
    let release = Some((Namespace::from("n"), ObjectName::from("r")));
    assert_eq!(config(json!({"name": "r", "namespace": "n"})), release);
    assert_eq!(config(json!({"Name": "r", "NAMESPACE": "n", "helmDeployment": true})), release);
    assert_eq!(config(json!({"name": "r", "namespace": "n", "helmDeployment": false})), None);
    assert_eq!(config(json!({"name": "r"})), None);
    assert_eq!(config(json!({"namespace": "n"})), None);
    let other =
        json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "name": "r", "namespace": "n"});
    assert_eq!(config(other), None);
    assert_eq!(release_of(&Value::Null), None);
}
