//! Panics with words that try to move a terminal's cursor.

use orangery_guests::{Fault, Item, Proposal};

fn plan(of: Item) -> Result<Proposal, Fault> {
    panic!("no plan for {}\u{1b}[2J", of.name)
}

orangery_guests::guest!(plan);
