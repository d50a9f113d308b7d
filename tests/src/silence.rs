//! A server that accepts connections and says nothing.

use serde_json::json;
use tokio::{net::TcpListener, task::AbortHandle};

/// Listens until it is dropped.
pub struct SilentServer {
    kubeconfig: String,
    task: AbortHandle,
}

impl SilentServer {
    /// On a port of its own.
    pub async fn start() -> SilentServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                held.push(connection);
            }
        });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        SilentServer { kubeconfig: kubeconfig.to_string(), task: task.abort_handle() }
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
