//! A component for tests that is never called.

use orangery_core::{error::Fault, port::BoxFuture};
use orangery_proposal::{
    Item, Proposal,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
};

/// It has an identity, and that is all.
pub(crate) struct SilentDeployer {
    identity: PluginIdentity,
    grants: Grants,
}

impl SilentDeployer {
    pub(crate) fn new(identity: PluginIdentity) -> Self {
        Self { identity, grants: Grants::default() }
    }
}

impl Deployer for SilentDeployer {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn ownership_labels(&self) -> &[String] {
        &[]
    }

    fn plan<'a>(&'a self, _: &'a Item, _: Reads) -> BoxFuture<'a, Result<Proposal, Fault>> {
        Box::pin(async { Err(Fault::denied("it is never called")) })
    }

    fn uninstall<'a>(&'a self, _: &'a Item, _: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>> {
        Box::pin(async { Ok(None) })
    }
}
