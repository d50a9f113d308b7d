//! Which object is meant, and which deploy item has it.

use std::{collections::BTreeSet, str::FromStr};

use kube::Client;
use orangery_api::{GROUP, deploy_item::DeployItem};
use orangery_core::name::{ApiVersion, Kind, Namespace};
use serde_json::Value;

use crate::{call::CallError, listed};

/// Deploy items that are asked for at once.
const PAGE: u32 = 500;

/// How many deploy items an error names.
const MOST_NAMED: usize = 5;

/// Short names of kubectl, for kinds that every cluster has.
const SHORT_NAMES: [(&str, &str); 24] = [
    ("cm", "configmap"),
    ("svc", "service"),
    ("deploy", "deployment"),
    ("sts", "statefulset"),
    ("ds", "daemonset"),
    ("rs", "replicaset"),
    ("po", "pod"),
    ("ns", "namespace"),
    ("sa", "serviceaccount"),
    ("pvc", "persistentvolumeclaim"),
    ("pv", "persistentvolume"),
    ("ing", "ingress"),
    ("cj", "cronjob"),
    ("hpa", "horizontalpodautoscaler"),
    ("pdb", "poddisruptionbudget"),
    ("crd", "customresourcedefinition"),
    ("netpol", "networkpolicy"),
    ("sc", "storageclass"),
    ("pc", "priorityclass"),
    ("quota", "resourcequota"),
    ("limits", "limitrange"),
    ("ep", "endpoints"),
    ("csr", "certificatesigningrequest"),
    ("no", "node"),
];

/// An object by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSubject {
    /// In lower case.
    kind: Kind,
    /// Its API group, where it is said.
    group: Option<String>,
    name: String,
}

impl FromStr for ObjectSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((kind, name)) = text.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty())
        else {
            return Err(format!("{text:?} names no object; write KIND/NAME, as configmap/web"));
        };
        let kind = kind.to_lowercase();
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind.to_owned(), Some(group.to_owned())),
            None => (kind, None),
        };
        let whole = SHORT_NAMES.iter().find(|(short, _)| *short == kind).map(|(_, whole)| (*whole).to_owned());
        Ok(Self { kind: whole.unwrap_or(kind).into(), group, name: name.to_owned() })
    }
}

impl ObjectSubject {
    /// Whether an object of this kind and name is meant.
    pub fn is(&self, api_version: &ApiVersion, kind: &Kind, name: &str) -> bool {
        let is_group = self.group.as_deref().is_none_or(|group| group == api_version.group());
        is_group && name == self.name && plurals(&kind.to_lowercase()).iter().any(|name| *name == *self.kind)
    }
}

/// A kind in lower case, and what its plural may be.
fn plurals(singular: &str) -> Vec<String> {
    let mut all = vec![singular.to_owned(), format!("{singular}s"), format!("{singular}es")];
    all.extend(singular.strip_suffix('y').map(|stem| format!("{stem}ies")));
    all
}

/// A deploy item that has an object.
#[derive(Clone, Debug)]
pub struct ObjectHolder {
    /// The item.
    pub item: DeployItem,
    /// The namespace of the object; `None` for a kind without.
    pub namespace: Option<Namespace>,
}

/// Why it is not known which deploy item is meant.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// Deploy items cannot be listed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// None has it.
    #[error(
        "no deploy item {place} has {object} in its inventory; orangery inspect -A shows all deploy items, and their \
         status.providerStatus.managedResources what each has, the first 200: name the item with --item where it has more{elsewhere}"
    )]
    None {
        /// What is looked for.
        object: String,
        /// Where was looked.
        place: String,
        /// Where there is one of the name; empty, or the rest of the sentence.
        elsewhere: String,
    },
    /// Several have it.
    #[error(
        "several deploy items have {object}: {items}; name one with --item, or the namespace of the object with -n"
    )]
    Several {
        /// What is looked for.
        object: String,
        /// Some of them.
        items: String,
    },
}

