//! `orangery up`: its arguments. Carried out by `runtime`.

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Args, value_parser};
use orangery_core::name::Namespace;
use orangery_policy::Profile;

use crate::{
    command::logging::Logging, components::CallProcesses, default_policy::profile, record_flags::RecordFlags,
    repositories::RepositoryFlags, timeout::Timeout,
};

const EXAMPLES: &str = "\
Examples:
  orangery up examples/hello-world           deploy a folder, and stay until Ctrl-C
  orangery up --ephemeral --once my-folder   the same in memory; end when everything is final
  orangery up                                start what the data folder holds, apply nothing

A folder's .yaml, .yml and .json files are applied, not those of its subfolders.
A Target named `cluster` in namespace `default` points at the server that is started.
While it runs, in another terminal, with the path that is printed at the start:
  export KUBECONFIG=…
  kubectl get installations -A";

/// Starts a Kubernetes API server and the operator in one process, applies folders, and shows what becomes of them.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Up {
    /// Folders or files with Kubernetes objects to apply
    #[arg(value_name = "FOLDER")]
    pub paths: Vec<PathBuf>,
    /// Namespace of the objects that name none
    #[arg(short, long, default_value = "default", value_parser = str::parse::<Namespace>)]
    pub namespace: Namespace,
    /// Folder that keeps the server's objects [default: .orangery in the current folder]; one with content that is open to
    /// others or tracked by git is refused
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Keep all objects in memory; they are gone when the process ends
    #[arg(long, conflicts_with = "data")]
    pub ephemeral: bool,
    /// Mark workloads ready or complete as a kubelet would; no container runs
    #[arg(long)]
    pub simulate_workloads: bool,
    /// Port of the server on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 6444)]
    pub port: u16,
    /// End as soon as everything is final: exit code 0 when all succeeded, 1 when something failed
    #[arg(long)]
    pub once: bool,
    /// With --once: how long to wait before exit code 3, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "once")]
    pub timeout: Timeout,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// Which components are called in processes of their own, without credentials: those of blueprints and of --plugins, or
    /// the built-in ones as well
    #[arg(long, value_name = "WHICH", default_value = "untrusted")]
    pub call_processes: CallProcesses,
    /// How long a deploy item that no component claims waits for a deployer elsewhere, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub pickup_timeout: Timeout,
    /// Whether Targets, the Secrets behind them, Contexts and imported ConfigMaps stay as long as they are in use
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub guards: bool,
    /// What objects may do in namespaces that no NamespacePolicy selects
    #[arg(long, value_name = "PROFILE", default_value = "compatible", value_parser = profile())]
    pub default_policy: Profile,
    /// How many deploy items of components may be under way at once; the others wait for a place [default: any number]
    #[arg(long, value_name = "NUMBER")]
    pub max_parallel: Option<NonZeroU32>,
    /// How many jobs of each deploy item are kept on record, in objects of kind JobHistory, for orangery history; 0 for none
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = value_parser!(u8).range(0..=100))]
    pub job_records: u8,
    /// Where component versions come from; the applied folders count like those of --components.
    #[command(flatten)]
    pub repositories: RepositoryFlags,
    /// Where calls of components are kept.
    #[command(flatten)]
    pub record: RecordFlags,
    /// What is logged.
    #[command(flatten)]
    pub logging: Logging,
}
