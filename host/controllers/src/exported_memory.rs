//! The memory of what was exported, while it is gathered to be handed on (C-290).

use orangery_core::{
    error::{Code, Failure},
    name::Namespace,
    step::{Halt, Step},
};
use orangery_reconcile::{ReservedForReading, reserve_for_reading};

/// The most bytes of memory that values take which were exported and are gathered for one object.
const MOST_EXPORTED_BYTES: u64 = 64 << 20;

/// Bytes of memory of those that wait for no turn.
const SMALL_BYTES: u64 = 4 << 20;

/// What has been gathered so far of what was exported.
pub(crate) struct ExportedMemory<'a> {
    namespace: &'a Namespace,
    /// What it is, in messages.
    what: &'a str,
    bytes: u64,
    reserved: Option<ReservedForReading>,
}

impl<'a> ExportedMemory<'a> {
    /// Nothing yet.
    pub(crate) fn new(namespace: &'a Namespace, what: &'a str) -> Self {
        Self { namespace, what, bytes: 0, reserved: None }
    }

    /// Takes room for a value before it is made. Where all of them are large it is waited for the turn of the namespace (C-132), with
    /// nothing but small ones in memory.
    ///
    /// # Errors
    /// All of them take too much.
    pub(crate) async fn take(&mut self, bytes: u64) -> Step<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_EXPORTED_BYTES {
            let message = format!(
                "{} would take more than the {MOST_EXPORTED_BYTES} bytes of memory that are allowed together; export less, or divide what \
                 exports it",
                self.what
            );
            let failure = Failure::new("CollectExports", "TooLarge", message);
            return Err(Halt::Stall(failure.with_code(Code::LimitExceeded)));
        }
        if self.bytes > SMALL_BYTES && self.reserved.is_none() {
            self.reserved = Some(reserve_for_reading(self.namespace, MOST_EXPORTED_BYTES).await);
        }
        Ok(())
    }

    /// All of them were gathered; they count until the call ends.
    pub(crate) async fn gathered(self) {
        if let Some(reserved) = self.reserved {
            reserved.takes(self.bytes).await;
        }
    }
}
