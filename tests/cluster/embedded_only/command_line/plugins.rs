//! `orangery plugin new`, `test` and `conform`, as an author calls them.

use std::{fs, path::PathBuf};

use orangery_tests::{binary::Binary, repository};
use serde_json::{Value, json};

/// The manifest deployer as a file beside its registration.
fn manifest(binary: &Binary) -> PathBuf {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == "manifest").expect("it ships");
    let (packed, size, _) = builtin.component.expect("it is built");
    let folder = binary.folder().join("manifest");
    fs::create_dir_all(&folder).expect("the folder can be made");
    fs::write(folder.join("plugin.yaml"), builtin.registration).expect("the registration can be written");
    let file = folder.join("manifest.wasm");
    fs::write(&file, orangery_plugin::unpack(packed, size).expect("it unpacks")).expect("the component can be written");
    file
}

fn text(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn c_254_c_255_cases_are_run_and_what_none_of_them_exercises_is_told() {
    let binary = crate::binary().await;
    let component = text(&manifest(&binary));
    let cases = text(&repository().join("plugins/manifest/cases"));
    let ended = binary.run(&["plugin", "test", &component, "--cases", &cases]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines.contains(&"passed   hello"), "{}", ended.stdout);
    assert!(
        lines.contains(&"never answered: fail, continue-with, again-in, recover, later, denied"),
        "{}",
        ended.stdout
    );
    assert_eq!(lines.last().copied(), Some(format!("{} passed, 0 failed", lines.len() - 2).as_str()));

    let copy = binary.folder().join("manifest/cases/hello");
    fs::create_dir_all(&copy).expect("the folder can be made");
    let request = repository().join("plugins/manifest/cases/hello/request.json");
    fs::copy(request, copy.join("request.json")).expect("the case can be copied");
    fs::write(copy.join("response.json"), r#"{"proposal": {"stages": [], "next": {"finish": {}}}}"#)
        .expect("a response");
    let cases = text(&binary.folder().join("manifest/cases"));
    let test = ["plugin", "test", &component, "--cases", &cases];
    let ended = binary.run(&[test.as_slice(), &["-o", "json"]].concat()).await;
    assert_eq!(ended.code, Some(1));
    let document: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_eq!((&document["passed"], &document["failed"]), (&json!(0), &json!(1)));
    let problem = document["cases"][0]["problems"][0].as_str().unwrap_or_default();
    assert!(problem.starts_with("/proposal/stages/0: expected is nothing, answered is {"), "{document}");
    let ended = binary.run(&[test.as_slice(), &["--update"]].concat()).await;
    assert!(ended.code == Some(0) && ended.stdout.starts_with("updated  hello\n"), "{}", ended.stdout);
    assert_eq!(binary.run(&test).await.code, Some(0));
    let ended = binary.run(&["plugin", "test", &component, "--cases", "nowhere"]).await;
    assert!(ended.code == Some(2) && ended.stderr.starts_with("error: nowhere cannot be read"), "{}", ended.stderr);
}

#[tokio::test]
async fn c_256_a_deployer_is_asked_and_has_a_score() {
    let binary = crate::binary().await;
    let component = text(&manifest(&binary));
    let samples = text(&repository().join("plugins/manifest/samples"));
    let ended = binary.run(&["plugin", "conform", &component, "--samples", &samples, "-o", "json"]).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stderr, ended.stdout);
    let document: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_eq!((&document["failed"], &document["cases"][0]["case"]), (&json!(0), &json!("same-answer")));
    let engine = fs::read(repository().join("README.md")).expect("it can be read");
    fs::write(binary.folder().join("text.wasm"), engine).expect("it can be written");
    let ended = binary.run(&["plugin", "conform", "text.wasm", "--samples", &samples]).await;
    assert!(
        ended.code == Some(1) && ended.stderr.contains("text.wasm: the file is not a WebAssembly component"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn c_257_a_project_is_written_where_nothing_is() {
    let binary = crate::binary().await;
    let new = ["plugin", "new", "lemonade", "--language", "rust", "--kind", "deployer"];
    let ended = binary.run(&new).await;
    let expected = "lemonade is written; build and test it:\n  cd lemonade\n  orangery plugin build\n  \
                    orangery plugin test target/wasm32-wasip2/release/lemonade.wasm\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected), "{}", ended.stderr);
    let manifest = fs::read_to_string(binary.folder().join("lemonade/Cargo.toml")).expect("it is there");
    assert!(manifest.contains("name = \"lemonade\""), "{manifest}");
    let ended = binary.run(&new).await;
    assert!(ended.code == Some(2) && ended.stderr.starts_with("error: lemonade is there already"), "{}", ended.stderr);
    let ended = binary.run(&["plugin", "new", "../up", "--language", "rust", "--kind", "gate"]).await;
    assert!(
        ended.code == Some(2) && ended.stderr.contains("a name begins with a lower-case letter"),
        "{}",
        ended.stderr
    );
}
