//! WASI as an empty world: no files, no network, no environment, no input, one argument.
//!
//! The standard libraries of some languages import files and sockets whether a program uses them or not (Go's 18
//! interfaces of WASI), so these are linked too. There is nothing behind them: no folder is open, and sockets and names
//! are refused before the system is asked.
//!
//! What a guest writes to its standard streams goes to the call's transcript. Its clocks and its randomness are made of
//! the request, so that the same request gives the same answer.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use orangery_core::digest;
use orangery_proposal::{Item, ItemSecret};
use rand_core::{Rng, TryRng};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWrite;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiView,
    cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView},
    clocks::{WasiClocks, WasiClocksView},
    filesystem::{WasiFilesystem, WasiFilesystemView},
    p2::{OutputStream, Pollable, StreamError, StreamResult, bindings as wasi},
    random::WasiRandom,
    sockets::{WasiSockets, WasiSocketsView},
};

use crate::{
    capability::{locked, randomness::RandomnessState},
    contract::Offered,
    transcript::{Channel, Transcript},
};

const fn slice(name: &'static str) -> Offered {
    Offered { name, line: (0, 2) }
}

/// What is offered of WASI; everything else, `wasi:http` for one, is refused by name before a component is compiled.
pub(crate) const SLICES: &[Offered] = &[
    slice("wasi:cli/environment"),
    slice("wasi:cli/exit"),
    slice("wasi:cli/stderr"),
    slice("wasi:cli/stdin"),
    slice("wasi:cli/stdout"),
    slice("wasi:cli/terminal-input"),
    slice("wasi:cli/terminal-output"),
    slice("wasi:cli/terminal-stderr"),
    slice("wasi:cli/terminal-stdin"),
    slice("wasi:cli/terminal-stdout"),
    slice("wasi:clocks/monotonic-clock"),
    slice("wasi:clocks/wall-clock"),
    slice("wasi:filesystem/preopens"),
    slice("wasi:filesystem/types"),
    slice("wasi:io/error"),
    slice("wasi:io/poll"),
    slice("wasi:io/streams"),
    slice("wasi:random/insecure"),
    slice("wasi:random/insecure-seed"),
    slice("wasi:random/random"),
    slice("wasi:sockets/instance-network"),
    slice("wasi:sockets/ip-name-lookup"),
    slice("wasi:sockets/network"),
    slice("wasi:sockets/tcp"),
    slice("wasi:sockets/tcp-create-socket"),
    slice("wasi:sockets/udp"),
    slice("wasi:sockets/udp-create-socket"),
];

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links [`SLICES`], and nothing else.
pub(crate) fn add_to_linker<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    wasi::io::error::add_to_linker::<T, HasTable>(linker, |guest| guest.ctx().table)?;
    wasi::io::poll::add_to_linker::<T, HasTable>(linker, |guest| guest.ctx().table)?;
    wasi::io::streams::add_to_linker::<T, HasTable>(linker, |guest| guest.ctx().table)?;
    wasi::clocks::wall_clock::add_to_linker::<T, WasiClocks>(linker, T::clocks)?;
    wasi::clocks::monotonic_clock::add_to_linker::<T, WasiClocks>(linker, T::clocks)?;
    wasi::random::random::add_to_linker::<T, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    wasi::random::insecure::add_to_linker::<T, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    wasi::random::insecure_seed::add_to_linker::<T, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    wasi::cli::exit::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::environment::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::terminal_input::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::terminal_output::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::terminal_stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::terminal_stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    wasi::cli::terminal_stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    add_what_is_not_there(linker)
}

