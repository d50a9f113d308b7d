//! Siblings: who exports what another imports, found by the edges between them, so that nobody scans.

use std::{collections::BTreeMap, sync::Arc};

use kube::ResourceExt;
use orangery_api::installation::Installation;
use orangery_reconcile::Key;

use super::super::dependencies::{EXPORTS, IMPORTS, exports, imports};
use crate::{index::Index, stores::Stores};

fn related(
    stores: &Stores,
    of: &Installation,
    edges: &[String],
    index: &Index<Installation>,
) -> Vec<Arc<Installation>> {
    let key = Key::of(of);
    let found = edges.iter().flat_map(|edge| index.find(&stores.installations, &key.namespace, edge));
    let by_name: BTreeMap<String, Arc<Installation>> =
        found.map(|other| (other.name_any(), other)).filter(|(name, _)| key.name != name.as_str()).collect();
    by_name.into_values().collect()
}

/// The siblings whose exports this Installation imports, sorted by name.
pub(in crate::installation) fn predecessors(stores: &Stores, of: &Installation) -> Vec<Arc<Installation>> {
    related(stores, of, &imports(of), &EXPORTS)
}

/// The siblings that import what this Installation exports, sorted by name.
pub(in crate::installation) fn successors(stores: &Stores, of: &Installation) -> Vec<Arc<Installation>> {
    related(stores, of, &exports(of), &IMPORTS)
}

/// All that comes before this root, however far ([`orangery_blueprint::sibling::ancestors`]).
pub(in crate::installation) fn ancestors(stores: &Stores, of: &Installation) -> BTreeMap<String, String> {
    let Key { namespace, name } = Key::of(of);
    orangery_blueprint::sibling::ancestors(&name, |name| {
        let installation = stores.installations.get(&Key::new(&namespace, name));
        installation.iter().flat_map(|of| predecessors(stores, of)).map(|before| before.name_any()).collect()
    })
}
