//! What the policy of the namespace allows an item: its type, and everything that its proposal writes, removes and deletes.

use orangery_apply::Purpose;
use orangery_core::{
    error::{Code, Failure},
    step::{Halt, Step},
};
use orangery_policy::{PolicyRequest, PolicySubject};
use orangery_proposal::{
    ClusterRef, DeletionGroup, DeletionScope, Gate, Next, Proposal, Stage, StageFailure, check::key_of,
};

use super::GatheredItem;
use crate::{event, namespace_policy::refused, signed_origin::SignedOrigin};

impl GatheredItem {
    /// Whether the item may do something.
    ///
    /// # Errors
    /// A policy refuses it.
    pub(in crate::deploy_item) fn allowed(&self, request: PolicyRequest<'_>) -> Step<()> {
        let policy = self.policy.as_ref().map_err(Halt::clone)?;
        policy.check(PolicySubject::Item(&self.item.spec.type_), request).map_err(|violation| refused(&violation))
    }

    /// Whether the item may come from where it does, and be carried out by its component.
    ///
    /// # Errors
    /// The component may take more memory than the namespace has (C-53); or signatures are required, and none covers the item as it is or the component (C-75, C-77).
    pub(super) fn check_origin(&self) -> Step<()> {
        self.origin.get_or_init(|| self.checked_origin()).clone()
    }

    /// What is to be said where nobody here can tell whether the mark of the item is the operator's.
    pub(in crate::deploy_item) fn unverified_origin(&self) -> Option<String> {
        let note =
            "whether the mark of the item is the operator's is for the operator to say: a job refuses one that is not";
        (self.requires_signatures() && !self.host.key.is_operators()).then(|| note.to_owned())
    }

    /// Whether the policy of the namespace requires signatures.
    fn requires_signatures(&self) -> bool {
        self.policy.as_ref().is_ok_and(|policy| policy.requires_signatures())
    }

    fn checked_origin(&self) -> Step<()> {
        let policy = self.policy.as_ref().map_err(Halt::clone)?;
        SignedOrigin::of(&self.host, policy, PolicySubject::Item(&self.item.spec.type_), self.item.as_ref())?;
        let component = self.deployer.identity();
        self.allowed(PolicyRequest::PluginMemory { plugin: &component.name, mib: self.deployer.memory_mib() })?;
        if component.is_pinned { Ok(()) } else { self.allowed(PolicyRequest::UnpinnedPlugin(&component.name)) }
    }

    /// Whether what a component reads in a cluster may say what is written when its item is taken away. It may not where nobody
    /// vouches for the item, nor where signatures are required: what lies in a cluster has none (C-192).
    fn trusts_what_is_deployed(&self) -> bool {
        !self.requires_signatures() && self.check_origin().is_ok()
    }

    /// Whether a component may be asked to go back from a stage that has failed: it goes back to what lies in the cluster (C-192).
    ///
    /// # Errors
    /// Signatures are required, so the item ends with what has failed.
    pub(super) fn check_recovery(&self, failed: Option<&StageFailure>) -> Step<()> {
        let Some(failed) = failed.filter(|_| self.requires_signatures()) else { return Ok(()) };
        let message = format!(
            "stage {} failed: {}; the item does not go back to what was there, as no signature covers what lies in the cluster, and \
             a NamespacePolicy requires them (spec.signatures.required); mend the cause and reconcile again",
            failed.stage, failed.problem
        );
        Err(Halt::Stall(Failure::new("Recover", "NotSigned", message).with_code(Code::PolicyViolation)))
    }

    /// What a component proposes for an uninstall, as far as it may be carried out: otherwise nothing is written, and what is removed
    /// and deleted has to be the item's (C-192).
    pub(super) fn bounded_uninstall(&self, mut proposal: Proposal) -> Proposal {
        if self.trusts_what_is_deployed() {
            return proposal;
        }
        if stages_of(&proposal).any(|stage| !stage.writes.is_empty()) {
            let note = "the hooks of its deletion are not run: nobody vouches for what its release says, by a signature, as the \
                        policy of the namespace requires them";
            tracing::warn!(item = %self.key, "{note}");
            event::warn(&self.host, self.item.as_ref(), "HooksLeftOut", note);
        }
        let bare = |stage: &mut Stage| {
            if !stage.writes.is_empty() {
                (stage.writes, stage.gate) = (Vec::new(), Gate::Accepted);
            }
            !stage.removals.is_empty()
        };
        proposal.stages.retain_mut(bare);
        if let Next::Finish(completion) = &mut proposal.next {
            completion.afterwards.retain_mut(bare);
        }
        let groups = proposal.deletion_order.iter_mut().chain(&mut proposal.pruning_order);
        groups.for_each(|group| {
            let on = group.on.clone();
            group.what.retain(|scope| self.selects(&(&on, scope)).is_ok());
        });
        proposal
    }

