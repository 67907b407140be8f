//! Pacing precision of dumbbell and libudt 4.11: gaps between packets, by kernel timestamps, of a sender
//! over an emulated path of 20 Mbit/s and 20 ms.
//!
//!     cargo bench -p dumbbell-udt --features io --bench pacing -- [SECONDS [CC]]
//!
//! The period is the mean gap after the first two seconds. Every 16th gap is 0: UDT's packet pairs.

mod peers;

use peers::relay::{PathParameters, Relay, lock};
use peers::{BenchResult, compile, peer};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATH: PathParameters = PathParameters { mbits: 20, rtt_ms: 20, late: 0.0 };
/// More than is sent in time.
const BYTES: &str = "1000000000";
/// Slow start, excluded.
const EXCLUDED: Duration = Duration::from_secs(2);

fn main() -> BenchResult<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "peer") {
        return peer(&words[1..]);
    }
    let seconds = words.first().map_or(Ok(10), |word| word.parse())?;
    let cc = words.get(1).map_or("udt", String::as_str);
    let own = std::env::current_exe()?;
    println!(
        "20 Mbit/s, 20 ms, {seconds} s    period us   p50 gap   p95 gap   p99 gap   p95/period"
    );
    if let Some(libudt) = compile() {
        row("libudt 4.11", &libudt, &[], seconds)?;
        std::fs::remove_file(libudt)?;
    }
    row(&format!("dumbbell {cc}"), &own, &["peer", cc], seconds)
}

/// Runs a sender and prints its row.
fn row(name: &str, program: &Path, before: &[&str], seconds: u64) -> BenchResult<()> {
    let run = |words: &[&str], output: Stdio| {
        Command::new(program).args(before).args(words).stdout(output).spawn()
    };
    let mut receiver = run(&["listen", "recv", "stream", BYTES], Stdio::piped())?;
    let mut line = String::new();
    BufReader::new(receiver.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let port: u16 = line.trim().strip_prefix("port ").ok_or("no port")?.parse()?;
    let relay = Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), &PATH, 0.0, 1)?;
    let address = format!("127.0.0.1:{}", relay.port);
    let mut sender = run(&["connect", "send", "stream", BYTES, &address], Stdio::null())?;
    std::thread::sleep(Duration::from_secs(seconds));
    for child in [&mut sender, &mut receiver] {
        // A process that has ended cannot be killed.
        let _ = child.kill();
        child.wait()?;
    }
    let all = std::mem::take(&mut *lock(&relay.arrivals));
    let first = *all.first().ok_or("nothing came")?;
    let late: Vec<Duration> = all.into_iter().filter(|&at| at > first + EXCLUDED).collect();
    let mut gaps: Vec<f64> =
        late.windows(2).map(|two| two[1].saturating_sub(two[0]).as_secs_f64() * 1e6).collect();
    let period = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    gaps.sort_by(f64::total_cmp);
    let at = |share: f64| gaps.get((share * gaps.len() as f64) as usize).copied().unwrap_or(0.0);
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(at);
    println!("{name:<28}{period:>10.0}{p50:>10.0}{p95:>10.0}{p99:>10.0}{:>13.2}", p95 / period);
    Ok(())
}
