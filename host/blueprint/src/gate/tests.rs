use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::*;
use crate::{ImportDefinition, ImportKind};
use orangery_core::workflow::{Answer, Answers, GateKind};

fn gate_expression(written: Value) -> GateExpression {
    serde_json::from_value(written).unwrap()
}

fn around() -> ExpressionScope<'static> {
    ExpressionScope {
        imports: Some(Arc::new([("enabled".to_owned(), Type::Bool), ("replicas".to_owned(), Type::Number)].into())),
        predecessors: Some(Predecessors::Named(["db"].into())),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn document(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

#[test]
fn what_can_be_asked_passes() {
    for (gate, written) in [
        (GateKind::When, json!({"expression": "imports.enabled && items.db.exports.url != ''"})),
        (GateKind::Ready, json!({"expression": "item.exports.ready == true && item.status.phase == 'Succeeded'"})),
        (
            GateKind::Deleted,
            json!({"expression": "objects.data == null", "objects": {"data": {"apiVersion": "v1", "kind": "Secret", "name": "d"}}}),
        ),
        (GateKind::Activate, json!({"crdPresent": {"group": "example.org", "kind": "Widget"}})),
        (GateKind::Ready, json!({"component": {"type": "example.org/metric", "config": {"over": 3}}})),
    ] {
        assert_eq!(check(&gate_expression(written.clone()), gate, &around()), Ok(()), "{written}");
    }
}

#[test]
fn what_cannot_be_asked_is_told_before_anything_runs() {
    let crd = |group: &str, kind: &str| json!({"crdPresent": {"group": group, "kind": kind}});
    for (gate, written, message) in [
        (GateKind::When, json!({}), "it needs exactly one of expression, component and crdPresent"),
        (
            GateKind::When,
            json!({"expression": "true", "component": {"type": "x"}}),
            "it needs exactly one of expression, component and crdPresent",
        ),
        (GateKind::When, json!({"component": {}}), "component has no type; set it"),
        (GateKind::Activate, crd("", "Widget"), "crdPresent has no group; set it"),
        (GateKind::Activate, crd("example.org", ""), "crdPresent has no kind; set it"),
        (
            GateKind::When,
            json!({"expression": "true", "objects": {"a": {"kind": "Secret", "name": "d"}}}),
            "objects.a has no apiVersion; set it",
        ),
        (
            GateKind::When,
            json!({"expression": "imports.enabled &&"}),
            "the expression `imports.enabled &&` cannot be used: line 1, column 19: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ),
        (
            GateKind::When,
            json!({"expression": "imports.replicas == 'many'"}),
            "the expression `imports.replicas == 'many'` cannot be used: == stands between a number and a string",
        ),
        (
            GateKind::When,
            json!({"expression": "items.web.exports.x == 1"}),
            "the expression `items.web.exports.x == 1` cannot be used: there is no web in items; known are: db",
        ),
        (
            GateKind::When,
            json!({"expression": "item.exports.x == 1"}),
            "the expression `item.exports.x == 1` cannot be used: there is no item; known are: imports, items, objects",
        ),
        (
            GateKind::Deleted,
            json!({"expression": "items.db.exports.x == 1"}),
            "the expression `items.db.exports.x == 1` cannot be used: there is no items; known are: imports, objects",
        ),
    ] {
        assert_eq!(check(&gate_expression(written.clone()), gate, &around()), Err(message.to_owned()), "{written}");
    }
}

#[test]
fn wf_08_an_answer_has_a_reason_and_a_sentence() {
    let ask = |source: &str| evaluate(&compile(source).unwrap(), &document(json!({"imports": {"n": 3}})));
    assert_eq!(ask("imports.n > 2"), GateResult::new(Answer::Met, "ExpressionHolds", "`imports.n > 2` holds"),);
    assert_eq!(
        ask("imports.n > 3"),
        GateResult::new(Answer::NotMet, "ExpressionDoesNotHold", "`imports.n > 3` does not hold"),
    );
}

#[test]
fn c_07_an_evaluation_that_fails_answers_neither_yes_nor_no() {
    let list: Vec<u32> = (0..2000).collect();
    let values = document(json!({"imports": {"zero": 0, "list": list}}));
    for (source, text) in [
        ("imports.nothing > 1", "`imports.nothing > 1` cannot be evaluated: no such key: nothing"),
        ("1 / imports.zero == 1", "`1 / imports.zero == 1` cannot be evaluated: "),
        ("imports.zero", "`imports.zero` cannot be evaluated: it is of type int and not bool"),
        ("imports.list.all(a, imports.list.all(b, imports.list.all(c, true)))", "it could cost "),
    ] {
        let answered = evaluate(&compile(source).unwrap(), &values);
        assert_eq!((answered.answer, answered.reason.as_str()), (Answer::Unknown, "EvaluationFailed"), "{source}");
        assert!(answered.message.contains(text), "{}", answered.message);
    }
}

#[test]
fn wf_06_a_kind_is_present_when_it_is_defined_served_and_established() {
    let crd = |served: bool, established: &str| {
        json!({
            "spec": {"group": "example.org", "names": {"kind": "Widget"}, "versions": [{"name": "v1", "served": served}]},
            "status": {"conditions": [{"type": "Established", "status": established}]},
        })
    };
    let of = |version: &str| Definition {
        target: None::<String>,
        group: "example.org".to_owned(),
        kind: "Widget".into(),
        version: version.to_owned(),
    };
    let ask = |definition: &Definition, known: &[Value]| {
        let answered = is_defined(definition, known);
        (answered.answer, answered.reason, answered.message)
    };
    let text = |answer, reason: &str, message: &str| (answer, reason.to_owned(), message.to_owned());
    let absent = text(Answer::NotMet, "CrdAbsent", "no CustomResourceDefinition defines Widget.example.org");
    assert_eq!(ask(&of(""), &[]), absent);
    assert_eq!(ask(&Definition { kind: "Other".into(), ..of("") }, &[crd(true, "True")]).0, Answer::NotMet);
    assert_eq!(ask(&of(""), &[crd(true, "True")]), text(Answer::Met, "CrdPresent", "Widget.example.org is defined"));
    assert_eq!(ask(&of("v1"), &[crd(true, "True")]).0, Answer::Met);
    let unserved = "the definition of Widget.example.org does not serve v2";
    assert_eq!(ask(&of("v2"), &[crd(true, "True")]), text(Answer::NotMet, "CrdVersionAbsent", unserved));
    assert_eq!(ask(&of(""), &[crd(false, "True")]).0, Answer::NotMet);
    assert_eq!(ask(&of(""), &[crd(true, "False")]).0, Answer::Unknown);
}

#[test]
fn wf_09_a_record_keeps_when_it_was_asked_first_and_since_when_it_says_so() {
    let say = |before: Option<&GateRecord>, answer, second: i64| {
        GateRecord::following(before, GateResult::new(answer, "R", second.to_string()), at(second))
    };
    let first = say(None, Answer::NotMet, 1);
    let same = say(Some(&first), Answer::NotMet, 2);
    let other = say(Some(&same), Answer::Unknown, 3);
    let times = |record: &GateRecord| (record.since, record.asked, record.answered.message.clone());
    assert_eq!(times(&first), (at(1), at(1), "1".to_owned()));
    assert_eq!(times(&same), (at(1), at(1), "2".to_owned()));
    assert_eq!(times(&other), (at(3), at(1), "3".to_owned()));
    let between = Timestamp::from_millisecond(1001).unwrap();
    let answered = GateResult::unknown("R", "m");
    assert_eq!(GateRecord::following(None, answered, between).asked, at(2), "the status has whole seconds");
}

#[test]
fn a_gate_expression_that_is_not_set_is_met_and_one_that_was_not_asked_is_unknown() {
    let gates = GateExpressions::of([
        (GateKind::When, Some(GateExpression::<String>::expression("true"))),
        (GateKind::Ready, Some(GateExpression::expression("true"))),
        (GateKind::Deleted, None),
    ]);
    let record = GateRecord::following(None, GateResult::new(Answer::NotMet, "R", "m"), at(1));
    let records = [(GateKind::Ready, record)].into();
    let expected =
        Answers { activate: Answer::Met, when: Answer::Unknown, ready: Answer::NotMet, deleted: Answer::Met };
    assert_eq!(answers(&gates, &records), expected);
    assert!(gates.decide() && !GateExpressions::<String>::default().decide());
}

#[test]
fn what_decided_in_a_job_is_not_asked_again() {
    let settled =
        |gate, answer| is_settled(gate, &GateRecord::following(None, GateResult::new(answer, "R", "m"), at(1)));
    for gate in [GateKind::Activate, GateKind::When] {
        assert!(settled(gate, Answer::Met) && settled(gate, Answer::NotMet) && !settled(gate, Answer::Unknown));
    }
    for gate in [GateKind::Ready, GateKind::Deleted] {
        assert!(settled(gate, Answer::Met) && !settled(gate, Answer::NotMet) && !settled(gate, Answer::Unknown));
    }
}

#[test]
fn c_03_a_gate_expression_is_given_up_when_the_time_of_its_item_is_up_and_not_before() {
    let record = |answer| GateRecord::following(None, GateResult::new(answer, "R", "nobody knows"), at(10));
    let give_up = |answer, limit, second| {
        given_up("deploy item db", GateKind::Ready, &record(answer), true, limit, at(second))
            .map(|failure| failure.message)
    };
    let limit = Some(Duration::from_secs(60));
    assert_eq!(give_up(Answer::NotMet, limit, 69), None);
    let text = "readyWhen of deploy item db was not met within its timeout of 1m: nobody knows".to_owned();
    assert_eq!(give_up(Answer::NotMet, limit, 70), Some(text.clone()));
    assert_eq!(give_up(Answer::Unknown, limit, 70), Some(text));
    assert_eq!(give_up(Answer::Met, limit, 70), None);
    assert_eq!(give_up(Answer::NotMet, None, 1_000_000), None);
}

#[test]
fn a_gate_expression_that_cannot_change_is_not_waited_for() {
    let of = |gate, answer| {
        let record = GateRecord::following(None, GateResult::new(answer, "R", "so it is"), at(1));
        given_up("deploy item db", gate, &record, false, None, at(1)).map(|failure| failure.message)
    };
    let text = "when of deploy item db cannot be told, and it looks at nothing that could change: so it is";
    assert_eq!(of(GateKind::When, Answer::Unknown), Some(text.to_owned()));
    let text = "readyWhen of deploy item db is not met, and it looks at nothing that could change: so it is";
    assert_eq!(of(GateKind::Ready, Answer::NotMet), Some(text.to_owned()));
    assert_eq!(of(GateKind::When, Answer::NotMet), None);
}

#[test]
fn c_26_gate_expressions_keep_only_what_they_read_of_imports_and_nothing_by_which_a_cluster_is_reached() {
    let target =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "t", "config": {"kubeconfig": "secret"}}});
    let given = document(json!({
        "a": 1, "b": {"x": {"y": 1, "z": 2}, "w": [1]}, "t": target("t"), "l": [target("l")], "m": {"k": target("m")},
    }));
    let definition = |name: &str, kind| ImportDefinition {
        name: name.to_owned(),
        required: true,
        default: None,
        conditional: Vec::new(),
        kind,
    };
    let definitions = [
        definition("t", ImportKind::Target { target_type: "t".to_owned() }),
        definition("l", ImportKind::TargetList { target_type: "t".to_owned() }),
        definition("m", ImportKind::TargetMap { target_type: "t".to_owned() }),
    ];
    let read = |written: Value| {
        let gates = GateExpressions::of([(GateKind::When, Some(gate_expression(written)))]);
        json!(read_imports([&gates], &given, &definitions))
    };
    let expression = |source: &str| read(json!({"expression": source}));
    assert_eq!(expression("imports.a == 1 && has(imports.other)"), json!({"a": 1}));
    assert_eq!(expression("imports.b.x.y == 1"), json!({"b": {"x": {"y": 1}}}));
    assert_eq!(expression("imports.b.x.y == 1 && imports.b.x != null"), json!({"b": {"x": {"y": 1, "z": 2}}}));
    assert_eq!(expression("has(imports.b.none)"), json!({"b": {}}));
    assert_eq!(expression("imports.b.w[0] == 1"), json!({"b": {"w": [1]}}));
    assert_eq!(expression("true"), json!({}));
    assert_eq!(read(json!({"crdPresent": {"group": "g", "kind": "K"}})), json!({}));
    assert_eq!(expression("imports.t.spec.type == 't'"), json!({"t": {"spec": {"type": "t"}}}));
    assert_eq!(expression("imports.t.spec.config != null"), json!({"t": {"spec": {}}}));
    let plain = |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "t"}});
    let all = json!({"a": 1, "b": given["b"], "t": plain("t"), "l": [plain("l")], "m": {"k": plain("m")}});
    assert_eq!(expression("imports['a'] == 1"), all);
    assert_eq!(read(json!({"component": {"type": "c"}})), all);
}

