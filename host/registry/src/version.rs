//! A component version that is open.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io::Read,
    sync::{Arc, Mutex, PoisonError},
};

use data_encoding::BASE64;
use flate2::read::MultiGzDecoder;
use orangery_blueprint::{FileSystem, schema::MOST_UNFOLDED_SCHEMA_BYTES};
use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    memory,
    port::BoxFuture,
};
use orangery_ocm::{
    Artifact, Child, ComponentSource, ComponentVersion, Components, Descriptor, DescriptorSchema, Files, Identity,
    Resource, ResourceContent, ResourceKey, ResourceReference, VersionReference, matches, media, resource_key,
    resources,
};
use serde_json::Value;

use crate::{
    access::{Fetched, ResourceAccess, display, is_binary},
    artifacts::{held, held_chart},
    blueprint::blueprint_layer,
    graph::{Graph, GraphNode, unknown},
    image::{self, Packed},
    oci::{CHART, ReservedContent},
    shared::SharedRepositories,
};

/// Unpacked blueprints of so many bytes are kept in memory.
pub(crate) const SMALL: usize = 1 << 20;
/// The most bytes of a JSON schema.
const MOST_OF_A_SCHEMA: u64 = 4 << 20;

pub(crate) struct OpenedVersion {
    pub(crate) shared: Arc<SharedRepositories>,
    pub(crate) graph: Graph,
    pub(crate) reach: ResourceAccess,
    /// As the installation asked for it.
    pub(crate) source: ComponentSource,
    /// Where it was found.
    pub(crate) at: VersionReference,
    pub(crate) replaced: Option<VersionReference>,
    /// Protects what sub-installations have of descriptors within others, by the node above and what it refers to: one copy of each.
    pub(crate) nested: Mutex<BTreeMap<(usize, String, String), Arc<Value>>>,
}

impl OpenedVersion {
    /// A resource and the component version that has it.
    fn find(&self, reference: &ResourceReference) -> Result<(&GraphNode, &Resource), Fault> {
        let node = self.graph.follow(&reference.reference_path)?;
        Ok((node, Self::find_in(node, &reference.resource)?))
    }

