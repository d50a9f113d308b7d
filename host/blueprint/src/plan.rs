//! Deciding about what blueprints say: gate expressions that were asked, imports that are missing. Pure.

pub mod gate;
pub mod import;
