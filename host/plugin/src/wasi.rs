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
use rand_core::{Rng, TryRng};
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
    capability::{Guest, locked, randomness::RandomnessState},
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
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasi::io::error::add_to_linker::<Guest, HasTable>(linker, |guest| &mut guest.table)?;
    wasi::io::poll::add_to_linker::<Guest, HasTable>(linker, |guest| &mut guest.table)?;
    wasi::io::streams::add_to_linker::<Guest, HasTable>(linker, |guest| &mut guest.table)?;
    wasi::clocks::wall_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    wasi::clocks::monotonic_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    wasi::random::random::add_to_linker::<Guest, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    wasi::random::insecure::add_to_linker::<Guest, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    wasi::random::insecure_seed::add_to_linker::<Guest, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    wasi::cli::exit::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::environment::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::terminal_input::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::terminal_output::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::terminal_stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::terminal_stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    wasi::cli::terminal_stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    add_what_is_not_there(linker)
}

/// Links files and sockets, which [`context`] leaves empty.
fn add_what_is_not_there(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasi::filesystem::types::add_to_linker::<Guest, WasiFilesystem>(linker, Guest::filesystem)?;
    wasi::filesystem::preopens::add_to_linker::<Guest, WasiFilesystem>(linker, Guest::filesystem)?;
    let options = wasi::sockets::network::LinkOptions::default();
    wasi::sockets::network::add_to_linker::<Guest, WasiSockets>(linker, &options, Guest::sockets)?;
    wasi::sockets::instance_network::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)?;
    wasi::sockets::ip_name_lookup::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)?;
    wasi::sockets::tcp::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)?;
    wasi::sockets::tcp_create_socket::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)?;
    wasi::sockets::udp::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)?;
    wasi::sockets::udp_create_socket::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)
}

/// The one argument: some libraries panic without the name of their program (`plugins/go/README.md`, pitfall 1).
const PROGRAM: &str = "component";
/// The most random bytes of one request.
const MOST_RANDOM_BYTES: u64 = 64 << 10;

/// What `wasi:random` answers.
pub(crate) struct Randomness {
    secure: Box<dyn Rng + Send>,
    insecure: Box<dyn Rng + Send>,
    insecure_seed: u128,
}

impl Randomness {
    /// Of a deployer's item: its number is no secret, and nothing drawn from it is one.
    pub(crate) fn of_number(seed: u64) -> Self {
        Self { secure: Box::new(SplitMix(seed)), insecure: Box::new(SplitMix(!seed)), insecure_seed: u128::from(seed) }
    }

    /// Of a template: passwords and keys are drawn from it.
    pub(crate) fn of_chance(rng: &RandomnessState) -> Self {
        let mut insecure = ChaCha20Rng::from_seed(rng.stream("insecure"));
        Self {
            secure: Box::new(ChaCha20Rng::from_seed(rng.stream("secure"))),
            insecure_seed: u128::from(insecure.next_u64()) << 64 | u128::from(insecure.next_u64()),
            insecure: Box::new(insecure),
        }
    }
}

/// The world of one call: `now` since the epoch and the randomness are all that it knows of the outside.
pub(crate) fn context(now: Duration, randomness: Randomness, transcript: &Arc<Mutex<Transcript>>) -> WasiCtx {
    let Randomness { secure, insecure, insecure_seed } = randomness;
    WasiCtxBuilder::new()
        .arg(PROGRAM)
        .stdout(Stream { channel: Channel::Out, transcript: transcript.clone() })
        .stderr(Stream { channel: Channel::Err, transcript: transcript.clone() })
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

/// A standard stream of the guest, into the transcript.
#[derive(Clone)]
struct Stream {
    channel: Channel,
    transcript: Arc<Mutex<Transcript>>,
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
        locked(&self.transcript).write(self.channel, &bytes).map_err(|stop| StreamError::Trap(stop.into()))
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
}
