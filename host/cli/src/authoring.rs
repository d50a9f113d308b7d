//! What authors of components test them with: [`cases`] against their answers, and [`conformance`] of any deployer, both in the
//! sandbox, against a [`fake_cluster`]; the [`project`] that they begin with, and its [`build`]; and what calls of it cost, a [`bench`].

pub mod bench;
pub mod build;
pub mod cases;
pub mod conformance;
pub mod fake_cluster;
pub mod loaded;
pub mod project;
