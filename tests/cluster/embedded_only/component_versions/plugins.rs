//! A Plugin whose component is in a real registry, with TLS and a password: signed, pinned, upgraded, and lied about.

use std::fs;

use data_encoding::BASE64;
use orangery_core::digest::sha256;
use orangery_tests::{binary::Binary, cluster::Cluster, tree::in_phase};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use super::{PASSWORD, RealRegistry};
use crate::cases::plugins::{component, condition, is_named, item, message, renewed};

/// A registry, and a folder with what its author has.
struct Author {
    registry: RealRegistry,
    binary: Binary,
}

impl Author {
    async fn new() -> Self {
        let author = Self { registry: RealRegistry::start().await, binary: crate::binary().await };
        author.write("config.json", author.registry.docker_config(PASSWORD).as_bytes());
        author.write("ca.pem", author.registry.authority().as_bytes());
        for name in ["ours", "theirs"] {
            let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
            author.write(&format!("{name}.key"), pair.serialize_pem().as_bytes());
            author.write(&format!("{name}.pub"), pair.public_key_pem().as_bytes());
        }
        author
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.binary.folder().join(name), content).expect("a file");
    }

    fn reference(&self, tag: &str) -> String {
        format!("{}/team/mine:{tag}", self.registry.host)
    }

    /// Pushes a component under a tag, signed by a key where one is named; answers its reference by digest.
    async fn push(&self, tag: &str, content: &[u8], key: Option<&str>) -> String {
        self.write("pushed.wasm", content);
        let reference = self.reference(tag);
        let push = [
            "plugin",
            "push",
            "pushed.wasm",
            &reference,
            "--registry-config",
            "config.json",
            "--registry-ca",
            "ca.pem",
        ];
        let signs: Vec<&str> = key.iter().flat_map(|key| ["--sign", *key]).collect();
        let ended = self.binary.run(&[push.as_slice(), &signs].concat()).await;
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        ended.stdout.trim().to_owned()
    }

    /// Pushes what no command of ours pushes, under a tag; answers the digest of its layer.
    async fn push_anything(&self, tag: &str, content: &[u8]) -> String {
        let config = self.registry.push_blob("team/mine", "application/vnd.wasm.config.v0+json", b"{}").await;
        let layer = self.registry.push_blob("team/mine", "application/wasm", content).await;
        self.registry.push_manifest("team/mine", tag, &config, &[layer]).await;
        sha256(content)
    }

    /// A Plugin of a reference, for which our signature is asked or not.
    fn plugin(&self, reference: &str, signed: bool) -> Value {
        let oci = json!({"reference": reference, "pullSecrets": ["pull"]});
        let mut spec = json!({"source": {"oci": oci}, "deployer": {"itemTypes": ["example.org/mine"]}});
        if signed {
            let key = fs::read_to_string(self.binary.folder().join("ours.pub")).expect("a key");
            spec["verification"] = json!({"keys": [key]});
        }
        json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "mine"}, "spec": spec})
    }
}

/// Applies a Plugin, and answers what it is told for that very spec.
async fn reconciled(cluster: &Cluster, plugin: &Value) -> Value {
    let generation = cluster.apply(plugin).await.metadata.generation;
    let is_told = |plugin: &Value| {
        is_named(plugin, "mine")
            && plugin["status"]["observedGeneration"].as_i64() == generation
            && condition(plugin, "Ready").is_some()
    };
    cluster.expect_that(plugin, "is told nothing of its spec", is_told).await
}