    fn find_in<'n>(node: &'n GraphNode, identity: &BTreeMap<String, String>) -> Result<&'n Resource, Fault> {
        let select: Vec<_> = identity.clone().into_iter().collect();
        // `version` is part of an identity where names are not unique; as a selection it always counts.
        let (version, select): (Vec<_>, Vec<_>) = select.into_iter().partition(|(name, _)| name == "version");
        let mut found = resources(node.with_digests(), &select).map_err(|error| unknown(&error))?.into_iter();
        let is_version = |resource: &&Resource| {
            version.iter().all(|(_, wanted)| {
                *wanted == resource.element.version || resource.element.extra_identity.get("version") == Some(wanted)
            })
        };
        let missing = || {
            let all: Vec<_> = identity.clone().into_iter().collect();
            unknown(&format!("the component {} has no resource with {all:?}", node.descriptor))
        };
        found.find(is_version).ok_or_else(missing)
    }

    /// A resource as deployers get it: of an artifact, its content.
    async fn artifact(&self, node: &GraphNode, resource: &Resource) -> Result<Arc<dyn Artifact>, Fault> {
        match self.reach.fetch(node, resource).await? {
            Fetched::Blob(content, room) if image::is_archive(&content.media_type) => {
                let place = || display(node, resource);
                let chart = move || {
                    let _room = room;
                    Packed::open(&content.bytes)?.layer(|media_type| media_type == CHART)
                };
                let layer = self.reach.in_turn(place, chart).await?;
                Ok(held_chart(layer.map_err(|why| unknown(&format!("{}: {why}", place())))?))
            }
            Fetched::Blob(content, _) => Ok(held(content)),
            Fetched::Artifact { reference, manifest } => {
                let layer = self.reach.layer_of(&reference, manifest);
                layer.map_err(|fault| crate::within(fault, &display(node, resource)))
            }
        }
    }

    async fn unpacked(&self, node: &GraphNode, resource: &Resource) -> Result<Arc<FileSystem>, Fault> {
        let place = || display(node, resource);
        let invalid =
            |why: String| Fault::invalid(Code::ConfigurationProblem, format!("the blueprint in {}: {why}", place()));
        let (bytes, room, is_packed) = match self.reach.fetch(node, resource).await? {
            Fetched::Blob(content, room) => (content.bytes, room, image::is_archive(&content.media_type)),
            Fetched::Artifact { reference, manifest } => {
                let layer = self.reach.layer(&reference, &manifest, media::is_blueprint).await;
                let (bytes, room) = layer.map_err(|fault| crate::within(fault, &place()))?.into_parts();
                (bytes, room, false)
            }
        };
        let digest = ContentDigest::of(Algorithm::Sha256, &bytes);
        // The same bytes have other files in the layer of an artifact that they are than as an archive themselves.
        let key = (digest.clone(), is_packed);
        if let Some(files) = self.shared.blueprints.get(&key) {
            self.graph.memory.add_once(digest, files.bytes()).map_err(|fault| crate::within(fault, &place()))?;
            return Ok(files);
        }
        let unpack = move || {
            let _room = room;
            unpack(&bytes, is_packed)
        };
        let unpacked = self.reach.in_turn(place, unpack).await?;
        let files = Arc::new(unpacked.map_err(invalid)?);
        self.graph.memory.add_once(digest, files.bytes()).map_err(|fault| crate::within(fault, &place()))?;
        if files.bytes() <= SMALL {
            self.shared.blueprints.put(key, Arc::clone(&files));
        }
        Ok(files)
    }

    async fn fetched(&self, reference: &ResourceReference) -> Result<ResourceContent, Fault> {
        let (node, resource) = self.find(reference)?;
        match self.reach.fetch(node, resource).await? {
            Fetched::Blob(content, _) => Ok(content),
            Fetched::Artifact { reference, manifest } => {
                let packed = self.reach.packed(&reference, &manifest, &self.graph.memory).await;
                packed.map_err(|fault| crate::within(fault, &display(node, resource)))
            }
        }
    }

    async fn schema_bytes(&self, node: &GraphNode, resource: &Resource) -> Result<ReservedContent, Fault> {
        let is_schema = |media_type: &str| [media::JSON_SCHEMA_LAYER, media::JSON_SCHEMA_LEGACY].contains(&media_type);
        match self.reach.fetch(node, resource).await? {
            Fetched::Blob(content, room) if image::is_archive(&content.media_type) => {
                let place = || format!("the schema in {}", display(node, resource));
                let schema = move || {
                    let _room = room;
                    Packed::open(&content.bytes)?.layer(is_schema)
                };
                let layer = self.reach.in_turn(place, schema).await?;
                Ok(ReservedContent::from(layer.map_err(|why| unknown(&format!("{}: {why}", place())))?))
            }
            Fetched::Blob(content, room) => Ok(ReservedContent::of_parts(content.bytes, room)),
            Fetched::Artifact { reference, manifest } => self.reach.layer(&reference, &manifest, is_schema).await,
        }
    }

    /// A descriptor that a reference carries, which all sub-installations that have it share (C-288).
    fn shared_nested(
        &self,
        parent: &GraphNode,
        (name, version): (&str, &str),
        nested: &Value,
    ) -> Result<Arc<Value>, Fault> {
        let index = self.graph.nodes.iter().position(|node| std::ptr::eq(node, parent)).unwrap_or_default();
        let mut known = self.nested.lock().unwrap_or_else(PoisonError::into_inner);
        match known.entry((index, name.to_owned(), version.to_owned())) {
            Entry::Occupied(shared) => Ok(Arc::clone(shared.get())),
            Entry::Vacant(place) => {
                self.graph.memory.add(memory::of(nested))?;
                Ok(Arc::clone(place.insert(Arc::new(nested.clone()))))
            }
        }
    }

    /// The node of a descriptor that a template hands in, where it is one of the graph.
    fn node_of(&self, descriptor: &Descriptor) -> Option<&GraphNode> {
        let is_same = |node: &&GraphNode| {
            node.descriptor.name == descriptor.name && node.descriptor.version == descriptor.version
        };
        self.graph.nodes.iter().find(is_same)
    }
}

