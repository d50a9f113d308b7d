//! What is packed, and what is refused.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use flate2::read::GzDecoder;
use orangery_release::{Contents, MOST_BINARY, pack};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::standin::standin;

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files below a folder with their content.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = tree(&path).into_iter();
            found.extend(inner.map(|(name, content)| (Path::new(path.file_name().unwrap()).join(name), content)));
        } else {
            found.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    found
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The blob of a descriptor, which has the size and the digest that the descriptor says.
fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let hex = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let content = fs::read(layout.join("blobs/sha256").join(hex)).unwrap();
    assert_eq!((sha256(&content).as_str(), json!(content.len())), (hex, descriptor["size"].clone()));
    content
}

fn blob_document(layout: &Path, descriptor: &Value) -> Value {
    serde_json::from_slice(&blob(layout, descriptor)).unwrap()
}

/// What an archive has: path, mode, user and group, time and content.
fn entries(packed: &[u8]) -> Vec<(String, u32, u64, u64, String)> {
    let mut archive = tar::Archive::new(GzDecoder::new(packed));
    let entry = |entry: std::io::Result<tar::Entry<'_, GzDecoder<&[u8]>>>| {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let header = entry.header();
        let path = entry.path().unwrap().display().to_string();
        let owner = header.uid().unwrap() + header.gid().unwrap();
        (path, header.mode().unwrap(), owner, header.mtime().unwrap(), content)
    };
    archive.entries().unwrap().map(entry).collect()
}

fn packed(change: impl FnOnce(&mut Contents)) -> (tempfile::TempDir, Contents) {
    let folder = tempfile::tempdir().unwrap();
    let mut contents = standin(folder.path());
    change(&mut contents);
    pack(&contents).unwrap();
    (folder, contents)
}

#[test]
fn c_187_an_image_has_the_binary_certificates_and_compiled_components_and_a_user_without_rights() {
    let (_folder, contents) = packed(|_| ());
    let layout = contents.out.join("image");
    assert_eq!(document(&layout.join("oci-layout")), json!({"imageLayoutVersion": "1.0.0"}));
    let index = document(&layout.join("index.json"));
    let [tagged] = index["manifests"].as_array().unwrap().as_slice() else { panic!("{index}") };
    assert_eq!(tagged["annotations"], json!({"org.opencontainers.image.ref.name": "0.1.0"}));
    let of_platforms = blob_document(&layout, tagged);
    let manifests = of_platforms["manifests"].as_array().unwrap();
    let platforms: Vec<&Value> = manifests.iter().map(|manifest| &manifest["platform"]).collect();
    let arm = json!({"os": "linux", "architecture": "arm64"});
    assert_eq!(platforms, [&json!({"os": "linux", "architecture": "amd64"}), &arm]);

    let manifest = blob_document(&layout, &manifests[1]);
    let config = blob_document(&layout, &manifest["config"]);
    let settings = json!({
        "User": "65532:65532",
        "Entrypoint": ["/orangery"],
        "Env": ["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "XDG_CACHE_HOME=/cache"],
        "WorkingDir": "/",
        "Labels": manifest["annotations"],
    });
    assert_eq!((&config["config"], &config["architecture"]), (&settings, &json!("arm64")));
    let (mut found, mut diff_ids) = (Vec::new(), Vec::new());
    for layer in manifest["layers"].as_array().unwrap() {
        let packed = blob(&layout, layer);
        let mut tar = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut tar).unwrap();
        diff_ids.push(format!("sha256:{}", sha256(&tar)));
        for (path, mode, owner, time, content) in entries(&packed) {
            assert_eq!((owner, time), (0, 1_700_000_000), "{path}");
            found.push((path, format!("{mode:o}"), content));
        }
    }
    assert_eq!(config["rootfs"], json!({"type": "layers", "diff_ids": diff_ids}));
    let expected = [
        ("etc/", "755", ""),
        ("etc/group", "644", "root:x:0:\nnonroot:x:65532:\n"),
        ("etc/passwd", "644", "root:x:0:0:root:/:/none\nnonroot:x:65532:65532:nonroot:/:/none\n"),
        ("etc/ssl/", "755", ""),
        ("etc/ssl/certs/", "755", ""),
        ("etc/ssl/certs/ca-certificates.crt", "644", "certificates"),
        ("tmp/", "1777", ""),
        ("orangery", "755", "a binary for arm64"),
        ("cache/", "755", ""),
        ("cache/orangery/", "755", ""),
        ("cache/orangery/aa-bb.cwasm", "644", "code for arm64"),
        ("cache/orangery/aa-bb.cwasm.sha256", "644", "a seal"),
    ];
    assert_eq!(found, expected.map(|(path, mode, content)| (path.to_owned(), mode.to_owned(), content.to_owned())));
}

