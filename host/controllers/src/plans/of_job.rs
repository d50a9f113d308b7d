//! What a job has written by its Plans, where rules are over whole jobs and another process has begun it (C-362).

use kube::{Api, ResourceExt as _, api::ListParams};
use orangery_api::plan::{PLANNED_JOB, Plan};
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    name::{JobId, Namespace},
    step::{Halt, Step},
};
use orangery_reconcile::Key;

use crate::{
    controller_context::ControllerContext,
    job_writes::{JobObject, TreeJob},
    object::message_of,
    object_access::get,
};

/// Plans listed at once.
const PAGE: u32 = 500;

/// The most Plans of a job that are looked at: others than this operator's are among them (C-362).
const MOST_PLANS_OF_A_TREE: usize = 40_000;

/// The letters of the label.
const LABEL_LETTERS: usize = 32;

/// The label of Plans of a job: an id that others have written may be no label.
pub(super) fn label_of(job: &JobId) -> String {
    sha256(job.as_str().as_bytes()).chars().rev().take(LABEL_LETTERS).collect()
}

/// Reads once what the Plans of a job say that its items have begun to write: whatever their status says, which others may write.
///
/// # Errors
/// The server does not answer, or there are too many.
pub(crate) async fn read_job(host: &ControllerContext, job: &TreeJob) -> Step<()> {
    let read = host.job_writes.read(job);
    read.get_or_try_init(|| read_plans(host, job)).await.map(drop)
}

async fn read_plans(host: &ControllerContext, job: &TreeJob) -> Step<()> {
    let (namespace, id) = job;
    for name in listed(host, job, MOST_PLANS_OF_A_TREE).await? {
        let Some(plan) = get::<Plan>(&host.client, namespace, &name.into()).await? else { continue };
        if plan.spec.job_id != *id || !host.key.seals().knows(&plan.spec) {
            continue;
        }
        let Ok(planned) = plan.spec.planned() else { continue };
        let item = Key::new(namespace, plan.spec.item.name.clone());
        host.job_writes.note_begun(job, &item, planned.objects.iter().map(JobObject::of));
    }
    Ok(())
}

/// The names of all Plans with the label of a job.
async fn listed(host: &ControllerContext, (namespace, id): &(Namespace, JobId), most: usize) -> Step<Vec<String>> {
    let api: Api<Plan> = Api::namespaced(host.client.clone(), namespace);
    let mut page = ListParams::default().labels(&format!("{PLANNED_JOB}={}", label_of(id))).limit(PAGE);
    let mut names = Vec::new();
    loop {
        let listed = api.list_metadata(&page).await.map_err(|error| {
            let message = format!("Plans of job {id} could not be listed: {}", message_of(&error));
            Halt::Retry(Failure::new("CheckPlan", "PlansNotListed", message))
        })?;
        names.extend(listed.items.iter().map(|plan| plan.name_any()));
        if names.len() > most {
            let message = format!(
                "rules are over whole jobs, and there are more than {most} Plans with the label {PLANNED_JOB} of job {id}, of which this \
                 operator has made some: delete the others, and reconcile again"
            );
            let failure = Failure::new("CheckPlan", "TooManyPlans", message).with_code(Code::LimitExceeded);
            return Err(Halt::Stall(failure));
        }
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::{CustomResourceExt as _, api::PostParams};
    use orangery_api::plan::{PlanContent, PlanItem, PlannedWrites, StoredPlan};
    use serde_json::json;

    use super::*;
    use crate::{
        controller_context::tests::{host_on, server},
        plans::{ItemPlans, PlanTurn},
    };

    fn content(item: &str, deleted: &str) -> PlanContent {
        let object = json!({"action": "delete", "apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": deleted,
            "stage": "", "ephemeral": false});
        let objects = vec![serde_json::from_value(object).unwrap()];
        let StoredPlan { content, plan_hash } = PlannedWrites { objects, ..PlannedWrites::default() }.stored().unwrap();
        let item = PlanItem { name: item.to_owned(), uid: item.to_owned() };
        PlanContent { item, job_id: "j".into(), number: 1, content, plan_hash, ..PlanContent::default() }
    }

    #[tokio::test]
    async fn c_362_what_another_process_has_planned_in_a_job_counts_whatever_its_status_says() {
        let (_server, client) = server(&[Plan::crd()]).await;
        let host = host_on(client.clone());
        for (name, deleted) in [("a", "x"), ("b", "y")] {
            let metadata = json!({"namespace": "default", "name": name, "uid": name});
            let item = serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}})).unwrap();
            let plans = ItemPlans { host: &host, item: &item, job: &"j".into() };
            let plan = plans.make(1, content(name, deleted), PlanTurn::Now).await.unwrap();
            plans.tell(&plan, "Stale", ("Changed", "somebody says so")).await;
        }
        let api: Api<Plan> = Api::namespaced(client, "default");
        let mut others = Plan::new("others", content("c", "z"));
        others.metadata.labels = Some([(PLANNED_JOB.to_owned(), label_of(&"j".into()))].into());
        api.create(&PostParams::default(), &others).await.unwrap();
        let job: TreeJob = ("default".into(), "j".into());
        read_job(&host, &job).await.unwrap();
        let known = || {
            let (items, _) = host.job_writes.items(&job, |key| key.name.to_string());
            let of = |item: crate::job_writes::JobItem| {
                (item.name, item.objects.into_iter().map(|object| object.key.name.to_string()).collect::<Vec<_>>())
            };
            items.into_iter().map(of).collect::<Vec<_>>()
        };
        let expected = [("a", "x"), ("b", "y")].map(|(item, object)| (item.to_owned(), vec![object.to_owned()]));
        assert_eq!(known(), expected);
        api.delete_collection(&Default::default(), &ListParams::default()).await.unwrap();
        read_job(&host, &job).await.unwrap();
        assert_eq!(known(), expected, "it is read once");
        host.job_writes.note(&job, &Key::new("default", "a"), None);
        assert_eq!(known(), expected);
    }

    #[tokio::test]
    async fn c_362_limits_plans_of_a_tree_that_are_looked_at_have_a_number() {
        let (_server, client) = server(&[Plan::crd()]).await;
        let host = host_on(client.clone());
        let api: Api<Plan> = Api::namespaced(client, "default");
        for number in 0..3 {
            let mut plan = Plan::new(&format!("p{number}"), content("c", "z"));
            plan.metadata.labels = Some([(PLANNED_JOB.to_owned(), label_of(&"j".into()))].into());
            api.create(&PostParams::default(), &plan).await.unwrap();
        }
        assert_eq!(MOST_PLANS_OF_A_TREE, 40_000);
        let job = ("default".into(), "j".into());
        assert_eq!(listed(&host, &job, 3).await.unwrap().len(), 3);
        let Err(Halt::Stall(failure)) = listed(&host, &job, 2).await else { panic!("there are more") };
        assert!(failure.message.contains("there are more than 2 Plans with the label orangery.dev/job of job j"));
    }
}
