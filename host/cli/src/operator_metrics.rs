//! The figures of the operator, as a person reaches them: through the API server, or by an address (C-398).

use std::{fs, path::PathBuf, pin::pin, time::Duration};

use clap::Args;
use futures::{StreamExt as _, future, stream};
use http::{
    Request, StatusCode, Uri,
    header::AUTHORIZATION,
    uri::{Authority, PathAndQuery},
};
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{Api, Client, Config, ResourceExt as _, api::ListParams, client::Body};
use orangery_api::annotation::OPERATOR_LEASE;
use orangery_core::{
    error::cleaned,
    name::{Namespace, ObjectName, can_be_name},
};

use tokio::time::timeout;

use crate::{
    operators::{holder, is_renewed},
    samples::Samples,
};

/// The most bytes of an answer: whoever is at the address chooses it.
pub(crate) const MOST_METRICS_BYTES: usize = 16 << 20;

/// How long an address has to answer, to the last byte.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// The most Leases that are looked at: whoever may write one somewhere gives it the label of operators.
const MOST_LEASES: usize = 50;

/// How many pods are asked at once.
const ASKED_AT_ONCE: usize = 5;

/// How much of what an address answers instead of figures is quoted, in letters.
const QUOTED: usize = 200;

/// Where figures of the operator come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Metrics of the operator")]
pub struct MetricsFlags {
    /// Address of the metrics, as http://127.0.0.1:8080/metrics behind a port that is forwarded [default: the port metrics of the pod that
    /// holds the Lease, through the API server]
    #[arg(long, value_name = "URL")]
    pub metrics: Option<Uri>,
    /// File with the bearer token that is sent to --metrics; its user needs the right to get /metrics
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub metrics_token: Option<PathBuf>,
}

/// What an operator answered, and where it was asked: whoever may write a Lease with the label of operators may have another pod be
/// asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetricsText {
    pub(crate) text: String,
    pub(crate) place: String,
}

/// The same as figures.
#[derive(Clone, Debug)]
pub(crate) struct OperatorFigures {
    pub(crate) samples: Samples,
    pub(crate) place: String,
}

/// A pod of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorPod {
    pub(crate) namespace: Namespace,
    pub(crate) name: ObjectName,
}

impl OperatorPod {
    /// The pod that holds a Lease, by the name that it holds it under.
    pub(crate) fn of(lease: &Lease) -> Option<Self> {
        // No name of a pod has an underscore; what follows tells processes of one name apart.
        let name = holder(lease)?.split('_').next().filter(|name| can_be_name(name))?.into();
        Some(Self { namespace: lease.namespace().unwrap_or_default().into(), name })
    }
}

impl MetricsFlags {
    /// The figures.
    ///
    /// # Errors
    /// A sentence that says why there are none, and what to do.
    pub(crate) async fn read(&self, client: &Client) -> Result<OperatorFigures, String> {
        let MetricsText { text, place } = self.page(client).await?;
        Ok(OperatorFigures { samples: Samples::of(&text), place })
    }

    /// The same as the operator wrote it.
    ///
    /// # Errors
    /// As for [`MetricsFlags::read`].
    pub(crate) async fn page(&self, client: &Client) -> Result<MetricsText, String> {
        match &self.metrics {
            Some(address) => self.at(address).await,
            None => through_server(client).await,
        }
    }

