//! A tree of Installations. Each is looked at by itself, as its controller does; Executions are played by the script.
//!
//! | command | means |
//! |---|---|
//! | `root NAME WORDS` | a root; words: `imports A,B`, `exports C`, `deploys`, `policy OnChange` or `OnSpecChange`, `waits` (`importPolicy: Wait`) |
//! | `sub NAME of PARENT WORDS` | a template of PARENT, whose object is called `PARENT-NAME` |
//! | `without NAME of PARENT` | the template leaves the blueprint of PARENT |
//! | `data KEY VALUE`, `data KEY gone` | a DataObject that roots import |
//! | `spec NAME` | its spec changes |
//! | `request NAME`, `interrupt NAME`, `delete NAME`, `ignore successors of NAME` | what users ask for |
//! | `automatic NAME failed N every D`, `automatic NAME succeeded every D` | `spec.automaticReconcile` |
//! | `look NAME` | the controller looks at it once |
//! | `until-idle` | all are reconciled, again and again, until nothing changes |
//! | `execution NAME ok`, `… failed MESSAGE`, `… gone`, `… lost` | what becomes of the Execution of NAME; lost: deleted by force |
//! | `lost NAME` | an Installation deleted by force |
//! | `clock SECONDS` | time that passes |

mod tree;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use orangery_blueprint::{
    import::{self, ImportFault, Imported},
    sibling::{ancestors, circle},
};
use orangery_core::{
    automatic::{self, AutomaticPlan, JobOutcome, Schedule, Terms},
    condition::{ConditionInput, observe},
    error::{Code, Failure},
    job::{Situation, Work, interrupted, work},
    name::{JobId, object_name},
    phase::{Phase as _, installation::Installation as Phase},
    plan::installation::{self as plan, Changes, Existing, RelatedObject},
    step::{Halt, Step, Until, Verdict},
    walk::{StatusUpdate, Transition, advance, beside_children},
};

use crate::player::{Player, Report, check};

use self::tree::{Automatic, Installation, Leaf, Template, Tree};

/// The player: a tree, the clock and the number of jobs so far.
#[derive(Clone, Default, PartialEq)]
struct Installations {
    tree: Tree,
    now: Timestamp,
    jobs: u32,
}

impl Player for Installations {
    fn command(&mut self, words: &[&str], report: &mut Report) {
        match words {
            ["root", name, fields @ ..] => self.tree.add(name, None, &Template::of(name, fields)),
            ["sub", name, "of", parent, fields @ ..] => {
                self.tree.templates.entry((*parent).to_owned()).or_default().push(Template::of(name, fields));
                self.change_spec(parent);
            }
            ["without", name, "of", parent] => {
                let templates = self.tree.templates.get_mut(*parent).expect("templates of the parent");
                templates.retain(|template| template.name != *name);
                self.change_spec(parent);
            }
            ["data", key, "gone"] => drop(self.tree.data.remove(*key).expect("a DataObject of this name")),
            ["data", key, value] => self.tree.put(key, value, None),
            ["spec", name] => self.change_spec(name),
            ["request", name] => self.tree.get_mut(name).requested = true,
            ["interrupt", name] => self.tree.get_mut(name).interrupt = true,
            ["delete", name] => self.tree.get_mut(name).deleting = true,
            ["ignore", "successors", "of", name] => self.tree.get_mut(name).ignores_successors = true,
            ["automatic", name, "failed", most, "every", interval] => {
                let most = most.parse().expect("a number of jobs");
                self.tree.get_mut(name).automatic.failed = Some((most, (*interval).to_owned()));
            }
            ["automatic", name, "succeeded", "every", interval] => {
                self.tree.get_mut(name).automatic.succeeded = Some((*interval).to_owned());
            }
            ["look", name] => self.reconcile(name, report),
            ["until-idle"] => self.run_until_idle(report),
            ["execution", name, rest @ ..] => self.tree.execution(name, rest),
            ["lost", name] => self.tree.remove(name),
            ["clock", seconds] => {
                let passed = SignedDuration::from_secs(seconds.parse().expect("a number of seconds"));
                self.now = self.now.checked_add(passed).expect("the time is one");
            }
            other => unreachable!("a script has no line {other:?}"),
        }
    }
}

