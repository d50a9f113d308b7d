//! What a field depends on: one input after the other is changed, and all is made again. Many are changed together first.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use orangery_api::deploy_item::DeployItem;
use orangery_cli::command::explain::{ExplainedInput, NotTriedInput};
use orangery_controllers::deploy_item::proposals::{ItemProposals, ProposedObject};
use orangery_proposal::{
    ObjectKey,
    field::{FieldStep, ObjectField, at, by_path, fields, numbered, put},
};
use serde_json::Value;

use super::{
    chart::{NarrowedChart, RAW},
    inputs::{RootInputs, others},
    item::{ExplainedSource, RenderedItem},
};
use crate::caller::refusal;

/// The most times that something is changed, and all made again (C-244).
pub(super) const MOST_TRIALS: usize = 1_000;

/// What other inputs lead to.
enum ChangeOutcome {
    /// Other values of these fields.
    Differs(BTreeSet<String>),
    /// Nothing, and why.
    Fails(String),
}

/// What was found out of fields.
pub(super) struct Found<T> {
    by_field: BTreeMap<String, BTreeSet<T>>,
    pub(super) not_tried: Vec<NotTriedInput>,
    /// How many inputs were left when there were enough trials.
    left_out: usize,
}

impl<T: Ord + Clone> Found<T> {
    fn nothing() -> Self {
        Self { by_field: BTreeMap::new(), not_tried: Vec::new(), left_out: 0 }
    }

    fn add(&mut self, fields: BTreeSet<String>, what: &T) {
        for field in fields {
            self.by_field.entry(field).or_default().insert(what.clone());
        }
    }

    /// What a field depends on.
    pub(super) fn of(&self, field: &str) -> Vec<T> {
        self.by_field.get(field).into_iter().flatten().cloned().collect()
    }

    /// What is to be said of it.
    pub(super) fn note(&self) -> Option<String> {
        let count = self.left_out;
        (count > 0).then(|| {
            format!("of {count} inputs, or parts of the configuration, it was not tried what depends on them: there are too many; name a field")
        })
    }
}

/// Changes what an object is made from.
pub(super) struct FieldSearch<'a> {
    pub(super) source: &'a ExplainedSource<'a>,
    pub(super) proposals: &'a ItemProposals,
    pub(super) key: &'a ObjectKey,
    /// The number of the object among those that are proposed.
    pub(super) place: usize,
    /// With what of its chart it is made, where that is enough.
    pub(super) narrowed: Option<NarrowedChart>,
    pub(super) rendered: &'a RenderedItem,
    pub(super) wanted: &'a [&'a ObjectField],
}

