//! What a call of the controller works with: the item, its component, its clusters, and where its job stands.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::Time};
use orangery_api::{
    deploy_item::DeployItem, installation::Installation, job::Job as _, job_history::RecordedKey, label, marks::Marks,
};
use orangery_apply::{
    ItemState, Job, Owner, Purpose, Recorded, WriteRecorder, has_stray_namespaces, without_stray_namespaces,
};
use orangery_cluster::{Call, ClusterPool, ClusterSet};
use orangery_core::{
    duration::deadline,
    error::{Code, Failure},
    phase::{Phase as _, item::Item as Phase},
    step::{Halt, Step},
    walk::standing_phase,
};
use orangery_policy::{Approval, EffectivePolicy, PolicyRequest};
use orangery_proposal::{
    Item, Proposal,
    check::{Bounds, check},
    deployer::{Deployer, Reads},
    inventory::LocatedObject,
    item::{ItemFacts, NextCall, classify},
};
use orangery_reconcile::Key;
use orangery_turns::slot;

pub(super) use self::plan_rules::{former_cluster, has_rules};
use self::request::ItemJob;
use super::{
    dry_run::remembered::RememberedReads,
    on_record::recorder,
    status::{
        StatusWriter,
        proposal_cache::ProposalCache,
        provider_status::{ReadStatus, state_of},
    },
    timeout::limit,
    trigger::{TriggeredJob, concurrency::ConcurrencyLimiter},
};
use crate::{
    controller_context::{ControllerContext, waiter},
    job_reports::is_first_job,
    object::uid_of,
    object_access::get,
    stores::StoredKind,
    target_access::TargetConnections,
    tree::root_of,
};

mod allowed;
pub(super) mod items;
mod noted;
mod noted_answers;
mod plan_rules;
mod recording;
pub(super) mod request;
mod resources;
mod shadow;

/// What a job of an item works with, whether it writes or is a dry run.
pub(super) struct GatheredItem {
    pub(super) host: Arc<ControllerContext>,
    pub(super) key: Key,
    pub(super) item: Arc<DeployItem>,
    pub(super) deployer: Arc<dyn Deployer>,
    pub(super) clusters: Arc<ClusterSet>,
    pub(super) job: ItemJob,
    pub(super) pool: Arc<ClusterPool>,
    /// What counts for its namespace in this call.
    policy: Step<Arc<EffectivePolicy>>,
    /// Whether nothing is written that nobody has approved (C-311).
    pub(super) requires_approval: bool,
    /// Whether it may come from where it does, once that was asked: a seal is over the whole spec.
    origin: OnceLock<Step<()>>,
    /// Said once a cluster has told the component that somebody may not do what it needs (CON-29).
    refused: OnceLock<()>,
    pub(super) owner: Owner,
    pub(super) targets: Arc<TargetConnections>,
    /// Which objects other items of the Execution go on with while this one is taken away (C-174).
    pub(super) successors: BTreeMap<LocatedObject, Owner>,
    /// Notes what is written, where jobs are on record (C-331).
    pub(super) recorder: Option<WriteRecorder>,
    /// Objects that an operator may have written which has ended in the middle of the job.
    pub(super) unaccounted: OnceLock<Vec<RecordedKey>>,
    /// What clusters have answered before, where the component is asked again and again.
    pub(super) remembered: Option<Arc<RememberedReads>>,
}

impl GatheredItem {
    /// `cluster` is the uid of the cluster that has the item, where it is known.
    pub(super) fn new(
        host: &Arc<ControllerContext>,
        pool: &Arc<ClusterPool>,
        (item, cluster): (Arc<DeployItem>, Option<String>),
        deployer: Arc<dyn Deployer>,
        job: ItemJob,
    ) -> Self {
        let key = Key::of(item.as_ref());
        let targets = Arc::new(TargetConnections::of(host, pool, &item));
        let connections = Arc::<TargetConnections>::clone(&targets);
        let clusters = pool.set(connections, waiter(StoredKind::DeployItem, &key)).during(Call::new(slot()));
        let clusters = Arc::new(clusters);
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        let pool = Arc::clone(pool);
        let policy = host.policies.of(&key.namespace);
        let requires_approval = requires_approval(&policy, installation_of(host, &item).as_deref());
        let owner = Owner { namespace, name, uid: uid_of(item.as_ref()).to_owned(), cluster };
        Self {
            recorder: recorder(host, &item),
            unaccounted: OnceLock::new(),
            host: Arc::clone(host),
            key,
            item,
            deployer,
            clusters,
            job,
            pool,
            policy,
            requires_approval,
            origin: OnceLock::new(),
            refused: OnceLock::new(),
            owner,
            targets,
            successors: BTreeMap::new(),
            remembered: None,
        }
    }