fn stall(failure: Failure) -> Halt {
    Halt::Stall(failure.with_code(Code::ConfigurationProblem))
}

impl Installations {
    fn change_spec(&mut self, name: &str) {
        if let Some(installation) = self.tree.installations.get_mut(name) {
            installation.generation += 1;
        }
    }

    /// Reconciles all until nothing changes.
    fn run_until_idle(&mut self, report: &mut Report) {
        for _ in 0..100 {
            let before = self.clone();
            let names: Vec<String> = self.tree.installations.keys().cloned().collect();
            for name in names {
                let (before, mut message) = (self.clone(), Report::default());
                if self.tree.installations.contains_key(&name) {
                    self.reconcile(&name, &mut message);
                }
                if *self != before {
                    report.append(&message);
                }
            }
            if *self == before {
                return;
            }
        }
        unreachable!("the tree does not come to rest");
    }

    /// What the controller does when it is called for an Installation.
    fn reconcile(&mut self, name: &str, report: &mut Report) {
        let of = self.tree.get(name).clone();
        if of.interrupt {
            return self.interrupt(name, report);
        }
        let root = of.parent.is_none();
        if of.requested && !root {
            report.line(&format!("  {name}: the request has no effect and is removed"));
            self.tree.get_mut(name).requested = false;
        }
        let situation = Situation {
            ids: &of.ids,
            root,
            requested: root && (of.requested || of.asks_for_its_change()),
            deleting: of.deleting,
            in_deletion: of.phase.is_some_and(orangery_core::phase::Phase::is_deletion),
        };
        match work(situation) {
            Work::None => self.rest(name, report),
            Work::Start => self.start(name, None, report),
            Work::Continue { job } => self.run(name, &job, report),
        }
    }

    /// No job runs: it may start one by itself.
    fn rest(&mut self, name: &str, report: &mut Report) {
        let of = self.tree.get(name).clone();
        let outcome = match of.phase.filter(|_| of.parent.is_none()) {
            None if of.parent.is_none() => return self.show(name, &ConditionInput::AwaitingTrigger, report),
            Some(Phase::Succeeded) => JobOutcome::Succeeded,
            Some(Phase::Failed | Phase::DeleteFailed) => JobOutcome::Failed,
            Some(_) | None => return report.line(&format!("  {name}: nothing to do")),
        };
        let changed = of.observed != of.generation;
        if !changed && self.is_due(&of) {
            report.line(&format!("  {name}: an import has changed"));
            return self.start(name, None, report);
        }
        let terms = of.automatic.terms(outcome);
        let plan = if changed {
            AutomaticPlan::Nothing
        } else {
            automatic::plan(terms.as_ref(), outcome, of.generation, of.record, self.now)
        };
        match plan {
            AutomaticPlan::Start(record) => self.start(name, Some(record), report),
            AutomaticPlan::Note(record, at) => {
                report.line(&format!("  {name}: the next job starts by itself at {at}"));
                self.tree.get_mut(name).record = Some(record);
            }
            AutomaticPlan::At(at) => {
                report.line(&format!("  {name}: the next job starts by itself at {at}"));
                if let Some(failure) = of.failure.filter(|_| outcome == JobOutcome::Failed) {
                    self.show(name, &ConditionInput::Failed { failure, retry: true }, report);
                }
            }
            AutomaticPlan::Nothing if changed && outcome == JobOutcome::Succeeded => {
                self.show(name, &ConditionInput::AwaitingTrigger, report);
            }
            AutomaticPlan::Nothing => report.line(&format!("  {name}: nothing to do")),
        }
    }

