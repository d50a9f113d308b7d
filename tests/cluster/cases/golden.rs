//! What the real Landscaper was recorded to do with templates, imports and exports: each folder of `tests/golden` has the
//! inputs of a recorded case, and its objects as they were in the end (see the README there).

orangery_tests::cases! {
    "golden":
    blueprint_ref_without_component,
    deployitem_test_reconcile,
}

orangery_tests::cases! {
    #[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
    "golden":
    automatic_reconcile_succeeded,
    data_mappings,
    delete_ignore_successors,
    delete_without_uninstall,
    deployitem_chain,
    deployitem_cycle,
    deployitem_unknown_dependency,
    deployment_default_readiness,
    duplicate_deployitem_names,
    export_conflict_roots,
    export_manifest,
    gotemplate_files_and_funcs,
    hello_manifest,
    helm_create_namespace_delete,
    helm_manifest_mode,
    helm_no_chart,
    helm_real,
    helm_template_error,
    import_executions,
    interrupt,
    manifest_bad_config,
    manifest_export_missing,
    manifest_invalid_object,
    manifest_list_kind,
    manifest_no_target,
    manifest_strategy_bogus,
    manifest_strategy_merge,
    manifest_strategy_patch,
    manifest_strategy_update,
    manifest_v1alpha1,
    missing_context,
    missing_import,
    missing_target,
    mock_phases,
    no_reconcile_annotation,
    progressing_timeout,
    reconcile_if_changed,
    remove_one_manifest,
    root_predecessor_never_reconciled,
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
    target_self,
    target_type_mismatch,
    template_error_fail,
    template_error_func,
    timeout_invalid,
    update_on_change_only,
}

/// The original knows no guards: there a Target that is in use can be deleted.
#[cfg(test)]
mod without_guards {
    use std::path::Path;

    #[tokio::test]
    #[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
    async fn delete_target_missing() {
        let cluster = crate::cluster_with(&["--guards=false"]).await;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/delete-target-missing");
        orangery_tests::case::run(&folder, &cluster).await;
    }
}
