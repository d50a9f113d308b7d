//! A host for tests of what asks no cluster, no component and no registry.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use orangery_blueprint::template_engine::TemplateEngine;
use orangery_core::name::JobId;
use orangery_embedded::{Options, Server, Storage, start};
use orangery_ocm::{Artifact, Unavailable};
use orangery_proposal::deployer::Deployer;

use super::*;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Rng for Still {
    fn job_id(&self) -> JobId {
        "job".into()
    }

    fn fraction(&self) -> f64 {
        0.0
    }

    fn secret(&self) -> [u8; 32] {
        [0; 32]
    }
}

impl Plugins for Still {
    fn deployer(&self, _: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        None
    }

    fn template_engine(&self, _: &str, _: Option<&orangery_core::name::Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        None
    }

    fn bundled_engine(&self, name: &str, _: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        unreachable!("{name}: no template is rendered here")
    }

    fn template_types(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A server in memory that knows these kinds beside its own, and a client of it.
pub(crate) async fn server(kinds: &[CustomResourceDefinition]) -> (Server, Client) {
    let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let options = Options { storage: Storage::Memory, address: "127.0.0.1:0".parse().unwrap(), clock };
    let server = start(options).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in kinds {
        definitions.create(&PostParams::default(), kind).await.unwrap();
    }
    (server, client)
}

/// A host of a cluster that is there.
pub(crate) fn host_on(client: Client) -> Arc<ControllerContext> {
    host_of(client, Arc::new(Unavailable))
}

fn host_of(client: Client, components: Arc<dyn ComponentVersions>) -> Arc<ControllerContext> {
    let (still, key) = (|| Arc::new(Still), HostKey::new(&[0; 32]));
    Arc::new(ControllerContext::new((client, crate::stores()), still(), components, still(), still(), key))
}

/// A host whose cluster is never asked: nothing listens there.
pub(crate) fn host() -> Arc<ControllerContext> {
    host_with(Arc::new(Unavailable))
}

/// The same over component versions.
pub(crate) fn host_with(components: Arc<dyn ComponentVersions>) -> Arc<ControllerContext> {
    host_of(Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap(), components)
}
