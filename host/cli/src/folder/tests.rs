use std::{fs, path::Path};

use serde_json::json;

use super::*;

/// A folder with these files, and its path.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// Reads the folder: what stands where, or the error, with the folder's own path as `DIR`.
fn message_of(folder: &Path) -> Result<Vec<String>, String> {
    let rendered = |text: String| text.replace(&folder.display().to_string(), "DIR");
    match read(&[folder.to_owned()]) {
        Ok(manifests) => Ok(manifests
            .into_iter()
            .map(|manifest| rendered(format!("{} {} {}", manifest.origin, manifest.kind, manifest.name)))
            .collect()),
        Err(error) => Err(rendered(error.to_string())),
    }
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: Result<&[&str], &str>) {
    let folder = folder(files);
    let expected = expected.map(|lines| lines.iter().map(ToString::to_string).collect()).map_err(str::to_owned);
    assert_eq!(message_of(folder.path()), expected);
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n";

#[test]
fn c_166_of_a_folder_nothing_is_read_that_is_not_in_it() {
    let folder = folder(&[("in/a.yaml", MAP), ("secret.yaml", "PASSWORD=hunter2\n\tb: [")]);
    let inside = folder.path().join("in");
    let place = |name: &str| inside.join(name);
    std::os::unix::fs::symlink("a.yaml", place("b.yaml")).unwrap();
    let both = ["DIR/a.yaml:1 ConfigMap m", "DIR/b.yaml:1 ConfigMap m"].map(str::to_owned);
    assert_eq!(message_of(&inside), Ok(both.to_vec()));
    for elsewhere in ["../secret.yaml", "/proc/self/environ", "/dev/zero"] {
        std::os::unix::fs::symlink(elsewhere, place("c.yaml")).unwrap();
        let message = "DIR/c.yaml leads out of its folder, of which nothing else is read or written; copy what it means into the folder, or \
                       name that itself";
        assert_eq!(message_of(&inside), Err(message.to_owned()), "{elsewhere}");
        fs::remove_file(place("c.yaml")).unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(place("c.yaml")).unwrap();
    let message = "DIR/c.yaml is neither a file nor a folder; remove it, or name the files that are meant";
    assert_eq!(message_of(&inside), Err(message.to_owned()));
    // What the caller names itself is read wherever it leads.
    std::os::unix::fs::symlink("in/a.yaml", folder.path().join("d.yaml")).unwrap();
    assert_eq!(message_of(&folder.path().join("d.yaml")), Ok(vec!["DIR:1 ConfigMap m".to_owned()]));
}

#[test]
fn c_166_limits_folder_a_file_has_a_length() {
    let folder = folder(&[("a.yaml", MAP)]);
    let file = fs::OpenOptions::new().write(true).open(folder.path().join("a.yaml")).unwrap();
    file.set_len(LONGEST + 1).unwrap();
    assert_eq!(message_of(folder.path()), Err("DIR/a.yaml has more than 64 MiB; split it".to_owned()));
}

#[test]
fn files_are_read_by_name_and_documents_keep_their_lines() {
    let two = "# first\n---\n# a comment\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: ns}\n";
    let json = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}}"#;
    check(
        &[
            ("b.yaml", two),
            ("a.yml", MAP),
            ("c.json", json),
            ("README.md", "no"),
            (".hidden.yaml", "no"),
            ("sub/x.yaml", "no"),
        ],
        Ok(&[
            "DIR/a.yml:1 ConfigMap m",
            "DIR/b.yaml:4 Secret s",
            "DIR/b.yaml:9 Namespace ns",
            "DIR/c.json:1 ConfigMap j",
        ]),
    );
}

#[test]
fn lists_are_taken_apart() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}\n- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: b}}}}\n---\n{MAP}"
    );
    check(
        &[("x.yaml", &list)],
        Ok(&["DIR/x.yaml:1 ConfigMap a", "DIR/x.yaml:1 ConfigMap b", "DIR/x.yaml:7 ConfigMap m"]),
    );
}

