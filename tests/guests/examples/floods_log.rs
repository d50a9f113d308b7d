//! Logs without end.

use orangery_guests::{Fault, Item, Proposal, log};

fn plan(_: Item) -> Result<Proposal, Fault> {
    loop {
        log::log(log::Level::Trace, "again", &[]);
    }
}

orangery_guests::guest!(plan);
