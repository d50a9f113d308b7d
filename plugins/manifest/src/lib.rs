//! The manifest deployer (`landscaper.md` §8.1, §8.3, §9).
use orangery_sdk::{Completion, Deployer, Fault, Gate, Host, Item, ObjectWrite, Proposal, Stage};
/// The component.
pub struct Manifest;
impl Deployer for Manifest {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        let config = item.config()?;
        let objects = config.get("manifests").and_then(|m| m.as_array()).cloned().unwrap_or_default();
        let writes = objects.iter().filter_map(|m| m.get("manifest")).map(ObjectWrite::apply).collect();
        Ok(Proposal::finish(vec![Stage::new("manifests", writes, Gate::Accepted)], Completion::default()))
    }
}
orangery_sdk::export_deployer!(Manifest);