#[test]
fn a_manifest_holds_the_object_whole() {
    let folder = folder(&[(
        "x.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: demo}\ndata: {a: '1'}\n",
    )]);
    let file = folder.path().join("x.yaml");
    assert_eq!(
        read(std::slice::from_ref(&file)).unwrap(),
        [FolderManifest {
            origin: ObjectOrigin { file, line: 1 },
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("demo".into()),
            name: "m".into(),
            object: json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "demo"}, "data": {"a": "1"}}),
        }]
    );
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    assert_eq!(
        message_of(Path::new("/no/such/folder")).unwrap_err(),
        "DIR does not exist; name a folder or file with Kubernetes objects, such as examples/hello-world"
    );
}

#[test]
fn a_folder_without_manifests_names_its_subfolders() {
    check(
        &[("hello/x.yaml", MAP), ("data/x.yaml", MAP), ("README.md", "x")],
        Err("the folder DIR holds no .yaml, .yml or .json file; name one of its subfolders: data, hello"),
    );
    check(&[], Err("the folder DIR holds no .yaml, .yml or .json file; put manifests into it, or name another folder"));
}

#[test]
fn empty_documents_are_no_objects() {
    check(
        &[("x.yaml", "# nothing\n---\n")],
        Err(
            "DIR holds no Kubernetes object: its documents are all empty; write one with apiVersion, kind and metadata.name",
        ),
    );
}

#[test]
fn what_names_an_object_must_be_there() {
    check(&[("x.yaml", "---\nmetadata: {name: x}\n")], Err("DIR/x.yaml:2: this object has no kind; add it"));
    check(&[("x.yaml", "kind: Pod\nmetadata: {name: x}\n")], Err("DIR/x.yaml:1: this Pod has no apiVersion; add it"));
    check(
        &[("x.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: 1}\n")],
        Err("DIR/x.yaml:1: metadata.name of this Pod is not text; put it in quotes"),
    );
    check(&[("x.yaml", "kind: Pod\napiVersion: v1\n")], Err("DIR/x.yaml:1: this Pod has no metadata.name; add it"));
    check(
        &[("x.yaml", "- a\n")],
        Err(
            "DIR/x.yaml:1: this document is a list, not a Kubernetes object; it needs apiVersion, kind and metadata.name",
        ),
    );
}

#[test]
fn c_228_samples_of_a_project_are_told_from_objects() {
    let project = folder(&[("samples/hello.yaml", "greeting: hello\n"), ("plugin.yaml", "")]);
    let error = message_of(&project.path().join("samples")).unwrap_err();
    let sentence = "DIR/hello.yaml:1: this is a configuration to try a component with, not a Kubernetes object; it is for \
                    `orangery plugin conform`: name a folder with objects";
    assert_eq!(error, sentence);
    let other = folder(&[("samples/hello.yaml", "greeting: hello\n")]);
    let error = message_of(&other.path().join("samples")).unwrap_err();
    assert_eq!(error, "DIR/hello.yaml:1: this object has no kind; add it");
}

#[test]
fn yaml_that_does_not_parse_is_shown_at_its_place() {
    let broken = format!("{MAP}---\nkind: Pod\nmetadata: {{name: x\nspec: 1\n");
    let error = message_of(folder(&[("x.yaml", &broken)]).path()).unwrap_err();
    let (first, snippet) = error.split_once('\n').unwrap();
    assert!(first.starts_with("DIR/x.yaml:8:") && first.ends_with("; correct the YAML"), "{error}");
    assert!(snippet.contains("spec: 1") && snippet.contains('^'), "{error}");
}

#[test]
fn what_stands_near_a_mistake_in_a_secret_is_not_shown() {
    let broken = "kind: Secret\nstringData: {password: hunter2\nx: 1\n";
    let error = message_of(folder(&[("x.yaml", broken)]).path()).unwrap_err();
    assert!(error.ends_with("; correct the YAML") && !error.contains("hunter2"), "{error}");
}

#[test]
fn what_others_need_is_sent_first() {
    let manifest = |kind: &str, name: &str| FolderManifest {
        origin: ObjectOrigin { file: PathBuf::from("x"), line: 1 },
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: None,
        name: name.into(),
        object: json!({}),
    };
    let given =
        [("Installation", "i"), ("Pod", "p"), ("DataObject", "d"), ("Target", "t"), ("Pod", "a"), ("Namespace", "n")];
    let sorted = in_order_of_need(given.map(|(kind, name)| manifest(kind, name)).to_vec());
    let names: Vec<String> = sorted.into_iter().map(|manifest| manifest.name.into()).collect();
    assert_eq!(names, ["n", "t", "d", "p", "a", "i"]);
}
