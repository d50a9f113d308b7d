//! Logs one line of a mebibyte.

use orangery_guests::{Fault, Item, Proposal, log, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    log::log(log::Level::Info, &"a".repeat(1 << 20), &[]);
    Ok(writing(vec![]))
}

orangery_guests::guest!(plan);
