//! `orangery:gate`, world `gate-engine`.

wit_bindgen::generate!({
    world: "gate-engine",
    path: "wit/gate/0.1.0",
    pub_export_macro: true,
    export_macro_name: "export_evaluate",
    default_bindings_module: "orangery_sdk::bindings::gate",
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    additional_type_attributes: {
        "orangery:gate/gate@0.1.0/gate-kind": [#[serde(rename_all = "camelCase")]],
        "orangery:gate/gate@0.1.0/verdict": [#[serde(rename_all = "camelCase")]],
        "orangery:gate/gate@0.1.0/gate-question": [#[serde(deny_unknown_fields)]],
    },
    additional_member_attributes: {
        "orangery:gate/gate@0.1.0/gate-question.config": [#[serde(default = "crate::json::null", with = "crate::json::text")]],
        "orangery:gate/gate@0.1.0/gate-question.inputs": [#[serde(with = "crate::json::text")]],
        "orangery:gate/gate@0.1.0/answer.details": [#[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::optional_text")]],
    },
});