    /// Whether the imports of a root under `OnChange` start a job.
    fn is_due(&self, of: &Installation) -> bool {
        let due = |of: &Installation, asked: bool| {
            let imports = self.tree.imported(of).ok().map(|imported| import::content_hash(&imported));
            let changes =
                Changes { marked: &of.marked, imports: imports.as_deref(), marked_answers: &[], answers: &[] };
            of.fields.on_change && plan::changes_start(changes, &self.tree.predecessors(of), asked)
        };
        let asked = self.tree.exporters(of).iter().any(|name| due(self.tree.get(name), false));
        due(of, asked)
    }

    fn show(&mut self, name: &str, state: &ConditionInput, report: &mut Report) {
        let of = self.tree.get_mut(name);
        of.conditions = observe(state, of.generation, &of.conditions, self.now).conditions;
        report.conditions(&format!("  {name}: "), &of.conditions);
    }

    fn start(&mut self, name: &str, record: Option<automatic::AutomaticRecord>, report: &mut Report) {
        self.jobs += 1;
        let job = JobId::from(format!("job-{}", self.jobs));
        report.line(&format!("  {name}: {job} begins"));
        let marked = self.tree.mark(name);
        let of = self.tree.get_mut(name);
        of.trigger(&job);
        (of.requested, of.record, of.marked) = (false, record, marked);
        self.run(name, &job, report);
    }

    /// A job's walk over one Installation, until it rests.
    fn run(&mut self, name: &str, job: &JobId, report: &mut Report) {
        let of = self.tree.get(name);
        let mut phase = match of.phase {
            Some(phase) if !phase.is_final() => phase,
            Some(_) | None if of.deleting => Phase::INIT_DELETE,
            Some(_) | None => Phase::INIT,
        };
        let transition = loop {
            let result = if self.begins_nothing(name, phase) {
                Ok(Verdict::Failed(interrupted()))
            } else {
                beside_children(self.phase(name, job, phase, report), || None, || self.has_working_children(name))
            };
            match advance(phase, result) {
                Transition::Next(next) => phase = next,
                other => break other,
            }
        };
        let Some(rest) = StatusUpdate::after(phase, &transition) else {
            report.line(&format!("  {name}: released"));
            return self.tree.remove(name);
        };
        report.rest(&format!("  {name}: "), &rest);
        let (now, of) = (self.now, self.tree.get_mut(name));
        of.conditions = observe(&rest.state(), of.generation, &of.conditions, now).conditions;
        (of.phase, of.failure) = (Some(rest.phase), rest.failure.clone());
        if rest.ended {
            of.ids.finished = Some(job.clone());
            of.observed = of.generation;
            self.request_successors(name, rest.phase, report);
        }
    }

    /// Roots that import from a root that has succeeded are asked for a job, unless they are about to read their imports.
    fn request_successors(&mut self, name: &str, phase: Phase, report: &mut Report) {
        let of = self.tree.get(name).clone();
        if of.parent.is_some() || phase != Phase::Succeeded {
            return;
        }
        for successor in self.tree.importers(&of) {
            let sibling = self.tree.get_mut(&successor);
            let is_about_to_read = sibling.ids.running().is_some()
                && sibling.phase.is_none_or(|phase| phase == Phase::Init || phase.is_final());
            if !sibling.deleting && !is_about_to_read {
                report.line(&format!("  {name}: asks for a job of {successor}"));
                sibling.requested = true;
            }
        }
    }

    /// Notes which job is interrupted and hands the interrupt down.
    fn interrupt(&mut self, name: &str, report: &mut Report) {
        let job = self.tree.get(name).ids.running().cloned();
        let of = self.tree.get_mut(name);
        of.interrupt = false;
        if job.is_none() {
            return report.line(&format!("  {name}: no job runs, the interrupt is removed"));
        }
        of.interrupted = job;
        for child in self.tree.children(name) {
            report.line(&format!("  {name}: interrupts {child}"));
            self.tree.get_mut(&child).interrupt = true;
        }
        if self.tree.executions.contains_key(name) {
            report.line(&format!("  {name}: interrupts its Execution"));
        }
    }

