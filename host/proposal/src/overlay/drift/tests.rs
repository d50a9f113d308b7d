use serde_json::json;

use super::*;
use crate::overlay::overlay;

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn containers(list: Value) -> Value {
    deployment(json!({"template": {"spec": {"containers": list}}}))
}

fn managed_by(manager: &str, fields: Value, mut object: Value) -> Value {
    overlay(&mut object, &json!({"metadata": {"managedFields": [{"manager": manager, "fieldsV1": fields}]}}));
    object
}

fn pointers(list: &[&str]) -> Ignored {
    Ignored { pointers: list.iter().map(|pointer| (*pointer).to_owned()).collect(), ..Ignored::default() }
}

fn managers(list: &[&str]) -> Ignored {
    Ignored { managers: list.iter().map(|name| (*name).to_owned()).collect(), ..Ignored::default() }
}

#[track_caller]
fn check(written: &Value, live: &Value, ignored: &Ignored, expected: &[&str]) {
    let found: Vec<String> = drift(written, live, ignored).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn c_55_a_baseline_is_what_the_write_named_with_the_values_of_the_server() {
    let written = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "x"},
        "spec": {"paused": null, "template": {"spec": {"containers": [
            {"name": "web", "resources": {"limits": {"cpu": "1000m"}}}]}}}, "status": {"replicas": 1}});
    let answer = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "uid": "u", "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"dnsPolicy": "ClusterFirst", "containers": [
            {"name": "injected"}, {"name": "web", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}]}}},
        "status": {"replicas": 0}});
    let expected = containers(json!([{"name": "web", "resources": {"limits": {"cpu": "1"}}}]));
    assert_eq!(baseline(&written, &answer), expected);
    check(&baseline(&written, &answer), &answer, &Ignored::default(), &[]);
}

#[test]
fn c_55_replicas_that_the_manifest_does_not_name_belong_to_the_autoscaler() {
    let answer = |replicas: u32| deployment(json!({"replicas": replicas, "paused": false}));
    let named = baseline(&answer(1), &answer(1));
    let unnamed = baseline(&deployment(json!({"paused": false})), &answer(1));
    check(&unnamed, &answer(7), &Ignored::default(), &[]);
    check(&named, &answer(7), &Ignored::default(), &["/spec/replicas is different"]);
}

#[test]
fn c_56_drift_tells_where_and_never_what() {
    let written = json!({"metadata": {"labels": {"a/b": "x", "c~d": "y"}}, "spec": {"n": 3, "l": [{"n": 1}], "e": {}}});
    let live = json!({"metadata": {"labels": {"a/b": "hunter2"}}, "spec": {"n": 3.0, "l": [{"n": 2, "more": 1}]}});
    let expected =
        ["/metadata/labels/a~1b is different", "/metadata/labels/c~0d is missing", "/spec/l/0/n is different"];
    check(&written, &live, &Ignored::default(), &expected);
}

#[test]
fn c_56_entries_with_keys_are_found_wherever_they_stand_and_those_of_others_are_no_drift() {
    let written = containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
    let live = containers(json!([{"name": "sidecar"}, {"name": "b", "image": "2"}, {"name": "a", "image": "1"}]));
    check(&written, &live, &Ignored::default(), &["/spec/template/spec/containers/1/image is different"]);
    let without = containers(json!([{"name": "a", "image": "1"}]));
    check(&written, &without, &Ignored::default(), &["/spec/template/spec/containers/1 is missing"]);
}

#[test]
fn c_56_a_list_without_keys_that_grew_or_shrank_is_one_difference() {
    let custom = |list: Value| json!({"apiVersion": "example.org/v1", "spec": {"list": list}});
    check(&custom(json!([1, 2])), &custom(json!([1, 2, 3])), &Ignored::default(), &["/spec/list is different"]);
    check(&custom(json!([1, 2])), &custom(json!([1, 3])), &Ignored::default(), &["/spec/list/1 is different"]);
}

#[test]
fn c_57_an_ignored_pointer_takes_in_what_lies_below_it_and_nothing_beside_it() {
    let written = json!({"spec": {"a": {"b": 1}, "ab": 1, "gone": 1}});
    let live = json!({"spec": {"a": {"b": 2}, "ab": 2}});
    let all = ["/spec/a/b is different", "/spec/ab is different", "/spec/gone is missing"];
    check(&written, &live, &Ignored::default(), &all);
    check(&written, &live, &pointers(&["/spec/a"]), &all[1..]);
    check(&written, &live, &pointers(&["/spec/a/b", "/spec/gone"]), &all[1..2]);
    check(&written, &live, &pointers(&[""]), &[]);
}

