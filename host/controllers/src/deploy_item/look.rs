//! One look at an item: the component is asked where there is something new to decide, and its proposal is taken as far
//! as it goes without waiting.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt;
use orangery_api::{annotation, deploy_item::DeployItem, marks::Marks};
use orangery_apply::{ClusterSet, Job, Outcome, Page, Purpose, carry_out, delete};
use orangery_core::{
    error::{Failure, Problem},
    phase::item::Item as Phase,
    step::{Halt, Step, Verdict, Wait},
    walk::Rest,
};
use orangery_proposal::{
    Item, Next, Proposal,
    check::{Bounds, check},
    deployer::{Deployer, Reads},
    item::{At, Kept, Progress, judge, timed_out},
};
use orangery_reconcile::Key;

use super::{
    DeployItemController, keep, ledger,
    ledger::Book,
    provider_status,
    request::{self, Begin, Call},
};
use crate::{controller_context::waiter, removed, stores::Kind, target_access::TargetConnections};

/// One look at an item in its job.
pub(super) struct Look<'a> {
    controller: &'a DeployItemController,
    deployer: Arc<dyn Deployer>,
    item: Arc<DeployItem>,
    pub(super) book: Book,
    pub(super) clusters: Arc<ClusterSet>,
    pub(super) limit: Option<Duration>,
    /// What has to survive; `None` until it is read.
    page: Option<Page>,
}

/// What is to be done next.
enum Todo {
    Ask(Box<Call>),
    CarryOn(Arc<Proposal>),
}

impl<'a> Look<'a> {
    pub(super) fn new(
        controller: &'a DeployItemController,
        deployer: Arc<dyn Deployer>,
        book: Book,
        limit: Option<Duration>,
    ) -> Self {
        let item = Arc::clone(&book.before);
        let targets = TargetConnections::of(&controller.host, &controller.pool, &item);
        let clusters =
            Arc::new(controller.pool.set(Arc::new(targets), waiter(Kind::DeployItem, &Key::of(item.as_ref()))));
        Self { controller, deployer, item, book, clusters, limit, page: None }
    }

    /// Brings the item about.
    pub(super) async fn install(&mut self, deadline: Option<Timestamp>) -> Step<Verdict> {
        TargetConnections::of(&self.controller.host, &self.controller.pool, &self.item).exist().await?;
        let mut page = self.open()?;
        let until = page.progress.as_ref().and_then(|progress| progress.recovers_until).or(deadline);
        let result = self.carry_on(&mut page, until).await;
        self.page = Some(page);
        result
    }

    /// The item's time is up. A component that puts things right after a failed stage is called for this one, too, and has as
    /// much time again; else the item fails.
    pub(super) async fn overdue(&mut self, halt: &Halt) -> Step<Verdict> {
        let Some(limit) = self.limit else { return Err(halt.clone()) };
        let failure = timed_out(limit, halt);
        let Some(mut page) = self.page.take() else { return Err(Halt::Stall(failure)) };
        let result = self.recover(&mut page, failure, limit).await;
        self.page = Some(page);
        result
    }

    async fn recover(&mut self, page: &mut Page, failure: Failure, limit: Duration) -> Step<Verdict> {
        // What cannot be read now will not be asked for again: the time is up.
        let proposal = self.kept(page.kept.as_ref()).await.unwrap_or_default();
        let now = self.controller.host.clock.now();
        let overdue = match (&page.progress, &proposal) {
            (Some(progress), Some(proposal)) => progress.overdue(proposal, &failure, now, limit),
            _ => None,
        };
        let Some(progress) = overdue else { return Err(Halt::Stall(failure)) };
        let until = progress.recovers_until;
        page.progress = Some(progress);
        self.carry_on(page, until).await
    }

    /// When the time is up, and what is left of it counts to: for the item, or for what puts it right.
    pub(super) fn ends(&self, deadline: Option<Timestamp>) -> Option<Timestamp> {
        let progress = self.page.as_ref().and_then(|page| page.progress.as_ref());
        progress.and_then(|progress| progress.recovers_until).or(deadline)
    }

