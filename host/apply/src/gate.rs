//! Gates: evaluated by what writes have answered, and otherwise by watches. Whatever does not hold is a wait.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use orangery_core::{
    error::{Code, Failure},
    jsonpath::StepBudget,
    listing,
    name::ObjectName,
    step::{Halt, Until, Waiting},
};
use orangery_proposal::{
    ClusterRef, Gate, ObjectKey, Readiness, ReadinessRule, ReadinessScope, Selection, Stage,
    check::key_of,
    health::{Demand, ReadyExpression, Unready, WorkloadState, has_rule, run, usual},
    inventory::{Inventory, LocatedObject},
};
use orangery_turns::off_the_executor;
use serde_json::Value;

use crate::{
    apply_error::{ApplyError, all},
    job_objects::{JobObjects, SeenObject, or_before},
};

impl JobObjects<'_> {
    /// Whether a stage that began to wait at `since` is through.
    pub(crate) async fn gate(&self, stage: &Stage, inventory: &Inventory, since: Timestamp) -> Result<(), ApplyError> {
        match &stage.gate {
            // Removals are waited for before anything is written.
            Gate::Accepted | Gate::Gone => Ok(()),
            Gate::Completed(keys) => {
                let mut results = Vec::new();
                for key in keys {
                    results.push(self.completed(key, inventory, since).await);
                }
                all(results).map(drop)
            }
            Gate::Ready(checks) => {
                for check in checks {
                    let held = self.ready(check, stage, inventory, since).await;
                    let now = self.job.clock.now();
                    held.map_err(|error| within(error, check.timeout, since, now, &format!("check {}", check.name)))?;
                }
                Ok(())
            }
        }
    }

    async fn completed(&self, key: &ObjectKey, inventory: &Inventory, since: Timestamp) -> Result<(), ApplyError> {
        let located = LocatedObject { on: ClusterRef::Target, key: key.clone() };
        let handle = self.handle(&located).await?;
        let waits = |until: Until| ApplyError::from(Halt::from(key.waiting(until)));
        // What was written exists, whether or not the watch has seen it.
        let written = self.written_uid(&located, inventory);
        let before = || waits(if written.is_some() { Until::Finished } else { Until::Exists });
        let vanished = || match &written {
            Some(_) => ApplyError::vanished_before_its_end(key),
            None => waits(Until::Exists),
        };
        let (last, is_there) = match or_before(self.seen(&handle), before)? {
            SeenObject::There(object) => (object, true),
            SeenObject::Gone(last) if is_of(&last, written.as_deref()) => (last, false),
            SeenObject::Gone(_) | SeenObject::Absent => return Err(vanished()),
        };
        match run(&last) {
            WorkloadState::Unfinished if is_there => {
                let waiting = key.waiting(Until::Finished);
                Err(self.waits_for_pods((&ClusterRef::Target, &last), waiting, since).await)
            }
            WorkloadState::Unfinished => Err(vanished()),
            WorkloadState::Succeeded => Ok(()),
            WorkloadState::Failed(why) => Err(ApplyError {
                halt: Halt::Stall(Failure::new("Wait", "RunFailed", format!("{key} has failed: {why}"))),
                key: Some(Box::new(key.clone())),
            }),
        }
    }

    async fn ready(
        &self,
        check: &Readiness,
        stage: &Stage,
        inventory: &Inventory,
        since: Timestamp,
    ) -> Result<(), ApplyError> {
        let rule = ParsedRule::read(&check.rule)?;
        let keys: Vec<ObjectKey> = match &check.scope {
            ReadinessScope::Matching(selection) => return self.matching((check, &rule), selection).await,
            ReadinessScope::Keys(keys) => keys.clone(),
            ReadinessScope::Stage => {
                let of_cluster = stage.writes.iter().filter(|write| write.on == check.on);
                let keys: BTreeSet<ObjectKey> = of_cluster.filter_map(|write| key_of(&write.object).ok()).collect();
                let ours = |key: &ObjectKey| {
                    inventory.0.contains_key(&LocatedObject { on: check.on.clone(), key: key.clone() })
                };
                // Foreign objects are none of ours to wait for; others without a rule exist, as they were accepted.
                let classified =
                    |key: &ObjectKey| check.rule != ReadinessRule::Usual || has_rule(key.group(), &key.kind);
                keys.into_iter().filter(|key| ours(key) && classified(key)).collect()
            }
        };
        let mut results = Vec::new();
        for key in keys {
            results.push(self.object_ready((check, &rule), key, inventory, since).await);
        }
        all(results).map(drop)
    }

    async fn object_ready(
        &self,
        (check, rule): (&Readiness, &ParsedRule<'_>),
        key: ObjectKey,
        inventory: &Inventory,
        since: Timestamp,
    ) -> Result<(), ApplyError> {
        let located = LocatedObject { on: check.on.clone(), key };
        let answer = self.answer(&located);
        let before = match answer {
            Some(answer) => rule.classify(answer, &self.steps),
            None => Err(Unready("not seen yet".to_owned())),
        };
        let Err(before) = before else { return Ok(()) };
        let handle = self.handle(&located).await?;
        let written = self.written_uid(&located, inventory);
        match or_before(self.seen(&handle), || unmet(&located.key, &before))? {
            SeenObject::There(object) => {
                self.has_read(&located, &object);
                // What was looked at in this version is not looked at again: that would take as many steps (C-297).
                let is_answer = answer.is_some_and(|answer| is_same_version(answer, &object));
                let held = if is_answer { Err(before) } else { rule.classify(&object, &self.steps) };
                let Err(unready) = held else { return Ok(()) };
                let waiting = located.key.waiting(Until::Ready).because(unready.to_string());
                let error = self.waits_for_pods((&located.on, &object), waiting, since).await;
                Err(ApplyError { key: Some(Box::new(located.key)), ..error })
            }
            // What has run to its end may go; of anything else nothing is left that could be ready.
            SeenObject::Gone(last) if is_of(&last, written.as_deref()) && run(&last) == WorkloadState::Succeeded => {
                rule.classify(&last, &self.steps).map_err(|_| self.missing(&located, inventory))
            }
            SeenObject::Gone(_) | SeenObject::Absent => Err(self.missing(&located, inventory)),
        }
    }

    async fn matching(
        &self,
        (check, rule): (&Readiness, &ParsedRule<'_>),
        selection: &Selection,
    ) -> Result<(), ApplyError> {
        let (cluster, resource) = self.resource(&check.on, &selection.api_version, &selection.kind).await?;
        let objects = self.job.clusters.watch_all(&cluster, &resource, selection)?;
        let picked = pick(&objects, selection);
        if picked.is_empty() {
            let namespace = selection.namespace.clone();
            let wait = Waiting::selected(&selection.kind, namespace, described(selection), Until::Exists);
            return Err(Halt::from(wait).into());
        }
        all(picked.into_iter().map(|object| {
            let key = key_of(object).unwrap_or_else(|_| ObjectKey {
                api_version: selection.api_version.clone(),
                kind: selection.kind.clone(),
                namespace: None,
                name: ObjectName::default(),
            });
            self.has_read(&LocatedObject { on: check.on.clone(), key: key.clone() }, object);
            rule.classify(object, &self.steps).map_err(|unready| unmet(&key, &unready))
        }))
        .map(drop)
    }
}

/// Whether two are the same version of an object.
fn is_same_version(one: &Value, other: &Value) -> bool {
    let version =
        |object: &Value| object.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
    version(one).is_some_and(|one| version(other) == Some(one))
}

/// Whether an object is the one that was written; of what nobody here has written, any.
fn is_of(object: &Value, written: Option<&str>) -> bool {
    written.is_none_or(|uid| object.pointer("/metadata/uid").and_then(Value::as_str) == Some(uid))
}

fn pick<'a>(objects: &'a [Arc<Value>], selection: &Selection) -> Vec<&'a Value> {
    let names: BTreeSet<&str> = selection.names.iter().map(ObjectName::as_str).collect();
    let named = |object: &&Value| {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        names.is_empty() || names.contains(name)
    };
    objects.iter().map(AsRef::as_ref).filter(named).collect()
}

