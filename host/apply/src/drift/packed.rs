//! What was written of an object, packed: it is whole in memory only while it is compared, or written again.

use std::{
    io::{Read, Write},
    sync::Arc,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use orangery_core::memory;
use orangery_proposal::ObjectWrite;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_cleared_away;

/// The largest object that is unpacked, in bytes of JSON: more than an API server takes.
const LARGEST: u64 = 32 << 20;

/// What was written.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WrittenObject {
    pub(super) write: ObjectWrite,
    pub(super) uid: Option<String>,
    /// What the server makes of it, once it was asked.
    pub(super) baseline: Option<Value>,
}

/// The same, packed.
#[derive(Clone)]
pub(super) struct PackedObject {
    json: Arc<[u8]>,
    /// Bytes of memory that it takes at most to compare it.
    pub(super) bytes_to_compare: u64,
    /// Whether the object goes by itself when it is done.
    pub(super) is_cleared_away: bool,
}

impl WrittenObject {
    pub(super) fn pack(&self) -> PackedObject {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        let json = serde_json::to_vec(self).unwrap_or_else(|_no_json| Vec::new());
        let written = encoder.write_all(&json).and_then(|()| encoder.finish());
        let packed = written.unwrap_or_else(|_no_memory| Vec::new());
        // Where the server was not asked, what is wanted and what is kept of it are made of what was written.
        let copies = if self.baseline.is_some() { 1 } else { 3 };
        let bytes_to_compare = memory::of_json(&json).saturating_mul(copies).saturating_add(json.len() as u64);
        PackedObject { json: packed.into(), bytes_to_compare, is_cleared_away: is_cleared_away(&self.write) }
    }
}

impl PackedObject {
    pub(super) fn unpack(&self) -> Option<WrittenObject> {
        let mut json = Vec::new();
        DeflateDecoder::new(&*self.json).take(LARGEST).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok()
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.json.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_295_what_a_comparison_takes_is_known_before_anything_is_unpacked() {
        let of = |baseline: Option<Value>| {
            let object = json!({"kind": "K", "list": vec![json!({"": 0}); 1_000]});
            let write = serde_json::from_value(json!({"object": object, "how": "replace"})).unwrap();
            WrittenObject { write, uid: None, baseline }.pack()
        };
        let (unasked, asked) = (of(None), of(Some(json!({}))));
        let values = memory::of(&unasked.unpack().unwrap().write.object);
        assert!(unasked.bytes() < 1_000, "{}", unasked.bytes());
        assert!(unasked.bytes_to_compare > 3 * values && unasked.bytes_to_compare < 4 * values);
        assert!(asked.bytes_to_compare > values && asked.bytes_to_compare < 2 * values);
    }
}
