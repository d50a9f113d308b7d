//! What holds in every version of every object of a tree, whatever happens (`docs/rules.md`, Tests). The versions come
//! in the order in which they were written; each is held against what everything else was at that moment.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{effects::Effect, history::Version, write_log::LoggedWrite};

/// The rules that were broken, a line for each time.
pub fn broken(versions: &[Version]) -> Vec<String> {
    let mut now = Now::default();
    let mut lines = Vec::new();
    for version in versions {
        let before = now.0.get(uid(version)).copied();
        for (rule, is_broken) in RULES {
            if is_broken(&now, before, version) {
                lines.push(format!("{rule}: {}", message_of(version)));
            }
        }
        if version.gone {
            now.0.remove(uid(version));
        } else {
            now.0.insert(uid(version), version);
        }
    }
    lines
}

/// So many writes after that of somebody else the operator may not have heard of it yet.
const UNHEARD: u64 = 16;

/// C-24: what was done to objects of items that were not at work. Where the operator itself has ended the job, nothing may have been
/// sent since it was told that this is written. An item and the object that it deploys have one name.
pub fn effects_at_rest(versions: &[Version], effects: &[Effect], writes: &[LoggedWrite]) -> Vec<String> {
    let at_rest = |effect: &&Effect| {
        let is_item = |version: &&Version| version.kind == "DeployItem" && version.name == effect.name;
        let before = versions.iter().filter(is_item).filter(|version| version.revision < effect.revision);
        // From the version on with which it came to rest.
        let rest: Vec<&Version> = before.rev().take_while(|version| !version.is_running()).collect();
        let Some((last, first)) = rest.first().zip(rest.last()) else { return false };
        match writes.iter().find(|write| write.path.contains("/deployitems/") && write.made(first.revision)) {
            Some(end) => !end.answer.is_some_and(|told| was_sent_before(effect, told.place, writes)),
            None => effect.revision > last.revision + UNHEARD,
        }
    };
    let idle = effects.iter().filter(at_rest);
    idle.map(|effect| format!("C-24 no side effect of an item whose job has ended: {effect:?}")).collect()
}

/// Whether what brought an effect about had been sent at this place. A deletion answers no version, and of an operator that died no
/// answer was waited for: then one that was under way counts.
fn was_sent_before(effect: &Effect, place: u64, writes: &[LoggedWrite]) -> bool {
    let named = format!("/configmaps/{}", effect.name);
    let of_object =
        || writes.iter().filter(|write| write.path.ends_with(&named) || write.path.ends_with("/configmaps"));
    match of_object().find(|write| write.made(effect.revision)) {
        Some(write) => write.came < place,
        None => of_object().any(|write| write.is_under_way(place)),
    }
}

/// The objects that are there at a moment, by uid.
#[derive(Default)]
struct Now<'a>(BTreeMap<&'a str, &'a Version>);

