//! The order in which the items of an Execution run, and what one that fails does to the others.

mod jobs;
mod nulls;
mod order;
mod policies;
