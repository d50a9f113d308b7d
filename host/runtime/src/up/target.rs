//! The Target `cluster`, which points blueprints at the server they live in.

use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use orangery_api::target::{KUBERNETES_CLUSTER, Target, TargetSpec};
use serde_json::json;

use super::UpError;

/// Its name and its namespace.
const NAME: &str = "cluster";
const NAMESPACE: &str = "default";

/// Puts the Target there, or brings it up to date: address and credentials may have changed since the last `up`.
pub(super) async fn put(client: &Client, kubeconfig: &str) -> Result<(), UpError> {
    let api: Api<Target> = Api::namespaced(client.clone(), NAMESPACE);
    let params = PatchParams::apply("orangery").force();
    api.patch(NAME, &params, &Patch::Apply(target(kubeconfig))).await.map(drop).map_err(UpError::Target)
}

fn target(kubeconfig: &str) -> Target {
    let metadata =
        ObjectMeta { name: Some(NAME.to_owned()), namespace: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() };
    let config = json!({ "kubeconfig": kubeconfig });
    Target {
        metadata,
        spec: TargetSpec { type_: KUBERNETES_CLUSTER.to_owned(), config: Some(config), secret_ref: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_has_the_form_of_landscaper() {
        assert_eq!(
            serde_json::to_value(target("text")).unwrap(),
            json!({
                "apiVersion": "landscaper.gardener.cloud/v1alpha1",
                "kind": "Target",
                "metadata": {"name": "cluster", "namespace": "default"},
                "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": "text"}},
            })
        );
    }
}
