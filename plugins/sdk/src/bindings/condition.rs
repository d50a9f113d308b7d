//! `orangery:condition`, world `condition-answerer`.

wit_bindgen::generate!({
    world: "condition-answerer",
    path: "../../wit/condition",
    pub_export_macro: true,
    export_macro_name: "export_evaluate",
    default_bindings_module: "orangery_sdk::bindings::condition",
    additional_derives: [PartialEq],
});
