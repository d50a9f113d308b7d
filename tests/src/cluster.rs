//! A server with an operator, in processes of their own.

use std::{fs, ops::Deref};

use crate::{
    binary::{Binary, Running},
    objects::Objects,
};

/// A server with an operator; killed when dropped.
pub struct Cluster {
    /// Of the operator, and of the embedded server.
    process: Running,
    objects: Objects,
}

impl Cluster {
    /// Starts `up` with these arguments, on a free port where they name none, and answers when it can be reached.
    pub async fn start(binary: &Binary, arguments: &[&str]) -> Cluster {
        let port: &[&str] = if arguments.contains(&"--port") { &[] } else { &["--port", "0"] };
        let mut process = binary.start(&[&["up"], port, arguments].concat());
        let line = process.line_with("KUBECONFIG=").await;
        let path = line.split("KUBECONFIG=").nth(1).unwrap_or_default().trim().trim_matches(['"', '\'']);
        let kubeconfig = fs::read_to_string(binary.folder().join(path));
        let kubeconfig = kubeconfig.expect("the kubeconfig is there when its path is printed");
        Cluster { process, objects: Objects::of(kubeconfig).await }
    }

    /// The process of the operator, and of the embedded server.
    pub fn process(&self) -> u32 {
        self.process.id().unwrap_or_default()
    }

    /// Ends all of it as a power cut does.
    pub async fn kill(self) {
        self.process.kill().await;
    }
}

impl Deref for Cluster {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}
