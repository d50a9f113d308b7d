//! Rules over whole jobs (C-362): before an item writes anything it is known what all items of its Execution are about to write, as far as
//! anybody can tell, and rules hold of that and of what other items of the job have begun to write.

use std::collections::BTreeSet;

use orangery_api::{deploy_item::DeployItem, label, marks::Marks as _};
use orangery_core::step::{Halt, Step, Until, Wait, Waiting};
use orangery_reconcile::Key;

use super::super::{
    gather::{GatheredItem, ItemReconciliation},
    plan_ahead::others_in_job,
};
use crate::{job_writes::JobObject, plan_rules::broken_job_rules, plans::read_job};

impl GatheredItem {
    /// What another process knew of the job is read, where rules are over it.
    pub(in crate::deploy_item) async fn read_job(&self) -> Step<()> {
        if self.has_job_rules() { read_job(&self.host, &self.tree_job()).await } else { Ok(()) }
    }
}

impl ItemReconciliation {
    /// Whether rules over the whole job allow the item to write these.
    ///
    /// # Errors
    /// A rule denies it; or it waits until it is known what other items are about to write.
    pub(super) async fn check_job_rules(&self, objects: BTreeSet<JobObject>) -> Step<()> {
        let GatheredItem { host, key, item, job, .. } = &self.gathered;
        if !self.gathered.has_job_rules() {
            return Ok(());
        }
        let (tree, writes_nothing) = (self.gathered.tree_job(), objects.is_empty());
        host.job_writes.note(&tree, key, Some(objects));
        if writes_nothing {
            return Ok(());
        }
        let execution = Key { name: item.label(label::MANAGED_BY).unwrap_or_default().into(), ..key.clone() };
        let others = others_in_job(host, item, &job.id).into_iter();
        let awaited = host.job_writes.wait_for(&tree, (&execution, key), others);
        if let Some(wait) = wait_for_plans(&awaited) {
            // Some may not know yet that they are waited for.
            host.job_writes.call(awaited);
            return Err(Halt::Wait(wait));
        }
        let rules = self.gathered.job_rules_digest();
        if !host.job_writes.has_passed(&tree, &rules) {
            let (items, version) =
                host.job_writes.items(&tree, |key| name_of(host.stores.deploy_items.get(key).as_deref(), key));
            let broken = broken_job_rules(host, &key.namespace, &self.gathered.root(), &items).await?;
            self.refuse_broken(broken)?;
            host.job_writes.pass(&tree, rules, version);
        }
        host.job_writes.begin(&tree, key);
        Ok(())
    }
}

fn wait_for_plans(items: &BTreeSet<Key>) -> Option<Wait> {
    let plan = |item: &Key| {
        Waiting::beside("DeployItem", item.name.as_str(), Until::Planned)
            .because("rules are over all that the job writes")
    };
    Wait::each(items.iter().map(plan))
}

/// The name of an item in its blueprint, else that of its object.
fn name_of(item: Option<&DeployItem>, key: &Key) -> String {
    let name = item.and_then(|item| item.item_name());
    name.map_or_else(|| key.name.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_362_an_item_says_that_it_waits_for_the_plans_of_others() {
        assert_eq!(wait_for_plans(&BTreeSet::new()), None);
        let wait = wait_for_plans(&["a", "b"].map(|name| Key::new("n", name)).into()).unwrap();
        let told = "waiting for DeployItem a (rules are over all that the job writes) to be planned, DeployItem b (rules are over all that \
                    the job writes) to be planned";
        assert_eq!((wait.to_string().as_str(), wait.awaits_approval()), (told, false));
    }

    #[test]
    fn c_362_rules_over_jobs_know_items_by_the_names_of_their_blueprint() {
        let key = Key::new("n", "web-x7k2");
        assert_eq!(name_of(None, &key), "web-x7k2");
        let item = |labels| {
            let metadata = json!({"name": "web-x7k2", "labels": labels});
            serde_json::from_value::<DeployItem>(json!({"metadata": metadata, "spec": {"type": "t"}})).unwrap()
        };
        assert_eq!(name_of(Some(&item(json!({(label::ITEM_NAME): "web"}))), &key), "web");
        assert_eq!(name_of(Some(&item(json!({}))), &key), "web-x7k2");
    }
}
