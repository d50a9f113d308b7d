//! That answers follow from their requests, and nothing else.

use orangery_proposal::{
    Item, Next,
    check::{Bounds, check},
    inventory::LocatedObject,
    recorded::{RecordedAnswer, differences},
};
use serde_json::{Value, json};

use super::session::{ConformanceSession, Shortfall, managed};

/// As many differences are shown.
const MOST_DIFFERENCES: usize = 3;

pub(super) async fn same_answer(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    session.proposal().await?;
    let mut answers: Vec<Value> = Vec::new();
    for _ in 0..3 {
        answers.push(json!(RecordedAnswer::from(session.answer(&session.item, None).await?)));
    }
    let (first, others) = answers.split_first().expect("there are three");
    match others.iter().find(|other| *other != first) {
        Some(other) => {
            let places = differences(first, other, MOST_DIFFERENCES).join("; ");
            Err(Shortfall::Failed(format!("the same request was answered in two ways: {places}")))
        }
        None => Ok(()),
    }
}

pub(super) async fn within_grants(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    for proposal in session.job(&session.item, &session.cluster()).await? {
        check(&proposal, session.deployer.grants(), Bounds::default())
            .map_err(|fault| format!("the host would refuse the proposal: {fault}"))?;
    }
    Ok(())
}

/// The item in its next job, with the status that the last one left.
fn next_job(item: &Item, status: Option<Value>) -> Item {
    Item { job: "0a3ac1a2-5d1f-4a7e-9d6b-2d1f0f1f7a10".into(), status, ..item.clone() }
}

pub(super) async fn idempotent(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let cluster = session.cluster();
    let first = session.job(&session.item, &cluster).await?;
    let status = first.iter().rev().find_map(|proposal| proposal.status.clone());
    if first.last().is_none_or(|last| !matches!(last.next, Next::Finish(_))) {
        return Err(Shortfall::NotApplicable("the job of this sample does not succeed".to_owned()));
    }
    let before = cluster.copy();
    let second = session.job(&next_job(&session.item, status), &cluster).await?;
    let (made, again) = (managed(&first), managed(&second));
    if let Some(gone) = made.iter().find(|located| !again.contains(located)) {
        let why = format!("a second job plans {} no more, so the host would prune it", gone.key);
        return Err(Shortfall::Failed(why));
    }
    for located in &made {
        let content = |of: &[Value]| of.iter().find(|object| is(object, located)).cloned().unwrap_or_default();
        let places = differences(&content(&before.objects()), &content(&cluster.objects()), MOST_DIFFERENCES);
        if !places.is_empty() {
            let why = format!("a second job changes {}: {}", located.key, places.join("; "));
            return Err(Shortfall::Failed(why));
        }
    }
    Ok(())
}

fn is(object: &Value, located: &LocatedObject) -> bool {
    orangery_proposal::check::key_of(object).is_ok_and(|key| key == located.key)
}

pub(super) async fn another_time(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let first = session.proposal().await?;
    let now = "2031-07-08T09:10:11Z".to_owned();
    let later = Item { now, seed: 18_446_744_073_709_551_557, ..next_job(&session.item, None) };
    let second = session
        .answer(&later, None)
        .await?
        .map_err(|fault| format!("at another time the sample is refused: {fault}"))?;
    let (one, other) = (managed([&first]), managed([&second]));
    let only =
        one.iter().find(|located| !other.contains(located)).or(other.iter().find(|located| !one.contains(located)));
    match only {
        Some(located) => Err(Shortfall::Failed(format!(
            "which objects the item has depends on time, randomness or job: {} is not there both times",
            located.key
        ))),
        None => Ok(()),
    }
}
