use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use orangery_api::context::Context;
use orangery_core::port::{Deployer, Renderer};
use orangery_reconcile::Key;
use serde_json::json;

use super::*;
use crate::fixture::server;

const PATIENCE: Duration = Duration::from_secs(30);

/// No components: nothing is deployed.
struct Bare;

impl Plugins for Bare {
    fn deployer(&self, _: &str) -> Option<Arc<dyn Deployer>> {
        None
    }

    fn renderer(&self, _: &str) -> Option<Arc<dyn Renderer>> {
        None
    }

    fn own_renderer(&self, name: &str, _: Vec<u8>) -> Arc<dyn Renderer> {
        unreachable!("{name}: no blueprint is rendered here")
    }

    fn template_types(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Waits until the operator knows a Context.
async fn context(operator: &Operator, namespace: &str) {
    let (sender, mut known) = tokio::sync::mpsc::unbounded_channel();
    let contexts = operator.stores().contexts.clone();
    // Nobody listens any more once the Context is there.
    contexts.subscribe(move |_| {
        let _ = sender.send(());
    });
    let key = Key::new(namespace, "default");
    let appeared = async {
        while contexts.get(&key).is_none() {
            known.recv().await;
        }
    };
    tokio::time::timeout(PATIENCE, appeared).await.expect("the Context is made");
}

#[tokio::test]
async fn an_operator_of_one_namespace_leaves_the_others_alone_and_stops_when_told() {
    let (server, client) = server().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["mine", "other"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    let config = OperatorConfig::new(client.clone(), Arc::new(Bare));
    let config = OperatorConfig { namespaces: BTreeSet::from(["mine".to_owned()]), ..config };
    let operator = Operator::start(config).await.unwrap();
    tokio::time::timeout(PATIENCE, operator.ready()).await.expect("the first lists come in");
    context(&operator, "mine").await;
    let made = Api::<Context>::all(client).list(&ListParams::default()).await.unwrap();
    let places: Vec<Key> = made.items.iter().map(Key::of).collect();
    assert_eq!(places, [Key::new("mine", "default")]);
    let names: Vec<&str> = operator.queues().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["installation", "execution", "deploy-item"]);
    tokio::time::timeout(PATIENCE, operator.stop()).await.expect("it stops");
    server.stop().await;
}

#[tokio::test]
async fn a_second_operator_finds_the_definitions_of_the_first() {
    let (server, client) = server().await;
    let expecting =
        || OperatorConfig { definitions: Definitions::Expect, ..OperatorConfig::new(client.clone(), Arc::new(Bare)) };
    let refused = Operator::start(expecting()).await.map(drop);
    assert!(matches!(refused, Err(OperatorError::Definitions(DefinitionsError::Missing))), "{refused:?}");
    let installing = OperatorConfig::new(client.clone(), Arc::new(Bare));
    Operator::start(installing).await.unwrap().stop().await;
    let second = Operator::start(expecting()).await.unwrap();
    tokio::time::timeout(PATIENCE, second.ready()).await.expect("the first lists come in");
    context(&second, "default").await;
    second.stop().await;
    server.stop().await;
}
