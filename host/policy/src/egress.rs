//! What may be connected to, as administrators write it (C-101).

use std::borrow::Cow;

use orangery_core::network::Network;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The most networks of a policy.
pub(crate) const MOST_NETWORKS: usize = 64;

/// The most letters of a network.
pub(crate) const LONGEST_NETWORK: usize = 49;

/// The line, for messages.
pub(crate) const NETWORKS: &str = "spec.egress.networks";

/// What may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressRules {
    /// Networks that may be connected to though they never are on the internet, such as `10.20.0.0/16`: loopback, private, shared
    /// and reserved ones. A server that the policy itself names by its address, in `targets.servers` or in lists of sources, may
    /// be connected to as well. Addresses of the internet are for the other lines; link-local addresses and metadata services
    /// are refused whatever stands here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MOST_NETWORKS))]
    pub networks: Option<Vec<Cidr>>,
}

/// A network in the notation of CIDR, such as `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cidr(String);

impl From<Network> for Cidr {
    fn from(network: Network) -> Self {
        Self(network.to_string())
    }
}

impl Cidr {
    /// The network; `None` where it is none.
    pub(crate) fn network(&self) -> Option<Network> {
        self.0.parse().ok()
    }
}

impl JsonSchema for Cidr {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Cidr".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": LONGEST_NETWORK, "pattern": "^[0-9A-Fa-f:.]+/[0-9]{1,3}$"})
    }
}

impl EgressRules {
    /// Why it cannot be used: one sentence with the place.
    pub(crate) fn fault(&self) -> Option<String> {
        let networks = self.networks.as_deref().unwrap_or_default();
        if networks.len() > MOST_NETWORKS {
            return Some(format!("{NETWORKS} has {} networks; it may have {MOST_NETWORKS}", networks.len()));
        }
        networks.iter().enumerate().find_map(|(number, Cidr(text))| {
            let long = text.len() > LONGEST_NETWORK;
            let why = match text.parse::<Network>() {
                _ if long => format!("has {} letters; it may have {LONGEST_NETWORK}", text.len()),
                Err(fault) => fault.to_string(),
                Ok(_) => return None,
            };
            Some(format!("{NETWORKS}[{number}] {why}"))
        })
    }
}
