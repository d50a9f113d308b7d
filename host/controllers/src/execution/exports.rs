//! `Completing`: the exports of all items become one DataObject (EXE-31, `landscaper.md` §6.6).

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, reference::ObjectReference};
use orangery_blueprint::record::execution_exports;
use orangery_core::{
    error::Failure,
    step::{Halt, Step, Verdict},
};
use serde_json::{Map, Value};

use super::{
    Run,
    items::{WRITES_AT_ONCE, item_name},
};
use crate::{installation::get, object::owner_reference, record};

/// The key of an export Secret.
const CONFIG: &str = "config";

impl Run<'_> {
    pub(super) async fn completing(&mut self) -> Step<Verdict> {
        let namespace = self.draft.namespace().unwrap_or_default();
        let objects = self.objects();
        let reads: Vec<_> = objects.iter().map(|object| self.named_exports(&namespace, object)).collect();
        let exports: Map<String, Value> =
            stream::iter(reads).buffered(WRITES_AT_ONCE).try_collect::<Vec<_>>().await?.into_iter().collect();
        let record = execution_exports(&self.draft.name_any(), exports);
        let name = record.name.clone();
        record::write(self.host, &namespace, &owner_reference(&self.draft), &[record]).await?;
        let status = self.draft.status.get_or_insert_default();
        status.export_ref = Some(ObjectReference { name, namespace });
        if let Some(cache) = &mut status.deploy_item_cache {
            cache.orphaned_items.clear();
        }
        Ok(Verdict::Done)
    }

    async fn named_exports(&self, namespace: &str, object: &DeployItem) -> Step<(String, Value)> {
        Ok((item_name(object).to_owned(), self.exports_of(namespace, object).await?))
    }

    pub(super) async fn exports_of(&self, namespace: &str, object: &DeployItem) -> Step<Value> {
        let Some(reference) = object.status.as_ref().and_then(|status| status.export_ref.as_ref()) else {
            return Ok(Value::Null);
        };
        let unreadable = |why: &str| {
            let message = format!(
                "the exports of DeployItem {namespace}/{} in Secret {} {why}",
                object.name_any(),
                reference.name
            );
            Halt::Retry(Failure::new("CollectExports", "ExportsUnreadable", message))
        };
        let secret: Option<Secret> = get(&self.host.client, namespace, &reference.name).await?;
        let secret = secret.ok_or_else(|| unreadable("do not exist"))?;
        let data = secret
            .data
            .as_ref()
            .and_then(|data| data.get(CONFIG))
            .ok_or_else(|| unreadable("lack the key `config`"))?;
        serde_json::from_slice(&data.0).map_err(|_| unreadable("are not JSON"))
    }
}
