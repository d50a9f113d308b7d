use serde_json::json;

use super::*;

#[test]
fn outputs_are_decoded_leniently() {
    let imports = decode_imports(&json!({"Bindings": {"A": 1}, "errors": null})).unwrap();
    assert_eq!(imports, ImportOutput { bindings: json!({"A": 1}).as_object().unwrap().clone(), errors: Vec::new() });
    assert_eq!(decode_imports(&json!({"errors": ["x"]})).unwrap().errors, ["x"]);
    assert_eq!(decode_imports(&Value::Null), Ok(ImportOutput::default()));
    assert_eq!(
        decode_exports(&json!([])).unwrap_err().to_string(),
        "the rendered document has a wrong form: expected an object, found a list"
    );
    let sub = json!({"apiversion": "v", "kind": "InstallationTemplate", "name": "a", "blueprint": {"filesystem": {}}});
    assert_eq!(decode_subinstallations(&json!({"subInstallations": [sub]})), Ok(vec![template(json!({"name": "a"}))]));
    let bare = json!({"subinstallations": [{"name": "a", "blueprint": {"filesystem": {}}}]});
    let kind = TemplateError::Kind { name: "a".to_owned(), found: String::new() };
    assert_eq!(decode_subinstallations(&bare), Err(OutputError::Subinstallation(kind)));
}

#[test]
fn exports_of_several_executions_are_merged_deeply() {
    let mut exports = decode_exports(&json!({"exports": {"a": {"x": 1, "y": {"p": 1}}, "b": [1]}})).unwrap();
    merge_exports(&mut exports, json!({"a": {"y": {"q": 2}}, "b": [2], "c": null}).as_object().unwrap().clone());
    assert_eq!(Value::Object(exports), json!({"a": {"x": 1, "y": {"p": 1, "q": 2}}, "b": [2], "c": null}));
}

#[test]
fn state_is_kept_unless_it_is_empty() {
    assert_eq!(state(&json!({"state": {"a": 1}})), Some(&json!({"a": 1})));
    assert_eq!(state(&json!({"State": [0]})), Some(&json!([0])));
    for output in [json!({}), json!({"state": {}}), json!({"state": null}), json!([])] {
        assert_eq!(state(&output), None, "{output}");
    }
}
