//! The external deployer of the items that no component claims, which the tests play.

use serde_json::{Value, json};

use super::{FINALIZER, World, is_deleting, job_ended, name_of};

impl World {
    /// Waits until a deploy item is triggered, and answers it.
    pub(crate) async fn triggered(&self, item: &str) -> Value {
        self.item(item, |object| !job_ended(object) && object["status"]["jobID"].is_string()).await
    }

    /// The deployer ends the job of an item well: what is being deleted is released.
    pub(crate) async fn succeed(&self, item: &str) {
        let object = self.triggered(item).await;
        if is_deleting(&object) {
            self.patch("DeployItem", &name_of(&object), &json!({"metadata": {"finalizers": null}})).await;
        } else {
            self.answer(&object, "Succeeded", &Value::Null).await;
        }
    }

    /// The deployer ends the job of an item with an error.
    pub(crate) async fn fail(&self, item: &str, message: &str) {
        let object = self.triggered(item).await;
        let phase = if is_deleting(&object) { "DeleteFailed" } else { "Failed" };
        let time = "2026-01-01T00:00:00Z";
        let error = json!({"operation": "Deploy", "reason": "Broken", "message": message,
            "lastTransitionTime": time, "lastUpdateTime": time});
        self.answer(&object, phase, &error).await;
    }

    /// The deployer gives a triggered item exports.
    pub(crate) async fn export(&self, item: &str, exports: &Value) {
        let object = self.triggered(item).await;
        let name = format!("{}-export", name_of(&object));
        self.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"config": exports.to_string()}}))
            .await;
        let reference = json!({"exportRef": {"name": name, "namespace": "default"}});
        self.patch_status("DeployItem", &name_of(&object), &reference).await;
    }

    async fn answer(&self, object: &Value, phase: &str, error: &Value) {
        let name = name_of(object);
        if !is_deleting(object) {
            self.patch("DeployItem", &name, &json!({"metadata": {"finalizers": [FINALIZER]}})).await;
        }
        let (job, generation) = (&object["status"]["jobID"], &object["metadata"]["generation"]);
        let status =
            json!({"phase": phase, "jobIDFinished": job, "observedGeneration": generation, "lastError": error});
        self.patch_status("DeployItem", &name, &status).await;
    }
}
