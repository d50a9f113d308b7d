//! Blueprints of `examples/` that are rendered without a cluster: the commands of a README, and a component in four
//! languages.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use orangery_tests::{binary::Ended, fail, own_template, repository};
use serde_json::json;

use super::offline::{document, write};

/// The commands in a README: indented lines, with those that a backslash continues.
fn commands(readme: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let text = lines.join("\n").replace("\\\n", " ");
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn example() -> PathBuf {
    repository().join("examples").join("offline")
}

/// What its cases print.
const TESTED: &str = "\
passed   no-trees
passed   three-trees
examples/offline/blueprint/templates/deploy.yaml, deployExecutions \"garden\": 26 of 26 lines
examples/offline/blueprint/blueprint.yaml, exportExecutions \"gate\": 2 of 2 lines
2 passed, 0 failed
";

#[tokio::test]
async fn the_commands_of_the_offline_example_print_what_its_readme_says() {
    let binary = crate::binary().await;
    std::os::unix::fs::symlink(repository().join("examples"), binary.folder().join("examples")).expect("a link");
    let readme = fs::read_to_string(example().join("README.md")).expect("it has a README");
    let mut printed: Vec<(String, Ended)> = Vec::new();
    for command in commands(&readme) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        if let ["cargo", "run", "--", arguments @ ..] = words.as_slice() {
            let ended = binary.run(arguments).await;
            assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
            printed.push((arguments.join(" "), ended));
        } else {
            let done = Command::new(words[0]).args(&words[1..]).current_dir(binary.folder()).status();
            assert!(done.expect("it starts").success(), "{words:?}");
        }
    }
    let [(_, checked), (_, bare), (_, all), (_, tested), (_, archive)] = printed.as_slice() else {
        fail(&format!("{printed:?}"))
    };
    assert_eq!(checked.stdout, "1 blueprint checked: 0 errors, 0 warnings\n");
    assert!(!bare.stdout.contains("exports:\n  gate:") && bare.stdout.contains("season: 1"), "{}", bare.stdout);
    assert_eq!(archive.stdout, bare.stdout);
    assert_eq!(tested.stdout, TESTED);
    let file = example().join("rendered.yaml");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, &all.stdout).expect("what is printed can be written");
    }
    assert_eq!(all.stdout, fs::read_to_string(file).unwrap_or_default());
}

const IMPORTS: &str = "\
imports:
  trees: [{name: orange, kilograms: 35}, {name: lemon, kilograms: 24}, {name: kumquat, kilograms: 1}]
  cluster:
    apiVersion: landscaper.gardener.cloud/v1alpha1
    kind: Target
    metadata: {name: my-cluster}
    spec: {type: landscaper.gardener.cloud/kubernetes-cluster}
";

fn tmp() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own-template");
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Renders the folder of `examples/own-template` with this component.
async fn check(component: &[u8]) {
    let binary = crate::binary().await;
    let example = repository().join("examples/own-template/blueprint");
    for file in ["blueprint.yaml", "season.txt"] {
        write(&binary, &format!("blueprint/{file}"), fs::read(example.join(file)).expect("the example has the file"));
    }
    write(&binary, "blueprint/render.wasm", component);
    write(&binary, "imports.yaml", IMPORTS);
    let ended = binary.run(&["render", "blueprint", "-i", "imports.yaml", "-o", "json"]).await;
    let item = own_template::item(json!({"name": "my-cluster", "namespace": "default"}));
    let expected = json!({"name": "blueprint", "deployItems": [item], "exports": {}});
    assert_eq!(document(&ended)["installations"], json!([expected]));
}

#[tokio::test]
async fn the_component_in_rust_renders_offline() {
    check(&own_template::rust(Path::new(env!("CARGO_TARGET_TMPDIR")))).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn the_component_in_go_renders_offline() {
    check(&own_template::go(Path::new(env!("OUT_DIR")))).await;
}

#[tokio::test]
#[cfg_attr(without_npm, ignore = "needs node and npm: apt-get install npm")]
async fn the_component_in_javascript_renders_offline() {
    check(&own_template::javascript(&tmp())).await;
}

#[tokio::test]
#[cfg_attr(without_python, ignore = "needs python3 with venv: apt-get install python3-venv")]
async fn the_component_in_python_renders_offline() {
    check(&own_template::python(&tmp())).await;
}