/// Links files and sockets, which [`context`] leaves empty.
fn add_what_is_not_there<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    wasi::filesystem::types::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;
    wasi::filesystem::preopens::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;
    let options = wasi::sockets::network::LinkOptions::default();
    wasi::sockets::network::add_to_linker::<T, WasiSockets>(linker, &options, T::sockets)?;
    wasi::sockets::instance_network::add_to_linker::<T, WasiSockets>(linker, T::sockets)?;
    wasi::sockets::ip_name_lookup::add_to_linker::<T, WasiSockets>(linker, T::sockets)?;
    wasi::sockets::tcp::add_to_linker::<T, WasiSockets>(linker, T::sockets)?;
    wasi::sockets::tcp_create_socket::add_to_linker::<T, WasiSockets>(linker, T::sockets)?;
    wasi::sockets::udp::add_to_linker::<T, WasiSockets>(linker, T::sockets)?;
    wasi::sockets::udp_create_socket::add_to_linker::<T, WasiSockets>(linker, T::sockets)
}

/// The one argument: some libraries panic without the name of their program (`plugins/go/README.md`, pitfall 1).
const PROGRAM: &str = "component";
/// The most random bytes of one request.
const MOST_RANDOM_BYTES: u64 = 64 << 10;

/// What the answers of `wasi:random` follow from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Randomness {
    /// The number of an item that has no secret: nothing drawn from it is one either.
    Number(u64),
    /// The keys of two streams, of a template or of a deployer's item: passwords and keys are drawn from the first.
    Keys {
        /// Of `random`.
        secure: [u8; 32],
        /// Of `insecure` and `insecure-seed`.
        insecure: [u8; 32],
    },
}

impl Randomness {
    /// Of a deployer's item.
    pub(crate) fn of_item(item: &Item) -> Self {
        let Some(ItemSecret(secret)) = &item.secret else { return Self::Number(item.seed) };
        let stream = |purpose: &[u8]| digest::derived(secret, &[b"stream", purpose]);
        Self::Keys { secure: stream(b"secure"), insecure: stream(b"insecure") }
    }

    /// Of a template.
    pub(crate) fn of_chance(rng: &RandomnessState) -> Self {
        Self::Keys { secure: rng.stream("secure"), insecure: rng.stream("insecure") }
    }

    /// What answers `random`, `insecure` and `insecure-seed`.
    fn streams(self) -> (Box<dyn Rng + Send>, Box<dyn Rng + Send>, u128) {
        match self {
            Self::Number(seed) => (Box::new(SplitMix(seed)), Box::new(SplitMix(!seed)), u128::from(seed)),
            Self::Keys { secure, insecure } => {
                let mut insecure = ChaCha20Rng::from_seed(insecure);
                let seed = u128::from(insecure.next_u64()) << 64 | u128::from(insecure.next_u64());
                (Box::new(ChaCha20Rng::from_seed(secure)), Box::new(insecure), seed)
            }
        }
    }
}

/// Where the standard streams of a guest go.
pub(crate) trait GuestOutput: Send + Sync {
    /// Takes bytes over, or says why the call ends.
    fn write(&self, channel: Channel, bytes: &[u8]) -> wasmtime::Result<()>;
}

impl GuestOutput for Mutex<Transcript> {
    fn write(&self, channel: Channel, bytes: &[u8]) -> wasmtime::Result<()> {
        Ok(locked(self).write(channel, bytes)?)
    }
}

