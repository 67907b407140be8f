//! Throughput and CPU time on loopback, dumbbell and libudt 4.11 in alternating runs, each with its own
//! sender and receiver process.
//!
//!     cargo bench -p dumbbell-udt --features io --bench beside_libudt -- [MEGABYTES [ROUNDS [CC]]]
//!
//! The bench runs itself as the peers: `peer CC ROLE WHAT stream BYTES [PORT]`, with the arguments and
//! output of `tests/sockets/peer.cpp`.

mod peers;

use peers::{BenchResult, compile, peer};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Result of one transfer.
#[derive(Clone, Copy, Default)]
struct Measurement {
    gbits: f64,
    /// CPU time of sender and receiver, seconds per gigabyte.
    cpu: [f64; 2],
}

fn main() -> BenchResult<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "peer") {
        return peer(&words[1..]);
    }
    let number = |at: usize, otherwise| match words.get(at) {
        Some(word) => word.parse::<u64>(),
        None => Ok(otherwise),
    };
    let (bytes, rounds) = (number(0, 500)? * 1_000_000, number(1, 5)?);
    let cc = words.get(2).map_or("udt", String::as_str);
    let own = std::env::current_exe()?;
    let Some(libudt) = compile() else {
        println!("libudt cannot be used here; `apt install g++ libudt-dev` brings it");
        return Ok(());
    };
    let mut measures: [Vec<Measurement>; 2] = Default::default();
    for _ in 0..rounds {
        measures[0].push(transfer(&libudt, &[], bytes)?);
        measures[1].push(transfer(&own, &["peer", cc], bytes)?);
    }
    fs::remove_file(libudt)?;
    println!("{bytes} bytes over loopback, medians of {rounds}, taken in turns");
    println!("            Gbit/s   CPU s/GB sending   receiving");
    let medians = measures.map(|all| median(&all));
    for (name, found) in ["libudt 4.11", "dumbbell"].iter().zip(&medians) {
        let [send, receive] = found.cpu;
        println!("{name:<12}{:>6.2}{send:>19.2}{receive:>12.2}", found.gbits);
    }
    let [theirs, ours] = medians;
    let share = |end: usize| ours.cpu[end] / theirs.cpu[end];
    println!("ratio       {:>6.2}{:>19.2}{:>12.2}", ours.gbits / theirs.gbits, share(0), share(1));
    Ok(())
}

fn median(all: &[Measurement]) -> Measurement {
    let middle = |of: &dyn Fn(&Measurement) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let cpu = [middle(&|found| found.cpu[0]), middle(&|found| found.cpu[1])];
    Measurement { gbits: middle(&|found| found.gbits), cpu }
}

/// Runs one transfer between two processes of a program.
fn transfer(program: &Path, before: &[&str], bytes: u64) -> BenchResult<Measurement> {
    let bytes_text = bytes.to_string();
    let run = |words: &[&str]| {
        Command::new(program).args(before).args(words).stdout(Stdio::piped()).spawn()
    };
    let mut receiver = run(&["listen", "recv", "stream", &bytes_text])?;
    let mut lines = BufReader::new(receiver.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let port = line.trim().strip_prefix("port ").ok_or("no port")?.to_owned();
    let sender = run(&["connect", "send", "stream", &bytes_text, &port])?;
    let sent = sender.wait_with_output()?;
    let mut rest = String::new();
    lines.read_to_string(&mut rest)?;
    receiver.wait()?;
    let gigabytes = bytes as f64 / 1e9;
    let numbers = |text: &str| -> BenchResult<Vec<f64>> {
        let line = text.lines().find_map(|line| line.strip_prefix("done ")).ok_or("it failed")?;
        Ok(line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    };
    let (sent, received) = (numbers(&String::from_utf8(sent.stdout)?)?, numbers(&rest)?);
    let cpu = [sent[3] / gigabytes, received[3] / gigabytes];
    Ok(Measurement { gbits: bytes as f64 * 8e-9 / received[2], cpu })
}
