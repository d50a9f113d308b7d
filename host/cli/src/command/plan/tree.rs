//! The plan of an Installation and of all that is below it, as it is written.

use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use orangery_proposal::PlannedObject;
use serde::Serialize;

use super::{ItemName, PlanArguments, counts, detailed_exit, object_lines, write};
use crate::{
    command_error::CommandError,
    exit::Exit,
    terminal::{Ink, Paint, Terminal},
};

/// What becomes of an Installation or of a deploy item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectAction {
    /// It is made.
    Create,
    /// It is there, and has its part in the job.
    Run,
    /// It goes.
    Delete,
}

/// A deploy item of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemPlan {
    /// Its name in the blueprint.
    pub name: String,
    /// The deployer type.
    #[serde(rename = "type")]
    pub type_: String,
    /// What becomes of it.
    pub action: ObjectAction,
    /// The items that come before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The component that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// In the order in which they are come to.
    pub objects: Vec<PlannedObject>,
    /// What is left as it is, and why; and what is not known here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the component is called again afterwards.
    pub unfinished: bool,
    /// Why it would fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Why what it does is decided later in the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_later: Option<String>,
}

/// An Installation of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallationPlan {
    /// The names from the root down, separated by `/`.
    pub path: String,
    /// What becomes of it.
    pub action: ObjectAction,
    /// Why what it does is decided later in the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_later: Option<String>,
    /// Whether some of what it imports is known in the job alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub known_after_apply: bool,
    /// In the order in which they may begin.
    pub items: Vec<ItemPlan>,
    /// What templates warn of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// All of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreePlan {
    api_version: ApiVersion,
    kind: Kind,
    /// The first one that is planned.
    installation: ItemName,
    installations: Vec<InstallationPlan>,
    /// Rules over the whole job that do not hold, each as a sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl ItemPlan {
    fn has_changes(&self) -> bool {
        self.action != ObjectAction::Run
            || self.unfinished
            || self.decided_later.is_some()
            || self.objects.iter().any(PlannedObject::is_changed)
    }

    fn title(&self) -> String {
        let by = self.plugin.as_ref().map(|plugin| format!(", by {plugin}")).unwrap_or_default();
        let what = match (&self.failure, self.has_changes()) {
            (Some(failure), _) => format!(": fails: {failure}"),
            (None, true) => String::new(),
            (None, false) => ": nothing to do".to_owned(),
        };
        format!("item {} ({}{by}){what}", self.name, self.type_)
    }

    fn lines(&self, ink: Ink, brief: bool) -> Result<Vec<String>, CommandError> {
        let (sign, paint) = match self.action {
            _ if self.failure.is_some() => ("!", Paint::Bad),
            ObjectAction::Create => ("+", Paint::Good),
            ObjectAction::Delete => ("-", Paint::Bad),
            ObjectAction::Run if self.has_changes() => ("~", Paint::Busy),
            ObjectAction::Run => (" ", Paint::Dim),
        };
        let mut lines = vec![ink.paint(paint, &format!("{sign} {}", self.title()))];
        let objects = object_lines(&self.objects, ink, brief)?;
        lines.extend(objects.into_iter().map(|line| format!("    {line}")));
        if let Some(why) = &self.decided_later {
            lines.push(ink.paint(Paint::Busy, &format!("    ? decided later: {why}")));
        }
        if self.unfinished {
            let again = "the component is called again afterwards, and may ask for more";
            lines.push(ink.paint(Paint::Dim, &format!("    {again}")));
        }
        lines.extend(self.notes.iter().map(|note| ink.paint(Paint::Bad, &format!("    ! {note}"))));
        Ok(lines)
    }
}

