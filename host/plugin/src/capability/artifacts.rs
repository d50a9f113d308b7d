//! `orangery:deployer/artifacts`: content by reference. The grants are asked before the port is.

use std::sync::Arc;

use orangery_core::error::{Code, Fault};
use orangery_ocm::{Artifact, ComponentSource, ResourceKey};
use orangery_proposal::{
    deployer::Reads,
    grant::{Grants, Refusal},
};
use url::Url;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use super::{Capabilities, Guest};
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
    artifacts::add_to_linker::<Guest, HasArtifacts>(linker, |guest| guest.capabilities.artifacts())
}

impl Capabilities {
    /// What is behind `artifacts`.
    pub(crate) fn artifacts(&mut self) -> ArtifactsView<'_> {
        ArtifactsView {
            reads: self.reads.as_ref(),
            grants: &self.grants,
            meter: &mut self.meter,
            table: &mut self.table,
        }
    }
}

type ArtifactCallResult<T> = wasmtime::Result<Result<T, types::Fault>>;

fn refused<T>(fault: Fault) -> ArtifactCallResult<T> {
    Ok(Err(convert::fault_for_guest(fault)))
}

/// The address of a web server, read once: what is asked for is what was held against the grants (C-68).
fn web_address(text: &str) -> Result<Url, Fault> {
    let unusable = |why: String| {
        let message = format!("the address {why}; write it as https://HOST/PATH");
        Fault::invalid(Code::ConfigurationProblem, message)
    };
    let url = Url::parse(text).map_err(|error| unusable(format!("cannot be read: {error}")))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(unusable("is not of a web server".to_owned()));
    }
    Ok(url)
}

