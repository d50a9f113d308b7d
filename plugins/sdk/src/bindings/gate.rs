//! `orangery:gate`, world `gate-engine`.

wit_bindgen::generate!({
    world: "gate-engine",
    path: "../../wit/gate",
    pub_export_macro: true,
    export_macro_name: "export_evaluate",
    default_bindings_module: "orangery_sdk::bindings::gate",
    additional_derives: [PartialEq],
});
