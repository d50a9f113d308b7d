//! How one cell of a table is made.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{JsonPath, age::since, event};
use crate::object;

/// A column of a resource's table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) of: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Above 0 only with `-o wide`.
    pub(crate) priority: i64,
    pub(crate) cell: Cell,
}

impl Column {
    pub(crate) fn new(title: &str, of: &str, cell: Cell) -> Self {
        let (format, description) = (String::new(), String::new());
        Self { title: title.to_owned(), of: of.to_owned(), format, description, priority: 0, cell }
    }
}

/// Where a cell's content comes from. A list of texts is a path of field names.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// The value itself.
    Path(Vec<String>),
    /// What a custom kind's JSONPath leads to.
    Json(JsonPath),
    /// How long ago.
    Since(Vec<String>),
    /// How many entries.
    Count(Vec<String>),
    /// Two numbers with a slash.
    Ratio(Vec<String>, Vec<String>),
    /// `a=b` pairs.
    Pairs(Vec<String>),
    /// Service ports.
    Ports(Vec<String>),
    /// `kind/name` of a reference.
    Reference(Vec<String>),
    /// Whether a condition is true: its name, else `Not` and its name.
    Condition(String),
    /// A pod's containers that are ready, of all.
    ReadyContainers,
    /// The restarts of a pod's containers.
    Restarts,
    /// A pod's state in a word.
    PodState,
    /// A Job's state in a word.
    JobState,
    /// Where a Service is reached from outside.
    ExternalAddress,
    /// A word about an event.
    Event(String),
}

impl Column {
    /// The cell of an object, at a time.
    pub(crate) fn show(&self, object: &Value, now: Timestamp) -> Value {
        let found = |path: &[String]| JsonPath::of_fields(path).select(object).first().copied();
        let number = |path: &[String]| found(path).and_then(Value::as_i64).unwrap_or(0);
        match &self.cell {
            Cell::Path(path) => match found(path) {
                Some(value) => value.clone(),
                None if self.of == "integer" => json!(0),
                None => json!("<none>"),
            },
            Cell::Json(path) => self.typed(&path.select(object), now),
            Cell::Since(path) => json!(found(path).map_or_else(|| "<unknown>".to_owned(), |at| since(at, now))),
            Cell::Count(path) => json!(found(path).map_or(0, size)),
            Cell::Ratio(part, whole) => json!(format!("{}/{}", number(part), number(whole))),
            Cell::Pairs(path) => json!(pairs(found(path))),
            Cell::Ports(path) => json!(ports(found(path))),
            Cell::Reference(path) => json!(reference(found(path))),
            Cell::Condition(name) => json!(condition(object, name)),
            Cell::ReadyContainers => {
                let ready = |status: &&Value| status.get("ready") == Some(&Value::Bool(true));
                let ready = object::items(object, &["status", "containerStatuses"]).iter().filter(ready).count();
                json!(format!("{ready}/{}", object::items(object, &["spec", "containers"]).len()))
            }
            Cell::Restarts => {
                let restarts = |status: &Value| status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
                let statuses = object::items(object, &["status", "containerStatuses"]).iter();
                json!(statuses.map(restarts).fold(0_i64, i64::saturating_add))
            }
            Cell::PodState if object::deleting(object) => json!("Terminating"),
            Cell::PodState => json!(pod_state(object)),
            Cell::JobState => json!(job_state(object)),
            Cell::ExternalAddress => json!(external_address(object)),
            Cell::Event(word) => json!(event::cell(object, word, now)),
        }
    }

    /// What a custom kind's column shows: nothing when the path leads nowhere, as the real server does.
    fn typed(&self, found: &[&Value], now: Timestamp) -> Value {
        match (found, self.of.as_str()) {
            ([], _) | ([Value::Null], _) => Value::Null,
            ([only], "date") => json!(since(only, now)),
            ([only], "string") => match only {
                Value::String(_) => (*only).clone(),
                other => json!(other.to_string()),
            },
            ([only], _) => (*only).clone(),
            (many, _) => {
                let text = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                json!(many.iter().map(text).collect::<Vec<_>>().join(","))
            }
        }
    }
}

