//! Builds guest components from build scripts.
