//! The definitions of all kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{
    annotation,
    context::Context,
    data_object::DataObject,
    deploy_item::DeployItem,
    execution::Execution,
    health::{CriticalProblems, LsHealthCheck},
    installation::Installation,
    job_history::JobHistory,
    namespace_policy::NamespacePolicy,
    overwrites::ComponentVersionOverwrites,
    plan::{Plan, phase},
    plugin::Plugin,
    sync::{SyncObject, TargetSync},
    target::Target,
};

/// The definitions of all kinds, sorted by name (`docs/wire.md` §1).
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        ComponentVersionOverwrites::crd(),
        Context::crd(),
        CriticalProblems::crd(),
        DataObject::crd(),
        DeployItem::crd(),
        Execution::crd(),
        Installation::crd(),
        JobHistory::crd(),
        LsHealthCheck::crd(),
        NamespacePolicy::crd(),
        Plan::crd(),
        Plugin::crd(),
        SyncObject::crd(),
        Target::crd(),
        TargetSync::crd(),
    ];
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    crds.iter_mut().for_each(begin_unobserved);
    for crd in &mut crds {
        let annotations = crd.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    }
    crds
}

/// Objects of the job protocol, and Plugins, begin with a status that says that no generation was observed: without it kstatus takes an
/// object on which nobody has worked yet for done, and with it no write is needed to say so. Flux begins its kinds alike. A Plan begins
/// as one that may be approved.
fn begin_unobserved(crd: &mut CustomResourceDefinition) {
    let (is_plugin, is_plan) = (crd.spec.names.kind == "Plugin", crd.spec.names.kind == "Plan");
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let status = schema.and_then(|schema| schema.properties.as_mut()?.get_mut("status"));
        let Some(status) = status else { continue };
        if is_plan {
            status.default = Some(JSON(json!({"phase": phase::READY})));
        } else if is_plugin || has_jobs(status) {
            status.default = Some(JSON(json!({"observedGeneration": -1})));
        }
    }
}

