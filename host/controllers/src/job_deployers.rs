//! With which component the jobs of items began: they end with it, whatever is installed meanwhile (C-263).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_api::job::Job as _;
use orangery_core::name::JobId;
use orangery_proposal::deployer::Deployer;
use orangery_reconcile::Key;

use crate::stores::Stores;

/// The versions of one component that jobs are kept with. A job of an older one goes on with the version that is in use.
const MOST_VERSIONS: usize = 4;

/// The components of jobs under way. After a restart jobs go on with the version that is in use then.
#[derive(Clone, Default)]
pub(crate) struct JobDeployers {
    /// Protects what is known. Held for one look-up or change.
    known: Arc<Mutex<KnownJobs>>,
}

#[derive(Default)]
struct KnownJobs {
    jobs: BTreeMap<Key, (JobId, Arc<dyn Deployer>)>,
    /// The jobs of each version, by the name of the component, the oldest version first.
    versions: BTreeMap<String, Vec<VersionJobs>>,
}

/// The items whose jobs began with a version.
struct VersionJobs {
    digest: String,
    items: BTreeSet<Key>,
}

impl JobDeployers {
    /// Forgets the jobs of items as they end.
    pub(crate) fn of(stores: &Stores) -> Self {
        let jobs = Self::default();
        let known = jobs.clone();
        stores.deploy_items.subscribe(move |change| {
            if change.after.is_none_or(|item| item.job_finished())
                && let Some(item) = change.key()
            {
                known.forget(&item);
            }
        });
        jobs
    }

    /// The component of a job: the one that it began with, else the one that is in use.
    pub(crate) fn began_with(
        &self,
        item: &Key,
        job: &JobId,
        in_use: impl FnOnce() -> Option<Arc<dyn Deployer>>,
    ) -> Option<Arc<dyn Deployer>> {
        if let Some((known, deployer)) = self.known().jobs.get(item)
            && known == job
        {
            return Some(Arc::clone(deployer));
        }
        let deployer = in_use()?;
        let mut known = self.known();
        known.forget(item);
        // With one whose bytes are not there yet nothing has begun.
        if !deployer.identity().digest.is_empty() {
            known.keep(item, job, &deployer);
        }
        Some(deployer)
    }

    /// The job of an item has ended.
    fn forget(&self, item: &Key) {
        self.known().forget(item);
    }

    fn known(&self) -> MutexGuard<'_, KnownJobs> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownJobs {
    fn forget(&mut self, item: &Key) {
        let Some((_, deployer)) = self.jobs.remove(item) else { return };
        let name = &deployer.identity().name;
        if let Some(versions) = self.versions.get_mut(name) {
            for version in versions.iter_mut() {
                version.items.remove(item);
            }
            versions.retain(|version| !version.items.is_empty());
            if versions.is_empty() {
                self.versions.remove(name);
            }
        }
    }

    fn keep(&mut self, item: &Key, job: &JobId, deployer: &Arc<dyn Deployer>) {
        let identity = deployer.identity();
        let versions = self.versions.entry(identity.name.clone()).or_default();
        match versions.iter_mut().find(|version| version.digest == identity.digest) {
            Some(version) => {
                version.items.insert(item.clone());
            }
            None => {
                if versions.len() == MOST_VERSIONS {
                    let oldest = versions.remove(0);
                    for item in &oldest.items {
                        self.jobs.remove(item);
                    }
                }
                let (digest, items) = (identity.digest.clone(), BTreeSet::from([item.clone()]));
                versions.push(VersionJobs { digest, items });
            }
        }
        self.jobs.insert(item.clone(), (job.clone(), Arc::clone(deployer)));
    }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::deployer::PluginIdentity;

    use super::*;
    use crate::silent_deployer::SilentDeployer;

    /// The digest with which a job of an item goes on, where the version with the other one is in use.
    fn goes_on(jobs: &JobDeployers, item: &str, job: &str, in_use: &str) -> String {
        let identity = PluginIdentity {
            name: "mine".to_owned(),
            version: "1".to_owned(),
            digest: in_use.to_owned(),
            is_pinned: true,
        };
        let in_use = || Some(Arc::new(SilentDeployer::new(identity)) as Arc<dyn Deployer>);
        jobs.began_with(&Key::new("n", item), &job.into(), in_use).unwrap().identity().digest.clone()
    }

    #[test]
    fn c_263_a_job_ends_with_the_version_that_it_began_with_and_the_next_one_has_the_new() {
        let jobs = JobDeployers::default();
        assert_eq!(goes_on(&jobs, "a", "1", ""), "", "it is not there yet");
        assert_eq!(goes_on(&jobs, "a", "1", "old"), "old");
        assert_eq!(goes_on(&jobs, "a", "1", "new"), "old");
        assert_eq!(goes_on(&jobs, "b", "1", "new"), "new");
        assert_eq!(goes_on(&jobs, "a", "2", "new"), "new");
        jobs.forget(&Key::new("n", "b"));
        assert_eq!(goes_on(&jobs, "b", "1", "newer"), "newer");
        // Nobody has claimed the type any more since the job began.
        assert!(jobs.began_with(&Key::new("n", "a"), &"2".into(), || None).is_some());
        assert!(jobs.began_with(&Key::new("n", "c"), &"2".into(), || None).is_none());
        jobs.forget(&Key::new("n", "a"));
        jobs.forget(&Key::new("n", "b"));
        let known = jobs.known();
        assert!(known.jobs.is_empty() && known.versions.is_empty());
    }

    #[test]
    fn c_263_limits_components_jobs_keep_so_many_versions_of_one() {
        let jobs = JobDeployers::default();
        for version in 0..MOST_VERSIONS {
            let version = version.to_string();
            assert_eq!(goes_on(&jobs, &version, "1", &version), version);
        }
        assert_eq!(goes_on(&jobs, "0", "1", "new"), "0");
        assert_eq!(goes_on(&jobs, "x", "1", "new"), "new");
        assert_eq!(goes_on(&jobs, "0", "1", "new"), "new", "the oldest has made room");
        assert_eq!(goes_on(&jobs, "1", "1", "new"), "1");
    }
}
