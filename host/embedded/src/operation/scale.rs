//! The `/scale` subresource: one number of an object, as its own small object.

use serde_json::{Value, json};

use super::{WriteOutcome, WriteRequest, update::Tracking};
use crate::{
    cluster::{EmbeddedCluster, key},
    convert,
    object::{self, meta},
    present::JsonPath,
    refusal::Refusal,
    store::ObjectVersion,
};

impl EmbeddedCluster {
    /// The scale of an object.
    pub(crate) fn scale(&self, call: &WriteRequest, name: &str) -> Result<Value, Refusal> {
        let entry = self.find(&call.served, &call.namespace, name)?;
        scale_of(call, &entry)
    }

    /// Sets the wanted replicas of an object: the body is a Scale, or a merge patch of one.
    pub(crate) async fn set_scale(
        &self,
        call: &WriteRequest,
        name: &str,
        body: &Value,
    ) -> Result<(Value, WriteOutcome), Refusal> {
        let missing = || Refusal::not_found(call.served.label(), name);
        let present = self.store.latest(&key(&call.served, &call.namespace, name)).ok_or_else(missing)?;
        let mut new = convert::served_value(&call.served, &present);
        let path = call.served.version().scale.as_ref().and_then(|scale| JsonPath::parse(&scale.spec_replicas));
        let path = path.ok_or_else(Refusal::unknown_path)?;
        let replicas = object::at(body, &["spec", "replicas"]).cloned().unwrap_or_else(|| json!(0));
        object::set(&mut new, &path.fields().ok_or_else(Refusal::unknown_path)?, replicas);
        let outcome = self.replace(call, &present, new, Tracking::Update).await?;
        Ok((scale_of(call, &outcome.entry)?, outcome))
    }
}

fn scale_of(call: &WriteRequest, entry: &ObjectVersion) -> Result<Value, Refusal> {
    let scale = call.served.version().scale.as_ref().ok_or_else(Refusal::unknown_path)?;
    let object = convert::served_value(&call.served, entry);
    let find = |path: &str| JsonPath::parse(path).and_then(|path| path.select(&object).first().copied().cloned());
    let metadata = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata: serde_json::Map<String, Value> =
        metadata.into_iter().map(|field| (field.to_owned(), json!(meta(&object, field)))).collect();
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": find(&scale.spec_replicas).unwrap_or_else(|| json!(0))},
        "status": {
            "replicas": find(&scale.status_replicas).unwrap_or_else(|| json!(0)),
            "selector": find(&scale.selector).unwrap_or_else(|| json!("")),
        },
    }))
}
