//! A server that accepts connections and says nothing.

use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::AbortHandle};

/// Listens until it is dropped.
pub struct SilentServer {
    address: String,
    kubeconfig: String,
    held: watch::Receiver<usize>,
    task: AbortHandle,
}

impl SilentServer {
    /// On a port of its own.
    pub async fn start() -> SilentServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (count, counted) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                held.push(connection);
                count.send_replace(held.len());
            }
        });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let (address, kubeconfig) = (address.to_string(), kubeconfig.to_string());
        SilentServer { address, kubeconfig, held: counted, task: task.abort_handle() }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many connections have been made.
    pub fn connections(&self) -> usize {
        *self.held.borrow()
    }

    /// Waits until so many connections have been made.
    pub async fn holds(&self, count: usize) {
        let held = self.held.clone().wait_for(|held| *held >= count).await.map(|held| *held);
        assert!(held.is_ok(), "it listens no more");
    }

    /// What a Target needs to reach it.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }
}

impl Drop for SilentServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
