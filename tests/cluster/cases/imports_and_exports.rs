//! What happens to those that import when an import changes.

mod deleted_exports;
mod on_change;
