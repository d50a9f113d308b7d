//! What `kubectl get` shows of the built-in kinds.

use crate::present::{Cell, Column};

/// The columns of a kind after its name, in order; of events all of them. A kind without a row has its age alone.
pub(super) fn of(kind: &str) -> Vec<Column> {
    let rows = COLUMNS.iter().find(|(of, _)| *of == kind).map(|(_, columns)| *columns).unwrap_or_default();
    let mut columns: Vec<Column> = rows.iter().map(column).collect();
    if kind == "Event" {
        return columns;
    }
    let age = Column::new("Age", "string", Cell::Since(vec!["metadata".to_owned(), "creationTimestamp".to_owned()]));
    let first_wide = columns.iter().position(|column| column.priority > 0).unwrap_or(columns.len());
    columns.insert(first_wide, age);
    columns
}

/// Title, type, and how the cell is made. A title that ends with `+` is shown with `-o wide` only.
type Described = (&'static str, &'static str, &'static str);

fn column((title, of, source): &Described) -> Column {
    let (title, priority) = match title.strip_suffix('+') {
        Some(title) => (title, 1),
        None => (*title, 0),
    };
    let fields = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
    let cell = match source.split_once(' ').unwrap_or(("path", source)) {
        ("count", path) => Cell::Count(fields(path)),
        ("since", path) => Cell::Since(fields(path)),
        ("keys", path) => Cell::Pairs(fields(path)),
        ("event", of) => Cell::Event(of.to_owned()),
        ("ready", "containers") => Cell::ReadyContainers,
        ("restarts", "containers") => Cell::Restarts,
        ("state", "pod") => Cell::PodState,
        ("state", "job") => Cell::JobState,
        ("address", "external") => Cell::ExternalAddress,
        ("ports", path) => Cell::Ports(fields(path)),
        ("object", path) => Cell::Reference(fields(path)),
        ("true", condition) => Cell::Condition(condition.to_owned()),
        ("ratio", paths) => {
            let (ready, wanted) = paths.split_once('/').unwrap_or((paths, paths));
            Cell::Ratio(fields(ready), fields(wanted))
        }
        (_, path) => Cell::Path(fields(path)),
    };
    Column { priority, ..Column::new(title, of, cell) }
}

const COLUMNS: &[(&str, &[Described])] = &[
    ("ConfigMap", &[("Data", "string", "count data")]),
    ("Secret", &[("Type", "string", "type"), ("Data", "string", "count data")]),
    ("ServiceAccount", &[("Secrets", "string", "count secrets")]),
    ("Namespace", &[("Status", "string", "status.phase")]),
    (
        "Event",
        &[
            ("Last Seen", "string", "event last seen"),
            ("Type", "string", "type"),
            ("Reason", "string", "reason"),
            ("Object", "string", "event object"),
            ("Subobject+", "string", "event part"),
            ("Source+", "string", "event source"),
            ("Message", "string", "event message"),
            ("First Seen+", "string", "event first seen"),
            ("Count+", "string", "event count"),
            ("Name+", "string", "metadata.name"),
        ],
    ),
    ("Node", &[("Status", "string", "true Ready"), ("Version", "string", "status.nodeInfo.kubeletVersion")]),
    (
        "Pod",
        &[
            ("Ready", "string", "ready containers"),
            ("Status", "string", "state pod"),
            ("Restarts", "integer", "restarts containers"),
            ("IP+", "string", "status.podIP"),
            ("Node+", "string", "spec.nodeName"),
        ],
    ),
    (
        "Service",
        &[
            ("Type", "string", "spec.type"),
            ("Cluster-IP", "string", "spec.clusterIP"),
            ("External-IP", "string", "address external"),
            ("Port(s)", "string", "ports spec.ports"),
            ("Selector+", "string", "keys spec.selector"),
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            ("Status", "string", "status.phase"),
            ("Volume", "string", "spec.volumeName"),
            ("Capacity", "string", "status.capacity.storage"),
            ("StorageClass", "string", "spec.storageClassName"),
        ],
    ),
    ("PersistentVolume", &[("Capacity", "string", "spec.capacity.storage"), ("Status", "string", "status.phase")]),
    (
        "Deployment",
        &[
            ("Ready", "string", "ratio status.readyReplicas/spec.replicas"),
            ("Up-to-date", "integer", "status.updatedReplicas"),
            ("Available", "integer", "status.availableReplicas"),
            ("Selector+", "string", "keys spec.selector.matchLabels"),
        ],
    ),
    ("StatefulSet", &[("Ready", "string", "ratio status.readyReplicas/spec.replicas")]),
    (
        "DaemonSet",
        &[
            ("Desired", "integer", "status.desiredNumberScheduled"),
            ("Current", "integer", "status.currentNumberScheduled"),
            ("Ready", "integer", "status.numberReady"),
            ("Up-to-date", "integer", "status.updatedNumberScheduled"),
            ("Available", "integer", "status.numberAvailable"),
            ("Node Selector", "string", "keys spec.template.spec.nodeSelector"),
        ],
    ),
    (
        "ReplicaSet",
        &[
            ("Desired", "integer", "spec.replicas"),
            ("Current", "integer", "status.replicas"),
            ("Ready", "integer", "status.readyReplicas"),
        ],
    ),
    ("Job", &[("Status", "string", "state job"), ("Completions", "string", "ratio status.succeeded/spec.completions")]),
    (
        "CronJob",
        &[
            ("Schedule", "string", "spec.schedule"),
            ("Suspend", "boolean", "spec.suspend"),
            ("Last Schedule", "string", "since status.lastScheduleTime"),
        ],
    ),
    ("Lease", &[("Holder", "string", "spec.holderIdentity")]),
    ("Ingress", &[("Class", "string", "spec.ingressClassName")]),
    ("NetworkPolicy", &[("Pod-Selector", "string", "keys spec.podSelector.matchLabels")]),
    (
        "PodDisruptionBudget",
        &[("Min Available", "string", "spec.minAvailable"), ("Max Unavailable", "string", "spec.maxUnavailable")],
    ),
    ("RoleBinding", &[("Role", "string", "object roleRef")]),
    ("ClusterRoleBinding", &[("Role", "string", "object roleRef")]),
    ("CustomResourceDefinition", &[("Created At", "date", "metadata.creationTimestamp")]),
    ("StorageClass", &[("Provisioner", "string", "provisioner")]),
];