fn described(selection: &Selection) -> String {
    match (selection.names.as_slice(), &selection.labels) {
        ([], Some(labels)) => format!("with the labels {labels}"),
        ([], None) => "(any)".to_owned(),
        (names, _) => listing::joined(names),
    }
}

fn unmet(key: &ObjectKey, unready: &Unready) -> ApplyError {
    let halt = Halt::from(key.waiting(Until::Ready).because(unready.to_string()));
    ApplyError { halt, key: Some(Box::new(key.clone())) }
}

/// A rule that was read, for all objects that it is for.
enum ParsedRule<'a> {
    Usual,
    Demands(Vec<Demand<'a>>),
    Expression(ReadyExpression),
}

impl<'a> ParsedRule<'a> {
    fn read(rule: &'a ReadinessRule) -> Result<Self, ApplyError> {
        match rule {
            ReadinessRule::Usual => Ok(Self::Usual),
            ReadinessRule::Requirements(requirements) => {
                let demands = requirements.iter().map(Demand::read).collect::<Result<_, _>>();
                demands.map(Self::Demands).map_err(|error| unusable(error.to_string()))
            }
            ReadinessRule::Expression(source) => ReadyExpression::read(source).map(Self::Expression).map_err(unusable),
        }
    }

    /// What others wrote is evaluated off the executor, within the steps that are left.
    fn classify(&self, object: &Value, steps: &StepBudget) -> Result<(), Unready> {
        match self {
            Self::Usual => usual(object),
            Self::Demands(demands) => {
                off_the_executor(|| demands.iter().try_for_each(|demand| demand.classify(object, steps)))
            }
            Self::Expression(expression) => off_the_executor(|| expression.classify(object, steps)),
        }
    }
}

