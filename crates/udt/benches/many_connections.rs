//! Cost of a driver with many connections: CPU time of a listener's driver thread while its connections
//! are idle and send keep-alives, and while one more client sends a stream over loopback.
//!
//!     cargo bench -p dumbbell-udt --features io --bench many_connections -- [IDLE [MEGABYTES]]

use dumbbell_udt::io::{Listener, Settings, Socket};
use std::error::Error;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let idle = numbers.first().copied().unwrap_or(1000);
    let bytes = numbers.get(1).copied().unwrap_or(200) * 1_000_000;
    let mut settings = Settings { udp_buffer: 1 << 20, ..Settings::default() };
    settings.options.receive_buffer = 1024;
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0), &settings)?;
    let driver = driver_thread()?;
    let mut connections = Vec::new();
    for _ in 0..idle {
        let client = Socket::connect(listener.local_addr(), &settings)?;
        connections.push((client, listener.accept(None)?));
    }
    let (started, cpu) = (Instant::now(), cpu_seconds(&driver)?);
    thread::sleep(Duration::from_secs(5));
    let share = (cpu_seconds(&driver)? - cpu) / started.elapsed().as_secs_f64();
    println!("{idle} idle connections: {:.1} % CPU", share * 100.0);
    let client = Socket::connect(listener.local_addr(), &settings)?;
    let server = listener.accept(None)?;
    let (started, cpu) = (Instant::now(), cpu_seconds(&driver)?);
    let sender = thread::spawn(move || -> Result<(), dumbbell_udt::io::Error> {
        let chunk = vec![7; 1 << 16];
        let mut sent = 0;
        while sent < bytes {
            sent += client.send(&chunk)? as u64;
        }
        client.close(settings.linger)
    });
    let (mut received, mut buffer) = (0, vec![0; 1 << 16]);
    while received < bytes {
        received += server.recv(&mut buffer)? as u64;
    }
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds(&driver)? - cpu);
    let gbits = received as f64 * 8e-9 / seconds;
    let per_gigabyte = cpu / (received as f64 * 1e-9);
    println!("and a stream: {gbits:.2} Gbit/s, {per_gigabyte:.2} CPU s/GB");
    drop(server);
    sender.join().map_err(|_| "the sender failed")??;
    Ok(())
}

/// The only driver thread so far, once it has its name.
fn driver_thread() -> Result<PathBuf, Box<dyn Error>> {
    let is_driver = |task: &PathBuf| fs::read(task.join("comm")).is_ok_and(|name| name == b"udt\n");
    loop {
        let mut tasks = fs::read_dir("/proc/self/task")?.flatten().map(|task| task.path());
        if let Some(task) = tasks.find(is_driver) {
            return Ok(task);
        }
    }
}

/// CPU time of a thread, s.
fn cpu_seconds(task: &Path) -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    Ok(text.split_whitespace().next().ok_or("no time")?.parse::<f64>()? * 1e-9)
}
