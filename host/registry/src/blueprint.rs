//! A blueprint in an archive that somebody has at hand, such as a file: read as one that a repository has.

use orangery_blueprint::FileSystem;
use orangery_ocm::media;

use crate::{
    archive::{self, ArchiveLimits},
    image::Packed,
};

/// The most bytes of an archive with a blueprint.
pub const MOST_OF_A_BLUEPRINT: u64 = ArchiveLimits::BLUEPRINT.total;

/// The files of a blueprint: a tar archive, compressed or not, or an artifact packed into one (`docs/wire.md` §4.1).
///
/// # Errors
/// Why it cannot be used: the end of a sentence that begins with its name.
pub fn blueprint(bytes: &[u8]) -> Result<FileSystem, String> {
    let files = archive::files(bytes, ArchiveLimits::BLUEPRINT).map_err(|error| error.to_string())?;
    let has = |wanted: &[&str]| files.iter().any(|(name, _)| wanted.contains(&name.as_str()));
    if has(&["index.json", "artifact-descriptor.json"]) && !has(&["blueprint.yaml"]) {
        let layer = Packed::open(bytes)?.layer(media::is_blueprint)?;
        return blueprint_layer(&layer);
    }
    FileSystem::of_files(files)
}

/// The files of the one layer of a blueprint.
pub(crate) fn blueprint_layer(bytes: &[u8]) -> Result<FileSystem, String> {
    FileSystem::of_files(archive::files(bytes, ArchiveLimits::BLUEPRINT).map_err(|error| error.to_string())?)
}