/// The files of an archive, or of the layer of a packed artifact.
fn unpack(bytes: &[u8], is_packed: bool) -> Result<FileSystem, String> {
    if is_packed { blueprint_layer(&Packed::open(bytes)?.layer(media::is_blueprint)?) } else { blueprint_layer(bytes) }
}

impl ComponentVersion for OpenedVersion {
    fn descriptor(&self) -> &Arc<Descriptor> {
        &self.graph.root().descriptor
    }

    fn descriptors(&self) -> &[Arc<Descriptor>] {
        &self.graph.descriptors
    }

    fn replaced(&self) -> Option<&VersionReference> {
        self.replaced.as_ref()
    }

    fn blueprint<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<Arc<dyn Files>, Fault>> {
        Box::pin(async move {
            let (node, resource) = self.find(resource)?;
            if !media::BLUEPRINT_TYPES.contains(&resource.type_.as_str()) {
                let message = format!(
                    "{} has the type {:?}, but a blueprint has the type {}",
                    display(node, resource),
                    resource.type_,
                    media::BLUEPRINT_TYPES.join(" or ")
                );
                return Err(Fault::invalid(Code::ConfigurationProblem, message));
            }
            Ok(self.unpacked(node, resource).await? as Arc<dyn Files>)
        })
    }

    fn json_schema<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let (node, resource) = self.find(resource)?;
            let content = self.schema_bytes(node, resource).await?;
            let place = || format!("the schema in {}", display(node, resource));
            let read = self.reach.in_turn(place, move || read_schema(content.bytes())).await?;
            let (digest, schema) = read.map_err(|why| unknown(&format!("{}: {why}", place())))?;
            // As long as the version is open: a rendering keeps what it has fetched.
            let bytes = usize::try_from(memory::of(&schema)).unwrap_or(usize::MAX);
            self.graph.memory.add_once(digest, bytes).map_err(|fault| crate::within(fault, &place()))?;
            Ok(schema)
        })
    }

    fn content<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<ResourceContent, Fault>> {
        Box::pin(self.fetched(resource))
    }

    fn keyed<'a>(&'a self, key: &'a ResourceKey) -> BoxFuture<'a, Result<Option<Arc<dyn Artifact>>, Fault>> {
        Box::pin(async move {
            let wanted = &key.component;
            let is_wanted =
                |node: &&GraphNode| node.descriptor.name == wanted.name && node.descriptor.version == wanted.version;
            let Some(node) = self.graph.nodes.iter().find(is_wanted) else { return Ok(None) };
            let resource = Self::find_in(node, &key.resource)?;
            self.artifact(node, resource).await.map(Some)
        })
    }

    fn child(&self, reference: &str) -> Result<Child, Fault> {
        let reference = ResourceReference::parse(reference).map_err(|error| unknown(&error))?;
        let (_, resource) = self.find(&reference)?;
        let resource = resource.element.name.clone();
        let Some((last, path)) = reference.reference_path.split_last() else {
            return Ok(Child { component: self.source.clone(), resource });
        };
        let parent = self.graph.follow(path)?;
        let select: Vec<_> = last.clone().into_iter().collect();
        let named = orangery_ocm::references(&parent.descriptor, &select);
        let named = named.map_err(|error| unknown(&error))?.into_iter().next();
        let named = named.ok_or_else(|| unknown(&"a component reference is gone"))?;
        let (name, version) = (&named.component, &named.element.version);
        if matches!(self.source, ComponentSource::Inline(_))
            && let Some(nested) = parent.descriptor.nested_of(name, version)
        {
            let nested = self.shared_nested(parent, (name, version), nested)?;
            return Ok(Child { component: ComponentSource::Inline(nested), resource });
        }
        let component = ComponentSource::Reference(VersionReference {
            repository_context: self.at.repository_context.clone(),
            name: name.clone(),
            version: version.clone(),
        });
        Ok(Child { component, resource })
    }

    fn templates(self: Arc<Self>) -> Arc<dyn Components> {
        Arc::new(Templates(self))
    }
}

