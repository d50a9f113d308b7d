//! Recorded renderings: their form, what is hidden in them, how answers are compared.

use std::task::{Context, Poll, Waker};

use orangery_core::digest::sha256;
use serde_json::json;

use super::*;
use crate::rendering::Output;

fn rendering(more: Value) -> RecordedRendering {
    let mut request =
        json!({"execution": "deploy", "name": "default", "file": null, "template": "t", "inputs": {}, "state": null});
    if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
        request.extend(more);
    }
    serde_json::from_value(json!({"request": request})).unwrap()
}

/// The answer of a call that waits for nothing.
fn now<T>(mut call: BoxFuture<'_, Result<T, Fault>>) -> Result<T, String> {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.map_err(|fault| fault.problem().message.clone()),
        Poll::Pending => panic!("the call waits"),
    }
}

#[test]
fn c_355_an_engine_is_told_what_is_recorded_and_what_is_not_is_a_fault_that_names_it() {
    let host = json!([
        {"ask": "now", "answer": "2026-11-21T02:10:49Z"},
        {"ask": {"file": "absent"}, "error": "there is none"},
        {"ask": {"folder": "a"}, "answer": ["x", "y"]},
        {"ask": {"folder": "b"}, "error": "it is none"},
        {"ask": {"component": {"select": {"name": "c"}}}, "answer": {"component": 1}},
        {"ask": {"resources": {"select": {}}}, "answer": [{"name": "r"}]},
        {"ask": {"resourceKey": "r"}, "answer": "key"},
        {"ask": {"resourceContent": "r"}, "answer": "content"},
        {"ask": {"resourceContent": "s"}, "answer": 1},
        {"ask": {"issueCredential": {"kind": "token", "arguments": {}}}, "error": "no"},
    ]);
    let mut recorded = rendering(json!({}));
    recorded.files = [("a/file", "text"), ("other", "")].map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    recorded.host = serde_json::from_value(host.clone()).unwrap();
    let written = serde_json::to_value(&recorded).unwrap();
    assert_eq!(serde_json::from_value::<RecordedRendering>(written).unwrap(), recorded);
    let (request, context) = RecordedHost::context(recorded.clone()).unwrap();
    assert_eq!(request, recorded.request);
    assert_eq!((context.rng.now.to_string().as_str(), context.rng.seed), ("2026-11-21T02:10:49Z", [0; 32]));
    let files = context.files.as_ref();
    assert_eq!(files.read("a/file"), Ok(b"text".to_vec()));
    assert_eq!(
        [files.read("absent"), files.read("b")].map(Result::unwrap_err),
        ["there is none", "the blueprint has no file b"]
    );
    assert_eq!(files.list("a"), Ok(vec!["x".to_owned(), "y".to_owned()]), "as it was told, whatever files there are");
    assert_eq!(files.list(""), Ok(vec!["a".to_owned(), "other".to_owned()]));
    assert_eq!(
        [files.list("b"), files.list("c")].map(Result::unwrap_err),
        ["it is none", "the blueprint has no folder c"]
    );
    let select = [("name".to_owned(), "c".to_owned())];
    let components = context.components.as_ref();
    assert_eq!(now(components.component(None, &select)), Ok(json!({"component": 1})));
    assert_eq!(now(components.resources(None, &[])), Ok(vec![json!({"name": "r"})]));
    assert_eq!(now(components.resource_key("r")), Ok("key".to_owned()));
    assert_eq!(now(components.resource_content("r")), Ok(b"content".to_vec()));
    let other = now(components.resource_content("s")).unwrap_err();
    assert!(other.starts_with("the recorded answer is of another form: "), "{other}");
    let unasked = now(components.component(Some(&json!(1)), &[])).unwrap_err();
    let expected = r#"the recording has no answer to {"component":{"from":1,"select":{}}}; add one"#;
    assert_eq!(unasked, expected);
    assert_eq!(now(context.kubeconfigs.issue_credential("token", &json!({}))), Err("no".to_owned()));
    recorded.host = serde_json::from_value(json!([{"ask": "now", "answer": "noon"}])).unwrap();
    let why = RecordedHost::context(recorded).map(drop).unwrap_err();
    assert!(why.starts_with("the recorded time is none: "), "{why}");
}

