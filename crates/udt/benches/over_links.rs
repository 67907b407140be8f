//! Throughput of dumbbell and libudt 4.11 over an emulated path: a relay that runs two of the
//! simulator's links in real time.
//!
//!     cargo bench -p dumbbell-udt --features io --bench over_links -- \
//!         mbits=500 rtt-ms=100 megabytes=100 runs=5 loss=0,1e-4,1e-2 late=0 cc=udt mixed
//!
//! The senders take turns; medians of the runs are printed, and the longest time in which a receiver read
//! nothing. Both directions lose packets. `late` is the share of packets that arrive 3 ms late, so that
//! others overtake them. `mixed` lets each implementation send to the other. A transfer is stopped
//! after two minutes; its result is then the average rate until that time.

mod peers;

use peers::relay::{PathParameters, Relay};
use peers::{BenchResult, compile, peer};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const MAX_DURATION: Duration = Duration::from_secs(120);

/// A program that is a peer, and the words before its own.
#[derive(Clone)]
struct Program {
    path: PathBuf,
    words: Vec<String>,
}

/// The name of a pair, its sender and its receiver.
type Pair = (String, Program, Program);

/// Result of a transfer: Mbit/s, and the longest time without data, s.
type Measurement = (f64, f64);

fn main() -> BenchResult<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "peer") {
        return peer(&words[1..]);
    }
    if words.is_empty() {
        println!("over_links takes minutes, and only runs with arguments, such as mbits=500");
        return Ok(());
    }
    let given: HashMap<&str, &str> =
        words.iter().map(|word| word.split_once('=').unwrap_or((word, ""))).collect();
    let path = PathParameters {
        mbits: number(&given, "mbits", 500)?,
        rtt_ms: number(&given, "rtt-ms", 100)?,
        late: number(&given, "late", 0.0)?,
    };
    let bytes = number(&given, "megabytes", 100u64)? * 1_000_000;
    let runs = number(&given, "runs", 5u64)?;
    let losses = given.get("loss").copied().unwrap_or("0,1e-4,1e-2").split(',').map(f64::from_str);
    let algorithms = given.get("cc").copied().unwrap_or("udt");
    let (pairs, libudt) = pairs(algorithms, given.contains_key("mixed"))?;
    let PathParameters { mbits, rtt_ms, late } = path;
    println!("{mbits} Mbit/s, {rtt_ms} ms, queue 1 BDP, {late} late; medians of {runs} runs");
    println!("{:<8}{:<34}{:>8}{:>12}   runs", "loss", "", "Mbit/s", "max gap, ms");
    for loss in losses {
        let loss = loss?;
        let mut found = vec![Vec::new(); pairs.len()];
        for run in 0..runs {
            for ((_, sender, receiver), found) in pairs.iter().zip(&mut found) {
                let relay = |port| {
                    Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), &path, loss, run)
                };
                found.push(transfer(sender, receiver, bytes, relay)?);
            }
        }
        for ((name, ..), found) in pairs.iter().zip(&found) {
            let (rate, gap) = (median(found, |one| one.0), median(found, |one| one.1));
            let all: Vec<String> = found.iter().map(|one| format!("{:.1}", one.0)).collect();
            println!("{loss:<8}{name:<34}{rate:>8.1}{:>12.0}   {}", gap * 1e3, all.join(" "));
        }
    }
    libudt.map_or(Ok(()), |program| Ok(std::fs::remove_file(program.path)?))
}

/// The argument `name=NUMBER`.
fn number<T: FromStr>(given: &HashMap<&str, &str>, name: &str, otherwise: T) -> BenchResult<T> {
    let Some(text) = given.get(name) else { return Ok(otherwise) };
    text.parse().map_err(|_| format!("{name}={text} is no number").into())
}

/// Names, senders and receivers, and libudt's program, if it can be compiled.
fn pairs(algorithms: &str, mixed: bool) -> BenchResult<(Vec<Pair>, Option<Program>)> {
    let libudt = compile().map(|path| Program { path, words: Vec::new() });
    let own = std::env::current_exe()?;
    let mut pairs = Vec::new();
    let mut add = |names: [&str; 2], sender: &Program, receiver: &Program| {
        pairs.push((names.join(" to "), sender.clone(), receiver.clone()));
    };
    if let Some(libudt) = &libudt {
        add(["libudt", "libudt"], libudt, libudt);
    }
    for cc in algorithms.split(',') {
        let own = Program { path: own.clone(), words: vec!["peer".into(), cc.into()] };
        let name = format!("dumbbell {cc}");
        add([&name, "dumbbell"], &own, &own);
        if let Some(libudt) = libudt.as_ref().filter(|_| mixed) {
            add([&name, "libudt"], &own, libudt);
            add(["libudt", "dumbbell"], libudt, &own);
        }
    }
    Ok((pairs, libudt))
}

fn median(found: &[Measurement], of: impl Fn(&Measurement) -> f64) -> f64 {
    let mut values: Vec<f64> = found.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Program {
    fn run(&self, words: &[&str], stdout: Stdio) -> std::io::Result<Child> {
        Command::new(&self.path).args(&self.words).args(words).stdout(stdout).spawn()
    }
}

/// One transfer between two processes.
fn transfer(
    sender: &Program,
    receiver: &Program,
    bytes: u64,
    relay: impl Fn(u16) -> BenchResult<Relay>,
) -> BenchResult<Measurement> {
    let bytes = bytes.to_string();
    let mut receiver = receiver.run(&["listen", "recv", "stream", &bytes], Stdio::piped())?;
    let mut lines = BufReader::new(receiver.stdout.take().ok_or("no output")?).lines();
    let line = lines.next().ok_or("no line")??;
    let relay = relay(line.strip_prefix("port ").ok_or("no port")?.parse()?)?;
    let to = format!("127.0.0.1:{}", relay.port);
    let mut sender = sender.run(&["connect", "send", "stream", &bytes, &to], Stdio::null())?;
    let started = Instant::now();
    let (done, result) = mpsc::channel();
    let reader = thread::spawn(move || {
        let line = lines.find_map(|line| line.ok().filter(|line| line.starts_with("done ")));
        // No one waits after two minutes.
        let _ = done.send(line);
    });
    let line = result.recv_timeout(MAX_DURATION).ok().flatten();
    let delivered = relay.delivered.load(Ordering::Relaxed) as f64;
    let elapsed = started.elapsed().as_secs_f64();
    for child in [&mut sender, &mut receiver] {
        // A process that has ended cannot be killed.
        let _ = child.kill();
        child.wait()?;
    }
    reader.join().map_err(|_| "the reader failed")?;
    let numbers = line.map(|line| {
        line.split(' ').filter_map(|word| word.parse::<f64>().ok()).collect::<Vec<_>>()
    });
    Ok(match numbers.as_deref() {
        Some([bytes, _, seconds, _, gap]) => (bytes * 8e-6 / seconds, *gap),
        _ => (delivered * 8e-6 / elapsed, f64::NAN),
    })
}
