//! `orangery blueprint test` as users call it.

use std::fs;

use orangery_tests::binary::{Binary, Ended};
use serde_json::{Value, json};

use super::offline::write;

const BLUEPRINT: &str = "\
imports:
- name: size
  type: data
  schema: {type: integer}
deployExecutions:
- {name: go, type: GoTemplate, file: go.yaml}
- {name: jinja, type: Jinja, file: jinja.yaml}
- name: spiff
  type: Spiff
  template:
    deployItems: []
";

const GO: &str = "\
{{- define \"name\" -}}
web
{{- end }}
deployItems:
- name: {{ template \"name\" }}
  type: example.org/none
  config:
    {{- if gt (int .imports.size) 2 }}
    size: large
    {{- else }}
    size: small
    {{- end }}
";

const JINJA: &str = "\
{% macro length(text) %}
{{ text }}
{% endmacro %}
{# one of two words #}
{% set letters = length(\"abc\") | length %}
deployItems:
{% for index in range(imports.size) %}
- name: item-{{ index }}
  type: example.org/none
  config: {letters: {{ letters }}}
{% endfor %}
";

fn cases(binary: &Binary, cases: &[(&str, &str)]) {
    for (file, text) in [("blueprint.yaml", BLUEPRINT), ("go.yaml", GO), ("jinja.yaml", JINJA)] {
        write(binary, &format!("b/{file}"), text);
    }
    for (name, text) in cases {
        write(binary, &format!("b/tests/{name}.yaml"), text);
    }
}

async fn test(binary: &Binary, more: &[&str]) -> Ended {
    binary.run(&[&["blueprint", "test", "b"], more].concat()).await
}

#[tokio::test]
async fn c_303_c_304_c_305_cases_pass_fail_and_are_updated_and_lines_that_none_renders_are_told() {
    let binary = crate::binary().await;
    cases(
        &binary,
        &[
            ("small", "imports: {size: 1}\nsnapshot: true\nassertions:\n- assert: items.web.config.size == 'small'\n"),
            ("wrong", "imports: {size: one}\nfails: integer\nassertions:\n- assert: error != null && items == {}\n"),
            (
                "bad",
                "imports: {size: 0}\nassertions:\n- assert: size(items) == 2\n  message: an item for each\n- {assert: item}\n",
            ),
            ("none", "import: {}\n"),
        ],
    );
    let expected = "\
failed   bad
         an item for each: `size(items) == 2` does not hold
         `item` cannot be told: there is no item; known are: error, exports, imports, items, notWanted, \
         notWantedSubinstallations, state, subinstallations, waitsFor, warnings
failed   none
         there is no field \"import\"; fields are: imports, name, namespace, now, seed, fails, assertions, snapshot, server, \
         deployItems, state, subinstallations; docs/blueprint-tests.md has the form
failed   small
         there is no snapshots/small.yaml; write it with --update, and read what it wrote
passed   wrong
b/go.yaml, deployExecutions \"go\": 9 of 10 lines; not rendered: 9
b/jinja.yaml, deployExecutions \"jinja\": 7 of 7 lines
b/blueprint.yaml, deployExecutions \"spiff\": rendered, all of its 1 lines
1 passed, 3 failed
";
    let first = test(&binary, &["--junit", "junit.xml"]).await;
    assert_eq!((first.code, first.stdout.as_str()), (Some(1), expected), "{}", first.stderr);
    let junit = fs::read_to_string(binary.folder().join("junit.xml")).expect("it is written");
    assert!(junit.contains("<testsuite name=\"b\" tests=\"4\" failures=\"3\" skipped=\"0\">"), "{junit}");
    for name in ["bad", "none"] {
        fs::remove_file(binary.folder().join(format!("b/tests/{name}.yaml"))).expect("it is there");
    }
    let updated = test(&binary, &["--update"]).await;
    assert!(updated.stdout.starts_with("updated  small\npassed   wrong\n"), "{}{}", updated.stdout, updated.stderr);
    write(&binary, "b/go.yaml", GO.replace("size: small", "size: small # 1"));
    let same = test(&binary, &["-o", "json"]).await;
    let same: Value = serde_json::from_str(&same.stdout).expect("it is JSON");
    assert_eq!((&same["passed"], &same["failed"], &same["cases"][0]["problems"]), (&json!(2), &json!(0), &json!([])));
    assert_eq!(same["coverage"][0]["notReached"], json!([9]));
    // The length of what the macro makes is rendered, so that its body cannot be marked.
    assert_eq!((&same["coverage"][1]["lines"], &same["coverage"][1]["notReached"]), (&json!(7), &json!([])));
    write(&binary, "b/go.yaml", GO.replace("name: {{ template", "name: my-{{ template"));
    let other = test(&binary, &[]).await;
    assert_eq!(other.code, Some(1));
    for line in
        ["- - name: web", "+ - name: my-web", "`items.web.config.size == 'small'` cannot be told: no such key: web"]
    {
        assert!(other.stdout.contains(line), "{line}: {}", other.stdout);
    }
}

#[tokio::test]
async fn c_303_a_folder_without_cases_or_blueprint_cannot_be_tested() {
    let binary = crate::binary().await;
    cases(&binary, &[]);
    let none = test(&binary, &[]).await;
    let message = "error: b/tests holds no case; a case is a YAML file in it: docs/blueprint-tests.md\n";
    assert_eq!((none.code, none.stderr.as_str()), (Some(2), message));
    assert_eq!(binary.run(&["blueprint", "test", "nowhere"]).await.code, Some(2));
}
