//! The kinds of access that are known, and what each gives.

use serde::Deserialize;

/// What an access says, of whatever kind: only the fields of its kind count.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Access {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) local_reference: String,
    pub(super) filename: String,
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: Option<u64>,
    pub(super) image_reference: String,
    pub(super) reference: String,
    #[serde(rename = "ref")]
    pub(super) repository: String,
}

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    LocalBlob,
    LocalOciBlob,
    LocalFile,
    Artifact,
    RelativeArtifact,
    OciBlob,
    Wget,
    Helm,
    GitHub,
}

impl Access {
    /// Its kind; `None` of one that is not known.
    pub(super) fn kind(&self) -> Option<AccessKind> {
        match self.type_.split('/').next().unwrap_or_default() {
            "localBlob" | "LocalBlob" => Some(AccessKind::LocalBlob),
            "localOciBlob" => Some(AccessKind::LocalOciBlob),
            "localFilesystemBlob" => Some(AccessKind::LocalFile),
            "ociArtifact" | "OCIImage" | "ociImage" | "ociRegistry" => Some(AccessKind::Artifact),
            "relativeOciReference" => Some(AccessKind::RelativeArtifact),
            "ociBlob" | "ociBlobLayer" => Some(AccessKind::OciBlob),
            "wget" | "Wget" => Some(AccessKind::Wget),
            "helm" | "Helm" | "helmChartRepository" => Some(AccessKind::Helm),
            "gitHub" | "github" | "GitHub" => Some(AccessKind::GitHub),
            _ => None,
        }
    }

    /// The text by which it names content, where its kind can name content by a digest.
    pub(super) fn reference(&self) -> Option<&str> {
        match self.kind()? {
            AccessKind::LocalBlob => Some(&self.local_reference),
            AccessKind::LocalOciBlob | AccessKind::OciBlob => Some(&self.digest),
            AccessKind::LocalFile => Some(&self.filename),
            AccessKind::Artifact => Some(&self.image_reference),
            AccessKind::RelativeArtifact => Some(&self.reference),
            AccessKind::Wget | AccessKind::Helm | AccessKind::GitHub => None,
        }
    }
}

impl AccessKind {
    /// Whether it gives an artifact of a registry, and not bytes.
    pub(super) fn is_artifact(self) -> bool {
        matches!(self, AccessKind::Artifact | AccessKind::RelativeArtifact)
    }
}
