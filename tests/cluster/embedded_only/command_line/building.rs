//! `orangery plugin build`, `watch` and `bench`, and what `up` makes of a new build. The tools of Rust are played: a script copies the
//! component whose path is the source.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use orangery_tests::{binary::Binary, repository};
use serde_json::{Value, json};

const CARGO: &str = r#"#!/bin/sh
if grep -q broken src/lib.rs; then
  echo 'error: it does not compile' >&2
  exit 101
fi
built=target/wasm32-wasip2/release
mkdir -p "$built"
cp "$(cat src/lib.rs)" "$built/next"
mv "$built/next" "$built/lemonade.wasm"
printf '{"reason": "compiler-artifact", "manifest_path": "%s/Cargo.toml", "filenames": ["%s/lemonade.wasm"]}\n' "$PWD" "$PWD/$built"
"#;

const REGISTRATION: &str = "apiVersion: orangery.dev/v1alpha1
kind: Plugin
metadata: {name: lemonade}
spec:
  version: 0.1.0
  component: {file: target/wasm32-wasip2/release/lemonade.wasm}
  deployer: {itemTypes: [example.org/lemonade]}
  grants: {clusters: {target: true}, reads: [{}], writes: [{}]}
";

const BUILT: &str = "lemonade/target/wasm32-wasip2/release/lemonade.wasm";

/// The bytes of a component that ships.
fn shipped(name: &str) -> Vec<u8> {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).expect("it ships");
    let (packed, size, _) = builtin.component.expect("it is built");
    orangery_plugin::unpack(packed, size).expect("it unpacks")
}

/// A binary whose path has nothing but these tools, with a project, and two versions of its component.
struct Workshop {
    binary: Binary,
    tools: Binary,
}

impl Workshop {
    async fn new() -> Self {
        let tools = crate::binary().await;
        let folder = tools.folder().join("tools");
        fs::create_dir_all(folder.join("lib")).expect("the folder can be made");
        fs::write(folder.join("lib/libstd-1.rlib"), "").expect("it can be written");
        let rustc = format!("#!/bin/sh\necho '{}/lib'\n", folder.display());
        for (name, text) in [("cargo", CARGO), ("rustc", rustc.as_str())] {
            fs::write(folder.join(name), text).expect("a script can be written");
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(folder.join(name), executable).expect("it can be made a program");
        }
        let binary = tools.after(&format!("export PATH='{}':/usr/bin:/bin", folder.display()));
        let workshop = Self { binary, tools };
        let mut manifest = shipped("manifest");
        workshop.write("one.wasm", &manifest);
        // A section that nobody knows.
        manifest.extend([0, 4, 3, b't', b'w', b'o']);
        workshop.write("two.wasm", &manifest);
        workshop.write("jinja.wasm", &shipped("jinja"));
        workshop.write("lemonade/Cargo.toml", b"[package]\n");
        workshop.write("lemonade/plugin.yaml", REGISTRATION.as_bytes());
        workshop.save("one.wasm");
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.binary.folder().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("the folder can be made");
        fs::write(path, content).expect("the file can be written");
    }

    /// Saves a source that makes this component.
    fn save(&self, component: &str) {
        self.write("lemonade/src/lib.rs", self.path(component).to_string_lossy().as_bytes());
    }

    fn built(&self) -> Vec<u8> {
        fs::read(self.path(BUILT)).expect("it was built")
    }

    /// Copies a case of the manifest deployer into the folder `cases`.
    fn record(&self, name: &str) {
        for file in ["request.json", "response.json"] {
            let case =
                fs::read(repository().join("plugins/manifest/cases").join(name).join(file)).expect("it is there");
            self.write(&format!("cases/{name}/{file}"), &case);
        }
    }
}

