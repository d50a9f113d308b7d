//! Writes to its standard output without end.

use orangery_guests::{Fault, Item, Proposal};

fn plan(_: Item) -> Result<Proposal, Fault> {
    loop {
        println!("again");
    }
}

orangery_guests::guest!(plan);
