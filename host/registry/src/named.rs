//! Content by its name, held against what policies say of names. Whoever is about to ask for it, and whoever only wants to know,
//! goes the same way.

use orangery_core::error::{Code, Fault};
use orangery_ocm::{AllowedSources, Repository};
use serde_json::Value;

use crate::{
    access::pushed_as,
    oci::{ArtifactReference, ArtifactSelector, Consumer, FileRequest, component_repository},
};

/// Content that is named by a reference.
#[derive(Clone, Copy, Debug)]
pub enum NamedContent<'a> {
    /// An artifact of a registry.
    Oci(&'a str),
    /// A file of a web server.
    Url(&'a str),
    /// A chart of a repository: of a registry where its address begins with `oci://`.
    Chart {
        /// The address.
        repository: &'a str,
        /// The name of the chart.
        chart: &'a str,
        /// Its version.
        version: &'a str,
    },
    /// The descriptor of a component version.
    Component {
        /// Its repository context.
        context: &'a Value,
        /// The name of the component.
        name: &'a str,
    },
}

impl NamedContent<'_> {
    /// Whether it may be asked for, as far as its name tells. Where servers lead, and what a chart repository or a component
    /// version names in turn, is found out when it is asked for.
    ///
    /// # Errors
    /// A denial that names the line of a policy; another fault where nothing can have this name.
    pub fn check(&self, allowed: &AllowedSources) -> Result<(), Fault> {
        match *self {
            Self::Oci(text) => {
                let reference = artifact(text)?;
                if let ArtifactSelector::Tag(_) = reference.selector {
                    allowed.without_digest(text)?;
                }
                allowed.registry(&reference.repository.source())
            }
            Self::Url(url) => {
                let file = file(url)?;
                allowed.without_digest("a file of a web server")?;
                allowed.host(file.host())
            }
            Self::Chart { repository, chart, version } if repository.starts_with("oci://") => {
                NamedContent::Oci(&chart_in_registry(repository, chart, version)).check(allowed)
            }
            Self::Chart { repository, chart, version } => {
                allowed.without_digest(&format!("the chart {chart} {version}"))?;
                let index = FileRequest::new(repository, Consumer::Charts);
                let unusable = |why: String| invalid(format!("the address of the chart repository {why}"));
                allowed.host(index.map_err(unusable)?.host())
            }
            Self::Component { context, name } => {
                let repository = Repository::parse(context).map_err(|error| invalid(error.to_string()))?;
                let Repository::Oci { base_url, mapping } = repository else { return Ok(()) };
                allowed.registry(&component_repository(&base_url, mapping, name)?.source())
            }
        }
    }
}

/// The artifact that a text names.
pub(crate) fn artifact(text: &str) -> Result<ArtifactReference, Fault> {
    text.parse().map_err(|error| invalid(format!("{text} {error}")))
}

/// The file that an address names.
pub(crate) fn file(url: &str) -> Result<FileRequest, Fault> {
    FileRequest::new(url, Consumer::Files).map_err(|why| invalid(format!("the address of the file {why}")))
}

/// A chart of a registry, by the address that `helm pull` takes.
pub(crate) fn chart_in_registry(url: &str, chart: &str, version: &str) -> String {
    pushed_as(url.trim_start_matches("oci://"), chart, version)
}

fn invalid(why: String) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, why)
}