    /// Whether the job was interrupted before it came to its subobjects (C-32).
    fn begins_nothing(&self, name: &str, phase: Phase) -> bool {
        let of = self.tree.get(name);
        let begins = matches!(phase, Phase::Init | Phase::ObjectsCreated | Phase::InitDelete | Phase::TriggerDelete);
        begins && of.interrupted.is_some() && of.interrupted == of.ids.job && !self.has_working_children(name)
    }

    fn has_working_children(&self, name: &str) -> bool {
        let job = self.tree.get(name).ids.job.clone();
        self.tree.related(name).iter().any(|related_object| related_object.ids.running() == job.as_ref())
    }

    fn phase(&mut self, name: &str, job: &JobId, phase: Phase, report: &mut Report) -> Step<Verdict> {
        match phase {
            Phase::Init => self.init(name, job, report),
            Phase::CleanupOrphaned => {
                let orphans: Vec<RelatedObject> =
                    self.tree.related(name).into_iter().filter(|related_object| related_object.deleting).collect();
                let (trigger, outcome) = plan::orphans(&orphans, job);
                for orphan in trigger {
                    self.trigger(name, &orphan, job, Phase::INIT_DELETE, report);
                }
                outcome
            }
            Phase::ObjectsCreated => {
                self.trigger_all(name, job, Phase::INIT, report);
                Ok(Verdict::Done)
            }
            Phase::Progressing => plan::progressing(&self.tree.related(name), &self.tree.missing(name), job),
            Phase::Completing => self.completing(name, report),
            Phase::InitDelete => self.init_delete(name, job, report),
            Phase::TriggerDelete => {
                self.trigger_all(name, job, Phase::INIT_DELETE, report);
                Ok(Verdict::Done)
            }
            Phase::Deleting => {
                // What ended this very job before it was to be deleted gets it once more.
                self.trigger_all(name, job, Phase::INIT_DELETE, report);
                plan::deleting(&self.tree.related(name), job)
            }
            Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => Ok(Verdict::Done),
        }
    }

    fn init(&mut self, name: &str, job: &JobId, report: &mut Report) -> Step<Verdict> {
        let of = self.tree.get(name).clone();
        if of.parent.is_none() {
            let all = ancestors(name, |name| self.tree.exporters(self.tree.get(name)));
            plan::no_circle(circle(name, &all))?;
        }
        plan::predecessors(&self.tree.predecessors(&of), of.parent.is_none(), job)?;
        self.tree.delete_exports(name);
        let imported = self.read_imports(&of)?;
        let marked = self.tree.mark(name);
        let hash = import::imports_hash(&imported);
        let of = self.tree.get_mut(name);
        of.marked = marked;
        of.at_init = (of.generation, hash);
        self.tree.keep_imports(name, &imported);
        self.reconcile_children(name, report)?;
        Ok(Verdict::Done)
    }

    fn read_imports(&self, of: &Installation) -> Step<BTreeMap<String, Imported>> {
        self.tree.imported(of).map_err(|error| match error.fault.as_ref() {
            ImportFault::NotFound { kind, name, .. } if of.fields.waits => Halt::wait(kind, name, Until::Exists),
            fault => stall(Failure::new("ReadImports", fault.reason(), error.to_string())),
        })
    }

    /// Makes what the blueprint asks for, and deletes the sub-installations that left it.
    fn reconcile_children(&mut self, name: &str, report: &mut Report) -> Step<()> {
        let templates = self.tree.templates.get(name).cloned().unwrap_or_default();
        let existing: Vec<Existing> = self.tree.existing(name);
        let plan = plan::subinstallations(templates.iter().map(|template| template.name.as_str()), &existing)?;
        for template in templates.iter().filter(|template| plan.create.contains(&template.name)) {
            let child = format!("{name}-{}", template.name);
            report.line(&format!("  {name}: makes {child}"));
            self.tree.add(&child, Some(name), template);
        }
        for orphan in &plan.orphan {
            let orphan_state = self.tree.get_mut(orphan);
            if !orphan_state.deleting {
                report.line(&format!("  {name}: deletes {orphan}, which has no template any more"));
                (orphan_state.deleting, orphan_state.ignores_successors) = (true, true);
            }
        }
        if self.tree.get(name).fields.deploys && !self.tree.executions.contains_key(name) {
            report.line(&format!("  {name}: makes its Execution"));
            self.tree.executions.insert(name.to_owned(), Leaf::default());
        }
        let made: Vec<String> = self.tree.children(name);
        self.tree.get_mut(name).made = made;
        Ok(())
    }

