//! What a deployer author writes, and what a deployer may read while it plans.

use serde_json::Value;

use crate::{
    ApiResource, ClusterRef, Fault, Item, Level, ObjectKey, Problem, Proposal, Selection,
    bindings::deployer::{
        exports::orangery::deployer::deploy::Guest,
        orangery::deployer::{artifacts, cluster, log},
    },
};

/// A deployer: one function from a deploy item and what it reads to everything the host is to do.
///
/// Exported with [`export_deployer!`](crate::export_deployer). The function must be deterministic: same item, same reads,
/// same proposal. It is generic over its host, so that a component imports exactly the functions that it calls.
pub trait Deployer {
    /// Decides what the item needs.
    ///
    /// # Errors
    ///
    /// [`Fault::Invalid`] where only another configuration helps, [`Fault::Later`] where it may pass by itself. Faults of
    /// reads are passed on with `?`.
    fn plan(item: Item, host: &impl Host) -> Result<Proposal, Fault>;
}

/// A deployer that can also judge a configuration before anything is deployed, and that has something to do before the objects of
/// an item are deleted: the world `deployer-with-uninstall`. A component exports one world, so its crate generates the bindings of
/// this one, with the words of this crate, as `plugins/container/src/bindings.rs` does.
pub trait DeployerWithUninstall: Deployer {
    /// Decides what is done before the host deletes the inventory of an item.
    ///
    /// # Errors
    ///
    /// See [`Deployer::plan`].
    fn uninstall(item: Item, host: &impl Host) -> Result<Proposal, Fault>;

    /// The JSON Schema of the provider configuration.
    fn schema() -> Value;

    /// What is wrong with a provider configuration, in the order in which a reader would meet it.
    fn check(config: &Value) -> Vec<Problem>;
}

/// Reading granted clusters. A component that is called again may be told otherwise.
pub trait Cluster {
    /// One object; `None` where it does not exist.
    ///
    /// # Errors
    ///
    /// [`Fault::Denied`] without a grant, [`Fault::Invalid`] for a kind that the cluster does not serve,
    /// [`Fault::Later`] while the cluster cannot be reached. The other reads fail alike.
    fn get(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault>;
    /// Many objects in one call, read concurrently, answered in the order asked.
    ///
    /// # Errors
    ///
    /// See [`Cluster::get`].
    fn get_many(&self, on: &ClusterRef, keys: &[ObjectKey]) -> Result<Vec<Option<Value>>, Fault>;
    /// All objects of a selection.
    ///
    /// # Errors
    ///
    /// See [`Cluster::get`].
    fn list(&self, on: &ClusterRef, what: &Selection) -> Result<Vec<Value>, Fault>;
    /// The server's version as it says it, such as `v1.33.4`.
    ///
    /// # Errors
    ///
    /// See [`Cluster::get`].
    fn version(&self, on: &ClusterRef) -> Result<String, Fault>;
    /// The kinds that the cluster serves.
    ///
    /// # Errors
    ///
    /// See [`Cluster::get`].
    fn discover(&self, on: &ClusterRef) -> Result<Vec<ApiResource>, Fault>;
}

/// One piece of content. The host has checked its digest and signature.
pub trait Artifact: Sized {
    /// `sha256:…`
    fn digest(&self) -> String;
    /// Its media type.
    fn media_type(&self) -> String;
    /// Its length in bytes.
    fn size(&self) -> u64;
    /// At most `length` bytes from `offset` on; fewer at the end.
    ///
    /// # Errors
    ///
    /// As the host says.
    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Fault>;
    /// Another layer of the same artifact, such as a chart's provenance.
    ///
    /// # Errors
    ///
    /// As the host says.
    fn layer(&self, media_type: &str) -> Result<Option<Self>, Fault>;
}

/// Content by reference. The host resolves credentials, digests, signatures, limits and caches.
pub trait Artifacts {
    /// What a reference leads to.
    type Artifact: Artifact;
    /// An OCI artifact or image layer by reference.
    ///
    /// # Errors
    ///
    /// [`Fault::Denied`] without a grant, [`Fault::Invalid`] for what does not exist, else [`Fault::Later`].
    fn oci(&self, reference: &str) -> Result<Self::Artifact, Fault>;
    /// A file behind an http(s) URL.
    ///
    /// # Errors
    ///
    /// See [`Artifacts::oci`].
    fn url(&self, url: &str) -> Result<Self::Artifact, Fault>;
    /// A chart of a classic Helm repository.
    ///
    /// # Errors
    ///
    /// See [`Artifacts::oci`].
    fn helm_repository(&self, url: &str, chart: &str, version: &str) -> Result<Self::Artifact, Fault>;
    /// A resource of a component version, by the key that `getResourceKey` gives.
    ///
    /// # Errors
    ///
    /// See [`Artifacts::oci`].
    fn component_resource(&self, key: &str) -> Result<Self::Artifact, Fault>;
    /// The descriptors of a component version and of all that it refers to, as one JSON document in schema v2. `of` is what an
    /// installation says under `componentDescriptor`.
    ///
    /// # Errors
    ///
    /// See [`Artifacts::oci`].
    fn component_descriptors(&self, of: &Value) -> Result<Self::Artifact, Fault>;
}

/// The call's log. Never log values of imports, secrets or kubeconfigs.
pub trait Log {
    /// One line.
    fn log(&self, at: Level, message: &str, fields: &[(&str, &str)]);
}

/// All that a deployer may reach.
pub trait Host: Cluster + Artifacts + Log {}

impl<T: Cluster + Artifacts + Log> Host for T {}

/// The host behind the component's imports.
#[derive(Clone, Copy, Debug)]
pub struct Imports;

fn document(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| {
        Fault::Invalid(Problem {
            code: crate::INTERNAL_PROBLEM.to_owned(),
            message: format!("the host answered a read with something that is not JSON: {error}"),
            at: None,
        })
    })
}