    /// The state as the status has it, as far as it counts.
    pub(super) async fn state(&self) -> Step<ReadStatus> {
        state_of(&self.host, &self.item, &self.job.id).await
    }

    /// The same, where the policy of the namespace allows the type of the item and where it comes from, and its target exists: without either
    /// nothing is begun.
    pub(super) async fn state_with_target(&self) -> Step<ReadStatus> {
        self.allowed(PolicyRequest::ItemType(&self.item.spec.type_))?;
        self.check_origin()?;
        self.targets.exist().await?;
        self.state().await
    }

    /// The proposal of the component, checked: nothing else is carried out. `None` where there is nothing to do before the
    /// item is uninstalled.
    pub(super) async fn ask(&self, purpose: Purpose, call: NextCall, state: &ItemState) -> Step<Option<Arc<Proposal>>> {
        if purpose == Purpose::Install {
            self.check_recovery(call.failed.as_ref())?;
        }
        let item = self.request(call, state);
        let noted = self.noted_call();
        let reads = noted.as_ref().map_or_else(|| self.reads(), |noted| noted.reads.reads());
        let answer = match purpose {
            Purpose::Install => self.deployer.plan(&item, reads).await.map(Some),
            Purpose::Uninstall => self.deployer.uninstall(&item, reads).await,
        };
        if let Some(noted) = noted {
            Box::pin(self.keep(noted, purpose, item, &answer)).await;
        }
        if answer.as_ref().is_err_and(|fault| fault.problem().code == Code::Unauthorized) {
            self.refused.get_or_init(|| ());
        }
        match answer.map_err(|fault| classify(fault, self.deployer.identity()))? {
            None => Ok(None),
            Some(proposal) => {
                self.check_grants(&proposal)?;
                let proposal = Box::pin(without_stray_namespaces(&self.clusters, proposal)).await?;
                let proposal = match purpose {
                    Purpose::Install => proposal,
                    Purpose::Uninstall => self.bounded_uninstall(proposal),
                };
                self.check_policy(&proposal, purpose)?;
                Ok(Some(Arc::new(proposal)))
            }
        }
    }