    fn completing(&mut self, name: &str, report: &mut Report) -> Step<Verdict> {
        let of = self.tree.get(name).clone();
        let hash = import::imports_hash(&self.read_imports(&of)?);
        plan::unchanged((of.at_init.0, of.generation), (&of.at_init.1, &hash))?;
        for (key, value) in self.tree.export(name) {
            report.line(&format!("  {name}: exports {key} = {value}"));
        }
        Ok(Verdict::Done)
    }

    fn init_delete(&mut self, name: &str, job: &JobId, report: &mut Report) -> Step<Verdict> {
        let of = self.tree.get(name).clone();
        if !of.ignores_successors {
            let all = ancestors(name, |name| self.tree.exporters(self.tree.get(name)));
            let mut successors = self.tree.importers(&of);
            // Those that come before it as well would wait for it in turn (C-17).
            successors.retain(|successor| !all.contains_key(successor));
            let related: Vec<RelatedObject> =
                successors.iter().map(|successor| self.tree.related_object(successor)).collect();
            plan::successors(&related, job)?;
        }
        for child in self.tree.children(name) {
            let child_state = self.tree.get_mut(&child);
            if !child_state.deleting {
                report.line(&format!("  {name}: deletes {child}"));
                child_state.deleting = true;
            }
        }
        if let Some(execution) = self.tree.executions.get_mut(name).filter(|execution| !execution.deleting) {
            report.line(&format!("  {name}: deletes its Execution"));
            execution.deleting = true;
        }
        Ok(Verdict::Done)
    }

    /// Passes the job to all subobjects that want it.
    fn trigger_all(&mut self, name: &str, job: &JobId, first: Phase, report: &mut Report) {
        for child in self.tree.children(name) {
            self.trigger(name, &child, job, first, report);
        }
        if let Some(execution) = self.tree.executions.get_mut(name)
            && execution.trigger(job, first == Phase::INIT_DELETE)
        {
            report.line(&format!("  {name}: triggers its Execution"));
        }
    }

    fn trigger(&mut self, name: &str, child: &str, job: &JobId, first: Phase, report: &mut Report) {
        let child_state = self.tree.get_mut(child);
        if child_state.ids.wants(job, child_state.phase, first) {
            report.line(&format!("  {name}: triggers {child}"));
            child_state.trigger(job);
        }
    }
}

impl Automatic {
    fn terms(&self, outcome: JobOutcome) -> Option<Terms> {
        let schedule = |interval: &str, usual| Schedule::parse("", Some(interval), usual).expect("an interval");
        match outcome {
            JobOutcome::Failed => self.failed.as_ref().map(|(most, interval)| Terms {
                most: Some(*most),
                schedule: schedule(interval, Schedule::AFTER_FAILURE),
                least: SignedDuration::ZERO,
            }),
            JobOutcome::Succeeded => {
                self.succeeded.as_ref().map(|interval| (interval, Schedule::AFTER_SUCCESS)).map(|(interval, usual)| {
                    Terms { most: None, schedule: schedule(interval, usual), least: SignedDuration::ZERO }
                })
            }
        }
    }
}

/// The name of the context that an Installation keeps its own imports in, and its children their exports.
fn object_in(context: Option<&str>, key: &str) -> String {
    object_name(&context.map(orangery_core::name::installation_context).unwrap_or_default(), key).into()
}

#[test]
fn installations_report_what_is_recorded() {
    check::<Installations>("installation");
}
