//! Signatures of component versions (`docs/wire.md` §10): the signature is over the digest of the descriptor's normal
//! form, which has the digests of all resources and of all component versions that it refers to.

mod key;
mod nested;

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    listing,
};
use orangery_ocm::{Descriptor, Digest, Normalisation, Resource, Signature, Verification};
use orangery_turns::off_the_executor;

use crate::{
    access::{ResourceAccess, algorithm, is_excluded, is_told_by_access},
    graph::{Graph, GraphNode},
};

/// Checks the signature that is asked for, and every digest below it. The answer is the descriptors of the graph as they
/// were signed: with the digests that only the signed one has for those below it.
pub(crate) async fn verify(
    graph: &Graph,
    wanted: &Verification,
    reach: &ResourceAccess,
) -> Result<Vec<Arc<Descriptor>>, Fault> {
    let root = &graph.root().descriptor;
    let signature = signature(root, &wanted.signature)?;
    let signed: Vec<Arc<Descriptor>> = if root.nested_digests.is_empty() {
        graph.nodes.iter().map(|node| Arc::clone(&node.descriptor)).collect()
    } else {
        off_the_executor(|| nested::completed(graph, &signature.digest))?
    };
    let descriptor = signed.first().unwrap_or(root);
    let (digest, algorithm, normalised) = off_the_executor(|| digest_of(descriptor, &signature.digest))
        .map_err(|why| refused(descriptor, &format!("its signature {:?} {why}", wanted.signature)))?;
    if digest.hex() != signature.digest.value {
        return Err(refused(
            descriptor,
            &format!(
                "its content is not what the signature {:?} is for: its digest is {}, signed is {}",
                wanted.signature,
                digest.hex(),
                signature.digest.value
            ),
        ));
    }
    key::check(signature, wanted, algorithm, normalised.as_bytes())
        .map_err(|why| refused(descriptor, &format!("the signature {:?} {why}", wanted.signature)))?;
    let mut digests = KnownDigests::default();
    let mut nodes = graph.nodes.iter().zip(&signed);
    let check =
        || nodes.try_for_each(|(node, below)| check_references((&node.references, below), &signed, &mut digests));
    off_the_executor(check)?;
    for (node, descriptor) in graph.nodes.iter().zip(&signed) {
        for resource in &descriptor.resources {
            check_resource(node, resource, reach).await?;
        }
    }
    Ok(signed)
}

/// Whether a component version has the signature.
pub(crate) fn has_signature(descriptor: &Descriptor, wanted: &Verification) -> bool {
    descriptor.signatures.iter().any(|signature| signature.name == wanted.signature)
}

/// Whether each component version of a graph stands, as it is, in the graph of a signed one above it.
pub(crate) fn check_below(graph: &Graph, above: &Graph) -> Result<(), Fault> {
    let signed = &above.root().descriptor;
    for GraphNode { descriptor, .. } in &graph.nodes {
        if !above.nodes.iter().any(|node| node.descriptor == *descriptor) {
            let why = format!(
                "it has not the signature, and {signed}, which has it, refers to no such content of {descriptor}; sign it as \
                 well"
            );
            return Err(refused(&graph.root().descriptor, &why));
        }
    }
    Ok(())
}

fn signature<'a>(descriptor: &'a Descriptor, name: &str) -> Result<&'a Signature, Fault> {
    descriptor.signatures.iter().find(|signature| signature.name == name).ok_or_else(|| {
        let names = listing::listed(descriptor.signatures.iter().map(|signature| &signature.name));
        refused(descriptor, &format!("it has no signature {name:?}; it has {names}"))
    })
}

fn refused(descriptor: &Descriptor, why: &str) -> Fault {
    let message = format!("the component {descriptor} cannot be verified: {why}");
    Fault::invalid(Code::ConfigurationProblem, message)
}

/// The digest of a descriptor by the algorithms of another digest, and the normal form that it is of. The error is the end of
/// a sentence.
fn digest_of(descriptor: &Descriptor, by: &Digest) -> Result<(ContentDigest, Algorithm, String), String> {
    let algorithm = algorithm(&by.hash_algorithm)
        .ok_or_else(|| format!("uses the hash {:?}; known are SHA-256 and SHA-512", by.hash_algorithm))?;
    let form = Normalisation::named(&by.normalisation_algorithm)
        .ok_or_else(|| format!("uses {:?}; known are jsonNormalisation/v1, v2 and v3", by.normalisation_algorithm))?;
    let normalised = descriptor.normalised(form);
    Ok((ContentDigest::of(algorithm, normalised.as_bytes()), algorithm, normalised))
}

/// Digests of descriptors, by their places and by hash and normal form: many references may lead to one.
type KnownDigests<'a> = BTreeMap<(usize, &'a str, &'a str), ContentDigest>;

fn check_references<'a>(
    (links, descriptor): (&[usize], &'a Descriptor),
    signed: &[Arc<Descriptor>],
    known: &mut KnownDigests<'a>,
) -> Result<(), Fault> {
    for (position, reference) in descriptor.references.iter().enumerate() {
        let place = format!("its component reference {}", reference.element.name);
        let digest = reference.digest.as_ref().ok_or_else(|| {
            refused(descriptor, &format!("{place} has no digest; sign the component with its references"))
        })?;
        let child = links.get(position).and_then(|index| Some((*index, signed.get(*index)?)));
        let (index, child) = child.ok_or_else(|| refused(descriptor, &format!("{place} leads to nothing")))?;
        let key = (index, digest.hash_algorithm.as_str(), digest.normalisation_algorithm.as_str());
        let found = match known.get(&key) {
            Some(found) => found.clone(),
            None => {
                let found = digest_of(child, digest);
                let (found, ..) = found.map_err(|why| refused(descriptor, &format!("{place} {why}")))?;
                known.insert(key, found.clone());
                found
            }
        };
        if found.hex() != digest.value {
            let why = format!(
                "{place} is for another content of {child}: its digest is {}, signed is {}",
                found.hex(),
                digest.value
            );
            return Err(refused(descriptor, &why));
        }
    }
    Ok(())
}

/// A resource has the content that is signed. What its access names by the same digest is not fetched for that: it is
/// compared when it is used.
async fn check_resource(node: &GraphNode, resource: &Resource, reach: &ResourceAccess) -> Result<(), Fault> {
    if resource.access.is_none() || resource.has_no_content() {
        return Ok(());
    }
    let digest = resource.digest.as_ref().ok_or_else(|| {
        refused(&node.descriptor, &format!("its resource {} has no digest; sign it again", resource.element.name))
    })?;
    if is_excluded(digest) || is_told_by_access(resource, digest) {
        return Ok(());
    }
    reach.fetch_signed(node, resource).await.map(|_| ())
}
