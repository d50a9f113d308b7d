//! Labels of our kinds (`docs/wire.md` §2.2).

/// On a sub-Installation: the parent's name.
pub const ENCOMPASSED_BY: &str = "landscaper.gardener.cloud/encompassed-by";
/// On a DeployItem: the Execution's name.
pub const MANAGED_BY: &str = "execution.landscaper.gardener.cloud/managed-by";
/// On a DeployItem: the item's name in the Execution.
pub const ITEM_NAME: &str = "execution.landscaper.gardener.cloud/name";
/// On a DataObject or Target: whose context it lives in; empty for roots, `Inst.<name>` or `Exec.<name>`.
pub const CONTEXT: &str = "data.landscaper.gardener.cloud/context";
/// On the same: [`SOURCE_TYPE_IMPORT`] or [`SOURCE_TYPE_EXPORT`].
pub const SOURCE_TYPE: &str = "data.landscaper.gardener.cloud/sourceType";
/// Written by an installation for its own templates and children.
pub const SOURCE_TYPE_IMPORT: &str = "import";
/// Written by an installation for its siblings and parent.
pub const SOURCE_TYPE_EXPORT: &str = "export";
/// On the same: the data reference; left out for exports of executions.
pub const KEY: &str = "data.landscaper.gardener.cloud/key";
/// On the same: who wrote it, `Inst.<name>` or `Exec.<name>`.
pub const SOURCE: &str = "data.landscaper.gardener.cloud/source";
/// On a Target: its position in a target list.
pub const INDEX: &str = "data.landscaper.gardener.cloud/index";
/// On a Target: its key in a target map.
pub const TARGET_MAP_KEY: &str = "data.landscaper.gardener.cloud/targetmapkey";
/// On an import that an installation wrote: the job that wrote it last.
pub const JOB_ID: &str = "data.landscaper.gardener.cloud/jobid";
/// On any validated kind: `true` skips the validation at admission.
pub const SKIP_VALIDATION: &str = "validation.landscaper.gardener.cloud/skip-validation";
/// On a DataObject that the operator wrote: it holds data of Secrets, [`SECRET_DATA_WHOLE`] or [`SECRET_DATA_PARTLY`] (C-41).
/// Not in the original.
pub const SECRET_DATA: &str = "orangery.dev/secret-data";
/// It is a copy: all of it is.
pub const SECRET_DATA_WHOLE: &str = "whole";
/// Some of it is.
pub const SECRET_DATA_PARTLY: &str = "partly";
/// On what `orangery blueprint test --server` has created: on an Installation empty, on what one imports its name (C-248). Not in
/// the original.
pub const BLUEPRINT_TEST: &str = "orangery.dev/blueprint-test";
/// On a Target or Secret that a TargetSync has made: [`TARGET_SYNC_OK`].
pub const TARGET_SYNC: &str = "landscaper.gardener.cloud/targetsync";
/// The one value of [`TARGET_SYNC`].
pub const TARGET_SYNC_OK: &str = "ok";
