//! Reading objects of the host cluster that no store knows.

use kube::{Api, Client, core::NamespaceResourceScope};
use orangery_core::{
    error::{Code, Failure},
    name::{Namespace, ObjectName, is_path_segment},
    step::{Halt, Step},
};
use serde::de::DeserializeOwned;

/// Whether an object of this name can be asked for (C-74). Names stand in what others wrote, and the server is asked with the
/// operator's own rights: `../x` would ask for something else.
///
/// # Errors
/// It cannot be, however often it is tried.
pub(crate) fn check_name<K>(namespace: &Namespace, name: &ObjectName) -> Step<()>
where
    K: kube::Resource<DynamicType = ()>,
{
    if is_path_segment(name) {
        return Ok(());
    }
    let kind = K::kind(&());
    let message = format!(
        "{kind} {:?} in namespace {namespace} is not looked for: no object can have that name; correct it where it is named",
        name.as_str()
    );
    Err(Halt::Stall(Failure::new("ReadImports", "InvalidName", message).with_code(Code::ConfigurationProblem)))
}

/// One object of the host cluster; `None` where it does not exist.
///
/// # Errors
/// The server could not be asked, which is tried again; or the name is none ([`check_name`]).
pub(crate) async fn get<K>(client: &Client, namespace: &Namespace, name: &ObjectName) -> Step<Option<K>>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    check_name::<K>(namespace, name)?;
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|error| {
        let kind = K::kind(&());
        Halt::Retry(Failure::new(
            "ReadImports",
            "ReadFailed",
            format!("{kind} {namespace}/{name} could not be read: {error}"),
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Secret;
    use kube::client::Body;

    use super::*;

    #[tokio::test]
    async fn c_74_a_name_that_is_a_path_is_never_asked_for() {
        static SENT: AtomicUsize = AtomicUsize::new(0);
        let service = tower::service_fn(|_: Request<Body>| {
            SENT.fetch_add(1, Ordering::SeqCst);
            let found = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "top"}}"#;
            async move { Ok::<_, std::convert::Infallible>(Response::new(Body::from(found.as_bytes().to_vec()))) }
        });
        let client = Client::new(service, "evil");
        for name in ["../../good/secrets/top", "..", "a/b", "a?b", "a%2fb", "a\u{1b}]0;pwned\u{7}\nforged\u{202e}", ""]
        {
            let answer = get::<Secret>(&client, &"evil".into(), &name.into()).await;
            let Err(Halt::Stall(failure)) = answer else { panic!("{name:?}: {answer:?}") };
            let expected = format!(
                "Secret {name:?} in namespace evil is not looked for: no object can have that name; correct it where it is \
                 named"
            );
            assert_eq!(failure.message, expected);
            assert!(!failure.message.contains(['\n', '\u{1b}', '\u{202e}']), "{failure}");
        }
        assert_eq!(SENT.load(Ordering::SeqCst), 0);
        assert!(get::<Secret>(&client, &"evil".into(), &"top".into()).await.unwrap().is_some());
        assert_eq!(SENT.load(Ordering::SeqCst), 1);
    }
}
