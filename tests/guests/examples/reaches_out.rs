//! Tries every way out of WASI that is linked: files, sockets, names, variables, input.

use std::{
    env, fs,
    io::{self, Read},
    net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket},
};

use orangery_guests::{Fault, Item, Proposal, writing};

fn kind<T>(tried: io::Result<T>) -> String {
    tried.map_or_else(|error| format!("{:?}", error.kind()), |_| "reached".into())
}

fn plan(_: Item) -> Result<Proposal, Fault> {
    let here = (Ipv4Addr::LOCALHOST, 8);
    let mut input = Vec::new();
    let read = io::stdin().read_to_end(&mut input).unwrap_or(usize::MAX);
    let arguments: Vec<String> = env::args().collect();
    let mut proposal = writing(vec![]);
    proposal.status = Some(format!(
        r#"{{"arguments": {arguments:?}, "variables": {}, "stdin": {read}, "folder": {:?}, "file": {:?}, "written": {:?},
            "connected": {:?}, "listened": {:?}, "sent": {:?}, "resolved": {}}}"#,
        env::vars().count(),
        kind(fs::read_dir("/")),
        kind(fs::read("/etc/passwd")),
        kind(fs::write("reached", "")),
        kind(TcpStream::connect(here)),
        kind(TcpListener::bind(here)),
        kind(UdpSocket::bind(here).and_then(|socket| socket.send_to(b"!", here))),
        "localhost:80".to_socket_addrs().is_ok(),
    ));
    Ok(proposal)
}

orangery_guests::guest!(plan);
