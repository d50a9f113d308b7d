//! Lists of objects, of which one that others made too deep to be decoded keeps nothing from the rest (C-153).

use std::ops::ControlFlow;

use kube::{
    Client, Resource,
    api::ListParams,
    core::{ObjectList, Request},
};
use orangery_core::{
    levels::{self, DEEPEST_OBJECT},
    name::{Kind, Namespace, ObjectName},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::{Value, value::RawValue};

use crate::call::{CallError, CallSubject};

/// A page of a list.
pub(crate) struct ListedPage<K> {
    /// Without what is too deep in them.
    pub(crate) objects: Vec<K>,
    /// By what the next page is asked for; `None` for the last one.
    pub(crate) next: Option<String>,
}

/// A page of the objects of a kind in a namespace, or in all where there is none.
///
/// # Errors
/// Those of the client.
pub(crate) async fn page<K>(
    client: &Client,
    namespace: Option<&Namespace>,
    params: &ListParams,
) -> kube::Result<ListedPage<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let path = K::url_path(&(), namespace.map(Namespace::as_str));
    let request = Request::new(path).list(params).map_err(kube::Error::BuildRequest)?;
    let page: ObjectList<ListedObject<K>> = client.request(request).await?;
    let next = next(&page, params);
    Ok(ListedPage { objects: page.items.into_iter().map(|ListedObject(object)| object).collect(), next })
}

/// By what the page behind this one is asked for. A server that has nothing more to tell, or sends back what it was asked by, would be
/// asked for ever.
fn next<K: Clone>(page: &ObjectList<ListedObject<K>>, asked: &ListParams) -> Option<String> {
    let token = page.metadata.continue_.clone().filter(|token| !token.is_empty())?;
    let goes_on = !page.items.is_empty() && asked.continue_token.as_ref() != Some(&token);
    goes_on.then_some(token)
}

/// Hands on all objects of a kind in a namespace, or in all where there is none: so many are asked for at once.
///
/// # Errors
/// The kind cannot be listed.
pub(crate) async fn each<K>(
    client: &Client,
    namespace: Option<&Namespace>,
    (group, at_once): (&str, u32),
    mut take: impl FnMut(K),
) -> Result<(), CallError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let mut params = ListParams::default().limit(at_once);
    loop {
        let page = page::<K>(client, namespace, &params).await.map_err(|error| {
            let (kind, all) = (Kind::from(K::kind(&()).into_owned()), Namespace::default());
            let subject =
                CallSubject { kind: &kind, group, namespace: namespace.unwrap_or(&all), name: ObjectName::EMPTY };
            CallError::of(subject, error)
        })?;
        page.objects.into_iter().for_each(&mut take);
        match page.next {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// Hands on the objects of a path, as they are, until `take` wants no more.
///
/// # Errors
/// Those of the client.
pub(crate) async fn each_value(
    client: &Client,
    path: &str,
    at_once: u32,
    mut take: impl FnMut(Value) -> ControlFlow<()>,
) -> kube::Result<()> {
    let mut params = ListParams::default().limit(at_once);
    loop {
        let request = Request::new(path).list(&params).map_err(kube::Error::BuildRequest)?;
        let page: ObjectList<ListedObject<Value>> = client.request(request).await?;
        let next = next(&page, &params);
        if page.items.into_iter().try_for_each(|ListedObject(object)| take(object)).is_break() {
            return Ok(());
        }
        match next {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

#[derive(Clone)]
struct ListedObject<K>(K);

impl<'de, K: DeserializeOwned> Deserialize<'de> for ListedObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let text = text.get();
        let is_deep = levels::of_json(text) > DEEPEST_OBJECT;
        let object =
            if is_deep { serde_json::from_str(&levels::cut(text, DEEPEST_OBJECT)) } else { serde_json::from_str(text) };
        object.map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use http::{Request as HttpRequest, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{ResourceExt as _, client::Body};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn c_153_an_object_that_is_too_deep_is_listed_without_what_is_so_and_keeps_no_other_back() {
        let deep = |levels: usize| format!("{}1{}", "{\"f:a\":".repeat(levels), "}".repeat(levels));
        let object = |name: &str, levels: usize| {
            let fields = format!("[{{\"manager\": \"m\", \"fieldsV1\": {}}}]", deep(levels));
            format!(
                "{{\"metadata\": {{\"name\": \"{name}\", \"managedFields\": {fields}}}, \"data\": {{\"k\": \"v\"}}}}"
            )
        };
        let list = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"ConfigMapList\", \"metadata\": {{\"continue\": \"more\"}}, \"items\": [{}, {}, {}]}}",
            object("flat", 1),
            object("deep", 200),
            object("deepest", 100_000)
        );
        let service = tower::service_fn(move |request: HttpRequest<Body>| {
            let answer = Response::new(Body::from(list.clone().into_bytes()));
            assert_eq!(request.uri().path(), "/api/v1/namespaces/ns/configmaps");
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let client = Client::new(service, "default");
        let params = ListParams::default().limit(3);
        let page = page::<ConfigMap>(&client, Some(&"ns".into()), &params).await.unwrap();
        let names: Vec<String> = page.objects.iter().map(ConfigMap::name_any).collect();
        assert_eq!(
            (names, page.next.as_deref()),
            (["flat", "deep", "deepest"].map(str::to_owned).to_vec(), Some("more"))
        );
        assert!(page.objects.iter().all(|object| object.data.as_ref().is_some_and(|data| data["k"] == "v")));
    }

    #[tokio::test]
    async fn c_153_a_list_ends_where_a_server_tells_nothing_new() {
        let read = async |items: &'static str| {
            let (client, sent) = crate::command::tests::server(move |line| {
                let list =
                    json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": "same"}, "items": []});
                let items = if line.contains("continue=") { items } else { "[{\"metadata\": {\"name\": \"a\"}}]" };
                let items: Value = serde_json::from_str(items).unwrap();
                (
                    200,
                    Value::Object(
                        list.as_object().unwrap().clone().into_iter().chain([("items".to_owned(), items)]).collect(),
                    ),
                )
            });
            let mut found = 0;
            each(&client, None, ("", 1), |_: ConfigMap| found += 1).await.unwrap();
            let path = "/api/v1/configmaps";
            let count = |_| {
                found += 1;
                ControlFlow::Continue(())
            };
            each_value(&client, path, 1, count).await.unwrap();
            let requests = sent.lock().unwrap().len();
            (found, requests)
        };
        assert_eq!(read("[{\"metadata\": {\"name\": \"b\"}}]").await, (4, 4));
        assert_eq!(read("[]").await, (2, 4));
    }
}
