//! Runs the server alone, for walking through it by hand: `cargo run -p orangery-embedded --example serve -- [PORT] [FOLDER]`.
//! With SIMULATE_WORKLOADS in its environment it simulates workloads. Writes the kubeconfig to standard output and serves until it is killed.

use std::{io::Write, path::PathBuf, sync::Arc};

use orangery_embedded::{Options, Storage, start};

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "a program of its own, so it has its own clock")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let storage = arguments.next().map_or(Storage::Memory, |folder| Storage::Folder(PathBuf::from(folder)));
    let clock = Arc::new(jiff::Timestamp::now);
    let mut server = start(Options { storage, address: ([127, 0, 0, 1], port).into(), clock }).await?;
    if std::env::var_os("SIMULATE_WORKLOADS").is_some() {
        server.simulate_workloads();
    }
    let mut out = std::io::stdout();
    out.write_all(server.kubeconfig().as_bytes())?;
    out.flush()?;
    std::future::pending::<()>().await;
    Ok(())
}