impl FieldSearch<'_> {
    /// The inputs that the fields depend on.
    pub(super) async fn inputs(&self, inputs: &RootInputs) -> Found<ExplainedInput> {
        let outcome = async |changes: &[(usize, usize)]| {
            let (imports, given) = inputs.changed(changes);
            match self.source.changed(imports, given).await {
                Ok(Some(item)) => self.outcome(item).await,
                Ok(None) => ChangeOutcome::Differs(self.all()),
                Err(why) => ChangeOutcome::Fails(why),
            }
        };
        let others = |leaf| inputs.others(leaf);
        let Searched { found, failed, left } = search(inputs.count(), others, outcome).await;
        let mut all = Found::nothing();
        for (leaf, fields) in found {
            inputs.input(leaf).into_iter().for_each(|input| all.add(fields.clone(), input));
        }
        let not_tried = failed.into_iter().filter_map(|(leaf, why)| Some((inputs.input(leaf)?.clone(), why)));
        all.not_tried = not_tried.map(|(input, why)| NotTriedInput { input, why }).collect();
        all.left_out = left + inputs.left_out;
        all
    }

    /// The parts of the configuration that the fields come from, by the numbers of elements: where the object stands in it as it is,
    /// the field itself, else what the component makes it from.
    pub(super) async fn config(&self, object: &Value) -> Found<String> {
        let config = self.rendered.item.spec.config.clone().unwrap_or_default();
        let mut found = Found::nothing();
        if let Some(steps) = written_out(&config, object) {
            for field in self.wanted {
                let place: Vec<FieldStep> = steps.iter().chain(&field.steps).cloned().collect();
                if at(&config, &place) == Some(&field.value) {
                    found.add(BTreeSet::from([field.path.clone()]), &numbered(&place));
                }
            }
            return found;
        }
        let (mut leaves, is_complete) = fields(&config);
        // Another value of these makes no other field: the component refuses it.
        leaves.retain(|leaf| !["/apiVersion", "/kind", RAW].contains(&leaf.pointer().as_str()));
        let changed: Vec<Vec<Value>> = leaves.iter().map(|leaf| others(&leaf.value)).collect();
        let outcome = async |changes: &[(usize, usize)]| {
            let mut config = config.clone();
            for (leaf, other) in changes {
                let (leaf, other) = (leaves.get(*leaf), changed.get(*leaf).and_then(|others| others.get(*other)));
                if let (Some(leaf), Some(other)) = (leaf, other) {
                    put(&mut config, &leaf.steps, other.clone());
                }
            }
            let mut item = self.rendered.item.clone();
            item.spec.config = Some(config);
            self.outcome(item).await
        };
        let count = |leaf: usize| changed.get(leaf).map_or(0, Vec::len);
        let searched = search(leaves.len(), count, outcome).await;
        for (leaf, fields) in searched.found {
            leaves.get(leaf).into_iter().for_each(|leaf| found.add(fields.clone(), &leaf.numbered_path()));
        }
        found.left_out = searched.left + usize::from(!is_complete);
        found
    }

    /// What an item leads to. The same item leads to the same, and its component is not asked.
    async fn outcome(&self, item: DeployItem) -> ChangeOutcome {
        if item.spec == self.rendered.item.spec {
            return ChangeOutcome::Differs(BTreeSet::new());
        }
        let proposed = match &self.narrowed {
            Some(narrowed) => narrowed.proposed(self.proposals, item).await,
            None => self.proposals.of(item).await,
        };
        let proposal = match proposed {
            Ok(proposal) => proposal,
            Err(halt) => return ChangeOutcome::Fails(refusal(&halt)),
        };
        let Some(object) = self.object(&proposal.objects) else { return ChangeOutcome::Differs(self.all()) };
        let new = by_path(&fields(object).0);
        let differs = self.wanted.iter().filter(|field| new.get(&field.path) != Some(&field.value));
        ChangeOutcome::Differs(differs.map(|field| field.path.clone()).collect())
    }

    /// The object among those that are proposed: it may have another name, and stands in its place then.
    fn object<'p>(&self, objects: &'p [ProposedObject]) -> Option<&'p Value> {
        let same = objects.iter().find(|of| of.key == *self.key);
        let place = self.narrowed.as_ref().map_or(self.place, |narrowed| narrowed.place);
        let renamed = || objects.get(place).filter(|of| of.key.kind == self.key.kind);
        same.or_else(renamed).map(|of| &of.object)
    }

    fn all(&self) -> BTreeSet<String> {
        self.wanted.iter().map(|field| field.path.clone()).collect()
    }
}

/// Where an object stands in a configuration as it is written there: what has its kind and its name.
fn written_out(config: &Value, object: &Value) -> Option<Vec<FieldStep>> {
    let identity = |of: &Value| {
        let text = |pointer: &str| of.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Some((text("/apiVersion")?, text("/kind")?, text("/metadata/name")?, text("/metadata/namespace")))
    };
    let wanted = identity(object)?;
    let is_same = |of: &Value| {
        identity(of).is_some_and(|(api_version, kind, name, namespace)| {
            // The deployer may have given it a namespace.
            (&api_version, &kind, &name) == (&wanted.0, &wanted.1, &wanted.2)
                && (namespace.is_none() || namespace == wanted.3)
        })
    };
    let mut left: Vec<(Vec<FieldStep>, &Value)> = vec![(Vec::new(), config)];
    while let Some((steps, value)) = left.pop() {
        if is_same(value) {
            return Some(steps);
        }
        let below = |step: FieldStep| steps.iter().cloned().chain([step]).collect::<Vec<_>>();
        match value {
            Value::Object(members) => {
                left.extend(members.iter().map(|(name, value)| (below(FieldStep::Member(name.clone())), value)));
            }
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                left.extend(elements.map(|(number, value)| (below(FieldStep::Element(number)), value)));
            }
            _ => {}
        }
    }
    None
}

