//! The chart, with the digest of the image, as an archive and as an OCI artifact.

use serde_json::{Value, json};

use crate::{
    Contents,
    archive::{Archive, gzip},
    error::Error,
    files::{below, read, read_text},
    layout::Layout,
};

/// Media types of Helm.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The archive of the chart, whose values name the image by this digest.
pub(crate) fn archive(contents: &Contents, image: &str) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::new(contents.epoch);
    for (name, path) in below(&contents.chart)? {
        let content = if name == "values.yaml" { values(contents, image)?.into_bytes() } else { read(&path)? };
        archive.file(&format!("orangery/{name}"), 0o644, content);
    }
    let packed = archive.tar().and_then(|tar| gzip(&tar));
    packed.map_err(|source| Error::Write { path: contents.out.clone(), source })
}

/// The values of the repository with the image of the release, which has its components compiled.
fn values(contents: &Contents, image: &str) -> Result<String, Error> {
    let path = contents.chart.join("values.yaml");
    let mut text = read_text(&path)?;
    let (repository, version) = (&contents.repository, &contents.version);
    for (from, to) in [
        ("\n  repository: orangery\n".to_owned(), format!("\n  repository: {repository}\n")),
        (format!("\n  tag: {version}\n"), format!("\n  tag: {version}\n")),
        ("\n  digest: \"\"\n".to_owned(), format!("\n  digest: {image}\n")),
        ("\n  inImage: false\n".to_owned(), "\n  inImage: true\n".to_owned()),
    ] {
        if text.matches(&from).count() != 1 {
            let line = from.trim();
            return Err(Error::content(
                path,
                format!("has `{line}` not exactly once, which a release sets; write it so"),
            ));
        }
        text = text.replace(&from, &to);
    }
    Ok(text)
}

/// Writes the artifact; the answer is the descriptor of its manifest.
pub(crate) fn write(layout: &Layout, contents: &Contents, archive: &[u8]) -> Result<Value, Error> {
    let path = contents.chart.join("Chart.yaml");
    let metadata: Value =
        yaml_serde::from_str(&read_text(&path)?).map_err(|error| Error::content(&path, error.to_string()))?;
    let named = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    if named("version") != contents.version {
        let (found, version) = (named("version"), &contents.version);
        return Err(Error::content(
            path,
            format!("has the version {found}, and the release {version}; make them the same"),
        ));
    }
    let annotations = json!({
        "org.opencontainers.image.title": named("name"),
        "org.opencontainers.image.description": named("description"),
        "org.opencontainers.image.version": contents.version,
        "org.opencontainers.image.created": contents.created(),
    });
    let (config, content) = (layout.document(CONFIG, &metadata)?, layout.blob(CONTENT, archive)?);
    layout.manifest(&config, &[content], &annotations)
}
