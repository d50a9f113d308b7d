//! Takes all the memory that it gets.

use std::hint::black_box;

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    let mut all = Vec::new();
    while black_box(true) {
        all.push(vec![1_u8; 1 << 20]);
    }
    Ok(writing(vec![format!("{}", all.len())]))
}

orangery_guests::guest!(plan);
