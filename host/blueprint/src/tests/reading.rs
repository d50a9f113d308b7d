//! What reading a blueprint pins beside its happy path: kinds, files of executions and of sub-installations.

use proptest::prelude::*;
use serde_json::json;

use super::{files, parse, *};
use orangery_ocm::Files;

#[track_caller]
fn message_of(tree: Value, expected: &str) {
    assert_eq!(Blueprint::parse(&files(tree)).unwrap_err().to_string(), expected);
}

#[test]
fn an_empty_file_is_an_empty_blueprint() {
    for text in ["", "{}", "kind: Blueprint", "# only a comment\n", "imports: null\nexports: []\n"] {
        assert_eq!(parse(text), Ok(Blueprint::default()), "{text}");
    }
}

#[test]
fn annotations_and_local_types_are_kept_as_written() {
    let blueprint = parse(concat!(
        "annotations: {ocmSchemaVersion: v3, Other/Key: x}\n",
        "localTypes: {Port: {type: integer}, any: true}\n",
    ));
    let annotations = [("ocmSchemaVersion", "v3"), ("Other/Key", "x")];
    let local_types = [("Port", json!({"type": "integer"})), ("any", json!(true))];
    let expected = Blueprint {
        annotations: annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        local_types: local_types.map(|(name, schema)| (name.to_owned(), schema)).into(),
        ..Blueprint::default()
    };
    assert_eq!(blueprint, Ok(expected));
}

#[test]
fn each_list_of_executions_is_read_into_its_own_place() {
    let entry = |name: &str| TemplateExecution {
        name: name.to_owned(),
        engine: "Jinja".to_owned(),
        file: None,
        template: String::new(),
    };
    let list = |name: &str| format!("{name}: [{{name: same, type: Jinja, template: ''}}]");
    let one = || vec![entry("same")];
    let cases = [
        ("importExecutions", Blueprint { import_executions: one(), ..Blueprint::default() }, true),
        ("deployExecutions", Blueprint { deploy_executions: one(), ..Blueprint::default() }, false),
        ("exportExecutions", Blueprint { export_executions: one(), ..Blueprint::default() }, true),
        ("subinstallationExecutions", Blueprint { subinstallation_executions: one(), ..Blueprint::default() }, false),
    ];
    for (name, expected, deploys_nothing) in cases {
        assert_eq!(expected.deploys_nothing(), deploys_nothing, "{name}");
        assert_eq!(parse(&list(name)), Ok(expected), "{name}");
    }
    // Each list has names of its own.
    let both = format!("{}\n{}\n", list("deployExecutions"), list("exportExecutions"));
    let expected = Blueprint { deploy_executions: one(), export_executions: one(), ..Blueprint::default() };
    assert_eq!(parse(&both), Ok(expected));
}

#[test]
fn executions_without_a_name_or_with_equal_names_are_read_and_told() {
    let file = "deployExecutions:\n- {type: J, template: x}\n- {name: a, type: J, template: v}\n- {name: a, type: J, template: w}\n";
    let reading = BlueprintReading::of(&files(json!({"blueprint.yaml": file})));
    let execution = |name: &str, template: &str| TemplateExecution {
        name: name.to_owned(),
        engine: "J".to_owned(),
        file: None,
        template: template.to_owned(),
    };
    let deploy_executions = vec![execution("[0]", "x"), execution("a", "v"), execution("a[2]", "w")];
    let places = ["deployExecutions[0]", "deployExecutions[1]", "deployExecutions[2]"].map(str::to_owned).to_vec();
    let expected = BlueprintReading {
        blueprint: Blueprint { deploy_executions, ..Blueprint::default() },
        executions: [("deployExecutions", places)].into(),
        names: vec![
            ("deployExecutions[0]".to_owned(), BlueprintFault::Empty),
            ("deployExecutions[2].name".to_owned(), BlueprintFault::Duplicate("a".to_owned())),
        ],
        ..BlueprintReading::default()
    };
    assert_eq!(reading, expected);
}

