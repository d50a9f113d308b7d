//! Answers an object of a mebibyte.

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    Ok(writing(vec![format!("\"{}\"", "a".repeat(1 << 20))]))
}

orangery_guests::guest!(plan);
