//! Rules of policies over whole jobs, held against a plan (C-362).

use std::collections::BTreeMap;

use orangery_cli::command::plan::{InstallationPlan, ItemPlan, TreePlan};
use orangery_controllers::{JobItem, JobObject, broken_job_rules};
use orangery_core::name::ObjectName;

use super::tree::TreePlanning;
use crate::caller::refusal;

impl TreePlanning {
    /// The plan of Installations, with what rules over each of their jobs say.
    pub(super) async fn with_job_rules(
        &self,
        name: ObjectName,
        installations: Vec<InstallationPlan>,
        mut notes: Vec<String>,
    ) -> TreePlan {
        let (mut failures, masker) = (Vec::new(), self.host.secrets.masker(&self.namespace));
        for (root, items) in jobs(&installations) {
            match broken_job_rules(&self.host, &self.namespace, root, &items).await {
                Ok(broken) => {
                    let (denies, warns): (Vec<_>, Vec<_>) = broken.into_iter().partition(|rule| rule.denies);
                    failures.extend(denies.into_iter().map(|rule| rule.message));
                    notes.extend(warns.into_iter().map(|rule| rule.message));
                }
                Err(halt) => notes.push(masker.mask(&refusal(&halt)).into_owned()),
            }
        }
        TreePlan::new((self.namespace.clone(), name), installations).with_notes(notes).with_failures(failures)
    }
}

/// What each job writes, by the Installation at its root.
fn jobs(installations: &[InstallationPlan]) -> BTreeMap<&str, Vec<JobItem>> {
    let mut jobs: BTreeMap<&str, Vec<JobItem>> = BTreeMap::new();
    for installation in installations {
        let root = installation.path.split('/').next().unwrap_or_default();
        jobs.entry(root).or_default().extend(installation.items.iter().map(item));
    }
    jobs
}

fn item(plan: &ItemPlan) -> JobItem {
    let written = plan.objects.iter().filter(|object| object.action.writes());
    JobItem { name: plan.name.clone(), objects: written.map(JobObject::of).collect() }
}

#[cfg(test)]
mod tests {
    use orangery_cli::command::plan::ObjectAction;
    use orangery_proposal::{Action, ClusterRef, ObjectKey, PlannedObject};

    use super::*;

    #[test]
    fn c_362_the_items_of_a_job_are_those_of_all_that_is_below_its_root() {
        let object = |action: Action| {
            let key = ObjectKey {
                api_version: "v1".into(),
                kind: "Secret".into(),
                namespace: Some("n".into()),
                name: "s".into(),
            };
            PlannedObject::new(action, &ClusterRef::Target, &key, None, None)
        };
        let item = |name: &str, objects: Vec<PlannedObject>| ItemPlan {
            name: name.to_owned(),
            type_: "t".to_owned(),
            action: ObjectAction::Run,
            depends_on: Vec::new(),
            plugin: None,
            objects,
            notes: Vec::new(),
            unfinished: false,
            failure: None,
            decided_later: None,
        };
        let installation = |path: &str, items: Vec<ItemPlan>| InstallationPlan {
            path: path.to_owned(),
            action: ObjectAction::Run,
            decided_later: None,
            known_after_apply: false,
            items,
            warnings: Vec::new(),
        };
        let plans = [
            installation("web", vec![item("a", vec![object(Action::Delete), object(Action::None)])]),
            installation("other", vec![item("b", Vec::new())]),
            installation("web/db", vec![item("c", Vec::new())]),
        ];
        let named = |items: &[JobItem]| items.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
        let jobs = jobs(&plans);
        let expected = [("other", vec!["b".to_owned()]), ("web", vec!["a".to_owned(), "c".to_owned()])];
        assert_eq!(jobs.iter().map(|(root, items)| (*root, named(items))).collect::<Vec<_>>(), expected);
        assert_eq!(
            jobs["web"][0].objects,
            [JobObject::of(&object(Action::Delete))].into(),
            "what stays is not written"
        );
    }
}
