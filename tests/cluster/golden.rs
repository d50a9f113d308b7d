//! What the real Landscaper was recorded to do with templates, imports and exports: each folder of `tests/golden` has the
//! inputs of a recorded case, and its objects as they were in the end (see the README there).

cases! {
    "golden":
    blueprint_ref_without_component,
    data_mappings,
    export_conflict_roots,
    gotemplate_files_and_funcs,
    import_executions,
    schema_fail,
    schema_invalid,
    spiff_execution,
    state,
    subinst_failed,
    subinst_inline,
    subinst_unsatisfied_import,
    target_bad_kubeconfig,
    target_by_name_in_item,
    target_list,
    target_map_shorthand,
    target_secretref,
    target_type_mismatch,
    template_error_fail,
    template_error_func,
}
