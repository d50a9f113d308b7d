//! The commands as users call them.

mod blueprint_server_tests;
mod blueprint_tests;
mod blueprints;
mod building;
mod embedded_components;
mod examples;
mod explained_charts;
mod explanations;
mod installation_plans;
pub(super) mod offline;
mod offline_components;
mod offline_examples;
mod plans;
mod plugins;
mod recordings;
mod release_tests;
mod render_parity;
mod stock_charts;
mod tenants;
mod usage;