type Rule = fn(&Now<'_>, Option<&Version>, &Version) -> bool;

const RULES: [(&str, Rule); 6] = [
    ("INS-06 jobIDFinished becomes jobID, in an end phase", finishes_in_the_middle),
    ("INS-08 nothing finishes before what it owns has", finishes_before_its_children),
    ("INS-09 no job before the one before has finished", drops_a_job),
    ("INS-05 a child works for the one job of its tree", works_for_nobody),
    ("EXE-17 no item is triggered before its predecessors have succeeded", runs_too_early),
    ("EXE-45 no item is deleted while a successor of it is there", is_deleted_too_early),
];

fn finishes_in_the_middle(_: &Now<'_>, before: Option<&Version>, version: &Version) -> bool {
    let ended = matches!(version.phase(), "Succeeded" | "Failed" | "DeleteFailed");
    has_finished(before, version) && !(ended && version.jobs().0 == version.jobs().1)
}

fn finishes_before_its_children(now: &Now<'_>, before: Option<&Version>, version: &Version) -> bool {
    let ends = version.gone || has_finished(before, version);
    ends && now.children(version).any(|child| child.is_running() && child.jobs().0 == version.jobs().0)
}

fn drops_a_job(_: &Now<'_>, before: Option<&Version>, version: &Version) -> bool {
    before.is_some_and(|before| before.is_running() && before.jobs().0 != version.jobs().0)
}

fn works_for_nobody(now: &Now<'_>, before: Option<&Version>, version: &Version) -> bool {
    let parent = owner(version).and_then(|owner| now.0.get(owner));
    is_triggered(before, version)
        && parent.is_some_and(|parent| !parent.is_running() || parent.jobs().0 != version.jobs().0)
}

fn runs_too_early(now: &Now<'_>, before: Option<&Version>, version: &Version) -> bool {
    is_triggered(before, version)
        && !version.is_deleting()
        && depends_on(version).any(|name| {
            // One that is deleted by hand at this moment has succeeded all the same.
            let mut same = now.siblings(version).filter(|sibling| sibling.name == name);
            !same
                .any(|sibling| sibling.phase() == "Succeeded" && sibling.jobs() == (version.jobs().0, version.jobs().0))
        })
}

fn is_deleted_too_early(now: &Now<'_>, before: Option<&Version>, version: &Version) -> bool {
    // One that is deleted by hand at this moment may not be known to go.
    let is_known = |sibling: &Version| sibling.is_running() || version.revision > sibling.revision + UNHEARD;
    is_triggered(before, version)
        && version.is_deleting()
        && now.siblings(version).any(|sibling| {
            sibling.is_deleting() && is_known(sibling) && depends_on(sibling).any(|name| name == version.name)
        })
}

impl<'a> Now<'a> {
    fn children(&self, of: &'a Version) -> impl Iterator<Item = &'a Version> {
        self.0.values().copied().filter(|child| owner(child) == Some(uid(of)))
    }

    fn siblings(&self, of: &'a Version) -> impl Iterator<Item = &'a Version> {
        let (owner, uid) = (owner(of), self::uid(of));
        let all = self.0.values().copied().filter(move |other| other.kind == of.kind && self::uid(other) != uid);
        all.filter(move |other| owner.is_some() && self::owner(other) == owner)
    }
}

/// Whether a job of it has ended with this version. One that is being deleted gets the job that it has ended once more.
fn has_finished(before: Option<&Version>, version: &Version) -> bool {
    let finished = |version: &Version| version.jobs().1.to_owned();
    let is_again = version.is_deleting() && version.jobs().1.is_empty();
    !version.gone && !is_again && before.map(finished).unwrap_or_default() != finished(version)
}

/// Whether it got a job with this version.
fn is_triggered(before: Option<&Version>, version: &Version) -> bool {
    version.is_running() && before.is_none_or(|before| before.jobs().0 != version.jobs().0)
}

fn uid(version: &Version) -> &str {
    version.object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

/// The uid of the object that controls it.
fn owner(version: &Version) -> Option<&str> {
    let owners = version.object.pointer("/metadata/ownerReferences")?.as_array()?;
    let controller = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    controller.get("uid")?.as_str()
}

fn depends_on(version: &Version) -> impl Iterator<Item = &str> {
    let annotation = version.object.pointer("/metadata/annotations/execution.landscaper.gardener.cloud~1dependsOn");
    annotation.and_then(Value::as_str).unwrap_or_default().split(',').filter(|name| !name.is_empty())
}

fn message_of(version: &Version) -> String {
    let (job, finished) = version.jobs();
    let Version { revision, kind, name, .. } = version;
    format!("{revision} {kind} {name} {:?}, job {job:?}, finished {finished:?}", version.phase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::write_log::LoggedAnswer;

    /// `kind name owner job finished phase`, `-` for nothing; `!name` is being deleted, `name<a` depends on a.
    fn version(revision: u64, line: &str) -> Version {
        let words: Vec<&str> = line.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
        let [kind, name, owner, job, finished, phase] = words.as_slice() else { panic!("{line}") };
        let (name, after) = name.split_once('<').unwrap_or((name, ""));
        let (name, deleting) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
        let mut metadata = json!({
            "uid": name,
            "annotations": {"execution.landscaper.gardener.cloud/dependsOn": after},
            "ownerReferences": [{"uid": owner, "controller": !owner.is_empty()}],
        });
        if deleting {
            metadata["deletionTimestamp"] = json!("now");
        }
        let kind = ["Installation", "Execution", "DeployItem"].into_iter().find(|known| known == kind).unwrap();
        let object = json!({"metadata": metadata, "status": {"jobID": job, "jobIDFinished": finished, "phase": phase}});
        Version { revision, kind, name: name.to_owned(), object, gone: *phase == "gone" }
    }

    #[track_caller]
    fn check(lines: &str, expected: &[&str]) {
        let versions: Vec<Version> = (1..).zip(lines.lines()).map(|(at, line)| version(at, line.trim())).collect();
        let broken = broken(&versions);
        let place = |line: &String| {
            let (rule, message_of) = line.split_once(": ").unwrap();
            format!("{} at {}", rule.split(' ').next().unwrap(), message_of.split(' ').next().unwrap())
        };
        let found: Vec<String> = broken.iter().map(place).collect();
        assert_eq!(found, expected, "{broken:#?}");
    }

    #[test]
    fn a_job_that_follows_the_rules_breaks_none() {
        check(
            "Installation i - 1 - -
             Execution e i - - -
             Execution e i 1 - Init
             DeployItem a e - - -
             DeployItem b<a e - - -
             DeployItem a e 1 - Init
             DeployItem a e 1 1 Succeeded
             DeployItem b<a e 1 - Init
             DeployItem b<a e 1 1 Succeeded
             Execution e i 1 1 Succeeded
             Installation i - 1 1 Succeeded",
            &[],
        );
    }

    #[test]
    fn every_rule_is_seen_to_be_broken() {
        check("Installation i - 1 1 Progressing", &["INS-06 at 1"]);
        check("Installation i - 1 - Init\nExecution e i 1 - Init\nInstallation i - 1 1 Failed", &["INS-08 at 3"]);
        check("Installation i - 1 - Init\nInstallation i - 2 - Init", &["INS-09 at 2"]);
        check("Installation i - 1 1 Succeeded\nExecution e i 2 - -", &["INS-05 at 2"]);
        check("DeployItem a e - - -\nDeployItem b<a e 1 - -", &["EXE-17 at 2"]);
        check("DeployItem !b<a e 1 - InitDelete\nDeployItem !a e 1 - -", &["EXE-45 at 2"]);
        let others = "Installation i - - - -\n".repeat(16);
        check(&format!("DeployItem !b<a e - - -\n{others}DeployItem !a e 1 - -"), &["EXE-45 at 18"]);
    }

    #[test]
    fn exe_45_a_successor_that_is_deleted_by_hand_at_this_moment_may_be_unknown() {
        check("DeployItem !b<a e - - -\nDeployItem !a e 1 - -", &[]);
    }

    #[test]
    fn c_24_what_happens_while_an_item_is_at_rest_is_told() {
        let versions = [version(1, "DeployItem a e 1 - Init"), version(5, "DeployItem a e 1 1 Failed")];
        let effect = |revision| Effect { revision, name: "a".to_owned(), content: None };
        assert_eq!(effects_at_rest(&versions, &[effect(3)], &[]), Vec::<String>::new());
        assert_eq!(effects_at_rest(&versions, &[effect(3), effect(7), effect(77)], &[]).len(), 1);
    }

    #[test]
    fn c_24_nothing_is_sent_once_the_operator_knows_that_it_has_ended_the_job() {
        let versions = [
            version(1, "DeployItem a e 1 - Init"),
            version(5, "DeployItem a e 1 1 Failed"),
            version(6, "DeployItem a e 1 1 Failed"),
        ];
        let effect = |revision| Effect { revision, name: "a".to_owned(), content: None };
        let write = |path: &str, came, answer: Option<(u64, Option<u64>)>| LoggedWrite {
            method: String::new(),
            path: path.to_owned(),
            came,
            answer: answer.map(|(place, revision)| LoggedAnswer { place, is_done: true, revision }),
        };
        let end = write("/x/deployitems/a/status", 10, Some((20, Some(5))));
        let counts = |effects: &[Effect], writes: &[LoggedWrite]| effects_at_rest(&versions, effects, writes).len();
        // What was sent before may be done later.
        let before = write("/api/v1/namespaces/n/configmaps/a", 19, Some((30, Some(7))));
        assert_eq!(counts(&[effect(7)], &[end.clone(), before.clone()]), 0);
        let after = write("/api/v1/namespaces/n/configmaps/a", 21, Some((30, Some(7))));
        assert_eq!(counts(&[effect(7)], &[end.clone(), after]), 1);
        // Of a deletion, and of what was never answered, no version is known.
        for answer in [None, Some((30, None))] {
            let deletion = |came| write("/api/v1/namespaces/n/configmaps/a", came, answer);
            assert_eq!(counts(&[effect(8)], &[end.clone(), deletion(19)]), 0);
            assert_eq!(counts(&[effect(8)], &[end.clone(), deletion(21)]), 1);
        }
        let other = write("/api/v1/namespaces/n/configmaps/b", 19, None);
        assert_eq!(counts(&[effect(8)], &[end, other]), 1);
    }
}
