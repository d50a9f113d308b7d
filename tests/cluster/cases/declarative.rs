//! Cases without code: each folder beside this file has the objects that are applied and those that have to come of them.

orangery_tests::cases! {
    "cluster/cases/declarative":
    a_tree_has_the_recorded_names,
    one_item_from_create_to_delete,
    an_item_removed_from_the_blueprint_is_deleted,
    an_object_removed_from_its_manifest_is_deleted,
    a_failed_item_stops_those_after_it,
    a_missing_target_fails_at_once,
    an_invalid_object_fails_with_its_name,
    deleting_without_uninstall_leaves_the_objects,
    exports_reach_the_next_root,
    mock_items_follow_their_configuration,
    policies_keep_and_ignore,
    states_are_kept_from_job_to_job,
    executions_need_no_names,
    a_patch_may_set_what_is_empty,
    sub_installations_follow_their_parent,
}