    /// Whether what a stage removes has to have the mark of the item.
    pub(super) fn removes_its_own_alone(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Uninstall && !self.trusts_what_is_deployed()
    }

    /// Whether everything that a proposal writes, removes and deletes is allowed. What is removed for an uninstall is the item's own
    /// where nobody vouches for it.
    pub(super) fn check_policy(&self, proposal: &Proposal, purpose: Purpose) -> Step<()> {
        let is_asked = |stage: &Stage| {
            !stage.writes.is_empty() || (!stage.removals.is_empty() && !self.removes_its_own_alone(purpose))
        };
        if stages_of(proposal).any(is_asked) {
            self.check_origin()?;
        }
        for stage in stages_of(proposal) {
            for removal in &stage.removals {
                self.reaches(&removal.on)?;
                self.allowed(PolicyRequest::Object(&removal.key))?;
            }
            for write in &stage.writes {
                // What has no key is refused before.
                let Ok(key) = key_of(&write.object) else { continue };
                self.reaches(&write.on)?;
                self.allowed(PolicyRequest::Object(&key))?;
            }
        }
        let groups = proposal.deletion_order.iter().chain(&proposal.pruning_order);
        groups.flat_map(selections).try_for_each(|scope| self.selects(&scope))
    }

    /// Drops from an order what may not be deleted any more: objects of others that a selection takes in. Answers what stays,
    /// and why. What the item itself has written is deleted under any policy.
    pub(in crate::deploy_item) fn retain_allowed(&self, order: &mut [DeletionGroup]) -> Vec<String> {
        let mut notes = Vec::new();
        for group in order {
            let on = group.on.clone();
            group.what.retain(|scope| match self.selects(&(&on, scope)) {
                Ok(()) => true,
                Err(halt) => {
                    notes.extend(halt.failure().map(|failure| format!("objects of {on} stay: {failure}")));
                    false
                }
            });
        }
        notes
    }

    /// Drops from an order that was written for another signed origin of the item than it has what may be of others, where signatures
    /// are required: nobody vouches for it (C-270). Answers what stays, and why.
    pub(in crate::deploy_item) fn retain_vouched(
        &self,
        order: &mut [DeletionGroup],
        is_of_origin: bool,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if is_of_origin || !self.requires_signatures() {
            return notes;
        }
        for DeletionGroup { on, what, .. } in order {
            let before = what.len();
            what.retain(|scope| !matches!(scope, DeletionScope::Matching(_)));
            if what.len() < before {
                notes.push(format!(
                    "what is selected in {on} and not of this item alone stays: it was selected for what is not the signed content of \
                     this item now; reconcile it before it is deleted"
                ));
            }
        }
        notes
    }

    fn selects(&self, (on, scope): &(&ClusterRef, &DeletionScope)) -> Step<()> {
        match scope {
            DeletionScope::Matching(selection) => {
                self.check_origin()?;
                self.reaches(on)?;
                self.allowed(PolicyRequest::Selection(selection))
            }
            DeletionScope::Namespaced
            | DeletionScope::ClusterScoped
            | DeletionScope::CustomResourceDefinitions
            | DeletionScope::Managed(_) => Ok(()),
        }
    }

    /// Which server a Target names is known where it is connected.
    fn reaches(&self, on: &ClusterRef) -> Step<()> {
        match on {
            ClusterRef::Host => self.allowed(PolicyRequest::HostCluster),
            ClusterRef::Target | ClusterRef::Named(_) => Ok(()),
        }
    }
}

/// The stages of a proposal, in order.
fn stages_of(proposal: &Proposal) -> impl Iterator<Item = &Stage> {
    let afterwards: &[Stage] = match &proposal.next {
        Next::Finish(completion) => &completion.afterwards,
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => &[],
    };
    proposal.stages.iter().chain(afterwards)
}

fn selections(group: &DeletionGroup) -> impl Iterator<Item = (&ClusterRef, &DeletionScope)> {
    group.what.iter().map(|scope| (&group.on, scope))
}

#[cfg(test)]
mod tests;
