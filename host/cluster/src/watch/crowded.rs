//! Kinds and namespaces whose objects had no room all together: those that are waited for are watched one by one (C-310).

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::Scope;

/// How long they are watched one by one.
const APART_FOR: Duration = Duration::from_secs(10 * 60);

/// The most kinds and namespaces of one cluster that are known to be crowded: of more each is found out anew.
const MOST_CROWDED: usize = 256;

/// Each with the time until which it counts. Protects them; held for one look or one change.
#[derive(Default)]
pub(super) struct CrowdedScopes(Mutex<BTreeMap<Scope, Instant>>);

impl CrowdedScopes {
    pub(super) fn has(&self, all: &Scope) -> bool {
        self.lock().get(all).is_some_and(|until| Instant::now() < *until)
    }

    pub(super) fn insert(&self, all: Scope) {
        let (now, mut crowded) = (Instant::now(), self.lock());
        crowded.retain(|_, until| now < *until);
        if crowded.len() < MOST_CROWDED {
            crowded.insert(all, now + APART_FOR);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Scope, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::deployer::ApiResource;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn c_310_limits_cluster_so_many_kinds_and_namespaces_are_known_to_be_crowded_for_a_while() {
        let scope = |number: usize| {
            let resource = ApiResource {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                plural: "configmaps".to_owned(),
                namespaced: true,
            };
            Scope::all(&resource, Some(format!("n{number}").into()))
        };
        let crowded = CrowdedScopes::default();
        (0..=MOST_CROWDED).for_each(|number| crowded.insert(scope(number)));
        let known = (0..=MOST_CROWDED).filter(|number| crowded.has(&scope(*number))).count();
        assert_eq!((known, crowded.has(&scope(MOST_CROWDED))), (MOST_CROWDED, false));
        tokio::time::advance(APART_FOR - Duration::from_secs(1)).await;
        assert!(crowded.has(&scope(0)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!crowded.has(&scope(0)));
        crowded.insert(scope(MOST_CROWDED));
        assert!(crowded.has(&scope(MOST_CROWDED)), "there is room again");
    }
}
