//! Asks for a cluster's version without end.

use orangery_guests::{ClusterRef, Fault, Item, Proposal, cluster};

fn plan(_: Item) -> Result<Proposal, Fault> {
    loop {
        cluster::version(&ClusterRef::Target)?;
    }
}

orangery_guests::guest!(plan);
