//! The item list of an Execution, plain or compressed.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use k8s_openapi::ByteString;
use orangery_blueprint::gate::GateExpressions;
use orangery_core::{memory, workflow::GateKind};
use orangery_proposal::drift_rules::DriftRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    deploy_item::OnDelete,
    duration::Duration,
    execution::{
        ExecutionSpec,
        gates::{GateSpec, gate_schema},
    },
    reference::ObjectReference,
    schema,
};

/// The longest item list that is read, in bytes of JSON. An object of Kubernetes has at most 1.5 MiB; gzip makes a
/// thousandth of a list made to harm.
const LONGEST_LIST: u64 = 64 << 20;

/// Bytes of a compressed list from which on its outline is another one.
const LONG_LIST: usize = 4 << 10;

/// The most memory, in bytes, that an item list may take.
const MOST_LIST_BYTES: u64 = 256 << 20;

/// The most items of an Execution (C-197).
const MOST_ITEMS: usize = 10_000;

/// One deploy item as an Execution lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployItemTemplate {
    /// Its name in the list.
    pub name: String,
    /// The deployer type.
    #[serde(rename = "type")]
    pub type_: String,
    /// The Target, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ObjectReference>,
    /// Labels of the DeployItem.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The provider configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::embedded")]
    pub config: Option<Value>,
    /// The names of the items to finish before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// From pick-up to failure; absent means 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Nothing is done for an unchanged item that succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub update_on_change_only: bool,
    /// What deletion does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// What is done when objects are changed that the item has written; absent means nothing. Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::drift_rules")]
    pub drift: Option<DriftRules>,
    /// Whether the item takes part at all: one that does not is left as it is. Not in the original, like the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "gate_schema")]
    pub activate_when: Option<GateSpec>,
    /// Whether the item is wanted: one that is not is deleted, with all that depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "gate_schema")]
    pub when: Option<GateSpec>,
    /// When the item is ready, after its deployer succeeded; what depends on it waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "gate_schema")]
    pub ready_when: Option<GateSpec>,
    /// When the item is gone, after its object is; what it depends on waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "gate_schema")]
    pub deleted_when: Option<GateSpec>,
}

/// Why the items of an Execution cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ItemsError {
    /// There are too many.
    #[error("an Execution may have {most} deploy items, and this one has {0}; split the blueprint into sub-installations", most = MOST_ITEMS)]
    TooMany(usize),
    /// The bytes are no gzip.
    #[error(
        "spec.deployItemsCompressed is not compressed with gzip; delete the Execution, its Installation writes it anew"
    )]
    Compression(#[source] std::io::Error),
    /// The list is too long.
    #[error("spec.deployItemsCompressed has more than {} MiB; split the blueprint into sub-installations", LONGEST_LIST >> 20)]
    TooLong,
    /// The list has too many small values.
    #[error(
        "spec.deployItemsCompressed has so many small values that it takes more than {} MiB of memory; split the blueprint into \
         sub-installations",
        MOST_LIST_BYTES >> 20
    )]
    TooLarge,
    /// The bytes decompressed are no list of items.
    #[error(
        "spec.deployItemsCompressed is not a list of deploy items; delete the Execution, its Installation writes it anew"
    )]
    Format(#[source] serde_json::Error),
}

impl DeployItemTemplate {
    /// Its gate expressions.
    pub fn gates(&self) -> GateExpressions {
        GateExpressions::of([
            (GateKind::Activate, self.activate_when.clone()),
            (GateKind::When, self.when.clone()),
            (GateKind::Ready, self.ready_when.clone()),
            (GateKind::Deleted, self.deleted_when.clone()),
        ])
    }

    /// The Targets that its gate expressions look at, its own where they name none.
    pub fn gate_targets(&self) -> impl Iterator<Item = &str> {
        // Deleting the Target of an item that may skip is how a user says that the cluster is gone.
        let skips = self.on_delete.as_ref().is_some_and(|on_delete| on_delete.skip_uninstall_if_cluster_removed);
        let own = self.target.as_ref().filter(|_| !skips).map(|target| target.name.as_str());
        let gates = [&self.activate_when, &self.when, &self.ready_when, &self.deleted_when];
        gates.into_iter().flatten().flat_map(move |gate_expression| {
            let objects = gate_expression.objects.values().map(|object| object.target.as_ref());
            let definition = gate_expression.crd_present.iter().map(|definition| definition.target.as_ref());
            objects.chain(definition).filter_map(move |target| target.map(String::as_str).or(own))
        })
    }

    /// The same item with these gate expressions.
    pub fn with_gates(mut self, gates: &GateExpressions) -> Self {
        let of = |gate| gates.get(gate).cloned();
        self.activate_when = of(GateKind::Activate);
        self.when = of(GateKind::When);
        self.ready_when = of(GateKind::Ready);
        self.deleted_when = of(GateKind::Deleted);
        self
    }
}

