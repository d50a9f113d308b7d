//! Drift: how far the live objects are from a proposal, without writing anything.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use orangery_core::step::Step;
use orangery_proposal::{
    ObjectWrite, Proposal, Write,
    inventory::Located,
    item::writes,
    overlay::{self, Drift},
};

use crate::{Job, error::Setback, run::AT_ONCE, site::Site};

/// How one object is not as its proposal wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drifted {
    /// It does not exist.
    Missing,
    /// Fields of it are not as they were written. Names no values.
    Changed(Vec<Drift>),
}

/// The objects of a proposal that are not as it wants them; one read each. Objects that are created and never updated
/// drift only by being gone.
///
/// # Errors
/// Why a cluster cannot be read, already judged.
pub async fn drift(job: &Job<'_>, proposal: &Proposal) -> Step<BTreeMap<Located, Drifted>> {
    let site = Site::new(job, Some(proposal));
    let looks: Vec<_> = writes(proposal).map(|(located, write)| look(&site, located, write)).collect();
    let found: Result<Vec<_>, Setback> = stream::iter(looks).buffered(AT_ONCE).try_collect().await;
    let found = found.map_err(|setback| setback.halt)?;
    Ok(found.into_iter().filter_map(|(located, drifted)| Some((located, drifted?))).collect())
}

async fn look(site: &Site<'_>, located: Located, write: &ObjectWrite) -> Result<(Located, Option<Drifted>), Setback> {
    let live = site.spot(&located).await?.get().await?;
    let drifted = match live {
        None => Some(Drifted::Missing),
        Some(_) if matches!(write.how, Write::Create | Write::Fill) => None,
        Some(live) => {
            let fields = overlay::drift(&live, &write.object);
            (!fields.is_empty()).then_some(Drifted::Changed(fields))
        }
    };
    Ok((located, drifted))
}
