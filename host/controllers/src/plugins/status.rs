//! What a Plugin is told: which version is in use, what it asks for, whom it serves, and how it stands.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use orangery_api::{
    condition,
    plugin::{Plugin, PluginImport, PluginStatus, PluginType},
};
use orangery_blueprint::plugins::{ClaimedType, InstalledInterfaces};
use orangery_core::condition::PluginReport;
use serde_json::{Value, json};

use crate::controller_context::ControllerContext;

/// The version of a Plugin that is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LoadedVersion {
    pub(super) version: String,
    pub(super) generation: i64,
    /// The reference that it was resolved from, and the artifact by its digest.
    pub(super) artifact: Option<(String, String)>,
    pub(super) interfaces: InstalledInterfaces,
}

/// The status of a Plugin at a generation.
pub(super) fn status(
    before: &PluginStatus,
    (report, generation): (&PluginReport, i64),
    loaded: Option<&LoadedVersion>,
    (types, items): (Vec<ClaimedType>, u32),
    now: &Time,
) -> PluginStatus {
    let conditions = condition::of_plugin(report, generation, &before.conditions, now);
    let types = types.into_iter().map(|(type_, served_by)| PluginType { type_, served_by }).collect();
    let told =
        PluginStatus { observed_generation: Some(generation), types, items: Some(items), conditions, ..before.clone() };
    let Some(loaded) = loaded else { return told };
    let LoadedVersion { version, generation, artifact, interfaces } = loaded.clone();
    let (reference, artifact) = artifact.unzip();
    let import = |offer: orangery_blueprint::plugins::ImportOffer| PluginImport {
        interface: offer.interface,
        offer: offer.offer.to_owned(),
        grant: offer.grant.map(str::to_owned),
    };
    PluginStatus {
        loaded_generation: Some(generation),
        version: Some(version),
        digest: Some(interfaces.digest),
        reference,
        artifact,
        exports: interfaces.exports,
        imports: interfaces.imports.into_iter().map(import).collect(),
        ..told
    }
}

/// The fields of a status that may be absent: a merge takes them away where they are null.
const OPTIONAL: [&str; 11] = [
    "loadedGeneration",
    "version",
    "digest",
    "reference",
    "artifact",
    "exports",
    "imports",
    "types",
    "items",
    "candidate",
    "conditions",
];

/// What is sent to have a status written.
fn patch(status: &PluginStatus) -> Value {
    let mut fields = json!(status);
    if let Some(fields) = fields.as_object_mut() {
        for name in OPTIONAL {
            fields.entry(name).or_insert(Value::Null);
        }
    }
    json!({"status": fields})
}

/// Writes a status where it says something else than before.
pub(super) async fn write(host: &ControllerContext, plugin: &Plugin, status: &PluginStatus) -> kube::Result<()> {
    if plugin.status.as_ref() == Some(status) {
        return Ok(());
    }
    let api: Api<Plugin> = Api::all(host.client.clone());
    match api.patch_status(&plugin.name_any(), &PatchParams::default(), &Patch::Merge(patch(status))).await {
        // It is gone, and with it everybody that would read it.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        written => written.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::plugins::ImportOffer;
    use orangery_core::error::Failure;

    use super::*;

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn c_262_what_is_in_use_is_told_and_stays_told_where_another_version_cannot_be_used() {
        let imports = vec![ImportOffer { interface: "a".into(), offer: "notGranted", grant: Some("reads") }];
        let interfaces = InstalledInterfaces { digest: "sha256:1".into(), exports: vec!["e".into()], imports };
        let artifact = Some(("r:1".to_owned(), "r@sha256:2".to_owned()));
        let loaded = LoadedVersion { version: "1".into(), generation: 1, artifact, interfaces };
        let types = vec![("t".to_owned(), None), ("u".to_owned(), Some("the Plugin other".to_owned()))];
        let ready = PluginReport::Ready("it serves t".to_owned());
        let first = status(&PluginStatus::default(), (&ready, 1), Some(&loaded), (types.clone(), 7), &at(1));
        let conditions = json!([{
            "type": "Ready", "status": "True", "reason": "Active", "message": "it serves t", "observedGeneration": 1,
            "lastTransitionTime": "1970-01-01T00:00:01Z", "lastUpdateTime": "1970-01-01T00:00:01Z",
        }]);
        let expected = json!({
            "observedGeneration": 1, "loadedGeneration": 1, "version": "1", "digest": "sha256:1", "reference": "r:1",
            "artifact": "r@sha256:2", "exports": ["e"],
            "imports": [{"interface": "a", "offer": "notGranted", "grant": "reads"}],
            "types": [{"type": "t"}, {"type": "u", "servedBy": "the Plugin other"}],
            "items": 7, "candidate": null, "conditions": conditions,
        });
        assert_eq!(patch(&first), json!({"status": expected}));

        let stalled = PluginReport::Stalled(Failure::new("LoadPlugin", "Broken", "it is broken".to_owned()));
        let second = status(&first, (&stalled, 2), Some(&loaded), (types, 7), &at(2));
        let told: Vec<_> = second.conditions.iter().map(|one| (one.status.as_str(), one.reason.as_str())).collect();
        assert_eq!(told, [("False", "Broken"), ("True", "Broken")]);
        let same = PluginStatus { observed_generation: Some(1), conditions: first.conditions.clone(), ..second };
        assert_eq!(same, first);

        // One from a ConfigMap is of no registry any more.
        let of_map = LoadedVersion { artifact: None, generation: 3, ..loaded };
        let third = status(&first, (&ready, 3), Some(&of_map), (Vec::new(), 0), &at(3));
        let written = patch(&third);
        assert_eq!((&written["status"]["artifact"], &written["status"]["types"]), (&Value::Null, &Value::Null));
        assert_eq!(written["status"]["items"], 0);
    }
}
