//! Answers an object that is not JSON.

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    Ok(writing(vec!["kind: ConfigMap".into()]))
}

orangery_guests::guest!(plan);