fn unusable(message: String) -> ApplyError {
    Halt::Stall(Failure::new("Wait", "InvalidReadinessCheck", message).with_code(Code::ConfigurationProblem)).into()
}

/// An error that has lasted for longer than it may is a failure; else the item is looked at again in time.
pub(crate) fn within(
    error: ApplyError,
    timeout: Option<u64>,
    since: Timestamp,
    now: Timestamp,
    what: &str,
) -> ApplyError {
    let Some(limit) = timeout.map(Duration::from_millis) else { return error };
    let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let ApplyError { halt, key } = error;
    let halt = match (halt, limit.checked_sub(elapsed).filter(|left| !left.is_zero())) {
        (Halt::Wait(wait), Some(left)) => Halt::Wait(wait.within(left)),
        (Halt::Wait(wait), None) => Halt::Stall(overdue(what, limit, &wait.to_string())),
        (Halt::Retry(failure), None) => Halt::Stall(overdue(what, limit, &failure.message)),
        (halt @ Halt::Retry(_), Some(_)) | (halt @ Halt::Stall(_), _) => halt,
    };
    ApplyError { halt, key }
}

fn overdue(what: &str, limit: Duration, last: &str) -> Failure {
    let message = format!("{what} did not hold within {} s: {last}", limit.as_secs_f64());
    Failure::new("Wait", "ProgressingTimeout", message).with_code(Code::Timeout)
}

#[cfg(test)]
mod tests {
    use orangery_proposal::Requirement;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wait() -> ApplyError {
        Halt::wait("Job", "a/x", Until::Finished).into()
    }

    #[test]
    fn a_wait_is_called_again_when_its_time_is_up() {
        let Halt::Wait(wait) = within(wait(), Some(10_000), at(0), at(4), "stage s").halt else { panic!() };
        assert_eq!(wait.again_in(), Some(Duration::from_secs(6)));
    }

    #[test]
    fn waits_and_retries_that_last_too_long_are_failures() {
        let failed = |error| match within(error, Some(10_000), at(0), at(10), "stage s").halt {
            Halt::Stall(failure) => failure,
            other => panic!("{other:?}"),
        };
        let expected = |last: &str| {
            Failure::new("Wait", "ProgressingTimeout", format!("stage s did not hold within 10 s: {last}"))
                .with_code(Code::Timeout)
        };
        assert_eq!(failed(wait()), expected("waiting for Job a/x to finish"));
        assert_eq!(failed(Halt::Retry(Failure::new("o", "r", "boom")).into()), expected("boom"));
    }

    #[test]
    fn without_a_timeout_nothing_changes() {
        let Halt::Wait(wait) = within(wait(), None, at(0), at(99_999), "stage s").halt else { panic!() };
        assert_eq!(wait.again_in(), None);
    }

    #[test]
    fn what_has_failed_for_good_and_what_may_still_pass_keep_their_kind_in_time() {
        let failure = || Failure::new("o", "r", "boom");
        let stall = within(Halt::Stall(failure()).into(), Some(10_000), at(0), at(20), "stage s").halt;
        assert_eq!(stall, Halt::Stall(failure()));
        let retry = within(Halt::Retry(failure()).into(), Some(10_000), at(0), at(9), "stage s").halt;
        assert_eq!(retry, Halt::Retry(failure()));
    }

    #[test]
    fn c_08_a_clock_that_went_back_leaves_the_whole_time() {
        let Halt::Wait(wait) = within(wait(), Some(10_000), at(100), at(4), "stage s").halt else { panic!() };
        assert_eq!(wait.again_in(), Some(Duration::from_secs(10)));
    }

    #[test]
    fn the_object_that_is_waited_for_stays_to_blame_when_the_time_is_up() {
        let key = ObjectKey { api_version: "v1".into(), kind: "K".into(), namespace: None, name: "x".into() };
        let error = unmet(&key, &Unready("not yet".to_owned()));
        let overdue = within(error, Some(1), at(0), at(1), "check c");
        assert_eq!(overdue.key, Some(Box::new(key)));
        let message = "check c did not hold within 0.001 s: waiting for K x (not yet) to become ready";
        assert_eq!(overdue.halt.failure().map(|failure| failure.message.as_str()), Some(message));
    }

    fn object(name: &str) -> Arc<Value> {
        Arc::new(serde_json::json!({"metadata": {"name": name}}))
    }

