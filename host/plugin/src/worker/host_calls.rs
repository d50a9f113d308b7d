//! The host's side of a call in a worker: what the guest asks for is answered by the code that answers guests inside.

use serde::Serialize;
use wasmtime::component::Resource;

use super::{
    connection::{Lost, WorkerConnection},
    frame::{self, DetachedAnswer, HostCall, HostReply, Octets, WorkerCall, WorkerFrame},
    process::WorkerProcess,
};
use crate::{
    bindings::{
        deployer::orangery::deployer::{
            artifacts::{Host as _, HostArtifact as _},
            cluster::Host as _,
            log::Host as _,
        },
        template::orangery::template::{
            components::Host as _, files::Host as _, kubeconfigs::Host as _, randomness::Host as _,
        },
    },
    capability::{Capabilities, locked},
    export::ExportAnswer,
    held_artifact::HeldArtifact,
    instance::{CallEnd, most_passed},
    meter::LENT_MEMORY,
    transcript::Channel,
};

/// Bytes of a frame beside the values in it.
const FRAME_OVERHEAD: usize = 1 << 20;

/// Makes a call in this worker. The error says why the worker is of no use any more; what the guest did wrong is an answer.
pub(super) async fn call(
    worker: &mut WorkerProcess,
    capabilities: &mut Capabilities,
    call: &WorkerCall,
) -> Result<Result<ExportAnswer, CallEnd>, Lost> {
    let most = most_passed(&call.terms.budget).saturating_add(FRAME_OVERHEAD);
    let mut connection = worker.connect()?;
    connection.send(call).await.map_err(Lost::before)?;
    let ended = answered(&mut connection, capabilities, most).await?;
    worker.disconnect(connection)?;
    Ok(ended)
}

/// Answers what the guest asks for until its call has ended.
async fn answered(
    connection: &mut WorkerConnection,
    capabilities: &mut Capabilities,
    most: usize,
) -> Result<Result<ExportAnswer, CallEnd>, Lost> {
    match connection.receive(most).await.map_err(Lost::before)? {
        WorkerFrame::Begun => {}
        _ => return Err(Lost::Nonsense("something else before it began".to_owned())),
    }
    let (mut stopped, mut cost_is_told) = (None, false);
    loop {
        match connection.receive(most).await? {
            WorkerFrame::Begun => return Err(Lost::Nonsense("it began once more".to_owned())),
            WorkerFrame::Ready(_) => return Err(Lost::Nonsense("it was ready once more".to_owned())),
            WorkerFrame::Cost(cost) => match &capabilities.costs {
                Some(costs) if !cost_is_told => {
                    costs.add(cost);
                    cost_is_told = true;
                }
                Some(_) | None => return Err(Lost::Nonsense("a cost that nobody asks for".to_owned())),
            },
            WorkerFrame::Call(_) if stopped.is_some() => {
                return Err(Lost::Nonsense("it went on when its call was stopped".to_owned()));
            }
            WorkerFrame::Call(call) => match Box::pin(answer(capabilities, call)).await {
                Ok(answer) => connection.hand_over(HostReply::Answer(Octets(answer))).await?,
                Err(NoReply::Call(end)) => {
                    stopped = Some(end);
                    connection.send(&HostReply::Stop).await?;
                }
                Err(NoReply::Worker(lost)) => return Err(lost),
            },
            // Whatever the worker makes of it, a call that was stopped has no answer.
            WorkerFrame::End(ended) => {
                return Ok(match stopped {
                    Some(end) => Err(end),
                    None => ended.map(DetachedAnswer::whole),
                });
            }
        }
    }
}

/// Why there is no answer to a host call.
enum NoReply {
    /// The guest has met a limit.
    Call(CallEnd),
    /// No guest asks so.
    Worker(Lost),
}

impl From<wasmtime::Error> for NoReply {
    fn from(error: wasmtime::Error) -> Self {
        Self::Call(CallEnd::of(&error))
    }
}

fn encoded(answer: &impl Serialize) -> Result<Vec<u8>, NoReply> {
    frame::encode(answer)
        .map_err(|error| NoReply::Worker(Lost::Nonsense(format!("an answer to it cannot be made: {error}"))))
}

