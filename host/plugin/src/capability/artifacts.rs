//! `orangery:deployer/artifacts`: granted or not, there is no backend yet, and every call says so.

use orangery_core::{error::Fault, grant::Grants};
use wasmtime::component::{HasData, Linker, Resource};

use super::Guest;
use crate::{
    bindings::deployer::orangery::deployer::{
        artifacts::{self, Host, HostArtifact},
        types,
    },
    convert,
    error::Stop,
    meter::Meter,
};

/// An artifact that a guest holds. There is none before there is a backend.
#[expect(unreachable_pub, reason = "the generated bindings name it again as public, inside this crate")]
pub enum Artifact {}

/// What `artifacts` can see of a guest.
pub(crate) struct ArtifactsView<'a> {
    grants: &'a Grants,
    meter: &'a mut Meter,
}

struct HasArtifacts;

impl HasData for HasArtifacts {
    type Data<'a> = ArtifactsView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    artifacts::add_to_linker::<Guest, HasArtifacts>(linker, |guest| ArtifactsView {
        grants: &guest.grants,
        meter: &mut guest.meter,
    })
}

const NAME: &str = "orangery:deployer/artifacts";

type Answer = wasmtime::Result<Result<Resource<Artifact>, types::Fault>>;

fn refused(fault: Fault) -> Answer {
    Ok(Err(convert::fault_for_guest(fault)))
}

fn unserved(what: &str) -> Fault {
    Fault::denied(format!("{what} is granted, but this host does not fetch artifacts yet"))
}

/// The host of a URL: what stands between `//` and the next `/`, `?`, `#` or port, without credentials.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split_once(':').map_or(host, |(host, _)| host)
}

impl ArtifactsView<'_> {
    fn by_reference(&mut self, reference: &str) -> Answer {
        self.meter.host_call(reference.len())?;
        match self.grants.artifact(reference) {
            Ok(()) => refused(unserved(&format!("the artifact {reference}"))),
            Err(refusal) => refused(Fault::denied(refusal.to_string())),
        }
    }

    fn by_url(&mut self, url: &str) -> Answer {
        self.meter.host_call(url.len())?;
        match self.grants.host(host_of(url)) {
            Ok(()) => refused(unserved(&format!("the host {}", host_of(url)))),
            Err(refusal) => refused(Fault::denied(refusal.to_string())),
        }
    }
}

impl Host for ArtifactsView<'_> {
    async fn oci(&mut self, reference: String) -> Answer {
        self.by_reference(&reference)
    }

    async fn url(&mut self, url: String) -> Answer {
        self.by_url(&url)
    }

    async fn helm_repository(&mut self, url: String, _chart: String, _version: String) -> Answer {
        self.by_url(&url)
    }

    async fn component_resource(&mut self, key: String) -> Answer {
        self.by_reference(&key)
    }
}

impl HostArtifact for ArtifactsView<'_> {
    async fn digest(&mut self, _artifact: Resource<Artifact>) -> wasmtime::Result<String> {
        Err(Stop::Unavailable(NAME).into())
    }

    async fn media_type(&mut self, _artifact: Resource<Artifact>) -> wasmtime::Result<String> {
        Err(Stop::Unavailable(NAME).into())
    }

    async fn size(&mut self, _artifact: Resource<Artifact>) -> wasmtime::Result<u64> {
        Err(Stop::Unavailable(NAME).into())
    }

    async fn read(
        &mut self,
        _artifact: Resource<Artifact>,
        _offset: u64,
        _length: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, types::Fault>> {
        Err(Stop::Unavailable(NAME).into())
    }

    async fn layer(
        &mut self,
        _artifact: Resource<Artifact>,
        _media_type: String,
    ) -> wasmtime::Result<Result<Option<Resource<Artifact>>, types::Fault>> {
        Err(Stop::Unavailable(NAME).into())
    }

    async fn drop(&mut self, _artifact: Resource<Artifact>) -> wasmtime::Result<()> {
        Ok(())
    }
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
}
