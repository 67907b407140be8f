//! Measures one dumbbell: `measure CC FLOWS MBIT SECONDS [udt]` prints packets per second, wall
//! time and the peak memory of the process.

#[path = "../benches/dumbbells/mod.rs"]
mod dumbbells;
#[path = "../benches/over_udt/mod.rs"]
mod over_udt;

use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (udt, arguments) = match arguments.as_slice() {
        [rest @ .., last] if last == "udt" => (true, rest),
        all => (false, all),
    };
    let [cc, flows, mbit, seconds] = arguments else {
        return Err("usage: measure CC FLOWS MBIT SECONDS [udt]".into());
    };
    let (flows, mbit): (u64, f64) = (flows.parse()?, mbit.parse()?);
    let scenario = dumbbells::dumbbell(cc, flows, mbit * 1e6, seconds.parse()?);
    let scenario = if udt { over_udt::over_udt(scenario) } else { scenario };
    let (began, ran) = (Instant::now(), processor_time()?);
    let outcome = scenario.run()?;
    let (wall, ran) = (began.elapsed().as_secs_f64(), processor_time()? - ran);
    let packets = outcome.data_packets as f64;
    let sent = outcome.links.sent_bytes.last().copied().unwrap_or(0) as f64;
    println!("{packets:.0} data packets, {} events, {wall:.3} s", outcome.events);
    println!("{:.3} million data packets/s", packets / wall / 1e6);
    println!("{:.3} million data packets/s of processor time", packets / ran / 1e6);
    println!("utilisation {:.4}", sent * 8e3 / mbit / scenario.duration_ns as f64);
    println!("retransmitted {}", outcome.flows.retransmitted.iter().sum::<u64>());
    println!("peak memory {:.0} MB", peak_memory_mb()?);
    Ok(())
}

/// Processor time of this process in seconds, from Linux's /proc. More reliable than wall time on a
/// shared machine.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns = schedstat.split_whitespace().next().ok_or("no time in schedstat")?;
    Ok(ns.parse::<f64>()? / 1e9)
}

/// Peak resident memory in MB, from Linux's /proc.
fn peak_memory_mb() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)).ok_or("no VmHWM in status")?;
    Ok(kb.parse::<f64>()? / 1e3)
}
