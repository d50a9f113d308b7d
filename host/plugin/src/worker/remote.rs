//! The worker's end of the socket, and what a guest sees of the host through it.

use std::{
    fs::File,
    io::{self, Read, Write},
    process,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::{Serialize, de::DeserializeOwned};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::frame::{self, HostCall, HostReply, Octets, PREFIX, WorkerFrame};
use crate::{
    bindings::{
        deployer::orangery::deployer::{artifacts, cluster, log, types},
        template::orangery::template::{components, files, kubeconfigs, randomness},
    },
    capability::{self, big_integers},
    held_artifact::HeldArtifact,
    meter::{LENT_MEMORY, MemorySource, Meter, Metered},
    transcript::Channel,
    wasi::{self, GuestOutput},
};

/// The socket to the host.
pub(super) struct HostConnection {
    /// Protects the order of frames; held for one exchange. A worker makes one call at a time.
    stream: Mutex<File>,
}

/// The host has ended the call, and knows why.
#[derive(Debug, thiserror::Error)]
#[error("the host has ended the call")]
struct Stopped;

impl HostConnection {
    pub(super) fn new(stream: File) -> Self {
        Self { stream: Mutex::new(stream) }
    }

    fn stream(&self) -> MutexGuard<'_, File> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next frame; `None` where the host has gone, or has sent nothing for so long that it will not.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let mut stream = self.stream();
        let mut prefix = [0; PREFIX];
        match stream.read_exact(&mut prefix) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::WouldBlock) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let mut content = vec![0; u32::from_be_bytes(prefix) as usize];
        read_all(&mut stream, &mut content)?;
        frame::decode(&content).map(Some).map_err(io::Error::other)
    }

    pub(super) fn send(&self, value: &impl Serialize) -> io::Result<()> {
        self.stream().write_all(&frame::frame(value).map_err(io::Error::other)?)
    }

    /// What the host answers; `None` where it ends the call.
    fn ask<A: DeserializeOwned>(&self, call: HostCall) -> Option<A> {
        let exchanged = self.exchange(call);
        // Without the host there is nobody to tell.
        exchanged.unwrap_or_else(|_| process::exit(1))
    }

    fn exchange<A: DeserializeOwned>(&self, call: HostCall) -> io::Result<Option<A>> {
        self.send(&WorkerFrame::Call(call))?;
        let mut stream = self.stream();
        let mut prefix = [0; PREFIX];
        read_all(&mut stream, &mut prefix)?;
        let mut content = vec![0; u32::from_be_bytes(prefix) as usize];
        read_all(&mut stream, &mut content)?;
        match frame::decode(&content).map_err(io::Error::other)? {
            HostReply::Answer(Octets(answer)) => frame::decode(&answer).map(Some).map_err(io::Error::other),
            HostReply::Stop => Ok(None),
        }
    }
}

/// Fills the buffer, however long the host takes: a cluster may be slow, and the wall clock is the host's.
fn read_all(stream: &mut File, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => buffer = buffer.get_mut(read..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl GuestOutput for HostConnection {
    fn write(&self, channel: Channel, bytes: &[u8]) -> wasmtime::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.ask(HostCall::Write(channel, Octets(bytes.to_vec()))).ok_or(Stopped)?)
    }
}

/// Memory of the host's share for one call, which the host lends in steps.
pub(super) struct LentMemory {
    host: Arc<HostConnection>,
    lent: AtomicUsize,
    used: AtomicUsize,
}

impl LentMemory {
    /// For a call that has been lent the first step.
    pub(super) fn new(host: Arc<HostConnection>) -> Self {
        Self { host, lent: AtomicUsize::new(LENT_MEMORY), used: AtomicUsize::new(0) }
    }
}

