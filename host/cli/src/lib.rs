//! The commands of the binary, one file each.
