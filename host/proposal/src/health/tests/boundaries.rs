//! The rules of `docs/wire.md` §9 at their boundaries.

use super::*;

/// A workload of `apps` at generation 2, observed.
fn observed_workload(kind: &str, spec: Value, mut status: Value) -> Value {
    status["observedGeneration"] = json!(2);
    workload(kind, spec, status)
}

#[test]
fn every_controller_must_have_observed_the_present_generation() {
    let status = |observed: Value| {
        json!({"observedGeneration": observed, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "readyReplicas": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1})
    };
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] {
        let at = |observed: Value| workload(kind, json!({"replicas": 1}), status(observed));
        check(at(json!(1)), "generation 2 is not yet observed by its controller");
        check(at(Value::Null), "generation 2 is not yet observed by its controller");
        check(at(json!(2)), "ready");
        check(at(json!(3)), "ready");
    }
    // An object that no server has numbered has nothing to be observed.
    check(json!({"apiVersion": "apps/v1", "kind": "Deployment"}), "ready");
}

#[test]
fn a_deployment_names_the_first_count_that_is_not_exact() {
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    for (index, field) in counts.iter().enumerate() {
        for wrong in [2, 4] {
            let mut status: Value = json!({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
            for later in &counts[index..] {
                status[later] = json!(wrong);
            }
            check(observed_workload("Deployment", json!({"replicas": 3}), status), &format!("{field} is {wrong} of 3"));
        }
    }
    check(observed_workload("Deployment", json!({}), json!({"replicas": 1})), "replicas is 1 of 0");
}

#[test]
fn a_stateful_set_may_have_more_but_not_fewer_than_it_wants() {
    let set = |updated: i64, available: i64| {
        let status = json!({"updatedReplicas": updated, "availableReplicas": available});
        observed_workload("StatefulSet", json!({"replicas": 2}), status)
    };
    check(set(2, 2), "ready");
    check(set(3, 3), "ready");
    check(set(1, 2), "updatedReplicas is 1 of 2");
    check(set(2, 1), "availableReplicas is 1 of 2");
    check(observed_workload("StatefulSet", json!({"replicas": 0}), json!({})), "ready");
    check(observed_workload("StatefulSet", json!({}), json!({})), "updatedReplicas is 0 of 1");
}

#[test]
fn only_a_rolling_update_of_a_daemon_set_may_take_nodes_away() {
    let set = |strategy: Value, current: i64| {
        let status = json!({"desiredNumberScheduled": 7, "currentNumberScheduled": current});
        observed_workload("DaemonSet", json!({"updateStrategy": strategy}), status)
    };
    let rolling = |max: Value| json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max}});
    let cases = [
        (rolling(json!(1)), 6),
        (rolling(json!("2")), 5),
        (rolling(json!("100%")), 0),
        (rolling(json!("0%")), 7),
        // 28 % of 7 is 1.96: rounded down.
        (rolling(json!("28%")), 6),
        (rolling(json!("29%")), 5),
        (rolling(json!("much")), 7),
        (rolling(json!("much%")), 7),
        (rolling(json!(true)), 7),
        (json!({"type": "RollingUpdate"}), 7),
        (json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 5}}), 7),
        (json!({"rollingUpdate": {"maxUnavailable": 5}}), 7),
    ];
    for (strategy, enough) in cases {
        check(set(strategy.clone(), enough), "ready");
        check(set(strategy, enough - 1), &format!("currentNumberScheduled is {} of {enough}", enough - 1));
    }
}

#[test]
fn a_replica_set_and_a_replication_controller_share_their_rule() {
    for (api_version, kind) in [("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")] {
        let set = |spec: Value, status: Value| json!({"apiVersion": api_version, "kind": kind, "spec": spec, "status": status});
        check(set(json!({"replicas": 2}), json!({"readyReplicas": 2})), "ready");
        check(set(json!({"replicas": 2}), json!({"readyReplicas": 3})), "ready");
        check(set(json!({"replicas": 2}), json!({"readyReplicas": 1})), "readyReplicas is 1 of 2");
        check(set(json!({}), json!({"readyReplicas": 1})), "ready");
        check(set(json!({"replicas": 0}), json!({})), "ready");
        let failure = |status: &str| {
            let conditions = json!([{"type": "Other", "status": "True"}, {"type": "ReplicaFailure", "status": status}]);
            set(json!({}), json!({"readyReplicas": 1, "conditions": conditions}))
        };
        check(failure("True"), "condition ReplicaFailure is True");
        check(failure("False"), "ready");
    }
}

#[test]
fn kinds_of_another_group_and_kinds_without_a_rule_are_ready_by_existing() {
    let rules = [
        ("", "Pod"),
        ("", "ReplicationController"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
    ];
    let groups = ["", "apps", "batch", "apiextensions.k8s.io", "apps.example.org"];
    let kinds = ["Job", "Service", "CustomResourceDefinition"].into_iter().chain(rules.map(|(_, kind)| kind));
    for kind in kinds {
        for group in groups {
            let ruled = rules.contains(&(group, kind));
            assert_eq!(has_rule(group, &kind.into()), ruled, "{group} {kind}");
            let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
            // Wants two, has none, and nobody has observed it.
            let wanting = json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 1},
                "spec": {"replicas": 2}});
            assert_eq!(usual(&wanting).is_err(), ruled, "{group} {kind}");
        }
    }
}

