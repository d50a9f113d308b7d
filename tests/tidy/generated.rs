//! Generated files are current. `UPDATE=1 cargo test -p orangery-tests --test tidy` writes them anew.

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        env, fs,
    };

    use orangery_api::Admission;
    use serde_json::Value;

    use crate::repository::{display, files_ending, none, root};

    /// The custom resource definitions as the chart carries them: path to text.
    fn definitions() -> BTreeMap<String, String> {
        let crds = orangery_api::crds();
        let files = crds.into_iter().map(|crd| {
            let name = crd.metadata.name.clone().expect("a definition has a name");
            let (plural, group) = name.split_once('.').expect("its name is plural.group");
            let text = yaml_serde::to_string(&crd).expect("a definition is YAML");
            (format!("charts/orangery/crds/{group}_{plural}.yaml"), text)
        });
        files.collect()
    }

    /// The admission policies as the chart carries them.
    fn policies() -> (String, String) {
        let documents = orangery_api::admission().into_iter().flat_map(|Admission { policy, binding }| {
            let policy = yaml_serde::to_string(&policy).expect("a policy is YAML");
            let binding = yaml_serde::to_string(&binding).expect("a binding is YAML");
            [policy, binding]
        });
        let documents = documents.collect::<Vec<_>>().join("---\n");
        let text = format!("{{{{- if .Values.validation }}}}\n{documents}{{{{- end }}}}\n");
        ("charts/orangery/templates/policies.yaml".to_owned(), text)
    }

    /// A value of the chart: its path, what it is without anybody's say, and what it is for.
    struct ChartValue {
        path: String,
        default: String,
        about: String,
    }

    /// The values of a file whose comments stand above what they are about; lists and maps without names of ours are on one line.
    fn values(text: &str) -> Vec<ChartValue> {
        let (mut path, mut comments, mut found) = (Vec::<&str>::new(), Vec::<String>::new(), Vec::<ChartValue>::new());
        for line in text.lines() {
            let content = line.trim_start();
            if let Some(comment) = content.strip_prefix('#') {
                let comment = comment.strip_prefix(' ').unwrap_or(comment);
                let is_example = comment.starts_with("  ");
                comments.push(if is_example { format!("`{}`", comment.trim()) } else { comment.to_owned() });
            } else if content.starts_with("- ") {
                let list = found.last_mut().expect("a list is that of a value");
                list.default = format!("{}{content} ", list.default);
            } else if let Some((name, value)) = content.split_once(':') {
                path.truncate((line.len() - content.len()) / 2);
                path.push(name);
                let about = std::mem::take(&mut comments).join(" ").replace('|', "\\|");
                found.push(ChartValue { path: path.join("."), default: value.trim().to_owned(), about });
            } else {
                comments.clear();
            }
        }
        // What only has others below it, and nothing to say of them.
        found.retain(|value| !(value.default.is_empty() && value.about.is_empty()));
        found
    }

    /// The first line of the table of values in the README of the chart.
    const VALUES: &str = "| value | default | what it is for |\n";

    #[test]
    fn the_readme_of_the_chart_has_every_value() {
        let path = root().join("charts/orangery/README.md");
        let readme = fs::read_to_string(&path).expect("the README is there");
        let text = fs::read_to_string(root().join("charts/orangery/values.yaml")).expect("the values are there");
        let (before, after) = readme.split_once(VALUES).expect("the README has the table");
        let (_, after) = after.split_once("\n\n").expect("the README goes on");
        let rows = values(&text).into_iter().map(|ChartValue { path, default, about }| {
            let default = default.trim();
            let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
            format!("| `{path}` | {default} | {about} |")
        });
        let rows: Vec<String> = std::iter::once("|---|---|---|".to_owned()).chain(rows).collect();
        let wanted = format!("{before}{VALUES}{}\n\n{after}", rows.join("\n"));
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &wanted).expect("the file can be written");
        } else if readme != wanted {
            none("the values are made of values.yaml by UPDATE=1", vec!["charts/orangery/README.md".to_owned()]);
        }
    }

    #[test]
    fn the_schema_of_the_chart_has_every_value_and_no_other() {
        let read = |name: &str| {
            let text = fs::read_to_string(root().join("charts/orangery").join(name)).expect("the file is there");
            orangery_core::yaml::decode(&text).expect("the file is YAML")
        };
        let (values, schema) = (read("values.yaml"), read("values.schema.json"));
        let mut violations = Vec::new();
        compare("", &values, &schema, &mut violations);
        none("values.yaml and values.schema.json have the same members, and the schema allows no other", violations);
    }

    /// What differs between a value and the properties of its schema, where it lists some.
    fn compare(path: &str, value: &Value, schema: &Value, violations: &mut Vec<String>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            violations.push(format!("{path}: other members are allowed"));
        }
        let Some(members) = value.as_object() else { return violations.push(format!("{path}: is no map")) };
        let missing = members.keys().filter(|name| !properties.contains_key(*name));
        violations.extend(missing.map(|name| format!("{path}.{name}: has no schema")));
        for (name, schema) in properties {
            match members.get(name) {
                Some(member) => compare(&format!("{path}.{name}"), member, schema, violations),
                // Of charts that have this one as a part; and what Kubernetes has besides.
                None if ["", ".resources"].contains(&path) => {}
                None => violations.push(format!("{path}.{name}: is no value")),
            }
        }
    }

    #[test]
    fn the_definitions_in_the_chart_are_those_of_the_code() {
        let mut wanted = definitions();
        wanted.extend([policies()]);
        let update = env::var_os("UPDATE").is_some();
        let mut violations = Vec::new();
        for (path, text) in &wanted {
            let file = root().join(path);
            if update {
                fs::create_dir_all(file.parent().expect("a file lies in a folder")).expect("the folder can be made");
                fs::write(&file, text).expect("the file can be written");
            } else if fs::read_to_string(&file).unwrap_or_default() != *text {
                violations.push(format!("{path} is not what `orangery crd` prints"));
            }
        }
        let known: BTreeSet<_> = wanted.into_keys().collect();
        let present = files_ending(&[".yaml"]).into_iter().map(|file| display(&file));
        let here = present.filter(|file| file.starts_with("charts/orangery/crds/"));
        violations.extend(here.filter(|file| !known.contains(file)).map(|file| format!("{file}: no such kind")));
        none("write the definitions anew with UPDATE=1", violations);
    }
}
