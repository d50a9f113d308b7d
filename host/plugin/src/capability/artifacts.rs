//! `orangery:deployer/artifacts`: content by reference. The grants are asked before the port is.

use std::sync::Arc;

use orangery_core::error::{Code, Fault};
use orangery_ocm::ResourceKey;
use orangery_proposal::{
    deployer::Reads,
    grant::{Grants, Refusal},
};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use super::Guest;
use crate::{
    bindings::deployer::orangery::deployer::{
        artifacts::{self, Host, HostArtifact},
        types,
    },
    convert,
    held_artifact::HeldArtifact,
    meter::Meter,
};

/// What `artifacts` can see of a guest.
pub(crate) struct ArtifactsView<'a> {
    reads: Option<&'a Reads>,
    grants: &'a Grants,
    meter: &'a mut Meter,
    table: &'a mut ResourceTable,
}

struct HasArtifacts;

impl HasData for HasArtifacts {
    type Data<'a> = ArtifactsView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    artifacts::add_to_linker::<Guest, HasArtifacts>(linker, |guest| ArtifactsView {
        reads: guest.reads.as_ref(),
        grants: &guest.grants,
        meter: &mut guest.meter,
        table: &mut guest.table,
    })
}

type ArtifactCallResult<T> = wasmtime::Result<Result<T, types::Fault>>;

fn refused<T>(fault: Fault) -> ArtifactCallResult<T> {
    Ok(Err(convert::fault_for_guest(fault)))
}

/// The host of a URL: what stands between `//` and the next `/`, `?`, `#` or port, without credentials.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split_once(':').map_or(host, |(host, _)| host)
}

impl<'a> ArtifactsView<'a> {
    fn granted(&self, verdict: Result<(), Refusal>) -> Result<&'a Reads, Fault> {
        verdict.map_err(|refusal| Fault::denied(refusal.to_string()))?;
        self.reads.ok_or_else(|| Fault::denied("there is no content in this call; only deployers read artifacts"))
    }

    /// Waits for what is looked for, and hands it out.
    async fn find(&mut self, found: orangery_ocm::ArtifactFuture<'_>) -> ArtifactCallResult<Resource<HeldArtifact>> {
        match self.meter.wait(found).await {
            Ok(found) => Ok(Ok(self.table.push(HeldArtifact { found, content: None })?)),
            Err(fault) => refused(fault),
        }
    }
}

impl Host for ArtifactsView<'_> {
    async fn oci(&mut self, reference: String) -> ArtifactCallResult<Resource<HeldArtifact>> {
        self.meter.host_call(reference.len())?;
        match self.granted(self.grants.artifact(&reference)) {
            Ok(reads) => self.find(reads.artifacts.oci(&reference)).await,
            Err(fault) => refused(fault),
        }
    }

    async fn url(&mut self, url: String) -> ArtifactCallResult<Resource<HeldArtifact>> {
        self.meter.host_call(url.len())?;
        match self.granted(self.grants.host(host_of(&url))) {
            Ok(reads) => self.find(reads.artifacts.url(&url)).await,
            Err(fault) => refused(fault),
        }
    }

    async fn helm_repository(
        &mut self,
        url: String,
        chart: String,
        version: String,
    ) -> ArtifactCallResult<Resource<HeldArtifact>> {
        self.meter.host_call(url.len() + chart.len() + version.len())?;
        // A repository in a registry is asked for an artifact.
        let verdict = match url.strip_prefix("oci://") {
            Some(place) => self.grants.artifact(&format!("{}/{chart}", place.trim_end_matches('/'))),
            None => self.grants.host(host_of(&url)),
        };
        match self.granted(verdict) {
            Ok(reads) => self.find(reads.artifacts.helm_repository(&url, &chart, &version)).await,
            Err(fault) => refused(fault),
        }
    }

    async fn component_resource(&mut self, key: String) -> ArtifactCallResult<Resource<HeldArtifact>> {
        self.meter.host_call(key.len())?;
        let read = match ResourceKey::read(&key) {
            Ok(read) => read,
            Err(why) => return refused(Fault::invalid(Code::ConfigurationProblem, why)),
        };
        // By the name of the component, which is what an operator can write down.
        match self.granted(self.grants.artifact(&read.component.name)) {
            Ok(reads) => self.find(reads.resources.resource(&read)).await,
            Err(fault) => refused(fault),
        }
    }
}

impl HostArtifact for ArtifactsView<'_> {
    async fn digest(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<String> {
        self.meter.host_call(0)?;
        Ok(self.table.get(&artifact)?.found.digest().to_owned())
    }

    async fn media_type(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<String> {
        self.meter.host_call(0)?;
        Ok(self.table.get(&artifact)?.found.media_type().to_owned())
    }

    async fn size(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<u64> {
        self.meter.host_call(0)?;
        Ok(self.table.get(&artifact)?.found.size())
    }

    async fn read(
        &mut self,
        artifact: Resource<HeldArtifact>,
        offset: u64,
        length: u32,
    ) -> ArtifactCallResult<Vec<u8>> {
        self.meter.host_call(0)?;
        let held = self.table.get(&artifact)?;
        let content = match &held.content {
            Some(content) => Arc::clone(content),
            None => {
                let found = Arc::clone(&held.found);
                // The host holds all of it as long as the guest holds the artifact.
                self.meter.carry(usize::try_from(found.size()).unwrap_or(usize::MAX))?;
                match self.meter.wait(found.content()).await {
                    Ok(content) => {
                        self.table.get_mut(&artifact)?.content = Some(Arc::clone(&content));
                        content
                    }
                    Err(fault) => return refused(fault),
                }
            }
        };
        let part = part(&content, offset, length);
        self.meter.carry(part.len())?;
        Ok(Ok(part.to_vec()))
    }

    async fn layer(
        &mut self,
        artifact: Resource<HeldArtifact>,
        media_type: String,
    ) -> ArtifactCallResult<Option<Resource<HeldArtifact>>> {
        self.meter.host_call(media_type.len())?;
        let of = Arc::clone(&self.table.get(&artifact)?.found);
        match self.meter.wait(of.layer(&media_type)).await {
            Ok(Some(found)) => Ok(Ok(Some(self.table.push(HeldArtifact { found, content: None })?))),
            Ok(None) => Ok(Ok(None)),
            Err(fault) => refused(fault),
        }
    }

    async fn drop(&mut self, artifact: Resource<HeldArtifact>) -> wasmtime::Result<()> {
        self.table.delete(artifact)?;
        Ok(())
    }
}

/// At most `length` bytes from `offset` on; none behind the end.
fn part(content: &[u8], offset: u64, length: u32) -> &[u8] {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    let rest = content.get(from..).unwrap_or_default();
    rest.get(..usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_cannot_be_disguised() {
        for url in [
            "https://charts.example.org/a",
            "https://charts.example.org:8443/a",
            "https://user:secret@charts.example.org/a",
            "https://granted.org@charts.example.org",
            "https://charts.example.org?@granted.org",
            "https://charts.example.org#@granted.org",
            "https://charts.example.org\\@granted.org",
        ] {
            assert_eq!(host_of(url), "charts.example.org", "{url}");
        }
    }

    #[test]
    fn a_part_ends_where_the_content_does() {
        let content = b"0123456789";
        assert_eq!(part(content, 0, 4), b"0123");
        assert_eq!(part(content, 8, 4), b"89");
        assert_eq!(part(content, 10, 4), b"");
        assert_eq!(part(content, u64::MAX, u32::MAX), b"");
        assert_eq!(part(content, 3, 0), b"");
    }
}
