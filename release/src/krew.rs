//! The binary as a plugin of kubectl, for krew: an archive for each architecture, and the manifest that names them by their digests.

use serde_json::json;

use crate::{
    Contents,
    archive::{Archive, gzip},
    error::Error,
    files::{read, sha256},
};

/// The name of the plugin, as in `kubectl orangery`.
const PLUGIN: &str = "orangery";

/// The archives with their names, and the manifest.
///
/// # Errors
/// [`Error`]
pub(crate) fn files(contents: &Contents) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let Contents { version, license, downloads, source, .. } = contents;
    let downloads = downloads.clone().unwrap_or_else(|| format!("{source}/releases/download/v{version}"));
    let (mut files, mut platforms) = (Vec::new(), Vec::new());
    for platform in &contents.platforms {
        let architecture = &platform.architecture;
        let mut archive = Archive::new(contents.epoch);
        archive.file(PLUGIN, 0o755, read(&platform.binary)?);
        archive.file("LICENSE", 0o644, read(license)?);
        let packed = archive.tar().and_then(|tar| gzip(&tar));
        let packed = packed.map_err(|error| Error::content(&platform.binary, format!("cannot be packed: {error}")))?;
        let name = format!("kubectl-{PLUGIN}-{version}-linux-{architecture}.tar.gz");
        platforms.push(json!({
            "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
            "uri": format!("{downloads}/{name}"),
            "sha256": sha256(&packed),
            "bin": PLUGIN,
        }));
        files.push((name, packed));
    }
    let manifest = json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": format!("v{version}"),
            "homepage": source,
            "shortDescription": "Inspect, plan and approve what Orangery deploys",
            "description": "Trees of Installations with phases, waits and errors, what a job would write, approvals,\n\
                            history, what a job did and what it costs, and archives for support.\n",
            "caveats": "For completions of kubectl, in a folder of PATH:\n\
                        kubectl orangery completion kubectl > kubectl_complete-orangery\n\
                        chmod +x kubectl_complete-orangery\n",
            "platforms": platforms,
        },
    });
    let text = yaml_serde::to_string(&manifest)
        .map_err(|error| Error::content(format!("{PLUGIN}.yaml"), format!("cannot be written: {error}")))?;
    files.push((format!("{PLUGIN}.krew.yaml"), text.into_bytes()));
    Ok(files)
}
