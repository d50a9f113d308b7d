//! How trees are deleted, and what holds them.

mod garbage_collection;
mod guards;
mod orphaned_items;
mod removed_clusters;
mod removed_sources;
mod unreadable_kinds;
