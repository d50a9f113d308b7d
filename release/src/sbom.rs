//! The list of parts, in the form of CycloneDX 1.6: crates of the binary, modules of its components in Go, and what else is in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    Contents,
    error::Error,
    files::{read, read_text},
};

/// The crate that the binary is made of.
const PROGRAM: &str = "orangery";

/// The list, from what `cargo metadata` says and from files `go.mod`.
pub(crate) fn sbom(contents: &Contents) -> Result<Value, Error> {
    let wrong = |why: &str| Error::content(&contents.metadata, why);
    let metadata: Value =
        serde_json::from_slice(&read(&contents.metadata)?).map_err(|error| wrong(&error.to_string()))?;
    let packages: BTreeMap<&str, &Value> =
        list(&metadata, "/packages").filter_map(|package| Some((text(package, "/id")?, package))).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata, "/resolve/nodes").filter_map(|node| Some((text(node, "/id")?, node))).collect();
    let is_program = |package: &&&Value| text(package, "/name") == Some(PROGRAM);
    let program = packages.values().find(is_program).and_then(|package| text(package, "/id"));
    let program =
        program.ok_or_else(|| wrong("has no package orangery; make it with `cargo metadata --format-version 1`"))?;
    let (mut components, mut dependencies) = (Vec::new(), Vec::new());
    for id in reached(&nodes, program) {
        let Some(package) = packages.get(id) else { continue };
        let needs: BTreeSet<String> =
            needs(&nodes, id).into_iter().filter_map(|id| packages.get(id)).map(|one| purl(one)).collect();
        dependencies.push(json!({"ref": purl(package), "dependsOn": needs}));
        if id != program {
            components.push(component(package));
        }
    }
    for path in &contents.go_modules {
        components.extend(go_modules(&read_text(path)?));
    }
    for purl in &contents.parts {
        components.push(generic(purl)?);
    }
    components.sort_by_key(|component| text(component, "/purl").map(str::to_owned));
    components.dedup();
    let program = packages.get(program).map(|package| purl(package)).unwrap_or_default();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": contents.created(),
            "component": {
                "type": "application", "bom-ref": program, "name": PROGRAM, "version": contents.version, "purl": program,
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The packages that a package is built of, itself first; no dependencies of tests.
fn reached<'a>(nodes: &BTreeMap<&'a str, &'a Value>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(needs(nodes, id));
        }
    }
    found
}

fn needs<'a>(nodes: &BTreeMap<&'a str, &'a Value>, id: &str) -> Vec<&'a str> {
    let built = |needed: &&Value| list(needed, "/dep_kinds").any(|kind| text(kind, "/kind") != Some("dev"));
    nodes
        .get(id)
        .copied()
        .into_iter()
        .flat_map(|node| list(node, "/deps").filter(built))
        .filter_map(|one| text(one, "/pkg"))
        .collect()
}

fn purl(package: &Value) -> String {
    let field = |name| text(package, name).unwrap_or_default();
    format!("pkg:cargo/{}@{}", field("/name"), field("/version"))
}

fn component(package: &Value) -> Value {
    let purl = purl(package);
    let mut component = json!({
        "type": "library", "bom-ref": purl, "name": package.get("name"), "version": package.get("version"), "purl": purl,
    });
    if let (Some(license), Some(fields)) = (text(package, "/license"), component.as_object_mut()) {
        // Older crates write a slash.
        let expression = license.split('/').map(str::trim).collect::<Vec<&str>>().join(" OR ");
        fields.insert("licenses".to_owned(), json!([{"expression": expression}]));
    }
    component
}

/// A part that is neither a crate nor a module of Go.
fn generic(purl: &str) -> Result<Value, Error> {
    let named = purl.strip_prefix("pkg:generic/").and_then(|part| part.split_once('@'));
    let (name, version) = named
        .filter(|(name, version)| !name.is_empty() && !version.is_empty())
        .ok_or_else(|| Error::content(purl, "names no part; write it as pkg:generic/NAME@VERSION"))?;
    Ok(json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}))
}

/// The modules that a `go.mod` requires.
fn go_modules(text: &str) -> Vec<Value> {
    let mut is_block = false;
    let mut modules = Vec::new();
    for line in text.lines().map(str::trim) {
        let required = match line.strip_prefix("require ") {
            Some("(") => {
                is_block = true;
                continue;
            }
            Some(one) => one,
            None if is_block && line != ")" => line,
            None => {
                is_block = false;
                continue;
            }
        };
        let mut words = required.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next().filter(|version| version.starts_with('v'))) {
            let purl = format!("pkg:golang/{name}@{version}");
            modules.push(json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}));
        }
    }
    modules
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_go_are_read_from_lines_and_blocks() {
        let text = "module a\n\ngo 1.26\n\nrequire (\n\tb.example/b v1.2.3\n\tc v0.1.0 // indirect\n)\n\nrequire d v2.0.0\n\nreplace e => ../e\n";
        let purls: Vec<Value> = go_modules(text).into_iter().map(|module| module["purl"].clone()).collect();
        assert_eq!(purls, ["pkg:golang/b.example/b@v1.2.3", "pkg:golang/c@v0.1.0", "pkg:golang/d@v2.0.0"]);
    }
}
