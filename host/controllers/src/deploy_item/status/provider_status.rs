//! `status.providerStatus`: what the component keeps there, the inventory in the form of Landscaper's deployers, and beside
//! them, under `orangery`, what the host needs to go on and to delete, sealed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use orangery_api::stored_state::StoredState;
use orangery_apply::ItemState;
use orangery_core::{
    error::{Code, Failure},
    masking::Masker,
    name::{JobId, ObjectName},
    step::{Halt, Step},
};
use orangery_proposal::{
    ClusterRef, DeletionGroup,
    check::{HOST, MANAGED_RESOURCES},
    inventory::Inventory,
    item::{Progress, StoredProposal},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    hidden::{Hidden, ShownStatus},
    large_state::{self, LargeState},
};
use crate::seal::{SealError, Sealer};

/// What the host keeps beside the inventory. Others may write it as well: it counts where its seal is good (C-37).
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Additions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposal: Option<StoredProposal>,
    /// What the last job that succeeded wrote, where drift is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manifest: Option<StoredProposal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deletion_order: Vec<DeletionGroup>,
    /// Which clusters the inventory is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clusters: Vec<KnownCluster>,
    /// What lies in other clusters than those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<FormerCluster>,
    /// The Secrets of the operator's namespace with the credentials of these clusters, by the uid of the cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    credentials: BTreeMap<String, String>,
    /// What of all this, of the inventory and of what the component keeps is not shown, encrypted (C-85).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<String>,
    /// Where all of it is that has no room here (C-94).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    large: Option<StoredState>,
    /// The job that has written this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<JobId>,
    /// Grows with each write.
    #[serde(default, skip_serializing_if = "is_zero")]
    number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct KnownCluster {
    on: ClusterRef,
    uid: String,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormerCluster {
    uid: String,
    managed_resources: Value,
}

/// A provider status that was read.
pub(in crate::deploy_item) struct ReadStatus {
    /// What counts of it.
    pub(in crate::deploy_item) state: ItemState,
    /// Why not all of it does.
    pub(in crate::deploy_item) seal_error: Option<SealError>,
    /// Whether a part of it is encrypted with a key that this operator does not have.
    pub(in crate::deploy_item) is_part_lost: bool,
}

/// Reads a provider status, as a job finds it. The progress of another job is no progress of this one. Of a status that this
/// operator has not written, or not last, only the inventory is taken over and what it says of clusters, which has still to be
/// proven (C-110), and no last changes of its objects but their annotations: whose the objects are, is looked at before they are
/// deleted.
///
/// # Errors
/// A stall where the inventory cannot be read: guessing would leak or delete objects.
pub(in crate::deploy_item) fn read(
    status: Option<&Value>,
    large: Option<Hidden>,
    job: &JobId,
    sealer: Sealer<'_>,
) -> Step<ReadStatus> {
    let mut own = status.and_then(Value::as_object).cloned().unwrap_or_default();
    let inventory = inventory(own.remove(MANAGED_RESOURCES).as_ref())?;
    let additions: Additions = match own.remove(HOST) {
        Some(additions) => serde_json::from_value(additions)
            .map_err(|error| unreadable(&format!("status.providerStatus.orangery cannot be read: {error}")))?,
        None => Additions::default(),
    };
    let status = (!own.is_empty()).then_some(Value::Object(own));
    let is_empty = inventory.0.is_empty() && additions == Additions::default();
    let whole = if is_empty { Ok(Hidden::default()) } else { additions.verify(&inventory, sealer) };
    let hidden = match whole {
        Ok(hidden) => hidden,
        Err(seal_error) => {
            let encrypted = additions.hidden.as_deref().map(|hidden| sealer.decrypt::<Hidden>(hidden));
            let is_part_lost = matches!(encrypted, Some(None));
            let large = large.unwrap_or_default();
            let whole = large.managed_resources;
            let inventory = whole.map_or(Ok(inventory), |whole| self::inventory(Some(&whole))).map(adopted)?;
            // What is encrypted for this item is the operator's word, whatever stands beside it.
            let additions = additions.with(large.additions.or_else(|| encrypted.flatten()?.additions));
            let former = additions.former()?.into_iter().map(|(uid, inventory)| (uid, adopted(inventory))).collect();
            let clusters = additions.clusters.into_iter().map(|known| (known.on, known.uid)).collect();
            let state = ItemState { inventory, former, clusters, status, ..ItemState::default() };
            return Ok(ReadStatus { state, seal_error: Some(seal_error), is_part_lost });
        }
    };
    let status = hidden.status.or(status);
    let hidden = large.unwrap_or(Hidden { status: None, ..hidden });
    let inventory = match &hidden.managed_resources {
        Some(list) => self::inventory(Some(list))?,
        None => inventory,
    };
    let additions = additions.with(hidden.additions);
    let former = additions.former()?;
    let state = ItemState {
        inventory,
        progress: additions.progress.filter(|progress| progress.job == *job),
        stored: additions.proposal,
        manifest: additions.manifest,
        status,
        deletion_order: additions.deletion_order,
        clusters: additions.clusters.into_iter().map(|known| (known.on, known.uid)).collect(),
        former,
        credentials: additions.credentials,
        notes: Vec::new(),
    };
    Ok(ReadStatus { state, seal_error: None, is_part_lost: false })
}

/// The Secrets that a provider status names, where its seal is good.
pub(in crate::deploy_item) fn secrets(status: Option<&Value>, sealer: Sealer<'_>) -> BTreeSet<String> {
    let part = |name: &str| status.and_then(|status| status.get(name));
    let additions = part(HOST).and_then(|additions| Additions::deserialize(additions).ok());
    let sealed = additions.zip(inventory(part(MANAGED_RESOURCES)).ok());
    let Some((additions, _)) = sealed.filter(|(additions, shown)| additions.verify(shown, sealer).is_ok()) else {
        return BTreeSet::new();
    };
    let large = additions.large.iter().flat_map(large_state::secrets_of);
    let stored = additions.proposal.into_iter().chain(additions.manifest);
    large.chain(stored.flat_map(|stored| stored.secrets)).collect()
}

/// The manifest and the inventory of an item, for a look at them: whether the operator has written them is not known to
/// everybody who looks.
///
/// # Errors
/// The inventory cannot be read.
pub(in crate::deploy_item) fn unverified(
    status: Option<&Value>,
    large: Option<Hidden>,
) -> Step<(Inventory, Option<StoredProposal>)> {
    let field = |name: &str| status.and_then(|status| status.get(name));
    let additions = field(HOST).and_then(|additions| Additions::deserialize(additions).ok());
    let whole = large.and_then(|large| large.managed_resources);
    let inventory = inventory(whole.as_ref().or_else(|| field(MANAGED_RESOURCES)))?;
    Ok((inventory, additions.and_then(|additions| additions.manifest)))
}

fn inventory(list: Option<&Value>) -> Step<Inventory> {
    Inventory::read(list).map_err(|error| unreadable(&error.to_string()))
}

/// An inventory that nothing vouches for.
fn adopted(mut inventory: Inventory) -> Inventory {
    for entry in inventory.0.values_mut() {
        let annotations =
            entry.before_deletion.take().and_then(|change| change.pointer("/metadata/annotations").cloned());
        entry.before_deletion = annotations.map(|annotations| json!({"metadata": {"annotations": annotations}}));
    }
    inventory
}

fn unreadable(message: &str) -> Halt {
    Halt::Stall(Failure::new("ReadStatus", "UnreadableStatus", message).with_code(Code::InternalProblem))
}

impl Additions {
    fn of(state: &ItemState, credentials: &BTreeMap<String, String>, job: &JobId) -> Self {
        let known = state.clusters.iter().map(|(on, uid)| KnownCluster { on: on.clone(), uid: uid.clone() });
        let former = state.former.iter().filter_map(|(uid, inventory)| {
            Some(FormerCluster { uid: uid.clone(), managed_resources: inventory.list()? })
        });
        Self {
            proposal: state.stored.clone(),
            manifest: state.manifest.clone(),
            progress: state.progress.clone(),
            deletion_order: state.deletion_order.clone(),
            clusters: known.filter(|_| !state.inventory.0.is_empty()).collect(),
            former: former.collect(),
            credentials: credentials.clone(),
            hidden: None,
            large: None,
            job: Some(job.clone()),
            number: 0,
            seal: None,
        }
    }

    /// What lies in other clusters, by their uids.
    fn former(&self) -> Step<BTreeMap<String, Inventory>> {
        let read = |FormerCluster { uid, managed_resources }: &FormerCluster| {
            Ok((uid.clone(), inventory(Some(managed_resources))?))
        };
        self.former.iter().map(read).collect()
    }

    /// How many objects it names beside the inventory.
    pub(super) fn objects(&self) -> usize {
        self.progress.as_ref().map_or(0, |progress| progress.planned.len())
            + self.former.len()
            + self.deletion_order.len()
    }

    /// What has words of components in it, and the rest.
    pub(super) fn split(mut self) -> (Self, Self) {
        let words = Self {
            progress: self.progress.take(),
            deletion_order: std::mem::take(&mut self.deletion_order),
            former: std::mem::take(&mut self.former),
            ..Self::default()
        };
        (words, self)
    }

    /// The same with what was hidden of it.
    fn with(self, hidden: Option<Self>) -> Self {
        match hidden {
            Some(Self { progress, deletion_order, former, .. }) => Self { progress, deletion_order, former, ..self },
            None => self,
        }
    }

    /// The same without what a masker finds, which is hidden with the rest.
    fn hiding(self, mut hidden: Hidden, masker: &Masker, sealer: Sealer<'_>) -> Self {
        let shown = hidden.additions(self, masker);
        if hidden.is_empty() { shown } else { Self { hidden: sealer.encrypt(&hidden), ..shown } }
    }

    /// Whether there is nothing to say.
    fn is_empty(&self, inventory: &Inventory) -> bool {
        let job = self.job.clone();
        inventory.0.is_empty() && *self == Self { job, ..Self::default() }
    }

    /// The same under a number, sealed with the inventory beside it.
    fn sealed(self, number: u64, inventory: &Inventory, sealer: Sealer<'_>) -> Self {
        let unsealed = Self { number, seal: None, ..self };
        let seal = sealer.seal(number, &(inventory.list(), &unsealed));
        Self { seal, ..unsealed }
    }

    /// Holds the seal against all that counts, and answers what is hidden.
    fn verify(&self, inventory: &Inventory, sealer: Sealer<'_>) -> Result<Hidden, SealError> {
        let unsealed = Self { seal: None, ..self.clone() };
        sealer.verify(self.number, &(inventory.list(), &unsealed), self.seal.as_deref())?;
        match &self.hidden {
            Some(hidden) => sealer.decrypt(hidden).ok_or(SealError::Unsealed),
            None => Ok(Hidden::default()),
        }
    }
}

/// What of a provider status is the component's, where not all of it is shown.
fn visible(status: Option<&Value>, sealer: Sealer<'_>) -> ShownStatus {
    let hidden = status.and_then(|status| status.pointer("/orangery/hidden")).and_then(Value::as_str);
    let Some(hidden) = hidden.and_then(|hidden| sealer.decrypt::<Hidden>(hidden)) else {
        return ShownStatus::default();
    };
    let mut shown = status.and_then(Value::as_object).cloned().unwrap_or_default();
    shown.retain(|key, _| ![MANAGED_RESOURCES, HOST].contains(&key.as_str()));
    ShownStatus { whole: hidden.status, shown }
}

/// What a state becomes.
pub(in crate::deploy_item) struct WrittenStatus {
    /// The provider status; `None` where there is nothing to say.
    pub(in crate::deploy_item) status: Option<Value>,
    /// The number of its seal.
    pub(in crate::deploy_item) number: u64,
    /// What it names beside it, as far as it did not before.
    pub(in crate::deploy_item) large: Option<LargeState>,
}

/// The provider status of a state that a job has come to. What says the same as `before` is left as it is. What a masker finds
/// in it is hidden, and what has no room in it lies in Secrets of the item (C-94).
pub(in crate::deploy_item) fn write(
    state: &ItemState,
    credentials: &BTreeMap<String, String>,
    (item, before, job): (&ObjectName, Option<&Value>, &JobId),
    sealer: Sealer<'_>,
    masker: &Masker,
) -> WrittenStatus {
    let mut hidden = Hidden::default();
    let mut whole = hidden.status(state.status.as_ref(), visible(before, sealer), masker);
    let mut additions = Additions::of(state, credentials, job);
    let large = LargeState::of(&state.inventory, &additions, item, StoredState::of(before).as_ref());
    let shown = match &large {
        Some(large) => {
            additions = Additions { large: Some(large.stored.clone()), ..additions.split().1 };
            Cow::Owned(large_state::begin(&state.inventory))
        }
        None => Cow::Borrowed(&state.inventory),
    };
    let inventory = hidden.inventory(&shown, masker);
    if large.is_some() {
        // All of it lies beside the status.
        hidden.managed_resources = None;
    }
    if let Some(list) = inventory.list() {
        whole.insert(MANAGED_RESOURCES.to_owned(), list);
    }
    let additions = additions.hiding(hidden, masker, sealer);
    let number =
        before.and_then(|before| before.pointer("/orangery/number")).and_then(Value::as_u64).unwrap_or_default();
    let finished = |number: u64| {
        let mut whole = whole.clone();
        if !additions.is_empty(&inventory) {
            whole.insert(HOST.to_owned(), json!(additions.clone().sealed(number, &inventory, sealer)));
        }
        if whole.is_empty() {
            return None;
        }
        // The schema of the CRD asks for both.
        whole.entry("apiVersion").or_insert_with(|| json!("orangery.dev/v1alpha1"));
        whole.entry("kind").or_insert_with(|| json!("ProviderStatus"));
        Some(Value::Object(whole))
    };
    let same = finished(number);
    if same.as_ref() == before {
        return WrittenStatus { status: same, number, large };
    }
    let number = sealer.next_number();
    WrittenStatus { status: finished(number), number, large }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::overlay::overlay;

    use super::*;
    use crate::seal::tests::Bench;

    /// `tests/golden/hello-manifest`.
    fn recorded() -> Value {
        json!({
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderStatus",
            "managedResources": [{"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm",
                "namespace": "g-hello-manifest", "uid": "47ec1d9f-e855-40fd-87c0-0a45df91ce9e"}}],
        })
    }

    /// A state that was written, and the status of it.
    fn written(state: &ItemState, bench: &Bench) -> Value {
        masked(state, bench, &Masker::default())
    }

    /// The same without what a masker finds.
    fn masked(state: &ItemState, bench: &Bench, masker: &Masker) -> Value {
        of(state, None, bench, masker).status.unwrap()
    }

    fn of(state: &ItemState, before: Option<&Value>, bench: &Bench, masker: &Masker) -> WrittenStatus {
        write(state, &state.credentials, (&"item".into(), before, &"j".into()), bench.sealer("u"), masker)
    }

    fn state(status: &Value, job: &str, bench: &Bench) -> (ItemState, Option<SealError>) {
        let ReadStatus { state, seal_error, .. } = read(Some(status), None, &job.into(), bench.sealer("u")).unwrap();
        (state, seal_error)
    }

    /// A state with all that the host keeps.
    fn whole() -> ItemState {
        let progress = json!({"job": "j", "at": "pruning", "since": "1970-01-01T00:00:00Z"});
        let order = json!([{"on": "target", "what": ["namespaced"], "force": true}]);
        let inventory = Inventory::read(recorded().get(MANAGED_RESOURCES)).unwrap();
        ItemState {
            former: BTreeMap::from([("old".to_owned(), inventory.clone())]),
            inventory,
            progress: serde_json::from_value(progress).unwrap(),
            stored: Some(StoredProposal { digest: "sha256:0".into(), secrets: vec!["s".into()] }),
            manifest: Some(StoredProposal { digest: "sha256:1".into(), secrets: vec!["m".into()] }),
            status: Some(json!({"apiVersion": "a/v1", "kind": "K", "mine": 1})),
            deletion_order: serde_json::from_value(order).unwrap(),
            clusters: BTreeMap::from([(ClusterRef::Target, "c".to_owned())]),
            credentials: BTreeMap::from([("c".to_owned(), "orangery-cluster-c".to_owned())]),
            notes: Vec::new(),
        }
    }

    #[test]
    fn c_37_a_status_of_landscaper_is_adopted_and_nothing_vouches_for_it() {
        let bench = Bench::new(1);
        let (state, seal_error) = state(&recorded(), "job", &bench);
        assert_eq!(seal_error, Some(SealError::Unsealed));
        assert_eq!((state.inventory.0.len(), &state.progress, &state.stored), (1, &None, &None));
        let mut status = written(&state, &bench);
        let own = status.as_object_mut().unwrap().remove(HOST).unwrap();
        assert_eq!(status, recorded());
        assert!(own["seal"].is_string(), "from now on it is sealed");
    }

    #[test]
    fn what_is_written_is_read_again_and_only_the_own_job_goes_on() {
        let bench = Bench::new(1);
        let status = written(&whole(), &bench);
        assert_eq!(state(&status, "j", &bench), (whole(), None));
        let other = ItemState { progress: None, ..whole() };
        assert_eq!(state(&status, "k", &bench), (other, None));
    }

    #[test]
    fn what_says_the_same_is_not_written_anew() {
        let bench = Bench::new(1);
        let sealer = bench.sealer("u");
        let masker = Masker::of(["hunter2-hunter2", "namespaced"]);
        let write = |before: Option<&Value>, job: &str| {
            let of = (&"item".into(), before, &job.into());
            let WrittenStatus { status, number, .. } =
                super::write(&whole(), &whole().credentials, of, sealer, &masker);
            (status, number)
        };
        let (first, number) = write(None, "j");
        sealer.written(number);
        assert_eq!(write(first.as_ref(), "j"), (first.clone(), 1));
        let (second, number) = write(first.as_ref(), "k");
        assert_eq!((second == first, number), (false, 2), "another job");
    }

    #[test]
    fn c_37_c_110_of_a_status_that_somebody_changed_only_the_inventory_is_taken_over_and_what_it_says_of_clusters() {
        let bench = Bench::new(1);
        let status = written(&whole(), &bench);
        let inventory = whole().inventory;
        let adopted = |clusters: &str, former: &str| ItemState {
            inventory: inventory.clone(),
            status: whole().status,
            clusters: BTreeMap::from([(ClusterRef::Target, clusters.to_owned())]),
            former: BTreeMap::from([(former.to_owned(), inventory.clone())]),
            ..ItemState::default()
        };
        for (at, value) in [
            ("/orangery/progress/at", json!("exporting")),
            ("/orangery/proposal/secrets", json!(["other"])),
            ("/orangery/deletionOrder/0/force", json!(false)),
            ("/orangery/clusters/0/uid", json!("d")),
            ("/orangery/former/0/uid", json!("new")),
            ("/orangery/credentials/c", json!("orangery-seed")),
            ("/orangery/job", json!("k")),
            ("/orangery/number", json!(7)),
        ] {
            let mut changed = status.clone();
            *changed.pointer_mut(at).unwrap() = value;
            let clusters = if at == "/orangery/clusters/0/uid" { "d" } else { "c" };
            let former = if at == "/orangery/former/0/uid" { "new" } else { "old" };
            assert_eq!(state(&changed, "j", &bench), (adopted(clusters, former), Some(SealError::Unsealed)), "{at}");
        }
        let mut planted = status.clone();
        let secret = json!({"resource": {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "other"},
            "patchBeforeDelete": {"data": {"k": "v"}}});
        planted["managedResources"].as_array_mut().unwrap().push(secret);
        let (found, seal_error) = state(&planted, "j", &bench);
        assert_eq!((found.inventory.0.len(), seal_error), (2, Some(SealError::Unsealed)));
        assert!(found.inventory.0.values().all(|entry| entry.before_deletion.is_none()));
    }

    #[test]
    fn c_37_a_status_that_was_written_before_another_one_is_no_state_to_go_on_with() {
        let bench = Bench::new(1);
        let first = written(&ItemState { deletion_order: Vec::new(), ..whole() }, &bench);
        state(&first, "j", &bench);
        let second = written(&whole(), &bench);
        assert_eq!(state(&second, "j", &bench).1, None);
        assert_eq!(state(&first, "j", &bench).1, Some(SealError::Replayed));
    }

    #[test]
    fn nothing_to_say_is_no_status() {
        let bench = Bench::new(1);
        let nothing = read(None, None, &"j".into(), bench.sealer("u")).unwrap();
        assert_eq!((&nothing.state, nothing.seal_error), (&ItemState::default(), None));
        assert_eq!(of(&nothing.state, None, &bench, &Masker::default()).status, None);
        let stored = ItemState {
            stored: Some(StoredProposal { digest: "sha256:0".into(), secrets: vec![] }),
            ..ItemState::default()
        };
        let status = written(&stored, &bench);
        assert_eq!(
            (&status["apiVersion"], &status["kind"]),
            (&json!("orangery.dev/v1alpha1"), &json!("ProviderStatus"))
        );
        assert_eq!(status["orangery"]["proposal"], json!({"digest": "sha256:0", "secrets": []}));
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        let bench = Bench::new(1);
        for broken in [json!({"managedResources": "x"}), json!({"orangery": {"progress": {"at": "nowhere"}}})] {
            assert!(
                matches!(read(Some(&broken), None, &"j".into(), bench.sealer("u")), Err(Halt::Stall(_))),
                "{broken}"
            );
        }
    }

    const VALUE: &str = "hunter2-\"hunter2\"";

    /// A state that shows the value wherever a component may have put it.
    fn telling() -> ItemState {
        let mut state = whole();
        let failed = json!({"stage": "s", "problem": {"code": "E", "message": format!("it is {VALUE}")}});
        state.progress = serde_json::from_value(json!({"job": "j", "at": {"recovering": failed},
            "since": "1970-01-01T00:00:00Z"}))
        .unwrap();
        state.status =
            Some(json!({"apiVersion": "a/v1", "kind": VALUE, "mine": VALUE, VALUE: [VALUE.to_owned() + "x", 1]}));
        for inventory in [&mut state.inventory, state.former.get_mut("old").unwrap()] {
            inventory.0.values_mut().for_each(|entry| entry.before_deletion = Some(json!({"data": {"k": VALUE}})));
        }
        state
    }

    #[test]
    fn c_85_values_of_secrets_are_not_shown_and_what_is_read_again_has_them() {
        let bench = Bench::new(1);
        let masker = Masker::of([VALUE]);
        let status = masked(&telling(), &bench, &masker);
        assert!(!masker.finds(&status.to_string()), "{status:#}");
        assert_eq!(state(&status, "j", &bench), (telling(), None));
        let mut shown = status.clone();
        let own = shown.as_object_mut().unwrap().remove(HOST).unwrap();
        let mut expected = recorded();
        overlay(&mut expected, &json!({"apiVersion": "a/v1", "mine": "[masked]", "[masked]": ["[masked]x", 1]}));
        assert_eq!(shown, expected);
        let members: Vec<&str> = own.as_object().unwrap().keys().map(String::as_str).collect();
        let kept = ["clusters", "credentials", "hidden", "job", "manifest", "number", "proposal", "seal"];
        assert_eq!(members, kept);
        // Though it is not known to be secret any more.
        let later = of(&telling(), Some(&status), &bench, &Masker::default());
        assert_eq!(later.status.unwrap()["mine"], "[masked]");
        // Nothing is hidden that is not secret.
        let status = masked(&whole(), &bench, &masker);
        assert_eq!((&status, status.pointer("/orangery/hidden")), (&written(&whole(), &bench), None));
    }

    #[test]
    fn c_110_what_lies_in_former_clusters_outlives_the_seal_unless_its_key_is_gone() {
        let bench = Bench::new(1);
        let status = masked(&telling(), &bench, &Masker::of([VALUE]));
        let mut tampered = status.clone();
        tampered["orangery"]["seal"] = json!("AAAA");
        let read = |bench: &Bench| read(Some(&tampered), None, &"j".into(), bench.sealer("u")).unwrap();
        let known = read(&bench);
        assert_eq!((known.state.former.len(), known.is_part_lost), (1, false), "it is encrypted for this item");
        assert!(known.state.former["old"].0.values().all(|entry| entry.before_deletion.is_none()), "and adopted");
        let lost = read(&Bench::new(2));
        assert_eq!((lost.state.former.len(), lost.is_part_lost), (0, true));
        let (shown, seal_error) = state(&written(&whole(), &bench), "j", &Bench::new(2));
        assert_eq!((shown.former, seal_error), (whole().former, Some(SealError::Unsealed)));
    }

    #[test]
    fn c_85_what_is_hidden_counts_as_long_as_nobody_changes_it() {
        let bench = Bench::new(1);
        let status = masked(&telling(), &bench, &Masker::of([VALUE]));
        let other = masked(&telling(), &Bench::new(2), &Masker::of([VALUE]));
        for hidden in [Value::Null, json!("x"), other["orangery"]["hidden"].clone()] {
            let mut changed = status.clone();
            changed["orangery"]["hidden"] = hidden;
            let (found, seal_error) = state(&changed, "j", &bench);
            assert_eq!((found.inventory, seal_error), (whole().inventory, Some(SealError::Unsealed)));
            assert_eq!(found.status.unwrap()["mine"], "[masked]");
        }
    }

    /// A state of so many ConfigMaps, all of which are planned.
    fn of_many(count: usize) -> ItemState {
        let list = (0..count).map(|number| {
            json!({"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": format!("cm-{number}"),
                "namespace": "default", "uid": format!("47ec1d9f-e855-40fd-87c0-{number:012}")}})
        });
        let mut state = whole();
        state.inventory = Inventory::read(Some(&list.collect())).unwrap();
        if let Some(progress) = &mut state.progress {
            progress.planned = state.inventory.0.keys().cloned().collect();
        }
        state
    }

    #[test]
    fn c_94_limits_state_what_has_no_room_in_the_status_lies_beside_it_under_its_seal() {
        let (bench, none) = (Bench::new(1), Masker::default());
        let few = of(&of_many(500), None, &bench, &none);
        assert!(few.large.is_none() && few.status.unwrap()["managedResources"].as_array().unwrap().len() == 500);
        let many = of_many(20_000);
        let WrittenStatus { status, large, .. } = of(&many, None, &bench, &none);
        let (status, large) = (status.unwrap(), large.unwrap());
        let size = status.to_string().len();
        assert!(size < 100_000, "{size} bytes of status");
        assert_eq!(status["managedResources"].as_array().unwrap().len(), 200, "the first of them are shown");
        let read = |status: &Value, content: Option<Hidden>| {
            let ReadStatus { state, seal_error, .. } =
                super::read(Some(status), content, &"j".into(), bench.sealer("u")).unwrap();
            (state, seal_error)
        };
        assert_eq!(read(&status, large.content()), (many.clone(), None));
        // It is stored once, and what says the same is not written anew.
        let again = of(&many, Some(&status), &bench, &none);
        assert_eq!(again.status.as_ref(), Some(&status));
        assert!(again.large.unwrap().is_stored());
        // A status that names other Secrets is none of ours, and the objects are looked at before they are deleted.
        let mut other = status.clone();
        other["orangery"]["large"]["digest"] = json!("sha256:0");
        let (found, seal_error) = read(&other, large.content());
        assert_eq!((found.inventory.0.len(), seal_error), (20_000, Some(SealError::Unsealed)));
        assert_eq!((found.progress, found.stored), (None, None));
        assert_eq!(secrets(Some(&other), bench.sealer("u")), BTreeSet::new());
        let named = secrets(Some(&status), bench.sealer("u"));
        assert_eq!(named, large.secrets().into_iter().chain(["m", "s"].map(str::to_owned)).collect());
    }

    #[test]
    fn c_85_words_of_the_wire_and_too_many_values_break_nothing() {
        let bench = Bench::new(1);
        for masker in [
            Masker::of(["managedResources", "orangery", "providerStatus", "ProviderStatus", "namespace", "1970-01-01"]),
            Masker::of_too_many(),
        ] {
            let status = masked(&whole(), &bench, &masker);
            assert_eq!(state(&status, "j", &bench), (whole(), None), "{status:#}");
            assert_eq!(status["managedResources"], recorded()["managedResources"]);
        }
    }
}
