//! An external deployer, played by a test: it follows the public contract of deploy items and knows nothing else of
//! the host (`docs/wire.md` §7.1). It drops what it does not know when it writes a status, as clients with typed
//! objects do.

use serde_json::{Value, json};

use crate::objects::Objects;

/// The type of the items that it works on.
pub const TYPE: &str = "example.com/external";

/// The deployer, over the objects of a server.
pub struct ExternalDeployer<'a>(pub &'a Objects);

impl ExternalDeployer<'_> {
    /// Waits until an item is triggered: the job that is asked for is not finished.
    pub async fn triggered(&self, name: &str) -> Value {
        let is = |item: &Value| is_named(item, name) && is_triggered(item);
        self.0.expect_that(&item(), &format!("was not triggered: {name}"), is).await
    }

    /// Takes a triggered item over: it works from now on.
    pub async fn begin(&self, name: &str) {
        let item = self.triggered(name).await;
        let phase = if is_deleting(&item) { "Deleting" } else { "Progressing" };
        self.write(&item, phase, item["status"]["jobIDFinished"].clone(), Value::Null).await;
    }

    /// Waits until the item is triggered, and ends its job well: an item that is being deleted is released.
    pub async fn succeed(&self, name: &str) {
        let item = self.triggered(name).await;
        if is_deleting(&item) {
            self.0.merge_where_there(&named(&item, json!({"finalizers": null}))).await;
        } else {
            self.write(&item, "Succeeded", item["status"]["jobID"].clone(), Value::Null).await;
        }
    }

    /// Gives a triggered item exports.
    pub async fn export(&self, name: &str, exports: Value) {
        let item = self.triggered(name).await;
        let secret = format!("{}-export", item["metadata"]["name"].as_str().unwrap_or_default());
        let metadata = json!({"name": secret});
        let content = json!({"config": exports.to_string()});
        self.0.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": content})).await;
        let reference = json!({"name": secret, "namespace": item["metadata"]["namespace"]});
        self.0.patch_status(&item, json!({"exportRef": reference})).await;
    }

    /// Waits until the item is triggered, and ends its job with an error.
    pub async fn fail(&self, name: &str, message: &str) {
        let item = self.triggered(name).await;
        let phase = if is_deleting(&item) { "DeleteFailed" } else { "Failed" };
        let time = "2026-01-01T00:00:00Z";
        let error = json!({
            "operation": "Deploy", "reason": "Broken", "message": message,
            "lastTransitionTime": time, "lastUpdateTime": time,
        });
        self.write(&item, phase, item["status"]["jobID"].clone(), error).await;
    }

    /// The item of this name as it is now, if it is there.
    pub async fn find(&self, name: &str) -> Option<Value> {
        self.0.list(&item()).await.into_iter().find(|item| is_named(item, name))
    }

    async fn write(&self, item: &Value, phase: &str, finished: Value, error: Value) {
        let guarded = named(item, json!({"finalizers": ["finalizer.landscaper.gardener.cloud"]}));
        // An item that is gone meanwhile needs nothing more.
        if !is_deleting(item) && !self.0.merge_where_there(&guarded).await {
            return;
        }
        let status = json!({
            "phase": phase,
            "jobIDFinished": finished,
            "observedGeneration": item["metadata"]["generation"],
            "lastReconcileTime": item["status"]["jobIDGenerationTime"],
            "lastError": error,
            // What it does not know.
            "conditions": null,
            "transitionTimes": null,
        });
        self.0.patch_status(item, status).await;
    }
}

/// Any deploy item.
pub fn item() -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem"})
}

fn named(item: &Value, metadata: Value) -> Value {
    let mut metadata = metadata;
    metadata["name"] = item["metadata"]["name"].clone();
    json!({"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata})
}

fn is_named(item: &Value, name: &str) -> bool {
    item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == name
}

fn is_triggered(item: &Value) -> bool {
    let status = &item["status"];
    status["jobID"].as_str().is_some_and(|job| !job.is_empty() && status["jobIDFinished"] != job)
}

fn is_deleting(item: &Value) -> bool {
    item["metadata"]["deletionTimestamp"].is_string()
}