impl<'a> ArtifactsView<'a> {
    fn granted(&self, verdict: Result<(), Refusal>) -> Result<&'a Reads, Fault> {
        verdict.map_err(|refusal| Fault::denied(refusal.to_string()))?;
        self.reads.ok_or_else(|| Fault::denied("there is no content in this call; only deployers read artifacts"))
    }

    /// What may be asked, and the address as it was held against the grants.
    fn granted_address(&self, text: &str) -> Result<(&'a Reads, Url), Fault> {
        let url = web_address(text)?;
        let reads = self.granted(self.grants.host(url.host_str().unwrap_or_default()))?;
        Ok((reads, url))
    }

    /// Waits for what is looked for, and hands it out.
    async fn find(&mut self, found: orangery_ocm::ArtifactFuture<'_>) -> ArtifactCallResult<Resource<HeldArtifact>> {
        match self.meter.wait(found).await {
            Ok(found) => self.hand_out(found).await.map(Ok),
            Err(fault) => refused(fault),
        }
    }

    /// Hands out what was found. What is in memory with that counts from now on, whether it is read or not.
    async fn hand_out(&mut self, found: Arc<dyn Artifact>) -> wasmtime::Result<Resource<HeldArtifact>> {
        let mut content = None;
        if found.is_in_memory() {
            self.meter.carry(usize::try_from(found.size()).unwrap_or(usize::MAX))?;
            content = self.meter.wait(found.content()).await.ok();
        }
        Ok(self.table.push(HeldArtifact { found, content })?)
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
        match self.granted_address(&url) {
            Ok((reads, url)) => self.find(reads.artifacts.url(url.as_str())).await,
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
        if let Some(place) = url.strip_prefix("oci://") {
            let named = format!("{}/{chart}", place.trim_end_matches('/'));
            return match self.granted(self.grants.artifact(&named)) {
                Ok(reads) => self.find(reads.artifacts.helm_repository(&url, &chart, &version)).await,
                Err(fault) => refused(fault),
            };
        }
        match self.granted_address(&url) {
            Ok((reads, url)) => self.find(reads.artifacts.helm_repository(url.as_str(), &chart, &version)).await,
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

    async fn component_descriptors(&mut self, of: String) -> ArtifactCallResult<Resource<HeldArtifact>> {
        self.meter.host_call(of.len())?;
        let read = convert::argument(&of).and_then(|_| ComponentSource::read(&of));
        let source = match read {
            Ok(source) => source,
            Err(why) => return refused(Fault::invalid(Code::ConfigurationProblem, why)),
        };
        match self.granted(self.grants.artifact(source.name())) {
            Ok(reads) => self.find(reads.resources.descriptors(&source)).await,
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
            Ok(Some(found)) => self.hand_out(found).await.map(|held| Ok(Some(held))),
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
    use std::sync::Mutex;

    use orangery_ocm::{Artifacts, ComponentReference};

    use super::{super::cluster::tests::Everything, *};
    use crate::{budget::Budget, epochs::Epochs, meter::SharedMemory};

    /// Keeps what it is asked for, and has nothing.
    #[derive(Default)]
    struct Requested(Mutex<Vec<String>>);

    impl Requested {
        fn nothing(&self, place: &str) -> orangery_ocm::ArtifactFuture<'_> {
            self.0.lock().unwrap().push(place.to_owned());
            Box::pin(async { Err(Fault::invalid(Code::ConfigurationProblem, "asked")) })
        }
    }

    impl Artifacts for Requested {
        fn component<'a>(&'a self, _: &'a ComponentReference) -> orangery_ocm::ArtifactFuture<'a> {
            unreachable!("deployers read no components")
        }

        fn oci<'a>(&'a self, reference: &'a str) -> orangery_ocm::ArtifactFuture<'a> {
            self.nothing(reference)
        }

        fn url<'a>(&'a self, url: &'a str) -> orangery_ocm::ArtifactFuture<'a> {
            self.nothing(url)
        }

        fn helm_repository<'a>(&'a self, url: &'a str, _: &'a str, _: &'a str) -> orangery_ocm::ArtifactFuture<'a> {
            self.nothing(url)
        }
    }

    fn message(answer: Result<Resource<HeldArtifact>, types::Fault>) -> String {
        match answer.map(drop).unwrap_err() {
            types::Fault::Invalid(problem) | types::Fault::Denied(problem) | types::Fault::Later(problem) => {
                problem.message
            }
        }
    }

    /// What a component hears that asks for a file, and for a chart, of an address, and what was asked for it; the host
    /// `charts.example.org` is granted, and no artifact.
    fn asks(address: &str) -> ([String; 2], Vec<String>) {
        let grants = Grants { hosts: vec!["charts.example.org".to_owned()], ..Grants::default() };
        let asked = Arc::new(Requested::default());
        let reads = Reads { artifacts: Arc::clone(&asked) as _, ..Reads::of_clusters(Arc::new(Everything)) };
        let budget = Budget { host_calls: 10, ..Budget::default() };
        let mut meter = Meter::new(budget, Arc::new(SharedMemory::new(0)), Arc::new(Epochs::default()));
        let mut table = ResourceTable::new();
        let mut view = ArtifactsView { reads: Some(&reads), grants: &grants, meter: &mut meter, table: &mut table };
        let file = futures::executor::block_on(view.url(address.to_owned())).unwrap();
        let chart = view.helm_repository(address.to_owned(), "shop".to_owned(), "1.0.0".to_owned());
        let chart = futures::executor::block_on(chart).unwrap();
        let asked = std::mem::take(&mut *asked.0.lock().unwrap());
        ([message(file), message(chart)], asked)
    }

    #[test]
    fn c_68_the_host_that_is_granted_is_the_host_that_is_asked() {
        for url in [
            "https://charts.example.org/a",
            "https://CHARTS.example.org:8443/a",
            "https://user:secret@charts.example.org/a",
            "https://granted.org@charts.example.org",
            "https://charts.example.org?@granted.org",
            "https://charts.example.org#@granted.org",
            "https://charts.example.org\\@granted.org",
            "https:charts.example.org/x?://evil.example/",
            " https:\\\\charts.example.org\t/a",
        ] {
            let (said, asked) = asks(url);
            assert_eq!(said, ["asked", "asked"], "{url}");
            for asked in asked {
                assert!(asked.starts_with("http") && asked.contains("charts.example.org"), "{url}: {asked}");
                assert_eq!(asked, Url::parse(url).unwrap().as_str(), "what was held against the grants is asked for");
            }
        }
        for url in [
            "https:evil.example/x?://charts.example.org/",
            "https:/evil.example/x://charts.example.org/",
            "https:\\evil.example\\x://charts.example.org/",
            "https:///evil.example/://charts.example.org/",
            "https://evil.example\\@charts.example.org/",
            "https://charts.example.org@evil.example/",
            "ht\ttps://evil.example/?https://charts.example.org/",
        ] {
            let why = "the host evil.example is not granted to this component; have an administrator add it to `hosts` in the grants of its \
                       registration, or of its Plugin";
            assert_eq!(asks(url), ([why.to_owned(), why.to_owned()], vec![]), "{url}");
        }
        // As another scheme a registry would be asked, for which artifacts are granted and not hosts.
        for url in ["OCI://charts.example.org/shop", " oci://charts.example.org/shop", "file://charts.example.org/a"] {
            let why = "the address is not of a web server; write it as https://HOST/PATH";
            assert_eq!(asks(url), ([why.to_owned(), why.to_owned()], vec![]), "{url}");
        }
        for (url, why) in [("charts.example.org/a", "relative URL without a base"), ("https://", "empty host")] {
            let why = format!("the address cannot be read: {why}; write it as https://HOST/PATH");
            assert_eq!(asks(url), ([why.clone(), why], vec![]), "{url}");
        }
    }

    /// Whatever an address is made of, the port reads the granted host in what it is asked for.
    #[test]
    fn c_68_no_disguise_of_a_host_is_asked() {
        let (schemes, slashes) =
            (["https:", "HTTPS:", "http:", "oci:", ""], ["", "/", "//", "///", "\\", "/\\", "\t//"]);
        let hosts =
            ["evil.example", "charts.example.org", "charts.example.org@evil.example", "evil.example:1", "[::1]"];
        let ends = ["", "/", "?", "#", "\\", "@", ":", "/x?://", "/x://", "/@", ".", "%2e", "\n"];
        let mut reached = 0;
        for (scheme, slash) in schemes.iter().flat_map(|scheme| slashes.map(|slash| (scheme, slash))) {
            for (host, end) in hosts.iter().flat_map(|host| ends.map(|end| (host, end))) {
                for tail in ["", "charts.example.org", "charts.example.org/", "evil.example"] {
                    let address = format!("{scheme}{slash}{host}{end}{tail}");
                    for asked in asks(&address).1 {
                        let read = Url::parse(&asked).unwrap();
                        assert_eq!(read.host_str(), Some("charts.example.org"), "{address:?}");
                        assert!(matches!(read.scheme(), "http" | "https"), "{address:?}");
                        reached += 1;
                    }
                }
            }
        }
        assert!(reached > 0);
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
