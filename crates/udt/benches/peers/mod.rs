//! Peers for benches: dumbbell and libudt 4.11, and an emulated path.
#![allow(dead_code, reason = "not every bench needs all of it")]

pub mod relay;

use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

/// The pattern of `peer.cpp` repeats after so many bytes.
const PERIOD: u64 = 1 << 20;

/// The byte at a position, the same as in `peer.cpp`.
fn byte_at(position: u64) -> u8 {
    ((position % PERIOD).wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Compiles the libudt peer; `None` without libudt or a compiler.
pub fn compile() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sockets/peer.cpp");
    let program = std::env::temp_dir().join(format!("libudt-peer-{}", std::process::id()));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++11", "-O2", "-o"]).args([&program, &source]);
    compiler.args(["-ludt", "-lpthread"]).status().is_ok_and(|s| s.success()).then_some(program)
}

/// One end of a transfer, with the arguments of `peer.cpp`.
pub fn peer(words: &[String]) -> BenchResult<()> {
    let [cc, role, _, _, bytes, rest @ ..] = words else { return Err("too few words".into()) };
    let bytes: u64 = bytes.parse()?;
    let key = std::env::var_os("UDT_KEYED").map(|_| Key::new([1; 32]));
    let settings = Settings { key, ..Settings::for_algorithm(cc) };
    let address = |text: &String| -> BenchResult<SocketAddr> {
        Ok(match text.parse() {
            Ok(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            Err(_) => text.parse()?,
        })
    };
    let at = rest.first().map_or(Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), address)?;
    let socket = match role.as_str() {
        "listen" => {
            let listener = Listener::bind(at, &settings)?;
            println!("port {}", listener.local_addr().port());
            listener.accept(None)?
        }
        _ => Socket::connect(at, &settings)?,
    };
    let started = Instant::now();
    let pattern: Vec<u8> = (0..2 * PERIOD).map(byte_at).collect();
    let mut buffer = vec![0; 1 << 17];
    let (mut moved, mut last, mut gap) = (0, started, Duration::ZERO);
    while moved < bytes {
        let expected = &pattern[(moved % PERIOD) as usize..];
        let room = buffer.len().min((bytes - moved) as usize);
        let some = match role.as_str() {
            "listen" => socket.recv(&mut buffer)?,
            _ => socket.send(&expected[..room])?,
        };
        if role == "listen" && buffer[..some] != expected[..some] {
            return Err("wrong bytes".into());
        }
        let now = Instant::now();
        (gap, last) = (gap.max(now - last), now);
        moved += some as u64;
    }
    // The receiver has all data and need not wait.
    if role != "listen" {
        match socket.shutdown(Duration::from_secs(30)) {
            // libudt closes as soon as it has all data.
            Ok(()) | Err(Error::PeerClosed) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let took = started.elapsed().as_secs_f64();
    if std::env::var_os("UDT_VERBOSE").is_some() {
        eprintln!("{role}: {:?}", socket.statistics());
    }
    println!("done {moved} 0 {took:.3} {:.3} {:.3}", processor_seconds()?, gap.as_secs_f64());
    drop(socket);
    // The sender may still need an acknowledgement.
    if role == "listen" {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// CPU time of all threads, s, with a resolution of 10 ms.
fn processor_seconds() -> BenchResult<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.map(|field| field.parse::<f64>().unwrap_or(0.0)).sum();
    Ok(ticks / 100.0)
}