impl MemorySource for LentMemory {
    fn take(&self, bytes: usize) -> bool {
        let used = self.used.load(Ordering::Relaxed).saturating_add(bytes);
        let missing = used.saturating_sub(self.lent.load(Ordering::Relaxed));
        if missing > 0 {
            let step = missing.next_multiple_of(LENT_MEMORY);
            if self.host.ask::<()>(HostCall::Memory(step as u64)).is_none() {
                return false;
            }
            self.lent.fetch_add(step, Ordering::Relaxed);
        }
        self.used.store(used, Ordering::Relaxed);
        true
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The store's data of a call that runs in a worker.
pub(super) struct RemoteGuest {
    pub(super) meter: Meter,
    pub(super) host: Arc<HostConnection>,
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
}

impl WasiView for RemoteGuest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl Metered for RemoteGuest {
    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

/// Links what a component may import: each function as a question to the host, but for arithmetic, which is computed here.
pub(super) fn add_to_linker(linker: &mut Linker<RemoteGuest>) -> wasmtime::Result<()> {
    wasi::add_to_linker(linker)?;
    capability::add_types_to_linker(linker)?;
    log::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    cluster::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    artifacts::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    files::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    components::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    kubeconfigs::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    randomness::add_to_linker::<RemoteGuest, HasHost>(linker, RemoteGuest::view)?;
    big_integers::add_to_linker(linker)
}

struct HasHost;

impl HasData for HasHost {
    type Data<'a> = HostView<'a>;
}

/// The host, as a guest in a worker sees it.
struct HostView<'a> {
    meter: &'a mut Meter,
    host: &'a HostConnection,
}

impl RemoteGuest {
    fn view(&mut self) -> HostView<'_> {
        HostView { meter: &mut self.meter, host: &self.host }
    }
}

impl HostView<'_> {
    /// Asks the host, and waits. A tick that passes meanwhile is not counted as the guest's.
    async fn ask<A: DeserializeOwned>(&mut self, call: HostCall) -> wasmtime::Result<A> {
        let host = self.host;
        Ok(self.meter.wait(async { host.ask(call) }).await.ok_or(Stopped)?)
    }

    async fn ask_for_artifact(
        &mut self,
        call: HostCall,
    ) -> wasmtime::Result<Result<Resource<HeldArtifact>, types::Fault>> {
        Ok(self.ask::<Result<u32, types::Fault>>(call).await?.map(Resource::new_own))
    }

    async fn ask_for_bytes<E: DeserializeOwned>(&mut self, call: HostCall) -> wasmtime::Result<Result<Vec<u8>, E>> {
        Ok(self.ask::<Result<Octets, E>>(call).await?.map(|octets| octets.0))
    }
}

type DeployerResult<T> = wasmtime::Result<Result<T, types::Fault>>;
type TemplateResult<T> = wasmtime::Result<Result<T, String>>;

impl log::Host for HostView<'_> {
    async fn log(&mut self, at: log::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.ask(HostCall::Log(at, message, fields)).await
    }
}

impl cluster::Host for HostView<'_> {
    async fn get(&mut self, on: types::ClusterRef, key: types::ObjectKey) -> DeployerResult<Option<String>> {
        self.ask(HostCall::ClusterGet(on, key)).await
    }

    async fn get_many(
        &mut self,
        on: types::ClusterRef,
        keys: Vec<types::ObjectKey>,
    ) -> DeployerResult<Vec<Option<String>>> {
        self.ask(HostCall::ClusterGetMany(on, keys)).await
    }

    async fn list(&mut self, on: types::ClusterRef, what: types::Selection) -> DeployerResult<Vec<String>> {
        self.ask(HostCall::ClusterList(on, what)).await
    }

    async fn version(&mut self, on: types::ClusterRef) -> DeployerResult<String> {
        self.ask(HostCall::ClusterVersion(on)).await
    }

    async fn discover(&mut self, on: types::ClusterRef) -> DeployerResult<Vec<cluster::ApiResource>> {
        self.ask(HostCall::ClusterDiscover(on)).await
    }
}

