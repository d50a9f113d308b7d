//! What an Installation reads: its siblings and subobjects, its imports, and its blueprint.

pub(super) mod blueprints;
pub(super) mod imports;
pub(super) mod kubeconfigs;
pub(super) mod peers;
pub(super) mod plain;
pub(super) mod rendering;
pub(super) mod siblings;
pub(super) mod subobjects;
