//! The mock deployer.