impl ExecutionSpec {
    /// A spec with these items, compressed on the wire.
    pub fn new(context: impl Into<String>, items: Vec<DeployItemTemplate>) -> Self {
        let mut spec = Self { context: context.into(), ..Self::default() };
        spec.write_items(&items);
        spec
    }

    /// The items. Decompresses at each call: ask once for a reconcile.
    pub fn items(&self) -> Result<Vec<DeployItemTemplate>, ItemsError> {
        let items = match &self.deploy_items_compressed {
            Some(ByteString(bytes)) if !bytes.is_empty() => decompress(bytes)?,
            Some(_) | None => self.deploy_items.clone(),
        };
        within_limit(items.len()).map(|()| items)
    }

    /// The items by their names alone, for who shows them. A short list is as it is, and so is one that cannot be read.
    pub fn outline(&self) -> Self {
        let length = self.deploy_items_compressed.as_ref().map_or(0, |ByteString(bytes)| bytes.len());
        let items = if length > LONG_LIST || !self.deploy_items.is_empty() { self.items().ok() } else { None };
        match items {
            Some(items) => {
                let named =
                    |item: DeployItemTemplate| DeployItemTemplate { name: item.name, ..DeployItemTemplate::default() };
                Self::new(self.context.clone(), items.into_iter().map(named).collect())
            }
            None => self.clone(),
        }
    }

    /// Puts these items in. Where they are there already nothing changes: another compressor's bytes for the same list
    /// are kept, so that taking over an object of the original writes nothing.
    pub fn set_items(&mut self, items: &[DeployItemTemplate]) {
        let unchanged = self.deploy_items.is_empty() && matches!(self.items(), Ok(present) if present == items);
        if !unchanged {
            self.write_items(items);
        }
    }

    fn write_items(&mut self, items: &[DeployItemTemplate]) {
        self.deploy_items = Vec::new();
        self.deploy_items_compressed = if items.is_empty() { None } else { Some(ByteString(compress(items))) };
    }
}

/// Whether an Execution may have so many items (C-197).
///
/// # Errors
/// [`ItemsError::TooMany`]
pub fn within_limit(items: usize) -> Result<(), ItemsError> {
    if items > MOST_ITEMS { Err(ItemsError::TooMany(items)) } else { Ok(()) }
}

fn compress(items: &[DeployItemTemplate]) -> Vec<u8> {
    let json = serde_json::to_vec(items).expect("an item list has string keys only");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&json).and_then(|()| encoder.finish()).expect("writing to memory cannot fail")
}

