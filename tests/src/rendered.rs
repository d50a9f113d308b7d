//! The chart of the operator, rendered by the stock Helm.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{helm::Helm, repository, yaml};

/// The namespace that it is rendered for.
pub const NAMESPACE: &str = "orangery-system";

/// The set of values that is rendered as for an upgrade.
pub const UPGRADE: &str = "upgrade";

/// The folder of values, and of what is made of them.
fn folder() -> PathBuf {
    repository().join("tests/rendered")
}

/// The names of all sets of values, in order.
pub fn names() -> Vec<String> {
    let entries =
        fs::read_dir(folder()).expect("the folder is there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> =
        entries.filter_map(|name| Some(name.to_str()?.strip_suffix(".values.yaml")?.to_owned())).collect();
    names.sort();
    names
}

/// What the chart makes of a set of values, without the admission policies, which are generated.
pub async fn render(name: &str) -> String {
    let (chart, values) = (repository().join("charts/orangery"), folder().join(format!("{name}.values.yaml")));
    let (chart, values) = (chart.to_string_lossy(), values.to_string_lossy());
    let mut arguments = vec![
        "template",
        "orangery",
        &chart,
        "--namespace",
        NAMESPACE,
        "--set",
        "validation=false",
        "--values",
        &values,
    ];
    if name == UPGRADE {
        arguments.push("--is-upgrade");
    }
    // It ends in an empty line, which no file of ours does.
    format!("{}\n", Helm::of("{}").does(&arguments).await.trim_end())
}

/// What it has to be.
pub fn expected(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.yaml"))).unwrap_or_default()
}

/// The objects of what was rendered.
pub fn objects(rendered: &str) -> Vec<Value> {
    yaml::documents(rendered).into_iter().filter(|object| !object.is_null()).collect()
}

/// The object of a kind; there has to be one.
pub fn of_kind<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    let mut found = objects.iter().filter(|object| object.get("kind").is_some_and(|found| found == kind));
    let first = found.next().expect("there is an object of the kind");
    assert_eq!(found.count(), 0, "there are other objects of kind {kind}");
    first
}
