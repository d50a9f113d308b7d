//! What authors of components test them with: [`cases`] against their answers, and [`conformance`] of any deployer, both in the
//! sandbox, against a [`fake_cluster`]; and the [`project`] that they begin with.

pub mod cases;
pub mod conformance;
pub mod fake_cluster;
pub mod loaded;
pub mod project;
