//! What the real Landscaper was recorded to do: each folder of `tests/golden` is played and compared whole (see the README
//! there).

use std::collections::BTreeSet;

use orangery_tests::recording::{cases, exceptions, folder, steps::Recording};

orangery_tests::recordings! {
    {
        blueprint_ref_without_component,
        deployitem_test_reconcile,
    }
    #[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
    {
        automatic_reconcile_succeeded,
        data_mappings,
        delete_ignore_successors,
        delete_target_missing,
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
        manifest_policies,
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
        partial_apply_forgets,
        progressing_timeout,
        reconcile_if_changed,
        remove_one_manifest,
        root_predecessor_never_reconciled,
        schema_fail,
        schema_invalid,
        spec_change_during_run,
        spiff_execution,
        state,
        subinst_failed,
        subinst_inline,
        subinst_unsatisfied_import,
        target_bad_kubeconfig,
        target_by_name_in_item,
        target_list,
        target_list_ref_order,
        target_map_shorthand,
        target_secretref,
        target_self,
        target_type_mismatch,
        template_error_fail,
        template_error_func,
        timeout_invalid,
        timeout_none,
        update_on_change_only,
        zero_items_after_update,
    }
}

#[test]
fn every_recording_is_played() {
    let mut played: Vec<String> = PLAYED.iter().map(|name| name.replace('_', "-")).collect();
    played.sort();
    assert_eq!(played, cases());
}

#[test]
fn every_exception_is_of_something_that_was_recorded() {
    let mut unused = Vec::new();
    let exceptions = exceptions::all();
    let mut used: BTreeSet<usize> = BTreeSet::new();
    for case in cases() {
        let mut recording = Recording::read(&folder(&case));
        for (index, exception) in exceptions.iter().enumerate().filter(|(_, exception)| exception.is_of(&case)) {
            if exception.apply(&mut recording) > 0 {
                used.insert(index);
            } else if exception.cases().contains(&case) {
                unused.push(format!("{case}: {}", exception.title()));
            }
        }
    }
    let is_a_line = |reason: &str| reason.len() > 10 && !reason.contains('\n');
    unused
        .extend(exceptions.iter().filter(|of| !is_a_line(of.reason())).map(|of| format!("no reason: {}", of.title())));
    let never = exceptions.iter().enumerate().filter(|(index, _)| !used.contains(index));
    unused.extend(never.map(|(_, exception)| exception.title()));
    assert_eq!(unused, Vec::<String>::new());
}