#[test]
fn c_57_what_an_ignored_manager_manages_is_its_own() {
    let written = deployment(json!({"replicas": 1, "paused": false}));
    let changed = deployment(json!({"replicas": 7, "paused": true}));
    let live = managed_by("kube-controller-manager", json!({"f:spec": {"f:replicas": {}}}), changed);
    let all = ["/spec/paused is different", "/spec/replicas is different"];
    check(&written, &live, &managers(&["somebody"]), &all);
    check(&written, &live, &managers(&["kube-controller-manager"]), &all[..1]);
}

#[test]
fn c_295_limits_drift_so_many_entries_of_managers_count() {
    let written = deployment(json!({"replicas": 1}));
    let of = |before: usize| {
        let entry = |fields: Value| json!({"manager": "m", "fieldsV1": fields});
        let others = (0..before).map(|_| entry(json!({"f:spec": {"f:paused": {}}})));
        let all: Vec<Value> = others.chain([entry(json!({"f:spec": {"f:replicas": {}}}))]).collect();
        let mut live = deployment(json!({"replicas": 7}));
        live["metadata"]["managedFields"] = Value::from(all);
        drift(&written, &live, &managers(&["m"])).len()
    };
    assert_eq!((of(MOST_MANAGED - 1), of(MOST_MANAGED)), (0, 1));
}

#[test]
fn c_295_lists_of_many_entries_are_compared_in_time() {
    let env = |from: u32, value: &str| -> Value {
        (from..from + 20_000).map(|at| json!({"name": format!("a-long-name-{at:06}"), "value": value})).collect()
    };
    let names: serde_json::Map<String, Value> =
        (0..20_000).map(|at| (format!("k:{{\"name\":\"a-long-name-{at:06}\"}}"), json!({"f:value": {}}))).collect();
    let object = |env: Value| containers(json!([{"name": "a", "env": env}]));
    let fields =
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:env": names}}}}}});
    let (written, live) = (object(env(0, "1")), managed_by("m", fields, object(env(10_000, "2"))));
    let begun = std::time::Instant::now();
    assert_eq!(drift(&written, &live, &managers(&["m"])).len(), 10_000, "what is missing");
    assert_eq!(drift(&written, &live, &Ignored::default()).len(), 20_000);
    let finalizers =
        |from: u32| -> Value { (from..from + 20_000).map(|at| json!(format!("example.org/{at}"))).collect() };
    let object = |from: u32| json!({"apiVersion": "v1", "metadata": {"finalizers": finalizers(from)}});
    assert_eq!(drift(&object(0), &object(10_000), &Ignored::default()).len(), 10_000);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn c_57_entries_of_lists_are_managed_by_key_and_a_whole_list_by_its_field() {
    let written = containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
    let live = containers(json!([{"name": "b", "image": "2"}, {"name": "a", "image": "2"}]));
    let below = |node: Value| json!({"f:spec": {"f:template": {"f:spec": {"f:containers": node}}}});
    let of_a = below(json!({"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}));
    let other = "/spec/template/spec/containers/1/image is different";
    check(&written, &managed_by("updater", of_a, live.clone()), &managers(&["updater"]), &[other]);
    check(&written, &managed_by("updater", below(json!({})), live), &managers(&["updater"]), &[]);
}

#[test]
fn c_55_what_a_write_takes_away_is_not_remembered() {
    let custom = |field: Value| json!({"apiVersion": "example.org/v1", "spec": {"field": field}});
    let kept = baseline(&custom(Value::Null), &custom(Value::Null));
    assert_eq!(kept, json!({"apiVersion": "example.org/v1", "spec": {}}));
}

#[test]
fn c_56_finalizers_are_a_set() {
    let object = |names: Value| json!({"apiVersion": "v1", "metadata": {"finalizers": names}});
    check(&object(json!(["a", "b"])), &object(json!(["theirs", "b", "a"])), &Ignored::default(), &[]);
    let missing = ["/metadata/finalizers/0 is missing"];
    check(&object(json!(["a", "b"])), &object(json!(["theirs", "b"])), &Ignored::default(), &missing);
}

#[test]
fn c_57_entries_without_keys_are_managed_by_value_and_by_index() {
    let custom = |list: Value| json!({"apiVersion": "example.org/v1", "spec": {"list": list}});
    let by = |node: &str| {
        let live = managed_by("updater", json!({"f:spec": {"f:list": {node: {}}}}), custom(json!([1, 3])));
        drift(&custom(json!([1, 2])), &live, &managers(&["updater"])).len()
    };
    assert_eq!(["v:3", "v:2", "i:1", "i:0", "x:1", "v"].map(by), [0, 1, 0, 1, 1, 1]);
}

#[test]
fn c_60_what_is_ignored_stays_as_it_is_where_an_object_is_written_again() {
    let wanted = deployment(json!({"replicas": 1, "paused": false, "gone": 1, "template": {"spec": {"containers": [
        {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}}));
    let live = deployment(json!({"replicas": 7, "paused": true, "template": {"spec": {"containers": [
        {"name": "b", "image": "2"}, {"name": "a", "image": "2"}]}}}));
    let images = |list: [&str; 2]| json!([{"name": "a", "image": list[0]}, {"name": "b", "image": list[1]}]);
    let expected = |replicas: u32, list: [&str; 2]| {
        let containers = images(list);
        deployment(json!({"replicas": replicas, "paused": false, "template": {"spec": {"containers": containers}}}))
    };
    assert_eq!(spared(&wanted, &live, &Ignored::default()), wanted);
    let some = pointers(&["/spec/replicas", "/spec/gone", "/spec/template/spec/containers/1/image"]);
    assert_eq!(spared(&wanted, &live, &some), expected(7, ["1", "2"]));
    let fields = json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers":
        {"k:{\"name\":\"a\"}": {"f:image": {}}}}}}});
    let mut managed = expected(7, ["2", "1"]);
    overlay(&mut managed, &json!({"spec": {"gone": 1}}));
    assert_eq!(spared(&wanted, &managed_by("hpa", fields, live), &managers(&["hpa"])), managed);
}

#[test]
fn c_57_the_rules_of_a_cluster_role_that_others_are_aggregated_into_are_the_servers() {
    let role = |fields: Value| {
        let mut role =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}});
        overlay(&mut role, &fields);
        role
    };
    let rules = json!([{"verbs": ["get"], "resources": ["pods"], "apiGroups": [""]}]);
    let aggregates = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let written = role(json!({"aggregationRule": aggregates, "rules": []}));
    let filled = role(json!({"aggregationRule": aggregates, "rules": rules}));
    check(&written, &filled, &Ignored::default(), &[]);
    assert_eq!(spared(&written, &filled, &Ignored::default()), filled, "what else is written again leaves them");
    let other = role(json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": rules}));
    check(&written, &other, &Ignored::default(), &["/aggregationRule/clusterRoleSelectors is different"]);
    // Of one that is not, they are as they were written.
    check(&role(json!({"rules": []})), &role(json!({"rules": rules})), &Ignored::default(), &["/rules is different"]);
}