/// Hides, and answers what is left and what is to be looked for.
fn hidden(mut recorded: RecordedRendering, plain: &[&str]) -> (Value, Vec<String>) {
    let plain = plain.iter().map(|name| (*name).to_owned()).collect();
    let values = hide_places(&mut recorded, &plain, &|text| token(text));
    (serde_json::to_value(recorded).unwrap(), values)
}

fn token(text: &[u8]) -> String {
    format!("secret-{}", sha256(text).get(7..23).unwrap_or_default())
}

fn of(text: &str) -> String {
    token(text.as_bytes())
}

#[test]
fn c_355_states_and_imports_that_are_secret_or_made_are_tokens_however_short() {
    let imports = json!({"plain": "readable", "pin": 1234, "made": {"deep": ["ab", true, null, ""]}});
    let inputs = json!({"imports": imports, "cd": null, "blueprint": {"name": "readable"}});
    let recorded = rendering(json!({"inputs": inputs, "state": {"pw": "x", "encoded": "aHVudGVyMi1odW50ZXIy"}}));
    let (found, values) = hidden(recorded, &["plain"]);
    let made = json!({"deep": [of("ab"), true, null, ""]});
    let imports = json!({"plain": "readable", "pin": of("1234"), "made": made});
    assert_eq!(found["request"]["inputs"], json!({"imports": imports, "cd": null, "blueprint": {"name": "readable"}}));
    assert_eq!(found["request"]["state"], json!({"pw": of("x"), "encoded": of("aHVudGVyMi1odW50ZXIy")}));
    for value in ["x", "aHVudGVyMi1odW50ZXIy", "hunter2-hunter2", "1234", "ab"] {
        assert!(values.iter().any(|known| known == value), "{value} is not among {values:?}");
    }
    assert!(!values.iter().any(|value| value == "readable"), "{values:?}");
}

#[test]
fn c_355_mappings_see_imports_by_name_and_what_is_mapped_to_exports_was_made() {
    let of_list = |list: &str| {
        let recorded = rendering(json!({"execution": list, "inputs": {"plain": "a", "other": "b"}}));
        hidden(recorded, &["plain"]).0["request"]["inputs"].clone()
    };
    assert_eq!(of_list("importMapping"), json!({"plain": "a", "other": of("b")}));
    assert_eq!(of_list("exportMapping"), json!({"plain": of("a"), "other": of("b")}));
    assert_eq!(of_list("deploy"), json!({"plain": "a", "other": "b"}), "only imports are imports");
}

#[test]
fn c_355_what_items_and_sub_installations_have_exported_is_tokens() {
    let targets = json!({"t": {"kind": "Target"}});
    let parts = json!({"deployitems": {"db": {"pin": "ab"}}, "dataobjects": {"plain": "cd"}, "targets": targets});
    let mut inputs = parts.clone();
    inputs["values"] = parts;
    let of_list = |list: &str| {
        let recorded = rendering(json!({"execution": list, "inputs": inputs}));
        hidden(recorded, &["plain"]).0["request"]["inputs"].clone()
    };
    let parts =
        json!({"deployitems": {"db": {"pin": of("ab")}}, "dataobjects": {"plain": of("cd")}, "targets": targets});
    let mut expected = parts.clone();
    expected["values"] = parts;
    assert_eq!((of_list("export"), of_list("deploy")), (expected, inputs.clone()));
}