#[tokio::test]
async fn c_350_a_project_is_built_and_a_build_that_fails_leaves_what_was_there() {
    let workshop = Workshop::new().await;
    let ended = workshop.binary.run(&["plugin", "build", "lemonade"]).await;
    assert!(ended.code == Some(0) && ended.stdout.starts_with(&format!("{BUILT}: a deployer of ")), "{ended:?}");
    let ended = workshop.binary.run(&["plugin", "build", "lemonade", "-o", "json"]).await;
    let document: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    let size = workshop.built().len();
    assert_eq!(
        (&document["file"], &document["size"], &document["world"]),
        (&json!(BUILT), &json!(size), &json!("deployer"))
    );
    workshop.save("broken.wasm");
    let ended = workshop.binary.run(&["plugin", "build", "lemonade"]).await;
    let sentence = format!(
        "error: it does not compile\nerror: cargo build --release --target wasm32-wasip2 --message-format=json-render-diagnostics \
         ended with exit status: 101; correct what it says above: {BUILT} is what it was before\n"
    );
    assert_eq!((ended.code, ended.stderr, workshop.built().len()), (Some(1), sentence, size));
    workshop.save("jinja.wasm");
    let ended = workshop.binary.run(&["plugin", "build", "lemonade"]).await;
    let sentence =
        format!("error: {BUILT} exports nothing of a deployer, which plugin.yaml claims it is; correct one of them\n");
    assert_eq!((ended.code, ended.stderr), (Some(1), sentence));
}

#[tokio::test]
async fn c_350_what_is_missing_for_a_build_is_told_with_how_to_get_it() {
    let workshop = Workshop::new().await;
    let plain = crate::binary().await;
    let without = plain.after("export PATH=/nowhere");
    let project = workshop.path("lemonade").to_string_lossy().into_owned();
    let ended = without.run(&["plugin", "build", &project]).await;
    let sentence = "error: cargo is not on the path, and builds projects in Rust; install Rust: https://rustup.rs\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), sentence));
    fs::remove_file(workshop.tools.folder().join("tools/lib/libstd-1.rlib")).expect("it is there");
    let ended = workshop.binary.run(&["plugin", "build", "lemonade"]).await;
    let sentence = "error: Rust cannot build for wasm32-wasip2 yet; add that with: rustup target add wasm32-wasip2\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), sentence));
    for (command, folder) in [("build", "nowhere"), ("watch", "nowhere"), ("build", "cases"), ("watch", "cases")] {
        workshop.record("hello");
        let ended = workshop.binary.run(&["plugin", command, folder]).await;
        let is = match folder {
            "nowhere" => ended.stderr.starts_with("error: nowhere is no folder; "),
            _ => ended.stderr.starts_with("error: cases is no project of a known language: "),
        };
        assert!(ended.code == Some(2) && is, "{ended:?}");
    }
}

#[tokio::test]
async fn c_351_a_save_builds_and_one_that_does_not_compile_says_why() {
    let workshop = Workshop::new().await;
    let mut watching = workshop.binary.start(&["plugin", "watch", "lemonade"]);
    watching.line_with(": a deployer of ").await;
    let first = workshop.built();
    workshop.save("broken.wasm");
    watching.logged("lemonade.wasm is what it was before").await;
    assert_eq!(workshop.built(), first);
    workshop.save("two.wasm");
    watching.line_with(": a deployer of ").await;
    assert_ne!(workshop.built(), first);
    // A folder that is new is watched as well.
    workshop.write("lemonade/src/more/words.rs", b"");
    watching.line_with(", the same as before").await;
    workshop.write("lemonade/src/more/words.rs", b"more");
    watching.line_with(", the same as before").await;
}

#[tokio::test]
async fn c_352_up_uses_a_new_build_and_goes_on_with_the_one_before_where_that_is_none() {
    let workshop = Workshop::new().await;
    assert_eq!(workshop.binary.run(&["plugin", "build", "lemonade"]).await.code, Some(0));
    let mut up = workshop.binary.start(&["up", "--ephemeral", "--port", "0", "--plugins", "lemonade"]);
    up.line_with("KUBECONFIG=").await;
    workshop.save("two.wasm");
    assert_eq!(workshop.binary.run(&["plugin", "build", "lemonade"]).await.code, Some(0));
    up.logged("is in use from now on; jobs under way end with the one before").await;
    workshop.write(BUILT, b"\0asm, but not really");
    up.logged("error: the new lemonade is not used: lemonade 0.1.0: the file is not a WebAssembly component").await;
    workshop.write("lemonade/plugin.yaml", b"kind: [");
    up.logged("what was registered before stays in use").await;
    workshop.write("lemonade/plugin.yaml", REGISTRATION.replace("0.1.0", "0.2.0").as_bytes());
    workshop.save("one.wasm");
    assert_eq!(workshop.binary.run(&["plugin", "build", "lemonade"]).await.code, Some(0));
    up.logged("lemonade 0.2.0 (sha256:").await;
}

