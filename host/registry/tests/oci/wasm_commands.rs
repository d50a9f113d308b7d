//! `orangery plugin push`, `pull`, `sign` and `verify` against a real registry with TLS and a password.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use clap::Parser as _;
use orangery_cli::{Cli, Command, Exit, Terminal, terminal::Appearance};
use orangery_core::digest::sha256;
use orangery_registry::oci::{ArtifactReference, Client};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::registry::{PASSWORD, RealRegistry};

/// A writer whose text can be looked at.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A registry, and a folder with what a user has.
struct Desk {
    registry: RealRegistry,
    folder: TempDir,
}

impl Desk {
    async fn open() -> Self {
        let (registry, folder) = (RealRegistry::start().await, tempfile::tempdir().expect("a folder"));
        let desk = Self { registry, folder };
        desk.write("config.json", desk.registry.docker_config(PASSWORD).as_bytes());
        desk.write("ca.pem", desk.registry.authority().as_bytes());
        desk.write("mine.wasm", &component("manifest"));
        for name in ["a", "b"] {
            let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
            desk.write(&format!("{name}.key"), pair.serialize_pem().as_bytes());
            desk.write(&format!("{name}.pub"), pair.public_key_pem().as_bytes());
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).expect("a file");
    }

    /// Carries `orangery plugin …` or `orangery wit …` out, `@name` standing for a file and `%` for the registry: whether it went well,
    /// and what was written, with the same words.
    async fn run(&self, line: &str) -> (Exit, String) {
        let flags = "--registry-config @config.json --registry-ca @ca.pem";
        let room = if line.starts_with("wit ") { "" } else { "plugin " };
        let line = format!("orangery {room}{line} {flags}");
        let folder = format!("{}/", self.folder.path().display());
        let words: Vec<String> = line
            .split(' ')
            .map(|word| match word.strip_prefix('@') {
                Some(name) => format!("{folder}{name}"),
                None => word.replace('%', &self.registry.host),
            })
            .collect();
        let done = tokio::task::spawn_blocking(move || command(&words)).await.expect("it ends");
        (done.0, done.1.replace(&folder, "@").replace(&self.registry.host, "%"))
    }

    async fn done(&self, line: &str) -> String {
        let (exit, text) = self.run(line).await;
        assert_eq!(exit, Exit::Ok, "{line}: {text}");
        text.trim_end().to_owned()
    }

    async fn refused(&self, line: &str) -> String {
        let (exit, text) = self.run(line).await;
        assert_eq!(exit, Exit::Failed, "{line}: {text}");
        text.trim_end().to_owned()
    }
}

fn command(words: &[String]) -> (Exit, String) {
    let text = Shown::default();
    let mut terminal = Terminal::new(Box::new(text.clone()), Box::new(text.clone()), Appearance::PLAIN);
    let Command::Tool(tool) = Cli::try_parse_from(words).expect("a command line").command else {
        return (Exit::Usage, "runtime carries this out".to_owned());
    };
    let code = tool.execute(&mut terminal);
    let exits = [Exit::Ok, Exit::Failed, Exit::Usage, Exit::TimedOut];
    let exit = exits.into_iter().find(|exit| ExitCode::from(*exit) == code).expect("a code that is known");
    let text = text.0.lock().expect("a lock").clone();
    (exit, String::from_utf8(text).expect("text"))
}

/// A component that ships with the host.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).expect("it ships");
    let (packed, size, _) = builtin.component.expect("it is built");
    orangery_plugin::unpack(packed, size).expect("it unpacks")
}

