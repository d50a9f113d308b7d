//! The manifest deployer.
