//! Connections over an interface that carries 1500 bytes, as Ethernet does: the loopback interface of a
//! network namespace, in which these tests run again.
#![cfg(target_os = "linux")]

use crate::own::pair_at;
use crate::pattern::{close, patient, receive, send};
use dumbbell_udt::Mode;
use dumbbell_udt::io::{Error, Key, Settings};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::thread;

const INSIDE: &str = "DUMBBELL_LOOPBACK_OF_1500_BYTES";
const PREPARE: &str = "ip link set lo mtu 1500 up";

/// Runs a test of this program in such a namespace; `true` if this process is in it.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |options: &[&str], command: &str| {
        let program = std::env::current_exe().expect("this program is a file");
        let mut unshare = Command::new("unshare");
        unshare.args(options).args(["--net", "sh", "-c", command]).arg(program).arg(test);
        unshare.env(INSIDE, "1").output().ok().filter(|done| done.status.success())
    };
    let ways: [&[&str]; 2] = [&[], &["--map-root-user"]];
    match ways.into_iter().find(|way| unshare(way, PREPARE).is_some()) {
        None => println!("skipped: `unshare --net` and `ip` need root, or user namespaces"),
        Some(way) => {
            let again = format!("{PREPARE} && exec \"$0\" --exact \"$1\" --nocapture");
            let done = unshare(way, &again).expect("it succeeds in a namespace");
            assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"), "{test} is a test");
        }
    }
    false
}

#[test]
fn full_packets_are_as_long_as_the_mss_over_ipv4_and_ipv6() {
    if !is_inside("mtu::full_packets_are_as_long_as_the_mss_over_ipv4_and_ipv6") {
        return;
    }
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    // UDT's header is 16 bytes, UDP's 8, IPv4's 20, IPv6's 40; a key takes 20.
    for (ip, key, payload) in [
        (v4, None, 1456),
        (v6, None, 1436),
        (v4, Some(Key::new([1; 32])), 1436),
        (v6, Some(Key::new([1; 32])), 1416),
    ] {
        let (client, server) = pair_at(ip, &Settings { key, ..patient() });
        thread::scope(|scope| {
            scope.spawn(|| send(&client, Mode::Stream, 1_000_000));
            receive(&server, Mode::Stream, 1_000_000);
        });
        assert_eq!(client.statistics().max_payload, payload, "{ip}");
        close(client);
    }
}

#[test]
fn packets_that_an_interface_does_not_carry_are_an_error() {
    if !is_inside("mtu::packets_that_an_interface_does_not_carry_are_an_error") {
        return;
    }
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let mut settings = patient();
        settings.options.mss = 1501;
        let (client, server) = pair_at(ip, &settings);
        let failed = client.send_all(&vec![0; 100_000_000]);
        assert!(matches!(failed, Err(Error::PacketTooLong(1501))), "{ip}: {failed:?}");
        let what = failed.expect_err("as above").to_string();
        assert!(what.contains("no packets of 1501 bytes") && what.contains("mss"), "{what}");
        // The peer is told.
        assert_eq!(server.recv(&mut [0; 1]).expect("it ends"), 0);
    }
}