#[test]
fn c_187_what_is_too_large_or_has_nothing_compiled_is_not_released() {
    let folder = tempfile::tempdir().unwrap();
    let contents = standin(folder.path());
    let binary = File::options().write(true).open(&contents.platforms[0].binary).unwrap();
    binary.set_len(MOST_BINARY as u64 + 1).unwrap();
    let large =
        "the binary for amd64 has 75000001 bytes, and at most 75000000 are released; find out what made it grow";
    assert_eq!(pack(&contents).unwrap_err().to_string(), large);
    binary.set_len(MOST_BINARY as u64).unwrap();
    pack(&contents).unwrap();
    fs::remove_file(contents.platforms[1].cache.join("aa-bb.cwasm")).unwrap();
    fs::remove_file(contents.platforms[1].cache.join("aa-bb.cwasm.sha256")).unwrap();
    let empty = "holds no compiled component; fill it with `orangery plugin compile --into`";
    assert!(pack(&contents).unwrap_err().to_string().ends_with(empty));
}

#[test]
fn c_189_a_part_without_name_or_version_is_refused() {
    for wrong in ["glibc", "pkg:generic/glibc", "pkg:generic/@2.36"] {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents { parts: vec![wrong.to_owned()], ..standin(folder.path()) };
        let error = pack(&contents).unwrap_err().to_string();
        assert_eq!(error, format!("{wrong}: names no part; write it as pkg:generic/NAME@VERSION"));
    }
}

#[test]
fn c_188_the_same_files_make_the_same_release_and_other_files_another_one() {
    let [(_first, one), (_second, same), (_third, other)] = [0, 0, 1].map(|later| {
        packed(|contents| {
            contents.epoch += later;
            // In an order of the folder and at a time of its own.
            let seal = contents.platforms[0].cache.join("aa-bb.cwasm.sha256");
            fs::remove_file(&seal).unwrap();
            fs::write(&seal, "a seal").unwrap();
        })
    });
    let (one, same, other) = (tree(&one.out), tree(&same.out), tree(&other.out));
    assert_eq!(one.keys().collect::<Vec<_>>(), same.keys().collect::<Vec<_>>());
    assert!(one == same, "the same files differ");
    assert!(one != other, "the time of the commit goes into the release");
}