    async fn at(&self, address: &Uri) -> Result<MetricsText, String> {
        let mut parts = address.clone().into_parts();
        // Users and passwords are nobody's to read, and a server is told of none but by a token.
        let without_user =
            parts.authority.as_ref().and_then(|of| of.as_str().rsplit('@').next()?.parse::<Authority>().ok());
        parts.authority = without_user.or(parts.authority);
        let asked = parts.path_and_query.replace(PathAndQuery::from_static("/"));
        let path = asked.filter(|asked| asked.as_str() != "/").unwrap_or(PathAndQuery::from_static("/metrics"));
        let server = Uri::from_parts(parts);
        let place = server.as_ref().map_or_else(|_| "--metrics".to_owned(), |server| server.to_string());
        let place = cleaned(&format!("{}{}", place.trim_end_matches('/'), path.path()), QUOTED);
        let server = server.map_err(|error| error.to_string());
        let client = server.and_then(|server| Client::try_from(Config::new(server)).map_err(|error| error.to_string()));
        let client = client.map_err(|error| {
            format!("no metrics: {place} is no address: {error}; write it as http://127.0.0.1:8080/metrics")
        })?;
        let mut request = Request::get(path.as_str());
        if let Some(file) = &self.metrics_token {
            let token = fs::read_to_string(file).map_err(|error| {
                format!("no metrics: {} cannot be read: {error}; correct --metrics-token", file.display())
            })?;
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        let request = request.body(Body::empty()).map_err(|_| {
            "no metrics: the file of --metrics-token has no token in one line; write one with kubectl create token"
                .to_owned()
        })?;
        match answer(&client, request).await? {
            (StatusCode::OK, text) => Ok(MetricsText { text, place }),
            (StatusCode::UNAUTHORIZED, _) => Err(format!(
                "no metrics: {place} asks for a token; pass --metrics-token FILE, with one of a user who may get /metrics, as kubectl create \
                 token writes it of a service account"
            )),
            (StatusCode::FORBIDDEN, _) => Err(format!(
                "no metrics: the user of --metrics-token may not read {place}; bind the ClusterRole with the suffix -metrics-reader to it"
            )),
            (code, text) => Err(format!("no metrics: {place} answers {code}: {}", cleaned(&text, QUOTED))),
        }
    }
}

/// Through the API server's way to pods: of those that hold a Lease and renew it, the first that answers. A Lease that nobody renews
/// names a pod that is gone, or one that was never an operator.
async fn through_server(client: &Client) -> Result<MetricsText, String> {
    let leases = Api::<Lease>::all(client.clone()).list(&ListParams::default().labels(OPERATOR_LEASE)).await;
    let leases =
        leases.map_err(|error| format!("no metrics: Leases cannot be listed: {}; {ELSEWHERE}", cause_of(&error)))?;
    let held = leases.items.iter().filter_map(|lease| Some((lease, OperatorPod::of(lease)?))).take(MOST_LEASES);
    let looked_at = held.map(async |(lease, pod)| is_renewed(client, lease).await.then_some(pod));
    let active = stream::iter(looked_at).buffer_unordered(MOST_LEASES).filter_map(future::ready);
    let mut answers = pin!(active.map(async |pod| of_pod(client, &pod).await).buffer_unordered(ASKED_AT_ONCE));
    let mut why = format!("no metrics: no pod of an operator holds a Lease and renews it; {ELSEWHERE}");
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(text) => return Ok(text),
            Err(cause) => why = cause,
        }
    }
    Err(why)
}

/// What a pod answers behind the API server.
async fn of_pod(client: &Client, OperatorPod { namespace, name }: &OperatorPod) -> Result<MetricsText, String> {
    let pod = Api::<Pod>::namespaced(client.clone(), namespace).get(name).await;
    let pod = pod.map_err(|error| {
        format!(
            "no metrics: the pod {namespace}/{name} of the operator cannot be read: {}; {ELSEWHERE}",
            cause_of(&error)
        )
    })?;
    let Some(port) = metrics_port(&pod) else {
        return Err(format!(
            "no metrics: the pod {namespace}/{name} of the operator has no port metrics; set metrics.enabled of the chart"
        ));
    };
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy/metrics");
    let request = Request::get(path).body(Body::empty()).map_err(|error| format!("no metrics: {error}"))?;
    match answer(client, request).await? {
        (StatusCode::OK, text) => Ok(MetricsText { text, place: format!("pod {namespace}/{name}") }),
        // The user is known to the server already, and it hands no token on.
        (StatusCode::UNAUTHORIZED, _) => Err(format!(
            "no metrics: the operator asks for a token, and the API server hands none on; forward the port, and name it: kubectl -n {namespace} \
             port-forward {name} {port}; then --metrics http://127.0.0.1:{port}/metrics --metrics-token FILE"
        )),
        (StatusCode::FORBIDDEN, text) => Err(format!(
            "no metrics: {}; get that right (pods/proxy in namespace {namespace}), or forward the port and pass --metrics URL",
            message(&text)
        )),
        (code, text) => Err(format!(
            "no metrics: the API server does not reach port {port} of pod {namespace}/{name} ({code}: {}); see its NetworkPolicy, or forward \
             the port and pass --metrics URL",
            message(&text)
        )),
    }
}

