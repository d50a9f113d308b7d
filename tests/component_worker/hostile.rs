//! What a worker may do to the host once somebody has broken out of an instance: it speaks for itself, byte by byte.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{self, ExitCode},
    thread,
};

/// The first byte of what a worker says: that it is ready, that it asks for something, that the call has ended.
const READY: u8 = 0;
const ASK: u8 = 1;
const END: u8 = 2;
/// That it has got a call.
const BEGUN: u8 = 3;

/// A worker that says it is ready, and then does this in its first call.
pub(crate) fn call(what: &str) -> ExitCode {
    match host().and_then(|host| pretend(host, what)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn host() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn pretend(mut host: File, what: &str) -> io::Result<()> {
    receive(&mut host)?;
    if what == "dies-at-once" {
        process::exit(7);
    }
    send(&mut host, &[READY, 0])?;
    receive(&mut host)?;
    if what != "does-not-begin" {
        send(&mut host, &[BEGUN])?;
    }
    match what {
        "does-not-begin" => send(&mut host, &[END, 1, 2])?,
        "begins-twice" => send(&mut host, &[BEGUN])?,
        "garbage" => send(&mut host, &[0xee; 40])?,
        "huge" => host.write_all(&[0xff; 4])?,
        // Texts without letters, each of them a byte: an answer of eight million.
        "bomb" => send(&mut host, &bomb())?,
        "two-frames" => {
            let end = frame(&[END, 1, 2]);
            host.write_all(&[end.clone(), end].concat())?;
        }
        "answers-for-another" => send(&mut host, &[END, 0, 3, 0, 0])?,
        "exits" => process::exit(3),
        "crashes" => process::abort(),
        "closes" => {
            UnixStream::from(OwnedFd::from(host)).shutdown(Shutdown::Both)?;
            loop {
                thread::park();
            }
        }
        "logs-for-ever" => loop {
            send(&mut host, &[ASK, 2, 2, 1, b'x', 0])?;
            receive(&mut host)?;
        },
        "writes-nothing-for-ever" => loop {
            send(&mut host, &[ASK, 1, 0, 0])?;
            receive(&mut host)?;
        },
        // `get` of the Secret `s` in the namespace `default`; the host's answer is told as the reason of a crash.
        "reads-a-secret" => {
            let key = [text("v1"), text("Secret"), vec![1], text("default"), text("s")].concat();
            send(&mut host, &[&[ASK, 3, 0][..], &key].concat())?;
            crash_with(&mut host)?;
        }
        "reads-an-artifact-that-it-does-not-hold" => {
            send(&mut host, &[ASK, 16, 7, 0, 1])?;
            receive(&mut host)?;
            send(&mut host, &[END, 1, 2])?;
        }
        "says-nothing" => loop {
            thread::park();
        },
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    }
    receive(&mut host).map(drop)
}

fn bomb() -> Vec<u8> {
    // `find-tests` found 8,000,000 tests; what follows is eight million times nothing.
    let mut bomb = vec![END, 0, 1, 0, 1, 0x80, 0xa4, 0xe8, 0x03];
    bomb.resize(8_000_000, 0);
    bomb
}

/// Ends the call with a crash, whose reason is what the host answers next.
fn crash_with(host: &mut File) -> io::Result<()> {
    let answer = receive(host)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
    let length = [length as u8 & 0x7f | 0x80, (length >> 7) as u8];
    send(host, &[&[END, 1, 3][..], &length, answer.as_bytes()].concat())
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8][..], text.as_bytes()].concat()
}

fn frame(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes()[..], content].concat()
}

fn send(host: &mut File, content: &[u8]) -> io::Result<()> {
    host.write_all(&frame(content))
}

fn receive(host: &mut File) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    host.read_exact(&mut length)?;
    let mut content = vec![0; u32::from_be_bytes(length) as usize];
    host.read_exact(&mut content)?;
    Ok(content)
}
