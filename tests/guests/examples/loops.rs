//! Never ends.

use std::hint::black_box;

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    while black_box(true) {}
    Ok(writing(vec![]))
}

orangery_guests::guest!(plan);