fn has_jobs(status: &JSONSchemaProps) -> bool {
    status.properties.as_ref().is_some_and(|properties| properties.contains_key("jobIDFinished"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::namespace_policy::POLICY_GROUP;

    fn crd(plural: &str) -> Value {
        let crd = crds().into_iter().find(|crd| crd.spec.names.plural == plural).unwrap();
        serde_json::to_value(crd).unwrap()
    }

    fn schema(plural: &str) -> Value {
        crd(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    #[test]
    fn kinds_names_and_short_names_are_landscapers() {
        let names: Vec<Value> = crds()
            .into_iter()
            .filter(|crd| crd.spec.group != POLICY_GROUP)
            .map(|crd| {
                let names = crd.spec.names;
                assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), (crate::GROUP, "Namespaced"));
                json!([names.kind, names.plural, names.singular, names.short_names])
            })
            .collect();
        assert_eq!(
            names,
            [
                json!([
                    "ComponentVersionOverwrites",
                    "componentversionoverwrites",
                    "componentversionoverwrite",
                    ["compveroverwrite", "cvo"]
                ]),
                json!(["Context", "contexts", "context", ["ctx"]]),
                json!(["CriticalProblems", "criticalproblems", "criticalproblems", ["cps"]]),
                json!(["DataObject", "dataobjects", "dataobject", ["dobj", "do"]]),
                json!(["DeployItem", "deployitems", "deployitem", ["di"]]),
                json!(["Execution", "executions", "execution", ["exec"]]),
                json!(["Installation", "installations", "installation", ["inst"]]),
                json!(["LsHealthCheck", "lshealthchecks", "lshealthcheck", ["lshc"]]),
                json!(["SyncObject", "syncobjects", "syncobject", ["so"]]),
                json!(["Target", "targets", "target", ["tgt", "tg"]]),
                json!(["TargetSync", "targetsyncs", "targetsync", ["tgs"]]),
            ]
        );
    }

    #[test]
    fn the_kinds_with_a_status_subresource_are_landscapers() {
        let with_status: Vec<String> = crds()
            .into_iter()
            .filter(|crd| {
                let subresources = crd.spec.versions.first().and_then(|version| version.subresources.clone());
                subresources.is_some_and(|subresources| subresources.status.is_some())
            })
            .map(|crd| crd.spec.names.kind)
            .collect();
        assert_eq!(
            with_status,
            [
                "CriticalProblems",
                "DeployItem",
                "Execution",
                "Installation",
                "NamespacePolicy",
                "Plan",
                "Plugin",
                "SyncObject",
                "TargetSync",
            ]
        );
    }

    #[test]
    fn a_namespace_policy_is_of_our_own_group_and_of_no_namespace() {
        let crd = crd("namespacepolicies");
        let (spec, names) = (&crd["spec"], &crd["spec"]["names"]);
        assert_eq!(crd["metadata"]["name"], "namespacepolicies.orangery.dev");
        assert_eq!((&spec["group"], &spec["scope"]), (&json!(POLICY_GROUP), &json!("Cluster")));
        assert_eq!((&names["kind"], &names["shortNames"]), (&json!("NamespacePolicy"), &json!(["nspol"])));
        let lines = &schema("namespacepolicies")["properties"]["spec"]["properties"];
        let fields: Vec<&String> = lines.as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            [
                "approval",
                "blueprints",
                "dataObjects",
                "egress",
                "items",
                "namespaces",
                "plans",
                "priority",
                "profile",
                "quotas",
                "recordings",
                "signatures",
                "sources",
                "targets"
            ]
        );
        assert_eq!(lines["profile"]["default"], "restricted");
        let pattern = json!({"type": "string", "minLength": 1, "maxLength": 512});
        assert_eq!(lines["sources"]["properties"]["hosts"]["items"], pattern);
        let networks = &lines["egress"]["properties"]["networks"];
        let network = json!({"type": "string", "maxLength": 49, "pattern": "^[0-9A-Fa-f:.]+/[0-9]{1,3}$"});
        assert_eq!((&networks["items"], &networks["maxItems"]), (&network, &json!(64)));
    }

    #[test]
    fn c_260_a_plugin_is_of_our_own_group_and_of_no_namespace_and_begins_unobserved() {
        let crd = crd("plugins");
        let (spec, schema) = (&crd["spec"], schema("plugins"));
        assert_eq!((&spec["group"], &spec["scope"]), (&json!(POLICY_GROUP), &json!("Cluster")));
        let fields: Vec<&String> = schema["properties"]["spec"]["properties"].as_object().unwrap().keys().collect();
        let expected = [
            "candidate",
            "deployer",
            "gate",
            "grants",
            "limits",
            "namespaces",
            "priority",
            "record",
            "source",
            "suspend",
            "template",
            "verification",
            "version",
        ];
        assert_eq!(fields, expected);
        let grants = schema["properties"]["spec"]["properties"]["grants"]["properties"].as_object().unwrap();
        let all = serde_json::to_value(orangery_proposal::grant::Grants::default()).unwrap();
        assert_eq!(grants.keys().collect::<Vec<_>>(), all.as_object().unwrap().keys().collect::<Vec<_>>());
        assert_eq!(schema["properties"]["status"]["default"], json!({"observedGeneration": -1}));
    }

    #[test]
    fn free_json_is_preserved_and_embedded_objects_are_marked() {
        let any = json!({"x-kubernetes-preserve-unknown-fields": true});
        let part = |schema: &Value, path: &str| {
            let mut part = schema.pointer(path).unwrap().clone();
            part.as_object_mut().unwrap().remove("description");
            part
        };
        let installations = schema("installations");
        assert_eq!(
            part(&installations, "/properties/spec/properties/blueprint/properties/inline/properties/filesystem"),
            any
        );
        assert_eq!(
            part(&installations, "/properties/spec/properties/importDataMappings"),
            json!({"type": "object", "additionalProperties": any})
        );
        assert_eq!(part(&schema("dataobjects"), "/properties/data"), any);
        assert_eq!(part(&schema("targets"), "/properties/spec/properties/config"), any);
        let embedded = json!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        });
        let items = schema("deployitems");
        assert_eq!(part(&items, "/properties/spec/properties/config"), embedded);
        assert_eq!(part(&items, "/properties/status/properties/providerStatus"), embedded);
        assert_eq!(
            part(&schema("executions"), "/properties/spec/properties/deployItems/items/properties/config"),
            embedded
        );
        assert_eq!(
            part(&schema("executions"), "/properties/spec/properties/deployItemsCompressed"),
            json!({"type": "string", "format": "byte"})
        );
    }

    #[test]
    fn orc_08_what_is_waited_for_is_bounded_and_kubectl_prints_it() {
        for plural in ["deployitems", "executions", "installations"] {
            let columns = crd(plural)["spec"]["versions"][0]["additionalPrinterColumns"].clone();
            let column = json!({
                "name": "Waiting For", "type": "string", "jsonPath": ".status.waitingFor[*].name", "priority": 1,
            });
            assert!(columns.as_array().unwrap().contains(&column), "{plural}: {columns}");
            let status = schema(plural)["properties"]["status"]["properties"].clone();
            let waiting_for = &status["waitingFor"];
            let fields = waiting_for["items"]["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            assert_eq!(
                (&waiting_for["type"], &waiting_for["maxItems"], fields),
                (
                    &json!("array"),
                    &json!(16),
                    ["kind", "name", "namespace", "selection", "until"].map(str::to_owned).to_vec()
                )
            );
            assert_eq!(waiting_for["items"]["required"], json!(["kind", "until"]));
            // Words of a newer operator are accepted.
            assert_eq!(waiting_for["items"]["properties"]["until"].get("enum"), None);
            assert_eq!(status["waitingForMore"]["type"], "integer");
        }
    }

    /// The columns that are shown, and what stands in them; those of the original come in its order.
    #[test]
    fn c_65_the_columns_of_the_original_are_shown_and_a_parent_shows_the_begin_of_its_message() {
        let columns = |plural: &str| {
            let columns = crd(plural)["spec"]["versions"][0]["additionalPrinterColumns"].clone();
            let shown = columns.as_array().cloned().unwrap_or_default().into_iter();
            let shown = shown.filter(|column| column.get("priority").is_none());
            shown
                .map(|column| format!("{}: {}", column["name"], column["jsonPath"]).replace('"', ""))
                .collect::<Vec<_>>()
        };
        let (phase, age) = ("Phase: .status.phase", "Age: .metadata.creationTimestamp");
        let export = "ExportRef: .status.exportRef.name";
        let ready = r"Ready: .status.conditions[?(@.type==\Ready\)].status";
        let brief = r"Status: .status.conditions[?(@.type==\Progressing\)].message";
        let whole = r"Status: .status.conditions[?(@.type==\Ready\)].message";
        let execution = "Execution: .status.executionRef.name";
        assert_eq!(columns("installations"), [phase, execution, ready, brief, age]);
        assert_eq!(columns("executions"), [phase, export, ready, brief, age]);
        let (of, target) = ("Type: .spec.type", "Target: .spec.target.name");
        assert_eq!(columns("deployitems"), [of, target, phase, export, ready, whole, age]);
    }

    /// A client of an old version may still write it; what is no field is taken away.
    #[test]
    fn c_65_the_phase_that_old_clients_write_is_kept() {
        let schema = schema("deployitems");
        assert_eq!(schema["properties"]["status"]["properties"]["deployItemPhase"]["type"], "string");
        let status: crate::deploy_item::DeployItemStatus =
            serde_json::from_value(json!({"deployItemPhase": "Failed"})).unwrap();
        assert_eq!(serde_json::to_value(status).unwrap()["deployItemPhase"], "Failed");
    }

    #[test]
    fn names_that_a_cache_of_children_leaves_out_are_accepted_as_by_the_original() {
        for (plural, cache) in [
            ("executions", "deployItemCache/properties/activeDIs"),
            ("installations", "subInstCache/properties/activeSubs"),
        ] {
            let schema = schema(plural);
            let pair = schema.pointer(&format!("/properties/status/properties/{cache}/items")).unwrap();
            assert_eq!((&pair["type"], pair.get("required")), (&json!("object"), None), "{plural}");
        }
        let read: crate::job::NamePair = serde_json::from_value(json!({"specName": "a"})).unwrap();
        assert_eq!((read.spec_name.as_str(), read.object_name.as_str()), ("a", ""));
    }

    #[test]
    fn c_04_an_object_with_jobs_begins_unobserved() {
        for plural in ["deployitems", "executions", "installations"] {
            let begin = schema(plural)["properties"]["status"]["default"].clone();
            assert_eq!(begin, json!({"observedGeneration": -1}), "{plural}");
        }
        assert_eq!(schema("targetsyncs")["properties"]["status"]["default"], Value::Null);
    }

    #[test]
    fn kinds_without_spec_have_their_fields_at_the_top() {
        let top = |plural: &str| {
            let schema = schema(plural);
            let properties = schema["properties"].as_object().unwrap();
            let names: Vec<String> = properties.keys().cloned().collect();
            names
        };
        assert_eq!(top("dataobjects"), ["data"]);
        assert_eq!(top("componentversionoverwrites"), ["overwrites"]);
        assert_eq!(top("lshealthchecks"), ["description", "lastUpdateTime", "status"]);
    }
}