#[test]
fn faults_of_files_are_told_with_the_file() {
    let binary = "---Start Binary---\n/w==\n---End Binary---\n";
    message_of(json!({"blueprint.yaml": binary}), "the blueprint file blueprint.yaml is not UTF-8 text");
    message_of(json!({"blueprint.yaml": {}}), "blueprint.yaml is a folder of the blueprint, not a file");
    message_of(json!({}), "the blueprint has no file blueprint.yaml; it has none");
    let with = |subinstallation: &str, content: Value| json!({"blueprint.yaml": format!("subinstallations: [{subinstallation}]"), "s.yaml": content});
    message_of(with("{file: t.yaml}", json!("")), "the blueprint has no file t.yaml; it has blueprint.yaml, s.yaml");
    message_of(with("{file: s.yaml}", json!(binary)), "the blueprint file s.yaml is not UTF-8 text");
    message_of(
        with("{file: s.yaml}", json!("{a: 1}: b")),
        "the blueprint file s.yaml is not YAML: line 1, column 1: a list or an object cannot be a key; write a text",
    );
    message_of(
        with("{file: 5}", json!("")),
        "the blueprint file blueprint.yaml has a wrong form: subinstallations[0].file: expected a text; write it in quotes, found a number",
    );
    message_of(
        with("x", json!("")),
        "the blueprint file blueprint.yaml has a wrong form: subinstallations[0]: expected an object, found a text",
    );
}

#[test]
fn faults_of_later_entries_carry_their_own_index() {
    super::refuses("imports: [{name: a, schema: {}}, {schema: {}}]", "imports[1].name", BlueprintFault::Empty);
    let twice = "exports: [{name: a, schema: {}}, {name: a, schema: {}}]";
    super::refuses(twice, "exports[1].name", BlueprintFault::Duplicate("a".to_owned()));
    super::refuses("exports: [{name: a}]", "exports[0]", BlueprintFault::SchemaOrTargetType);
    super::refuses("exports: [{name: a, type: data}]", "exports[0].schema", BlueprintFault::Empty);
    super::refuses("exports: [{name: a, type: target}]", "exports[0].targetType", BlueprintFault::Empty);
    let both = "exports: [{name: a, type: TYPE, schema: {}, targetType: t}]";
    super::refuses(&both.replace("TYPE", "data"), "exports[0].targetType", BlueprintFault::OnlyForTargets);
    super::refuses(&both.replace("TYPE", "target"), "exports[0].schema", BlueprintFault::OnlyForData);
    let deep = concat!(
        "imports:\n",
        "- {name: a, required: false, schema: {}, imports: [{name: b, required: false, schema: {}, imports: [{name: c}]}]}\n",
    );
    super::refuses(deep, "imports[0].imports[0].imports[0]", BlueprintFault::SchemaOrTargetType);
}

#[test]
fn typed_files_need_a_fitting_value() {
    let typed = |entry: Value| FileSystem::parse(&json!({"d": {"f": entry}}));
    for type_ in ["symlink", "yaml", "json", "text"] {
        let fault = FileSystemError::Typed { path: "d/f".to_owned(), type_: type_.to_owned() };
        assert_eq!(typed(json!({"$type": type_})), Err(fault), "{type_}");
    }
    let fault = FileSystemError::Typed { path: "d/f".to_owned(), type_: "directory".to_owned() };
    assert_eq!(typed(json!({"$type": "directory", "value": "x"})), Err(fault));
    let read = |entry: Value| typed(entry).unwrap().read("d/f");
    assert_eq!(read(json!({"$type": "file", "value": "x"})), Ok(b"x".to_vec()));
    assert_eq!(read(json!({"$type": "file", "binary": "x"})), Ok(b"x".to_vec()));
    assert_eq!(read(json!({"$type": "json", "value": false})), Ok(b"false".to_vec()));
    assert_eq!(typed(json!({"$type": "directory"})).unwrap().list("d/f"), Ok(Vec::new()));
}

