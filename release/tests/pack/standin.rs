//! Contents of a release with a small stand-in for each file that is built.

use std::{fs, path::Path};

use orangery_release::{Contents, Platform};

/// The chart of this repository, and files of a few bytes in this folder.
pub(crate) fn standin(folder: &Path) -> Contents {
    let repository =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("charts/orangery").is_dir());
    let write = |name: &str, content: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    };
    let platforms = ["amd64", "arm64"].map(|architecture| {
        write(&format!("{architecture}/cache/aa-bb.cwasm.sha256"), "a seal");
        write(&format!("{architecture}/cache/aa-bb.cwasm"), &format!("code for {architecture}"));
        write(&format!("{architecture}/cache/of-blueprints/cc.cwasm"), "is of nobody who built it");
        write(&format!("{architecture}/cache/aa-bb.1.draft"), "half of it");
        let binary = write(&format!("{architecture}/orangery"), &format!("a binary for {architecture}"));
        Platform { architecture: architecture.to_owned(), binary, cache: folder.join(architecture).join("cache") }
    });
    let metadata = r#"{
        "packages": [
            {"id": "1", "name": "orangery", "version": "0.1.0", "license": "Apache-2.0"},
            {"id": "2", "name": "a", "version": "1.0.0", "license": "MIT / Apache-2.0"},
            {"id": "3", "name": "of-tests", "version": "2.0.0"}
        ],
        "resolve": {"nodes": [
            {"id": "1", "deps": [
                {"pkg": "2", "dep_kinds": [{"kind": null}]}, {"pkg": "3", "dep_kinds": [{"kind": "dev"}]}
            ]},
            {"id": "2", "deps": []}, {"id": "3", "deps": []}
        ]}
    }"#;
    Contents {
        version: "0.1.0".to_owned(),
        repository: "registry.example/orangery".to_owned(),
        source: "https://git.example/orangery".to_owned(),
        commit: "c0ffee".to_owned(),
        builder: "https://builder.example/1".to_owned(),
        epoch: 1_700_000_000,
        platforms: platforms.to_vec(),
        chart: repository.expect("the repository").join("charts/orangery"),
        certificates: write("ca-certificates.crt", "certificates"),
        license: write("LICENSE", "a licence"),
        downloads: None,
        metadata: write("metadata.json", metadata),
        go_modules: vec![write("go.mod", "module m\n\nrequire b v1.2.3\n")],
        parts: vec!["pkg:generic/glibc@2.36".to_owned()],
        key: None,
        out: folder.join("out"),
    }
}