#[test]
fn c_145_limits_drift_of_a_long_pointer_the_field_above_is_told_once_and_can_be_ignored() {
    let long = "k".repeat(LONGEST_POINTER);
    let fields: Map<String, Value> = (0..1_000).map(|number| (number.to_string(), json!(1))).collect();
    let object = |below: Value| json!({"spec": {"short": {long.as_str(): below}, "other": 1}});
    let written = object(json!({"a": fields, "b": {"c": 1}}));
    check(&written, &written, &Ignored::default(), &[]);
    for other in [object(json!({"a": {}, "b": {"c": 2}})), json!({"spec": {"short": {}, "other": 1}})] {
        check(&written, &other, &Ignored::default(), &["/spec/short is different"]);
        check(&written, &other, &pointers(&["/spec/short"]), &[]);
    }
    // One that is as long as it may be is told as it is.
    let longest = "k".repeat(LONGEST_POINTER - 1);
    let missing = drift(&json!({longest.as_str(): 1}), &json!({}), &Ignored::default());
    assert_eq!(missing, [Drift::Missing(format!("/{longest}"))]);
}

#[test]
fn c_145_limits_drift_the_pointers_of_an_object_share_their_bytes_and_those_beyond_are_counted() {
    let deep = "k".repeat(LONGEST_POINTER / 2);
    let fields: Map<String, Value> = (0..10_000).map(|number| (format!("{number:04}"), json!(1))).collect();
    let found = drift(&json!({deep.as_str(): fields}), &json!({deep.as_str(): {"0001": 2}}), &Ignored::default());
    let named = MOST_POINTER_BYTES / (LONGEST_POINTER / 2 + 6);
    assert_eq!(found[1], Drift::Different(format!("/{deep}/0001")));
    assert!(found[..named].iter().all(|one| one.pointer().starts_with("/k")));
    assert_eq!(found[named..], vec![Drift::Missing(String::new()); 10_000 - named]);
}
