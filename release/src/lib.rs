//! Packs what a release has, from what `release/build` built: the same bytes for the same files (`docs/releasing.md`).
//!
//! No daemon and no network is needed. Only signatures differ from one time to the next.

mod archive;
mod chart;
mod error;
mod files;
mod image;
mod krew;
mod layout;
mod provenance;
mod sbom;
mod signature;

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

pub use error::Error;
pub use image::{MOST_BINARY, MOST_IMAGE, Platform};

use crate::{
    files::{make_executable, read, sha256, write},
    layout::{Layout, digest},
    signature::SigningKey,
};

/// What a release is made of.
#[derive(Clone, Debug, Args)]
pub struct Contents {
    /// The version, which is that of the chart.
    #[arg(long)]
    pub version: String,
    /// Where the image will be, without a tag: `registry.example/orangery`.
    #[arg(long)]
    pub repository: String,
    /// Where the sources are.
    #[arg(long)]
    pub source: String,
    /// The commit that was built.
    #[arg(long)]
    pub commit: String,
    /// The name of the machine or service that builds, as a URI.
    #[arg(long)]
    pub builder: String,
    /// The time of the commit in seconds since 1970.
    #[arg(long, env = "SOURCE_DATE_EPOCH")]
    pub epoch: u64,
    /// An architecture with its binary and its folder of compiled components; may be given for several.
    #[arg(long = "platform", value_name = "ARCHITECTURE,BINARY,FOLDER", required = true)]
    pub platforms: Vec<Platform>,
    /// The folder of the chart.
    #[arg(long)]
    pub chart: PathBuf,
    /// A file of the certificates of authorities that the operator trusts where nobody says otherwise, in PEM.
    #[arg(long)]
    pub certificates: PathBuf,
    /// The licence, which archives of the plugin of kubectl have beside the binary.
    #[arg(long, default_value = "LICENSE")]
    pub license: PathBuf,
    /// The address that the archives of the plugin of kubectl will be below [default: SOURCE/releases/download/vVERSION]
    #[arg(long, value_name = "URL")]
    pub downloads: Option<String>,
    /// A file of what `cargo metadata` says.
    #[arg(long)]
    pub metadata: PathBuf,
    /// A file go.mod of components; may be given for several.
    #[arg(long = "go-module")]
    pub go_modules: Vec<PathBuf>,
    /// What else is in the binary, as `pkg:generic/NAME@VERSION`; may be given for several.
    #[arg(long = "part", value_name = "PURL")]
    pub parts: Vec<String>,
    /// A file of the private key that signs; nothing is signed without one.
    #[arg(long)]
    pub key: Option<PathBuf>,
    /// The folder that gets the release.
    #[arg(long)]
    pub out: PathBuf,
}

/// The digests (`sha256:…`) of what registries get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Of the image of all architectures.
    pub image: String,
    /// Of the chart.
    pub chart: String,
}

impl Contents {
    /// The time of the release in RFC 3339.
    fn created(&self) -> String {
        let second = i64::try_from(self.epoch).ok().and_then(|second| Timestamp::from_second(second).ok());
        second.unwrap_or_default().to_string()
    }
}

/// Writes the release: binaries, the image and the chart as OCI layouts, the chart as an archive, the plugin of kubectl, the list of parts, the
/// provenance, the sums of all of these, and signatures where there is a key.
///
/// # Errors
///
/// [`Error`]
pub fn pack(contents: &Contents) -> Result<Digests, Error> {
    let Contents { version, repository, out, .. } = contents;
    let key = contents.key.as_deref().map(SigningKey::read).transpose()?;
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for platform in &contents.platforms {
        files.push((format!("orangery-{version}-linux-{}", platform.architecture), read(&platform.binary)?));
    }

    let mut images = Layout::new(&out.join("image"));
    let image = image::write(&images, contents)?;
    images.tag(&image, version);
    let archive = chart::archive(contents, digest(&image))?;
    let mut charts = Layout::new(&out.join("chart"));
    let chart = chart::write(&charts, contents, &archive)?;
    charts.tag(&chart, version);
    files.push((format!("orangery-{version}.tgz"), archive));
    files.extend(krew::files(contents)?);
    files.push((format!("orangery-{version}.cdx.json"), format!("{:#}\n", sbom::sbom(contents)?).into_bytes()));

    let mut subjects: Vec<(String, String)> = files.iter().map(|(name, bytes)| (name.clone(), sha256(bytes))).collect();
    for (name, descriptor) in [(repository.clone(), &image), (format!("{repository}/charts/orangery"), &chart)] {
        subjects.push((name, digest(descriptor).trim_start_matches("sha256:").to_owned()));
    }
    let statement = provenance::statement(contents, &subjects).to_string();
    files.push((format!("orangery-{version}.intoto.json"), statement.clone().into_bytes()));
    let sums: String = files.iter().map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes))).collect();
    files.push(("SHA256SUMS".to_owned(), sums.clone().into_bytes()));

    if let Some(key) = &key {
        key.sign_image(&mut images, repository, &image)?;
        key.sign_image(&mut charts, &format!("{repository}/charts/orangery"), &chart)?;
        files.push(("SHA256SUMS.sig".to_owned(), key.sign(sums.as_bytes())?.into_bytes()));
        let envelope = format!("{}\n", key.envelope(&statement)?);
        files.push((format!("orangery-{version}.intoto.jsonl"), envelope.into_bytes()));
    }
    images.finish()?;
    charts.finish()?;
    for (name, bytes) in &files {
        write(&out.join(name), bytes)?;
    }
    for (name, _) in files.iter().take(contents.platforms.len()) {
        make_executable(&out.join(name))?;
    }
    Ok(Digests { image: digest(&image).to_owned(), chart: digest(&chart).to_owned() })
}
