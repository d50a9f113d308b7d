//! Indexes of classic chart repositories: where a chart is.

use orangery_core::{
    digest::content::ContentDigest,
    error::{Code, Fault},
    lenient, yaml,
};
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of the address of a chart: it is kept for a while.
const LONGEST_ADDRESS: usize = 8 << 10;

/// Where a chart is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChartLocation {
    /// Its address, which may be relative to that of the index.
    pub(crate) url: String,
    /// Its digest, where the index has it.
    pub(crate) digest: Option<ContentDigest>,
}

/// A version of a chart.
#[derive(Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
struct Chart {
    version: String,
    urls: Vec<String>,
    digest: String,
}

/// Why an index does not say where a chart is: the end of a sentence about the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// It does not have the chart or the version; they may be added later.
    Missing(String),
    /// What it says of it cannot be used.
    Broken(String),
}

impl Unlisted {
    /// As a fault of the index of this name.
    pub(crate) fn fault(self, index: &str) -> Fault {
        let (Unlisted::Missing(why) | Unlisted::Broken(why)) = &self;
        let message = format!("the index {index} {why}");
        match self {
            Unlisted::Missing(_) => Fault::later(Code::ConfigurationProblem, message),
            Unlisted::Broken(_) => Fault::invalid(Code::ConfigurationProblem, message),
        }
    }
}

/// Reads an index. The error is the end of a sentence about it.
pub(crate) fn read(index: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(index).map_err(|_| "is no UTF-8".to_owned())?;
    yaml::decode(text).map_err(|error| format!("is no YAML: {error}"))
}

/// Where the text of an index has a chart: its address, and its digest where it is told.
///
/// # Errors
/// The end of a sentence about the index.
pub fn chart_in_index(index: &[u8], chart: &str, version: &str) -> Result<(String, Option<ContentDigest>), String> {
    let found = find(&read(index)?, chart, version);
    found
        .map(|ChartLocation { url, digest }| (url, digest))
        .map_err(|(Unlisted::Missing(why) | Unlisted::Broken(why))| why)
}

/// Where a chart is.
///
/// # Errors
/// [`Unlisted`]
pub(crate) fn find(index: &Value, chart: &str, version: &str) -> Result<ChartLocation, Unlisted> {
    let versions = index.get("entries").and_then(|entries| entries.get(chart)).and_then(Value::as_array);
    let versions = versions.ok_or_else(|| Unlisted::Missing(format!("has no chart {chart}; check its name")))?;
    let mut known = Vec::new();
    for entry in versions {
        let Ok(entry) = lenient::decode::<Chart>(entry) else { continue };
        if entry.version != version {
            known.push(entry.version);
            continue;
        }
        let url = entry
            .urls
            .into_iter()
            .next()
            .ok_or_else(|| Unlisted::Broken(format!("has no address for {chart}:{version}")))?;
        if url.len() > LONGEST_ADDRESS {
            let why = format!("has an address of more than {LONGEST_ADDRESS} bytes for {chart}:{version}");
            return Err(Unlisted::Broken(why));
        }
        let hex = entry.digest.trim_start_matches("sha256:");
        let digest = (!hex.is_empty()).then(|| format!("sha256:{hex}").parse()).transpose();
        let digest = digest
            .map_err(|error| Unlisted::Broken(format!("has an unusable digest for {chart}:{version}: {error}")))?;
        return Ok(ChartLocation { url, digest });
    }
    let text = known.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    Err(Unlisted::Missing(format!(
        "has no version {version} of the chart {chart}; it has {text}{}",
        if known.len() > 5 { ", …" } else { "" }
    )))
}

#[cfg(test)]
mod tests {
    use orangery_core::digest::content::Algorithm;

    use super::*;

    const INDEX: &str = "
apiVersion: v1
entries:
  shop:
  - {name: shop, version: 1.1.0, urls: [shop-1.1.0.tgz], digest: 4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a}
  - {name: shop, version: 1.0.0, urls: ['https://elsewhere.example/shop.tgz', 'other']}
  - {name: shop, version: 0.9.0, urls: []}
  - {name: shop, version: 0.8.0, urls: [x], digest: abc}
  - nonsense
";

    #[test]
    fn a_chart_is_found_by_name_and_version_in_its_index() {
        let index = read(INDEX.as_bytes()).unwrap();
        let found = |chart: &str, version: &str| find(&index, chart, version);
        let digest = ContentDigest::of(Algorithm::Sha256, &[1]);
        assert_eq!(
            found("shop", "1.1.0"),
            Ok(ChartLocation { url: "shop-1.1.0.tgz".to_owned(), digest: Some(digest.clone()) })
        );
        let elsewhere = ChartLocation { url: "https://elsewhere.example/shop.tgz".to_owned(), digest: None };
        assert_eq!(found("shop", "1.0.0"), Ok(elsewhere));
        let missing = |why: &str| Err(Unlisted::Missing(why.to_owned()));
        assert_eq!(found("other", "1"), missing("has no chart other; check its name"));
        assert_eq!(
            found("shop", "2"),
            missing("has no version 2 of the chart shop; it has 1.1.0, 1.0.0, 0.9.0, 0.8.0")
        );
        let broken = |version| match found("shop", version) {
            Err(Unlisted::Broken(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(broken("0.9.0"), "has no address for shop:0.9.0");
        assert!(broken("0.8.0").starts_with("has an unusable digest for shop:0.8.0: "));
        assert_eq!(chart_in_index(INDEX.as_bytes(), "shop", "1.1.0"), Ok(("shop-1.1.0.tgz".to_owned(), Some(digest))));
        assert_eq!(
            chart_in_index(INDEX.as_bytes(), "other", "1"),
            Err("has no chart other; check its name".to_owned())
        );
        assert_eq!(read(b"\xff"), Err("is no UTF-8".to_owned()));
        assert!(read(b"a: [").unwrap_err().starts_with("is no YAML: line 1"));
    }

    #[test]
    fn c_320_limits_registry_the_address_of_a_chart_has_a_size() {
        let index = |length: usize| serde_json::json!({"entries": {"shop": [{"version": "1.0.0", "urls": ["x".repeat(length)]}]}});
        assert!(find(&index(LONGEST_ADDRESS), "shop", "1.0.0").is_ok());
        let why = Unlisted::Broken("has an address of more than 8192 bytes for shop:1.0.0".to_owned());
        assert_eq!(find(&index(LONGEST_ADDRESS + 1), "shop", "1.0.0"), Err(why));
    }
}
