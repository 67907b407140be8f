//! Builds a program for this machine and feeds it events.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What an algorithm sets after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output {
    /// Window, packets.
    pub cwnd: f64,
    /// Slow start threshold, packets; infinite where there is none.
    pub ssthresh: f64,
    /// Pacing rate, bytes/s; 0 where there is none.
    pub pacing_rate: f64,
}

/// A program built for this machine.
#[derive(Clone)]
pub struct Program(PathBuf);

/// Builds a program, once for all tests. Without a C compiler it prints that and returns `None`.
pub fn build(name: &str) -> Option<Program> {
    static BUILT: Mutex<BTreeMap<String, Option<Program>>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().expect("no build panicked");
    built.entry(name.to_owned()).or_insert_with(|| compile(name)).clone()
}

/// Renamed into place when complete: another process may be running the same tests.
fn compile(name: &str) -> Option<Program> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if Command::new(&compiler).arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler ({compiler})");
        return None;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = folder.join(name);
    let unfinished = folder.join(format!("{name}-{}", std::process::id()));
    let status = Command::new(&compiler)
        .args(["-O1", "-Wall", "-Wno-unused", "-Werror", "-fsanitize=undefined"])
        .args(["-fno-sanitize-recover=undefined", "-DNATIVE"])
        .arg(format!("-DPROGRAM=\"bpf/{name}.bpf.c\""))
        .arg(format!("-DOPS={}", name.replace('-', "_")))
        .arg(sources.join("native.c"))
        .arg("-o")
        .arg(&unfinished)
        .status()
        .expect("the compiler was found a moment ago");
    assert!(status.success(), "{name} does not compile");
    std::fs::rename(&unfinished, &target).expect("both are in the same folder");
    Some(Program(target))
}

impl Program {
    /// Its outputs after these events, one per line.
    pub fn run(&self, events: &str) -> Vec<Output> {
        let mut child = Command::new(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was just built");
        let mut stdin = child.stdin.take().expect("it is piped");
        let events = events.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(events.as_bytes()));
        let output = child.wait_with_output().expect("it runs");
        writer.join().expect("writing does not panic").expect("it reads all events");
        assert!(output.status.success(), "it failed: {}", output.status);
        let text = String::from_utf8(output.stdout).expect("numbers");
        text.lines().map(parse_output).collect()
    }
}

fn parse_output(line: &str) -> Output {
    let mut columns =
        line.split(' ').map(|column| column.parse::<u64>().expect("native.c prints numbers"));
    let mut next = || columns.next().expect("three columns");
    let cwnd = next() as f64 / f64::from(1_u32 << 16) / f64::from(1_u32 << 16);
    let ssthresh = match next() {
        0x7fff_ffff => f64::INFINITY,
        packets => packets as f64,
    };
    Output { cwnd, ssthresh, pacing_rate: next() as f64 }
}