/// A JSON schema and the digest of its content. The error is the end of a sentence.
fn read_schema(content: &[u8]) -> Result<(ContentDigest, Value), String> {
    let bytes = plain(content)?;
    if memory::of_json(&bytes) > MOST_UNFOLDED_SCHEMA_BYTES {
        return Err(format!("it takes more than the {MOST_UNFOLDED_SCHEMA_BYTES} bytes of memory that are allowed"));
    }
    let schema = serde_json::from_slice(&bytes).map_err(|error| format!("it is no JSON: {error}"))?;
    Ok((ContentDigest::of(Algorithm::Sha256, content), schema))
}

/// A document that may be compressed, within its bound.
fn plain(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(bytes).take(MOST_OF_A_SCHEMA + 1).read_to_end(&mut plain)
    } else {
        bytes.take(MOST_OF_A_SCHEMA + 1).read_to_end(&mut plain)
    };
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if plain.len() as u64 > MOST_OF_A_SCHEMA {
        return Err(format!("it has more than {MOST_OF_A_SCHEMA} bytes"));
    }
    Ok(plain)
}

/// A component version as templates reach it.
struct Templates(Arc<OpenedVersion>);

impl Templates {
    /// The descriptor that a template hands in, or the blueprint's own.
    fn from(&self, from: Option<&Value>) -> Result<Arc<Descriptor>, Fault> {
        match from {
            Some(document) => Ok(Arc::new(Descriptor::parse(document).map_err(|error| unknown(&error))?)),
            None => Ok(Arc::clone(self.0.descriptor())),
        }
    }

    fn chosen(&self, from: Option<&Value>, select: &Identity) -> Result<Value, Fault> {
        let descriptor = self.from(from)?;
        orangery_ocm::references(&descriptor, select).map_err(|error| unknown(&error))?;
        let index = descriptor.references.iter().position(|reference| matches(&reference.element.identity(), select));
        let reference = index.and_then(|index| descriptor.references.get(index));
        // By the graph, which knows overwrites; by name, where the template made the descriptor itself.
        let node = self.0.node_of(&descriptor).filter(|node| node.descriptor.references == descriptor.references);
        let linked = node.zip(index).and_then(|(node, index)| self.0.graph.nodes.get(*node.references.get(index)?));
        let found = linked.map(|node| &node.descriptor).or_else(|| {
            let reference = reference?;
            self.0
                .descriptors()
                .iter()
                .find(|known| known.name == reference.component && known.version == reference.element.version)
        });
        let missing = || {
            let named = reference.map(|reference| format!("{}:{}", reference.component, reference.element.version));
            unknown(&format!("the component {} does not refer to {}", self.0.descriptor(), named.unwrap_or_default()))
        };
        Ok(found.ok_or_else(missing)?.render(DescriptorSchema::V2))
    }
}

impl Components for Templates {
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move { self.chosen(from, select) })
    }

    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let descriptor = self.from(from)?;
            let found = resources(&descriptor, select).map_err(|error| unknown(&error))?;
            Ok(found.into_iter().map(Resource::render).collect())
        })
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move {
            let reference = ResourceReference::parse(reference).map_err(|error| unknown(&error))?;
            let (node, resource) = self.0.find(&reference)?;
            Ok(resource_key(&node.descriptor, resource))
        })
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            let reference = ResourceReference::parse(reference).map_err(|error| unknown(&error))?;
            let content = self.0.fetched(&reference).await?;
            if is_binary(&content) {
                return Ok(BASE64.encode(content.bytes.as_slice()).into_bytes());
            }
            Ok(Arc::unwrap_or_clone(content.bytes))
        })
    }
}
