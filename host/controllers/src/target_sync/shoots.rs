//! Kubeconfigs of shoots: issued by the garden for 24 hours, and renewed after 12 (C-375).

use jiff::Timestamp;
use kube::ResourceExt as _;
use orangery_api::annotation;
use orangery_cluster::{Credential, Subject, issue_credential, server_of};
use orangery_core::{
    error::Fault,
    name::ObjectName,
    plan::target_sync::{ObjectMaker, SHOOT_SECONDS, shoot_due},
    step::{Halt, Step},
};
use orangery_proposal::deployer::ApiResource;
use orangery_turns::lending;
use tokio::time::Instant;

use super::{
    SyncCall,
    apply::{MarkedSecrets, own_secret},
    retry,
    source::ReferencedKubeconfig,
    stall,
};
use crate::target_kubeconfig::TargetKubeconfig;

/// The most kubeconfigs that one call has issued: the garden may take its time for each, and the call is made again for the rest.
const ISSUED_AT_ONCE: usize = 8;

/// The kind Shoot of a garden.
pub(super) fn shoots() -> ApiResource {
    let (api_version, kind) = ("core.gardener.cloud/v1beta1".into(), "Shoot".into());
    ApiResource { api_version, kind, plural: "shoots".to_owned(), namespaced: true }
}

/// What is told of a credential that was not issued.
pub(super) fn unissued(fault: &Fault, what: &str) -> Halt {
    let message = format!("{what}: {fault}");
    // Also what was refused may be allowed later: a shoot that is being made has no control plane yet.
    retry("NotIssued", message)
}

impl SyncCall<'_> {
    /// The Target of a shoot, with a kubeconfig that is good for long enough.
    pub(super) async fn shoot(
        &mut self,
        name: &ObjectName,
        reference: &ReferencedKubeconfig,
        own: &MarkedSecrets,
        others: &mut usize,
    ) -> Step<()> {
        let now = self.host.now().0;
        let has_secret = own.get(name).is_some_and(|secret| self.maker_of(secret) == ObjectMaker::Own);
        let target = self.check_target(name)?.filter(|_| has_secret);
        let last = target.and_then(|target| target.annotations().get(annotation::LAST_TARGET_SYNC)?.parse().ok());
        if let Some(due) = shoot_due(last, now) {
            self.outcome.is_due(due);
            return self.put_target(name, own_secret(name), None).await;
        }
        if let Some(why) = self.memory.failed_lately(&self.key, name, Instant::now()) {
            return Err(retry("NotIssued", why));
        }
        if self.outcome.asked == ISSUED_AT_ONCE {
            self.outcome.again = true;
            return Ok(());
        }
        self.outcome.asked += 1;
        let issued = self.issued(Subject::ShootAdmin, name, SHOOT_SECONDS, reference).await;
        if let Some(failure) = issued.as_ref().err().and_then(Halt::failure) {
            self.memory.failed(&self.key, name, &failure.message, Instant::now());
        }
        let text = issued?;
        server_of(&text)
            .map_err(|why| stall("NotIssued", format!("what was issued for shoot {name} is not used: {why}")))?;
        self.put_secret(name, &text, own, others).await?;
        if let Some(due) = shoot_due(Some(now), now) {
            self.outcome.is_due(due);
        }
        self.put_target(name, own_secret(name), Some(written(now))).await
    }

    /// A kubeconfig that the other cluster issues.
    pub(super) async fn issued(
        &self,
        subject: Subject,
        name: &str,
        seconds: i64,
        reference: &ReferencedKubeconfig,
    ) -> Step<String> {
        if !self.host.may_write() {
            return Err(retry(
                "NotLeading",
                "another operator has the Lease; nothing is issued by this one".to_owned(),
            ));
        }
        let (namespace, text) = (&self.key.namespace, &reference.text);
        let networks = self.host.policies.networks(namespace, &TargetKubeconfig::from(text.clone()))?;
        let wanted =
            Credential { subject, name: name.into(), namespace: self.sync.spec.source_namespace.clone(), seconds };
        let issued = lending(issue_credential(text, &networks, &Some(namespace.clone()), &wanted)).await;
        let what = match subject {
            Subject::ShootAdmin => format!("no kubeconfig was issued for shoot {name}"),
            Subject::ServiceAccount => format!("no token was issued for service account {name}"),
        };
        issued.map(|issued| issued.kubeconfig).map_err(|fault| unissued(&fault, &what))
    }
}

/// A time as the annotation has it.
fn written(time: Timestamp) -> String {
    time.to_string()
}
