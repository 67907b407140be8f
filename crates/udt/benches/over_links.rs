//! Throughput of dumbbell and libudt 4.11 over an emulated path: a relay that runs two of the
//! simulator's links in real time.
//!
//!     cargo bench -p dumbbell-udt --features io --bench over_links -- \
//!         [MBITS [RTT-MS [MEGABYTES [CC,CC...]]]]
//!
//! A transfer is stopped after two minutes; its result is then the average rate until that time.

mod peers;

use peers::relay::{PathParameters, Relay};
use peers::{BenchResult, compile, peer};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LOSSES: [f64; 3] = [0.0, 1e-4, 1e-2];
const MAX_DURATION: Duration = Duration::from_secs(120);

fn main() -> BenchResult<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "peer") {
        return peer(&words[1..]);
    }
    if words.is_empty() {
        println!("over_links takes minutes, and says what it wants as its first word: Mbit/s");
        return Ok(());
    }
    let number = |at: usize, otherwise| match words.get(at) {
        Some(word) => word.parse::<u64>(),
        None => Ok(otherwise),
    };
    let path = PathParameters { mbits: number(0, 500)?, rtt_ms: number(1, 100)? };
    let bytes = number(2, 300)? * 1_000_000;
    let algorithms = words.get(3).map_or("udt,cubic,bbr3", String::as_str);
    let own = std::env::current_exe()?;
    println!("{} Mbit/s, {} ms, queue 1 BDP, {bytes} bytes; Mbit/s", path.mbits, path.rtt_ms);
    println!("{:<20}{:>10}{:>10}{:>10}", "loss", LOSSES[0], LOSSES[1], LOSSES[2]);
    let row = |name: &str, program: &Path, before: &[&str]| -> BenchResult<()> {
        print!("{name:<20}");
        for loss in LOSSES {
            print!("{:>10.1}", transfer(program, before, bytes, &path, loss)?);
            std::io::Write::flush(&mut std::io::stdout())?;
        }
        println!();
        Ok(())
    };
    if let Some(libudt) = compile() {
        row("libudt 4.11", &libudt, &[])?;
        std::fs::remove_file(libudt)?;
    }
    for cc in algorithms.split(',') {
        row(&format!("dumbbell {cc}"), &own, &["peer", cc])?;
    }
    Ok(())
}

/// Throughput of one transfer between two processes of a program, Mbit/s.
fn transfer(
    program: &Path,
    before: &[&str],
    bytes: u64,
    path: &PathParameters,
    loss: f64,
) -> BenchResult<f64> {
    let bytes = bytes.to_string();
    let run = |words: &[&str]| {
        let output = if words[0] == "listen" { Stdio::piped() } else { Stdio::null() };
        Command::new(program).args(before).args(words).stdout(output).spawn()
    };
    let mut receiver = run(&["listen", "recv", "stream", &bytes])?;
    let mut lines = BufReader::new(receiver.stdout.take().ok_or("no output")?).lines();
    let line = lines.next().ok_or("no line")??;
    let port: u16 = line.strip_prefix("port ").ok_or("no port")?.parse()?;
    let relay = Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), path, loss)?;
    let mut sender =
        run(&["connect", "send", "stream", &bytes, &format!("127.0.0.1:{}", relay.port)])?;
    let started = Instant::now();
    let stopped = Arc::new(AtomicBool::new(false));
    let done = stopped.clone();
    let heard = thread::spawn(move || {
        let line = lines.find_map(|line| line.ok().filter(|line| line.starts_with("done ")));
        done.store(true, Ordering::Relaxed);
        line
    });
    while !stopped.load(Ordering::Relaxed) && started.elapsed() < MAX_DURATION {
        thread::sleep(Duration::from_millis(50));
    }
    let delivered = relay.delivered.load(Ordering::Relaxed) as f64 * 8e-6;
    let elapsed = started.elapsed().as_secs_f64();
    for child in [&mut sender, &mut receiver] {
        // A process that has ended cannot be killed.
        let _ = child.kill();
        child.wait()?;
    }
    let line = heard.join().map_err(|_| "the reader failed")?;
    let numbers = line.map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    match numbers.as_deref() {
        Some([_, bytes, _, seconds, _]) => {
            Ok(bytes.parse::<f64>()? * 8e-6 / seconds.parse::<f64>()?)
        }
        _ => Ok(delivered / elapsed),
    }
}
