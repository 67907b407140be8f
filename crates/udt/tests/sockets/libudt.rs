//! A libudt 4.11 peer, if libudt is installed.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Path of `peer.cpp`, compiled once; `None` without libudt or a compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sockets/peer.cpp");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libudt-peer");
        let compiled = Command::new("c++")
            .args(["-std=c++11", "-O2", "-o"])
            .args([&program, &source])
            .args(["-ludt", "-lpthread"])
            .stderr(Stdio::null())
            .status();
        let compiled = compiled.is_ok_and(|status| status.success());
        if !compiled {
            println!("skipped: libudt cannot be used here; `apt install g++ libudt-dev` brings it");
        }
        compiled.then_some(program)
    };
    PROGRAM.get_or_init(compile).as_deref()
}

/// A running peer process, killed on drop.
pub struct Peer {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the process; `None` without libudt.
    pub fn run(arguments: &[&str]) -> Option<Peer> {
        let mut command = Command::new(program()?);
        let mut child = command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it was compiled");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Some(Peer { child, out })
    }

    /// The port on which it listens.
    pub fn port(&mut self) -> u16 {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it writes lines");
        line.trim().strip_prefix("port ").and_then(|port| port.parse().ok()).expect("a port")
    }

    /// Waits for its success. Returns the transferred bytes and messages, which it has checked.
    pub fn done(mut self) -> (u64, u64) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it writes text");
        assert!(self.child.wait().expect("it runs").success(), "libudt's peer says: {rest}");
        let mut words = rest.split_whitespace().skip_while(|word| *word != "done").skip(1);
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        (number(), number())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
