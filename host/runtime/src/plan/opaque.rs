//! Where values that stand for exports come through a rendering, and a try: what is the same with other ones, but for the values
//! themselves, is shown with what they stand for (C-369).

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use orangery_api::execution::DeployItemTemplate;
use orangery_cli::{
    command::plan::ItemPlan,
    offline::{OpaqueValues, RenderedInstallation},
};
use orangery_proposal::PlannedObject;
use serde_json::{Value, json};

/// What is drawn for the values of a rendering; those of the second one are longer.
pub(super) fn drawn(secret: &[u8], rendering: usize) -> String {
    HEXLOWER.encode(secret.get(..4 + 2 * rendering).unwrap_or(secret))
}

/// The values of two renderings.
#[derive(Clone, Copy)]
pub(super) struct OpaquePair<'a> {
    pub(super) values: &'a OpaqueValues,
    pub(super) other: &'a OpaqueValues,
}

/// An Installation, rendered with values that stand for others, and with other ones.
#[derive(Clone, Copy)]
pub(super) struct RenderedTwice<'a> {
    pub(super) rendered: &'a RenderedInstallation,
    /// The same with the other values; `None` where nothing stands for anything.
    pub(super) second: Option<&'a RenderedInstallation>,
    pub(super) values: Option<OpaquePair<'a>>,
    /// The annotation of the root that has charts kept.
    pub(super) cached: Option<&'a str>,
}

impl<'a> RenderedTwice<'a> {
    /// Why what it does is decided later.
    pub(super) fn decided_later(&self) -> Option<String> {
        let Some(second) = self.second.filter(|_| self.rendered.waits_for.is_none()) else {
            return self.rendered.waits_for.as_deref().map(|why| self.display(why));
        };
        if self.shape() == RenderedTwice::of(second).shape() {
            return None;
        }
        Some("exports that come in the job: which items and sub-installations it has depends on them".to_owned())
    }

    fn of(rendered: &'a RenderedInstallation) -> Self {
        Self { rendered, second: None, values: None, cached: None }
    }

    /// Which items and sub-installations there are.
    fn shape(&self) -> Value {
        let of = self.rendered;
        let items = of.deploy_items.iter().map(|item| json!([item.name, item.type_, item.depends_on]));
        let below = of.subinstallations.iter().map(|of| &of.name);
        json!([
            items.collect::<Vec<_>>(),
            below.collect::<Vec<_>>(),
            of.not_wanted,
            of.not_wanted_subinstallations,
            of.waits_for.is_some()
        ])
    }

    /// Those below it.
    pub(super) fn below(self) -> impl Iterator<Item = RenderedTwice<'a>> {
        let second =
            move |name: &str| self.second.and_then(|second| second.subinstallations.iter().find(|of| of.name == name));
        self.rendered.subinstallations.iter().map(move |rendered| RenderedTwice {
            rendered,
            second: second(&rendered.name),
            ..self
        })
    }

    /// An item with the other values, where it has any.
    pub(super) fn second(&self, item: &DeployItemTemplate) -> Option<&'a DeployItemTemplate> {
        let second = self.second?.deploy_items.iter().find(|second| second.name == item.name)?;
        (second != item).then_some(second)
    }

    /// A text with what the values in it stand for.
    pub(super) fn display(&self, text: &str) -> String {
        self.values.map_or_else(|| text.to_owned(), |values| values.values.display(text))
    }
}

impl OpaquePair<'_> {
    /// What is known of an item that was tried out with either values.
    pub(super) fn joined(self, plan: ItemPlan, second: ItemPlan) -> ItemPlan {
        let text = |text: &String| self.values.display(text);
        if let Some(failure) = plan.failure.as_ref().or(second.failure.as_ref()) {
            let why = format!(
                "with values that stand for exports which come in the job, {}",
                self.other.display(&text(failure))
            );
            return ItemPlan { failure: None, objects: Vec::new(), decided_later: Some(why), ..plan };
        }
        let known: BTreeMap<String, PlannedObject> =
            second.objects.iter().map(|object| display(object, self.other)).map(keyed).collect();
        let mut unknown = Vec::new();
        let objects = plan.objects.iter().map(|object| {
            let (name, object) = keyed(display(object, self.values));
            if known.get(&name) == Some(&object) {
                return object;
            }
            unknown.push(name);
            PlannedObject { changes: Vec::new(), object: None, ..object }
        });
        let objects = objects.collect();
        let mut notes: Vec<String> = plan.notes.iter().map(text).collect();
        notes.extend(unknown.into_iter().map(|name| format!("what becomes of {name} is known after apply")));
        ItemPlan { objects, notes, ..plan }
    }
}

/// An object with what the values in it stand for.
fn display(object: &PlannedObject, values: &OpaqueValues) -> PlannedObject {
    let text = values.display(&json!(object).to_string());
    serde_json::from_str(&text).unwrap_or_else(|_| object.clone())
}

/// An object by what it is called.
fn keyed(object: PlannedObject) -> (String, PlannedObject) {
    let namespace = object.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
    (format!("{} {namespace}{}", object.kind, object.name), object)
}
