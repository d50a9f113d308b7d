use serde_json::json;

use super::{files, *};
use orangery_ocm::Files;

#[test]
fn files_are_nested_maps_with_typed_entries() {
    let files = files(json!({
        "a.txt": "text",
        "empty": null,
        "n": 5,
        "folder": {"inner": {"b.txt": "deep"}},
        "typed": {"$type": "directory", "value": {"c": "in"}},
        "link": {"$type": "symlink", "value": "folder/inner"},
        "up": {"back": {"$type": "symlink", "value": "../a.txt"}, "root": {"$type": "symlink", "value": "/n"}},
        "y.yaml": {"$type": "yaml", "value": {"k": [1]}},
        "bin": "---Start Binary---\naGkA\n---End Binary---\n",
        "loop": {"$type": "symlink", "value": "loop"},
    }));
    let text = |path: &str| files.read(path).map(|bytes| String::from_utf8(bytes).unwrap());
    for (path, content) in [
        ("a.txt", "text"),
        ("/a.txt", "text"),
        ("./a.txt", "text"),
        ("empty", ""),
        ("n", "5"),
        ("folder/inner/b.txt", "deep"),
        ("folder/../a.txt", "text"),
        ("../../a.txt", "text"),
        ("typed/c", "in"),
        ("link/b.txt", "deep"),
        ("up/back", "text"),
        ("up/root", "5"),
        ("y.yaml", r#"{"k":[1]}"#),
        ("bin", "hi\0"),
    ] {
        assert_eq!(text(path), Ok(content.to_owned()), "{path}");
    }
    assert_eq!(
        files.list(""),
        Ok(["a.txt", "bin", "empty", "folder", "link", "loop", "n", "typed", "up", "y.yaml"]
            .map(str::to_owned)
            .to_vec())
    );
    assert_eq!(files.list("link"), Ok(vec!["b.txt".to_owned()]));
    assert_eq!(text("folder"), Err("folder is a folder of the blueprint, not a file".to_owned()));
    assert_eq!(files.list("a.txt"), Err("a.txt is a file of the blueprint, not a folder".to_owned()));
    assert_eq!(text("loop"), Err("the links of the blueprint file loop lead nowhere".to_owned()));
    assert!(text("a.txt/b").is_err() && text("gone").is_err());
}

#[test]
fn what_is_no_file_is_told_apart() {
    let refused = |tree: Value| FileSystem::parse(&tree).unwrap_err();
    assert_eq!(refused(json!("text")), FileSystemError::NoMap);
    assert_eq!(refused(json!({"a": {"b": []}})), FileSystemError::List { path: "a/b".to_owned() });
    let typed = FileSystemError::Typed { path: "a".to_owned(), type_: "symlink".to_owned() };
    assert_eq!(refused(json!({"a": {"$type": "symlink", "value": 1}})), typed);
    let base64 = json!({"a": "---Start Binary---\n!\n---End Binary---"});
    assert_eq!(refused(base64), FileSystemError::Base64 { path: "a".to_owned() });
}

#[test]
fn files_of_an_archive_are_a_tree() {
    let file = |path: &str, content: &str| (path.to_owned(), content.as_bytes().to_vec());
    let files = [file("./blueprint.yaml", "old"), file("templates/a.yaml", "a"), file("blueprint.yaml", "new")];
    let archive = FileSystem::of_files(files).unwrap();
    let nested = FileSystem::parse(&json!({ "blueprint.yaml": "new", "templates": { "a.yaml": "a" } })).unwrap();
    assert_eq!(archive, nested);
    let refused = |files: &[(String, Vec<u8>)]| FileSystem::of_files(files.to_vec()).unwrap_err();
    assert_eq!(refused(&[file("a", ""), file("a/b", "")]), "\"a/b\" lies in a file, not in a folder");
    assert_eq!(refused(&[file("a/b", ""), file("a", "")]), "\"a\" is a file and a folder");
    assert_eq!(refused(&[file("./", "")]), "\"./\" is no name of a file");
}

#[test]
fn c_299_limits_blueprint_names_have_so_many_bytes_and_a_message_names_the_first_files() {
    let long = "x".repeat(1025);
    let refused = FileSystem::parse(&json!({"a": {(&long): ""}})).unwrap_err();
    assert_eq!(refused, FileSystemError::LongName { name: "x".repeat(253), length: 1025 });
    let name = "x".repeat(1024);
    let many: serde_json::Map<String, Value> = (0..20_000).map(|at| (format!("{at:05}"), json!(""))).collect();
    let files = files(json!({(&name): many}));
    let message = files.read("gone").unwrap_err();
    let shown = "x".repeat(253);
    assert_eq!(
        message,
        format!("the blueprint has no file gone; it has {} and 19980 more", vec![shown.as_str(); 20].join(", "))
    );
    assert_eq!(files.check(&format!("{name}/19999")), Ok(()));
    assert!(files.check(&name).is_err() && files.check("gone").is_err());
}

#[test]
fn c_299_limits_blueprint_a_link_has_so_many_steps() {
    let to = |target: String| files(json!({"a": "text", "b": {"$type": "symlink", "value": target}})).read("b");
    assert_eq!(to(format!("a{}", "/".repeat(1_000_000))), Ok(b"text".to_vec()), "a slash is no step");
    assert_eq!(to(format!("{}a", "./".repeat(1023))), Ok(b"text".to_vec()));
    let nowhere = "the links of the blueprint file b lead nowhere".to_owned();
    assert_eq!(to(format!("{}a", "./".repeat(1024))), Err(nowhere));
}
