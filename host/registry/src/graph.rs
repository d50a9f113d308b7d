//! A component version and all that it refers to: found level by level, each once, however references go round.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use orangery_core::error::{Code, Fault};
use orangery_ocm::{Descriptor, Overwrite, VersionReference, replace};
use serde_json::Value;

use crate::{
    search::DescriptorSearch,
    source::{Blobs, FoundVersion},
    version_memory::HeldVersionMemory,
};

/// Component versions that one may need, itself included.
const MOST_VERSIONS: usize = 2_000;
/// References from the first to the last.
const DEEPEST: usize = 64;
/// Component versions that are fetched at the same time.
const AT_ONCE: usize = 8;

/// A component version in its graph.
pub(crate) struct GraphNode {
    /// As it was found: what templates see.
    pub(crate) descriptor: Arc<Descriptor>,
    /// As it was signed, with the digests that only the signed one above it has; `None` where no signature was asked for.
    pub(crate) signed: Option<Arc<Descriptor>>,
    pub(crate) blobs: Arc<dyn Blobs>,
    /// The nodes behind its references, in the descriptor's order.
    pub(crate) references: Vec<usize>,
}

/// The first node is the component version that was asked for.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<GraphNode>,
    /// Their descriptors, each once, as references lead to them.
    pub(crate) descriptors: Vec<Arc<Descriptor>>,
    /// The memory of all of them, and of their unpacked blueprints.
    pub(crate) memory: Arc<HeldVersionMemory>,
}

/// What names a node: the place of its repository context among the distinct ones, component and version.
type NodeName = (Option<usize>, String, String);

/// The distinct repository contexts of references, each with its place. Many references share one (C-292), which is told
/// by its address, whatever it takes to compare it.
#[derive(Default)]
struct DistinctContexts {
    by_address: HashMap<usize, (Arc<Value>, usize)>,
    by_content: HashMap<Arc<Value>, usize>,
}

impl DistinctContexts {
    fn name(&mut self, reference: &VersionReference) -> NodeName {
        let context = reference.repository_context.as_ref().map(|context| self.place(context));
        (context, reference.name.clone(), reference.version.clone())
    }

    fn place(&mut self, context: &Arc<Value>) -> usize {
        let address = Arc::as_ptr(context).addr();
        if let Some((_, place)) = self.by_address.get(&address) {
            return *place;
        }
        let next = self.by_content.len();
        let place = *self.by_content.entry(Arc::clone(context)).or_insert(next);
        // Kept, so that no other one gets this address.
        self.by_address.insert(address, (Arc::clone(context), place));
        place
    }
}

impl GraphNode {
    fn of(found: FoundVersion) -> Self {
        let FoundVersion { descriptor, blobs, .. } = found;
        Self { signed: None, descriptor, blobs, references: Vec::new() }
    }

    /// The descriptor whose digests count for what is fetched.
    pub(crate) fn with_digests(&self) -> &Arc<Descriptor> {
        self.signed.as_ref().unwrap_or(&self.descriptor)
    }
}

impl Graph {
    /// Follows all references of a component version. `at` is where it was found, and where references are looked up,
    /// unless a rule says otherwise.
    pub(crate) async fn load(
        root: FoundVersion,
        at: &VersionReference,
        rules: &[Overwrite],
        search: &DescriptorSearch,
    ) -> Result<Self, Fault> {
        let mut nodes = vec![GraphNode::of(root)];
        let mut contexts = DistinctContexts::default();
        let mut known = HashMap::from([(contexts.name(at), 0)]);
        let mut level = 0..1;
        for _ in 0..DEEPEST {
            // What the level refers to: known nodes, and those that are fetched next.
            let mut wanted: Vec<(VersionReference, String)> = Vec::new();
            let mut edges: Vec<(usize, usize)> = Vec::new();
            for from in level.clone() {
                let Some(node) = nodes.get(from) else { continue };
                for reference in &node.descriptor.references {
                    let original = VersionReference {
                        repository_context: at.repository_context.clone(),
                        name: reference.component.clone(),
                        version: reference.element.version.clone(),
                    };
                    let to = replace(rules, &original).reference;
                    let next = nodes.len() + wanted.len();
                    let index = *known.entry(contexts.name(&to)).or_insert(next);
                    if known.len() > MOST_VERSIONS {
                        return Err(too_many(&nodes, &format!("more than {MOST_VERSIONS} component versions")));
                    }
                    if index == next {
                        let place = format!("component reference {} of {}", reference.element.name, node.descriptor);
                        wanted.push((to, place));
                    }
                    edges.push((from, index));
                }
            }
            level = nodes.len()..nodes.len() + wanted.len();
            let found = stream::iter(wanted)
                .map(|(to, place)| async move { search.find(&to).await.map_err(|fault| crate::within(fault, &place)) })
                .buffered(AT_ONCE);
            let found: Vec<FoundVersion> = found.try_collect().await?;
            nodes.extend(found.into_iter().map(GraphNode::of));
            for (from, to) in edges {
                if let Some(node) = nodes.get_mut(from) {
                    node.references.push(to);
                }
            }
            if level.is_empty() {
                let (descriptors, memory) = (in_order(&nodes), Arc::clone(search.memory()));
                return Ok(Self { nodes, descriptors, memory });
            }
        }
        Err(too_many(&nodes, &format!("component versions by more than {DEEPEST} references in a row")))
    }

