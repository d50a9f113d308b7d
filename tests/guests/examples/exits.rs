//! Ends its process, which it does not have.

use orangery_guests::{Fault, Item, Proposal};

fn plan(_: Item) -> Result<Proposal, Fault> {
    std::process::exit(7)
}

orangery_guests::guest!(plan);
