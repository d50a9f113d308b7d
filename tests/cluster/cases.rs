//! The cases of both servers: the folders are behaviours, and whatever is added here runs on the embedded server (`main.rs`) and
//! on a real one (`kube.rs`). A suite of one server only lies in `embedded_only/` or `kube_only/` and says why below.

mod administration;
mod admission;
mod answers;
mod approval;
mod completions;
mod declarative;
mod deletion;
mod deploy_items;
mod drift;
mod error_reporting;
mod executions;
pub(crate) mod faults;
pub(crate) mod gate_expressions;
mod golden;
mod helm;
mod imports_and_exports;
mod installations;
mod job_rules;
mod logs_and_costs;
mod metrics;
pub(crate) mod plugins;
pub(crate) mod policies;
mod records;
mod rollbacks;
pub(crate) mod secrets;
pub(crate) mod signed_items;
mod takeover;
mod target_syncs;
mod waiting;
mod warnings;

/// Why a suite runs on one server only.
const ONE_SERVER_ONLY: [(&str, &[(&str, &str)]); 2] = [
    (
        "embedded_only",
        &[
            ("chart", "no server is asked what a chart renders"),
            ("command_line", "the commands start the embedded server themselves, or need none"),
            (
                "component_versions",
                "registries and signatures of versions are read by the operator, whatever API server it has",
            ),
            ("containers", "the embedded server has no pods, and says so; those of a real node are in `tests/node`"),
            ("full_disk", "the objects of a real server lie in etcd, which ends where its disk is full"),
            ("killed_calls", "how the operator was killed lies in a file of its own, whatever API server it has"),
            ("kinds", "a real server serves kinds that the embedded one does not know"),
            ("requests", "a real server also counts the requests of its own controllers"),
            ("restored_data", "the data of a real server is that of etcd, which the suite `lease` restores"),
            (
                "restricted_recordings",
                "what a policy refuses is decided before a server is asked, and there are fifty servers",
            ),
            ("upgrades", "what earlier builds left is kept as the data of an embedded server"),
            ("workloads", "a real server does not simulate workloads"),
        ],
    ),
    (
        "kube_only",
        &[
            ("approvals", "the embedded server holds nobody to the rights of roles"),
            ("canaries", "the embedded server and its operator are one process"),
            ("chart", "the embedded server holds nobody to the rights of roles"),
            ("components", "the operator of the embedded server has the mock deployer, and `run` has not"),
            ("garbage", "the garbage collector of the embedded server is in its process, and never slow"),
            ("host_cluster", "the embedded server holds nobody to the rights of roles"),
            ("lease", "the embedded server has one operator, which is in its process"),
            ("metrics", "the embedded server holds nobody to the rights of roles"),
            ("panics", "the embedded server does not hold the operator to the rights that the chart gives it"),
            ("policies", "the embedded server ends with its operator, and these change while none runs"),
            ("quotas", "the embedded server knows no ResourceQuota"),
            ("restarts", "the embedded server ends with its operator"),
            ("targets", "the embedded server issues no tokens of service accounts"),
            ("webhooks", "the embedded server asks no admission webhooks"),
        ],
    ),
];

#[test]
fn suites_of_one_server_say_why() {
    for (folder, reasons) in ONE_SERVER_ONLY {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster").join(folder);
        let entries = path.read_dir().expect("the folder can be read").map(|entry| entry.expect("an entry").path());
        let sources = entries.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let mut suites: Vec<String> =
            sources.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
        suites.sort();
        let explained: Vec<&str> = reasons.iter().map(|(suite, _)| *suite).collect();
        assert_eq!(suites, explained, "each suite of {folder} has its reason here, in order");
        for (suite, reason) in reasons {
            println!("{folder}/{suite}: {reason}");
        }
    }
}
