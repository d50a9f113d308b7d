//! What happens to those that import when an import changes.

mod on_change;
