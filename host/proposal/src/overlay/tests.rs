mod laws;

use super::*;

#[test]
fn a_merge_patch_brings_one_document_to_another_and_back() {
    let cases = [
        (json!({"a": 1, "b": {"c": 2}}), json!({"a": 1, "b": {"d": 3}}), json!({"b": {"c": null, "d": 3}})),
        (json!({"l": [1, 2]}), json!({"l": [2]}), json!({"l": [2]})),
        (json!({"a": {"b": 1}}), json!({"a": "text"}), json!({"a": "text"})),
        (json!({"a": 1}), json!({"a": null}), json!({"a": null})),
    ];
    for (from, to, patch) in cases {
        assert_eq!(merge_patch(&from, &to), Some(patch.clone()), "{from} -> {to}");
        let mut patched = from.clone();
        apply_merge_patch(&mut patched, &patch);
        assert_eq!(merge_patch(&patched, &to), None, "{from} -> {to}");
    }
    assert_eq!(merge_patch(&json!({"a": 1}), &json!({"a": 1.0})), None);
}

#[test]
fn merge_fills_only_what_is_empty() {
    let mut live = json!({"a": "live", "b": "", "n": 0, "list": [1], "none": [], "map": {"x": "live"}});
    fill(
        &mut live,
        &json!({"a": "new", "b": "new", "n": 5, "list": [2], "none": [3], "map": {"x": "new", "y": "new"}, "z": 1}),
    );
    assert_eq!(
        live,
        json!({"a": "live", "b": "new", "n": 5, "list": [1], "none": [3], "map": {"x": "live", "y": "new"}, "z": 1})
    );
}

#[test]
fn merge_overwrite_merges_maps_and_replaces_everything_else_also_with_what_is_empty() {
    let mut live = json!({"a": "live", "b": "live", "list": [1, 2], "map": {"x": "live", "k": 1}, "kept": {"k": 1},
        "suspend": true, "replicas": 3, "paused": null, "items": [1], "gone": "live", "text": "live", "deep": "live"});
    overlay(
        &mut live,
        &json!({"a": "new", "b": "", "list": [3], "map": {"x": "new"}, "kept": {}, "z": 0,
            "suspend": false, "replicas": 0, "paused": {}, "items": [], "gone": null, "text": {}, "deep": {"x": false}}),
    );
    assert_eq!(
        live,
        json!({"a": "new", "b": "", "list": [3], "map": {"x": "new", "k": 1}, "kept": {"k": 1}, "z": 0,
            "suspend": false, "replicas": 0, "paused": {}, "items": [], "gone": null, "text": {}, "deep": {"x": false}})
    );
}

#[test]
fn a_three_way_merge_keeps_what_others_added() {
    let earlier = json!({"spec": {"old": 1, "kept": 1, "sub": {"gone": 1}}});
    let live = json!({"spec": {"old": 1, "kept": 9, "foreign": 7, "sub": {"gone": 1, "theirs": 2}}});
    let desired = json!({"spec": {"kept": 2, "new": 3, "sub": {}}});
    assert_eq!(
        three_way(&earlier, &live, &desired),
        json!({"spec": {"kept": 2, "foreign": 7, "new": 3, "sub": {"theirs": 2}}})
    );
}

#[test]
fn a_replacement_keeps_the_version_finalizers_and_owners() {
    let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "a", "resourceVersion": "7", "uid": "u", "labels": {"theirs": "x"},
        "finalizers": ["theirs"], "ownerReferences": [{"name": "o"}]}, "data": {"k": "old"}});
    let desired = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "new"}});
    assert_eq!(
        replacement(&live, &desired),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "a", "resourceVersion": "7", "finalizers": ["theirs"], "ownerReferences": [{"name": "o"}]},
            "data": {"k": "new"}})
    );
}

#[track_caller]
fn check_replacement(live: Value, desired: Value, expected: Value) {
    assert_eq!(replacement(&live, &desired), expected);
}

#[test]
fn a_replaced_job_keeps_its_selector_and_template_labels() {
    check_replacement(
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"selector": {"matchLabels": {"uid": "1"}},
            "template": {"metadata": {"labels": {"uid": "1", "app": "old"}}}}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"metadata": {"labels": {"app": "new"}}}}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"selector": {"matchLabels": {"uid": "1"}},
            "template": {"metadata": {"labels": {"uid": "1", "app": "new"}}}}}),
    );
}

#[test]
fn a_replaced_job_whose_template_names_no_labels_keeps_those_that_the_server_gave_it() {
    let job = |template: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}});
    let live = job(json!({"metadata": {"labels": {"uid": "1"}}, "spec": {}}));
    let kept = job(json!({"metadata": {"labels": {"uid": "1"}}, "spec": {"a": "b"}}));
    for metadata in [json!({}), json!({"labels": null}), json!({"labels": {}})] {
        check_replacement(live.clone(), job(json!({"metadata": metadata, "spec": {"a": "b"}})), kept.clone());
    }
    check_replacement(live, job(json!({"spec": {"a": "b"}})), kept);
    check_replacement(job(json!({"spec": {}})), job(json!({"spec": {"a": "b"}})), job(json!({"spec": {"a": "b"}})));
}

#[test]
fn a_replaced_service_keeps_its_address_unless_it_becomes_external() {
    let live =
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}});
    check_replacement(
        live.clone(),
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": []}}),
        json!({"apiVersion": "v1", "kind": "Service",
            "spec": {"ports": [], "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}}),
    );
    let external = json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ExternalName"}});
    check_replacement(live.clone(), external.clone(), external);
    let headless =
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}});
    check_replacement(live, headless.clone(), headless);
}

#[test]
fn replaced_accounts_and_claims_keep_what_was_bound_to_them() {
    check_replacement(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "token"}]}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "token"}]}),
    );
    check_replacement(
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeName": "pv"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeName": "pv"}}),
    );
}

/// The server refuses a claim that takes away what it has filled in: a second job would fail.
#[test]
fn a_claim_keeps_what_the_server_filled_in_and_gets_what_it_names() {
    let claim = |spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec});
    let source = json!({"kind": "PersistentVolumeClaim", "name": "other"});
    let filled = json!({"volumeName": "pv", "storageClassName": "standard", "volumeMode": "Filesystem",
        "dataSource": source, "dataSourceRef": source, "resources": {"requests": {"storage": "1Gi"}}});
    let wanted = |size: &str| json!({"resources": {"requests": {"storage": size}}});
    let mut expected = filled.clone();
    expected["resources"] = wanted("2Gi")["resources"].clone();
    check_replacement(claim(filled.clone()), claim(wanted("2Gi")), claim(expected));
    let mut named = wanted("1Gi");
    named["storageClassName"] = json!("fast");
    let replaced = replacement(&claim(filled), &claim(named));
    assert_eq!(replaced["spec"]["storageClassName"], "fast", "what is named is sent, and the server has its say");
}

#[test]
fn a_write_that_changes_nothing_is_seen() {
    let live = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "3", "managedFields": []},
        "data": {"k": "v"}, "status": {"x": 1}});
    let body = json!({"metadata": {"name": "a", "resourceVersion": "3"}, "data": {"k": "v"}});
    assert!(is_unchanged(&live, &body));
    for other in [
        json!({"metadata": {"name": "a"}, "data": {"k": "w"}}),
        json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"k": "v"}}),
        json!({"metadata": {"name": "a"}, "data": {"k": "v"}, "status": {"x": 2}}),
        json!({"metadata": {"name": "a"}}),
    ] {
        assert!(!is_unchanged(&live, &other), "{other}");
    }
}
