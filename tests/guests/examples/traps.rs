//! Executes `unreachable`, without a word.

use orangery_guests::{Fault, Item, Proposal};

fn plan(_: Item) -> Result<Proposal, Fault> {
    core::arch::wasm32::unreachable()
}

orangery_guests::guest!(plan);