fn decompress(bytes: &[u8]) -> Result<Vec<DeployItemTemplate>, ItemsError> {
    let mut json = Vec::new();
    GzDecoder::new(bytes).take(LONGEST_LIST + 1).read_to_end(&mut json).map_err(ItemsError::Compression)?;
    if u64::try_from(json.len()).unwrap_or(u64::MAX) > LONGEST_LIST {
        return Err(ItemsError::TooLong);
    }
    if memory::of_json(&json) > MOST_LIST_BYTES {
        return Err(ItemsError::TooLarge);
    }
    serde_json::from_slice::<Option<Vec<_>>>(&json).map(Option::unwrap_or_default).map_err(ItemsError::Format)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Recorded in `tests/golden/hello-manifest`, written by the original.
    const RECORDED: &str = "H4sIAAAAAAAA/4SQP2vEMAzFv4tmJ+U6Zu1cKBS6HDeots5n4thGlgPhyHcvuqTpUEpHvaf305/zHRJOBAMEoQkMyFK0iphctViIe4/sKBH3Nubmnsb2SZxIqHYTpnClKhpD9iQwHLhp6WxsVYjBPLRa0KrhuxvFmH/CqwGb0zV4TWMJH8Q15KSMvaV3VGJeiPu/15pPGMsNn8HAGJKDAd44z8ERvzzgjVGUag5qheF8P6pfw+cTGHAoqM5Ii0oYG+m++4SN/IpFqST43b2/wE7/nr4aKDkGu2zXoidYLwZacSj0LoxCXr1NgHW9fAEAAP//AQAA//8WCLkGsQEAAA==";

    fn recorded_item() -> DeployItemTemplate {
        DeployItemTemplate {
            name: "item".to_owned(),
            type_: "landscaper.gardener.cloud/kubernetes-manifest".to_owned(),
            target: Some(ObjectReference { name: "my-cluster".into(), namespace: "g-hello-manifest".into() }),
            config: Some(json!({
                "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
                "kind": "ProviderConfiguration",
                "manifests": [{
                    "manifest": {
                        "apiVersion": "v1",
                        "data": {"key": "value"},
                        "kind": "ConfigMap",
                        "metadata": {"name": "cm", "namespace": "g-hello-manifest"},
                    },
                    "policy": "manage",
                }],
                "updateStrategy": "update",
            })),
            ..DeployItemTemplate::default()
        }
    }

    fn spec(json: Value) -> ExecutionSpec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn exe_02_the_original_s_compressed_items_are_read() {
        let spec = spec(json!({"context": "default", "deployItemsCompressed": RECORDED}));
        assert_eq!(spec.items().unwrap(), [recorded_item()]);
    }

    #[test]
    fn plain_items_are_read_and_compressed_ones_win() {
        let plain = json!([{"name": "a", "type": "t"}]);
        let a = DeployItemTemplate { name: "a".to_owned(), type_: "t".to_owned(), ..DeployItemTemplate::default() };
        assert_eq!(spec(json!({"deployItems": plain})).items().unwrap(), [a]);
        let both = spec(json!({"deployItems": plain, "deployItemsCompressed": RECORDED}));
        assert_eq!(both.items().unwrap(), [recorded_item()]);
        assert_eq!(spec(json!({})).items().unwrap(), []);
    }

    #[test]
    fn c_99_the_outline_of_a_long_list_has_the_names_of_its_items_and_a_short_one_is_as_it_is() {
        // What does not compress.
        let text: String = (0..10_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_string()).collect();
        let item = |name: &str, text: &str| DeployItemTemplate {
            name: name.to_owned(),
            config: Some(json!({"text": text})),
            ..DeployItemTemplate::default()
        };
        let long = ExecutionSpec::new("c", vec![item("a", &text), item("b", "")]);
        let named = |name: &str| DeployItemTemplate { name: name.to_owned(), ..DeployItemTemplate::default() };
        assert_eq!(long.outline().items().unwrap(), [named("a"), named("b")]);
        assert_eq!(long.outline().context, "c");
        let short = ExecutionSpec::new("c", vec![item("a", "x")]);
        assert_eq!(short.outline(), short);
        let unreadable = spec(json!({"deployItemsCompressed": "x".repeat(8 << 10)}));
        assert_eq!(unreadable.outline(), unreadable);
    }

    #[test]
    fn items_are_written_compressed_only() {
        let written = ExecutionSpec::new("default", vec![recorded_item()]);
        let json = serde_json::to_value(&written).unwrap();
        assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["context", "deployItemsCompressed"]);
        assert_eq!(spec(json).items().unwrap(), [recorded_item()]);
        assert_eq!(serde_json::to_value(ExecutionSpec::new("", vec![])).unwrap(), json!({}));
    }

    #[test]
    fn putting_in_the_same_items_changes_nothing() {
        let before = spec(json!({"deployItemsCompressed": RECORDED}));
        let mut after = before.clone();
        after.set_items(&[recorded_item()]);
        assert_eq!(after, before);
        after.set_items(&[]);
        assert_eq!(after, spec(json!({})));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_told_apart() {
        let broken = |bytes: &[u8]| {
            let spec =
                ExecutionSpec { deploy_items_compressed: Some(ByteString(bytes.to_vec())), ..ExecutionSpec::default() };
            spec.items().unwrap_err()
        };
        let gzip = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        assert!(matches!(broken(b"plain"), ItemsError::Compression(_)));
        assert!(matches!(broken(&gzip(b"{}")), ItemsError::Format(_)));
        let long = vec![b' '; usize::try_from(LONGEST_LIST).unwrap() + 1];
        assert!(matches!(broken(&gzip(&long)), ItemsError::TooLong));
    }

    #[test]
    fn c_197_limits_execution_so_many_items_of_one_are_read() {
        let of = |items: usize| ExecutionSpec::new("c", vec![DeployItemTemplate::default(); items]);
        assert_eq!(of(MOST_ITEMS).items().unwrap().len(), MOST_ITEMS);
        assert_eq!(
            of(MOST_ITEMS + 1).items().unwrap_err().to_string(),
            "an Execution may have 10000 deploy items, and this one has 10001; split the blueprint into sub-installations"
        );
        let plain = ExecutionSpec {
            deploy_items: vec![DeployItemTemplate::default(); MOST_ITEMS + 1],
            ..ExecutionSpec::default()
        };
        assert!(matches!(plain.items(), Err(ItemsError::TooMany(_))));
        assert!(within_limit(MOST_ITEMS).is_ok());
    }

    #[test]
    fn limits_execution_a_list_of_many_small_items_is_refused_before_it_is_decoded() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(format!("[{}{{}}]", "{\"\":0},".repeat(400_000)).as_bytes()).unwrap();
        let compressed = encoder.finish().unwrap();
        assert!(compressed.len() < 100 << 10, "as an Execution can have it: {}", compressed.len());
        let spec = ExecutionSpec { deploy_items_compressed: Some(ByteString(compressed)), ..ExecutionSpec::default() };
        assert!(matches!(spec.items().unwrap_err(), ItemsError::TooLarge));
    }
}
