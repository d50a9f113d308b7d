//! The image: the binary, what it trusts, and its components compiled. No shell, no package, no user but one without rights.

use std::{path::PathBuf, str::FromStr};

use serde_json::{Value, json};

use crate::{
    Contents,
    archive::{Archive, gzip},
    error::Error,
    files::{below, read, sha256},
    layout::{INDEX, Layout},
};

/// The most bytes of the binary of one architecture.
pub const MOST_BINARY: usize = 75_000_000;
/// The most bytes of the image of one architecture, packed as registries keep it and nodes fetch it.
pub const MOST_IMAGE: usize = 120_000_000;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Where the chart expects compiled components of an image (`cache.inImage`).
const CACHE: &str = "cache/orangery";
/// The user that the chart runs it as.
const USER: &str = "65532:65532";
const PASSWD: &str = "root:x:0:0:root:/:/none\nnonroot:x:65532:65532:nonroot:/:/none\n";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\n";

/// What one architecture brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// As OCI writes it: `amd64`, `arm64`.
    pub architecture: String,
    /// The binary, which needs no library.
    pub binary: PathBuf,
    /// The folder that `orangery plugin compile --into` filled on a processor of this architecture.
    pub cache: PathBuf,
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split(',').collect::<Vec<_>>().as_slice() {
            [architecture, binary, cache] => {
                Ok(Self { architecture: (*architecture).to_owned(), binary: binary.into(), cache: cache.into() })
            }
            _ => {
                Err("give three values with commas between them, as in amd64,target/release/orangery,cache".to_owned())
            }
        }
    }
}

/// Writes the image of all platforms; the answer is the descriptor of its index.
pub(crate) fn write(layout: &Layout, contents: &Contents) -> Result<Value, Error> {
    let mut manifests = Vec::new();
    for platform in &contents.platforms {
        let mut manifest = image(layout, contents, platform)?;
        if let Some(fields) = manifest.as_object_mut() {
            fields.insert("platform".to_owned(), json!({"os": "linux", "architecture": platform.architecture}));
        }
        manifests.push(manifest);
    }
    let index = json!({
        "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations(contents),
    });
    layout.document(INDEX, &index)
}

fn image(layout: &Layout, contents: &Contents, platform: &Platform) -> Result<Value, Error> {
    let archives = [base(contents)?, program(contents, platform)?, components(contents, platform)?];
    let (mut diff_ids, mut layers, mut size) = (Vec::new(), Vec::new(), 0);
    for archive in archives {
        let unpacked = |source| Error::Write { path: contents.out.clone(), source };
        let tar = archive.tar().map_err(unpacked)?;
        let packed = gzip(&tar).map_err(unpacked)?;
        diff_ids.push(format!("sha256:{}", sha256(&tar)));
        layers.push(layout.blob(LAYER, &packed)?);
        size += packed.len();
    }
    Error::check_size(&format!("the image for {}", platform.architecture), size, MOST_IMAGE)?;
    let config = json!({
        "architecture": platform.architecture,
        "os": "linux",
        "created": contents.created(),
        "config": {
            "User": USER,
            "Entrypoint": ["/orangery"],
            "Env": [format!("SSL_CERT_FILE=/{CERTIFICATES}"), "XDG_CACHE_HOME=/cache"],
            "WorkingDir": "/",
            "Labels": annotations(contents),
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    });
    layout.manifest(&layout.document(CONFIG, &config)?, &layers, &annotations(contents))
}

/// What stays from one release to the next.
fn base(contents: &Contents) -> Result<Archive, Error> {
    let mut archive = Archive::new(contents.epoch);
    for folder in ["etc", "etc/ssl", "etc/ssl/certs"] {
        archive.folder(folder, 0o755);
    }
    archive.folder("tmp", 0o1777);
    archive.file("etc/passwd", 0o644, PASSWD.as_bytes().to_vec());
    archive.file("etc/group", 0o644, GROUP.as_bytes().to_vec());
    archive.file(CERTIFICATES, 0o644, read(&contents.certificates)?);
    Ok(archive)
}

fn program(contents: &Contents, platform: &Platform) -> Result<Archive, Error> {
    let binary = read(&platform.binary)?;
    Error::check_size(&format!("the binary for {}", platform.architecture), binary.len(), MOST_BINARY)?;
    let mut archive = Archive::new(contents.epoch);
    archive.file("orangery", 0o755, binary);
    Ok(archive)
}

/// Compiled components, of root and for others to read: the operator takes no code that others could have written.
fn components(contents: &Contents, platform: &Platform) -> Result<Archive, Error> {
    let mut archive = Archive::new(contents.epoch);
    archive.folder("cache", 0o755);
    archive.folder(CACHE, 0o755);
    let compiled = |name: &str| [".cwasm", ".cwasm.sha256"].iter().any(|ending| name.ends_with(ending));
    let mut there = false;
    for (name, path) in below(&platform.cache)?.into_iter().filter(|(name, _)| !name.contains('/') && compiled(name)) {
        archive.file(&format!("{CACHE}/{name}"), 0o644, read(&path)?);
        there = true;
    }
    if there {
        Ok(archive)
    } else {
        Err(Error::content(
            &platform.cache,
            "holds no compiled component; fill it with `orangery plugin compile --into`",
        ))
    }
}

fn annotations(contents: &Contents) -> Value {
    json!({
        "org.opencontainers.image.title": "orangery",
        "org.opencontainers.image.version": contents.version,
        "org.opencontainers.image.source": contents.source,
        "org.opencontainers.image.revision": contents.commit,
        "org.opencontainers.image.created": contents.created(),
        "org.opencontainers.image.licenses": "Apache-2.0",
    })
}