    fn selection(names: &[&str], labels: Option<&str>) -> Selection {
        Selection {
            api_version: "v1".into(),
            kind: "K".into(),
            namespace: None,
            names: names.iter().map(|name| (*name).into()).collect(),
            labels: labels.map(str::to_owned),
            fields: None,
        }
    }

    #[test]
    fn a_selection_picks_its_names_or_all_and_says_what_it_looks_for() {
        let objects = [object("a"), object("b")];
        let picked = |names: &[&str]| {
            let selection = selection(names, None);
            pick(&objects, &selection).into_iter().map(|one| one["metadata"]["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!((picked(&[]), picked(&["b", "c"])), (vec!["a".into(), "b".into()], vec![Value::from("b")]));
        let report = [selection(&[], None), selection(&[], Some("app=x")), selection(&["a", "b"], Some("app=x"))];
        assert_eq!(report.map(|one| described(&one)), ["(any)", "with the labels app=x", "a, b"]);
    }

    #[test]
    fn c_297_limits_readiness_rules_share_the_steps_of_a_look_at_objects() {
        let values: Vec<u64> = (0..10_000).collect();
        let object = serde_json::json!({"kind": "K", "values": values});
        let requirement = |wanted: u64| Requirement {
            path: ".values[*]".into(),
            operator: if wanted == 0 { "exists" } else { "notin" }.into(),
            values: (0..wanted).map(|number| Value::from(20_000 + number)).collect(),
        };
        let classified = |rules: usize, wanted: u64| {
            let steps = StepBudget::default();
            let rule = ReadinessRule::Requirements(vec![requirement(wanted); rules]);
            let classified = ParsedRule::read(&rule).ok().map(|rule| rule.classify(&object, &steps));
            classified.map(|classified| classified.map_err(|unready| unready.to_string()))
        };
        let beyond = "it is not evaluated: together with those before it, it could take more than 30000000 steps over these objects; ask \
                      for less of them, or divide the item";
        assert_eq!(classified(2, 1_000), Some(Ok(())));
        assert_eq!(classified(3, 1_000), Some(Err(format!(".values[*]: {beyond}"))), "values that are compared count");
        assert_eq!(classified(400, 0), Some(Ok(())));
        assert_eq!(classified(2_000, 0), Some(Err(format!("the JSONPath \".values[*]\": {beyond}"))), "paths count");
        let expressions = ReadinessRule::Expression("object.kind == 'K'".into());
        let (steps, rule) = (StepBudget::default(), ParsedRule::read(&expressions).ok().unwrap());
        let first_refused = (0..100_000).find_map(|_| rule.classify(&object, &steps).err());
        assert_eq!(first_refused, Some(Unready(format!("its expression: {beyond}"))));
    }

    #[test]
    fn c_297_a_version_of_an_object_is_told_from_another_and_one_without_is_none() {
        let of = |version: serde_json::Value| serde_json::json!({"metadata": {"resourceVersion": version}});
        let (one, other) = (of("1".into()), of("2".into()));
        assert!(is_same_version(&one, &one) && !is_same_version(&one, &other));
        assert!(!is_same_version(&of(Value::Null), &of(Value::Null)) && !is_same_version(&one, &of(Value::Null)));
    }

    #[test]
    fn a_rule_holds_does_not_hold_or_cannot_be_used() {
        let requirement = |path: &str, operator: &str| Requirement {
            path: path.into(),
            operator: operator.into(),
            values: vec!["ready".into()],
        };
        let object = serde_json::json!({"kind": "K", "state": "ready", "other": "x"});
        let steps = StepBudget::default();
        let result = |rule: &ReadinessRule| match ParsedRule::read(rule).map(|rule| rule.classify(&object, &steps)) {
            Ok(Ok(())) => "holds".to_owned(),
            Ok(Err(unready)) => unready.to_string(),
            Err(error) => error.halt.failure().map(|failure| failure.reason.clone()).unwrap(),
        };
        let all = |requirements: &[Requirement]| result(&ReadinessRule::Requirements(requirements.to_vec()));
        assert_eq!(result(&ReadinessRule::Usual), "holds", "a kind without a rule exists");
        assert_eq!(all(&[requirement(".state", "==")]), "holds");
        let unmet = ".other == \"ready\" does not hold";
        assert_eq!(all(&[requirement(".state", "=="), requirement(".other", "==")]), unmet);
        assert_eq!(all(&[requirement(".state", "like")]), "InvalidReadinessCheck");
        assert_eq!(result(&ReadinessRule::Expression("object.state == 'ready'".into())), "holds");
        let unmet = result(&ReadinessRule::Expression("object.other == 'ready'".into()));
        assert_eq!(unmet, "its expression does not hold");
        assert_eq!(result(&ReadinessRule::Expression("1 +".into())), "InvalidReadinessCheck");
    }
}