impl InstallationPlan {
    fn lines(&self, ink: Ink, brief: bool) -> Result<Vec<String>, CommandError> {
        let (sign, paint) = match self.action {
            ObjectAction::Create => ("+", Paint::Good),
            ObjectAction::Run => (" ", Paint::Plain),
            ObjectAction::Delete => ("-", Paint::Bad),
        };
        let mut lines = vec![ink.paint(paint, &format!("{sign} installation {}", self.path))];
        if let Some(why) = &self.decided_later {
            lines.push(ink.paint(Paint::Busy, &format!("  ? decided later: it waits for {why}")));
        }
        if self.known_after_apply {
            let told = "  ? some of its imports are known after apply: where its templates decide by them, the job may do otherwise";
            lines.push(ink.paint(Paint::Busy, told));
        }
        for item in &self.items {
            lines.extend(item.lines(ink, brief)?.into_iter().map(|line| format!("  {line}")));
        }
        lines.extend(self.warnings.iter().map(|warning| ink.paint(Paint::Bad, &format!("  ! {warning}"))));
        Ok(lines)
    }
}

impl TreePlan {
    /// The plan of an Installation: itself, and then those below it.
    pub fn new((namespace, name): (Namespace, ObjectName), installations: Vec<InstallationPlan>) -> Self {
        Self {
            api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
            kind: Kind::from_static("Plan"),
            installation: ItemName { namespace, name },
            installations,
            failures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The same with what else is to be said, one sentence each.
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// The same where rules over the whole job do not hold, so that it fails before it writes anything (C-362).
    pub fn with_failures(self, failures: Vec<String>) -> Self {
        Self { failures, ..self }
    }

    /// Whether the job would write anything but that it has run.
    fn has_changes(&self) -> bool {
        let of = |one: &InstallationPlan| {
            one.action != ObjectAction::Run
                || one.decided_later.is_some()
                || one.items.iter().any(ItemPlan::has_changes)
        };
        self.installations.iter().any(of)
    }

    /// Whether an item would fail, or the whole job.
    pub fn fails(&self) -> bool {
        !self.failures.is_empty()
            || self.installations.iter().flat_map(|one| &one.items).any(|item| item.failure.is_some())
    }

    /// The exit code of a command line that asks for one with the plan in it (C-307).
    pub fn detailed_exit(&self) -> Exit {
        detailed_exit(self.fails(), self.has_changes())
    }

    /// Writes it as the command line asks for.
    ///
    /// # Errors
    /// [`CommandError::Form`] and [`CommandError::Output`]
    pub fn write(&self, arguments: &PlanArguments, terminal: &mut Terminal) -> Result<(), CommandError> {
        write(self, arguments, terminal, |ink| self.lines(ink, arguments.brief))
    }

    /// Writes it as lines; `brief`: without the content of objects.
    ///
    /// # Errors
    /// [`CommandError::Output`]
    pub fn write_lines(&self, brief: bool, terminal: &mut Terminal) -> Result<(), CommandError> {
        self.lines(terminal.ink(), brief)?
            .iter()
            .try_for_each(|line| terminal.painted(line).map_err(CommandError::from))
    }

    fn lines(&self, ink: Ink, brief: bool) -> Result<Vec<String>, CommandError> {
        let mut lines = Vec::new();
        for installation in &self.installations {
            lines.extend(installation.lines(ink, brief)?);
        }
        lines.extend(self.failures.iter().map(|why| ink.paint(Paint::Bad, &format!("! the job fails: {why}"))));
        lines.extend(self.notes.iter().map(|note| ink.paint(Paint::Bad, &format!("! {note}"))));
        lines.push(String::new());
        lines.push(ink.paint(Paint::Plain, &self.summary()));
        Ok(lines)
    }

    fn summary(&self) -> String {
        let items = || self.installations.iter().flat_map(|one| &one.items);
        let objects: Vec<&PlannedObject> = items().flat_map(|item| &item.objects).collect();
        let ItemName { namespace, name } = &self.installation;
        let what = match self.installations.iter().filter(|one| !one.path.contains('/')).count() {
            0 | 1 => format!("installation {namespace}/{name}"),
            many => format!("{many} installations of namespace {namespace}"),
        };
        let mut summary = format!("{what}: {}", counts(objects.iter().map(|object| object.action)));
        let later = self.installations.iter().filter(|one| one.decided_later.is_some()).count();
        let failing = items().filter(|item| item.failure.is_some()).count();
        if later > 0 {
            summary.push_str(&format!("; decided later: {later} of {} installations", self.installations.len()));
        }
        if !self.failures.is_empty() {
            summary.push_str("; the job fails by rules");
        }
        if failing > 0 {
            summary.push_str(&format!("; failing: {failing} of {} items", items().count()));
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use orangery_proposal::{Action, ClusterRef, ObjectKey};
    use serde_json::{Value, json};

    use super::*;

    fn item(name: &str, action: ObjectAction, objects: Vec<PlannedObject>) -> ItemPlan {
        ItemPlan {
            name: name.to_owned(),
            type_: "t".to_owned(),
            action,
            depends_on: Vec::new(),
            plugin: Some("mock 0.1.0".to_owned()),
            objects,
            notes: Vec::new(),
            unfinished: false,
            failure: None,
            decided_later: None,
        }
    }

    fn installation(path: &str, action: ObjectAction, items: Vec<ItemPlan>) -> InstallationPlan {
        InstallationPlan {
            path: path.to_owned(),
            action,
            decided_later: None,
            known_after_apply: false,
            items,
            warnings: Vec::new(),
        }
    }

    fn object(action: Action) -> PlannedObject {
        let key = ObjectKey {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: "c".into(),
        };
        let (before, after) = (json!({"data": {"a": "1"}}), json!({"data": {"a": "2"}}));
        PlannedObject::new(action, &ClusterRef::Target, &key, Some(&before), Some(&after))
    }

    fn plan(installations: Vec<InstallationPlan>) -> TreePlan {
        TreePlan::new(("team".into(), "web".into()), installations)
    }

    /// Every field that there is, and those that are always there.
    #[test]
    fn c_307_the_schema_has_every_field_of_an_installation_and_no_other() {
        let schema: Value = serde_json::from_str(include_str!("../../../../../docs/plan.schema.json")).unwrap();
        let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let required = |of: &Value| serde_json::from_value::<BTreeSet<String>>(of["required"].clone()).unwrap();
        let bare = item("a", ObjectAction::Run, vec![object(Action::Change)]);
        let bare = ItemPlan { plugin: None, ..bare };
        let full = ItemPlan {
            depends_on: vec!["b".to_owned()],
            plugin: Some("p".to_owned()),
            notes: vec!["n".to_owned()],
            failure: Some("f".to_owned()),
            decided_later: Some("l".to_owned()),
            ..bare.clone()
        };
        let least = plan(vec![installation("web", ObjectAction::Run, vec![bare])]);
        let most = InstallationPlan {
            decided_later: Some("l".to_owned()),
            known_after_apply: true,
            warnings: vec!["w".to_owned()],
            ..installation("web", ObjectAction::Run, vec![full])
        };
        let most = plan(vec![most]).with_notes(vec!["n".to_owned()]).with_failures(vec!["f".to_owned()]);
        let (least, most) = (serde_json::to_value(least).unwrap(), serde_json::to_value(most).unwrap());
        let tree = &schema["oneOf"][1];
        let of_installation = &tree["properties"]["installations"]["items"];
        let of_item = &of_installation["properties"]["items"]["items"];
        for (of, at) in [(tree, ""), (of_installation, "/installations/0"), (of_item, "/installations/0/items/0")] {
            assert_eq!(names(&of["properties"]), names(most.pointer(at).unwrap()), "{at}");
            assert_eq!(required(of), names(least.pointer(at).unwrap()), "{at}");
        }
        let actions = serde_json::to_value([ObjectAction::Create, ObjectAction::Run, ObjectAction::Delete]).unwrap();
        assert_eq!(
            (&of_installation["properties"]["action"]["enum"], &of_item["properties"]["action"]["enum"]),
            (&actions, &actions)
        );
    }

    #[test]
    fn c_265_a_tree_is_told_from_the_root_down_with_what_is_decided_later_and_what_fails() {
        let items = vec![
            item("a", ObjectAction::Run, vec![object(Action::Change)]),
            item("b", ObjectAction::Run, vec![object(Action::None)]),
            ItemPlan { failure: Some("no".to_owned()), ..item("c", ObjectAction::Create, Vec::new()) },
        ];
        let later = InstallationPlan {
            decided_later: Some("the exports of web".to_owned()),
            ..installation("web/db", ObjectAction::Create, Vec::new())
        };
        let left = ItemPlan {
            unfinished: true,
            notes: vec!["x stays".to_owned()],
            ..item("d", ObjectAction::Delete, vec![object(Action::Delete)])
        };
        let gone = installation("web/old", ObjectAction::Delete, vec![left]);
        let plan = plan(vec![installation("web", ObjectAction::Run, items), later, gone]);
        let expected = [
            "  installation web",
            "  ~ item a (t, by mock 0.1.0)",
            "      ~ ConfigMap n/c",
            "          data.a: \"1\" → \"2\"",
            "    item b (t, by mock 0.1.0): nothing to do",
            "  ! item c (t, by mock 0.1.0): fails: no",
            "+ installation web/db",
            "  ? decided later: it waits for the exports of web",
            "- installation web/old",
            "  - item d (t, by mock 0.1.0)",
            "      - ConfigMap n/c",
            "      the component is called again afterwards, and may ask for more",
            "      ! x stays",
            "",
            "installation team/web: 1 to change, 1 to delete, 1 as they should be; decided later: 1 of 3 installations; failing: 1 of 4 items",
        ];
        assert_eq!(plan.lines(Ink::Plain, false).unwrap(), expected);
        assert_eq!(plan.lines(Ink::Plain, true).unwrap().len(), expected.len() - 1, "without the content");
    }

    #[test]
    fn c_265_there_are_changes_where_an_object_an_item_or_an_installation_changes_or_is_decided_later() {
        let run = |items| installation("web", ObjectAction::Run, items);
        let still = item("a", ObjectAction::Run, vec![object(Action::None), object(Action::Foreign)]);
        assert_eq!(plan(vec![run(vec![still.clone()])]).detailed_exit(), Exit::Ok);
        let changed = [
            run(vec![item("a", ObjectAction::Run, vec![object(Action::Change)])]),
            run(vec![ItemPlan { unfinished: true, ..still.clone() }]),
            run(vec![item("a", ObjectAction::Create, Vec::new())]),
            run(vec![item("a", ObjectAction::Delete, Vec::new())]),
            installation("web", ObjectAction::Create, Vec::new()),
            installation("web", ObjectAction::Delete, Vec::new()),
            InstallationPlan { decided_later: Some(String::new()), ..run(Vec::new()) },
        ];
        for one in changed {
            let told = format!("{one:?}");
            assert_eq!(plan(vec![run(vec![still.clone()]), one]).detailed_exit(), Exit::Changes, "{told}");
        }
        let failing = ItemPlan { failure: Some("no".to_owned()), ..still.clone() };
        let failing = plan(vec![run(vec![failing])]);
        assert_eq!(
            (plan(vec![run(vec![still])]).fails(), failing.fails(), failing.detailed_exit()),
            (false, true, Exit::Failed)
        );
    }

    #[test]
    fn c_362_a_plan_fails_by_a_rule_over_the_whole_job() {
        let run = || plan(vec![installation("web", ObjectAction::Run, Vec::new())]);
        assert!(!run().fails());
        let failing = run().with_failures(vec!["rule few of NamespacePolicy p: at most 50".to_owned()]);
        assert!(failing.fails());
        let expected = [
            "  installation web",
            "! the job fails: rule few of NamespacePolicy p: at most 50",
            "",
            "installation team/web: nothing to do; the job fails by rules",
        ];
        assert_eq!(failing.lines(Ink::Plain, false).unwrap(), expected);
    }
}