/// What came of a search.
#[derive(Debug, Default, PartialEq, Eq)]
struct Searched {
    /// The leaves that something depends on, with the fields that do.
    found: Vec<(usize, BTreeSet<String>)>,
    /// Those for which no other value leads to anything, with the reason.
    failed: Vec<(usize, String)>,
    /// How many were not tried.
    left: usize,
}

/// Looks for the leaves that change something: groups of them first, one by one where a group does. `others` says how many other
/// values a leaf has; `outcome` is what changed leaves lead to, each with the number of its value.
async fn search(
    count: usize,
    others: impl Fn(usize) -> usize,
    outcome: impl AsyncFn(&[(usize, usize)]) -> ChangeOutcome,
) -> Searched {
    let mut searched = Searched::default();
    let mut trials = 0;
    let mut left: Vec<Range<usize>> = Vec::from_iter((count > 0).then_some(0..count));
    while let Some(group) = left.pop() {
        if trials >= MOST_TRIALS {
            searched.left += group.len();
            continue;
        }
        if group.len() > 1 {
            trials += 1;
            let together: Vec<(usize, usize)> = group.clone().map(|leaf| (leaf, 0)).collect();
            if matches!(outcome(&together).await, ChangeOutcome::Differs(fields) if fields.is_empty()) {
                continue;
            }
            let middle = group.start + group.len() / 2;
            // The first half is tried first.
            left.push(middle..group.end);
            left.push(group.start..middle);
            continue;
        }
        let leaf = group.start;
        let mut failed = None;
        for other in 0..others(leaf) {
            trials += 1;
            match outcome(&[(leaf, other)]).await {
                ChangeOutcome::Differs(fields) => {
                    failed = None;
                    if !fields.is_empty() {
                        searched.found.push((leaf, fields));
                    }
                    break;
                }
                ChangeOutcome::Fails(why) => failed = failed.or(Some(why)),
            }
        }
        searched.failed.extend(failed.map(|why| (leaf, why)));
    }
    searched
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differs(fields: &[&str]) -> ChangeOutcome {
        ChangeOutcome::Differs(fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[tokio::test]
    async fn c_243_what_changes_something_is_found_in_few_trials_and_by_its_second_value_where_its_first_fails() {
        let trials = std::cell::Cell::new(0);
        let searched = search(
            64,
            |_| 2,
            async |changes: &[(usize, usize)]| {
                trials.set(trials.get() + 1);
                match changes {
                    [(40, 0)] | [(50, _)] => ChangeOutcome::Fails("no".to_owned()),
                    [(40, 1)] => differs(&["b"]),
                    changes if changes.iter().any(|(leaf, _)| [40, 50].contains(leaf)) => {
                        ChangeOutcome::Fails("no".to_owned())
                    }
                    changes if changes.iter().any(|(leaf, _)| *leaf == 3) => differs(&["a"]),
                    _ => differs(&[]),
                }
            },
        )
        .await;
        let fields = |of: &str| BTreeSet::from([of.to_owned()]);
        assert_eq!(searched.found, [(3, fields("a")), (40, fields("b"))]);
        assert_eq!((searched.failed, searched.left), (vec![(50, "no".to_owned())], 0));
        assert!(trials.get() < 40, "{} trials", trials.get());
    }

    #[tokio::test]
    async fn c_244_limits_trials_have_a_number_and_what_is_left_is_told() {
        let searched = search(MOST_TRIALS, |_| 1, async |_: &[(usize, usize)]| differs(&["a"])).await;
        assert!(searched.left > 0 && searched.found.len() + searched.left == MOST_TRIALS, "{}", searched.left);
        let found = Found::<String> { left_out: searched.left, ..Found::nothing() };
        assert!(found.note().is_some() && Found::<String>::nothing().note().is_none());
    }

    #[test]
    fn c_243_an_object_is_found_where_a_configuration_has_it() {
        let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let config = json!({"manifests": [{"manifest": object("a")}, {"manifest": object("b")}]});
        let mut wanted = object("b");
        wanted["metadata"]["namespace"] = json!("given");
        assert_eq!(numbered(&written_out(&config, &wanted).unwrap()), "manifests[1].manifest");
        assert_eq!(written_out(&config, &object("c")), None);
        let mut elsewhere = config.clone();
        elsewhere["manifests"][1]["manifest"]["metadata"]["namespace"] = json!("other");
        assert_eq!(written_out(&elsewhere, &wanted), None);
    }
}
