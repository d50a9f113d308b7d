//! Component versions where they are kept: registries, archives, folders, and a cache on disk.

pub mod oci;
