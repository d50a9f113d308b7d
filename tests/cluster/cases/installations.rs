//! The jobs of Installations, asked for or started by themselves.

mod automatic_reconcile;
mod followed;
mod jobs;
mod long_names;
mod renamed;
