//! Data arrives exactly over paths that lose, duplicate, delay and corrupt packets.

use crate::pattern::{patient, receive, send};
use crate::relay::{Impairments, Relay};
use dumbbell_udt::Mode;
use dumbbell_udt::io::{Key, Listener, Settings, Socket};
use std::net::Ipv4Addr;
use std::thread;
use std::time::Instant;

fn inject_nothing(_: bool, _: &[u8]) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Transfers data in both directions through a relay.
fn exchange(settings: &Settings, impairments: Impairments, seed: u64, bytes: u64) {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0), settings).expect("a port is free");
    let relay = Relay::start(listener.local_addr(), impairments, seed, Box::new(inject_nothing));
    let client = Socket::connect(relay.address(), settings).expect("it listens");
    let server = listener.accept(None).expect("there is a client");
    let mode = settings.mode;
    thread::scope(|scope| {
        scope.spawn(|| send(&client, mode, bytes));
        scope.spawn(|| send(&server, mode, bytes));
        scope.spawn(|| receive(&client, mode, bytes));
        receive(&server, mode, bytes);
    });
}

/// Runs seeds in parallel: at 20 % loss UDT's rate is low, and the threads mostly wait.
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
        let impairments =
            Impairments { loss, duplication: 0.05, delay: 0.05, ..Impairments::default() };
        let mode = if seed.is_multiple_of(2) { Mode::Stream } else { Mode::Message };
        exchange(&Settings { mode, ..patient() }, impairments, seed, bytes);
        // UDT has no checksum: only the encrypted mode detects corruption.
        let key = Some(Key::new([seed as u8; 32]));
        let impairments = Impairments { corruption: 0.02, ..impairments };
        exchange(&Settings { mode, key, ..patient() }, impairments, seed, bytes);
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