/// The deploy item that has an object: of those in all namespaces, or in the own one where no others may be listed. `wanted` is the
/// namespace of the object, or else that of the item; `item` the item's name, with its namespace or without.
///
/// # Errors
/// [`SubjectError`]
pub async fn holder(
    client: &Client,
    subject: &ObjectSubject,
    (wanted, item): (Option<&Namespace>, Option<&str>),
) -> Result<ObjectHolder, SubjectError> {
    let own: Namespace = wanted.cloned().unwrap_or_else(|| client.default_namespace().into());
    let wish = (wanted, item);
    let (all, place) = match holders(client, None, (subject, wish)).await {
        Err(CallError::Forbidden { .. }) => (
            holders(client, Some(&own), (subject, wish)).await?,
            format!("in namespace {own}, all that may be listed,"),
        ),
        all => (all?, "in any namespace".to_owned()),
    };
    chosen(all, subject, wish, place)
}

fn chosen(
    all: Vec<ObjectHolder>,
    subject: &ObjectSubject,
    (wanted, item): (Option<&Namespace>, Option<&str>),
    place: String,
) -> Result<ObjectHolder, SubjectError> {
    let object = format!("{}/{}", subject.kind, subject.name);
    let (named, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|of| item.is_none_or(|item| is_named(&of.item, item)));
    let (in_place, others) = match wanted {
        None => (named, others),
        Some(wanted) => {
            let (of_object, rest): (Vec<_>, Vec<_>) =
                named.into_iter().partition(|of| of.namespace.as_ref().is_none_or(|namespace| namespace == wanted));
            let (of_item, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|of| of.item_namespace() == *wanted);
            (if of_object.is_empty() { of_item } else { of_object }, rest.into_iter().chain(others).collect())
        }
    };
    let mut in_place = in_place.into_iter();
    match (in_place.next(), in_place.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => {
            let elsewhere = others.first().map(ObjectHolder::place);
            let elsewhere = elsewhere.map(|place| format!("; there is one of that name: {place}")).unwrap_or_default();
            let place = match (item, wanted) {
                (Some(item), _) => format!("called {item}"),
                (None, Some(wanted)) => format!("of namespace {wanted}, or with the object there,"),
                (None, None) => place,
            };
            Err(SubjectError::None { object, place, elsewhere })
        }
        (Some(first), Some(second)) => {
            let all = [first, second].into_iter().chain(in_place);
            let items: Vec<String> = all.take(MOST_NAMED).map(|of| of.place()).collect();
            Err(SubjectError::Several { object, items: items.join(", ") })
        }
    }
}

impl ObjectHolder {
    fn name(&self) -> &str {
        self.item.metadata.name.as_deref().unwrap_or_default()
    }

    fn item_namespace(&self) -> Namespace {
        self.item.metadata.namespace.clone().unwrap_or_default().into()
    }

    fn place(&self) -> String {
        let object = self.namespace.as_ref().map(|namespace| format!(", with the object in {namespace}"));
        format!("{}/{}{}", self.item_namespace(), self.name(), object.unwrap_or_default())
    }
}

/// Whether an item is meant by its name, with its namespace or without.
fn is_named(of: &DeployItem, item: &str) -> bool {
    let (namespace, name) = (of.metadata.namespace.as_deref(), of.metadata.name.as_deref().unwrap_or_default());
    item == name || item == format!("{}/{name}", namespace.unwrap_or_default())
}

async fn holders(
    client: &Client,
    namespace: Option<&Namespace>,
    (subject, wish): (&ObjectSubject, (Option<&Namespace>, Option<&str>)),
) -> Result<Vec<ObjectHolder>, CallError> {
    let mut found = Vec::new();
    let take = |item: DeployItem| found.extend(held(item, subject, wish));
    listed::each(client, namespace, (GROUP, PAGE), take).await?;
    Ok(found)
}

