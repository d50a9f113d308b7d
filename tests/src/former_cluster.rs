//! A second cluster, to which a Target leads before it leads to that of the world.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use orangery_core::port::Clock as _;
use orangery_embedded::{Options, Server, Storage};
use orangery_runtime::machine::SystemClock;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cluster::own_target,
    objects::Objects,
    proxy::{Proxy, Sound},
};

/// Where it is reached: Targets that were kept name it. A loopback address that nothing else takes.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 79, 82, 72)), 6443);

/// The name of the Target.
pub const MOVING: &str = "moving";

/// An embedded server behind a proxy at an address of its own; one at a time.
pub struct FormerCluster {
    server: Server,
    /// Its objects.
    pub objects: Objects,
    proxy: Proxy,
    /// Where its objects lie, if not in memory.
    folder: Option<TempDir>,
}

impl FormerCluster {
    /// Starts it, with its objects in memory.
    pub async fn start() -> FormerCluster {
        FormerCluster::of(None).await
    }

    /// The same with its objects in this folder.
    pub async fn in_folder(folder: TempDir) -> FormerCluster {
        FormerCluster::of(Some(folder)).await
    }

    async fn of(folder: Option<TempDir>) -> FormerCluster {
        let storage = folder.as_ref().map_or(Storage::Memory, |folder| Storage::Folder(folder.path().to_owned()));
        let clock = Arc::new(|| SystemClock.now());
        let options = Options { storage, address: ([127, 0, 0, 1], 0).into(), clock };
        let server = orangery_embedded::start(options).await.expect("the server starts");
        let objects = Objects::of(server.kubeconfig()).await;
        let proxy = Proxy::start_at(ADDRESS, &server.kubeconfig(), Arc::new(Sound)).await;
        FormerCluster { server, objects, proxy, folder }
    }

    /// The Target [`MOVING`] as it leads here.
    pub fn target() -> Value {
        target(&Proxy::kubeconfig_at(ADDRESS))
    }

    /// Waits until these ConfigMaps are gone.
    pub async fn has_lost(&self, config_maps: &[&str]) {
        for name in config_maps {
            self.objects
                .expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
                .await;
        }
    }

    /// Ends it. Answers the folder of its objects, if it has one, with all that was written.
    pub async fn stop(self) -> Option<TempDir> {
        drop((self.proxy, self.objects));
        self.server.stop().await;
        self.folder
    }
}

/// The Target [`MOVING`] with this kubeconfig.
pub fn target(kubeconfig: &str) -> Value {
    let mut target = own_target(kubeconfig);
    if let Some(name) = target.pointer_mut("/metadata/name") {
        *name = json!(MOVING);
    }
    target
}
