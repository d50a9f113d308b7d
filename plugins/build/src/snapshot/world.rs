//! What a module sees while its snapshot is made: WASI preview 1 with one argument, no files, no environment, a clock that
//! stands, and randomness that is none. Whatever else it calls ends the run, by name.

use std::borrow::Cow;

use wasmi::{Caller, Error, Extern, ExternType, Linker, Memory, Module, Val, errors::LinkerError};

const PREVIEW_1: &str = "wasi_snapshot_preview1";
/// Some libraries panic without a name of their program (`plugins/go/README.md`, pitfall 1).
const ARGUMENT: &[u8] = b"engine\0";
/// Go takes a clock at zero for a broken one.
const NANOSECONDS: u64 = 1;
const SUCCESS: i32 = 0;
/// No such descriptor: there is no folder to begin with.
const BADF: i32 = 8;
/// A subscription and an event of `poll_oneoff`: their sizes, and where both say what they are about.
const SUBSCRIPTION: u32 = 48;
const EVENT: u32 = 32;
/// The tag of a clock.
const CLOCK: u8 = 0;
/// The most that is shown of what a module has written.
const MOST_SHOWN: usize = 1000;
/// Not supported.
const NOSYS: i32 = 52;

/// The state of the world.
#[derive(Default)]
pub(super) struct World {
    written: Vec<u8>,
}

impl World {
    /// What the module has written, behind a message.
    pub(super) fn wrote(&self) -> Cow<'static, str> {
        match self.written.is_empty() {
            true => Cow::Borrowed(""),
            false => {
                let text = self.written.get(..MOST_SHOWN).unwrap_or(&self.written);
                Cow::Owned(format!("; it wrote: {}", String::from_utf8_lossy(text).trim()))
            }
        }
    }
}

type Here<'a> = Caller<'a, World>;

fn memory(caller: &Here<'_>) -> Result<Memory, Error> {
    let found = caller.get_export("mem").or_else(|| caller.get_export("memory"));
    found.and_then(Extern::into_memory).ok_or_else(|| Error::new("the module exports no memory"))
}

fn put(caller: &mut Here<'_>, at: i32, bytes: &[u8]) -> Result<(), Error> {
    memory(caller)?.write(caller, at.cast_unsigned() as usize, bytes).map_err(|error| Error::new(error.to_string()))
}

fn get(caller: &Here<'_>, at: u32, length: usize) -> Result<Vec<u8>, Error> {
    let memory = memory(caller)?;
    let bytes = memory.data(caller).get(at as usize..).and_then(|rest| rest.get(..length));
    bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::new("an address lies beyond the memory"))
}

fn word(caller: &Here<'_>, at: u32) -> Result<u32, Error> {
    let bytes = get(caller, at, 4)?;
    Ok(bytes.iter().rev().fold(0, |word, byte| (word << 8) | u32::from(*byte)))
}

/// Links all that a module imports.
pub(super) fn link(linker: &mut Linker<World>, module: &Module) -> Result<(), Error> {
    preview_1(linker)?;
    for import in module.imports() {
        let ExternType::Func(signature) = import.ty() else { continue };
        let name = format!("{} {}", import.module(), import.name());
        let unknown = import.module() != PREVIEW_1;
        let answers = signature.results().len();
        let defined = linker.func_new(import.module(), import.name(), signature.clone(), move |_, _, results| {
            match (unknown, results) {
                (false, [result]) if answers == 1 => {
                    *result = Val::I32(NOSYS);
                    Ok(())
                }
                _ => Err(Error::new(format!("it calls {name}, which is not there yet"))),
            }
        });
        match defined {
            Ok(_) | Err(LinkerError::DuplicateDefinition { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn preview_1(linker: &mut Linker<World>) -> Result<(), LinkerError> {
    linker.func_wrap(PREVIEW_1, "args_sizes_get", |mut caller: Here<'_>, count: i32, size: i32| {
        put(&mut caller, count, &1_u32.to_le_bytes())?;
        put(&mut caller, size, &(ARGUMENT.len() as u32).to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(PREVIEW_1, "args_get", |mut caller: Here<'_>, pointers: i32, bytes: i32| {
        put(&mut caller, pointers, &bytes.to_le_bytes())?;
        put(&mut caller, bytes, ARGUMENT)?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(PREVIEW_1, "environ_sizes_get", |mut caller: Here<'_>, count: i32, size: i32| {
        put(&mut caller, count, &0_u32.to_le_bytes())?;
        put(&mut caller, size, &0_u32.to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(PREVIEW_1, "environ_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(PREVIEW_1, "clock_time_get", |mut caller: Here<'_>, _: i32, _: i64, at: i32| {
        put(&mut caller, at, &NANOSECONDS.to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(PREVIEW_1, "random_get", |mut caller: Here<'_>, at: i32, length: i32| {
        put(&mut caller, at, &vec![0x2a; length.cast_unsigned() as usize])?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(PREVIEW_1, "sched_yield", || SUCCESS)?;
    linker.func_wrap(PREVIEW_1, "adapter_monotonic_clock_set_paused", |_: i32| {})?;
    linker.func_wrap(PREVIEW_1, "fd_prestat_get", |_: i32, _: i32| BADF)?;
    linker.func_wrap(PREVIEW_1, "fd_write", |mut caller: Here<'_>, _: i32, vectors: i32, count: i32, size: i32| {
        let mut written = 0_u32;
        for vector in 0..count.cast_unsigned() {
            let at = vectors.cast_unsigned().wrapping_add(vector.wrapping_mul(8));
            let (start, length) = (word(&caller, at)?, word(&caller, at.wrapping_add(4))?);
            let bytes = get(&caller, start, length as usize)?;
            caller.data_mut().written.extend(bytes);
            written = written.saturating_add(length);
        }
        put(&mut caller, size, &written.to_le_bytes())?;
        Ok(SUCCESS)
    })?;
    linker.func_wrap(PREVIEW_1, "poll_oneoff", poll)?;
    linker.func_wrap(PREVIEW_1, "proc_exit", |status: i32| -> Result<(), Error> {
        Err(Error::new(format!("it ended itself with status {status}")))
    })?;
    Ok(())
}

/// Every clock that is waited for has been reached; nothing else ever happens.
fn poll(mut caller: Here<'_>, subscriptions: i32, events: i32, count: i32, happened: i32) -> Result<i32, Error> {
    let mut reached = 0_u32;
    for number in 0..count.cast_unsigned() {
        let at = subscriptions.cast_unsigned().wrapping_add(number.wrapping_mul(SUBSCRIPTION));
        let subscription = get(&caller, at, SUBSCRIPTION as usize)?;
        if subscription.get(8) == Some(&CLOCK) {
            let mut event = subscription;
            event.truncate(EVENT as usize);
            // Behind the word of the one who waits: no error, and the tag of a clock.
            event.iter_mut().skip(8).for_each(|byte| *byte = 0);
            put(&mut caller, events.wrapping_add(reached.wrapping_mul(EVENT).cast_signed()), &event)?;
            reached += 1;
        }
    }
    put(&mut caller, happened, &reached.to_le_bytes())?;
    Ok(SUCCESS)
}
