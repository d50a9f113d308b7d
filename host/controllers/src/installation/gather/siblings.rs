//! Siblings: who exports what another imports, found by the edges between them, so that nobody scans.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::installation::Installation;
use orangery_reconcile::Key;
use orangery_turns::off_the_executor;

use super::super::dependencies::{EXPORTS, IMPORTS, exports, imports};
use crate::{index::Index, stores::Stores};

/// What stands under any of these edges beside the Installation itself, each once, however many edges lead to it.
fn related(stores: &Stores, of: &Installation, edges: &[String], index: &Index<Installation>) -> BTreeSet<Key> {
    let key = Key::of(of);
    let found = edges.iter().flat_map(|edge| index.keys(&stores.installations, &key.namespace, edge));
    found.filter(|other| *other != key).collect()
}

/// Objects that are kept as text are made whole once each, when it is their turn (C-289).
fn whole(stores: &Stores, keys: BTreeSet<Key>) -> impl Iterator<Item = Arc<Installation>> + use<'_> {
    keys.into_iter().filter_map(|key| stores.installations.get(&key))
}

/// The siblings whose exports this Installation imports, sorted by name.
pub(in crate::installation) fn predecessors<'s>(
    stores: &'s Stores,
    of: &Installation,
) -> impl Iterator<Item = Arc<Installation>> + use<'s> {
    whole(stores, related(stores, of, &imports(of), &EXPORTS))
}

/// The siblings that import what this Installation exports, sorted by name.
pub(in crate::installation) fn successors<'s>(
    stores: &'s Stores,
    of: &Installation,
) -> impl Iterator<Item = Arc<Installation>> + use<'s> {
    whole(stores, related(stores, of, &exports(of), &IMPORTS))
}

/// All that comes before this root, however far ([`orangery_blueprint::sibling::ancestors`]). However many roots export and import the
/// same, the exporters of each name are gone through once, and where one of them imports it as well, it once more.
pub(in crate::installation) fn ancestors(stores: &Stores, of: &Installation) -> BTreeMap<String, String> {
    let Key { namespace, name } = Key::of(of);
    // By edge: the one for whom its exporters were found, where it is one of them.
    let mut found = BTreeMap::<String, Option<Key>>::new();
    off_the_executor(|| {
        orangery_blueprint::sibling::ancestors(&name, |name| {
            let key = Key::new(&namespace, name);
            let Some(installation) = stores.installations.get(&key) else { return Vec::new() };
            let mut before = BTreeSet::new();
            for edge in imports(&installation) {
                match found.get_mut(&edge) {
                    None => {
                        let exporters = EXPORTS.keys(&stores.installations, &namespace, &edge);
                        let itself = exporters.contains(&key).then(|| key.clone());
                        before.extend(
                            exporters.into_iter().filter(|other| *other != key).map(|key| key.name.to_string()),
                        );
                        found.insert(edge, itself);
                    }
                    Some(left) => before.extend(left.take_if(|left| *left != key).map(|key| key.name.to_string())),
                }
            }
            before.into_iter().collect()
        })
    })
}