fn artifact(number: u32) -> Resource<HeldArtifact> {
    Resource::new_own(number)
}

/// Lends so many more bytes of linear memory.
fn lend(of: &mut Capabilities, bytes: u64) -> Result<(), NoReply> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes < LENT_MEMORY {
        return Err(NoReply::Worker(Lost::Nonsense(format!("it asks for {bytes} bytes of memory"))));
    }
    Ok(of.meter.lend(bytes).map_err(wasmtime::Error::from)?)
}

/// Takes bytes of a standard stream.
fn write(of: &Capabilities, channel: Channel, bytes: &[u8]) -> Result<(), NoReply> {
    if bytes.is_empty() {
        return Err(NoReply::Worker(Lost::Nonsense("it writes nothing".to_owned())));
    }
    Ok(locked(&of.transcript).write(channel, bytes).map_err(wasmtime::Error::from)?)
}

/// Answers one host call.
async fn answer(of: &mut Capabilities, call: HostCall) -> Result<Vec<u8>, NoReply> {
    match call {
        HostCall::Memory(bytes) => encoded(&lend(of, bytes)?),
        HostCall::Write(channel, Octets(bytes)) => encoded(&write(of, channel, &bytes)?),
        HostCall::Log(level, message, fields) => encoded(&of.log().log(level, message, fields).await?),
        HostCall::ClusterGet(on, key) => encoded(&of.cluster().get(on, key).await?),
        HostCall::ClusterGetMany(on, keys) => encoded(&of.cluster().get_many(on, keys).await?),
        HostCall::ClusterList(on, what) => encoded(&of.cluster().list(on, what).await?),
        HostCall::ClusterVersion(on) => encoded(&of.cluster().version(on).await?),
        HostCall::ClusterDiscover(on) => encoded(&of.cluster().discover(on).await?),
        HostCall::Oci(reference) => encoded(&of.artifacts().oci(reference).await?.map(|held| held.rep())),
        HostCall::Url(url) => encoded(&of.artifacts().url(url).await?.map(|held| held.rep())),
        HostCall::HelmRepository { url, chart, version } => {
            encoded(&of.artifacts().helm_repository(url, chart, version).await?.map(|held| held.rep()))
        }
        HostCall::ComponentResource(key) => {
            encoded(&of.artifacts().component_resource(key).await?.map(|held| held.rep()))
        }
        HostCall::ComponentDescriptors(source) => {
            encoded(&of.artifacts().component_descriptors(source).await?.map(|held| held.rep()))
        }
        HostCall::ArtifactDigest(number) => encoded(&of.artifacts().digest(artifact(number)).await?),
        HostCall::ArtifactMediaType(number) => encoded(&of.artifacts().media_type(artifact(number)).await?),
        HostCall::ArtifactSize(number) => encoded(&of.artifacts().size(artifact(number)).await?),
        HostCall::ArtifactRead { artifact: number, offset, length } => {
            encoded(&of.artifacts().read(artifact(number), offset, length).await?.map(Octets))
        }
        HostCall::ArtifactLayer(number, media_type) => {
            let layer = of.artifacts().layer(artifact(number), media_type).await?;
            encoded(&layer.map(|found| found.map(|held| held.rep())))
        }
        HostCall::ArtifactDrop(number) => encoded(&of.artifacts().drop(artifact(number)).await?),
        HostCall::FileRead(path) => encoded(&of.files().read(path).await?.map(Octets)),
        HostCall::FileList(path) => encoded(&of.files().list(path).await?),
        HostCall::Component(from, select) => encoded(&of.components().component(from, select).await?),
        HostCall::Resources(from, select) => encoded(&of.components().resources(from, select).await?),
        HostCall::ResourceKey(reference) => encoded(&of.components().resource_key(reference).await?),
        HostCall::ResourceContent(reference) => {
            encoded(&of.components().resource_content(reference).await?.map(Octets))
        }
        HostCall::IssueCredential { credential, arguments } => {
            encoded(&of.kubeconfigs().issue_credential(credential, arguments).await?)
        }
        HostCall::Now => encoded(&of.randomness().now().await?),
        HostCall::RandomBytes { key, length } => encoded(&Octets(of.randomness().bytes(key, length).await?)),
    }
}
