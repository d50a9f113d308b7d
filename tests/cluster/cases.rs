//! Each folder beside this file is a case.

orangery_tests::cases! {
    "cluster":
    a_tree_has_the_recorded_names,
    one_item_from_create_to_delete,
    an_item_that_left_the_blueprint_goes,
    an_object_that_left_its_manifest_goes,
    a_failed_item_stops_those_after_it,
    a_missing_target_fails_at_once,
    an_invalid_object_fails_with_its_name,
    deleting_without_uninstall_leaves_the_objects,
    exports_reach_the_next_root,
    mock_items_do_as_they_are_told,
    policies_keep_and_ignore,
    states_are_kept_from_job_to_job,
    sub_installations_follow_their_parent,
}