#[test]
fn a_job_that_reports_both_ends_has_failed() {
    let job = |conditions: Value| {
        run(&json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}}))
    };
    let complete = json!({"type": "Complete", "status": "True"});
    assert_eq!(
        job(json!([complete, {"type": "Failed", "status": "True", "message": "m"}])),
        WorkloadState::Failed("m".into())
    );
    assert_eq!(job(json!([{"type": "Failed", "status": "True", "reason": "R"}])), WorkloadState::Failed("R".into()));
    assert_eq!(job(json!([{"type": "Failed", "status": "False", "reason": "R"}, complete])), WorkloadState::Succeeded);
    assert_eq!(job(json!([{"type": "Failed", "status": "False"}])), WorkloadState::Unfinished);
    assert_eq!(job(json!([{"type": "Complete", "status": "False"}])), WorkloadState::Unfinished);
    assert_eq!(job(Value::Null), WorkloadState::Unfinished);
}

#[test]
fn a_failed_pod_says_why_as_far_as_it_knows() {
    let failed = |mut status: Value| {
        status["phase"] = json!("Failed");
        run(&json!({"apiVersion": "v1", "kind": "Pod", "status": status}))
    };
    assert_eq!(failed(json!({"reason": "Evicted", "message": "disk"})), WorkloadState::Failed("Evicted: disk".into()));
    assert_eq!(failed(json!({"reason": "Evicted"})), WorkloadState::Failed("Evicted".into()));
    assert_eq!(failed(json!({"message": "disk"})), WorkloadState::Failed("disk".into()));
    for phase in ["Pending", "Unknown", ""] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": phase}});
        assert_eq!(run(&pod), WorkloadState::Unfinished, "{phase}");
    }
    let foreign = json!({"apiVersion": "example.org/v1", "kind": "Pod", "status": {"phase": "Succeeded"}});
    assert_eq!(run(&foreign), WorkloadState::Unfinished);
}

#[test]
fn a_definition_serves_its_kind_only_once_it_is_established() {
    let crd = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    assert!(established(&crd("Established", "True")));
    assert!(!established(&crd("Established", "False")));
    assert!(!established(&crd("NamesAccepted", "True")));
}

#[test]
fn every_operator_takes_its_number_of_values_and_no_other() {
    let cases = [
        ("exists", "no values", 0..=0),
        ("!", "no values", 0..=0),
        ("=", "exactly one value", 1..=1),
        ("==", "exactly one value", 1..=1),
        ("!=", "exactly one value", 1..=1),
        ("in", "at least one value", 1..=usize::MAX),
        ("notin", "at least one value", 1..=usize::MAX),
    ];
    for (operator, takes, fits) in cases {
        for count in 0..3 {
            let requirement =
                Requirement { path: ".a".into(), operator: operator.into(), values: vec![json!(1); count] };
            let refused = RequirementError::Values { operator: operator.into(), takes, count };
            let expected = if fits.contains(&count) { Ok(()) } else { Err(refused) };
            assert_eq!(Demand::read(&requirement).map(drop), expected, "{operator} {count}");
        }
    }
}

#[test]
fn what_is_demanded_is_told_in_the_words_of_the_configuration() {
    let message = |operator: &str, values: &[Value]| {
        let requirement = Requirement { path: "a.b".into(), operator: operator.into(), values: values.to_vec() };
        let classified = Demand::read(&requirement).unwrap().classify(&json!({"c": 1}), &StepBudget::default());
        classified.unwrap_err().to_string()
    };
    assert_eq!(message("exists", &[]), "a.b exists does not hold");
    assert_eq!(
        message("in", &[json!(1), json!("x"), json!({"k": [true]})]),
        r#"a.b in 1, "x", {"k":[true]} does not hold"#
    );
    let present = Requirement { path: ".c".into(), operator: "!".into(), values: vec![] };
    let classified = Demand::read(&present).unwrap().classify(&json!({"c": "secret"}), &StepBudget::default());
    assert_eq!(classified, Err(Unready(".c ! does not hold".into())));
}

#[test]
fn a_null_is_a_value_and_an_empty_list_gives_no_match() {
    let classified = |path: &str, operator: &str, values: &[Value]| {
        let requirement = Requirement { path: path.into(), operator: operator.into(), values: values.to_vec() };
        Demand::read(&requirement).unwrap().classify(&json!({"null": null, "none": []}), &StepBudget::default()).is_ok()
    };
    assert!(classified(".null", "exists", &[]) && !classified(".null", "!", &[]));
    assert!(classified(".null", "=", &[Value::Null]) && !classified(".null", "!=", &[Value::Null]));
    assert!(classified(".none[*].v", "!", &[]) && !classified(".none[*].v", "exists", &[]));
    assert!(!classified(".none[*].v", "notin", &[json!(1)]));
}

#[test]
fn equality_is_deep_and_blind_to_the_notation_of_numbers_alone() {
    let equal = [
        (json!(2), json!(2.0)),
        (json!(-1), json!(-1.0)),
        (json!([1, {"a": 1}]), json!([1.0, {"a": 1.0}])),
        (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})),
        (Value::Null, Value::Null),
    ];
    for (left, right) in equal {
        assert!(same(&left, &right) && same(&right, &left), "{left} {right}");
    }
    let different = [
        (json!(1), json!(true)),
        (json!(0), Value::Null),
        (json!("1"), json!(1)),
        (json!([1, 2]), json!([2, 1])),
        (json!([1]), json!([1, 1])),
        (json!({"a": 1}), json!({"a": 1, "b": null})),
        (json!({"a": 1}), json!({"b": 1})),
        (json!([]), json!({})),
    ];
    for (left, right) in different {
        assert!(!same(&left, &right) && !same(&right, &left), "{left} {right}");
    }
}

#[test]
fn the_largest_numbers_are_numbers() {
    let spec = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": i64::MIN}}});
    let status = json!({"desiredNumberScheduled": i64::MAX, "currentNumberScheduled": 1});
    check(observed_workload("DaemonSet", spec, status), &format!("currentNumberScheduled is 1 of {}", i64::MAX));
}
