//! Sleeps for an hour.

use std::{thread, time::Duration};

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    thread::sleep(Duration::from_secs(3600));
    Ok(writing(vec![]))
}

orangery_guests::guest!(plan);
