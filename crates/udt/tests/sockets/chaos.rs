//! Data arrives exactly over paths that lose, double, delay and corrupt packets.

use crate::pattern::{receive, send};
use crate::relay::{Harm, Relay};
use dumbbell_udt::Mode;
use dumbbell_udt::io::{Key, Listener, Settings, Socket};
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

fn nobody(_: bool, _: &[u8]) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Sends either way at once, through a relay.
fn exchange(settings: &Settings, harm: Harm, seed: u64, bytes: u64) {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0), settings).expect("a port is free");
    let relay = Relay::start(listener.local_addr(), harm, seed, Box::new(nobody));
    let client = Socket::connect(relay.address(), settings).expect("it listens");
    let server = listener.accept(Some(Duration::from_secs(60))).expect("there is a client");
    let mode = settings.mode;
    thread::scope(|scope| {
        scope.spawn(|| send(&client, mode, bytes));
        scope.spawn(|| send(&server, mode, bytes));
        scope.spawn(|| receive(&client, mode, bytes));
        receive(&server, mode, bytes);
    });
}

fn patient() -> Settings {
    let long = Duration::from_secs(60);
    Settings { connect_timeout: long, idle_timeout: long, ..Settings::default() }
}

/// Seeds run at once: at a loss of 20 % UDT's rate is low, and they mostly wait.
fn run(seeds: std::ops::Range<u64>, bytes: u64) {
    thread::scope(|scope| {
        for seed in seeds {
            scope.spawn(move || exchange_over_paths(seed, bytes));
        }
    });
}

fn exchange_over_paths(seed: u64, bytes: u64) {
    for loss in [0.01, 0.05, 0.2] {
        let began = Instant::now();
        let harm = Harm { loss, twice: 0.05, late: 0.05, corruption: 0.0 };
        let mode = if seed.is_multiple_of(2) { Mode::Stream } else { Mode::Message };
        exchange(&Settings { mode, ..patient() }, harm, seed, bytes);
        // UDT's packets have no checksum: only the encrypted mode can tell a wrong byte.
        let key = Some(Key::new([seed as u8; 32]));
        let harm = Harm { corruption: 0.02, ..harm };
        exchange(&Settings { mode, key, ..patient() }, harm, seed, bytes);
        let took = began.elapsed().as_secs_f64();
        eprintln!("seed {seed}, loss {loss}: exact after {took:.1} s");
    }
}

#[test]
fn data_is_exact_over_a_bad_path() {
    run(0..2, 150_000);
}

#[test]
#[ignore = "takes minutes: `make chaos` runs it"]
fn data_is_exact_over_many_bad_paths() {
    run(10..40, 2_000_000);
}