const ELSEWHERE: &str = "where the operator serves metrics, pass --metrics URL";

fn metrics_port(pod: &Pod) -> Option<i32> {
    let containers = &pod.spec.as_ref()?.containers;
    let mut ports = containers.iter().flat_map(|container| container.ports.iter().flatten());
    ports.find(|port| port.name.as_deref() == Some("metrics")).map(|port| port.container_port)
}

/// What an address answers, whatever it is, in the time that it has.
async fn answer(client: &Client, request: Request<Body>) -> Result<(StatusCode, String), String> {
    let answered = timeout(LONGEST_ANSWER, whole_answer(client, request)).await;
    answered.unwrap_or_else(|_| {
        Err(format!(
            "no metrics: the answer did not end within {} seconds; see what listens there",
            LONGEST_ANSWER.as_secs()
        ))
    })
}

async fn whole_answer(client: &Client, request: Request<Body>) -> Result<(StatusCode, String), String> {
    let response = client.send(request).await.map_err(|error| format!("no metrics: {}", cause_of(&error)))?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MOST_METRICS_BYTES).collect().await;
    let body = body.map_err(|error| format!("no metrics: the answer ends early, or is too large: {error}"))?;
    Ok((head.status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}

/// What a status of Kubernetes says, else the text.
fn message(text: &str) -> String {
    let status: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let says = status.as_ref().and_then(|status| status.get("message")?.as_str());
    cleaned(says.unwrap_or(text), QUOTED)
}

fn cause_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => cleaned(&status.message, QUOTED),
        other => orangery_cluster::unreached(other, "name its authority in the kubeconfig"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::command::tests::server;

    /// Leases of these namespaces and holders, as they are renewed in a second.
    fn leases(of: &[(&str, &str)], second: u8) -> Value {
        let lease = |(namespace, holder): &(&str, &str)| {
            let renewed = format!("2026-01-01T00:00:0{second}.000000Z");
            json!({"metadata": {"name": "orangery", "namespace": namespace},
                "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 1}})
        };
        let leases: Vec<Value> = of.iter().map(lease).collect();
        json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": leases})
    }

    /// A cluster whose operator answers so behind the API server.
    fn cluster(proxied: (u16, Value), port: &str) -> Client {
        let pod = json!({"metadata": {"name": "op-1"}, "spec": {"containers": [
            {"name": "c", "ports": [{"name": "health", "containerPort": 1}, {"name": port, "containerPort": 8080}]},
        ]}});
        let leases = [leases(&[("sys", "op-1_x")], 0), leases(&[("sys", "op-1_x")], 1)];
        let (client, _) = server(move |line| match line {
            _ if line.contains("/leases") => (200, leases[usize::from(line.contains("fieldSelector"))].clone()),
            _ if line.contains("/proxy/") => {
                assert_eq!(line, "GET /api/v1/namespaces/sys/pods/op-1:8080/proxy/metrics");
                proxied.clone()
            }
            _ => (200, pod.clone()),
        });
        client
    }

    #[tokio::test]
    async fn c_398_figures_come_through_the_server_from_the_pod_that_holds_the_lease() {
        let read = async |proxied: (u16, Value), port: &str| {
            MetricsFlags::default()
                .page(&cluster(proxied, port))
                .await
                .map_err(|why| why.split("; ").map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(
            read((200, json!(7)), "metrics").await,
            Ok(MetricsText { text: "7".to_owned(), place: "pod sys/op-1".to_owned() })
        );
        let no_port = read((200, json!(7)), "other").await.unwrap_err();
        assert_eq!(no_port.last().map(String::as_str), Some("set metrics.enabled of the chart"));
        let token = read((401, json!("no token")), "metrics").await.unwrap_err();
        assert_eq!(token[0], "no metrics: the operator asks for a token, and the API server hands none on");
        assert_eq!(token[1], "forward the port, and name it: kubectl -n sys port-forward op-1 8080");
        let right = read((403, json!({"message": "user x cannot get pods/proxy"})), "metrics").await.unwrap_err();
        assert_eq!(right[0], "no metrics: user x cannot get pods/proxy");
        assert!(right[1].contains("(pods/proxy in namespace sys)"), "{right:?}");
        let far = read((503, json!({"message": "dial\u{1b}[2J"})), "metrics").await.unwrap_err();
        assert!(
            far[0].contains("does not reach port 8080 of pod sys/op-1 (503") && !far[0].contains('\u{1b}'),
            "{far:?}"
        );
    }

    #[tokio::test]
    async fn c_398_an_operator_that_is_no_pod_is_told_with_what_to_do() {
        let (client, _) = server(|_| {
            (200, json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": []}))
        });
        let why = MetricsFlags::default().page(&client).await.unwrap_err();
        assert_eq!(
            why,
            "no metrics: no pod of an operator holds a Lease and renews it; where the operator serves metrics, pass --metrics URL"
        );
        let (client, _) = server(|_| {
            (
                403,
                json!({"kind": "Status", "status": "Failure", "code": 403, "message": "x may not", "reason": "Forbidden"}),
            )
        });
        let why = MetricsFlags::default().page(&client).await.unwrap_err();
        assert!(why.starts_with("no metrics: Leases cannot be listed: x may not; "), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn c_398_a_lease_that_nobody_renews_is_passed_over_and_so_is_a_pod_that_does_not_answer() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "ports": [{"name": "metrics", "containerPort": 80}]}]}});
        let (client, sent) = server(move |line| match line {
            _ if line.contains("namespaces/dead/leases") => (200, leases(&[("dead", "p")], 0)),
            _ if line.contains("namespaces/tenant/leases") => (200, leases(&[("tenant", "p")], 1)),
            _ if line.contains("namespaces/sys/leases") => (200, leases(&[("sys", "p")], 1)),
            _ if line.contains("/leases") => (200, leases(&[("dead", "p"), ("tenant", "p"), ("sys", "p")], 0)),
            _ if line.contains("tenant") && line.contains("/proxy/") => (500, json!("no")),
            _ if line.contains("/proxy/") => (200, json!(7)),
            _ => (200, pod.clone()),
        });
        let page = MetricsFlags::default().page(&client).await;
        assert_eq!(page, Ok(MetricsText { text: "7".to_owned(), place: "pod sys/p".to_owned() }));
        assert!(!sent.lock().unwrap().iter().any(|line| line.contains("namespaces/dead/pods")));
    }

    #[tokio::test(start_paused = true)]
    async fn c_398_an_answer_that_does_not_end_is_not_waited_for() {
        let service = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
        });
        let client = Client::new(service, "default");
        let request = Request::get("/").body(Body::empty()).unwrap();
        let why = answer(&client, request).await.unwrap_err();
        assert_eq!(why, "no metrics: the answer did not end within 10 seconds; see what listens there");
    }

    #[tokio::test]
    async fn c_398_an_address_is_asked_with_its_query_and_told_without_its_user() {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let read = stream.read(&mut asked).unwrap();
            stream.write_all(b"HTTP/1.1 418 X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno").unwrap();
            String::from_utf8_lossy(asked.get(..read).unwrap_or_default()).into_owned()
        });
        let address = format!("http://user:s3cr3t@127.0.0.1:{port}/m?of=x").parse().unwrap();
        let flags = MetricsFlags { metrics: Some(address), metrics_token: None };
        let (client, _) = server(|_| (404, json!({})));
        let why = flags.page(&client).await.unwrap_err();
        assert_eq!(why, format!("no metrics: http://127.0.0.1:{port}/m answers 418 I'm a teapot: no"));
        let asked = served.join().unwrap();
        assert!(asked.starts_with("GET /m?of=x HTTP/1.1") && !asked.contains("s3cr3t"), "{asked}");
    }
}