/// The objects of an item that are meant, as its status lists them. An item that is named itself may have it unlisted.
fn held(
    item: DeployItem,
    subject: &ObjectSubject,
    (wanted, name): (Option<&Namespace>, Option<&str>),
) -> Vec<ObjectHolder> {
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let listed = status.and_then(|status| status.get("managedResources")).and_then(Value::as_array);
    let mut namespaces: BTreeSet<Option<Namespace>> = listed
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let resource = entry.get("resource")?;
            let text = |field: &str| resource.get(field).and_then(Value::as_str);
            let (api_version, kind, name) = (text("apiVersion")?, text("kind")?, text("name")?);
            let namespace = text("namespace").filter(|namespace| !namespace.is_empty()).map(Namespace::from);
            subject.is(&api_version.into(), &kind.into(), name).then_some(namespace)
        })
        .collect();
    if namespaces.is_empty() && name.is_some_and(|name| is_named(&item, name)) {
        namespaces.insert(wanted.cloned());
    }
    namespaces.into_iter().map(|namespace| ObjectHolder { item: item.clone(), namespace }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(namespace: &str, name: &str, objects: &[(&str, &str, &str, &str)]) -> DeployItem {
        let entry = |(api_version, kind, namespace, name): &(&str, &str, &str, &str)| json!({"policy": "manage", "resource": {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name}});
        let managed: Vec<Value> = objects.iter().map(entry).collect();
        serde_json::from_value(json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"type": "t"},
            "status": {"phase": "Succeeded", "providerStatus": {"managedResources": managed}},
        }))
        .unwrap()
    }

    fn subject(text: &str) -> ObjectSubject {
        text.parse().unwrap()
    }

    #[test]
    fn c_245_an_object_is_named_as_kubectl_names_it() {
        let is = |text: &str, api_version: &str, kind: &str| subject(text).is(&api_version.into(), &kind.into(), "web");
        for text in ["Deployment/web", "deployments/web", "deploy/web", "deployment.apps/web"] {
            assert!(is(text, "apps/v1", "Deployment"), "{text}");
        }
        assert!(is("networkpolicies.networking.k8s.io/web", "networking.k8s.io/v1", "NetworkPolicy"));
        assert!(is("ingresses/web", "networking.k8s.io/v1", "Ingress"));
        assert!(!is("deployment.apps/web", "other/v1", "Deployment") && !is("deploy/other", "apps/v1", "Deployment"));
        for text in ["web", "/web", "cm/"] {
            let why = format!("{text:?} names no object; write KIND/NAME, as configmap/web");
            assert_eq!(text.parse::<ObjectSubject>().unwrap_err(), why);
        }
    }

    #[test]
    fn c_245_the_deploy_item_of_an_object_is_found_or_it_is_said_what_to_name() {
        let map = |namespace: &'static str| ("v1", "ConfigMap", namespace, "app");
        let items = [
            item("one", "a", &[map("x"), ("v1", "Secret", "x", "app")]),
            item("two", "b", &[map("y")]),
            item("y", "c", &[map("z"), ("v1", "Namespace", "", "app")]),
        ];
        let subject = subject("cm/app");
        let held: Vec<ObjectHolder> =
            items.iter().flat_map(|item| held(item.clone(), &subject, (None, None))).collect();
        let choose = |wanted: Option<&str>, item: Option<&str>| {
            let wanted = wanted.map(Namespace::from);
            let place = "in any namespace".to_owned();
            let chosen = chosen(held.clone(), &subject, (wanted.as_ref(), item), place);
            chosen.map(|of| of.place()).map_err(|error| error.to_string())
        };
        assert_eq!(choose(Some("x"), None).unwrap(), "one/a, with the object in x");
        assert_eq!(
            choose(Some("y"), None).unwrap(),
            "two/b, with the object in y",
            "the namespace of the object comes first"
        );
        assert_eq!(choose(Some("one"), None).unwrap(), "one/a, with the object in x", "then that of the item");
        assert_eq!(choose(None, Some("b")).unwrap(), choose(None, Some("two/b")).unwrap());
        let several = "several deploy items have configmap/app: one/a, with the object in x, two/b, with the object in y, y/c, with the \
                       object in z; name one with --item, or the namespace of the object with -n";
        assert_eq!(choose(None, None).unwrap_err(), several);
        let none = "no deploy item of namespace other, or with the object there, has configmap/app in its inventory; orangery inspect -A \
                    shows all deploy items, and their status.providerStatus.managedResources what each has, the first 200: name the item with \
                    --item where it has more; there is one of that name: one/a, with the object in x";
        assert_eq!(choose(Some("other"), None).unwrap_err(), none);
    }

    #[test]
    fn c_245_a_status_that_somebody_has_written_names_nothing_that_is_no_object() {
        let mut broken = item("one", "a", &[]);
        for status in
            [json!(7), json!({"managedResources": "x"}), json!({"managedResources": [{"resource": {"kind": 7}}, 1]})]
        {
            broken.status.as_mut().unwrap().provider_status = Some(status);
            assert!(held(broken.clone(), &subject("cm/app"), (None, Some("b"))).is_empty());
            assert_eq!(held(broken.clone(), &subject("cm/app"), (None, Some("a"))).len(), 1, "its list may be cut");
        }
    }
}