#[test]
fn a_path_may_follow_as_many_links_as_the_limit_and_no_more() {
    let chain = |length: usize| {
        let link =
            |index: usize| (format!("l{index}"), json!({"$type": "symlink", "value": format!("l{}", index + 1)}));
        let mut tree: serde_json::Map<String, Value> = (0..length).map(link).collect();
        tree.insert(format!("l{length}"), json!("end"));
        files(Value::Object(tree)).read("l0")
    };
    assert_eq!(chain(32), Ok(b"end".to_vec()));
    assert_eq!(chain(33), Err("the links of the blueprint file l0 lead nowhere".to_owned()));
}

proptest! {
    /// No path leads out of the files, and dots and doubled slashes change nothing.
    #[test]
    fn paths_with_dots_lead_to_the_same_file(ups in 0..4_usize, dots in 0..3_usize, slashes in 1..3_usize) {
        let files = files(json!({"a": {"b": "deep"}}));
        let path = format!("{}{}a{}b", "../".repeat(ups), "./".repeat(dots), "/".repeat(slashes));
        prop_assert_eq!(files.read(&path), Ok(b"deep".to_vec()));
    }

    /// Later exports win, the names of both are there, and merging twice changes nothing.
    #[test]
    fn merging_exports_keeps_every_name_and_prefers_the_later(
        earlier in proptest::collection::btree_map("[a-c]", 0..9_i64, 0..3),
        later in proptest::collection::btree_map("[a-c]", 0..9_i64, 0..3),
    ) {
        let map = |of: &BTreeMap<String, i64>| of.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let mut expected = earlier.clone();
        expected.extend(later.clone());
        let mut merged = serde_json::Map::from_iter([("deep".to_owned(), Value::Object(map(&earlier)))]);
        for _ in 0..2 {
            merge_exports(&mut merged, serde_json::Map::from_iter([("deep".to_owned(), Value::Object(map(&later)))]));
        }
        prop_assert_eq!(Value::Object(merged), json!({"deep": expected}));
    }
}

#[test]
fn c_01_wf_15_a_blueprint_says_how_its_items_are_run() {
    let read = |text: &str| {
        let reading = BlueprintReading::of(&files(json!({"blueprint.yaml": text})));
        let faults: Vec<String> = reading.faults.iter().map(BlueprintError::field).collect();
        (reading.blueprint.failure_policy, reading.blueprint.max_parallel.map(std::num::NonZeroU32::get), faults)
    };
    assert_eq!(read("kind: Blueprint"), (None, None, vec![]));
    let both = read("failurePolicy: ContinueIndependent\nmaxParallel: 2\n");
    assert_eq!(both, (Some(FailurePolicy::ContinueIndependent), Some(2), vec![]));
    assert_eq!(read("failurePolicy: StopTriggering").0, Some(FailurePolicy::StopTriggering));
    assert_eq!(read("maxParallel: 5000000000").1, Some(u32::MAX));
    let faults = vec!["failurePolicy".to_owned(), "maxParallel".to_owned()];
    for none in ["0", "-1"] {
        assert_eq!(read(&format!("failurePolicy: sometimes\nmaxParallel: {none}")), (None, None, faults.clone()));
    }
}

