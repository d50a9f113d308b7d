//! What of an item's state would show values of Secrets in its status: there it is masked or left out, and beside it all of it
//! is encrypted, so that component and host go on with what they had (C-85).

use std::borrow::Cow;

use orangery_core::masking::Masker;
use orangery_proposal::inventory::Inventory;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Additions;

/// What a component had in the status before, where not all of it was shown.
#[derive(Default)]
pub(crate) struct ShownStatus {
    pub(crate) whole: Option<Value>,
    pub(crate) shown: Map<String, Value>,
}

impl ShownStatus {
    /// How the same was shown; `None` for another one, or where nothing was hidden.
    fn of(self, status: Option<&Value>) -> Option<Map<String, Value>> {
        (self.whole.is_some() && self.whole.as_ref() == status).then_some(self.shown)
    }
}

/// What is encrypted.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hidden {
    /// What the component keeps, without a mask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Value>,
    /// The inventory with what is laid over objects before they are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) managed_resources: Option<Value>,
    /// Of what the host keeps, what has words of components in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) additions: Option<Additions>,
}

impl Hidden {
    /// Whether nothing is hidden.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a component keeps, as it may be shown. What was hidden before is hidden as long as it is the same, whatever is
    /// known to be secret by now. A kind that would have to be masked is left out.
    pub(crate) fn status(
        &mut self,
        status: Option<&Value>,
        before: ShownStatus,
        masker: &Masker,
    ) -> Map<String, Value> {
        let status = status.filter(|status| status.is_object());
        if let Some(shown) = before.of(status) {
            self.status = status.cloned();
            return shown;
        }
        let mut shown = status.cloned().unwrap_or_else(|| json!({}));
        masker.mask_value(&mut shown);
        let mut shown = shown.as_object().cloned().unwrap_or_default();
        if let Some(status) = status.filter(|status| status.as_object() != Some(&shown)) {
            for field in ["apiVersion", "kind"] {
                if shown.get(field) != status.get(field) {
                    shown.remove(field);
                }
            }
            self.status = Some(status.clone());
        }
        shown
    }

    /// An inventory as it may be shown: it names its objects, whatever they are called, and not what is laid over them.
    pub(crate) fn inventory<'i>(&mut self, inventory: &'i Inventory, masker: &Masker) -> Cow<'i, Inventory> {
        let shows = |change: &Value| masker.finds(&change.to_string());
        if !inventory.0.values().any(|entry| entry.before_deletion.as_ref().is_some_and(shows)) {
            return Cow::Borrowed(inventory);
        }
        self.managed_resources = inventory.list();
        let mut shown = inventory.clone();
        for entry in shown.0.values_mut() {
            entry.before_deletion = entry.before_deletion.take().filter(|change| !shows(change));
        }
        Cow::Owned(shown)
    }

    /// What the host keeps, as it may be shown.
    pub(crate) fn additions(&mut self, additions: Additions, masker: &Masker) -> Additions {
        let (words, rest) = additions.clone().split();
        if !masker.finds(&json!(words).to_string()) {
            return additions;
        }
        self.additions = Some(words);
        rest
    }
}
