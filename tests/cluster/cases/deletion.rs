//! How trees are deleted, and what holds them.

mod guards;
mod removed_clusters;