#[test]
fn everything_that_is_wrong_is_found_at_once_and_the_rest_is_read() {
    let text = concat!(
        "odd: 1\n",
        "imports:\n",
        "- {name: a, type: dat, schema: {}}\n",
        "- {name: b, schema: {}, required: false, imports: [{name: b, schema: {}}, {name: c, schema: {}, odd: 1}]}\n",
        "exports: [{name: e}]\n",
        "deployExecutions: [{name: x, type: T, template: t}, {name: x, type: T}, {name: z, type: T, file: none.tpl}]\n",
        "subinstallations: [{file: sub.yaml}, {name: UPPER, blueprint: {ref: 'cd://x'}}, {name: two, blueprint: {}}]\n",
    );
    let sub = "name: sub\nblueprint: {ref: 'cd://x'}\nimports: {data: [{name: a, dataRef: b, secret: s}]}\n";
    let reading = BlueprintReading::of(&files(json!({"blueprint.yaml": text, "sub.yaml": sub})));
    let faults: Vec<(&str, String)> = reading.faults.iter().map(|fault| (fault.file(), fault.field())).collect();
    assert_eq!(
        faults,
        [
            ("blueprint.yaml", "imports[0].type"),
            ("blueprint.yaml", "imports[1].imports[0].name"),
            ("blueprint.yaml", "exports[0]"),
            ("blueprint.yaml", "deployExecutions[1]"),
            ("blueprint.yaml", "deployExecutions[2].file"),
            ("blueprint.yaml", "subinstallations[1].name"),
            ("blueprint.yaml", "subinstallations[2].blueprint"),
        ]
        .map(|(file, field)| (file, field.to_owned()))
    );
    let unknown = [
        ("blueprint.yaml", "odd"),
        ("blueprint.yaml", "imports[1].imports[1].odd"),
        ("sub.yaml", "imports.data[0].secret"),
    ];
    assert_eq!(reading.unknown, unknown.map(|(file, field)| (file.to_owned(), field.to_owned())));
    let Blueprint { imports, deploy_executions, subinstallations, .. } = &reading.blueprint;
    assert_eq!(
        imports.iter().map(|import| (import.name.as_str(), import.conditional.len())).collect::<Vec<_>>(),
        [("b", 1)]
    );
    assert_eq!((deploy_executions.len(), subinstallations.len()), (1, 1));
    assert_eq!(reading.subinstallations, [("sub.yaml".to_owned(), String::new())]);
}

#[test]
fn a_fault_is_told_without_its_file_where_the_place_says_it() {
    let message_of = |text: &str| BlueprintReading::of(&files(json!({"blueprint.yaml": text}))).faults[0].message_of();
    assert_eq!(
        message_of("exports: [{name: e}]"),
        "exports[0] has no type: set `schema` for data or `targetType` for targets, or write `type`"
    );
    assert_eq!(message_of("kind: Pod"), "the file has kind \"Pod\"; write kind: Blueprint");
    assert_eq!(message_of("null: 1"), "an empty value cannot be a key; write the key in quotes; correct the YAML");
    assert_eq!(message_of("imports: 1"), "imports: expected a list, found a number");
}

/// As the original, for which only a written `value` is a default, also where it is null.
#[test]
fn a_default_is_what_stands_under_value() {
    let default = |text: &str| {
        let blueprint = parse(&format!("imports: [{{name: a, schema: {{}}, required: false, {text}}}]")).unwrap();
        blueprint.imports.into_iter().map(|import| import.default).collect::<Vec<_>>()
    };
    assert_eq!(default("default: {value: [1]}"), [Some(json!([1]))]);
    assert_eq!(default("default: {value: null}"), [Some(Value::Null)]);
    assert_eq!(default("default: {}"), [None]);
    assert_eq!(default("type: data"), [None]);
}

#[test]
fn c_299_limits_blueprint_what_its_files_are_read_to_has_a_sum() {
    // Each takes about four mebibytes of memory.
    let template =
        format!("name: a\nblueprint: {{ref: x}}\nimportDataMappings: {{x: [{}]}}\n", r#"{"":0},"#.repeat(5_000));
    let of = |count: usize| {
        let blueprint = json!({"subinstallations": vec![json!({"file": "s.yaml"}); count]}).to_string();
        BlueprintReading::of(&files(json!({"blueprint.yaml": blueprint, "s.yaml": template})))
    };
    assert_eq!((of(5).faults, of(5).blueprint.subinstallations.len()), (Vec::new(), 5));
    let reading = of(100);
    let read = reading.blueprint.subinstallations.len();
    assert!((5..100).contains(&read), "{read}");
    assert!(reading.blueprint.memory() <= orangery_core::yaml::MOST_YAML_BYTES, "{}", reading.blueprint.memory());
    assert_eq!(reading.faults.len(), 100 - read);
    let BlueprintError::File { field, reason, .. } = &reading.faults[0] else { panic!("{:?}", reading.faults[0]) };
    assert_eq!(*field, format!("subinstallations[{read}].file"));
    assert_eq!(
        *reason,
        "s.yaml has no room: what a blueprint names as YAML, each file as often as it is named, may take 50331648 bytes of memory \
         together; name fewer"
    );
}
