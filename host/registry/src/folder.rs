//! Component versions in folders and archives of files: a component archive, which has one, and Landscaper's own local
//! repository, where every file at the root is a descriptor.

use std::sync::Arc;

use orangery_core::{digest::content::ContentDigest, error::Fault, port::BoxFuture};
use orangery_turns::blocking;

use crate::{
    oci::ReservedContent,
    source::{self, Blobs, FoundVersion, MOST_OF_A_BLOB, MOST_OF_A_DESCRIPTOR, ReadDescriptor, VersionSource},
    store::BlobStore,
    version_memory::HeldVersionMemory,
};

/// The descriptor of a component archive.
const FILE: &str = "component-descriptor.yaml";

/// One component version: `component-descriptor.yaml` and `blobs`.
pub(crate) struct ComponentArchive(pub(crate) BlobStore);

/// Descriptors of any name at the root, and their `blobs`.
pub(crate) struct Local(pub(crate) BlobStore);

impl VersionSource for ComponentArchive {
    fn find<'a>(
        &'a self,
        named: (&'a str, &'a str),
        memory: &'a HeldVersionMemory,
    ) -> BoxFuture<'a, Result<Option<FoundVersion>, Fault>> {
        Box::pin(searched(self.0.clone(), named, memory, |store, name, version| {
            let text = store.read(FILE, MOST_OF_A_DESCRIPTOR)?;
            let text = text.ok_or_else(|| store.fault(&format!("it has no {FILE}")))?;
            one(store, FILE, text, name, version)
        }))
    }
}

impl VersionSource for Local {
    fn find<'a>(
        &'a self,
        named: (&'a str, &'a str),
        memory: &'a HeldVersionMemory,
    ) -> BoxFuture<'a, Result<Option<FoundVersion>, Fault>> {
        Box::pin(searched(self.0.clone(), named, memory, |store, name, version| {
            for file in store.files()? {
                let Some(text) = store.read(&file, MOST_OF_A_DESCRIPTOR)? else { continue };
                if let Some(found) = one(store, &file, text, name, version)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }))
    }
}

/// The component version of one file, where it is the one wanted.
fn one(store: &BlobStore, file: &str, text: Vec<u8>, name: &str, version: &str) -> Result<Option<FoundVersion>, Fault> {
    let text = String::from_utf8(text).map_err(|_| store.fault(&format!("its file {file} is no UTF-8")))?;
    let ReadDescriptor { descriptor, bytes } = source::parse(&text, &format!("{}/{file}", store.display()))?;
    if descriptor.name != name || descriptor.version != version {
        return Ok(None);
    }
    Ok(Some(FoundVersion { descriptor: Arc::new(descriptor), bytes, blobs: Arc::new(FolderBlobs(store.clone())) }))
}

/// Runs a search where waiting for a disk holds nobody up.
async fn searched(
    store: BlobStore,
    (name, version): (&str, &str),
    memory: &HeldVersionMemory,
    search: impl FnOnce(&BlobStore, &str, &str) -> Result<Option<FoundVersion>, Fault> + Send + 'static,
) -> Result<Option<FoundVersion>, Fault> {
    let (name, version) = (name.to_owned(), version.to_owned());
    let text = store.display();
    let searched = blocking(move || search(&store, &name, &version)).await;
    let found = searched.map_err(|error| crate::interrupted(&text, &error))??;
    memory.add(found.as_ref().map_or(0, |found| found.bytes))?;
    Ok(found)
}

/// Blobs by file name, below `blobs`.
struct FolderBlobs(BlobStore);

impl Blobs for FolderBlobs {
    fn local<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ReservedContent, Fault>> {
        Box::pin(async move {
            let (store, reference) = (self.0.clone(), reference.to_owned());
            let read = blocking(move || {
                // Tools write the colon of a digest as a dot.
                for name in [reference.clone(), reference.replacen(':', ".", 1)] {
                    let Some(bytes) = store.read(&format!("blobs/{name}"), MOST_OF_A_BLOB)? else { continue };
                    let message: Option<ContentDigest> = reference.replacen("sha256.", "sha256:", 1).parse().ok();
                    if message.is_some_and(|digest| ContentDigest::of(digest.algorithm(), &bytes) != digest) {
                        return Err(store.fault(&format!("its blob {reference} has another content")));
                    }
                    return Ok(ReservedContent::from(bytes));
                }
                Err(store.fault(&format!("it has no blob {reference:?}")))
            });
            read.await.map_err(|error| crate::interrupted(&self.0.display(), &error))?
        })
    }

    fn relative(&self, _: &str) -> Option<String> {
        None
    }
}
