//! `orangery:template/randomness`, and the randomness of WASI: all of it follows from the job's seed and the execution.
//!
//! So nothing has to be kept: rendering again, also after a restart, draws the same. Without the seed nobody can
//! tell what is drawn, however much of it was seen: the streams are ChaCha20, their keys HMAC-SHA-256 of the seed.

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use jiff::Timestamp;
use orangery_blueprint::{rendering::RenderRequest, template_engine::JobRandomness};
use orangery_core::digest;
use wasmtime::component::{HasData, Linker};

use super::{Capabilities, Guest};
use crate::{
    bindings::template::orangery::template::randomness::{self, Host},
    meter::Meter,
};

/// The time and the randomness of one execution.
#[derive(Clone)]
pub(crate) struct RandomnessState {
    now: Timestamp,
    key: [u8; 32],
}

impl RandomnessState {
    /// What an execution of a job draws from: executions of one name in two lists are two executions.
    pub(crate) fn new(of: &JobRandomness, request: &RenderRequest) -> Self {
        let parts = [b"execution", request.execution.list().as_bytes(), request.name.as_bytes()];
        Self { now: of.now, key: digest::derived(&of.seed, &parts) }
    }

    /// The key of one use of randomness.
    pub(crate) fn stream(&self, purpose: &str) -> [u8; 32] {
        digest::derived(&self.key, &[b"stream", purpose.as_bytes()])
    }

    fn bytes(&self, key: &str, length: u32) -> Vec<u8> {
        let seed = digest::derived(&self.key, &[b"bytes", key.as_bytes(), &length.to_be_bytes()]);
        let mut bytes = vec![0; length as usize];
        ChaCha20Rng::from_seed(seed).fill_bytes(&mut bytes);
        bytes
    }
}

/// What `rng` can see of a guest.
pub(crate) struct RandomnessView<'a> {
    state: Option<&'a RandomnessState>,
    meter: &'a mut Meter,
}

struct HasChance;

impl HasData for HasChance {
    type Data<'a> = RandomnessView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    randomness::add_to_linker::<Guest, HasChance>(linker, |guest| guest.capabilities.randomness())
}

impl Capabilities {
    /// What is behind `randomness`.
    pub(crate) fn randomness(&mut self) -> RandomnessView<'_> {
        RandomnessView { state: self.rng.as_ref(), meter: &mut self.meter }
    }
}

impl RandomnessView<'_> {
    /// A deployer that imports this interface of templates gets what a job at the epoch would.
    fn state(&self) -> RandomnessState {
        self.state.cloned().unwrap_or(RandomnessState { now: Timestamp::UNIX_EPOCH, key: [0; 32] })
    }
}

impl Host for RandomnessView<'_> {
    async fn now(&mut self) -> wasmtime::Result<String> {
        self.meter.host_call(0)?;
        Ok(self.state().now.to_string())
    }

    async fn bytes(&mut self, key: String, length: u32) -> wasmtime::Result<Vec<u8>> {
        self.meter.host_call(key.len())?;
        self.meter.carry(length as usize)?;
        Ok(self.state().bytes(&key, length))
    }
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::rendering::ExecutionKind;

    use super::*;

    fn state(seed: u8, execution: ExecutionKind, name: &str) -> RandomnessState {
        let request = RenderRequest {
            execution,
            name: name.to_owned(),
            file: None,
            template: String::new(),
            inputs: serde_json::json!({}),
            state: None,
        };
        RandomnessState::new(&JobRandomness { now: Timestamp::UNIX_EPOCH, seed: [seed; 32] }, &request)
    }

    #[test]
    fn the_same_job_execution_key_and_length_draw_the_same_and_nothing_else_does() {
        let here = || state(1, ExecutionKind::Deploy, "a");
        assert_eq!(here().bytes("password", 16), here().bytes("password", 16));
        let all = [
            here().bytes("password", 16),
            here().bytes("other", 16),
            here().bytes("password", 17)[..16].to_vec(),
            state(2, ExecutionKind::Deploy, "a").bytes("password", 16),
            state(1, ExecutionKind::Deploy, "b").bytes("password", 16),
            state(1, ExecutionKind::Subinstallation, "a").bytes("password", 16),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_ne!(here().stream("secure"), here().stream("insecure"));
        assert_eq!(here().bytes("password", 0), Vec::<u8>::new());
    }

    #[test]
    fn what_is_drawn_is_the_same_in_every_version_of_the_host() {
        // Computed apart from this code, with HMAC-SHA-256 and ChaCha20 of OpenSSL.
        let drawn = state(1, ExecutionKind::Deploy, "a").bytes("password", 8);
        assert_eq!(hexadecimal(&drawn), "62dda43aa69b8298");
    }

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