#[test]
fn c_189_the_chart_names_the_image_by_digest_and_sums_and_provenance_name_all() {
    let (_folder, contents) = packed(|_| ());
    let out = &contents.out;
    let image = document(&out.join("image/index.json"))["manifests"][0]["digest"].as_str().unwrap().to_owned();
    let archive = fs::read(out.join("orangery-0.1.0.tgz")).unwrap();
    let files = entries(&archive);
    let values = files.iter().find(|(path, ..)| path == "orangery/values.yaml").map(|(.., text)| text).unwrap();
    let wanted = format!("image:\n  repository: registry.example/orangery\n  tag: 0.1.0\n  digest: {image}\n");
    assert!(values.contains(&wanted) && values.contains("\n  inImage: true\n"), "{values}");
    assert!(files.iter().any(|(path, ..)| path == "orangery/templates/deployment.yaml"));

    let charts = out.join("chart");
    let chart = document(&charts.join("index.json"))["manifests"][0].clone();
    let manifest = blob_document(&charts, &chart);
    assert_eq!(blob(&charts, &manifest["layers"][0]), archive);
    assert_eq!(blob_document(&charts, &manifest["config"])["name"], "orangery");

    let names = [
        "orangery-0.1.0-linux-amd64",
        "orangery-0.1.0-linux-arm64",
        "orangery-0.1.0.tgz",
        "kubectl-orangery-0.1.0-linux-amd64.tar.gz",
        "kubectl-orangery-0.1.0-linux-arm64.tar.gz",
        "orangery.krew.yaml",
        "orangery-0.1.0.cdx.json",
        "orangery-0.1.0.intoto.json",
    ];
    let mode = |name: &str| fs::metadata(out.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(names[0]), mode(names[1])], [0o755; 2], "binaries can be run");
    let sum = |name: &str| sha256(&fs::read(out.join(name)).unwrap());
    let sums: String = names.iter().map(|name| format!("{}  {name}\n", sum(name))).collect();
    assert_eq!(fs::read_to_string(out.join("SHA256SUMS")).unwrap(), sums);
    let mut subjects: Vec<Value> =
        names[..7].iter().map(|name| json!({"name": name, "digest": {"sha256": sum(name)}})).collect();
    for (name, digest) in [("", image.as_str()), ("/charts/orangery", chart["digest"].as_str().unwrap())] {
        let hex = digest.strip_prefix("sha256:").unwrap();
        subjects.push(json!({"name": format!("registry.example/orangery{name}"), "digest": {"sha256": hex}}));
    }
    let statement = document(&out.join("orangery-0.1.0.intoto.json"));
    assert_eq!(statement["subject"], json!(subjects));
    let bom = document(&out.join("orangery-0.1.0.cdx.json"));
    let parts: Vec<&Value> = bom["components"].as_array().unwrap().iter().map(|part| &part["purl"]).collect();
    let expected = ["pkg:cargo/a@1.0.0", "pkg:generic/glibc@2.36", "pkg:golang/b@v1.2.3"];
    assert_eq!(parts, expected, "what only tests need is no part");
    assert_eq!(bom["components"][0]["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
}

#[test]
fn c_402_the_plugin_of_kubectl_is_named_by_the_digests_of_its_archives() {
    let (_folder, contents) = packed(|contents| contents.downloads = Some("https://get.example/v0".to_owned()));
    let file = |name: &str| fs::read(contents.out.join(name)).unwrap();
    let archive = file("kubectl-orangery-0.1.0-linux-arm64.tar.gz");
    let found: Vec<_> = entries(&archive).into_iter().map(|(path, mode, .., text)| (path, mode, text)).collect();
    let expected = [("LICENSE", 0o644, "a licence"), ("orangery", 0o755, "a binary for arm64")];
    assert_eq!(found, expected.map(|(path, mode, text)| (path.to_owned(), mode, text.to_owned())));
    let manifest: Value = yaml_serde::from_slice(&file("orangery.krew.yaml")).unwrap();
    let platform = |architecture: &str| {
        let name = format!("kubectl-orangery-0.1.0-linux-{architecture}.tar.gz");
        json!({
            "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
            "uri": format!("https://get.example/v0/{name}"),
            "sha256": sha256(&file(&name)),
            "bin": "orangery",
        })
    };
    assert_eq!(manifest["spec"]["platforms"], json!([platform("amd64"), platform("arm64")]));
    assert_eq!(
        (&manifest["metadata"]["name"], &manifest["spec"]["version"], &manifest["apiVersion"]),
        (&json!("orangery"), &json!("v0.1.0"), &json!("krew.googlecontainertools.github.com/v1alpha2"))
    );
    let (_other, contents) = packed(|_| ());
    let text = fs::read_to_string(contents.out.join("orangery.krew.yaml")).unwrap();
    assert!(
        text.contains(
            "uri: https://git.example/orangery/releases/download/v0.1.0/kubectl-orangery-0.1.0-linux-amd64.tar.gz"
        ),
        "{text}"
    );
}

#[test]
fn c_189_signatures_hold_by_the_key_in_the_forms_of_cosign() {
    let document_of_key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document_of_key.as_ref(), &SystemRandom::new())
            .unwrap();
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, pair.public_key().as_ref().to_vec());
    let holds = |text: &[u8], signature: &str| {
        public.verify(text, &BASE64.decode(signature.as_bytes()).unwrap()).unwrap_or_else(|_| panic!("{signature}"));
    };
    let (_folder, contents) = packed(|contents| {
        let key = contents.out.with_file_name("key.pem");
        fs::write(&key, pem::encode(&pem::Pem::new("PRIVATE KEY", document_of_key.as_ref()))).unwrap();
        contents.key = Some(key);
    });
    let read = |name: &str| fs::read_to_string(contents.out.join(name)).unwrap();
    holds(read("SHA256SUMS").as_bytes(), &read("SHA256SUMS.sig"));
    let envelope: Value = serde_json::from_str(&read("orangery-0.1.0.intoto.jsonl")).unwrap();
    let statement = BASE64.decode(envelope["payload"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!(statement, read("orangery-0.1.0.intoto.json").into_bytes());
    let kind = "application/vnd.in-toto+json";
    let signed = [format!("DSSEv1 28 {kind} {} ", statement.len()).as_bytes(), statement.as_slice()].concat();
    holds(&signed, envelope["signatures"][0]["sig"].as_str().unwrap());

    for (layout, reference) in
        [("image", "registry.example/orangery"), ("chart", "registry.example/orangery/charts/orangery")]
    {
        let layout = contents.out.join(layout);
        let index = document(&layout.join("index.json"));
        let (signed, signature) = (&index["manifests"][0], &index["manifests"][1]);
        let tag = format!("{}.sig", signed["digest"].as_str().unwrap().replace(':', "-"));
        assert_eq!(signature["annotations"]["org.opencontainers.image.ref.name"], tag);
        let layer = &blob_document(&layout, signature)["layers"][0];
        let payload = blob(&layout, layer);
        holds(&payload, layer["annotations"]["dev.cosignproject.cosign/signature"].as_str().unwrap());
        let critical = json!({
            "identity": {"docker-reference": reference},
            "image": {"docker-manifest-digest": signed["digest"]},
            "type": "cosign container image signature",
        });
        assert_eq!(serde_json::from_slice::<Value>(&payload).unwrap()["critical"], critical);
    }
    let not_a_key = Contents { key: Some(contents.certificates.clone()), ..contents };
    let error = pack(&not_a_key).unwrap_err().to_string();
    assert!(error.contains("is no private key of P-256 in PKCS #8; make one with `openssl genpkey"), "{error}");
}