#[tokio::test]
async fn c_353_cases_are_measured_and_two_versions_compared() {
    let workshop = Workshop::new().await;
    workshop.record("hello");
    let bench = ["plugin", "bench", "one.wasm", "--runs", "2"];
    let ended = workshop.binary.run(&bench).await;
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!((ended.code, lines.len()), (Some(0), 2), "{ended:?}");
    assert!(lines[0].starts_with("case   calls  instantiate") && lines[1].starts_with("hello  1 "), "{ended:?}");
    let ended = workshop.binary.run(&[&bench[..], &["--against", "two.wasm", "-o", "json"]].concat()).await;
    let document: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    let case = &document["cases"][0];
    assert_eq!((&document["runs"], &case["name"], &case["cost"]["calls"]), (&json!(2), &json!("hello"), &json!(1)));
    for figure in ["instantiateNanoseconds", "callNanoseconds", "memoryBytes", "fuel"] {
        assert!(case["cost"][figure].as_u64() > Some(0), "{document}");
    }
    // The two differ by a section that nobody runs.
    assert_eq!((&case["ratio"]["fuel"], &case["ratio"]["memory"]), (&json!(1.0), &json!(1.0)), "{document}");
    assert_eq!(case["cost"]["fuel"], case["against"]["fuel"]);
}

#[tokio::test]
async fn c_353_what_cannot_be_measured_is_told() {
    let workshop = Workshop::new().await;
    workshop.record("hello");
    workshop.write("plugin.yaml", REGISTRATION.as_bytes());
    let bytes = fs::read(workshop.path("one.wasm")).expect("it is there");
    workshop.write("half.wasm", bytes.get(..bytes.len() / 2).expect("it has a half"));
    fs::create_dir(workshop.path("empty")).expect("the folder can be made");
    let told = async |arguments: &[&str]| {
        let ended = workshop.binary.run(&[&["plugin", "bench"], arguments].concat()).await;
        (ended.code, ended.stderr)
    };
    let half = told(&["half.wasm"]).await;
    assert!(half.0 == Some(1) && half.1.starts_with("error: half.wasm: "), "{half:?}");
    let other =
        "error: jinja.wasm exports nothing of a deployer, which its registration claims it is; correct one of them\n";
    assert_eq!(told(&["jinja.wasm"]).await, (Some(2), other.to_owned()));
    assert_eq!(told(&["one.wasm", "--against", "jinja.wasm"]).await, (Some(2), other.to_owned()));
    let nowhere = told(&["one.wasm", "--cases", "nowhere"]).await;
    assert!(nowhere.0 == Some(2) && nowhere.1.starts_with("error: nowhere cannot be read"), "{nowhere:?}");
    let empty = told(&["one.wasm", "--cases", "empty"]).await;
    assert!(empty.0 == Some(2) && empty.1.starts_with("error: empty holds no case; "), "{empty:?}");
    let missing = told(&["missing.wasm"]).await;
    assert!(missing.0 == Some(2) && missing.1.starts_with("error: missing.wasm cannot be read"), "{missing:?}");
    let wrong = json!({"proposal": {"stages": [], "next": {"finish": {}}}}).to_string();
    workshop.write("cases/hello/response.json", wrong.as_bytes());
    let ended = workshop.binary.run(&["plugin", "bench", "one.wasm", "--runs", "1"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    assert!(
        ended.stdout.contains("one.wasm: hello does not pass: /proposal/stages/0: expected is nothing"),
        "{ended:?}"
    );
}
