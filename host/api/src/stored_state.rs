//! Where the state of a deploy item is that has no room in its status (C-94): compressed, in Secrets that the item owns.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use orangery_core::{digest::sha256, memory::JsonMeter, name::can_be_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of a piece in its Secret.
pub const STORED_CONTENT: &str = "proposal";

/// The largest content that is read back, in bytes: more than the check of a proposal lets through.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The most bytes of memory, of its text and its values, that a content takes that no seal of the operator names: whoever may write a
/// status and Secrets chooses it (C-132).
pub const MOST_UNSEALED: u64 = 64 << 20;

/// The most Secrets that a state lies in: the largest content, were it not compressed, has fewer pieces.
const MOST_SECRETS: usize = 128;
/// Bytes that are unpacked at a time to be measured.
const PIECE: usize = 64 * 1024;
/// Bytes of a name of an object.
const LONGEST_NAME: usize = 253;

/// Where a state is that has no room in the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredState {
    /// Of its JSON.
    pub digest: String,
    /// The names of the Secrets with its pieces, in order.
    pub secrets: Vec<String>,
}

impl StoredState {
    /// What a provider status says of it, if it says so. Whoever may write the status chooses the names, and they are asked for:
    /// a status with more than a state takes, or with what is no name of a Secret, says nothing.
    pub fn of(provider_status: Option<&Value>) -> Option<Self> {
        let stored = Self::deserialize(provider_status?.pointer("/orangery/large")?).ok()?;
        let are_names = stored.secrets.iter().all(|name| name.len() <= LONGEST_NAME && can_be_name(name));
        (are_names && stored.secrets.len() <= MOST_SECRETS).then_some(stored)
    }

    /// Whether a provider status says that there is one, usable or not.
    pub fn is_said(provider_status: Option<&Value>) -> bool {
        provider_status.is_some_and(|status| status.pointer("/orangery/large").is_some())
    }

    /// The inventory in the pieces, put together: the list `managedResources`. `None` where it is another content, or none, or takes
    /// more memory than a content that anybody may have written.
    pub fn managed_resources(&self, compressed: &[u8]) -> Option<Value> {
        if unpacked_memory(compressed) > MOST_UNSEALED {
            return None;
        }
        let mut content: Value = serde_json::from_slice(&unpack(compressed, &self.digest)?).ok()?;
        content.get_mut("managedResources").map(Value::take)
    }
}

/// Compresses a content.
///
/// # Errors
/// As writing to memory has them.
pub fn pack(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content)?;
    encoder.finish()
}

/// The content of this digest; `None` where it is another one, or none.
pub fn unpack(compressed: &[u8], digest: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    ZlibDecoder::new(compressed).take(LARGEST).read_to_end(&mut content).ok()?;
    (sha256(&content) == digest).then_some(content)
}

/// Bytes of memory that a content takes at most, its text and the value of that. It is measured piece by piece as it is unpacked.
pub fn unpacked_memory(compressed: &[u8]) -> u64 {
    let mut content = ZlibDecoder::new(compressed).take(LARGEST);
    let (mut piece, mut text, mut value) = (vec![0; PIECE], 0, JsonMeter::default());
    while let Ok(length @ 1..) = content.read(&mut piece) {
        text += length as u64;
        value.read(piece.get(..length).unwrap_or_default());
    }
    value.bytes().saturating_add(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_94_the_inventory_is_read_where_it_lies_and_only_if_it_is_the_one_that_is_meant() {
        let content = json!({"managedResources": [1, 2]}).to_string();
        let compressed = pack(content.as_bytes()).unwrap();
        let stored = json!({"digest": sha256(content.as_bytes()), "secrets": ["a", "b"]});
        let stored = StoredState::of(Some(&json!({"orangery": {"large": stored}}))).unwrap();
        assert_eq!(stored.secrets, ["a", "b"]);
        assert_eq!(stored.managed_resources(&compressed), Some(json!([1, 2])));
        assert_eq!(stored.managed_resources(compressed.get(1..).unwrap()), None);
        let other = StoredState { digest: "sha256:0".to_owned(), ..stored };
        assert_eq!(other.managed_resources(&compressed), None);
        assert_eq!(StoredState::of(Some(&json!({"managedResources": []}))), None);
    }

    #[test]
    fn c_132_what_is_packed_is_measured_by_its_text_and_its_value() {
        let content = format!("[{}{{}}]", "{\"\":0},".repeat(PIECE));
        let memory = unpacked_memory(&pack(content.as_bytes()).unwrap());
        assert_eq!(memory, orangery_core::memory::of_json(&content) + content.len() as u64);
        assert_eq!(unpacked_memory(b"no zlib"), orangery_core::memory::of_json(""));
    }

    #[test]
    fn c_132_limits_state_one_that_anybody_may_have_written_takes_so_much() {
        let of = |bytes: u64| {
            let text = "x".repeat(bytes as usize);
            let content = json!({"managedResources": [], "x": text}).to_string();
            let packed = pack(content.as_bytes()).unwrap();
            let stored = StoredState { digest: sha256(content.as_bytes()), secrets: Vec::new() };
            (unpacked_memory(&packed), stored.managed_resources(&packed).is_some())
        };
        // The text counts twice, as it is and as a value.
        let beside = of(0).0;
        let most = (MOST_UNSEALED - beside) / 2;
        assert_eq!(
            [of(most), of(most + 1)],
            [
                (MOST_UNSEALED - (MOST_UNSEALED - beside) % 2, true),
                (MOST_UNSEALED + 2 - (MOST_UNSEALED - beside) % 2, false)
            ]
        );
    }

    #[test]
    fn c_94_limits_state_a_status_names_so_many_secrets_and_nothing_else() {
        let of = |secrets: Vec<String>| {
            let status = json!({"orangery": {"large": {"digest": "sha256:0", "secrets": secrets}}});
            assert!(StoredState::is_said(Some(&status)));
            StoredState::of(Some(&status)).map(|stored| stored.secrets.len())
        };
        let some = |count: usize| (0..count).map(|at| format!("item-{at}")).collect();
        assert_eq!([some(MOST_SECRETS), some(MOST_SECRETS + 1)].map(of), [Some(MOST_SECRETS), None]);
        assert_eq!(["a", "a.b-c"].map(|name| of(vec![name.to_owned()])), [Some(1), Some(1)]);
        for name in ["", ".", "..", "../configmaps/x", "x?watch=true", "x#", "%2e%2e", "A", "a/b", &"a".repeat(254)] {
            assert_eq!(of(vec!["a".to_owned(), name.to_owned()]), None, "{name}");
        }
        assert!(!StoredState::is_said(Some(&json!({}))) && !StoredState::is_said(None));
    }
}