    async fn carry_on(&mut self, page: &mut Page, deadline: Option<Timestamp>) -> Step<Verdict> {
        loop {
            let proposal = match self.todo(page).await? {
                Todo::CarryOn(proposal) => proposal,
                Todo::Ask(call) => {
                    let item = self.item(*call, page);
                    let answer = self.deployer.plan(&item, self.reads()).await;
                    self.checked(answer.map_err(|fault| judge(fault, self.deployer.identity()))?)?
                }
            };
            match self.run(&proposal, page, Purpose::Install).await? {
                Outcome::Finished => {
                    self.book.refer_to_exports(has_exports(&proposal)).await?;
                    return Ok(Verdict::Done);
                }
                Outcome::Failed(problem) => return Ok(Verdict::Failed(asked_for(problem, &self.deployer))),
                Outcome::Call => self.pause_at(deadline)?,
            }
        }
    }

    /// Takes the item away (INS-80, C-24, C-28).
    pub(super) async fn delete(&mut self) -> Step<Verdict> {
        if self.item.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            return Ok(Verdict::Done);
        }
        let mut page = self.open()?;
        let result = self.take_away(&mut page).await;
        self.page = Some(page);
        result
    }

    async fn take_away(&mut self, page: &mut Page) -> Step<Verdict> {
        if page.inventory.0.is_empty() {
            return Ok(Verdict::Done);
        }
        // Asked at every look: the Target may go while its cluster is asked in vain.
        if let Some(without_target) = removed::look(&self.controller.host, &self.item).await? {
            let note = without_target.map_err(Halt::Stall)?;
            removed::tell(&self.controller.host, &self.item, &note);
            return Ok(Verdict::Done);
        }
        if !matches!(page.progress, Some(Progress { at: At::Deleting, .. })) {
            self.adopt_order(page).await;
            if let failed @ Verdict::Failed(_) = self.uninstall(page).await? {
                return Ok(failed);
            }
            let since = self.controller.host.clock.now();
            page.progress = Some(Progress {
                job: self.book.job.clone(),
                at: At::Deleting,
                since,
                planned: Default::default(),
                recovers_until: None,
            });
        }
        let current = self.fence();
        let job = Job {
            id: &self.book.job,
            purpose: Purpose::Uninstall,
            owner: &self.item.name_any(),
            labels: self.deployer.ownership_labels(),
            clusters: &self.clusters,
            clock: self.controller.host.clock.as_ref(),
            is_current: &current,
        };
        delete(&job, page).await.map(|()| Verdict::Done)
    }

    /// An item that another deployer brought about has its deletion order in the configuration alone. A component that
    /// cannot say it leaves the default.
    async fn adopt_order(&self, page: &mut Page) {
        let by = self.item.status.as_ref().map_or("", |status| status.deployer.name.as_str());
        if by == self.deployer.identity().name {
            return;
        }
        let item = self.item(Call::default(), page);
        if let Ok(proposal) = self.deployer.plan(&item, self.reads()).await
            && let Ok(proposal) = self.checked(proposal)
        {
            page.deletion_order.clone_from(&proposal.deletion_order);
        }
    }

    /// What the component wants done before its inventory is deleted.
    async fn uninstall(&mut self, page: &mut Page) -> Step<Verdict> {
        loop {
            let proposal = match self.todo(page).await? {
                Todo::CarryOn(proposal) => proposal,
                Todo::Ask(call) => {
                    let item = self.item(*call, page);
                    let answer = self.deployer.uninstall(&item, self.reads()).await;
                    match answer.map_err(|fault| judge(fault, self.deployer.identity()))? {
                        Some(proposal) => self.checked(proposal)?,
                        None => return Ok(Verdict::Done),
                    }
                }
            };
            let order = page.deletion_order.clone();
            let outcome = self.run(&proposal, page, Purpose::Uninstall).await;
            if proposal.deletion_order.is_empty() {
                page.deletion_order = order;
            }
            match outcome? {
                Outcome::Finished => return Ok(Verdict::Done),
                Outcome::Failed(problem) => return Ok(Verdict::Failed(asked_for(problem, &self.deployer))),
                Outcome::Call => {}
            }
        }
    }

    /// Writes where the look rests.
    pub(super) async fn rest(self, rest: &Rest<Phase>) -> Step<()> {
        let mut page = self.page;
        if rest.ended
            && let Some(page) = &mut page
        {
            page.progress = None;
        }
        self.book.rest(rest, page.as_ref()).await
    }

    fn reads(&self) -> Reads {
        request::reads(&self.controller.host, &self.item, &self.clusters)
    }

    /// The page as the status has it.
    fn open(&self) -> Step<Page> {
        let status = self.item.status.as_ref().and_then(|status| status.provider_status.as_ref());
        provider_status::read(status, &self.book.job)
    }

    async fn todo(&self, page: &mut Page) -> Step<Todo> {
        let Some(progress) = &page.progress else { return Ok(Todo::Ask(Box::default())) };
        let Some(proposal) = self.kept(page.kept.as_ref()).await? else {
            // Somebody has deleted what was kept: the component is asked as at the begin of the job.
            page.progress = None;
            return Ok(Todo::Ask(Box::default()));
        };
        match &progress.at {
            At::Calling { after: Some(time) } if self.controller.host.clock.now() < *time => {
                let left = time.duration_since(self.controller.host.clock.now());
                Err(Halt::Wait(Wait::poll(Duration::try_from(left).unwrap_or_default())))
            }
            At::Calling { .. } => Ok(Todo::Ask(Box::new(Call { checkpoint: checkpoint(&proposal), failed: None }))),
            At::Recovering(failure) => {
                Ok(Todo::Ask(Box::new(Call { checkpoint: proposal.recover.clone(), failed: Some(failure.clone()) })))
            }
            At::Stage(_) | At::Pruning | At::Exporting | At::Afterwards(_) | At::Tidying | At::Deleting => {
                Ok(Todo::CarryOn(proposal))
            }
        }
    }

    async fn kept(&self, kept: Option<&Kept>) -> Step<Option<Arc<Proposal>>> {
        let Some(kept) = kept else { return Ok(None) };
        let key = Key::of(self.item.as_ref());
        if let Some(proposal) = self.controller.shelf.get(&key, &kept.digest) {
            return Ok(Some(proposal));
        }
        let read = keep::read(&self.controller.host.client, &key.namespace, kept).await?;
        let proposal = read.map(Arc::new);
        if let Some(proposal) = &proposal {
            self.controller.shelf.put(key, kept.digest.clone(), Arc::clone(proposal));
        }
        Ok(proposal)
    }

    /// Nothing of a proposal is carried out that is not checked.
    fn checked(&self, proposal: Proposal) -> Step<Arc<Proposal>> {
        check(&proposal, self.deployer.grants(), Bounds::default())
            .map_err(|fault| judge(fault, self.deployer.identity()))?;
        Ok(Arc::new(proposal))
    }

    async fn run(&mut self, proposal: &Arc<Proposal>, page: &mut Page, purpose: Purpose) -> Step<Outcome> {
        let current = self.fence();
        let id = self.book.job.clone();
        let job = Job {
            id: &id,
            purpose,
            owner: &self.item.name_any(),
            labels: self.deployer.ownership_labels(),
            clusters: &self.clusters,
            clock: self.controller.host.clock.as_ref(),
            is_current: &current,
        };
        let result = carry_out(&job, &mut self.book, proposal, page).await;
        if let Some(kept) = &page.kept {
            self.controller.shelf.put(Key::of(self.item.as_ref()), kept.digest.clone(), Arc::clone(proposal));
        }
        result
    }

    fn fence(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let (host, item, job) = (Arc::clone(&self.controller.host), Arc::clone(&self.item), self.book.job.clone());
        move || host.may_write() && ledger::is_current(&host, &item, &job)
    }

    /// Between two calls of the component, the time may be up.
    fn pause_at(&self, deadline: Option<Timestamp>) -> Step<()> {
        match deadline {
            Some(deadline) if self.controller.host.clock.now() >= deadline => {
                Err(Halt::Wait(Wait::poll(Duration::ZERO)))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn item(&self, call: Call, page: &Page) -> Item {
        let begin = Begin { job: &self.book.job, now: self.book.begun(), limit: self.limit };
        request::item(&self.item, &begin, call, page.status.as_ref())
    }
}

fn checkpoint(proposal: &Proposal) -> Option<Vec<u8>> {
    match &proposal.next {
        Next::ContinueWith(checkpoint) | Next::AgainIn { checkpoint, .. } => Some(checkpoint.clone()),
        Next::Finish(_) | Next::Fail(_) => None,
    }
}

fn has_exports(proposal: &Proposal) -> bool {
    matches!(&proposal.next, Next::Finish(completion) if !completion.exports.is_empty())
}

/// The component asked for the failure.
fn asked_for(problem: Problem, deployer: &Arc<dyn Deployer>) -> Failure {
    let message = format!("plugin {}: {problem}", deployer.identity().name);
    let failure = Failure::new("Plan", "PluginFailedItem", message);
    if problem.code.to_string().is_empty() { failure } else { failure.with_code(problem.code) }
}