/// What is in use: the component, the reference that it was resolved from, the artifact.
fn in_use(plugin: &Value) -> [&str; 3] {
    ["digest", "reference", "artifact"].map(|field| plugin["status"][field].as_str().unwrap_or_default())
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_259_c_260_c_262_a_plugin_of_a_private_registry_is_verified_pinned_and_replaced_by_nothing_that_cannot_be_used()
 {
    let author = Author::new().await;
    let (mock, next) = (component("mock"), renewed(component("mock")));
    let first = author.push("1", &mock, Some("ours.key")).await;
    let cluster = Cluster::start(&author.binary, &["--ephemeral", "--registry-ca", "ca.pem"]).await;
    let config = BASE64.encode(author.registry.docker_config(PASSWORD).as_bytes());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": config},
    });
    cluster.apply(&secret).await;
    let of_tag = author.reference("1");
    let ready = reconciled(&cluster, &author.plugin(&of_tag, true)).await;
    assert_eq!(
        (message(&ready).as_str(), in_use(&ready)),
        ("version 1 is in use", [sha256(&mock).as_str(), &of_tag, &first])
    );
    cluster.apply(&item("a", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "a", "Succeeded")).await;

    // The tag moves to what we have signed as well: what it stood for first stays, and by its digest the other one is used.
    let second = author.push("1", &next, Some("ours.key")).await;
    let mut other_terms = author.plugin(&of_tag, true);
    other_terms["spec"]["priority"] = json!(1);
    let stays = reconciled(&cluster, &other_terms).await;
    assert_eq!((message(&stays).as_str(), in_use(&stays)), ("version 1 is in use", in_use(&ready)));
    let upgraded = reconciled(&cluster, &author.plugin(&second, true)).await;
    assert_eq!(in_use(&upgraded), [sha256(&next).as_str(), &second, &second]);
    cluster.apply(&item("b", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "b", "Succeeded")).await;

    // What cannot be used says why in a sentence, and the version before stays.
    let another = |number: u8| [next.clone(), vec![0, 3, 1, b'x', number]].concat();
    let unsigned = author.push("unsigned", &another(1), None).await;
    let of_others = author.push("theirs", &another(2), Some("theirs.key")).await;
    author.push_anything("core", b"\0asm\x01\0\0\0").await;
    author.push_anything("cut", &next[..next.len() / 2]).await;
    let world = fs::read(std::path::Path::new(env!("OUT_DIR")).join("judges.wasm")).expect("the guest was built");
    author.push("world", &world, None).await;
    let (lie, short) = (another(3), another(4));
    let (lied, cut_off) = (author.push_anything("lie", &lie).await, author.push_anything("short", &short).await);
    let evil = another(5);
    author.registry.replace_blob(&lied, &evil);
    author.registry.replace_blob(&cut_off, &short[..short.len() / 2]);
    let how = "sign it with: orangery plugin sign REFERENCE --key FILE";
    let other_key = "has signatures, and none was made with the key of spec.verification.keys[0] of the Plugin mine";
    let refused = [
        ("unsigned", true, format!("{unsigned} has no signature; {how}")),
        ("theirs", true, format!("{of_others} {other_key}; {how}")),
        ("core", false, "it is a core module; build it for the target wasm32-wasip2".to_owned()),
        ("cut", false, "the file is not a WebAssembly component: ".to_owned()),
        ("world", false, "the component exports nothing of a deployer, which the Plugin claims it is".to_owned()),
        ("lie", false, sha256(&evil)),
        ("short", false, "; push it again".to_owned()),
        ("nowhere", false, "404".to_owned()),
    ];
    let version = upgraded["status"]["version"].as_str().unwrap_or_default();
    let stays = format!("; version {version} stays in use");
    for (tag, signed, why) in refused {
        let plugin = reconciled(&cluster, &author.plugin(&author.reference(tag), signed)).await;
        let message = message(&plugin);
        assert!(message.contains(&why) && message.ends_with(&stays) && !message.contains('\n'), "{tag}: {message}");
        assert_eq!(
            (in_use(&plugin), &plugin["status"]["loadedGeneration"]),
            (in_use(&upgraded), &upgraded["status"]["loadedGeneration"])
        );
        assert!(condition(&plugin, "Ready").is_some_and(|ready| ready["status"] == "False"), "{tag}: {plugin}");
    }
    cluster.apply(&item("c", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "c", "Succeeded")).await;
}
