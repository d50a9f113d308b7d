//! Runs the scripts of `tests/scenarios/*.txt` over the pure core and compares what is printed with the `.out` beside
//! each. Adding a case is writing a text file; `UPDATE=1` writes the answers anew, to be read before they are committed.
//!
//! A script plays an Execution and its deploy items: `item NAME [after A B …]` declares one, `policy continue` and
//! `policy parallel N` say how they are run, `job ID` and `delete ID` trigger the Execution, `tick` lets it decide,
//! `finish NAME ok` or `finish NAME failed MESSAGE` is a deployer's answer, `gone NAME` an object that vanished. Lines that
//! begin with `#` are copied.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use orangery_core::{
    condition::observe,
    dag::Direction,
    error::Failure,
    job::JobIds,
    phase::{Phase, execution::Execution, item::Item},
    plan::execution::{self as plan, ItemState, ObjectState},
    step::{Step, Verdict},
    walk::{Rest, Transition, advance},
    workflow::{FailurePolicy, WorkflowPolicy},
};

struct Player {
    order: Vec<(String, Vec<String>)>,
    objects: BTreeMap<String, ObjectState>,
    job: String,
    phase: Option<Execution>,
    ended: bool,
    policy: WorkflowPolicy,
    out: String,
}

impl Player {
    fn play(script: &str) -> String {
        let mut player = Self {
            order: Vec::new(),
            objects: BTreeMap::new(),
            job: String::new(),
            phase: None,
            ended: true,
            policy: WorkflowPolicy::default(),
            out: String::new(),
        };
        for line in script.lines() {
            player.line(line);
        }
        player.out
    }

    fn say(&mut self, text: &str) {
        writeln!(self.out, "{text}").expect("a string takes every text");
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() || line.starts_with('#') {
            return self.say(line);
        }
        self.say(&format!("> {line}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["item", name, rest @ ..] => {
                let after = rest.iter().skip(1).map(|name| (*name).to_owned()).collect();
                self.order.push(((*name).to_owned(), after));
                let object = ObjectState { object_name: format!("e-{name}-1"), ..ObjectState::default() };
                self.objects.insert((*name).to_owned(), object);
            }
            ["policy", "continue"] => self.policy.failure = FailurePolicy::ContinueIndependent,
            ["policy", "parallel", most] => self.policy.max_parallel = most.parse().ok(),
            ["job", id] => self.trigger(id, Execution::Progressing),
            ["delete", id] => self.trigger(id, Execution::Deleting),
            ["tick"] => self.tick(),
            ["finish", name, "ok"] => self.finish(name, Item::Succeeded, None),
            ["finish", name, "failed", message @ ..] => {
                let phase = if self.deleting() { Item::DeleteFailed } else { Item::Failed };
                self.finish(name, phase, Some(message.join(" ")));
            }
            ["gone", name] => drop(self.objects.remove(*name).expect("an object of this name")),
            other => unreachable!("a script has no line {other:?}"),
        }
    }

    fn deleting(&self) -> bool {
        self.phase.is_some_and(Phase::is_deletion)
    }

    fn trigger(&mut self, job: &str, phase: Execution) {
        job.clone_into(&mut self.job);
        self.phase = Some(phase);
        self.ended = false;
    }

    fn finish(&mut self, name: &str, phase: Item, message: Option<String>) {
        let object = self.objects.get_mut(name).expect("an object of this name");
        assert_eq!(object.ids.job.as_deref(), Some(self.job.as_str()), "{name} was not triggered");
        object.ids.finished = object.ids.job.clone();
        object.phase = Some(phase);
        object.failure = message.map(|message| Failure::new("Deploy", "Failed", message));
    }

    fn tick(&mut self) {
        let Some(phase) = self.phase.filter(|_| !self.ended) else { return self.say("  nothing to do") };
        let direction = if self.deleting() { Direction::Backward } else { Direction::Forward };
        let present = |name: &String| direction == Direction::Forward || self.objects.contains_key(name);
        let order: Vec<_> = self.order.iter().filter(|(name, _)| present(name)).cloned().collect();
        let states: Vec<ItemState<'_>> = order
            .iter()
            .map(|(name, depends_on)| {
                let depends_on = depends_on.iter().map(String::as_str).collect();
                ItemState::new(name, depends_on, self.objects.get(name).cloned())
            })
            .collect();
        let classes = plan::classify(&states, &self.job, direction, self.policy);
        let classes: Vec<String> = classes.iter().map(|(name, class)| format!("{name} {class:?}")).collect();
        let plan = match direction {
            Direction::Forward => plan::progressing(&states, &self.job, self.policy),
            Direction::Backward => plan::deleting(&states, &self.job, self.policy),
        };
        self.say(format!("  classes: {}", classes.join(", ")).trim_end());
        for name in &plan.trigger {
            self.say(&format!("  trigger {name}"));
            let object = self.objects.get_mut(name).expect("a triggered object");
            object.ids = JobIds { job: Some(self.job.clone()), finished: object.ids.finished.clone() };
        }
        self.rest(phase, plan.outcome);
    }

    fn rest(&mut self, phase: Execution, outcome: Step<Verdict>) {
        let (mut at, mut transition) = (phase, advance(phase, outcome));
        while let Transition::Next(next) = transition {
            (at, transition) = (next, advance(next, Ok(Verdict::Done)));
        }
        let Some(rest) = Rest::after(at, &transition) else {
            self.ended = true;
            return self.say("  released");
        };
        self.ended = rest.ended;
        self.phase = Some(rest.phase);
        self.say(&format!("  phase {}{}", rest.phase, if rest.ended { ", job finished" } else { "" }));
        for condition in observe(&rest.state(), 1, &[], jiff::Timestamp::UNIX_EPOCH).conditions {
            let text =
                format!("  {}={:?} {} {}", condition.kind, condition.status, condition.reason, condition.message);
            self.say(text.trim_end());
        }
    }
}

#[test]
fn every_scenario_prints_what_is_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/execution");
    let mut scripts: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    scripts.sort();
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let mut wrong = Vec::new();
    for script in scripts {
        let printed = Player::play(&fs::read_to_string(&script).unwrap());
        let recorded = script.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&recorded, &printed).unwrap();
        } else if fs::read_to_string(&recorded).unwrap_or_default() != printed {
            wrong.push(format!("{}:\n{printed}", script.display()));
        }
    }
    assert!(wrong.is_empty(), "not as recorded (UPDATE=1 records anew):\n{}", wrong.join("\n"));
}
