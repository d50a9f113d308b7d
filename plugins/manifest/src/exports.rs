//! Exports (`docs/wire.md` §8.1): values of objects, read by the host once everything is ready.

use orangery_sdk::{ExportRule, ExportSource, Follow, PathSource, Problem, lenient::Place};

use crate::readiness::{cluster, reference};

/// The export rules of a configuration.
pub(crate) fn rules(config: &Place<'_>) -> Result<Vec<ExportRule>, Problem> {
    let Some(exports) = config.field("exports")? else { return Ok(Vec::new()) };
    let rules = exports.items_of("exports")?.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    Ok(rules.into_iter().flatten().collect())
}

/// A rule without a resource exports nothing, as with Landscaper.
fn rule(export: &Place<'_>) -> Result<Option<ExportRule>, Problem> {
    let Some(resource) = export.field("fromResource")? else { return Ok(None) };
    let source = PathSource {
        on: cluster(export)?,
        key: reference(&resource)?,
        path: export.required("jsonPath")?.name()?.to_owned(),
        then: export.field("fromObjectRef")?.map(|then| follow(&then)).transpose()?,
    };
    Ok(Some(ExportRule { key: export.required("key")?.name()?.to_owned(), source: ExportSource::Path(source) }))
}

fn follow(place: &Place<'_>) -> Result<Follow, Problem> {
    let text = |name: &str| Ok::<_, Problem>(place.required(name)?.name()?.to_owned());
    Ok(Follow { api_version: text("apiVersion")?, kind: text("kind")?, path: text("jsonPath")? })
}