    /// Whether a cluster has told the component that somebody may not do what it needs.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.get().is_some()
    }

    /// Nothing is carried out that is not checked, also where it was checked before: what was stored may come from a time
    /// with other grants, with another policy, or when one of its kinds was not served. Answers what may be carried out.
    pub(super) async fn check(&self, proposal: Arc<Proposal>, purpose: Purpose) -> Step<Arc<Proposal>> {
        self.check_grants(&proposal)?;
        let proposal = if has_stray_namespaces(&self.clusters, &proposal).await? {
            Arc::new(without_stray_namespaces(&self.clusters, Arc::unwrap_or_clone(proposal)).await?)
        } else {
            proposal
        };
        self.check_policy(&proposal, purpose)?;
        Ok(proposal)
    }

    /// The same for what was written once and is written again as it was, or not at all.
    pub(super) async fn check_as_it_is(&self, proposal: &Proposal) -> Step<()> {
        self.check_grants(proposal)?;
        if has_stray_namespaces(&self.clusters, proposal).await? {
            let message = "a kind of what the last job wrote has no namespace any more; the next job writes it as it is served now";
            let failure = Failure::new("Drift", "ScopeChanged", message).with_code(Code::ConfigurationProblem);
            return Err(Halt::Stall(failure));
        }
        self.check_policy(proposal, Purpose::Install)
    }

    fn check_grants(&self, proposal: &Proposal) -> Step<()> {
        let checked = check(proposal, self.deployer.grants(), Bounds::default());
        checked.map_err(|fault| classify(fault, self.deployer.identity()))
    }

    pub(super) fn request(&self, call: NextCall, state: &ItemState) -> Item {
        let item = request::item(&self.item, &self.job, call, state.status.as_ref(), &self.host.key);
        // What is approved today is carried out tomorrow as it was asked for.
        match request::handed_down(&self.host.stores, &self.item, &self.job.id).filter(|_| self.has_plans()) {
            Some(time) => Item { now: time.0.to_string(), ..item },
            None => item,
        }
    }

    /// The root of the Installation of the item.
    pub(super) fn root_installation(&self) -> Option<Arc<Installation>> {
        let installation = installation_of(&self.host, &self.item)?;
        root_of(&self.host.stores, &Key::of(installation.as_ref())).or(Some(installation))
    }

    /// The name of the root of the Installation of the item; empty where it has none.
    pub(super) fn root(&self) -> String {
        self.root_installation().map_or_else(String::new, |root| Key::of(root.as_ref()).name.to_string())
    }

    /// Whether somebody else has to approve than has made the change (C-367).
    pub(super) fn requires_other_approver(&self) -> bool {
        self.policy.as_ref().map_or(true, |policy| policy.requires_other_approver())
    }

    pub(super) fn reads(&self) -> Reads {
        let reads = request::reads(&self.host, &self.item, &self.clusters);
        match &self.remembered {
            Some(known) => known.over(reads, &self.item),
            None => reads,
        }
    }

    /// The job as it is carried out. `is_current` says whether it may still write.
    pub(super) fn job<'j>(&'j self, purpose: Purpose, is_current: &'j (dyn Fn() -> bool + Send + Sync)) -> Job<'j> {
        Job {
            id: &self.job.id,
            purpose,
            owner: &self.owner,
            labels: self.deployer.ownership_labels(),
            grants: self.deployer.grants(),
            clusters: &self.clusters,
            items: self,
            clock: self.host.clock.as_ref(),
            removes_its_own_alone: self.removes_its_own_alone(purpose),
            is_current,
            recorded: self.recorder.as_ref().map(|by| Recorded { by, former: None }),
        }
    }
}

/// Whether items of an Installation write nothing that nobody has approved (C-311). Where it is not known what counts, they do not.
pub(super) fn requires_approval(policy: &Step<Arc<EffectivePolicy>>, installation: Option<&Installation>) -> bool {
    policy.as_ref().map_or(true, |policy| policy.requires_approval())
        || installation.is_some_and(|of| of.spec.approval == Some(Approval::Required))
}

/// The Installation of an item, whose name its Execution has.
pub(super) fn installation_of(host: &ControllerContext, item: &DeployItem) -> Option<Arc<Installation>> {
    let name = item.label(label::MANAGED_BY)?;
    host.stores.installations.get(&Key { name: name.into(), ..Key::of(item) })
}

/// One call of the controller for an item in its job.
pub(super) struct ItemReconciliation {
    pub(super) gathered: GatheredItem,
    pub(super) cache: Arc<ProposalCache>,
    pub(super) status: StatusWriter,
    /// `Progressing` or `Deleting`.
    pub(super) phase: Phase,
    /// When the time of the item is up; `None` for never.
    pub(super) deadline: Option<Timestamp>,
    /// Whether nobody hands another job down to the item.
    pub(super) is_orphaned: bool,
    /// Whether the item waited for an approval when it was called last.
    pub(super) awaited_approval: bool,
    /// Whether there is nothing to do for it: it asks to be left alone while it is as it was.
    is_unchanged: bool,
    /// Why the timeout cannot be read.
    invalid_timeout: Option<Failure>,
    /// Whether an operator has ended in the middle of the job, or a call of it was lost.
    pub(super) was_cut_off: bool,
    /// Whether this is the first call of the first job of the item.
    pub(super) is_first: bool,
    /// What has to survive; `None` until it is read.
    pub(super) state: Option<ItemState>,
    /// What the component has answered in this call that is not carried out yet.
    pub(super) answered: Option<Arc<Proposal>>,
}