impl artifacts::Host for HostView<'_> {
    async fn oci(&mut self, reference: String) -> DeployerResult<Resource<HeldArtifact>> {
        self.ask_for_artifact(HostCall::Oci(reference)).await
    }

    async fn url(&mut self, url: String) -> DeployerResult<Resource<HeldArtifact>> {
        self.ask_for_artifact(HostCall::Url(url)).await
    }

    async fn helm_repository(
        &mut self,
        url: String,
        chart: String,
        version: String,
    ) -> DeployerResult<Resource<HeldArtifact>> {
        self.ask_for_artifact(HostCall::HelmRepository { url, chart, version }).await
    }

    async fn component_resource(&mut self, key: String) -> DeployerResult<Resource<HeldArtifact>> {
        self.ask_for_artifact(HostCall::ComponentResource(key)).await
    }

    async fn component_descriptors(&mut self, of: String) -> DeployerResult<Resource<HeldArtifact>> {
        self.ask_for_artifact(HostCall::ComponentDescriptors(of)).await
    }
}

impl artifacts::HostArtifact for HostView<'_> {
    async fn digest(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<String> {
        self.ask(HostCall::ArtifactDigest(artifact.rep())).await
    }

    async fn media_type(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<String> {
        self.ask(HostCall::ArtifactMediaType(artifact.rep())).await
    }

    async fn size(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<u64> {
        self.ask(HostCall::ArtifactSize(artifact.rep())).await
    }

    async fn read(&mut self, artifact: Resource<HeldArtifact>, offset: u64, length: u32) -> DeployerResult<Vec<u8>> {
        self.ask_for_bytes(HostCall::ArtifactRead { artifact: artifact.rep(), offset, length }).await
    }

    async fn layer(
        &mut self,
        artifact: Resource<HeldArtifact>,
        media_type: String,
    ) -> DeployerResult<Option<Resource<HeldArtifact>>> {
        let call = HostCall::ArtifactLayer(artifact.rep(), media_type);
        let layer: Result<Option<u32>, types::Fault> = self.ask(call).await?;
        Ok(layer.map(|found| found.map(Resource::new_own)))
    }

    async fn drop(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<()> {
        self.ask(HostCall::ArtifactDrop(artifact.rep())).await
    }
}

impl files::Host for HostView<'_> {
    async fn read(&mut self, path: String) -> TemplateResult<Vec<u8>> {
        self.ask_for_bytes(HostCall::FileRead(path)).await
    }

    async fn list(&mut self, path: String) -> TemplateResult<Vec<String>> {
        self.ask(HostCall::FileList(path)).await
    }
}

impl components::Host for HostView<'_> {
    async fn component(&mut self, from: Option<String>, select: components::Identity) -> TemplateResult<String> {
        self.ask(HostCall::Component(from, select)).await
    }

    async fn resources(&mut self, from: Option<String>, select: components::Identity) -> TemplateResult<Vec<String>> {
        self.ask(HostCall::Resources(from, select)).await
    }

    async fn resource_key(&mut self, reference: String) -> TemplateResult<String> {
        self.ask(HostCall::ResourceKey(reference)).await
    }

    async fn resource_content(&mut self, reference: String) -> TemplateResult<Vec<u8>> {
        self.ask_for_bytes(HostCall::ResourceContent(reference)).await
    }
}

impl kubeconfigs::Host for HostView<'_> {
    async fn issue_credential(&mut self, credential: String, arguments: String) -> TemplateResult<String> {
        self.ask(HostCall::IssueCredential { credential, arguments }).await
    }
}

impl randomness::Host for HostView<'_> {
    async fn now(&mut self) -> wasmtime::Result<String> {
        self.ask(HostCall::Now).await
    }

    async fn bytes(&mut self, key: String, length: u32) -> wasmtime::Result<Vec<u8>> {
        Ok(self.ask::<Octets>(HostCall::RandomBytes { key, length }).await?.0)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::OwnedFd, unix::net::UnixStream},
        time::Duration,
    };

    use super::*;

    #[test]
    fn limits_workers_a_host_that_sends_no_call_for_long_or_has_gone_is_left() {
        let (host, stream) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let connection = HostConnection::new(File::from(OwnedFd::from(stream)));
        assert_eq!(connection.receive::<u8>().unwrap(), None, "it is silent");
        drop(host);
        assert_eq!(connection.receive::<u8>().unwrap(), None, "it has gone");
    }
}
