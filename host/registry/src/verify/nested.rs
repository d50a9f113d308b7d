//! Signatures whose digests all stand in the signed descriptor: those below it are as their makers wrote them.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::error::Fault;
use orangery_ocm::{Descriptor, Digest};

use super::{digest_of, refused};
use crate::graph::Graph;

/// The descriptors of the graph with all their digests, from the bottom up: what stands in the signed one goes before
/// what a descriptor says of itself, and what it says of a descriptor has to be what comes out.
pub(super) fn completed(graph: &Graph, signature: &Digest) -> Result<Vec<Arc<Descriptor>>, Fault> {
    let (done, digests) = (vec![NestedProgress::Open; graph.nodes.len()], BTreeMap::new());
    let mut work = NestedWork { graph, signature, done, digests };
    (0..graph.nodes.len()).map(|index| work.complete(index)).collect()
}

#[derive(Clone)]
enum NestedProgress {
    Open,
    /// Something below it is being completed.
    Begun,
    Done(Arc<Descriptor>),
}

struct NestedWork<'a> {
    graph: &'a Graph,
    signature: &'a Digest,
    done: Vec<NestedProgress>,
    /// Of those that are completed: many references may lead to one.
    digests: BTreeMap<usize, Digest>,
}

impl NestedWork<'_> {
    /// As deep as references go: the graph bounds that.
    fn complete(&mut self, index: usize) -> Result<Arc<Descriptor>, Fault> {
        let (root, node) = (self.graph.root(), self.graph.nodes.get(index).unwrap_or(self.graph.root()));
        match self.done.get(index) {
            Some(NestedProgress::Done(descriptor)) => return Ok(Arc::clone(descriptor)),
            Some(NestedProgress::Begun) => {
                let why =
                    format!("{} refers to itself, directly or through others: no digest is for that", node.descriptor);
                return Err(refused(&root.descriptor, &why));
            }
            Some(NestedProgress::Open) | None => self.mark(index, NestedProgress::Begun),
        }
        let mut references = Vec::new();
        for below in &node.references {
            references.push(self.digest(*below)?);
        }
        let above = root.descriptor.nested_digests_of(&node.descriptor).filter(|_| index > 0);
        let descriptor = Arc::new(node.descriptor.completed(above, &references));
        self.mark(index, NestedProgress::Done(Arc::clone(&descriptor)));
        Ok(descriptor)
    }

    fn mark(&mut self, index: usize, progress: NestedProgress) {
        if let Some(place) = self.done.get_mut(index) {
            *place = progress;
        }
    }

    /// The digest of a completed descriptor: as the signed one has it, or by the algorithms of the signature.
    fn digest(&mut self, index: usize) -> Result<Digest, Fault> {
        let below = self.complete(index)?;
        if let Some(known) = self.digests.get(&index) {
            return Ok(known.clone());
        }
        let (root, below) = (&self.graph.root().descriptor, below.as_ref());
        let message = root.nested_digests_of(below).and_then(|nested| nested.digest.as_ref());
        let by = message.unwrap_or(self.signature);
        let place = format!("its nestedDigests for {below}");
        let (found, ..) = digest_of(below, by).map_err(|why| refused(root, &format!("{place} {why}")))?;
        if let Some(message) = message.filter(|message| message.value != found.hex()) {
            let why =
                format!("{place} are for another content: the digest is {}, signed is {}", found.hex(), message.value);
            return Err(refused(root, &why));
        }
        let digest = Digest { value: found.hex().to_owned(), ..by.clone() };
        self.digests.insert(index, digest.clone());
        Ok(digest)
    }
}
