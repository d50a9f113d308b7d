//! Deploy items whose component proposes what stands in their configuration, and the clusters that they deploy to.

use std::{
    num::NonZeroU32,
    ops::{Deref, DerefMut},
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use orangery_api::{deploy_item::DeployItem, job::Job, target::Target};
use serde_json::{Value, json};

use crate::{
    objects::{SCRIPTED, object},
    world::{Setup, World},
};

/// The Execution of the items.
pub(crate) const EXECUTION: &str = "items";
pub(crate) const MANAGED_BY: &str = "execution.landscaper.gardener.cloud/managed-by";

/// The deploy items of a server, beside its world, which names objects by kind and name.
pub(crate) struct Items(World);

impl Deref for Items {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl DerefMut for Items {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.0
    }
}

impl Items {
    pub(crate) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    /// With a limit on the items that are under way at once.
    pub(crate) async fn limited(most: NonZeroU32) -> Self {
        Self::with(Setup { max_parallel: Some(most), ..Setup::default() }).await
    }

    /// With the Target `cluster`, which is the server itself.
    pub(crate) async fn with(setup: Setup) -> Self {
        let items = Self(World::with(setup).await);
        let kubeconfig = items.kubeconfig();
        let spec =
            json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig}});
        items.target("cluster", spec).await;
        // Without a job of its own: the tests hand jobs down.
        items.apply(&object("Execution", EXECUTION, &json!({"context": "default"}))).await;
        items
    }

    /// All objects, by kind and name.
    pub(crate) fn objects(&self) -> &World {
        &self.0
    }

    pub(crate) async fn target(&self, name: &str, spec: Value) {
        let target = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target",
            "metadata": {"name": name}, "spec": spec});
        let api: Api<Target> = Api::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &serde_json::from_value(target).unwrap()).await.unwrap();
    }

    /// The Secrets with credentials that were kept.
    pub(crate) async fn kept(&self) -> Vec<Secret> {
        let is_kept = |secret: &Secret| secret.type_.as_deref() == Some("orangery.dev/kubeconfig");
        self.secrets().await.into_iter().filter(is_kept).collect()
    }

    /// Deletes what was kept of credentials.
    pub(crate) async fn lose_kept(&self) {
        let secrets: Api<Secret> = Api::default_namespaced(self.client.clone());
        for secret in self.kept().await {
            secrets.delete(&secret.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
        }
    }

    /// Deletes a target, and waits until the controller knows: an item that needs it fails.
    pub(crate) async fn lose_target(&self, name: &str) {
        let api: Api<Target> = Api::default_namespaced(self.client.clone());
        api.delete(name, &DeleteParams::default()).await.unwrap();
        self.create("probe", &[proposal("probe", json!({}))], json!({"target": {"name": name}})).await;
        let mut job = 0;
        while self.job("probe", &format!("probe-{job}")).await["phase"] != "Failed" {
            job += 1;
        }
    }

    pub(crate) fn items(&self) -> Api<DeployItem> {
        Api::default_namespaced(self.client.clone())
    }

    /// Creates an item with these proposals; `spec` is laid over.
    pub(crate) async fn create(&self, name: &str, proposals: &[Value], spec: Value) {
        let execution = self.find("Execution", EXECUTION).await.unwrap();
        let owner = json!({"apiVersion": execution["apiVersion"], "kind": "Execution", "name": EXECUTION,
            "uid": execution["metadata"]["uid"]});
        let mut object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
            "metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"type": SCRIPTED, "target": {"name": "cluster", "namespace": "default"},
                "config": {"apiVersion": "example.org/v1", "kind": "Script", "proposals": proposals}}});
        orangery_proposal::overlay::overlay(&mut object["spec"], &spec);
        self.items().create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.items().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Sets the job, as an Execution does.
    pub(crate) async fn trigger(&self, name: &str, job: &str) {
        let status = json!({"status": {"jobID": job}});
        self.items().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Ends the job of an item, as an Execution does that is interrupted.
    pub(crate) async fn interrupt(&self, name: &str, job: &str) {
        let interrupted = json!({"status": {"phase": "Failed", "jobIDFinished": job}});
        self.items().patch_status(name, &PatchParams::default(), &Patch::Merge(interrupted)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.items().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the item is as wanted, and answers it; `None` where it is gone.
    pub(crate) async fn wait(&self, name: &str, wanted: impl Fn(Option<&DeployItem>) -> bool) -> Option<DeployItem> {
        let answer = async || {
            let item = self.items().get_opt(name).await.unwrap();
            wanted(item.as_ref()).then_some(item)
        };
        match self.in_time(answer).await {
            Some(item) => item,
            None => panic!("{name} is {:#?}", self.items().get_opt(name).await.unwrap().map(|item| item.status)),
        }
    }

    /// Runs a job to its end, and answers the item's status as JSON.
    pub(crate) async fn job(&self, name: &str, job: &str) -> Value {
        self.trigger(name, job).await;
        self.finished(name, job).await
    }

    pub(crate) async fn finished(&self, name: &str, job: &str) -> Value {
        let item = self.wait(name, |item| item.is_some_and(|item| item.finished_job(&job.into()))).await;
        json!(item.unwrap().status)
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.wait(name, |item| item.is_none()).await;
    }

    /// What somebody waits for, as the conditions tell it.
    pub(crate) async fn waiting(&self, name: &str, text: &str) {
        let says = |item: &DeployItem| item.conditions().iter().any(|condition| condition.message.contains(text));
        self.wait(name, |item| item.is_some_and(says)).await;
    }

    /// Where the job of an item stands in its proposal, as the status says it; `None` where it does not say.
    pub(crate) fn step(item: &DeployItem) -> Option<Value> {
        item.status.as_ref()?.provider_status.as_ref()?.pointer("/orangery/progress/at").cloned()
    }

    /// Waits until the job of an item waits in this step, and says so in these words.
    pub(crate) async fn waiting_in(&self, name: &str, step: &Value, text: &str) {
        let says = |item: &DeployItem| item.conditions().iter().any(|condition| condition.message.contains(text));
        self.wait(name, |item| item.is_some_and(|item| says(item) && Self::step(item).as_ref() == Some(step))).await;
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client.clone())
    }

    /// Changes a config map, as somebody else does.
    pub(crate) async fn patch_config_map(&self, name: &str, patch: Value) {
        self.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Has the controller look at an item.
    pub(crate) async fn touch(&self, name: &str, why: &str) {
        self.patch(name, json!({"metadata": {"annotations": {"look": why}}})).await;
    }

    /// The value of a config map; `None` where there is none.
    pub(crate) async fn value(&self, name: &str) -> Option<String> {
        let api: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        api.get_opt(name).await.unwrap()?.data?.remove("k")
    }

    pub(crate) async fn secrets(&self) -> Vec<Secret> {
        let api: Api<Secret> = Api::default_namespaced(self.client.clone());
        api.list(&Default::default()).await.unwrap().items
    }

    /// How many Secrets hold proposals.
    pub(crate) async fn stored_proposals(&self) -> usize {
        self.secrets().await.iter().filter(|secret| is_proposal(secret)).count()
    }

    /// Waits until no Secret holds a proposal.
    pub(crate) async fn without_proposals(&self) {
        let none = self.in_time(async || (self.stored_proposals().await == 0).then_some(())).await;
        assert!(none.is_some(), "{} Secrets hold proposals", self.stored_proposals().await);
    }

    pub(crate) fn calls(&self) -> usize {
        self.plugin.calls.lock().unwrap().len()
    }
}

/// Whether a Secret holds a proposal.
pub(crate) fn is_proposal(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some("orangery.dev/proposal")
}

/// Writes one config map; `fields` is laid over the proposal.
pub(crate) fn proposal(name: &str, fields: Value) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}});
    let mut whole = json!({"stages": [{"name": "all", "gate": "accepted", "writes": [{"object": object, "how": "replace"}]}],
        "status": {"apiVersion": "example.org/v1", "kind": "Status"}});
    orangery_proposal::overlay::overlay(&mut whole, &fields);
    if whole.get("next").is_none() {
        whole["next"] = json!({"finish": {}});
    }
    whole
}

/// The key of a config map.
pub(crate) fn key(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name})
}

/// A gate that holds when a config map has this value.
pub(crate) fn gate(name: &str, value: &str) -> Value {
    let key = key(name);
    json!({"ready": [{"name": "mine", "scope": {"keys": [key]},
        "rule": {"requirements": [{"path": ".data.k", "operator": "==", "values": [value]}]}}]})
}

/// A proposal whose only stage waits for a value of the config map that it writes.
pub(crate) fn gated_on(name: &str, value: &str) -> Value {
    let mut whole = proposal(name, json!({}));
    whole["stages"][0]["gate"] = gate(name, value);
    whole
}

/// A proposal whose only stage waits for a value of the config map `a`.
pub(crate) fn gated(value: &str) -> Value {
    gated_on("a", value)
}