/// The digest at the end of a reference.
fn digest(reference: &str) -> &str {
    reference.split_once('@').expect("a digest").1
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_258_what_is_pushed_has_the_layout_of_the_field_and_is_pulled_as_it_was() {
    let desk = Desk::open().await;
    desk.write("sbom.json", br#"{"spdxVersion": "SPDX-2.3"}"#);
    desk.write("from.json", br#"{"_type": "https://in-toto.io/Statement/v1"}"#);
    let push = "push @mine.wasm %/team/mine:1.0.0 --sbom @sbom.json --provenance @from.json --annotation a=b";
    let reference = desk.done(push).await;
    assert_eq!(desk.done(push).await, reference, "the same file is the same artifact");
    assert!(reference.starts_with("%/team/mine@sha256:"), "{reference}");

    let (client, keyring) = (Client::new(desk.registry.settings()).expect("a client"), desk.registry.keyring(PASSWORD));
    let named: ArtifactReference = reference.replace('%', &desk.registry.host).parse().expect("a reference");
    let artifact = digest(&reference).parse().expect("a digest");
    let bytes = client.manifest_bytes(&named.repository, &artifact, &keyring).await.expect("a manifest").into_vec();
    let mut manifest: Value = serde_json::from_slice(&bytes).expect("JSON");
    let config = manifest["config"]["digest"].as_str().expect("text").parse().expect("a digest");
    manifest["config"]["digest"] = Value::Null;
    let size = manifest["config"]["size"].take();
    let mine = component("manifest");
    let expected = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": null, "size": null},
        "layers": [{"mediaType": "application/wasm", "digest": sha256(&mine), "size": mine.len()}],
        "annotations": {"a": "b"},
    });
    assert_eq!(manifest, expected);
    let mut content = Vec::new();
    client.blob(&named.repository, &config, size.as_u64(), &keyring, &mut content).await.expect("a config");
    let mut config: Value = serde_json::from_slice(&content).expect("JSON");
    let created: jiff::Timestamp = config["created"].take().as_str().expect("text").parse().expect("a time");
    let modified = fs::metadata(desk.path("mine.wasm")).expect("a file").modified().expect("a time");
    assert_eq!(created.as_second(), jiff::Timestamp::try_from(modified).expect("a time").as_second());
    let orangery_plugin::Inspection { imports, exports, .. } = orangery_plugin::inspect(&mine).expect("a component");
    let expected = json!({
        "created": null, "architecture": "wasm", "os": "wasip2", "layerDigests": [sha256(&mine)],
        "component": {"exports": exports, "imports": imports},
    });
    assert_eq!(config, expected);

    let referrers = client.referrers(&named.repository, &artifact, &keyring).await.expect("a list");
    let kinds: Vec<&str> = referrers.iter().map(|one| one.artifact_type.as_str()).collect();
    assert_eq!(kinds, ["application/spdx+json", "application/vnd.in-toto+json"]);

    for from in ["%/team/mine:1.0.0", &reference] {
        assert_eq!(desk.done(&format!("pull {from} @pulled.wasm")).await, reference);
        assert_eq!(fs::read(desk.path("pulled.wasm")).expect("a file"), mine);
    }
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_354_the_contracts_are_pushed_as_packages_and_are_the_same_artifacts_again() {
    let desk = Desk::open().await;
    let pushed = desk.done("wit --push %/of").await;
    assert_eq!(desk.done("wit --push %/of --version 0.1.0").await, pushed);
    let packages = orangery_builtin::wit_packages();
    let names: Vec<&str> = pushed.lines().filter_map(|line| Some(line.split_once('@')?.0)).collect();
    assert_eq!(names, ["%/of/orangery/deployer", "%/of/orangery/template", "%/of/orangery/gate"]);
    for ((folder, bytes), reference) in packages.iter().zip(pushed.lines()) {
        let tag = folder.replace('/', ":");
        assert_eq!(desk.done(&format!("pull %/of/orangery/{tag} @pulled.wasm")).await, reference);
        assert_eq!(fs::read(desk.path("pulled.wasm")).expect("a file"), *bytes);
    }
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_258_c_259_a_signature_is_by_a_key_and_for_what_a_tag_stood_for() {
    let desk = Desk::open().await;
    let first = desk.done("push @mine.wasm %/team/mine:1 --sign @a.key").await;
    assert_eq!(desk.done("verify %/team/mine:1 --key @a.pub").await, first);
    assert_eq!(desk.done("verify %/team/mine:1 --key @b.pub --key @a.pub").await, first);
    let how = "sign it with: orangery plugin sign REFERENCE --key FILE";
    let message = format!("error: {first} has signatures, and none was made with the key of @b.pub; {how}");
    assert_eq!(desk.refused("verify %/team/mine:1 --key @b.pub").await, message);
    assert_eq!(desk.refused("pull %/team/mine:1 @pulled.wasm --key @b.pub").await, message);
    assert!(!desk.path("pulled.wasm").exists(), "what is not signed is not written");

    // A second signature stands beside the first.
    assert_eq!(desk.done("sign %/team/mine:1 --key @b.key").await, first);
    for key in ["a", "b"] {
        assert_eq!(desk.done(&format!("verify %/team/mine:1 --key @{key}.pub")).await, first);
    }

    // The tag moves to what nobody has signed; what was verified is named by its digest.
    desk.write("other.wasm", &component("mock"));
    let other = desk.done("push @other.wasm %/team/mine:1").await;
    assert_ne!(other, first);
    let message = format!("error: {other} has no signature; {how}");
    assert_eq!(desk.refused("verify %/team/mine:1 --key @a.pub").await, message);
    assert_eq!(desk.done(&format!("pull {first} @pulled.wasm --key @a.pub")).await, first);
    assert_eq!(fs::read(desk.path("pulled.wasm")).expect("a file"), component("manifest"));

    // Somebody who may push copies the signatures of the first to the second.
    let (client, keyring) = (Client::new(desk.registry.settings()).expect("a client"), desk.registry.keyring(PASSWORD));
    let tag = |reference: &str| format!("{}.sig", digest(reference).replace(':', "-"));
    let from: ArtifactReference =
        format!("{}/team/mine:{}", desk.registry.host, tag(&first)).parse().expect("a reference");
    let signatures = client.manifest(&from, &keyring).await.expect("signatures").digest.clone();
    let bytes = client.manifest_bytes(&from.repository, &signatures, &keyring).await.expect("bytes").into_vec();
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    desk.registry.put_manifest("team/mine", &tag(&other), media_type, bytes).await;
    let message = format!("error: {other} has a signature that is for {}; {how}", digest(&first));
    assert_eq!(desk.refused("verify %/team/mine:1 --key @a.pub").await, message);
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_259_what_a_registry_gives_in_the_place_of_a_component_is_told_and_not_written() {
    let desk = Desk::open().await;
    let mine = component("manifest");
    let reference = desk.done("push @mine.wasm %/team/mine:1 --sign @a.key").await;
    let mut other = mine.clone();
    *other.last_mut().expect("a byte") ^= 1;
    desk.registry.replace_blob(&sha256(&mine), &other);
    let told = desk.refused(&format!("pull {reference} @pulled.wasm --key @a.pub")).await;
    assert!(told.contains(&format!("it is {} and not {}; push it again", sha256(&other), sha256(&mine))), "{told}");
    assert!(!desk.path("pulled.wasm").exists());
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_258_what_is_no_component_is_neither_pushed_nor_pulled() {
    let desk = Desk::open().await;
    desk.write("core.wasm", b"\0asm\x01\0\0\0");
    desk.write("cut.wasm", component("manifest").get(..5000).expect("bytes"));
    desk.write("empty.wasm", b"\0asm\x0d\0\x01\0");
    let cases = [
        ("core", "is a core module"),
        ("cut", "is not a WebAssembly component"),
        ("empty", "the component does not export orangery:deployer/deploy"),
    ];
    for (file, expected) in cases {
        let message = desk.refused(&format!("push @{file}.wasm %/team/mine:1")).await;
        assert!(message.starts_with(&format!("error: @{file}.wasm: ")) && message.contains(expected), "{message}");
    }
    let missing = desk.refused("pull %/team/mine:1 @pulled.wasm").await;
    assert!(missing.contains("the registry does not have it (404"), "nothing was pushed: {missing}");

    let config = desk.registry.push_blob("team/mine", "application/vnd.oci.empty.v1+json", b"{}").await;
    for (tag, content) in [("core", &b"\0asm\x01\0\0\0"[..]), ("old", &component("manifest"))] {
        let layer = desk.registry.push_blob("team/mine", "application/vnd.wasm.content.layer.v1+wasm", content).await;
        desk.registry.push_manifest("team/mine", tag, &config, &[layer]).await;
    }
    let message = desk.refused("pull %/team/mine:core @pulled.wasm").await;
    assert!(message.contains("@sha256:") && message.contains("is a core module"), "{message}");
    desk.done("pull %/team/mine:old @pulled.wasm").await;
    assert_eq!(fs::read(desk.path("pulled.wasm")).expect("a file"), component("manifest"));
    let chart = desk.registry.push_blob("team/mine", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", b"x").await;
    desk.registry.push_manifest("team/mine", "chart", &config, &[chart]).await;
    let message = desk.refused("pull %/team/mine:chart @pulled.wasm").await;
    assert!(
        message.contains("has no layer of media type application/wasm; there is application/vnd.cncf.helm"),
        "{message}"
    );
    let digest = sha256(b"x");
    let message = desk.refused(&format!("push @mine.wasm %/team/mine@{digest}")).await;
    assert!(message.contains("a digest is what a push makes"), "{message}");
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_258_a_push_that_is_refused_says_how_to_log_in() {
    let desk = Desk::open().await;
    desk.write("config.json", desk.registry.docker_config("wrong").as_bytes());
    let message = desk.refused("push @mine.wasm %/team/mine:1").await;
    assert!(message.starts_with("error: cannot push the blob sha256:"), "{message}");
    let expected = "the registry answered 401 to a request with the credentials in @config.json; log in with `docker login`, or name \
                    a file with other credentials with --registry-config";
    assert!(message.ends_with(expected), "{message}");
    assert!(!message.contains("wrong"), "{message}");
    desk.write("config.json", b"{}");
    let message = desk.refused("pull %/team/mine:1 @pulled.wasm").await;
    assert!(message.contains("without credentials, as you have none for it; log in with"), "{message}");
    let (exit, message) = desk.run("sign %/team/mine:1 --key @a.pub").await;
    assert_eq!(exit, Exit::Usage);
    assert!(message.starts_with("error: @a.pub: the key is a PUBLIC KEY; make one with"), "{message}");
}

#[test]
fn c_258_a_key_of_a_file_is_read_before_a_registry_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.pub");
    fs::write(&file, "hunter2").expect("a file");
    let words = ["orangery", "plugin", "verify", "r.invalid/a:1", "--key"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain([file.display().to_string()]).collect();
    let (exit, text) = command(&words);
    assert_eq!(exit, Exit::Usage);
    let path: &Path = &file;
    assert!(text.starts_with(&format!("error: {} is no PEM; ", path.display())), "{text}");
}
