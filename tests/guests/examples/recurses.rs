//! Calls itself without end.

use orangery_guests::{Fault, Item, Proposal, writing};

#[inline(never)]
fn deeper(depth: u64) -> u64 {
    if depth == u64::MAX { 0 } else { deeper(depth + 1).rotate_left((depth % 64) as u32) ^ depth }
}

fn plan(of: Item) -> Result<Proposal, Fault> {
    Ok(writing(vec![deeper(of.generation).to_string()]))
}

orangery_guests::guest!(plan);
