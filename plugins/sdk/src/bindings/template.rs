//! `orangery:template`, world `templater-with-check`.

wit_bindgen::generate!({
    world: "templater-with-check",
    path: "wit/template/0.1.0",
    pub_export_macro: true,
    export_macro_name: "export_render",
    default_bindings_module: "orangery_sdk::bindings::template",
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    additional_type_attributes: {
        "orangery:template/template@0.1.0/execution": [#[serde(rename_all = "camelCase")]],
        "orangery:template/template@0.1.0/input-step": [#[serde(rename_all = "camelCase")]],
        "orangery:template/template@0.1.0/output": [#[serde(rename_all = "camelCase")]],
        "orangery:template/check@0.1.0/findings": [#[derive(Default)]],
    },
    additional_member_attributes: {
        "orangery:template/template@0.1.0/request.file": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/template@0.1.0/request.inputs": [#[serde(with = "crate::json::text")]],
        "orangery:template/template@0.1.0/request.state": [#[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::optional_text")]],
        "orangery:template/template@0.1.0/output.document": [#[serde(with = "crate::json::text")]],
        "orangery:template/template@0.1.0/rendered.state": [#[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::optional_text")]],
        "orangery:template/template@0.1.0/rendered.warnings": [#[serde(default, skip_serializing_if = "Vec::is_empty")]],
        "orangery:template/template@0.1.0/failure.file": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/template@0.1.0/failure.line": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/template@0.1.0/failure.column": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/template@0.1.0/failure.snippet": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/template@0.1.0/failure.reads": [#[serde(default, skip_serializing_if = "Vec::is_empty")]],
        "orangery:template/check@0.1.0/reference.file": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/check@0.1.0/reference.line": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/check@0.1.0/reference.column": [#[serde(default, skip_serializing_if = "Option::is_none")]],
        "orangery:template/check@0.1.0/findings.failures": [#[serde(default, skip_serializing_if = "Vec::is_empty")]],
        "orangery:template/check@0.1.0/findings.references": [#[serde(default, skip_serializing_if = "Vec::is_empty")]],
    },
});
