//! What the fields of built-in kinds are when nobody says: values that stand alone. `derived` has those that depend on other fields.

/// Message, field, value as JSON. A field that is not set gets the value; one that is left out when it is empty also when it is
/// empty.
pub(super) const DEFAULTS: &[(&str, &[(&str, &str)])] = &[
    ("admissionregistration.MatchResources", SELECTORS),
    ("admissionregistration.MutatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("admissionregistration.MutatingWebhook", &[("reinvocationPolicy", r#""Never""#)]),
    ("admissionregistration.NamedRuleWithOperations", RULE),
    ("admissionregistration.RuleWithOperations", RULE),
    ("admissionregistration.ServiceReference", &[("port", "443")]),
    ("admissionregistration.ValidatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("apiextensions.CustomResourceDefinitionSpec", &[("conversion", r#"{"strategy":"None"}"#)]),
    ("apiextensions.ServiceReference", &[("port", "443")]),
    ("apiregistration.ServiceReference", &[("port", "443")]),
    ("apps.DaemonSetSpec", &[("revisionHistoryLimit", "10")]),
    ("apps.DaemonSetUpdateStrategy", ROLLING),
    ("apps.DeploymentSpec", &[("replicas", "1"), ("revisionHistoryLimit", "10"), ("progressDeadlineSeconds", "600")]),
    ("apps.DeploymentStrategy", ROLLING),
    ("apps.ReplicaSetSpec", &[("replicas", "1")]),
    (
        "apps.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[("whenDeleted", r#""Retain""#), ("whenScaled", r#""Retain""#)],
    ),
    (
        "apps.StatefulSetSpec",
        &[
            ("podManagementPolicy", r#""OrderedReady""#),
            ("persistentVolumeClaimRetentionPolicy", "{}"),
            ("replicas", "1"),
            ("revisionHistoryLimit", "10"),
        ],
    ),
    (
        "autoscaling2.HorizontalPodAutoscalerSpec",
        &[
            ("minReplicas", "1"),
            (
                "metrics",
                r#"[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]"#,
            ),
        ],
    ),
    ("autoscaling.HorizontalPodAutoscalerSpec", &[("minReplicas", "1")]),
    (
        "batch.CronJobSpec",
        &[
            ("concurrencyPolicy", r#""Allow""#),
            ("suspend", "false"),
            ("successfulJobsHistoryLimit", "3"),
            ("failedJobsHistoryLimit", "1"),
        ],
    ),
    ("batch.PodFailurePolicyOnPodConditionsPattern", &[("status", r#""True""#)]),
    (
        "core.AzureDiskVolumeSource",
        &[("cachingMode", r#""ReadWrite""#), ("fsType", r#""ext4""#), ("readOnly", "false"), ("kind", r#""Shared""#)],
    ),
    ("core.ConfigMapVolumeSource", MODE),
    ("core.Container", CONTAINER),
    ("core.ContainerPort", TCP),
    ("core.DownwardAPIVolumeSource", MODE),
    ("core.EndpointPort", TCP),
    ("core.EphemeralContainer", CONTAINER),
    ("core.FileKeySelector", &[("optional", "false")]),
    ("core.GRPCAction", &[("service", r#""""#)]),
    ("core.HTTPGetAction", &[("path", r#""/""#), ("scheme", r#""HTTP""#)]),
    ("core.HostPathVolumeSource", &[("type", r#""""#)]),
    ("core.ISCSIPersistentVolumeSource", ISCSI),
    ("core.ISCSIVolumeSource", ISCSI),
    ("core.NamespaceStatus", &[("phase", r#""Active""#)]),
    ("core.ObjectFieldSelector", &[("apiVersion", r#""v1""#)]),
    ("core.PersistentVolumeClaimSpec", &[("volumeMode", r#""Filesystem""#)]),
    ("core.PersistentVolumeClaimStatus", &[("phase", r#""Pending""#)]),
    (
        "core.PersistentVolumeSpec",
        &[("persistentVolumeReclaimPolicy", r#""Retain""#), ("volumeMode", r#""Filesystem""#)],
    ),
    ("core.PersistentVolumeStatus", &[("phase", r#""Pending""#)]),
    (
        "core.PodSpec",
        &[
            ("dnsPolicy", r#""ClusterFirst""#),
            ("restartPolicy", r#""Always""#),
            ("securityContext", "{}"),
            ("terminationGracePeriodSeconds", "30"),
            ("schedulerName", r#""default-scheduler""#),
        ],
    ),
    (
        "core.Probe",
        &[("timeoutSeconds", "1"), ("periodSeconds", "10"), ("successThreshold", "1"), ("failureThreshold", "3")],
    ),
    ("core.ProjectedVolumeSource", MODE),
    ("core.RBDPersistentVolumeSource", RBD),
    ("core.RBDVolumeSource", RBD),
    ("core.ReplicationControllerSpec", &[("replicas", "1")]),
    ("core.ScaleIOPersistentVolumeSource", SCALE_IO),
    ("core.ScaleIOVolumeSource", SCALE_IO),
    ("core.Secret", &[("type", r#""Opaque""#)]),
    ("core.SecretVolumeSource", MODE),
    ("core.ServiceAccountTokenProjection", &[("expirationSeconds", "3600")]),
    ("core.ServicePort", TCP),
    ("core.ServiceSpec", &[("sessionAffinity", r#""None""#), ("type", r#""ClusterIP""#)]),
    ("discovery.EndpointPort", &[("name", r#""""#), ("protocol", r#""TCP""#)]),
    ("flowcontrol.ExemptPriorityLevelConfiguration", &[("nominalConcurrencyShares", "0"), ("lendablePercent", "0")]),
    ("flowcontrol.FlowSchemaSpec", &[("matchingPrecedence", "1000")]),
    ("flowcontrol.LimitedPriorityLevelConfiguration", &[("nominalConcurrencyShares", "30"), ("lendablePercent", "0")]),
    ("flowcontrol.QueuingConfiguration", &[("queues", "64"), ("handSize", "8"), ("queueLengthLimit", "50")]),
    ("networking.IngressClassParametersReference", &[("scope", r#""Cluster""#)]),
    ("networking.NetworkPolicyPort", TCP),
    ("rbac.RoleRef", &[("apiGroup", r#""rbac.authorization.k8s.io""#)]),
    ("scheduling.PriorityClass", &[("preemptionPolicy", r#""PreemptLowerPriority""#)]),
    (
        "storage.CSIDriverSpec",
        &[
            ("attachRequired", "true"),
            ("podInfoOnMount", "false"),
            ("storageCapacity", "false"),
            ("fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
            ("volumeLifecycleModes", r#"["Persistent"]"#),
            ("requiresRepublish", "false"),
            ("seLinuxMount", "false"),
        ],
    ),
    ("storage.StorageClass", &[("reclaimPolicy", r#""Delete""#), ("volumeBindingMode", r#""Immediate""#)]),
];

/// What a webhook has on top of `SELECTORS`.
pub(super) const WEBHOOK: &[(&str, &str)] = &[("failurePolicy", r#""Fail""#), ("timeoutSeconds", "10")];
pub(super) const SELECTORS: &[(&str, &str)] =
    &[("matchPolicy", r#""Equivalent""#), ("namespaceSelector", "{}"), ("objectSelector", "{}")];
const RULE: &[(&str, &str)] = &[("scope", r#""*""#)];
const ROLLING: &[(&str, &str)] = &[("type", r#""RollingUpdate""#)];
const TCP: &[(&str, &str)] = &[("protocol", r#""TCP""#)];
/// 0644.
const MODE: &[(&str, &str)] = &[("defaultMode", "420")];
const CONTAINER: &[(&str, &str)] =
    &[("terminationMessagePath", r#""/dev/termination-log""#), ("terminationMessagePolicy", r#""File""#)];
const ISCSI: &[(&str, &str)] = &[("iscsiInterface", r#""default""#)];
const RBD: &[(&str, &str)] = &[("pool", r#""rbd""#), ("user", r#""admin""#), ("keyring", r#""/etc/ceph/keyring""#)];
const SCALE_IO: &[(&str, &str)] = &[("storageMode", r#""ThinProvisioned""#), ("fsType", r#""xfs""#)];
