//! A server with an operator, in processes of their own.

use std::{fs, ops::Deref, thread};

use serde_json::{Value, json};

use crate::{
    binary::{Answers, Binary, Running},
    canary::{ShownText, published_at_the_end},
    kube::{Kube, OPERATOR, Programs, SharedKube},
    objects::{NAMESPACE, Objects},
    tree::API,
};

/// A server with an operator; killed when dropped.
pub struct Cluster {
    /// Of the operator, and of the embedded server.
    process: Running,
    objects: Objects,
    /// The server, where it is not the embedded one.
    server: Option<SharedKube>,
    /// What commands of the same binary have answered.
    answers: Answers,
    /// Whether it was killed, so that there is nothing left to look at.
    is_killed: bool,
}

/// The end of a case: nothing shows a value of a Secret (C-82).
impl Drop for Cluster {
    fn drop(&mut self) {
        if self.is_killed || thread::panicking() {
            return;
        }
        let mut texts = self.answers.all();
        texts.push(ShownText { what: "the log".to_owned(), text: self.process.log() });
        // A server that the case has stopped shows nothing any more.
        let is_served = match &self.server {
            Some(server) => server.is_served(),
            None => !self.process.has_ended(),
        };
        if is_served {
            texts.extend(published_at_the_end(self.objects.kubeconfig().to_owned(), self.objects.canaries()));
        }
        if let Some(server) = &self.server {
            server.is_searched();
        }
        self.objects.canaries().check(&texts);
    }
}

impl Cluster {
    /// Starts `up` with these arguments, on a free port where they name none, and answers when it can be reached.
    pub async fn start(binary: &Binary, arguments: &[&str]) -> Cluster {
        let port: &[&str] = if arguments.contains(&"--port") { &[] } else { &["--port", "0"] };
        let mut process = binary.start_logging(&[&["up"], port, arguments].concat());
        let line = process.line_with("KUBECONFIG=").await;
        let path = line.split("KUBECONFIG=").nth(1).unwrap_or_default().trim().trim_matches(['"', '\'']);
        let kubeconfig = fs::read_to_string(binary.folder().join(path));
        let kubeconfig = kubeconfig.expect("the kubeconfig is there when its path is printed");
        let objects = Objects::of(kubeconfig).await;
        Cluster { process, objects, server: None, answers: binary.answers().clone(), is_killed: false }
    }

    /// Starts a real API server, and the operator with these arguments, which has the rights that the chart gives it;
    /// answers when the operator works.
    pub async fn start_on_kube(binary: &Binary, programs: &Programs, arguments: &[&str]) -> Cluster {
        let server = Kube::shared(programs, binary).await;
        let objects = Objects::of(server.kubeconfig()).await;
        // The cases are those of one trusted team, as with Landscaper.
        server.allow_any_target_account().await;
        let process = server.operator(binary, OPERATOR[0], &[&["--target-accounts=any"], arguments].concat());
        objects.apply(&own_target(&server.kubeconfig())).await;
        // The operator gives every namespace one.
        let context = json!({"apiVersion": API, "kind": "Context", "metadata": {"name": "default"}});
        objects.expect(&context).await;
        Cluster { process, objects, server: Some(server), answers: binary.answers().clone(), is_killed: false }
    }

    /// The process of the operator, and of the embedded server.
    pub fn process(&self) -> u32 {
        self.process.id().unwrap_or_default()
    }

    /// All that the operator has written to its log.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The processes of the server and its store, where they are not the operator's.
    pub fn server_processes(&self) -> Vec<u32> {
        self.server.as_ref().map(|server| server.processes()).unwrap_or_default()
    }

    /// Ends all of it as a power cut does.
    pub async fn kill(mut self) {
        self.is_killed = true;
        self.process.end().await;
    }
}

/// The Target that the embedded server has from its start.
pub fn own_target(kubeconfig: &str) -> Value {
    json!({
        "apiVersion": API,
        "kind": "Target",
        "metadata": {"name": "cluster", "namespace": NAMESPACE},
        "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig}},
    })
}

impl Deref for Cluster {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}
