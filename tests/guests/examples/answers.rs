//! Behaves: one ConfigMap of the item's name, and in the status what the sandbox shows of time and chance.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{SystemTime, UNIX_EPOCH},
};

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(of: Item) -> Result<Proposal, Fault> {
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"{}"}}}}"#,
        of.name, of.namespace
    );
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let rng = RandomState::new().hash_one(0);
    let variables = std::env::vars().count();
    let status = format!(r#"{{"time":{time},"chance":{rng},"variables":{variables}}}"#);
    Ok(Proposal { status: Some(status), ..writing(vec![object]) })
}

orangery_guests::guest!(plan);