/// The world of one call: `now` since the epoch and the randomness are all that it knows of the outside.
pub(crate) fn context(now: Duration, randomness: Randomness, output: Arc<dyn GuestOutput>) -> WasiCtx {
    let (secure, insecure, insecure_seed) = randomness.streams();
    WasiCtxBuilder::new()
        .arg(PROGRAM)
        .stdout(Stream { channel: Channel::Out, output: output.clone() })
        .stderr(Stream { channel: Channel::Err, output })
        .wall_clock(StoppedClock(now))
        .monotonic_clock(CountingClock(AtomicU64::new(CLOCK_STEP)))
        .secure_random(secure)
        .insecure_random(insecure)
        .insecure_random_seed(insecure_seed)
        .max_random_size(MOST_RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// Always the time of the request.
struct StoppedClock(Duration);

impl HostWallClock for StoppedClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// Nanoseconds between two readings of the monotonic clock.
const CLOCK_STEP: u64 = 1_000;

/// A microsecond later at each reading: a guest that waits for time to pass gets ahead, and always in the same way. It
/// begins after zero, which Go takes for a broken clock.
struct CountingClock(AtomicU64);

impl HostMonotonicClock for CountingClock {
    fn resolution(&self) -> u64 {
        CLOCK_STEP
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(CLOCK_STEP, Ordering::Relaxed)
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers for the same seed, on every machine, for ever.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl TryRng for SplitMix {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next().to_le_bytes();
            chunk.iter_mut().zip(random).for_each(|(byte, random)| *byte = random);
        }
        Ok(())
    }
}

/// A standard stream of the guest.
#[derive(Clone)]
struct Stream {
    channel: Channel,
    output: Arc<dyn GuestOutput>,
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only WASI 0.3 asks for this one, and it is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.output.write(self.channel, &bytes).map_err(StreamError::Trap)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is linked of `filesystem` and `sockets` reaches nothing: `tests/wasm/grants.rs` has a guest that tries.
    #[test]
    fn no_request_is_offered() {
        let packages: std::collections::BTreeSet<&str> =
            SLICES.iter().filter_map(|slice| slice.name.split('/').next()).collect();
        assert_eq!(
            Vec::from_iter(packages),
            ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"]
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_on_every_machine() {
        let mut random = SplitMix(1);
        assert_eq!([random.next(), random.next()], [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67]);
        let (mut some, mut whole) = ([0; 3], [0; 8]);
        SplitMix(1).try_fill_bytes(&mut some).unwrap();
        SplitMix(1).try_fill_bytes(&mut whole).unwrap();
        assert_eq!(some, whole[..3]);
        assert_eq!(whole, 0x910a_2dec_8902_5cc1_u64.to_le_bytes());
    }

    #[test]
    fn the_wall_clock_stands_and_the_other_one_counts() {
        let wall = StoppedClock(Duration::from_secs(7));
        assert_eq!([wall.now(), wall.now()], [Duration::from_secs(7); 2]);
        let counting = CountingClock(AtomicU64::new(CLOCK_STEP));
        assert_eq!([counting.now(), counting.now()], [1_000, 2_000]);
    }

    #[test]
    fn c_395_what_is_drawn_for_an_item_follows_from_its_secret_and_not_from_its_number() {
        let item = |secret: Option<u8>, seed: u64| Item {
            secret: secret.map(|byte| ItemSecret([byte; 32])),
            seed,
            ..serde_json::from_value(serde_json::json!({"namespace": "n", "name": "i", "uid": "u", "itemType": "t",
                "generation": 1, "context": "c", "job": "j", "config": {}, "now": "", "seed": 0, "timeout": 0}))
            .unwrap()
        };
        let drawn = |secret: Option<u8>, seed: u64| {
            let (mut secure, mut insecure, number) = Randomness::of_item(&item(secret, seed)).streams();
            [secure.next_u64(), insecure.next_u64(), number as u64]
        };
        assert_eq!(drawn(Some(1), 7), drawn(Some(1), 8), "whatever everybody can compute");
        let all: std::collections::BTreeSet<u64> =
            [drawn(Some(1), 7), drawn(Some(2), 7), drawn(None, 7)].concat().into_iter().collect();
        assert_eq!(all.len(), 9, "{all:?}");
    }

    #[tokio::test]
    async fn limits_components_random_bytes_of_one_call() {
        use wasmtime_wasi::p2::bindings::random::random::Host as _;

        let budget = crate::budget::Budget::default();
        let transcript = Arc::new(Mutex::new(Transcript::new("test".into(), &budget)));
        let mut context = context(Duration::ZERO, Randomness::Number(1), transcript);
        assert_eq!(context.random().get_random_bytes(MOST_RANDOM_BYTES).unwrap().len(), 64 << 10);
        assert!(context.random().get_random_bytes(MOST_RANDOM_BYTES + 1).is_err());
    }
}