fn size(value: &Value) -> usize {
    value.as_object().map_or_else(|| value.as_array().map_or(0, Vec::len), serde_json::Map::len)
}

fn pairs(value: Option<&Value>) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    let pairs: Vec<String> = fields.map(|(name, value)| format!("{name}={}", text(value))).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

fn ports(value: Option<&Value>) -> String {
    let port = |port: &Value| {
        let number = port.get("port").cloned().unwrap_or_default();
        format!("{number}/{}", port.get("protocol").and_then(Value::as_str).unwrap_or("TCP"))
    };
    let ports: Vec<String> = value.and_then(Value::as_array).into_iter().flatten().map(port).collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

fn reference(value: Option<&Value>) -> String {
    let field = |name| value.and_then(|value| value.get(name)).and_then(Value::as_str).unwrap_or_default();
    let kind = field("kind");
    // Roles are shown by their kind's own spelling, objects of events in lower case.
    let kind = if kind.ends_with("Role") { kind.to_owned() } else { kind.to_lowercase() };
    format!("{kind}/{}", field("name"))
}

fn condition_status<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let conditions = object::items(object, &["status", "conditions"]);
    let found = conditions.iter().find(|condition| object::text(condition, &["type"]) == Some(name))?;
    object::text(found, &["status"])
}

fn condition(object: &Value, name: &str) -> String {
    match condition_status(object, name) {
        Some("True") => name.to_owned(),
        Some(_) => format!("Not{name}"),
        None => "Unknown".to_owned(),
    }
}

/// The phase, unless a container has a better word: the first one in the list is heard before the others.
fn pod_state(pod: &Value) -> &str {
    let phase = object::text(pod, &["status", "phase"]).unwrap_or("Pending");
    let containers = object::items(pod, &["status", "containerStatuses"]);
    let state = |container: &'_ Value, state: &str| object::at(container, &["state", state]).is_some();
    let reason = containers.iter().find_map(|container| {
        let of = |state: &str| object::text(container, &["state", state, "reason"]).filter(|word| !word.is_empty());
        of("waiting").or_else(|| of("terminated"))
    });
    match reason {
        Some("Completed") if containers.iter().any(|container| state(container, "running")) => {
            if condition_status(pod, "Ready") == Some("True") { "Running" } else { "NotReady" }
        }
        Some(reason) => reason,
        None => object::text(pod, &["status", "reason"]).filter(|word| !word.is_empty()).unwrap_or(phase),
    }
}

fn job_state(job: &Value) -> &'static str {
    let holds = |name: &str| condition_status(job, name) == Some("True");
    if object::deleting(job) && !holds("Complete") && !holds("Failed") {
        return "Terminating";
    }
    let states = ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"];
    states.into_iter().find(|name| holds(name)).unwrap_or("Running")
}

fn external_address(service: &Value) -> String {
    let texts = |path: &[&str]| {
        let entries = object::items(service, path).iter();
        entries.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let ingress = object::items(service, &["status", "loadBalancer", "ingress"]).iter();
    let name =
        |entry: &Value| object::text(entry, &["ip"]).or_else(|| object::text(entry, &["hostname"])).map(str::to_owned);
    let mut addresses: Vec<String> = match object::text(service, &["spec", "type"]) {
        Some("LoadBalancer") => ingress.filter_map(name).collect(),
        Some("ExternalName") => return object::text(service, &["spec", "externalName"]).unwrap_or_default().to_owned(),
        _ => Vec::new(),
    };
    addresses.extend(texts(&["spec", "externalIPs"]));
    match (addresses.is_empty(), object::text(service, &["spec", "type"])) {
        (false, _) => addresses.join(","),
        (true, Some("LoadBalancer")) => "<pending>".to_owned(),
        (true, _) => "<none>".to_owned(),
    }
}