impl ItemReconciliation {
    pub(super) async fn gather(
        host: &Arc<ControllerContext>,
        pool: &Arc<ClusterPool>,
        cache: &Arc<ProposalCache>,
        job: TriggeredJob,
        now: &Time,
    ) -> Step<Self> {
        let cluster = host.host_cluster.uid(&host.client).await?;
        let TriggeredJob { id, item, deployer, is_orphaned } = job;
        let (phase, is_new) = standing_phase(Phase::parse(item.phase()), item.is_deleting());
        let phase = if phase.is_deletion() { Phase::Deleting } else { Phase::Progressing };
        let (limit, invalid_timeout) = match limit(&item) {
            Ok(limit) => (limit, None),
            Err(failure) => (None, Some(failure)),
        };
        let mut status = StatusWriter::new(host, &item, (&id, phase, is_new), deployer.identity(), now);
        // The time of an item does not pass while it waits for an approval (C-316).
        let awaited_approval = status.awaited_approval();
        let begun = if awaited_approval { status.begin_anew() } else { status.begun() };
        let gathered = GatheredItem::new(host, pool, (item, cluster), deployer, ItemJob { id, begun, limit });
        status.keep_credentials_of(&gathered.targets);
        let was_seen = host.job_histories.begin(uid_of(gathered.item.as_ref()), &gathered.job.id);
        let (was_cut_off, is_first) =
            (status.has_begun() && !was_seen, !status.has_begun() && is_first_job(&gathered.item));
        let (cache, deadline) = (Arc::clone(cache), deadline(begun, limit));
        let is_unchanged =
            !status.has_begun() && is_unchanged(&gathered.item) && has_its_exports(host, &gathered.item).await?;
        Ok(Self {
            gathered,
            cache,
            status,
            phase,
            deadline,
            is_orphaned,
            awaited_approval,
            is_unchanged,
            invalid_timeout,
            was_cut_off,
            is_first,
            state: None,
            answered: None,
        })
    }

    /// What is decided from. An item that is to begin and changes something asks for a slot of the host.
    pub(super) fn facts(&self, limiter: &ConcurrencyLimiter) -> ItemFacts {
        let GatheredItem { host, key, .. } = &self.gathered;
        let queue = || limiter.admit(host, key, self.status.has_begun());
        ItemFacts {
            deletes: self.phase == Phase::Deleting,
            is_unchanged: self.is_unchanged,
            queued: if self.is_unchanged { None } else { queue() },
            invalid_timeout: self.invalid_timeout.clone(),
        }
    }

    /// When the time is up: that of the item, or that for recovering.
    pub(super) fn end(&self) -> Option<Timestamp> {
        let progress = self.state.as_ref().and_then(|state| state.progress.as_ref());
        progress.and_then(|progress| progress.recovers_until).or(self.deadline)
    }

    /// How much time is left.
    pub(super) fn left(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(self.end()?.duration_since(now)).ok()
    }
}

/// Whether the item asks to be left alone while it is as it was when it succeeded (`docs/wire.md` §3.6).
fn is_unchanged(item: &DeployItem) -> bool {
    let status = item.status.as_ref();
    item.spec.update_on_change_only
        && !item.is_deleting()
        && Phase::parse(item.phase()) == Some(Phase::Succeeded)
        && status.is_some_and(|status| Some(status.observed_generation) == item.metadata.generation)
}

/// Whether the exports of its last job are still there: somebody may have deleted their Secret (C-177).
async fn has_its_exports(host: &ControllerContext, item: &DeployItem) -> Step<bool> {
    let Some(exports) = item.status.as_ref().and_then(|status| status.export_ref.as_ref()) else { return Ok(true) };
    let secret: Option<Secret> = get(&host.client, &Key::of(item).namespace, &exports.name).await?;
    Ok(secret.is_some())
}