    /// The node behind a path of references, each chosen by identity.
    pub(crate) fn follow(&self, path: &[std::collections::BTreeMap<String, String>]) -> Result<&GraphNode, Fault> {
        let mut node = self.root();
        for identity in path {
            let select: Vec<_> = identity.clone().into_iter().collect();
            let references = &node.descriptor.references;
            orangery_ocm::references(&node.descriptor, &select).map_err(|error| unknown(&error))?;
            let index =
                references.iter().position(|reference| orangery_ocm::matches(&reference.element.identity(), &select));
            let next = index.and_then(|index| node.references.get(index)).and_then(|index| self.nodes.get(*index));
            node = next.unwrap_or(node);
        }
        Ok(node)
    }

    /// Takes the descriptors as they were signed, one for each node: what is fetched is compared with their digests. What
    /// has none counts as signed as it was found, so nothing of it passes without a digest.
    pub(crate) fn set_signed(&mut self, signed: &[Arc<Descriptor>]) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.signed = Some(Arc::clone(signed.get(index).unwrap_or(&node.descriptor)));
        }
    }

    /// The same, from a graph that has all nodes of this one.
    pub(crate) fn set_signed_below(&mut self, above: &Graph, signed: &[Arc<Descriptor>]) {
        for node in &mut self.nodes {
            let found = above.nodes.iter().position(|other| other.descriptor == node.descriptor);
            let found = found.and_then(|index| signed.get(index));
            node.signed = Some(Arc::clone(found.unwrap_or(&node.descriptor)));
        }
    }

    /// The component version that was asked for.
    #[expect(clippy::indexing_slicing, reason = "a graph is made with its first node")]
    pub(crate) fn root(&self) -> &GraphNode {
        &self.nodes[0]
    }
}

/// Something that the descriptor does not have.
pub(crate) fn unknown(error: &dyn std::fmt::Display) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, error.to_string())
}

fn too_many(nodes: &[GraphNode], what: &str) -> Fault {
    let root = nodes.first().map(|node| node.descriptor.to_string()).unwrap_or_default();
    Fault::invalid(Code::LimitExceeded, format!("the component {root} refers to {what}"))
}

/// The descriptors as a reader of the root meets them, going down each reference first.
fn in_order(nodes: &[GraphNode]) -> Vec<Arc<Descriptor>> {
    let mut order: Vec<Arc<Descriptor>> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut waiting = vec![0];
    while let Some(node) = waiting.pop().and_then(|index: usize| nodes.get(index)) {
        if seen.insert((node.descriptor.name.clone(), node.descriptor.version.clone())) {
            order.push(Arc::clone(&node.descriptor));
            waiting.extend(node.references.iter().rev());
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_292_references_with_one_repository_context_are_named_by_one() {
        let reference = |context: &Arc<Value>, name: &str| VersionReference {
            repository_context: Some(Arc::clone(context)),
            name: name.to_owned(),
            version: "1".to_owned(),
        };
        let [one, same, other] = ["a", "a", "b"].map(|path| Arc::new(json!({"type": "local", "filePath": path})));
        let mut contexts = DistinctContexts::default();
        let named: Vec<NodeName> = (0..2_000).map(|n| contexts.name(&reference(&one, &format!("c{n}")))).collect();
        assert_eq!((named.len(), contexts.by_address.len()), (2_000, 1), "one is kept for all");
        assert_eq!(contexts.name(&reference(&same, "c0")), named[0], "the same content names the same node");
        assert_ne!(contexts.name(&reference(&other, "c0")), named[0]);
        assert_eq!(contexts.name(&VersionReference { repository_context: None, ..reference(&one, "c0") }).0, None);
        for context in [&one, &same, &other] {
            contexts.name(&reference(context, "c0"));
        }
        assert_eq!((contexts.by_address.len(), contexts.by_content.len()), (3, 2));
    }
}
