//! The README of the chart says what each rule of its RBAC is for, and the chart begins with what keeps tenants apart.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use crate::repository::{display, files_ending, root, text};

    /// Files with lists of rules.
    const FILES: &str = "charts/orangery/files/";

    fn list(rule: &Value, field: &str) -> String {
        let entries = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    }

    /// File, resources with their names, and verbs, of each rule.
    fn declared() -> BTreeSet<[String; 3]> {
        let files = files_ending(&["-rules.yaml", "/rules.yaml"]);
        let files = files.into_iter().filter(|path| display(path).starts_with(FILES));
        let mut rows = BTreeSet::new();
        for path in files {
            let file = display(&path).trim_start_matches(FILES).to_owned();
            let rules = orangery_core::yaml::decode(&text(&path)).expect("rules are YAML");
            for rule in rules.as_array().into_iter().flatten() {
                let names = list(rule, "resourceNames");
                let of = if names.is_empty() { String::new() } else { format!(" ({names})") };
                let row = [file.clone(), format!("{}{of}", list(rule, "resources")), list(rule, "verbs")];
                assert!(rows.insert(row.clone()), "a rule stands twice: {row:?}");
            }
        }
        rows
    }

    #[test]
    fn c_38_the_readme_of_the_chart_says_what_each_rule_is_for() {
        let readme = text(&root().join("charts/orangery/README.md"));
        let rows = readme.lines().filter(|line| line.starts_with("| ") && line.contains("rules.yaml |"));
        let mut documented = BTreeSet::new();
        for row in rows {
            let cells: Vec<String> = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            let [file, resources, verbs, what] = <[String; 4]>::try_from(cells).expect("a row has four cells");
            assert!(!what.is_empty(), "{row}");
            documented.insert([file, resources, verbs]);
        }
        assert_eq!(documented, declared());
    }

    #[test]
    fn what_the_chart_installs_without_values_trusts_no_tenant() {
        let values = orangery_core::yaml::decode(&text(&root().join("charts/orangery/values.yaml"))).expect("YAML");
        let expected = [
            ("/defaultPolicy", json!("restricted")),
            ("/targetAccounts", json!("opted-in")),
            ("/mockDeployer", json!(false)),
            ("/validation", json!(true)),
            ("/callProcesses", json!("untrusted")),
            ("/components/plainHTTP", json!([])),
            ("/metrics/enabled", json!(false)),
            ("/metrics/authentication", json!("token")),
            ("/networkPolicy/enabled", json!(true)),
            ("/networkPolicy/metricsFrom", json!([])),
            ("/resources/limits/memory", json!("2Gi")),
        ];
        let found = expected.each_ref().map(|(path, _)| (*path, values.pointer(path).cloned().unwrap_or(Value::Null)));
        assert_eq!(found, expected);
    }
}