#[test]
fn targets_of_a_gate_expression_can_be_named_otherwise() {
    let written = json!({
        "expression": "true",
        "objects": {
            "a": {"target": "one", "apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "d"},
            "b": {"apiVersion": "v1", "kind": "Node", "name": "e"},
        },
    });
    let renamed =
        gate_expression(written.clone()).try_map(|name| if name == "one" { Ok("two".to_owned()) } else { Err(name) });
    let mut expected = written.clone();
    expected["objects"]["a"]["target"] = json!("two");
    assert_eq!(serde_json::to_value(renamed.unwrap()).unwrap(), expected);
    assert_eq!(gate_expression(written).try_map(|_| Err::<String, _>("no such")), Err("no such"));
}

#[test]
fn limits_gate_a_message_shows_so_many_letters_of_an_expression() {
    assert_eq!(super::check::display(&"a".repeat(120)), "a".repeat(120));
    assert_eq!(super::check::display(&"ä".repeat(121)), "ä".repeat(120) + "…");
}

#[test]
fn an_expression_with_more_operators_than_the_stack_bears_is_refused() {
    assert_eq!(compile(&format!("1{} == 1", "+1".repeat(8000))).unwrap_err(), "it has 8002 operators, 300 are allowed");
    assert!(compile(&format!("1{} == 299", "+1".repeat(298))).is_ok(), "300 operators");
    assert_eq!(compile(&format!("1{} == 300", "+1".repeat(299))).unwrap_err(), "it has 301 operators, 300 are allowed");
    let short = compile(&format!("1{} == 101", "+1".repeat(100))).unwrap();
    assert_eq!(evaluate(&short, &Map::new()).answer, Answer::Met);
}

#[test]
fn imports_that_an_installation_does_not_give_may_be_asked_for() {
    let when = gate_expression(json!({"expression": "has(imports.db) && imports.db.enabled"}));
    let source = "has(imports.db) && imports.db.enabled";
    let message =
        format!("the expression `{source}` cannot be used: there is no db in imports; known are: enabled, replicas");
    assert_eq!(check(&when, GateKind::When, &around()), Err(message));
    assert_eq!(check(&when, GateKind::When, &ExpressionScope { imports: None, ..around() }), Ok(()));
}

#[test]
fn a_point_is_found_by_its_field_and_by_no_other_word() {
    assert_eq!(GateKind::ALL.map(|gate| GateKind::named(gate.name())), GateKind::ALL.map(Some));
    assert_eq!(GateKind::ALL.map(GateKind::name), ["activateWhen", "when", "readyWhen", "deletedWhen"]);
    assert_eq!(GateKind::named("whenever"), None);
}

#[test]
fn gate_expressions_say_where_they_look_and_what_they_decide() {
    let expression = gate_expression(json!({"expression": "true"}));
    let object = json!({"target": "one", "apiVersion": "v1", "kind": "ConfigMap", "name": "c"});
    let objects = gate_expression(json!({"expression": "true", "objects": {"c": object}}));
    let defined = gate_expression(json!({"crdPresent": {"target": "two", "group": "g", "kind": "K"}}));
    assert_eq!([&expression, &objects, &defined].map(GateExpression::looks_at_clusters), [false, true, true]);
    let gates = |set: &[(GateKind, &GateExpression)]| {
        GateExpressions::of(set.iter().map(|(gate, gate_expression)| (*gate, Some((*gate_expression).clone()))))
    };
    let none = gates(&[]);
    let later = gates(&[(GateKind::Ready, &objects), (GateKind::Deleted, &defined)]);
    assert_eq!((none.is_empty(), none.decide(), none.targets().count()), (true, false, 0));
    assert_eq!((later.is_empty(), later.decide()), (false, false));
    assert_eq!(later.targets().collect::<Vec<_>>(), ["one", "two"]);
    for gate in [GateKind::Activate, GateKind::When] {
        let decides = gates(&[(gate, &expression)]);
        assert!(decides.decide() && !decides.is_empty());
    }
}

#[test]
fn c_21_an_expression_over_imports_alone_is_known_as_such() {
    let alone = |written: Value| {
        let gate_expression = gate_expression(written);
        let expression = compile(gate_expression.expression.as_deref().unwrap()).unwrap();
        reads_imports_alone(&gate_expression, &expression)
    };
    assert!(alone(json!({"expression": "imports.a && imports.b > 3"})));
    assert!(alone(json!({"expression": "true"})));
    assert!(!alone(json!({"expression": "imports.a && items.b.exports.c == 1"})));
    assert!(!alone(json!({"expression": "items.b.exports.c == 1"})));
    let objects = json!({"c": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}});
    assert!(!alone(json!({"expression": "imports.a", "objects": objects})));
}
