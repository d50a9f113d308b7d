//! Component versions of the Open Component Model: descriptors, identities, references and where they are stored
//! (`docs/wire.md` §4.4, §10). Pure; what reads registries and archives is the room `registry`.

mod allowed;
mod artifact;
mod changed_content;
mod child;
mod content;
mod descriptor;
mod digest;
mod key;
mod keyless;
pub mod media;
mod nested;
mod normal;
mod overwrite;
mod pinned;
mod policy;
mod port;
mod reference;
mod render;
mod repository;
mod select;
mod source;
mod unavailable;

pub use self::{
    allowed::{AllowedSources, FetchQuota, SourceList, SourceNetworks},
    artifact::{Artifact, ArtifactFuture, Artifacts, Document, KeyComponent, LayerFuture, ResourceKey, Resources},
    changed_content::{ChangeContent, ChangedContent},
    child::{Child, INLINE_LABEL},
    content::{Components, Files, Identity},
    descriptor::{
        ComponentVersionReference, ComponentVersionSource, Descriptor, DescriptorError, DescriptorSchema, Element,
        Label, Provider, Resource, Signature, SignatureValue,
    },
    digest::{Digest, NestedDigests, ResourceDigest},
    key::resource_key,
    keyless::{KeylessSigner, SignerIdentity},
    normal::Normalisation,
    overwrite::{Overwrite, OverwriteSide, Replaced, replace},
    pinned::{ComponentReference, ComponentReferenceError},
    policy::{NotSigned, SignaturePolicy},
    port::{
        ChartLogin, ChartRepositories, ComponentRequest, ComponentVersion, ComponentVersions, Credentials, KeySource,
        MOST_CREDENTIAL_BYTES, RegistryComponent, RegistryComponentRequest, ResourceContent, Secret, Verification,
    },
    reference::{ReferenceError, ResourceReference},
    render::list,
    repository::{NameMapping, Repository, RepositoryError},
    select::{SelectError, matches, references, resources},
    source::{ComponentSource, VersionReference},
    unavailable::Unavailable,
};

#[cfg(test)]
mod tests;