impl Cluster for Imports {
    fn get(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault> {
        cluster::get(on, key)?.as_deref().map(document).transpose()
    }

    fn get_many(&self, on: &ClusterRef, keys: &[ObjectKey]) -> Result<Vec<Option<Value>>, Fault> {
        cluster::get_many(on, keys)?.iter().map(|object| object.as_deref().map(document).transpose()).collect()
    }

    fn list(&self, on: &ClusterRef, what: &Selection) -> Result<Vec<Value>, Fault> {
        cluster::list(on, what)?.iter().map(|object| document(object)).collect()
    }

    fn version(&self, on: &ClusterRef) -> Result<String, Fault> {
        cluster::version(on)
    }

    fn discover(&self, on: &ClusterRef) -> Result<Vec<ApiResource>, Fault> {
        cluster::discover(on)
    }
}

impl Artifact for artifacts::Artifact {
    fn digest(&self) -> String {
        artifacts::Artifact::digest(self)
    }

    fn media_type(&self) -> String {
        artifacts::Artifact::media_type(self)
    }

    fn size(&self) -> u64 {
        artifacts::Artifact::size(self)
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Fault> {
        artifacts::Artifact::read(self, offset, length)
    }

    fn layer(&self, media_type: &str) -> Result<Option<Self>, Fault> {
        artifacts::Artifact::layer(self, media_type)
    }
}

impl Artifacts for Imports {
    type Artifact = artifacts::Artifact;

    fn oci(&self, reference: &str) -> Result<Self::Artifact, Fault> {
        artifacts::oci(reference)
    }

    fn url(&self, url: &str) -> Result<Self::Artifact, Fault> {
        artifacts::url(url)
    }

    fn helm_repository(&self, url: &str, chart: &str, version: &str) -> Result<Self::Artifact, Fault> {
        artifacts::helm_repository(url, chart, version)
    }

    fn component_resource(&self, key: &str) -> Result<Self::Artifact, Fault> {
        artifacts::component_resource(key)
    }

    fn component_descriptors(&self, of: &Value) -> Result<Self::Artifact, Fault> {
        artifacts::component_descriptors(&of.to_string())
    }
}

impl Log for Imports {
    fn log(&self, at: Level, message: &str, fields: &[(&str, &str)]) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        log::log(at, message, &fields);
    }
}

impl<T: Deployer> Guest for T {
    fn plan(of: Item) -> Result<Proposal, Fault> {
        <T as Deployer>::plan(of, &Imports)
    }
}
