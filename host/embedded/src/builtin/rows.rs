//! The table itself.

/// One built-in resource.
pub(super) struct BuiltinResource {
    pub(super) group: &'static str,
    pub(super) versions: &'static [&'static str],
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) namespaced: bool,
    pub(super) status: bool,
    pub(super) scaled: bool,
    pub(super) generation: bool,
    pub(super) answered: bool,
    /// Whether `kubectl get all` shows it.
    pub(super) in_all: bool,
}

/// What a letter in a row's traits means: n namespaced, s status subresource, r replicas (scale), g generation,
/// v a virtual kind that answers and stores nothing, a in the category `all`.
const fn row(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    traits: &'static str,
) -> BuiltinResource {
    BuiltinResource {
        group,
        versions: &["v1"],
        plural,
        kind,
        short,
        namespaced: has(traits, b'n'),
        status: has(traits, b's'),
        scaled: has(traits, b'r'),
        generation: has(traits, b'g'),
        answered: has(traits, b'v'),
        in_all: has(traits, b'a'),
    }
}

const fn has(traits: &str, letter: u8) -> bool {
    let mut rest = traits.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == letter {
            return true;
        }
        rest = tail;
    }
    false
}

pub(super) const ROWS: &[BuiltinResource] = &[
    row("", "configmaps", "ConfigMap", &["cm"], "n"),
    row("", "endpoints", "Endpoints", &["ep"], "n"),
    row("", "events", "Event", &["ev"], "n"),
    row("", "limitranges", "LimitRange", &["limits"], "n"),
    row("", "namespaces", "Namespace", &["ns"], "s"),
    row("", "nodes", "Node", &["no"], "s"),
    row("", "persistentvolumeclaims", "PersistentVolumeClaim", &["pvc"], "ns"),
    row("", "persistentvolumes", "PersistentVolume", &["pv"], "s"),
    row("", "pods", "Pod", &["po"], "nsga"),
    row("", "podtemplates", "PodTemplate", &[], "ng"),
    row("", "replicationcontrollers", "ReplicationController", &["rc"], "nsrga"),
    row("", "resourcequotas", "ResourceQuota", &["quota"], "ns"),
    row("", "secrets", "Secret", &[], "n"),
    row("", "serviceaccounts", "ServiceAccount", &["sa"], "n"),
    row("", "services", "Service", &["svc"], "nsa"),
    row("admissionregistration.k8s.io", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", &[], "g"),
    row("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", &[], "g"),
    row("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", &[], "g"),
    row("admissionregistration.k8s.io", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", &[], "sg"),
    row(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        &[],
        "g",
    ),
    row("admissionregistration.k8s.io", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", &[], "g"),
    row("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", &["crd", "crds"], "sg"),
    row("apiregistration.k8s.io", "apiservices", "APIService", &[], "s"),
    row("apps", "controllerrevisions", "ControllerRevision", &[], "n"),
    row("apps", "daemonsets", "DaemonSet", &["ds"], "nsga"),
    row("apps", "deployments", "Deployment", &["deploy"], "nsrga"),
    row("apps", "replicasets", "ReplicaSet", &["rs"], "nsrga"),
    row("apps", "statefulsets", "StatefulSet", &["sts"], "nsrga"),
    row("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", &[], "v"),
    row("authentication.k8s.io", "tokenreviews", "TokenReview", &[], "v"),
    row("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", &[], "nv"),
    row("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", &[], "v"),
    row("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", &[], "v"),
    row("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", &[], "v"),
    BuiltinResource {
        versions: &["v2", "v1"],
        ..row("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", &["hpa"], "nsa")
    },
    row("batch", "cronjobs", "CronJob", &["cj"], "nsga"),
    row("batch", "jobs", "Job", &[], "nsga"),
    row("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", &["csr"], "s"),
    row("coordination.k8s.io", "leases", "Lease", &[], "n"),
    row("discovery.k8s.io", "endpointslices", "EndpointSlice", &[], "ng"),
    row("events.k8s.io", "events", "Event", &["ev"], "n"),
    row("flowcontrol.apiserver.k8s.io", "flowschemas", "FlowSchema", &[], "sg"),
    row("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "PriorityLevelConfiguration", &[], "sg"),
    row("networking.k8s.io", "ingressclasses", "IngressClass", &[], "g"),
    row("networking.k8s.io", "ingresses", "Ingress", &["ing"], "nsg"),
    row("networking.k8s.io", "networkpolicies", "NetworkPolicy", &["netpol"], "ng"),
    row("node.k8s.io", "runtimeclasses", "RuntimeClass", &[], ""),
    row("policy", "poddisruptionbudgets", "PodDisruptionBudget", &["pdb"], "nsg"),
    row("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", &[], ""),
    row("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", &[], ""),
    row("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", &[], "n"),
    row("rbac.authorization.k8s.io", "roles", "Role", &[], "n"),
    row("scheduling.k8s.io", "priorityclasses", "PriorityClass", &["pc"], "g"),
    row("storage.k8s.io", "csidrivers", "CSIDriver", &[], ""),
    row("storage.k8s.io", "csinodes", "CSINode", &[], ""),
    row("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity", &[], "n"),
    row("storage.k8s.io", "storageclasses", "StorageClass", &["sc"], ""),
    row("storage.k8s.io", "volumeattachments", "VolumeAttachment", &[], "s"),
];

/// Fields that keep the value they were created with.
pub(super) const IMMUTABLE: &[(&str, &[&str])] = &[
    ("ControllerRevision", &["data"]),
    ("CustomResourceDefinition", &["spec.scope", "spec.names.kind", "spec.names.plural"]),
    ("DaemonSet", &["spec.selector"]),
    ("Deployment", &["spec.selector"]),
    ("Job", &["spec.selector", "spec.template", "spec.completionMode"]),
    ("PersistentVolumeClaim", &["spec.accessModes", "spec.storageClassName", "spec.selector"]),
    ("ReplicaSet", &["spec.selector"]),
    ("Secret", &["type"]),
    ("Service", &["spec.clusterIP"]),
    ("StatefulSet", &["spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"]),
    ("ClusterRoleBinding", &["roleRef"]),
    ("RoleBinding", &["roleRef"]),
];