#[test]
fn c_355_of_targets_and_of_issued_credentials_nothing_is_left_by_which_a_cluster_is_reached() {
    let kubeconfig = |password: &str| {
        format!("apiVersion: v1\nclusters: [{{name: c}}]\nusers: [{{name: someone, user: {{password: {password}}}}}]\n")
    };
    let (long, short) = (kubeconfig("hunter2-hunter2"), kubeconfig("abc"));
    let target = |config: Value| json!({"kind": "Target", "spec": {"type": "cluster", "config": config}});
    let imports = json!({
        "one": target(json!({"kubeconfig": long})),
        "two": [target(json!({"kubeconfig": short}))],
        "three": target(json!({"url": "https://a", "pin": 7})),
        "four": {"kind": "Other", "spec": {"config": "stays"}},
    });
    let mut recorded = rendering(json!({"inputs": {"imports": imports}}));
    let asked = json!({"issueCredential": {"kind": "serviceAccount", "arguments": {"name": "stays"}}});
    let answer = json!({"kubeconfig": long, "token": "ey.short"});
    recorded.host = serde_json::from_value(json!([
        {"ask": asked, "answer": answer}, {"ask": {"resourceKey": "r"}, "answer": "stays"},
    ]))
    .unwrap();
    let (found, values) = hidden(recorded, &["one", "two", "three", "four"]);
    let expected = json!({
        "one": target(json!({"kubeconfig": long})),
        "two": [target(json!({"kubeconfig": of(&short)}))],
        "three": target(json!({"url": of("https://a"), "pin": of("7")})),
        "four": {"kind": "Other", "spec": {"config": "stays"}},
    });
    assert_eq!(found["request"]["inputs"]["imports"], expected, "credentials of a whole kubeconfig are looked for");
    assert_eq!(found["host"][0]["answer"], json!({"kubeconfig": long, "token": of("ey.short")}));
    assert_eq!(found["host"][0]["ask"], asked);
    assert_eq!(found["host"][1]["answer"], json!("stays"));
    for value in ["hunter2-hunter2", "https://a", "ey.short"] {
        assert!(values.iter().any(|known| known == value), "{value} is not among {values:?}");
    }
    assert!(!values.iter().any(|value| value == "stays"), "{values:?}");
}

#[test]
fn c_356_answers_of_engines_are_compared_and_nothing_of_them_is_shown() {
    let rendered = |output: Output, state: Value, warnings: &[&str]| {
        let warnings = warnings.iter().map(|warning| (*warning).to_owned()).collect();
        Ok(Rendered { output, state: Some(state), warnings })
    };
    let text = |text: &str| rendered(Output::Text(text.to_owned()), json!(1), &[]);
    let document = |value: Value| rendered(Output::Document(value), json!(1), &[]);
    let failed = |message: &str| {
        let (message, file, line, column, snippet, reads) = (message.to_owned(), None, None, None, None, Vec::new());
        Err(RenderFailure { message, file, line, column, snippet, reads, transient: false })
    };
    type Answer = Result<Rendered, RenderFailure>;
    let cases: [(Answer, Answer, &[&str]); 9] = [
        (text("a\nb"), text("a\nb"), &[]),
        (text("a\nsecret"), text("a\nother"), &["its output differs from line 2 on"]),
        (
            document(json!({"a": 1, "b": [1, 2]})),
            document(json!({"a": 2, "b": [1, 3]})),
            &["its output differs in 2 places"],
        ),
        (document(json!(1)), document(json!(2)), &["its output differs in 1 place"]),
        (document(json!("a")), text("a"), &["its output has another form"]),
        (
            rendered(Output::Text(String::new()), json!("secret"), &["a"]),
            rendered(Output::Text(String::new()), json!("other"), &["b"]),
            &["what it keeps for the next job differs", "it warns otherwise"],
        ),
        (text("a"), failed("no"), &["the version in use renders, the candidate fails: no"]),
        (failed("no"), text("a"), &["the version in use fails, the candidate renders"]),
        (failed("no"), failed("not that"), &["the candidate fails otherwise: not that"]),
    ];
    for (in_use, candidate, expected) in cases {
        assert_eq!(rendering_differences(&in_use, &candidate), expected);
    }
    assert_eq!(rendering_differences(&failed("no"), &failed("no")), Vec::<String>::new());
    assert_eq!(json!(RenderAnswer::from(failed("no")))["failure"]["message"], json!("no"));
    assert_eq!(json!(RenderAnswer::from(text("a")))["rendered"]["output"], json!({"text": "a"}));
}
