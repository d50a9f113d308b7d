//! Watches by what they watch, as long as somebody holds them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use super::Scope;

/// So many of them are looked through in any case.
const FEW: usize = 32;

/// Those that live. One that nobody holds any more is removed when as many have come as there were: looking for them costs each
/// that comes the same, however many there are.
pub(super) struct LiveEntries<T> {
    by_scope: BTreeMap<Scope, Weak<T>>,
    /// How many were left when they were looked through.
    left: usize,
}

impl<T> Default for LiveEntries<T> {
    fn default() -> Self {
        Self { by_scope: BTreeMap::new(), left: 0 }
    }
}

impl<T> LiveEntries<T> {
    pub(super) fn get(&self, scope: &Scope) -> Option<Arc<T>> {
        self.by_scope.get(scope).and_then(Weak::upgrade)
    }

    pub(super) fn has(&self, scope: &Scope) -> bool {
        self.by_scope.get(scope).is_some_and(|one| one.strong_count() > 0)
    }

    pub(super) fn insert(&mut self, scope: Scope, one: &Arc<T>) {
        if self.by_scope.len() >= self.left.max(FEW).saturating_mul(2) {
            self.by_scope.retain(|_, one| one.strong_count() > 0);
            self.left = self.by_scope.len();
        }
        self.by_scope.insert(scope, Arc::downgrade(one));
    }

    /// How many are of single objects of this kind and namespace.
    pub(super) fn singles(&self, all: &Scope) -> usize {
        // Nothing of the same kind and namespace comes before it in order.
        let of = self.by_scope.range::<Scope, _>(all..);
        let of = of.take_while(|(scope, _)| scope.resource == all.resource && scope.namespace == all.namespace);
        of.filter(|(scope, one)| scope.is_single() && one.strong_count() > 0).count()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Scope, Arc<T>)> {
        self.by_scope.iter().filter_map(|(scope, one)| Some((scope, one.upgrade()?)))
    }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::deployer::ApiResource;

    use super::*;

    fn scope(namespace: &str, fields: Option<String>) -> Scope {
        let resource = ApiResource {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".to_owned(),
            namespaced: true,
        };
        Scope { resource, namespace: Some(namespace.into()), labels: None, fields }
    }

    #[test]
    fn c_164_what_nobody_holds_is_removed_when_as_many_have_come_as_were_left() {
        let mut live = LiveEntries::default();
        let held: Vec<_> =
            (0..FEW).map(|number| (scope("a", Some(format!("metadata.name=x{number}"))), Arc::new(()))).collect();
        for (scope, one) in &held {
            live.insert(scope.clone(), one);
        }
        for number in 0..10 * FEW {
            live.insert(scope("b", Some(format!("metadata.name=x{number}"))), &Arc::new(()));
            assert!(live.by_scope.len() <= 2 * FEW);
        }
        assert_eq!(live.iter().count(), FEW);
        assert_eq!([live.singles(&scope("a", None)), live.singles(&scope("b", None))], [FEW, 0]);
        let all = Arc::new(());
        live.insert(scope("a", None), &all);
        assert_eq!(live.singles(&scope("a", None)), FEW, "that of all is no single one");
        assert!(live.has(&scope("a", None)) && !live.has(&scope("b", None)));
        assert!(live.get(&scope("a", None)).is_some_and(|found| Arc::ptr_eq(&found, &all)));
    }
}
