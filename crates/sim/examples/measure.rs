//! Measures one dumbbell: `measure CC FLOWS MBIT SECONDS [udt|jitter|reorder|codel|fq_codel]` prints packets per
//! second, wall time and the peak memory of the process.

#[path = "../benches/dumbbells/mod.rs"]
mod dumbbells;
#[path = "../benches/over_udt/mod.rs"]
mod over_udt;

use dumbbell_net::{AqmConfig, CodelConfig, FqCodelConfig, Reordering};
use dumbbell_units::Span;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

/// As in the Python package.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: measure CC FLOWS MBIT SECONDS [udt|jitter|reorder|codel|fq_codel]";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cc, flows, mbit, seconds, rest @ ..] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let (flows, mbit): (u64, f64) = (flows.parse()?, mbit.parse()?);
    let mut scenario = dumbbells::dumbbell(cc, flows, mbit * 1e6, seconds.parse()?);
    match rest {
        [] => {}
        [one] if one == "udt" => scenario = over_udt::over_udt(scenario),
        [one] if one == "jitter" => scenario.links[0].jitter_ns = 1_000_000,
        [one] if one == "reorder" => {
            let reordering = Reordering { share: 0.01, delay: Span::from_millis(5) };
            scenario.links[0].reorder = Some(reordering);
        }
        [one] if one == "codel" => {
            scenario.links[0].aqm = Some(AqmConfig::Codel(CodelConfig::default()))
        }
        [one] if one == "fq_codel" => {
            scenario.links[0].aqm = Some(AqmConfig::FqCodel(FqCodelConfig::default()))
        }
        _ => return Err(USAGE.into()),
    }
    let (began, ran) = (Instant::now(), processor_time()?);
    // As in the Python package, the scenario makes room for the run.
    let (prepared, duration_ns) = (scenario.prepare()?, scenario.duration_ns);
    drop(scenario);
    let outcome = prepared.run_while(|_| ControlFlow::Continue(())).ok_or("stopped")?;
    let (wall, ran) = (began.elapsed().as_secs_f64(), processor_time()? - ran);
    let packets = outcome.data_packets as f64;
    let sent = outcome.links.sent_bytes.last().copied().unwrap_or(0) as f64;
    println!("{packets:.0} data packets, {} events, {wall:.3} s", outcome.events);
    println!("{:.3} million data packets/s", packets / wall / 1e6);
    println!("{:.3} million data packets/s of processor time", packets / ran / 1e6);
    println!("utilisation {:.4}", sent * 8e3 / mbit / duration_ns as f64);
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
